"""What kind of head a head is: how widely and how far it looks, and badges found from its weights.

entropy   mean over the rows of -sum w ln w: 0 where one token is looked at, ln n where n are looked at alike
distance  mean over the rows of sum w |i - j|, in tokens

Induction heads: Olsson et al. 2022. First tokens as sinks: Xiao et al. 2024. Entropy and distance: Clark et al. 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

ROWS = 128  # of a longer sequence so many rows are measured, evenly spread
MOST = 0.5  # a badge says where at least this share of the looks goes
NEAR = 2  # tokens away that are still local
EVEN = 0.95  # of the greatest entropy there could be: uniform
STRAIGHT = 0.9  # correlation of rows with what they look at: diagonal across two sequences
REPEATS = 3  # rows with an earlier occurrence that it takes to see induction


class Statistic(NamedTuple):
    """Of one head. Where rows and columns are different sequences there is no distance."""

    entropy: float  # nats
    distance: float | None
    badges: list[str]


class Scene(NamedTuple):
    """What was looked at: weights (H,R,S) of the rows (R,), how many columns each may see (R,), and, where rows and
    columns are the same sequence, its tokens.
    """

    weights: Tensor
    rows: Tensor
    seen: Tensor
    tokens: Sequence[int] | None


def sampled(T: int, most: int = ROWS) -> Tensor:
    """At most `most` of T rows, evenly spread, the last among them."""
    return torch.arange(T) if most >= T else torch.linspace(0, T - 1, most).round().long()


def statistics(scene: Scene) -> list[Statistic]:
    """One for each head."""
    weights = scene.weights.double()
    total = weights.sum(-1, keepdim=True)
    shares = torch.where(total > 0, weights / total.where(total > 0, 1.0), 0.0)  # of normalisers that do not sum to 1
    live = (total.squeeze(-1) > 0).double()  # (H,R): rows that look at something
    entropy = _mean(torch.special.entr(shares).sum(-1), live)
    columns = torch.arange(weights.shape[-1], dtype=torch.double)
    apart = (scene.rows[:, None] - columns).abs()
    distance = None if scene.tokens is None else _mean((shares * apart).sum(-1), live)
    badges = _badges(scene, shares, live)
    return [
        Statistic(float(entropy[head]), None if distance is None else float(distance[head]), badges[head])
        for head in range(weights.shape[0])
    ]


def _badges(scene: Scene, shares: Tensor, live: Tensor) -> list[list[str]]:
    """The names that fit each head, the most telling first."""
    heads = range(shares.shape[0])
    found = _within(scene, shares, live) if scene.tokens is not None else _between(scene, shares)
    names = [[name for name, fits in found.items() if bool(fits[head])] for head in heads]
    for head in heads:
        if "local" in names[head] and len(names[head]) > 1:
            names[head].remove("local")  # what is looked at is said more exactly already
    widest = scene.seen.clamp(min=1).double().log()
    choice = live * (scene.seen > 1)
    even = _mean(torch.special.entr(shares).sum(-1), choice) >= EVEN * _mean(widest.expand_as(live), choice)
    there = choice.sum(-1) > 0
    return [names[head] or (["uniform"] if bool(even[head] & there[head]) else []) for head in heads]


def _within(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of self-attention."""
    rows, columns = scene.rows[:, None], torch.arange(shares.shape[-1])
    later = live * (scene.rows > 0)  # the first row has no choice

    def goes(where: Tensor) -> Tensor:
        return (later.sum(-1) > 0) & (_mean((shares * where).sum(-1), later) >= MOST)

    return {
        "induction": _induces(scene, shares),
        "previous token": goes(columns == rows - 1),
        "diagonal": goes(columns == rows),
        "first token": goes((columns == 0).expand(len(rows), -1)),
        "local": goes((columns - rows).abs() <= NEAR) & (shares.shape[-1] > 2 * NEAR + 1),
    }


def _between(scene: Scene, shares: Tensor) -> dict[str, Tensor]:
    """Badges of cross-attention: whether what is looked at moves along with the rows, and the first token."""
    columns = torch.arange(shares.shape[-1], dtype=torch.double)
    looked = shares @ columns  # (H,R): where each row looks, on average
    straight = torch.tensor([_correlation(scene.rows.double(), each) >= STRAIGHT for each in looked])
    return {"diagonal": straight, "first token": shares[..., 0].mean(-1) >= MOST}


def _induces(scene: Scene, shares: Tensor) -> Tensor:
    """Heads that look behind an earlier occurrence of the token they stand at."""
    assert scene.tokens is not None
    tokens = torch.tensor(list(scene.tokens))
    here, before = tokens[scene.rows][:, None], torch.cat((torch.tensor([-1]), tokens[:-1]))
    columns = torch.arange(len(tokens))
    behind = (here == before) & (columns <= scene.rows[:, None]) & (columns > 0)  # (R,S)
    some = behind.any(-1)
    if int(some.sum()) < REPEATS:
        return torch.zeros(shares.shape[0], dtype=torch.bool)
    return (shares * behind).sum(-1)[:, some].mean(-1) >= MOST


def _mean(values: Tensor, live: Tensor) -> Tensor:
    """Over the rows that count, (H,R) -> (H,)."""
    return (values * live).sum(-1) / live.sum(-1).clamp(min=1)


def _correlation(x: Tensor, y: Tensor) -> float:
    """Pearson's; 0 where one of the two does not move."""
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x.square().sum() * y.square().sum()))
    return float((x * y).sum()) / size if size > 1e-9 else 0.0
