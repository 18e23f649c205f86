"""`saccade bench long`: attention over long sequences, beside exact attention and the peers that promise the same.

8 heads of width 64, 256 features or slots. Each line is one method at one length beside torch's fused exact attention
(causal where the method is); beyond EXACT it runs alone. Growth is the exponent of the length from 4,096 on, the median
of three fits; a method overtakes where it is faster from that length on. Peers are measured at 8,192.
"""

from __future__ import annotations

import io
import re
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import saccade
from saccade.attend.summary import linformer
from saccade.bench.growth import alone, exponent, peaks
from saccade.bench.race import race, row, spent
from saccade.look.drawing import Drawing
from saccade.look.lines import lines

HEADS, WIDTH, FEATURES, WINDOW = 8, 64, 256, 256
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
GROWTH = (4096, 8192, 16384, 32768)  # where exponents are fitted
HEAVY = (4096, 8192, 16384, 32768, 65536)  # whose memory is measured
EXACT = 4096  # the longest at which a method is timed beside exact attention
AT = 8192  # where the peers are
FITS = 3
FUSED = "torch SDPA"

Call = Callable[..., Tensor]
Make = Callable[[int], Call]


class Method(NamedTuple):
    """How queries, keys and values (B,H,T,D) of one length become an output, and whether it is causal."""

    make: Make
    causal: bool = False
    longest: int = LENGTHS[-1]


class Peer(NamedTuple):
    """A package that has the method, and how both sides are made; layer: with its projections, from one input."""

    package: str
    ours: Make
    theirs: Make
    layer: bool = False


def rows(seconds: float = 1.0, lengths: Sequence[int] = LENGTHS) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds. A quarter of an hour."""
    for name, method in METHODS.items():
        last = min(method.longest, max(lengths))
        yield from _times(name, method, seconds, [T for T in lengths if last >= T])
        yield from _growth(name, method, [T for T in GROWTH if last >= T])
        yield from _memory(name, method, [T for T in HEAVY if last >= T])
    for name in PEERS:
        yield from _against_peer(name, seconds, min(AT, max(lengths)))


def drawn(found: Sequence[dict[str, Any]]) -> dict[str, Drawing]:
    """Time and memory of a pass forth and back over the length, equal ratios at equal heights."""
    known = {each["case"]: each["ours"] for each in found if "overtakes" not in each["case"]}
    lengths = sorted({int(T[1]) for case in known if (T := re.search(r" T=(\d+)", case))})
    pictures = {}
    for what, behind, unit in (("time", "", "ms"), ("memory", ", peak memory", "GB")):
        at = {T: {name: known.get(f"{name} T={T}, forward+backward{behind}") for name in SHOWN} for T in lengths}
        at = {T: found for T, found in at.items() if any(value is not None for value in found.values())}
        if at:
            title = f"forward and backward, {unit} by length ({HEADS} heads of {WIDTH})"
            series = {name: [found[name] for found in at.values()] for name in SHOWN}
            pictures[what] = lines(series, [f"{T:,}" for T in at], title=title, powers=True)
    return pictures


def memory(name: str, side: int, lengths: Sequence[int], backward: bool = True) -> list[float]:
    """GB that a pass adds at its peak, for each length; side 0 is ours, 1 the peer's. In a process of its own."""
    peer = PEERS.get(name)
    make = METHODS[name].make if peer is None else (peer.ours, peer.theirs)[side]

    def prepare(T: int) -> Callable[[], object]:
        torch.manual_seed(0)
        inputs = _inputs(T, backward, layer=peer is not None and peer.layer)
        return _step(make(T), inputs) if backward else partial(_without_gradients, make(T), inputs)

    return peaks(lengths, prepare)


def _times(name: str, method: Method, seconds: float, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Times of both passes, beside exact attention up to EXACT, and from which length on the method is faster."""
    faster: dict[str, list[bool]] = {"forward": [], "forward+backward": []}
    short = [T for T in lengths if T <= EXACT]
    for T in lengths:
        for what, ours, exact in _passes(method, T):
            case = f"{name} T={T}, {what}"
            if T not in short:
                yield row(case, "", spent(ours), None)
                continue
            times = race(ours, exact, seconds=seconds)
            faster[what].append(times[2] > 1)
            yield row(case, FUSED, *times)
    for what, won in faster.items():
        first = len(won) - next((n for n, each in enumerate(reversed(won)) if not each), len(won))
        if first < len(won) and not name.startswith("exact"):
            yield row(f"{name}, {what}, overtakes exact from T", "", short[first], None, unit="")


def _growth(name: str, method: Method, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    if len(lengths) < 2:
        return
    for number, what in enumerate(("forward", "forward+backward")):
        runs = [list(_passes(method, T))[number][1] for T in lengths]
        fits = [exponent(lengths, [spent(run) for run in runs]) for _ in range(FITS)]
        yield row(f"{name}, {what}, exponent of T", "", statistics.median(fits), None, unit="")


def _memory(name: str, method: Method, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    if len(lengths) < 2:
        return
    for what in ("forward", "forward+backward"):
        found = _alone(name, 0, lengths, what != "forward")
        for T, gigabytes in zip(lengths, found, strict=True):
            yield row(f"{name} T={T}, {what}, peak memory", "", gigabytes, None, unit="GB")
        grown = exponent(lengths, [max(each, 1e-9) for each in found])
        yield row(f"{name}, {what}, peak memory, exponent of T", "", grown, None, unit="")


def _against_peer(name: str, seconds: float, T: int) -> Iterator[dict[str, Any]]:
    """One method beside the package that has it, time and memory."""
    peer, case = PEERS[name], f"{name} T={T}"
    inputs, trained = (_inputs(T, each, layer=peer.layer) for each in (False, True))
    try:
        calls = [make(T) for make in (peer.ours, peer.theirs)]
    except ImportError:
        yield row(f"{case}, forward", peer.package, spent(partial(_without_gradients, peer.ours(T), inputs)), None)
        return
    ours, theirs = (partial(_without_gradients, call, inputs) for call in calls)
    yield row(f"{case}, forward", peer.package, *race(ours, theirs, seconds=seconds))
    back, forth = (_step(call, trained) for call in calls)
    yield row(f"{case}, forward+backward", peer.package, *race(back, forth, seconds=seconds))
    for what, backward in (("forward", False), ("forward+backward", True)):
        held, theirs_held = (_alone(name, side, [T], backward)[0] for side in (0, 1))
        yield row(f"{case}, {what}, peak memory", peer.package, held, theirs_held, unit="GB")


def _passes(method: Method, T: int) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    """What is timed, ours and the exact one."""
    torch.manual_seed(0)
    ours, exact = method.make(T), partial(F.scaled_dot_product_attention, is_causal=method.causal)
    inputs, trained = _inputs(T, False), _inputs(T, True)
    yield "forward", partial(_without_gradients, ours, inputs), partial(_without_gradients, exact, inputs)
    yield "forward+backward", _step(ours, trained), _step(exact, trained)


def _inputs(T: int, trained: bool, *, layer: bool = False) -> list[Tensor]:
    """q, k and v, or what a layer makes them of."""
    generator = torch.Generator().manual_seed(T)
    shapes = [(1, T, HEADS * WIDTH)] if layer else 3 * [(1, HEADS, T, WIDTH)]
    return [torch.randn(shape, generator=generator).requires_grad_(trained) for shape in shapes]


def _without_gradients(call: Call, inputs: Sequence[Tensor]) -> Tensor:
    with torch.no_grad():
        return call(*inputs)


def _step(call: Call, inputs: Sequence[Tensor]) -> Callable[[], object]:
    """A pass forth and back."""
    given = torch.randn(inputs[0].shape)  # as long and as wide as the output
    return lambda: torch.autograd.grad(call(*inputs), list(inputs), given)


def _performer(is_causal: bool) -> Make:
    """performer-pytorch's attention, with as many features and its own way of drawing them."""

    def make(T: int) -> Call:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # it prints that it has no CUDA kernel
            warnings.simplefilter("ignore")
            from performer_pytorch import FastAttention

            made: Call = FastAttention(WIDTH, FEATURES, causal=is_causal)
        return made

    return make


def _their_layer(T: int) -> Call:
    from linformer import LinformerSelfAttention

    made: Call = LinformerSelfAttention(HEADS * WIDTH, T, k=FEATURES, heads=HEADS)
    return made


def _our_layer(T: int) -> Call:
    return saccade.Attention(HEADS * WIDTH, HEADS, summary=f"linformer({FEATURES}, {T})")


def _attention(**options: Any) -> Method:
    return Method(lambda T: partial(saccade.attention, **options), "causal" in str(options.get("mask")))


def _features(kind: str, mask: str | None = None) -> Method:
    drawn = "" if kind == "elu" else f", {FEATURES}, seed=0"
    return _attention(score=f"feature({kind}{drawn})", normaliser="sum", mask=mask, kernel="linear")


def _summed(T: int) -> Call:
    summary = linformer(FEATURES, T, heads=HEADS)
    return lambda q, k, v: saccade.attention(q, *summary(k, v, None), start=0)


def _alone(name: str, side: int, lengths: Sequence[int], backward: bool) -> list[float]:
    return alone("saccade.bench.long", name, side, [*lengths], backward)


METHODS = {
    "exact": _attention()._replace(longest=8192),  # some seconds; it grows with the square
    "exact, causal": _attention(mask="causal")._replace(longest=8192),
    "window": _attention(mask=f"window({WINDOW})"),
    "window, causal": _attention(mask=f"causal & window({WINDOW})"),
    "bigbird": _attention(mask="bigbird(64, 3, 1, 3)"),
    "favor": _features("favor"),
    "favor, causal": _features("favor", "causal"),
    "fourier": _features("fourier"),
    "fourier, causal": _features("fourier", "causal"),
    "elu, causal": _features("elu", "causal"),
    "linformer": Method(_summed),
}
SHOWN = ("exact, causal", "window, causal", "bigbird", "favor, causal", "linformer")  # in the pictures
PEERS = {
    "favor, beside": Peer("performer-pytorch", METHODS["favor"].make, _performer(False)),
    "favor, causal, beside": Peer("performer-pytorch", METHODS["favor, causal"].make, _performer(True)),
    "linformer layer": Peer("linformer", _our_layer, _their_layer, layer=True),
}
