"""What an attention layer cannot take, told in one sentence each."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask, causal, everyone
from saccade.attend.meaning import called
from saccade.attend.numbers import share
from saccade.error import SaccadeError


def refuse_sizes(width: int, heads: int, kv_heads: int, head_width: int | None, dropout: float) -> None:
    """Sizes that no layer has."""
    for name, value in (
        ("width", width),
        ("heads", heads),
        ("kv_heads", kv_heads),
        ("head_width", 1 if head_width is None else head_width),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SaccadeError(f"Attention: {name} is a whole number from 1; got {value!r}")
    if head_width is None and width % heads:
        raise SaccadeError(f"Attention: {heads} heads do not divide a width of {width}; or pass head_width")
    if heads % kv_heads:
        raise SaccadeError(f"Attention: {kv_heads} key heads do not divide {heads} heads")
    share("Attention: dropout", dropout)


def refuse_inputs(layer: Any, x: Tensor, context: Tensor | None, values: Tensor | None, start: int | None) -> None:
    """Inputs of other shapes than the layer's, or of different batches."""
    inside = (("context", context, layer.context_width), ("values", values, layer.context_width))
    for name, each, width in (("x", x, layer.width), *inside):
        if each is not None and (each.dim() != 3 or each.shape[-1] != width):
            raise SaccadeError(f"{name} must be (batch, length, {width}); got {tuple(each.shape)}")
    if context is None:
        if layer.context_width != layer.width:
            raise SaccadeError(f"this layer looks at a context of width {layer.context_width}: pass one")
        if start is not None:
            raise SaccadeError("start= says where x stands in a context, and self-attention has its own: pass none")
    elif context.shape[0] != x.shape[0]:
        raise SaccadeError(f"x has a batch of {x.shape[0]} and context of {context.shape[0]}")
    if values is not None and (context is None or values.shape[:2] != context.shape[:2]):
        raise SaccadeError("values are found in a context, one at each of its positions: pass both, of one length")


def refuse_places(layer: Any, context: Tensor | None, places: Tensor | None, bias: Tensor | None) -> None:
    """Places that nobody could take, and a bias of slots."""
    if bias is not None and layer.summary is not None:
        raise SaccadeError("a summary sums keys into slots, which a bias of pairs knows nothing of: pass none")
    if places is None:
        return
    if context is not None:
        raise SaccadeError("places= are those of x in self-attention; where x stands in a context, start= says")
    if layer.position is not None and "heads" not in layer.position.doors:
        raise SaccadeError(
            f"the position {called(layer.position)!r} counts distances along one axis and takes no places: "
            "write 'rotary', or 'sinusoid' or 'learned(n)' of the input"
        )


def refuse_mask(cache: Cache, mask: Mask) -> None:
    """A call's mask that would ask a cache for what it may have forgotten, from the first call on."""
    if cache.fold is not None and any(term is not causal and term is not everyone for term in mask.terms()):
        raise SaccadeError(
            f"this cache folds what lies back into sums, of which {mask!r} could hide nothing: make Cache()"
        )
    if cache.window is not None and not mask.relative():
        raise SaccadeError(
            f"this cache forgets what lies back, and {mask!r} means absolute places: make Cache() without a window"
        )
