"""`frames(64, steps=(2, 2))`: a spectrogram as vectors, a frame or several to each.

Frames are many, some hundred a second, and neighbours are alike; so a few are put side by side (Sak et al. 2015), or
convolutions over the time go on by two (Whisper, Radford et al. 2022; Gulati et al. 2020). What lies behind the end of
a sound is 0 before every layer, so that it is the same beside longer ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.mask import padding
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.input import value_of
from saccade.model.padded import PaddedRows


class frames(nn.Module):
    """frames (B,S,bands) -> (B,T,C): W [x_t; ...; x_t+stack-1] + b or, with steps, gelu(W * x + b) for each of them, by
    kernels over the time that go on by so many.
    """

    padded = True  # it takes the padding of what it reads
    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the frames in another order",
        "shift": "the sound later",
        "causality": "another sound behind the first half",
    }

    def __init__(
        self, bands: int = 64, stack: int = 1, steps: tuple[int, ...] = (), kernel: int = 3, *, config: ModelConfig
    ) -> None:
        super().__init__()
        if not all(isinstance(each, int) and each >= 1 for each in (bands, stack, *steps)):
            raise SaccadeError(
                f"frames: bands, stack and steps are whole numbers from 1; got {bands}, {stack}, {steps}"
            )
        if kernel % 2 == 0 or kernel < 1:
            raise SaccadeError(f"frames: the width of a kernel is odd; got {kernel}")
        self.bands, self.stack, self.steps, self.kernel, wide = bands, stack, steps, kernel, config.width
        self.out = None if steps else nn.Linear(bands * stack, wide)
        widths = [bands * stack, *[wide] * len(steps)]
        self.filters = nn.ModuleList(
            nn.Conv1d(inputs, wide, kernel, stride=step, padding=kernel // 2)
            for inputs, step in zip(widths, steps, strict=False)
        )

    def forward(self, values: Mapping[str, Tensor], mask: padding | None = None) -> Tensor:
        x = checked_frames(values, self.bands)
        rows = PaddedRows(x, mask, "frames")
        x, lengths = side_by_side(rows.align(x.to(next(self.parameters()).dtype)), rows.lengths, self.stack)
        x = x if self.out is None else self.out(x)
        for step, each in zip(self.steps, self.filters, strict=True):
            x = F.gelu(each(x.mT)).mT
            lengths = None if lengths is None else fewer(lengths, step)
            x = x if lengths is None else PaddedRows(x, padding(lengths), "frames").align(x)
        return (
            x
            if lengths is None
            else PaddedRows(x, padding(lengths, mask.side if mask else "right"), "frames").restore(x)
        )

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": "its convolutions see neighbouring frames"} if self.steps else {}
        later = self._seen >= math.prod(self.steps)
        return {**found, "causality": "its convolutions see frames that come"} if later else found

    @property
    def reach(self) -> int:
        """Vectors on either side that each sees, at most."""
        return -(-self._seen // math.prod(self.steps))

    @property
    def _seen(self) -> int:
        """Stacks of frames on either side of its first that a vector sees."""
        return sum(math.prod(self.steps[:n]) * (self.kernel // 2) for n in range(len(self.steps)))

    @property
    def stride(self) -> int:
        """Frames that become one vector."""
        return self.stack * math.prod(self.steps)

    def counted(self, lengths: Tensor) -> Tensor:
        """Vectors of so many frames; the last one may have fewer frames than the others."""
        for each in (self.stack, *self.steps):
            lengths = fewer(lengths, each)
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Noise that becomes `length` vectors."""
        return {"frames": torch.randn(rows, length * self.stride, self.bands, generator=generator, device=device)}


def checked_frames(values: Mapping[str, Tensor], bands: int) -> Tensor:
    """The frames among the values; refuses another number of bands."""
    x = value_of(values, "frames")
    if x.dim() != 3 or x.shape[2] != bands:
        raise SaccadeError(f"frames are (batch, time, {bands}); got {tuple(x.shape)}")
    return x


def side_by_side(x: Tensor, lengths: Tensor | None, count: int) -> tuple[Tensor, Tensor | None]:
    """x (B,S,C) -> (B,S/count,count C), rounded up: neighbours as one vector, zeros behind the last; and how many."""
    if count == 1:
        return x, lengths
    B, S, C = x.shape
    x = F.pad(x, (0, 0, 0, -S % count)).reshape(B, -1, count * C)
    return x, None if lengths is None else fewer(lengths, count)


def fewer(lengths: Tensor, count: int) -> Tensor:
    """Lengths where so many neighbours become one."""
    return (lengths + count - 1) // count
