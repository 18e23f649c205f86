"""`tracks(steps, axes)`: the agents of a scene as vectors, each of its own track, and what each knows of the others as
vectors of pairs (Giuliari et al. 2021; Ngiam et al. 2022, Scene Transformer).

Everything is seen from the agent itself: its last place is the origin and, with `heading`, the way it went is ahead. So
nothing depends on where a scene lies, or on how it is turned.

    s_t  = W [p_t; p_t - p_(t-1); whether both were seen] + u_t     for each step, in the agent's own frame
    x_i  = attention over its steps, the state of the last
    z_ij = W_2 f(W_1 [where j is, how it moves, how near both will come])     in i's frame, lengths in units of a step
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.input import value_of
from saccade.model.stack import Stack

STILL = 1e-9  # of its unit: whoever moved less has no heading of its own
LONG = 12.0  # steps within which two agents may come near each other
KNOWN = 18  # numbers that tell one agent of another, on two axes
PLANE = 2  # axes that a heading turns


class Stance(NamedTuple):
    """How the agents of scenes stand at last. here (B,N,D): the last place where each was seen; velocity (B,N,D): its
    last step; ahead (B,N,2): the unit vector of its heading; there (B,N): whether it was seen at all; now: whether at
    the last step; since: how many steps ago.
    """

    here: Tensor
    velocity: Tensor
    ahead: Tensor
    there: Tensor
    now: Tensor
    since: Tensor

    def inwards(self, vectors: Tensor) -> Tensor:
        """Vectors (B,N,...,D) of a scene, turned into the frame of each agent."""
        return _turned(vectors, self.ahead, 1.0)

    def outwards(self, vectors: Tensor) -> Tensor:
        """Vectors (B,N,...,D) of each agent's frame, turned back."""
        return _turned(vectors, self.ahead, -1.0)


def stance(places: Tensor, seen: Tensor, heading: bool) -> Stance:
    """From places (B,N,T,D) and whether an agent was seen there (B,N,T). The heading is the way from the first place to
    the last; of who never moved, the way the others went in the mean, else to where they are; without `heading`, along
    the first axis.
    """
    T = seen.shape[2]
    steps = torch.arange(T, device=seen.device)
    last = torch.where(seen, steps, -1).amax(2)
    before = torch.where(seen & (steps < last.unsqueeze(2)), steps, -1).amax(2)
    first = torch.where(seen, steps, T).amin(2).clamp(max=T - 1)
    here = _at(places, last.clamp(min=0))
    gap = (last - before).clamp(min=1).unsqueeze(2)
    moved = (before >= 0).unsqueeze(2)
    velocity = torch.where(moved, (here - _at(places, before.clamp(min=0))) / gap, torch.zeros_like(here))
    there = last >= 0
    ahead = torch.zeros_like(here[..., :PLANE])
    ahead[..., 0] = 1.0
    if heading:
        way = torch.where(there.unsqueeze(2), here - _at(places, first), torch.zeros_like(here))[..., :PLANE]
        ahead = _headings(way, here[..., :PLANE], there, ahead)
    return Stance(here, velocity, ahead, there, last == T - 1, T - 1 - last)


def _headings(way: Tensor, here: Tensor, there: Tensor, usual: Tensor) -> Tensor:
    """The first of these ways that is one, as a unit vector."""
    count = there.sum(1, keepdim=True).clamp(min=1).unsqueeze(2)
    others = (way.sum(1, keepdim=True) / count).expand_as(way)
    middle = (here * there.unsqueeze(2)).sum(1, keepdim=True) / count - here
    found = usual
    for each in (middle, others, way):
        length = each.norm(dim=2, keepdim=True)
        found = torch.where(length > STILL, each / length.clamp(min=STILL), found)
    return found


def _at(places: Tensor, steps: Tensor) -> Tensor:
    """The places (B,N,D) of steps (B,N)."""
    return places.gather(2, steps[..., None, None].expand(*steps.shape, 1, places.shape[3])).squeeze(2)


def _turned(vectors: Tensor, ahead: Tensor, way: float) -> Tensor:
    cos, sin = (each.view(*ahead.shape[:2], *[1] * (vectors.dim() - 3)) for each in ahead.unbind(2))
    sin = sin * way
    x, y = vectors[..., 0], vectors[..., 1]
    turned = torch.stack((x * cos + y * sin, y * cos - x * sin), -1)
    return torch.cat((turned, vectors[..., PLANE:]), -1)


class tracks(nn.Module):
    """places (B,N,T,D), seen (B,N,T) -> (B,N,C); `pairs` gives (B,N,N,P). unit: how far an agent goes in a step, about;
    depth: layers of attention over time.
    """

    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the agents in another order",
        "rotation": "the whole scene turned and moved",
    }

    def __init__(
        self,
        steps: int = 8,
        axes: int = 2,
        unit: float = 1.0,
        depth: int = 1,
        heading: bool = True,
        *,
        config: ModelConfig,
    ) -> None:
        super().__init__()
        whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (steps, axes, depth))
        if not whole or steps < 1 or axes not in (2, 3) or depth < 0 or not unit > 0:
            raise SaccadeError(
                "tracks: steps is a whole number from 1, axes 2 or 3, depth a whole number from 0, unit above 0; got "
                f"{steps!r}, {axes!r}, {depth!r}, {unit!r}"
            )
        self.steps, self.axes, self.unit, self.heading = steps, axes, float(unit), bool(heading)
        self.breaks = {} if heading else {"rotation": "without heading, tracks are read as they lie"}
        self.step = nn.Linear(2 * axes + 2, config.width)
        self.when = normal(steps, config.width)
        self.time = over_time(config, depth) if depth else None
        self.all = None if depth else nn.Linear(steps * config.width, config.width)
        pair = config.pair or config.width
        self.around = nn.Linear(KNOWN + 3 * (axes - PLANE), 2 * pair)
        self.known = nn.Linear(2 * pair, pair)

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        places, seen = self._read(values)
        found = stance(places, seen, self.heading)
        away = places - found.here.unsqueeze(2)
        both = seen[..., 1:] & seen[..., :-1]
        moved = F.pad((places[:, :, 1:] - places[:, :, :-1]) * both.unsqueeze(3), (0, 0, 1, 0))
        away, moved = (found.inwards(each) / self.unit for each in (away * seen.unsqueeze(3), moved))
        flags = torch.stack((seen, F.pad(both, (1, 0))), 3).to(away.dtype)
        x = self.step(torch.cat((away / self.steps, moved, flags), 3)) + self.when
        if self.all is not None:
            return self.all(F.gelu(x).flatten(2))
        assert self.time is not None
        states: Tensor = self.time(x.flatten(0, 1))
        return states[:, -1].view(*x.shape[:2], -1)

    def pairs(self, values: Mapping[str, Tensor]) -> Tensor:
        """What each agent (a row) knows of each (a column)."""
        places, seen = self._read(values)
        found = stance(places, seen, self.heading)
        made: Tensor = self.known(F.gelu(self.around(self._described(found))))
        return made

    def turned(
        self, values: Mapping[str, Tensor], random: torch.Generator
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The same scene, and the scene turned around and moved."""
        angle = torch.rand((), generator=random, dtype=torch.float64) * 6.283
        places = values["places"].double()
        ahead = torch.stack((angle.cos(), angle.sin())).expand(*places.shape[:2], 2)
        return dict(values), {**values, "places": _turned(places, ahead, 1.0) + 5.0}

    def counted(self, lengths: Tensor) -> Tensor:
        """A vector for each agent."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Random walks of `length` agents."""
        shape = rows, length, self.steps, self.axes
        walks = torch.randn(shape, generator=generator, device=device).cumsum(2) * self.unit
        begin = torch.randn(rows, length, 1, self.axes, generator=generator, device=device) * self.unit * self.steps
        return {"places": walks + begin, "seen": torch.ones(shape[:3], dtype=torch.bool, device=device)}

    def _read(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        places, seen = value_of(values, "places"), value_of(values, "seen")
        if places.dim() != 4 or places.shape[2:] != (self.steps, self.axes):
            raise SaccadeError(f"tracks are (batch, agents, {self.steps}, {self.axes}); got {tuple(places.shape)}")
        return places.to(self.step.weight.dtype), seen

    def _described(self, found: Stance) -> Tensor:
        """What is told of each pair, (B,N,N,KNOWN): direction and distance, both ways of moving, and where and when
        both will be nearest if they go on as they do.
        """
        here, velocity = found.here / self.unit, found.velocity / self.unit
        away = here.unsqueeze(1) - here.unsqueeze(2)  # (B,N,N,D): to the agent of the column
        apart = velocity.unsqueeze(1) - velocity.unsqueeze(2)
        away, apart, theirs, own = (
            found.inwards(each)
            for each in (away, apart, velocity.unsqueeze(1).expand_as(away), velocity.unsqueeze(2).expand_as(away))
        )
        distance = away.norm(dim=3, keepdim=True)
        when = (-(away * apart).sum(3, keepdim=True) / (apart.square().sum(3, keepdim=True) + 1e-3)).clamp(0, LONG)
        nearest = (away + when * apart).norm(dim=3, keepdim=True)
        N = here.shape[1]
        itself = torch.eye(N, dtype=here.dtype, device=here.device).view(1, N, N, 1).expand(len(here), -1, -1, -1)
        current = found.now.to(here.dtype).view(-1, 1, N, 1).expand(-1, N, -1, -1)
        direction = away / distance.clamp(min=1e-6)
        near = [torch.exp(-distance / reach) for reach in (1.0, 4.0, 16.0)]
        close = [torch.exp(-nearest / reach) for reach in (1.0, 4.0)]
        numbers = [direction, distance.log1p(), *near, apart, theirs, own[..., :PLANE]]
        numbers += [when / LONG, nearest.log1p(), *close, itself, current]
        return torch.cat(numbers, 3)


def over_time(config: ModelConfig, depth: int) -> Stack:
    """Layers like those of the encoder that look over the steps of an agent, so without what belongs to its agents."""
    own = {"encoder": depth, "decoder": 0, "mixer": "attention", "encoder_mixer": None, "stages": [], "join": "one"}
    own |= {"pair": 0, "mask": None, "pattern": None, "position": None, "summary": None, "experts": 0}
    return Stack(config.stack(decoder=False).model_copy(update=own), decoder=False)
