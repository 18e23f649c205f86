"""What an attention layer cannot take, refused in one sentence each."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask, causal
from saccade.attend.meaning import called
from saccade.attend.numbers import count, share
from saccade.error import SaccadeError


def refuse_sizes(width: int, heads: int, kv_heads: int, head_width: int | None, dropout: float) -> None:
    """Sizes that are not whole numbers or do not divide each other."""
    for name, value in (
        ("width", width),
        ("heads", heads),
        ("kv_heads", kv_heads),
        ("head_width", 1 if head_width is None else head_width),
    ):
        count("Attention", name, value)
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
            raise SaccadeError(
                "start= is where x stands in a context, and self-attention counts by itself: leave it out"
            )
    elif context.shape[0] != x.shape[0]:
        raise SaccadeError(f"x has a batch of {x.shape[0]} and context of {context.shape[0]}")
    if values is not None and (context is None or values.shape[:2] != context.shape[:2]):
        raise SaccadeError("values are found in a context, one at each of its positions: pass both, of one length")


def refuse_places(layer: Any, context: Tensor | None, places: Tensor | None, bias: Tensor | None) -> None:
    """Places where the position takes none, and a bias beside a summary."""
    if bias is not None and layer.summary is not None:
        raise SaccadeError("a summary sums keys into slots, and a bias is for pairs of queries and keys: pass none")
    if places is None:
        return
    if context is not None:
        raise SaccadeError("places= are those of x in self-attention; where x stands in a context, start= says")
    if layer.position is not None and "heads" not in layer.position.doors and not layer.position.placed:
        raise SaccadeError(
            f"the position {called(layer.position)!r} counts distances along one axis and takes no places: "
            "write 'rotary' or 'offsets((h, w))', or 'sinusoid' or 'learned(n)' of the input"
        )


def refuse_beside_summary(values: Tensor | None, cache: Cache | None) -> None:
    """A cache or separate values beside a summary."""
    if cache is not None:
        raise SaccadeError("a summary mixes all positions, and every step would change what a cache holds: pass none")
    if values is not None:
        raise SaccadeError("a summary sums one context into slots: pass no values beside it")


def refuse_context(cache: Cache, context: Tensor) -> None:
    """Another context than the one that a cache holds."""
    held = cache.rows, cache.length
    if held != context.shape[:2]:
        raise SaccadeError(
            f"this cache holds a context of (batch, length) = {held}, the call brings one of "
            f"{tuple(context.shape[:2])}: make a new cache for a new context"
        )


def refuse_mask(cache: Cache, mask: Mask) -> None:
    """A mask that could ask for what this cache may have forgotten; refused from the first call on, not only then."""
    if cache.fold is not None and any(term is not causal for term in mask.terms()):
        raise SaccadeError(
            f"this cache folds old keys into sums, in which {mask!r} can hide none of them: make Cache()"
        )
    if cache.window is not None and not mask.relative():
        raise SaccadeError(
            f"this cache forgets what lies back, and {mask!r} means absolute places: make Cache() without a window"
        )
