"""`States`: the hidden states of one pass, by name. Heads say which of them they read."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.attend import mask
from saccade.error import SaccadeError, nearest

READ = ("last", "encoder", "decoder", "layers", "pairs")  # the names that a head may read


class States(NamedTuple):
    """encoder (B,S,C) and decoder (B,T,C), None where the model has none; layers: those of every layer of the last
    stack, normed as the last are, where a head reads them; of an encoder with registers, which are the queries then,
    the last states of these alone. The paddings say which positions hold nothing;
    the grid, how many rows and columns of a picture the encoder's states are of. pairs: the vectors of the pairs of the
    encoder's positions, (B,S,S,P), where the model has some. spots: where the encoder's states lie, (B or 1,S,k), where
    queries with places look at them; spans: what each layer of those tells, (B,N,2k) each, as shares.
    """

    encoder: Tensor | None = None
    decoder: Tensor | None = None
    layers: tuple[Tensor, ...] = ()
    encoder_padding: mask.padding | None = None
    decoder_padding: mask.padding | None = None
    encoder_grid: tuple[int, int] | None = None
    pairs: Tensor | None = None
    spots: Tensor | None = None
    spans: tuple[Tensor, ...] = ()

    @property
    def last(self) -> Tensor:
        """The decoder's; the encoder's where there is no decoder."""
        found = self.encoder if self.decoder is None else self.decoder
        assert found is not None
        return found

    @property
    def padding(self) -> mask.padding | None:
        """The padding of the last states."""
        return self.encoder_padding if self.decoder is None else self.decoder_padding

    def read(self, name: str) -> tuple[Tensor, mask.padding | None]:
        """The states that a head reads, and their padding; of all layers stacked, (L,B,T,C)."""
        if name == "layers":
            return torch.stack(self.layers), self.padding
        if name == "last":
            return self.last, self.padding
        found = {
            "encoder": (self.encoder, self.encoder_padding),
            "decoder": (self.decoder, self.decoder_padding),
            "pairs": (self.pairs, self.encoder_padding),
        }
        if name not in found:
            raise SaccadeError(f"no states are called {name!r}; {nearest(name, READ)}")
        states, hidden = found[name]
        if states is None:
            raise SaccadeError(f"a head reads the states of the {name}, and this model has none")
        return states, hidden
