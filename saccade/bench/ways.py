"""`saccade bench ways`: three ways of processing a sequence, one layer each: recurrence, convolution, self-attention.

Time and peak memory by length beside torch's own modules, how both grow (the exponent of the length), how many steps
must wait for each other, and how far information travels: from which inputs a gradient comes back at all. The lecture
puts it so: recurrent layers see everything but one step after another, convolutions see their neighbours at once,
self-attention sees everything at once and pays with memory (if weights are kept; the fused kernel never holds them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.attend.cache import Cache
from saccade.bench.growth import alone, exponent, peaks
from saccade.bench.race import race, row
from saccade.model.convolution import Convolution
from saccade.model.recurrent import Recurrent

WIDTH, HEADS, KERNEL = 256, 4, 3
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
HEAVY = (1024, 2048, 4096, 8192)  # whose memory is measured: below, it is lost among the pages of the process
KEPT = 4096  # the longest whose weights are kept: a GB and more
FAR = (64, 1024, 8192)  # where the reach is measured
STEPS = 64  # of a recurrent layer, one at a time

Call = Callable[[Tensor], Tensor]


class Way(NamedTuple):
    """How both sides compute it, (B,T,C) -> (B,T,C), what the peer is called, and how many steps wait in a row."""

    ours: Callable[[], Call]
    theirs: Callable[[], Call]
    peer: str
    steps: Callable[[int], int] = lambda T: 1
    longest: int = LENGTHS[-1]


class TorchPeer(nn.Module):
    """A module of torch and how it is called."""

    def __init__(self, module: nn.Module, call: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.module, x)


def rows(
    seconds: float = 1.0,
    lengths: Sequence[int] = LENGTHS,
    heavy: Sequence[int] = HEAVY,
    far: Sequence[int] = FAR,
) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds. Some minutes."""
    for name, way in WAYS.items():
        yield from _times(name, way, seconds, [T for T in lengths if way.longest >= T])
        yield from _memory(name, way, [T for T in heavy if way.longest >= T])
        for T in lengths:
            yield row(f"{name} T={T}, steps in a row", way.peer, way.steps(T), way.steps(T), unit="steps")
        yield from _reach_rows(name, way, [T for T in far if way.longest >= T])
    yield from _lstm(seconds)


def reach(call: Call, T: int, width: int) -> int:
    """The farthest |i - j| for which output i has a gradient at input j that is not 0, in float32.

    Looked at from the first, the middle and the last output. Gradients that fade become 0 at 1e-45.
    """
    x = torch.randn(1, T, width, requires_grad=True)
    out, found = call(x), 0
    for place in {0, T // 2, T - 1}:
        (gradient,) = torch.autograd.grad(out[0, place].sum(), x, retain_graph=True)
        seen = gradient[0].ne(0).any(1).nonzero().squeeze(1)
        found = max(found, int((seen - place).abs().max()))
    return found


def memory(name: str, side: str, lengths: Sequence[int]) -> list[float]:
    """GB that a pass forth and back adds at its peak, for each length; called in a process of its own."""
    call = _seeded(getattr(WAYS[name], side))

    def prepare(T: int) -> Callable[[], object]:
        x = torch.randn(1, T, WIDTH, requires_grad=True)
        return lambda: call(x).sum().backward()

    return peaks(lengths, prepare)


def _times(name: str, way: Way, seconds: float, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Forward, forward and backward, and how both grow."""
    sides = [_seeded(each) for each in (way.ours, way.theirs)]
    found: dict[str, list[tuple[float, float]]] = {"forward": [], "forward+backward": []}
    for T in lengths:
        x = torch.randn(1, T, WIDTH)
        with torch.inference_mode():
            runs = [partial(side, x) for side in sides]
            ours, theirs, ratio = race(*runs, seconds=seconds)
        found["forward"].append((ours, theirs))
        yield row(f"{name} T={T}, forward", way.peer, ours, theirs, ratio)
        ours, theirs, ratio = race(*(_step(side, x) for side in sides), seconds=seconds)
        found["forward+backward"].append((ours, theirs))
        yield row(f"{name} T={T}, forward+backward", way.peer, ours, theirs, ratio)
    for what, times in found.items():
        yield _growth(f"{name}, {what}, exponent of T", way.peer, lengths, times)


def _memory(name: str, way: Way, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The peaks of a pass forth and back, each side in a process of its own, and how they grow."""
    if not lengths:
        return
    found = list(zip(*(_alone(name, side, lengths) for side in ("ours", "theirs")), strict=True))
    for T, (ours, theirs) in zip(lengths, found, strict=True):
        yield row(f"{name} T={T}, forward+backward, peak memory", way.peer, ours, theirs, unit="GB")
    if len(lengths) > 1:
        yield _growth(f"{name}, peak memory, exponent of T", way.peer, lengths, found)


def _reach_rows(name: str, way: Way, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    for T in lengths:
        ours, theirs = (reach(_seeded(each), T, WIDTH) for each in (way.ours, way.theirs))
        yield row(f"{name} T={T}, reach of a gradient", way.peer, ours, theirs, ours / theirs, unit="positions")


def _lstm(seconds: float) -> Iterator[dict[str, Any]]:
    """A recurrent layer one step at a time, with a cache, beside a loop over torch's; and as it trains."""
    torch.manual_seed(0)
    ours, theirs = Recurrent("lstm", WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
    for B in (1, 16, 64):
        x = torch.randn(B, STEPS, WIDTH)
        steps = x.split(1, 1)

        def write(steps: Sequence[Tensor] = steps) -> None:
            cache = Cache(ours.window)
            for step in steps:
                ours(step, cache=cache)

        def loop(steps: Sequence[Tensor] = steps) -> None:
            state = None
            for step in steps:
                _, state = theirs(step, state)

        with torch.inference_mode():
            yield row(f"lstm {B} x {STEPS}, one step at a time", "nn.LSTM", *race(write, loop, seconds=seconds))
        both = _step(ours, x), _step(lambda x: theirs(x)[0], x)
        yield row(f"lstm {B} x {STEPS}, forward+backward", "nn.LSTM", *race(*both, seconds=seconds))


def _growth(case: str, peer: str, lengths: Sequence[int], values: Sequence[tuple[float, float]]) -> dict[str, Any]:
    ours, theirs = (exponent(lengths, [max(pair[side], 1e-9) for pair in values]) for side in (0, 1))
    return {**row(case, peer, ours, theirs, unit=""), "ratio": None}  # neither is better


def _step(call: Call, x: Tensor) -> Callable[[], None]:
    """A pass forth and back; gradients of the input too, as inside a model."""
    x = x.detach().requires_grad_()
    weight = torch.randn_like(x)

    def step() -> None:
        call(x).backward(weight)

    return step


def _seeded(make: Callable[[], Call]) -> Call:
    """A side with the same random weights whenever it is made."""
    torch.manual_seed(0)
    return make()


def _alone(name: str, side: str, lengths: Sequence[int]) -> list[float]:
    return alone("saccade.bench.ways", name, side, [*lengths])


def _gru() -> Call:
    return TorchPeer(nn.GRU(WIDTH, WIDTH, batch_first=True), lambda module, x: module(x)[0])


def _conv() -> Call:
    """The same products and the same gate as ours."""
    module = nn.Conv1d(WIDTH, 2 * WIDTH, KERNEL, padding=KERNEL // 2)
    return TorchPeer(module, lambda module, x: F.glu(module(x.transpose(1, 2)), 1).transpose(1, 2))


def _multihead(weights: bool) -> Call:
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    return TorchPeer(module, lambda module, x: module(x, x, x, need_weights=weights)[0])


WAYS = {
    "recurrent": Way(lambda: Recurrent("gru", WIDTH), _gru, "nn.GRU", lambda T: T),
    "convolution": Way(lambda: Convolution(WIDTH, KERNEL), _conv, "nn.Conv1d"),
    "attention": Way(lambda: saccade.Attention(WIDTH, HEADS), lambda: _multihead(False), "nn.MultiheadAttention"),
    "attention, weights kept": Way(
        lambda: saccade.Attention(WIDTH, HEADS, kernel="plain"),
        lambda: _multihead(True),
        "nn.MultiheadAttention",
        longest=KEPT,
    ),
}
