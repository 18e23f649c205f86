"""The keys and values that one layer has already seen. The caller makes and owns it; modules hold weights only."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.error import SaccadeError

BLOCK = 256  # positions by which the buffers grow


class Cache:
    """Keys and values of one attention layer, (B,G,S,D) and (B,G,S,E), in buffers that grow by blocks.

    What `append` has handed out stays as it was: positions are only added, and a rewind or a reordering takes new
    buffers when somebody watches.
    """

    def __init__(self) -> None:
        self.length = 0
        self.watched = False
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    @property
    def keys(self) -> Tensor | None:
        """(B,G,length,D)."""
        return None if self._keys is None else self._keys[:, :, : self.length]

    @property
    def values(self) -> Tensor | None:
        """(B,G,length,E)."""
        return None if self._values is None else self._values[:, :, : self.length]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds k (B,G,T,D) and v (B,G,T,E) behind what is there; gives all keys and values."""
        self._keys = _add(self._keys, k, self.length)
        self._values = _add(self._values, v, self.length)
        self.length += k.shape[2]
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def reorder(self, rows: Tensor) -> None:
        """Example b goes on from what example rows[b] has seen (beams)."""
        if self._keys is not None and self._values is not None:
            self._keys = _take(self._keys, rows, self.length, self.watched)
            self._values = _take(self._values, rows, self.length, self.watched)

    def rewind(self, length: int) -> None:
        """Forgets all but the first `length` positions."""
        if not 0 <= length <= self.length:
            raise SaccadeError(f"a cache of {self.length} positions cannot be rewound to {length}")
        self.length = length
        if self.watched and self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys.clone(), self._values.clone()


def _add(buffer: Tensor | None, x: Tensor, length: int) -> Tensor:
    """The buffer with x at `length`: in place where there is room and no gradient flows, else a larger one."""
    if buffer is not None and (buffer.shape[:2] != x.shape[:2] or buffer.shape[3] != x.shape[3]):
        raise SaccadeError(
            f"the cache holds (batch, heads, width) = {(*buffer.shape[:2], buffer.shape[3])}; "
            f"got {(*x.shape[:2], x.shape[3])}: make a new cache"
        )
    if torch.is_grad_enabled() and (x.requires_grad or (buffer is not None and buffer.requires_grad)):
        return x if buffer is None else torch.cat((buffer[:, :, :length], x), 2)
    end = length + x.shape[2]
    borrowed = buffer is not None and (  # a buffer that gradients or inference mode hold must stay as it is
        buffer.requires_grad or (buffer.is_inference() and not torch.is_inference_mode_enabled())
    )
    if buffer is None or borrowed or end > buffer.shape[2]:
        room = max(-(-end // BLOCK) * BLOCK, 0 if buffer is None else buffer.shape[2] * 3 // 2)
        larger = x.new_zeros(*x.shape[:2], room, x.shape[3])
        if buffer is not None:
            larger[:, :, :length] = buffer[:, :, :length]
        buffer = larger
    buffer[:, :, length:end] = x
    return buffer


def _take(buffer: Tensor, rows: Tensor, length: int, watched: bool) -> Tensor:
    """The buffer with other rows. Only what is held is copied, into the same buffer where nobody else may need it."""
    held = buffer[:, :, :length].index_select(0, rows)
    if torch.is_grad_enabled():
        return held
    outside = buffer.is_inference() and not torch.is_inference_mode_enabled()
    if watched or outside or buffer.requires_grad or rows.shape[0] != buffer.shape[0]:
        buffer = held.new_empty(rows.shape[0], *buffer.shape[1:])
    buffer[:, :, :length] = held
    return buffer
