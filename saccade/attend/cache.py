"""`Cache`: keys and values that one layer has already seen. The caller makes and owns it; modules hold weights only.

Rows may have come to different lengths. Each begins at its own position 0, so that what it holds does not depend on
its neighbours; what lies behind a shorter row's end is hidden by `causal`, or by the layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.error import SaccadeError

BLOCK = 32  # positions by which the buffers grow, or by half of what they are
FORGET = 256  # positions that have to come together before they are forgotten
FOLD = 32  # positions that have to come together before they are folded into a state
SLACK = 64  # positions that a rewind may take back of what a window has left behind

Fold = Callable[[Tensor, Tensor, Tensor], Tensor]  # keys, values and which of them (B,1,n,1) -> what a state gains


class Late(NamedTuple):
    """A position that is not written yet. rows: which rows of all that lies before it are its own (None: the same)."""

    k: Tensor  # (B,G,1,D)
    v: Tensor  # (B,G,1,E)
    rows: Tensor | None = None


class Cache:
    """Keys and values of one attention layer, (B,G,S,D) and (B,G,S,E), in buffers that grow by blocks.

    What `append` has handed out stays as it was: positions are only added, and a rewind, a reordering or forgetting
    takes new buffers when somebody watches. What was noted is written when somebody looks. With a `window`, nobody
    looks back by `window` positions or more: what lies further back is forgotten block by block, so that the buffers
    stay small and in order (a ring, unrolled). With a `fold`, nothing is lost: what is forgotten is added to a `state`
    of one size (linear attention as a recurrence).
    """

    def __init__(self, window: int | None = None, fold: Fold | None = None) -> None:
        self.window, self.fold = 1 if window is None and fold is not None else window, fold
        self.state: Tensor | None = None  # what was folded, a row each
        self.watched = False
        self.length = 0  # positions of the longest row, the forgotten among them
        self.lengths: Tensor | None = None  # of each row (B,), where they differ
        self.forgotten: int | Tensor = 0  # positions before the first that is held; (B,) where the rows differ
        self.held = 0  # positions of the buffers that are in use
        self.rows = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._late: list[Late] = []  # the last positions, noted and not yet written to the buffers

    @property
    def keys(self) -> Tensor | None:
        """(B,G,held,D)."""
        self._write()
        return None if self._keys is None else self._keys[: self.rows, :, : self.held]

    @property
    def values(self) -> Tensor | None:
        """(B,G,held,E)."""
        self._write()
        return None if self._values is None else self._values[: self.rows, :, : self.held]

    @property
    def newest(self) -> Late | None:
        """The last position of every row, where it was noted and has not been written."""
        return self._late[-1] if self._late else None

    @property
    def start(self) -> int | Tensor:
        """The position that comes next: one for all rows, or (B,)."""
        return self.length if self.lengths is None else self.lengths

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds k (B,G,T,D) and v (B,G,T,E) behind what each row holds; gives all keys and values."""
        self._write()
        keys, values, begin, end = self._keys, self._values, self.held, self.held + k.shape[2]
        if keys is not None and values is not None and self._has_room(keys, k, end):  # the common case, without detours
            keys[: self.rows, :, begin:end] = k
            values[: self.rows, :, begin:end] = v
            self.length, self.held = self.length + end - begin, end
            return keys[: self.rows, :, :end], values[: self.rows, :, :end]
        self._check_fits(k, v)
        self._forget()
        at = self.start - self.forgotten
        self._keys, self._values = (
            _add(buffer, x, at, self.held, self.rows) for buffer, x in ((self._keys, k), (self._values, v))
        )
        T = k.shape[2]
        self.rows, self.length, self.held = k.shape[0], self.length + T, self.held + T
        self.lengths = None if self.lengths is None else self.lengths + T
        return self._keys[: self.rows, :, : self.held], self._values[: self.rows, :, : self.held]

    def note(self, k: Tensor, v: Tensor) -> None:
        """Adds as `append` does and returns nothing: one position is kept as it is, and written when somebody looks.

        k and v are the cache's from here on. Meant for layers that ask for the `newest` alone, as recurrent ones do: a
        step copies nothing, beams move one position, and most of what a window forgets was never written.
        """
        if k.shape[2] != 1 or not k.shape[0] or self.fold is not None or torch.is_grad_enabled():
            self.append(k, v)
            return
        self._forget()
        if self.window is None and len(self._late) >= FORGET:
            self._write()
        if not (self._late and _alike(self._late[-1].k, k) and _alike(self._late[-1].v, v)):
            self._write()
            self._check_fits(k, v)
        self._late.append(Late(k, v))
        self.rows, self.length, self.held = k.shape[0], self.length + 1, self.held + 1
        self.lengths = None if self.lengths is None else self.lengths + 1

    def reorder(self, rows: Tensor) -> None:
        """Row b goes on from what row rows[b] has seen (beams); rows may be repeated, moved and left out."""
        if not self.rows:
            return
        if self._late and 4 * rows.shape[0] < self._late[0].k.shape[0]:  # most have left: free their tensors
            self._write()
        if self.lengths is not None and isinstance(self.forgotten, Tensor):
            self._set_lengths(self.lengths[rows], self.forgotten[rows])
        if self._late:
            k, v, earlier = self._late[-1]
            k, v = (each.index_select(0, rows) for each in (k, v))
            self._late[-1] = Late(k, v, rows.clone() if earlier is None else earlier[rows])
        else:
            self._change(lambda buffer: _select(buffer, rows, self.held, self.watched))
        self.state = None if self.state is None else self.state[rows]
        self.rows = rows.shape[0]

    def take(self, rows: Tensor) -> Cache:
        """A cache of its own with these rows."""
        self._write()
        other = Cache(self.window, self.fold)
        other.state = None if self.state is None else self.state[rows]
        if self._keys is None or self._values is None:
            return other
        other.rows = rows.shape[0]
        other._set_lengths(_per_row(self.start, self.rows, self._keys)[rows], self._forgotten_per_row()[rows])
        seen = (buffer[:, :, : other.held] for buffer in (self._keys, self._values))
        other._keys, other._values = (each.index_select(0, rows) for each in seen)
        return other

    def join(self, other: Cache, *, level: bool = False) -> None:
        """The rows of `other` follow behind these; `level`: filled up to one length, which the caller's mask knows."""
        self._write()
        other._write()
        if other._keys is None or other._values is None:
            return
        if self._keys is None or self._values is None:
            raise SaccadeError("join: this cache is empty, and rows can only follow others: use the other cache")
        self._keys, self._values = (
            _join(mine, self.rows, theirs[: other.rows, :, : other.held], self.watched)
            for mine, theirs in ((self._keys, other._keys), (self._values, other._values))
        )
        if self.state is not None or other.state is not None:
            self.state = torch.cat((_state_or_zeros(self, other), _state_or_zeros(other, self)))
        starts, gone = (
            torch.cat((_per_row(a, self.rows, self._keys), _per_row(b, other.rows, self._keys)))
            for a, b in ((self.start, other.start), (self.forgotten, other.forgotten))
        )
        self.rows += other.rows
        self._set_lengths(torch.full_like(starts, int(starts.max())) if level else starts, gone)

    def rewind(self, length: int | Tensor) -> None:
        """Forgets all but the first `length` positions: one for all rows, or (B,)."""
        self._write()
        if self._keys is None or self._values is None:
            if int(torch.as_tensor(length).max()):
                raise SaccadeError(f"a cache that has seen nothing cannot be rewound to {length}")
            return
        wanted = _per_row(length, self.rows, self._keys)
        self.check(wanted)
        self._set_lengths(wanted, self._forgotten_per_row())
        if self.watched:
            self._change(torch.clone)

    def check(self, length: int | Tensor) -> None:
        """Refuses a rewind to a position that is not there yet, or whose window is not all there any more."""
        self._write()
        if self._keys is None:
            return
        starts, wanted, gone = (_per_row(each, self.rows, self._keys) for each in (self.start, length, self.forgotten))
        least = torch.where(gone > 0, gone + (self.window or 1) - 1, 0)
        wrong = (wanted > starts) | (wanted < least)
        if wrong.any():
            raise SaccadeError(f"a cache of {self.length} positions cannot be rewound to {int(wanted[wrong][0])}")

    def _write(self) -> None:
        """Writes what was noted into the buffers, each row what was seen on the way to it."""
        if not self._late:
            return
        rows: Tensor | None = None  # those of an earlier position that today's rows come from
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for k, v, earlier in reversed(self._late):
            keys.insert(0, k if rows is None else k.index_select(0, rows))
            values.insert(0, v if rows is None else v.index_select(0, rows))
            if earlier is not None:
                rows = earlier if rows is None else earlier[rows]
        T = len(keys)
        held, at = self.held - T, self.start - self.forgotten - T
        if rows is not None:
            chosen = rows
            self._change(lambda buffer: _select(buffer, chosen, held, self.watched))
        self._keys, self._values = (
            _add(buffer, torch.cat(steps, 2), at, held, self.rows)
            for buffer, steps in ((self._keys, keys), (self._values, values))
        )
        self._late = []

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        """Puts what `change` makes of each buffer in its place."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = change(self._keys), change(self._values)

    def _has_room(self, keys: Tensor, k: Tensor, end: int) -> bool:
        """Whether k may be written at one place for all rows of a buffer that is there, large enough and ours."""
        return (
            self.lengths is None
            and not self._is_due()
            and end <= keys.shape[2]
            and keys.shape[1] == k.shape[1]
            and keys.shape[3] == k.shape[3]
            and self.rows == k.shape[0]
            and keys.dtype == k.dtype
            and not torch.is_grad_enabled()
            and not keys.requires_grad
            and keys.is_inference() == torch.is_inference_mode_enabled()
        )

    def _is_due(self) -> bool:
        """Whether so much lies further back than the window and a rewind reach that it is time to forget it."""
        if self.window is None:
            return False
        return self.held - self._reach >= (FORGET if self.fold is None else FOLD)

    @property
    def _reach(self) -> int:
        """How many of the last positions are never forgotten."""
        return (self.window or 1) - 1 + SLACK

    def _forgotten_per_row(self) -> Tensor:
        assert self._keys is not None
        return _per_row(self.forgotten, self.rows, self._keys)

    def _set_lengths(self, lengths: Tensor, forgotten: Tensor) -> None:
        """Sets what each row (B,) has seen and forgotten; where all rows agree, one number each is kept."""
        self.length = int(lengths.max()) if lengths.numel() else 0
        self.held = int((lengths - forgotten).max()) if lengths.numel() else 0
        if self.held * lengths.numel() == int((lengths - forgotten).sum()) and bool((lengths == self.length).all()):
            self.lengths, self.forgotten = None, self.length - self.held
        else:
            self.lengths, self.forgotten = lengths, forgotten

    def _forget(self) -> None:
        """Forgets (or folds) what no window reaches any more, once a block of it has come together."""
        if torch.is_grad_enabled() or not self._is_due():
            return
        keep = self._reach
        if 0 < keep <= len(self._late):  # all that a window reaches was noted
            self._keys = self._values = None
            self._late = self._late[-keep:]
            starts = _per_row(self.start, self.rows, self._late[0].k)
            self._set_lengths(starts, starts - keep)
            return
        self._write()
        if self._keys is None or self._values is None:
            return
        over = _per_row(self.start, self.rows, self._keys) - self._forgotten_per_row() - keep
        gone = over.clamp(min=0)
        if self.fold is not None:
            left = torch.arange(int(gone.max()), device=gone.device).view(1, 1, -1, 1) < gone.view(-1, 1, 1, 1)
            keys, values = (buffer[: self.rows, :, : left.shape[2]] for buffer in (self._keys, self._values))
            more = self.fold(keys, values, left)
            self.state = more if self.state is None else self.state + more
        self._change(lambda buffer: _slide(buffer, gone, keep))
        self._set_lengths(_per_row(self.start, self.rows, self._keys), self._forgotten_per_row() + gone)

    def _check_fits(self, k: Tensor, v: Tensor) -> None:
        for buffer, x in ((self._keys, k), (self._values, v)):
            if buffer is None:
                return
            here, brought = (self.rows, *buffer.shape[1::2]), (*x.shape[:2], x.shape[3])
            if buffer.dtype != x.dtype:
                raise SaccadeError(
                    f"the cache holds {buffer.dtype} and got {x.dtype}: keep one type, or make a new cache"
                )
            if here != brought:
                raise SaccadeError(f"the cache holds (batch, heads, width) = {here}; got {brought}: make a new cache")


def _alike(x: Tensor, other: Tensor) -> bool:
    return x.shape == other.shape and x.dtype == other.dtype


def _add(buffer: Tensor | None, x: Tensor, at: int | Tensor, held: int, rows: int) -> Tensor:
    """The buffer with x at `at`: in place where there is room and no gradient flows, else a larger one."""
    if torch.is_grad_enabled():  # a graph may hold what is there, even where x itself asks for no gradient
        if buffer is None:
            return x
        past = buffer[:rows, :, :held]
        if not isinstance(at, Tensor):
            return torch.cat((past, x), 2)
        return F.pad(past, (0, 0, 0, x.shape[2])).scatter(2, _places(at, x), x)
    end = held + x.shape[2]
    if buffer is None:
        buffer = x.new_zeros(*x.shape[:2], _blocks(end), x.shape[3])
    elif buffer.requires_grad or _sealed(buffer) or end > buffer.shape[2]:
        larger = x.new_zeros(*buffer.shape[:2], max(_blocks(end), buffer.shape[2] * 3 // 2), x.shape[3])
        larger[:, :, :held] = buffer[:, :, :held]
        buffer = larger
    if isinstance(at, Tensor):
        buffer[: x.shape[0]].scatter_(2, _places(at, x), x)
    else:
        buffer[: x.shape[0], :, at:end] = x
    return buffer


def _select(buffer: Tensor, rows: Tensor, held: int, watched: bool) -> Tensor:
    """The buffer with other rows. Only rows that move are copied, unless somebody else may hold the buffer."""
    seen = buffer[:, :, :held]
    if torch.is_grad_enabled():
        return seen.index_select(0, rows)
    room = _blocks(max(held, 1))
    waste = 4 * rows.shape[0] * room < buffer.shape[0] * buffer.shape[2]  # one long row, or many rows, have left
    if watched or _sealed(buffer) or waste or buffer.requires_grad or rows.shape[0] > buffer.shape[0]:
        other = buffer.new_zeros(rows.shape[0], buffer.shape[1], room if waste else buffer.shape[2], buffer.shape[3])
        other[:, :, :held] = seen.index_select(0, rows)
        return other
    moved = (rows != torch.arange(rows.shape[0], device=rows.device)).nonzero().squeeze(1)
    if moved.numel():
        seen.index_copy_(0, moved, seen.index_select(0, rows[moved]))
        buffer[moved, :, held:] = 0.0  # what rows before left there may be NaN, which times 0 is NaN
    return buffer


def _join(buffer: Tensor, rows: int, x: Tensor, watched: bool) -> Tensor:
    """The buffer with x (B,G,S,D) behind its first `rows` rows; there is room for some more afterwards."""
    total, room = rows + x.shape[0], max(buffer.shape[2], x.shape[2])
    if watched or _sealed(buffer) or torch.is_grad_enabled() or total > buffer.shape[0] or room > buffer.shape[2]:
        larger = buffer.new_zeros(max(total, rows * 3 // 2), buffer.shape[1], room, buffer.shape[3])
        larger[:rows, :, : buffer.shape[2]] = buffer[:rows]
        buffer = larger
    buffer[rows:total, :, : x.shape[2]] = x
    buffer[rows:total, :, x.shape[2] :] = 0.0  # what rows before left there may be NaN, which times 0 is NaN
    return buffer


def _slide(buffer: Tensor, gone: Tensor, keep: int) -> Tensor:
    """A new buffer with `keep` positions of each row, those after the first `gone` (B,)."""
    places = (gone.view(-1, 1) + torch.arange(keep, device=gone.device)).clamp_(max=buffer.shape[2] - 1)
    index = places[:, None, :, None].expand(-1, buffer.shape[1], -1, buffer.shape[3])
    smaller = buffer.new_zeros(*buffer.shape[:2], _blocks(keep + FORGET), buffer.shape[3])
    smaller[: gone.shape[0], :, :keep] = buffer[: gone.shape[0]].gather(2, index)
    return smaller


def _sealed(buffer: Tensor) -> bool:
    """Whether it was made in inference mode, outside of which torch refuses to write to it."""
    return buffer.is_inference() and not torch.is_inference_mode_enabled()


def _blocks(positions: int) -> int:
    """Room for so many positions, in whole blocks."""
    return -(-positions // BLOCK) * BLOCK


def _state_or_zeros(cache: Cache, other: Cache) -> Tensor:
    """The state of a cache; zeros like those of the other where it has folded nothing yet."""
    if cache.state is not None:
        return cache.state
    assert other.state is not None
    return other.state.new_zeros(cache.rows, *other.state.shape[1:])


def _places(at: Tensor, x: Tensor) -> Tensor:
    """Where x (B,G,T,D) goes: T positions of each row from `at` (B,) on."""
    places = at.view(-1, 1) + torch.arange(x.shape[2], device=x.device)
    return places[:, None, :, None].expand_as(x)


def _per_row(value: int | Tensor, rows: int, like: Tensor) -> Tensor:
    """One number a row, (B,)."""
    if not isinstance(value, Tensor):
        return torch.full((rows,), value, device=like.device)
    if value.numel() not in (1, rows):
        raise SaccadeError(f"a cache of {rows} rows takes one length for all or one for each; got {value.numel()}")
    return value.to(like.device).flatten().expand(rows)
