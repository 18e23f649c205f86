"""What kind of head a head is: how widely and how far it looks, and badges found from its weights.

entropy   mean over the rows of -sum w ln w: 0 where one token is looked at, ln n where n are looked at alike
distance  mean over the rows of sum w |i - j|, in tokens

w are shares of a row. A weight below 0 is a look too, so they are shares of |weight|: how strongly, whichever the sign.

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
    """What was looked at: weights (H,R,S) of the rows (R,), which columns each may see (R,S), and, where rows and
    columns are the same sequence, its tokens.
    """

    weights: Tensor
    rows: Tensor
    may: Tensor
    tokens: Sequence[int] | None


def sampled(T: int, most: int = ROWS) -> Tensor:
    """At most `most` of T rows, evenly spread, the last among them."""
    return torch.arange(T) if most >= T else torch.linspace(0, T - 1, most).round().long()


def statistics(scene: Scene) -> list[Statistic]:
    """One for each head; of weights that are not numbers neither is the entropy."""
    weights = scene.weights.double().abs()
    total = weights.sum(-1, keepdim=True)
    shares = torch.where(total > 0, weights / total.where(total > 0, 1.0), 0.0)  # of normalisers that do not sum to 1
    live = (total.squeeze(-1) > 0).double()  # (H,R): rows that look at something
    entropy = _mean(torch.special.entr(shares).sum(-1), live)
    entropy = torch.where(weights.isnan().flatten(1).any(1), torch.nan, entropy)
    columns = torch.arange(weights.shape[-1], dtype=torch.double)
    apart = (scene.rows[:, None] - columns).abs()
    distance = None if scene.tokens is None else _mean((shares * apart).sum(-1), live)
    badges = _badges(scene, shares, live)
    return [
        Statistic(float(entropy[head]), None if distance is None else float(distance[head]), badges[head])
        for head in range(weights.shape[0])
    ]


def _badges(scene: Scene, shares: Tensor, live: Tensor) -> list[list[str]]:
    """The names that fit each head, the most telling first; a head that looks at all alike has no other."""
    found = _within(scene, shares, live) if scene.tokens is not None else _between(scene, shares, live)
    names = [[name for name, fits in found.items() if bool(fits[head])] for head in range(shares.shape[0])]
    even = _is_even(scene, shares, live)
    return [["uniform"] if bool(even[head]) else _told(each) for head, each in enumerate(names)]


def _told(names: list[str]) -> list[str]:
    """Without local, where what is looked at is said more exactly."""
    return [name for name in names if name != "local"] or names


def _is_even(scene: Scene, shares: Tensor, live: Tensor) -> Tensor:
    seen = scene.may.sum(-1)
    choice = live * (seen > 1)  # who sees one column has none
    widest = seen.clamp(min=1).double().log().expand_as(live)
    close = _mean(torch.special.entr(shares).sum(-1), choice) >= EVEN * _mean(widest, choice)
    return close & (choice.sum(-1) > 0)


def _goes(where: Tensor, scene: Scene, shares: Tensor, live: Tensor) -> Tensor:
    """Heads whose looks go to these places (R,S) far more than if they looked at all they may alike, (H,)."""
    places = (where & scene.may).double()
    even = places.sum(-1) / scene.may.sum(-1).clamp(min=1)
    choice = live * (even < 1)  # rows that could look elsewhere
    more = ((shares * places).sum(-1) - even) / (1 - even).clamp(min=1e-9)
    return (choice.sum(-1) > 0) & (_mean(more, choice) >= MOST)


def _within(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of self-attention."""
    rows, columns = scene.rows[:, None], torch.arange(shares.shape[-1])
    later = live * (scene.rows > 0)  # the first row has nothing before it
    places = {
        "previous token": columns == rows - 1,
        "diagonal": columns == rows,
        "first token": (columns == 0).expand(len(rows), -1),
        "local": (columns - rows).abs() <= NEAR,
    }
    found = {name: _goes(where, scene, shares, later) for name, where in places.items()}
    return {"induction": _induces(scene, shares, live)} | found


def _between(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of cross-attention: whether what is looked at moves along with the rows, and the first token."""
    first = (torch.arange(shares.shape[-1]) == 0).expand(shares.shape[1:])
    straight = [_is_straight(scene.rows[alive > 0], each[alive > 0]) for each, alive in zip(shares, live, strict=True)]
    return {"diagonal": torch.tensor(straight), "first token": _goes(first, scene, shares, live)}


def _is_straight(rows: Tensor, shares: Tensor) -> bool:
    """Whether the place that rows (R,) look at moves from the beginning to the end as they do."""
    columns = torch.arange(shares.shape[-1], dtype=torch.double)
    looked = shares @ columns
    if len(rows) < 3 or float(looked.max() - looked.min()) < 0.5 * (len(columns) - 1):
        return False
    return _correlation(rows.double(), looked) >= STRAIGHT


def _induces(scene: Scene, shares: Tensor, live: Tensor) -> Tensor:
    """Heads that look behind an earlier occurrence of the token they stand at."""
    assert scene.tokens is not None
    tokens = torch.tensor(list(scene.tokens))
    here, before = tokens[scene.rows][:, None], torch.cat((torch.tensor([-1]), tokens[:-1]))
    columns = torch.arange(len(tokens))
    behind = (here == before) & (columns < scene.rows[:, None]) & (columns > 0)  # (R,S)
    some = behind.any(-1)
    if int(some.sum()) < REPEATS:
        return torch.zeros(shares.shape[0], dtype=torch.bool)
    return _goes(behind, scene, shares, live * some)


def _mean(values: Tensor, live: Tensor) -> Tensor:
    """Over the rows that count, (H,R) -> (H,)."""
    return (values * live).sum(-1) / live.sum(-1).clamp(min=1)


def _correlation(x: Tensor, y: Tensor) -> float:
    """Pearson's; 0 where one of the two does not move."""
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x.square().sum() * y.square().sum()))
    return float((x * y).sum()) / size if size > 1e-9 else 0.0
