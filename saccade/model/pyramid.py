"""`pyramid(3)`: a spectrogram through LSTMs that read it both ways, each over half as much time as the one below (Chan
et al. 2016, Listen, Attend and Spell).

    h_t = LSTM both ways (h_t-1, h_t+1, [x_2t; x_2t+1])

Chan et al. have one more LSTM below, over the frames themselves; here the lowest reads pairs of frames already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade.attend.mask import padding
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout
from saccade.model.frames import checked_frames, fewer, frames, side_by_side
from saccade.model.padded import PaddedRows
from saccade.model.recurrent import CELLS, Recurrent


class pyramid(nn.Module):
    """frames (B,S,bands) -> (B,S / 2^layers,C)."""

    padded = True  # it takes the padding of what it reads
    moves: ClassVar[Mapping[str, str]] = frames.moves
    breaks: ClassVar[Mapping[str, str]] = dict.fromkeys(("permutation", "causality"), "its LSTMs read both ways")

    def __init__(self, layers: int = 2, bands: int = 64, kind: str = "lstm", *, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(layers, int) or not 1 <= layers <= 8:
            raise SaccadeError(f"pyramid: it has 1 to 8 layers; got {layers}")
        if kind not in CELLS:
            raise SaccadeError(f"pyramid: its layers are {', '.join(CELLS)}; got {kind!r}")
        self.bands, self.dropout = bands, config.dropout
        widths = [2 * bands, *[2 * config.width] * (layers - 1)]
        self.layers = nn.ModuleList(Recurrent(kind, config.width, both=True, inputs=each) for each in widths)

    def forward(self, values: Mapping[str, Tensor], mask: padding | None = None) -> Tensor:
        x = checked_frames(values, self.bands)
        rows = PaddedRows(x, mask, "pyramid")
        x, lengths = rows.align(x.to(next(self.parameters()).dtype)), rows.lengths
        for number, layer in enumerate(self.layers):
            x = dropout(x, self.dropout, self.training) if number else x
            x, lengths = side_by_side(x, lengths, 2)
            held = None if lengths is None else padding(lengths)
            x = layer(x, mask=held)
            x = PaddedRows(x, held, "pyramid").align(x)  # behind its end a row is 0, as if it were alone
        return (
            x if lengths is None or mask is None else PaddedRows(x, padding(lengths, mask.side), "pyramid").restore(x)
        )

    @property
    def stride(self) -> int:
        """Frames that become one vector."""
        return 1 << len(self.layers)

    def counted(self, lengths: Tensor) -> Tensor:
        """Vectors of so many frames."""
        return fewer(lengths, self.stride)

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Noise that becomes `length` vectors."""
        return {"frames": torch.randn(rows, length * self.stride, self.bands, generator=generator, device=device)}
