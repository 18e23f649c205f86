"""Anchors: the place z_n of each query beside the states x_n of a decoder, from which it looks and which it moves.

    looking    a query's head looks around a point of its anchor: its scores get -1/2 sum_k ((s_k - m_k) / d_k)^2, with
               s the place of a key, m = c + size * (o + W_o x) and d = size * exp(b + W_d x), along each axis k
               (Gao et al. 2021, SMCA: one Gaussian for each head). o begins at the middle and at points of the edge.
    among      self-attention has the same of the other anchors, whose places are their centres and sizes: who asks
               for the same element is near (Hou et al. 2024 let relations of places be a bias, too)
    moving     z = z + W_2 relu(W_1 relu(W_0 norm(x))), as logits of shares, after each layer; the next layer takes it
               without its gradient (Zhu et al. 2021, iterative refinement; Liu et al. 2022, DAB-DETR)

Keys and anchors lie along the same axes, whatever these are: the cells of a picture along two, the frames of a sound
along one, points in space along three.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.norm import NORMS

NARROW = 0.01  # the smallest size, as a share, in whose units a query looks
FAR = 4.0  # how far from its anchor a head may look, in sizes
ABOUT = 0.5  # how widely a head looks about that point first, in sizes
SHARP = 4.0  # e to this power is how much narrower or wider than its anchor


class AnchorStates:
    """The anchors of one pass: their logits (B,N,2k) and the places of what they look at, (B or 1,S,k); afterwards what
    each layer tells, as shares (B,N,2k). The caller makes and owns it.
    """

    def __init__(self, logits: Tensor, spots: Tensor) -> None:
        if spots.shape[-1] * 2 != logits.shape[-1]:
            raise SaccadeError(
                f"anchors along {logits.shape[-1] // 2} axes look at what lies along as many; this lies along "
                f"{spots.shape[-1]}"
            )
        self.logits, self.spots = logits, spots
        self.told: list[Tensor] = []


class Gaze(nn.Module):
    """What queries add to the scores of their heads by where things lie, (B,H,N,S): one Gaussian for each head."""

    def __init__(self, config: ModelConfig, axes: int, around: Tensor, wide: float) -> None:
        """around (H,axes): where heads look first, in sizes from the anchor; wide: how far about, in sizes."""
        super().__init__()
        self.heads, self.axes = config.heads, axes
        self.norm = NORMS[config.norm](config.width, config.epsilon)
        self.out = nn.Linear(config.width, 2 * config.heads * axes)  # of each head, where around and how widely
        nn.init.zeros_(self.out.weight)
        with torch.no_grad():
            first, second = self.out.bias.view(2, config.heads, axes)
            first.copy_(around)
            second.fill_(math.log(wide))

    def forward(self, x: Tensor, centre: Tensor, size: Tensor, spots: Tensor) -> Tensor:
        """x (B,N,C), centre and size (B,N,k), spots (B or 1,S,k). The squares are multiplied out, as
        -a s^2 + 2 a m s - a m^2 with a = 1 / 2 d^2: one product makes the scores, and nothing is as large as
        (B,H,N,S,k).
        """
        B, N, _ = centre.shape
        around, wide = self.out(self.norm(x)).view(B, N, 2, self.heads, self.axes).unbind(2)
        centre, size = centre.unsqueeze(2), size.clamp(min=NARROW).unsqueeze(2)  # (B,N,1,k)
        middle = centre + size * around.clamp(-FAR, FAR)
        inverse = (size * wide.clamp(-SHARP, SHARP).exp()).clamp(min=NARROW).square().reciprocal() / -2  # (B,N,H,k)
        first = middle * inverse
        constant = (middle * first).sum(3, keepdim=True)
        factors = torch.cat((inverse, first * -2, constant), 3).transpose(1, 2)  # (B,H,N,2k+1)
        keys = torch.cat((spots.square(), spots, torch.ones_like(spots[..., :1])), 2).mT.unsqueeze(1)
        return factors @ keys


class AnchorLayer(nn.Module):
    """What one layer does with anchors: `toward` and `among` for its attention, and `moved` after it."""

    def __init__(self, config: ModelConfig, axes: int) -> None:
        super().__init__()
        self.look = Gaze(config, axes, around_points(config.heads, axes), ABOUT)
        self.others = Gaze(config, 2 * axes, torch.zeros(config.heads, 2 * axes), FAR)
        self.step = nn.ModuleList(
            [
                nn.Linear(config.width, config.width),
                nn.Linear(config.width, config.width),
                nn.Linear(config.width, 2 * axes),
            ]
        )
        last = cast(nn.Linear, self.step[2])
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def toward(self, x: Tensor, shares: Tensor, spots: Tensor) -> Tensor:
        """What looking at the places `spots` (B or 1,S,k) adds to the scores, (B,H,N,S)."""
        return self.look(x, *shares.chunk(2, 2), spots)

    def among(self, x: Tensor, shares: Tensor) -> Tensor:
        """What self-attention adds to its scores, (B,H,N,N)."""
        _, size = shares.chunk(2, 2)
        return self.others(x, shares, torch.cat((size, size), 2), shares)

    def moved(self, logits: Tensor, x: Tensor) -> Tensor:
        """The logits after this layer; x: its states, normed."""
        first, second, last = self.step
        return logits + last(torch.relu(second(torch.relu(first(x)))))


class AnchorStack(nn.Module):
    """An `AnchorLayer` beside each block of a decoder."""

    def __init__(self, config: ModelConfig, depth: int, axes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(AnchorLayer(config, axes) for _ in range(depth))


class AnchorPass:
    """The anchors of one pass through a stack."""

    def __init__(self, parts: AnchorStack, states: AnchorStates) -> None:
        self.parts, self.states = parts, states
        self.logits = states.logits

    def layer(self, number: int) -> AnchorLayer:
        return cast(AnchorLayer, self.parts.layers[number])

    def biases(self, number: int, x: Tensor) -> tuple[Tensor, Tensor]:
        """What layer `number` adds to the scores of its self-attention, and of its look at the context."""
        shares = self.logits.sigmoid()
        layer = self.layer(number)
        return layer.among(x, shares), layer.toward(x, shares, self.states.spots)

    def update(self, number: int, x: Tensor) -> None:
        """The anchors after layer `number`, whose block has made x (normed as states leave the stack)."""
        found = self.layer(number).moved(self.logits, x)
        self.states.told.append(found.sigmoid())
        self.logits = found.detach()


def around_points(heads: int, axes: int) -> Tensor:
    """Where heads look first, (H,k) in sizes from the centre: the middle, the ends of each axis, and again."""
    ends = [torch.zeros(axes)]
    for axis in range(axes):
        for side in (-0.5, 0.5):
            ends.append(torch.eye(axes)[axis] * side)
    return torch.stack([ends[number % len(ends)] for number in range(heads)])
