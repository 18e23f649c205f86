"""`Attention`: the layer. Projections, heads, position and cache around one attention (Vaswani et al. 2017).

Grouped key heads: Shazeer 2019 (one), Ainslie et al. 2023 (some).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn

from saccade.attend import linear
from saccade.attend.algebra import given
from saccade.attend.cache import Cache, Fold
from saccade.attend.feature import feature
from saccade.attend.grid import Grid, place
from saccade.attend.kernel import Kernel, as_kernel, run
from saccade.attend.mask import Mask, as_mask, causal, everyone, padding
from saccade.attend.meaning import Meaning, agree, called
from saccade.attend.normaliser import Normaliser, as_normaliser
from saccade.attend.numbers import bound, share
from saccade.attend.position import Position, as_position
from saccade.attend.score import Score, additive, as_score, offered, turns
from saccade.attend.summary import allows, as_summary, linformer
from saccade.error import SaccadeError


class Version:
    """A tensor and how often it was written to so far: equal while it is the same tensor, and nobody wrote to it.

    What goes through `.data`, or is written in inference mode, is not counted by torch.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.writes = tensor, 0
        with suppress(RuntimeError):  # tensors of inference mode have no count
            self.writes = tensor._version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.tensor is other.tensor and self.writes == other.writes


class Seen(NamedTuple):
    """What one call looked at, and how: enough to compute its weights again, exactly."""

    q: Tensor  # (B,H,T,D), turned already
    k: Tensor  # (B,G,S,D)
    meaning: Meaning
    grid: Grid
    versions: tuple[int | Version, ...]  # of what score, position and mask hold
    folded: bool = False  # whether earlier keys lie in a state, where nobody can tell them apart any more

    def apart(self, each: int) -> Seen:
        """The same as if every row had looked alone, where `each` of them had looked at their context as one."""
        q = self.q.unflatten(2, (each, -1)).transpose(1, 2).flatten(0, 1)  # (P,H,each*T,D) -> (P*each,H,T,D)
        mask = self.meaning.mask
        if isinstance(mask, padding):
            lengths = bound("padding", "lengths", mask.lengths).expand(self.q.shape[0])
            mask = padding(lengths.repeat_interleave(each), mask.side)
        meaning, grid = self.meaning._replace(mask=mask), self.grid._replace(T=q.shape[2])
        k = self.k.repeat_interleave(each, 0)
        return self._replace(q=q, k=k, meaning=meaning, grid=grid, versions=versions(meaning))

    @staticmethod
    def in_a_row(calls: list[Seen]) -> Seen:
        """Several calls over the same keys as one, whose rows they are."""
        q = torch.cat([call.q for call in calls], 2)
        return calls[-1]._replace(q=q, grid=calls[-1].grid._replace(T=q.shape[2]))


class Log:
    """The calls of one layer, kept by somebody who watches."""

    def __init__(self) -> None:
        self.calls: list[Seen] = []


class Attention(nn.Module):
    """Multi-head self-attention, or cross-attention with a context.

    x (B,T,width), context (B,S,context_width) -> (B,T,width). query, key, value and out are separate projections; one
    stacked product is not faster here (LOG.md), and each keeps its name. `mask` of the layer and of the call must both
    allow a look. `head_norm` makes a norm of a head's width for the queries and one for the keys. With a `summary`
    ("linformer(256, 4096)") queries look at sums of keys and values, after norms and positions; without those, x is
    summed before it is projected, which is the same with less work. Without `project`, states meet as they are, as
    they did before transformers (Bahdanau et al. 2015, Luong et al. 2015): c_t = sum_j softmax(score(s_t, h_j)) h_j.
    """

    query: Any  # as key, value and out: a product, quantised perhaps; without `project` what leaves x as it is
    key: Any
    value: Any
    out: Any
    watchers: tuple[Log, ...] = ()  # a door for `watch`, which takes back what it puts here

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        context_width: int | None = None,
        head_width: int | None = None,
        score: Score | str = "scaled_dot",
        mask: Mask | Tensor | str | None = None,
        normaliser: Normaliser | str = "softmax",
        position: Position | str | None = None,
        summary: nn.Module | str | None = None,
        kernel: Kernel | ModuleType | str = "auto",
        bias: bool | str = True,
        project: bool = True,
        head_norm: Callable[[int], nn.Module] | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not isinstance(bias, bool) and bias != "qkv":
            raise SaccadeError(f"Attention: bias is True, False or 'qkv' (all but the last projection); got {bias!r}")
        kv_heads = heads if kv_heads is None else kv_heads
        _check(width, heads, kv_heads, head_width, dropout)
        self.width, self.heads, self.kv_heads, self.dropout = width, heads, kv_heads, dropout
        self.context_width = width if context_width is None else context_width
        self.head_width = width // heads if head_width is None else head_width
        self.project = project
        if not project and {heads * self.head_width, kv_heads * self.head_width, self.context_width} != {width}:
            raise SaccadeError(
                "Attention: without projections all heads share the width as it is: leave out kv_heads, head_width and "
                "context_width"
            )
        made = nn.Linear if project else nn.Identity  # which takes, and ignores, the same
        self.query = made(width, heads * self.head_width, bias=bool(bias))
        self.key = made(self.context_width, kv_heads * self.head_width, bias=bool(bias))
        self.value = made(self.context_width, kv_heads * self.head_width, bias=bool(bias))
        self.out = made(heads * self.head_width, width, bias=bias is True)
        self.query_norm = None if head_norm is None else head_norm(self.head_width)
        self.key_norm = None if head_norm is None else head_norm(self.head_width)
        self.score = as_score(score, width=self.head_width, heads=heads)
        self.position = as_position(position, head_width=self.head_width, heads=heads, input_width=width)
        if self.position is not None and "input" in self.position.doors:
            name = type(self.position).__name__
            raise SaccadeError(f"the position {name!r} belongs to the embedding, not to an attention layer")
        self.mask = None if mask is None else as_mask(mask)
        self.normaliser = as_normaliser(normaliser)
        agree(self.score, self.normaliser)
        self.summary = as_summary(summary, heads=kv_heads)
        if self.summary is not None:
            allows(self.mask, self.position)
        as_kernel(kernel)  # a wrong name is told now; the name itself can be copied, a module cannot
        self.kernel = kernel
        for projection in (self.query, self.key, self.value, self.out) if project else ():
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        values: Tensor | None = None,
        mask: Mask | Tensor | str | None = None,
        cache: Cache | None = None,
        start: int | None = None,
        segments: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """With a cache, self-attention adds x and looks at all of it; cross-attention projects the context once.

        `values`: what is found in the context, where it is not what is looked at (B,S,context_width).
        `start`: where x stands among the positions of a context that holds its own past (Transformer-XL); else 0.
        `segments`: of x (B,T) and of what it looks at (B,S), for the positions that ask.
        """
        self._fits(x, context, values, start)
        q = self._split(self.query(x), self.heads)  # (B,H,T,D)
        q = q if self.query_norm is None else self.query_norm(q)
        cross, cached = context is not None, 0 if cache is None else cache.length
        if self.summary is not None and cache is not None:
            raise SaccadeError("a summary mixes all positions, so that a step with a cache would change it: pass none")
        if self.summary is not None and values is not None:
            raise SaccadeError("a summary sums one context into slots: pass no values beside it")
        begin = 0 if cross or cache is None else cache.start
        at = begin if start is None else start
        if self.position is not None and "heads" in self.position.doors:
            q = self.position.on_heads(q, _steps(x, at))
        held, inside = None if cross else cache, x if context is None else context
        if self.summary is None:
            k, v = self._keys_and_values(inside, inside if values is None else values, begin, cache, cross)
            allowed = self._allowed(mask, q, k.shape[2], held)
        else:
            k, v = self._summed(self.summary, inside, self._allowed(mask, q, inside.shape[1], None))
            at, allowed = 0, None  # slots stand nowhere, and everyone may look at all of them
        if cross and cached and start is None and (self.position is not None or _placed(allowed)):
            raise SaccadeError("a step of cross-attention with a cache needs start= where mask or position ask for it")
        grid = place(q, k, at if held is None else at - held.forgotten)
        grid = grid if segments is None else grid._replace(segments=segments)
        score = offered(self.score) if cross and cache is not None and self._offers(self.score) else self.score
        meaning = Meaning(score, allowed, self.normaliser, self.position)
        if self.watchers:
            self._tell(q, k, meaning, grid, held is not None and held.state is not None)
            if cache is not None:
                cache.watched = True
        before = None if held is None else held.state
        output = run(as_kernel(self.kernel), q, k, v, meaning, grid, self.dropout if self.training else 0.0, before)
        del q, k, v  # their memory, still warm, serves the next product
        return self.out(output.transpose(1, 2).flatten(2))  # (B,H,T,D) -> (B,T,C)

    @property
    def window(self) -> int | None:
        """How many positions back, its own among them, a query looks at most; None: as many as there are."""
        if self.mask is None or not self.mask.relative():
            return None
        return self.mask.back()

    @property
    def fixed(self) -> str | None:
        """What of it means absolute places, and so something else where queries and keys move together; None: nothing.

        Padding on the left moves them, and a memory.
        """
        absolute = [] if self.mask is None else [term for term in self.mask.terms() if not term.relative()]
        if absolute:
            return f"the mask {str(absolute[0])!r}"
        if self.position is not None and "heads" in self.position.doors and not turns(self.score):
            return f"the score {called(self.score)!r} of turned vectors"
        return None

    @property
    def fold(self) -> Fold | None:
        """How a cache folds what lies back into one state, where the kernel `linear` can go on from that."""
        meaning = Meaning(self.score, self.mask, self.normaliser, self.position)
        if self.kernel not in ("auto", "linear") or self.mask is not causal or linear.refuses(meaning) is not None:
            return None
        return partial(linear.fold, meaning)

    def stacked(self) -> Tensor:
        """[W_q; W_k; W_v], the one matrix whose product with x stacks queries, keys and values of all heads."""
        if not self.project:
            raise SaccadeError("this layer was made without projections: there is nothing to stack")
        if not self.query.weight.is_floating_point():
            raise SaccadeError("the weights of this layer are quantised: stack those of the model they were made from")
        return torch.cat((self.query.weight, self.key.weight, self.value.weight))

    def extra_repr(self) -> str:
        return f"width={self.width}, heads={self.heads}, kv_heads={self.kv_heads}, mask={self.mask}"

    def _keys_and_values(
        self, x: Tensor, values: Tensor, start: int | Tensor, cache: Cache | None, cross: bool
    ) -> tuple[Tensor, Tensor]:
        """(B,G,S,D) each, the cache's included, of what is looked at and what is found."""
        if cross and cache is not None and cache.keys is not None and cache.values is not None:
            held = cache.rows, cache.length
            if held != x.shape[:2]:
                raise SaccadeError(
                    f"this cache holds a context of (batch, length) = {held}, the call brings one of "
                    f"{tuple(x.shape[:2])}: make a new cache for a new context"
                )
            return cache.keys, cache.values
        k, v = self._split(self.key(x), self.kv_heads), self._split(self.value(values), self.kv_heads)
        if cache is not None and not self.project:  # a cache keeps what is its own
            k, v = k.clone(), v.clone()
        k = k if self.key_norm is None else self.key_norm(k)
        if self.position is not None and "heads" in self.position.doors:
            k = self.position.on_heads(k, _steps(x, start))
        if cross and cache is not None and self._offers(self.score):
            k = self.score.offer(k)
        return (k, v) if cache is None else cache.append(k, v)

    def _offers(self, score: Score) -> TypeGuard[additive]:
        """Whether a cached context keeps what its keys offer instead of the keys."""
        placed = self.position is not None and "scores" in self.position.doors  # who asks for the keys themselves
        return isinstance(score, additive) and self.heads == self.kv_heads and not placed

    def _summed(self, summary: nn.Module, x: Tensor, mask: Mask | None) -> tuple[Tensor, Tensor]:
        """Keys and values of the slots, (B,G,slots,D). Sums and projections commute where nothing lies between them."""
        bare = self.key_norm is None and self.position is None and type(self.key) is type(self.value) is nn.Linear
        if bare and isinstance(summary, linformer) and summary.sooner(x.shape[1], x.shape[2], self.key.out_features):
            k, v = summary.project(x, self.key, self.value, mask)
            return self._split(k, self.kv_heads), self._split(v, self.kv_heads)
        k, v = summary(*self._keys_and_values(x, x, 0, None, False), mask)
        return k, v

    def _tell(self, q: Tensor, k: Tensor, meaning: Meaning, grid: Grid, folded: bool) -> None:
        """To who watches; without projections q and k are the caller's own, who may write to them."""
        q, k = (each.detach() if self.project else each.detach().clone() for each in (q, k))
        for watcher in self.watchers:
            watcher.calls.append(Seen(q, k, meaning, grid, versions(meaning), folded))

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, self.head_width)).transpose(1, 2)  # (B,T,H*D) -> (B,H,T,D)

    def _allowed(self, mask: Mask | Tensor | str | None, q: Tensor, keys: int, cache: Cache | None) -> Mask | None:
        """The layer's mask and the call's; and where rows of a cache end before others, not what lies behind."""
        if mask is not None and cache is not None:
            _keeps(cache, as_mask(mask))
        if mask is None:
            both = self.mask
        elif self.mask is None:
            both = as_mask(mask)
        else:
            both = self.mask & as_mask(mask)
        if cache is not None and cache.lengths is not None and (both is None or causal not in both.terms()):
            ends = padding(cache.lengths - cache.forgotten)
            both = ends if both is None else both & ends
        if both is not None:
            B, H, T, _ = q.shape
            both.fits(B, H, T, keys, q.device)
        return both

    def _fits(self, x: Tensor, context: Tensor | None, values: Tensor | None, start: int | None) -> None:
        inside = (("context", context, self.context_width), ("values", values, self.context_width))
        for name, each, width in (("x", x, self.width), *inside):
            if each is not None and (each.dim() != 3 or each.shape[-1] != width):
                raise SaccadeError(f"{name} must be (batch, length, {width}); got {tuple(each.shape)}")
        if context is None:
            if self.context_width != self.width:
                raise SaccadeError(f"this layer looks at a context of width {self.context_width}: pass one")
            if start is not None:
                raise SaccadeError("start= says where x stands in a context, and self-attention has its own: pass none")
        elif context.shape[0] != x.shape[0]:
            raise SaccadeError(f"x has a batch of {x.shape[0]} and context of {context.shape[0]}")
        if values is not None and (context is None or values.shape[:2] != context.shape[:2]):
            raise SaccadeError("values are found in a context, one at each of its positions: pass both, of one length")


def _keeps(cache: Cache, mask: Mask) -> None:
    """Refuses a call's mask that would ask a cache for what it may have forgotten, from the first call on."""
    if cache.fold is not None and any(term is not causal and term is not everyone for term in mask.terms()):
        raise SaccadeError(
            f"this cache folds what lies back into sums, of which {mask!r} could hide nothing: make Cache()"
        )
    if cache.window is not None and not mask.relative():
        raise SaccadeError(
            f"this cache forgets what lies back, and {mask!r} means absolute places: make Cache() without a window"
        )


def _placed(mask: Mask | None) -> bool:
    """Whether a mask asks where queries stand; a tensor's rows are those of q, wherever they are."""
    return mask is not None and any(
        term is not everyone and not isinstance(term, padding | given) for term in mask.terms()
    )


def versions(meaning: Meaning) -> tuple[int | Version, ...]:
    """What changes whenever a parameter of the score or the position, or what the mask holds, is written to or
    replaced, or features are redrawn.
    """
    score = meaning.score.score if isinstance(meaning.score, offered) else meaning.score
    parts = [part for part in (score, meaning.position) if isinstance(part, nn.Module)]
    draws = (part.draw for part in parts if isinstance(part, feature))
    parameters = (parameter for part in parts for parameter in part.parameters())
    return (*draws, *map(Version, parameters), *map(Version, () if meaning.mask is None else meaning.mask.tensors()))


def _steps(x: Tensor, start: int | Tensor) -> Tensor:
    """The positions of x, (B or 1, T)."""
    if isinstance(start, Tensor):
        return start.view(-1, 1) + torch.arange(x.shape[1], device=x.device)
    return torch.arange(start, start + x.shape[1], device=x.device).unsqueeze(0)


def _check(width: int, heads: int, kv_heads: int, head_width: int | None, dropout: float) -> None:
    for name, value in (
        ("width", width),
        ("heads", heads),
        ("kv_heads", kv_heads),
        ("head_width", 1 if head_width is None else head_width),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SaccadeError(f"Attention: {name} is a whole number from 1; got {value!r}")
    if head_width is None and width % heads:
        raise SaccadeError(f"Attention: {heads} heads do not divide a width of {width}; or pass head_width")
    if heads % kv_heads:
        raise SaccadeError(f"Attention: {kv_heads} key heads do not divide {heads} heads")
    share("Attention: dropout", dropout)
