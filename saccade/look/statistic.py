"""What kind of head a head is: how widely and how far it looks, and badges found from its weights.

entropy   mean over the rows of -sum w ln w: 0 where one token is looked at, ln n where n are looked at alike
distance  mean over the rows of sum w |i - j|, in tokens; on a picture from cell to cell, in patches

w are shares of a row. A weight below 0 is a look too, so they are shares of |weight|: how strongly, whichever the sign.

Induction heads: Olsson et al. 2022. First tokens as sinks: Xiao et al. 2024. Entropy and distance: Clark et al. 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

ROWS = 128  # of a longer sequence so many rows are measured, evenly spread
MOST = 0.5  # a badge says where at least this share of the looks goes
NEAR = 2  # tokens away that are still local
AROUND = 1.5  # patches away that are still local: the eight around one
EVEN = 0.95  # of the greatest entropy there could be: uniform
STRAIGHT = 0.9  # correlation of rows with what they look at: diagonal across two sequences
REPEATS = 3  # rows with an earlier occurrence that it takes to see induction


class Statistic(NamedTuple):
    """Of one head. Where rows and columns are different sequences there is no distance, nor where no row with a place
    looks at one.
    """

    entropy: float  # nats
    distance: float | None
    badges: list[str]


class Spots(NamedTuple):
    """Where units lie on a picture: the cells (S,2) of all columns, (-1,-1) for one without a place, and the names of
    these by their numbers.
    """

    cells: Tensor
    extras: Mapping[int, str]


class Scene(NamedTuple):
    """What was looked at: weights (H,R,S) of the rows (R,), which columns each may see (R,S), and, where rows and
    columns are the same sequence, its tokens. spots: where the columns lie, if they are parts of a picture.
    """

    weights: Tensor
    rows: Tensor
    may: Tensor
    tokens: Sequence[int] | None
    spots: Spots | None = None


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
    distance = _distances(scene, shares, live)
    badges = _badges(scene, shares, live)
    return [Statistic(float(entropy[head]), distance[head], badges[head]) for head in range(weights.shape[0])]


def _distances(scene: Scene, shares: Tensor, live: Tensor) -> Sequence[float | None]:
    """How far each head looks. Units without a place count neither as rows nor as columns."""
    if scene.tokens is None:
        return [None] * shares.shape[0]
    apart, counted = _apart(scene, shares.shape[-1])
    placed = shares * counted
    total = placed.sum(-1)  # (H,R): the share of a row that goes to places
    far = (placed * apart).sum(-1) / total.where(total > 0, 1.0)
    looks = live if scene.spots is None else live * (total > 0)
    known = (looks.sum(-1) > 0) | (scene.spots is None)
    return [each if some else None for each, some in zip(_mean(far, looks).tolist(), known.tolist(), strict=True)]


def _apart(scene: Scene, S: int) -> tuple[Tensor, Tensor]:
    """How far columns lie from rows (R,S), and whether both have a place: in tokens, or in patches (Euclid)."""
    if scene.spots is None:
        apart = (scene.rows[:, None] - torch.arange(S, dtype=torch.double)).abs()
        return apart, torch.ones_like(apart)
    cells = scene.spots.cells
    here = cells[scene.rows]
    both = (here[:, None, 0] >= 0) & (cells[None, :, 0] >= 0)
    return (here[:, None] - cells[None]).double().norm(dim=-1), both.double()


def _badges(scene: Scene, shares: Tensor, live: Tensor) -> list[list[str]]:
    """The names that fit each head, the most telling first; an even head is called uniform and nothing else."""
    found = _BADGES[scene.spots is not None, scene.tokens is not None](scene, shares, live)
    names = [[name for name, fits in found.items() if bool(fits[head])] for head in range(shares.shape[0])]
    even = _is_even(scene, shares, live)
    return [["uniform"] if bool(even[head]) else _without_vague(each) for head, each in enumerate(names)]


def _without_vague(names: list[str]) -> list[str]:
    """Without what is said more exactly: itself lies in its own row and column, and whatever is named may be local."""
    vague = {"local", "same row", "same column"} if "itself" in names else {"local"}
    return [name for name in names if name not in vague] or names


def _is_even(scene: Scene, shares: Tensor, live: Tensor) -> Tensor:
    seen = scene.may.sum(-1)
    choice = live * (seen > 1)  # a row that sees one column has no choice
    widest = seen.clamp(min=1).double().log().expand_as(live)
    close = _mean(torch.special.entr(shares).sum(-1), choice) >= EVEN * _mean(widest, choice)
    return close & (choice.sum(-1) > 0)


def _favours(where: Tensor, scene: Scene, shares: Tensor, live: Tensor) -> Tensor:
    """Heads whose looks go to these places (R,S) far more than if they looked at all they may alike, (H,)."""
    places = (where & scene.may).double()
    even = places.sum(-1) / scene.may.sum(-1).clamp(min=1)
    choice = live * (even < 1)  # rows that could look elsewhere
    more = ((shares * places).sum(-1) - even) / (1 - even).clamp(min=1e-9)
    return (choice.sum(-1) > 0) & (_mean(more, choice) >= MOST)


def _self_badges(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of self-attention."""
    rows, columns = scene.rows[:, None], torch.arange(shares.shape[-1])
    later = live * (scene.rows > 0)  # the first row has nothing before it
    places = {
        "previous token": columns == rows - 1,
        "diagonal": columns == rows,
        "first token": (columns == 0).expand(len(rows), -1),
        "local": (columns - rows).abs() <= NEAR,
    }
    found = {name: _favours(where, scene, shares, later) for name, where in places.items()}
    return {"induction": _induces(scene, shares, live)} | found


def _cross_badges(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of cross-attention: whether what is looked at moves along with the rows, and the first token."""
    first = (torch.arange(shares.shape[-1]) == 0).expand(shares.shape[1:])
    straight = [_is_straight(scene.rows[alive > 0], each[alive > 0]) for each, alive in zip(shares, live, strict=True)]
    return {"diagonal": torch.tensor(straight), "first token": _favours(first, scene, shares, live)}


def _picture_badges(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of patches that look at each other; rows without a place, such as a class token's, do not count."""
    assert scene.spots is not None
    cells = scene.spots.cells
    here = cells[scene.rows][:, None]  # (R,1,2)
    apart, both = _apart(scene, len(cells))
    alike = (here == cells[None]) & (both > 0)[..., None]  # (R,S,2): in the same row, in the same column
    placed = live * (cells[scene.rows, 0] >= 0)
    places = {
        "itself": alike.all(-1),
        "same row": alike[..., 0],
        "same column": alike[..., 1],
        "local": (apart <= AROUND) & (both > 0),
    }
    found = {name: _favours(where, scene, shares, placed) for name, where in places.items()}
    return _extra_badges(scene, shares, live) | found


def _extra_badges(scene: Scene, shares: Tensor, live: Tensor) -> dict[str, Tensor]:
    """Badges of what lies beside the picture: a class token, registers."""
    assert scene.spots is not None
    columns = torch.arange(shares.shape[-1])
    return {
        f"{name} token": _favours((columns == number).expand(shares.shape[1:]), scene, shares, live)
        for number, name in scene.spots.extras.items()
    }


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
    return _favours(behind, scene, shares, live * some)


def _mean(values: Tensor, live: Tensor) -> Tensor:
    """Over the rows that count, (H,R) -> (H,)."""
    return (values * live).sum(-1) / live.sum(-1).clamp(min=1)


def _correlation(x: Tensor, y: Tensor) -> float:
    """Pearson's; 0 where one of the two does not move."""
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x.square().sum() * y.square().sum()))
    return float((x * y).sum()) / size if size > 1e-9 else 0.0


# By whether units lie on a picture, and whether rows and columns are the same sequence.
_BADGES = {
    (False, True): _self_badges,
    (False, False): _cross_badges,
    (True, True): _picture_badges,
    (True, False): _extra_badges,
}
