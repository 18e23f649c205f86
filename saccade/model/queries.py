"""`queries(n)` and `anchors(n, axes)`: what a decoder of a set is shown, learned vectors that ask for an element each.

queries  vectors alone; where their element lies, a head tells (Carion et al. 2020, DETR)
anchors  vectors with a place, which each layer moves (Liu et al. 2022, DAB-DETR; see `saccade.model.anchors`). Behind
         them may stand, in training alone, denoising queries: the wanted elements at a wrong place and with a wrong
         label, in groups that do not see each other (Li et al. 2022, DN-DETR)

A place is the centre and the size along each axis, as shares of the example: 0 is where it begins, 1 where it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.config import ModelConfig
from saccade.error import SaccadeError

WAVES = 6  # sines of each number of a place, each of twice the frequency of the one before
SIZE = 0.25  # of an anchor before anything was learned, as a share of the example
EDGE = 1e-4  # what a share keeps from 0 and 1, where its logit is not finite


class queries(nn.Module):
    """n learned vectors (B,n,C), the same for every example."""

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 60, *, config: ModelConfig) -> None:
        super().__init__()
        check_count("queries", n)
        self.vectors = normal(n, config.width, std=1.0)

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        rows = next(iter(values.values())).shape[0]
        return self.vectors.expand(rows, -1, -1)

    def nothing(self, rows: int) -> dict[str, Tensor]:
        """What a decoder is shown at use: nothing beside the queries."""
        return self.sample(rows, 0, self.vectors.device)

    def counted(self, lengths: Tensor) -> Tensor:
        """As many as there are queries, whatever is read."""
        return torch.full_like(lengths, len(self.vectors))

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Nothing, for so many rows."""
        return {"labels": torch.zeros(rows, 0, dtype=torch.long, device=device)}


class anchors(nn.Module):
    """n learned vectors + W sines(place), (B,n,C), with learned places; behind them those of `noised` elements (B,M,2k)
    with `labels` (B,M). axes: k; labels: how many kinds of elements a denoising query may be told, 0: there are none.
    """

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 60, axes: int = 2, labels: int = 0, *, config: ModelConfig) -> None:
        super().__init__()
        check_count("anchors", n)
        if not isinstance(axes, int) or not 1 <= axes <= 3:
            raise SaccadeError(f"anchors: an element lies along 1, 2 or 3 axes; got {axes!r}")
        self.axes = axes
        self.vectors = normal(n, config.width, std=1.0)
        centres, sizes = torch.empty(n, axes).uniform_(0.05, 0.95), torch.full((n, axes), SIZE)
        self.places = nn.Parameter(torch.cat((centres, sizes), 1).logit())
        self.position = nn.Linear(2 * axes * 2 * WAVES, config.width)
        self.labels = nn.Embedding(labels, config.width) if labels else None

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        places = self.anchors(values)
        x = self.vectors.expand(len(places), -1, -1)
        if places.shape[1] > len(self.vectors):
            assert self.labels is not None
            x = torch.cat((x, self.labels(values["labels"])), 1)
        return x + self.position(sines(places.sigmoid()))

    def anchors(self, values: Mapping[str, Tensor]) -> Tensor:
        """The logits of the places, (B,n+M,2k)."""
        noised = values.get("noised")
        rows = next(iter(values.values())).shape[0]
        own = self.places.expand(rows, -1, -1)
        if noised is None or not noised.shape[1]:
            return own
        return torch.cat((own, noised.clamp(EDGE, 1 - EDGE).logit()), 1)

    def groups(self, values: Mapping[str, Tensor]) -> Tensor | None:
        """Which queries see each other, (B,n+M): those of one number. None: all of them."""
        own = values.get("groups")
        if own is None or not own.shape[1]:
            return None
        return torch.cat((own.new_zeros(len(own), len(self.vectors)), own), 1)

    def nothing(self, rows: int) -> dict[str, Tensor]:
        """What a decoder is shown at use: nothing beside the anchors."""
        return self.sample(rows, 0, self.vectors.device)

    def counted(self, lengths: Tensor) -> Tensor:
        """As many as there are anchors, whatever is read."""
        return torch.full_like(lengths, len(self.vectors))

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Nothing, for so many rows."""
        return {"labels": torch.zeros(rows, 0, dtype=torch.long, device=device)}


def axes_of(config: ModelConfig) -> int:
    """Along how many axes the queries of a model's decoder have places; 0: they have none."""
    if not config.queried:
        return 0
    found: int = spec.arguments(str(config.stack(decoder=True).embed), QUERIES, "embed")[1].get("axes", 0)
    return found


def sines(shares: Tensor) -> Tensor:
    """sin and cos of pi 2^n times each number, (...,m) -> (...,2 m WAVES)."""
    angles = shares.unsqueeze(-1) * (math.pi * 2.0 ** torch.arange(WAVES, device=shares.device, dtype=shares.dtype))
    return torch.cat((angles.sin(), angles.cos()), -1).flatten(-2)


def check_count(name: str, n: int) -> None:
    """Refuses what is no number of queries."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise SaccadeError(f"{name}: their number is whole, from 1; got {n!r}")


QUERIES: dict[str, Callable[..., nn.Module]] = {"queries": queries, "anchors": anchors}
