"""A mixer is how the vectors of a block exchange information: attention, recurrence, convolution or fading memory.

All take x (B,T,C), a mask and a cache, and give (B,T,C); `window` says how many positions of the past they need. One
word of a recipe chooses (`mixer = "gru"`), so that three ways of processing a sequence differ in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from saccade import spec
from saccade.error import SaccadeError
from saccade.model.accumulator import Accumulator
from saccade.model.ask import Induced
from saccade.model.convolution import Convolution
from saccade.model.convolution2d import Convolution2d
from saccade.model.deepset import DeepSet
from saccade.model.graph import GraphAttention, GraphConvolution
from saccade.model.recurrent import CELLS, Recurrent

MEMORIES = ("composite", "forgetting", "gated")
RATES = 5  # layers after which the dilation begins again at 1


def as_mixer(text: str, *, width: int, causal: bool, number: int, parts: Any = None) -> nn.Module:
    """The mixer of layer `number` that a spec string describes; attention is made by the block. parts: the `Parts` of
    that block, for a mixer that is made of such.
    """
    made = spec.read(text, MIXERS, "mixer", width=width, causal=causal, number=number, parts=parts)
    if not isinstance(made, nn.Module):
        raise SaccadeError(f"the mixer {text!r} is a {type(made).__name__}; a mixer is a module")
    if causal and not hasattr(made, "window"):
        raise SaccadeError(
            f"the mixer {text!r} has no `window`, which says how many positions a decoder's cache keeps (None: all)"
        )
    return made


def check_names(texts: list[str]) -> None:
    """Refuses a mixer that does not exist, before anything else is said of it."""
    for text in texts:
        spec.arguments(text, MIXERS, "mixer")


def one_way(text: str) -> str:
    """The kind of recurrent mixer that a context is fed into."""
    name, found = spec.arguments(text, MIXERS, "mixer")
    if name not in CELLS or found.get("both"):
        raise SaccadeError(f"a context is fed into rnn, gru or lstm, one way; the mixer here is {text!r}")
    return name


def state_to_pool(texts: list[str]) -> str:
    """Which state of an encoder with such layers has seen all tokens: "first" or "last"; "mean" where none has."""
    read = [spec.arguments(text, MIXERS, "mixer") for text in texts]
    if any(name == "attention" or found.get("both") for name, found in read):
        return "first"
    return "last" if any(name in CELLS or name in MEMORIES for name, _ in read) else "mean"


def attention() -> nn.Module:
    """Every position looks at every other; score, position and mask have keys of their own."""
    raise SaccadeError("attention takes no arguments here: write mixer = 'attention', and its score or mask beside")


def rnn(both: bool = False, *, width: int, causal: bool) -> nn.Module:
    """A state that goes from one position to the next."""
    return Recurrent("rnn", width, both=_checked_both(both, causal, "rnn"))


def gru(both: bool = False, *, width: int, causal: bool) -> nn.Module:
    """A state with gates that keep or renew it."""
    return Recurrent("gru", width, both=_checked_both(both, causal, "gru"))


def lstm(both: bool = False, *, width: int, causal: bool) -> nn.Module:
    """A state with gates, and a cell beside it that is only added to."""
    return Recurrent("lstm", width, both=_checked_both(both, causal, "lstm"))


def composite(both: bool = False, *, width: int, causal: bool) -> nn.Module:
    """A plain sum of all that was seen."""
    return Accumulator("composite", width, both=_checked_both(both, causal, "composite"))


def forgetting(gamma: float | None = None, both: bool = False, *, width: int, causal: bool) -> nn.Module:
    """A sum that fades by gamma at each step; without a number, learned."""
    return Accumulator("forgetting", width, gamma=gamma, both=_checked_both(both, causal, "forgetting"))


def gated(mean: bool = False, both: bool = False, *, width: int, causal: bool) -> nn.Module:
    """A memory whose input says how much of it to keep; mean: what is new weighs as much as was let go."""
    if not isinstance(mean, bool):
        raise SaccadeError(f"gated: mean is True or False; got {mean!r}")
    return Accumulator("gated", width, mean=mean, both=_checked_both(both, causal, "gated"))


def convolution(kernel: int = 3, *, width: int, causal: bool) -> nn.Module:
    """Neighbours alone."""
    return Convolution(width, kernel, causal=causal)


def convolution2d(n: int = 3, *, width: int, causal: bool) -> nn.Module:
    """The n x n cells of a picture around each."""
    if causal:
        raise SaccadeError("convolution2d reads a picture: an encoder's mixer alone")
    return Convolution2d(width, n)


def graph(
    gather: str = "sum",
    own: bool | None = None,
    activation: str = "relu",
    project: bool = True,
    *,
    width: int,
    causal: bool,
) -> nn.Module:
    """The neighbours in a graph, summed."""
    if causal:
        raise SaccadeError("graph reads the nodes of a graph: an encoder's mixer alone")
    return GraphConvolution(width, gather, own, activation, project)


def gat(
    heads: int = 8,
    activation: str = "elu",
    dropout: float = 0.0,
    project: bool = True,
    *,
    width: int,
    causal: bool,
) -> nn.Module:
    """The neighbours in a graph, each as much as it is looked at."""
    if causal:
        raise SaccadeError("gat reads the nodes of a graph: an encoder's mixer alone")
    return GraphAttention(width, heads, activation, dropout, project)


def deepset(gather: str = "max", activation: str = "none", *, width: int, causal: bool) -> nn.Module:
    """Each vector beside what the whole set has in common."""
    if causal:
        raise SaccadeError("deepset reads a whole set: an encoder's mixer alone")
    return DeepSet(width, gather, activation)


def induced(points: int = 16, *, causal: bool, parts: Any) -> nn.Module:
    """Some learned vectors look at all, and all look at those."""
    if causal:
        raise SaccadeError("induced reads a whole set: an encoder's mixer alone")
    return Induced(parts, points)


def dilated(kernel: int = 3, rates: int = RATES, *, width: int, causal: bool, number: int) -> nn.Module:
    """Neighbours 1, 2, 4 ... apart, layer after layer."""
    if not isinstance(rates, int) or isinstance(rates, bool) or not 1 <= rates <= 20:
        raise SaccadeError(f"dilated: rates is a whole number from 1 to 20; got {rates!r}")
    return Convolution(width, kernel, dilation=1 << number % rates, causal=causal)


def _checked_both(both: bool, causal: bool, kind: str) -> bool:
    """`both` as it is; refuses it for a decoder, which cannot see the future."""
    if not isinstance(both, bool):
        raise SaccadeError(f"{kind}: both is True or False; got {both!r}")
    if both and causal:
        raise SaccadeError(f"{kind}: a decoder cannot read both ways: write mixer for it, and encoder_mixer beside")
    return both


MIXERS: dict[str, Callable[..., Any]] = {
    "attention": attention,
    "composite": composite,
    "forgetting": forgetting,
    "gated": gated,
    "rnn": rnn,
    "gru": gru,
    "lstm": lstm,
    "convolution": convolution,
    "dilated": dilated,
    "convolution2d": convolution2d,
    "graph": graph,
    "gat": gat,
    "deepset": deepset,
    "induced": induced,
}
