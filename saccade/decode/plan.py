"""`Plan`: one token a row through a decoder, without what only longer calls need.

A step of one token is some hundred small calls around a few large products, and a module's generality (checks, masks,
grids, hooks) would cost as much as a tenth of them. The plan calls the same parts directly. A block that it does
not know (a score that is no product, positions on scores, experts, a block of your own) runs as a module, so that the
result is the same; tests compare the plan with the modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.grid import Grid
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask, causal, window
from saccade.attend.meaning import Meaning
from saccade.attend.normaliser import softmax
from saccade.attend.numbers import bound
from saccade.attend.score import dot, scaled_dot
from saccade.attend.seen import Seen, versions
from saccade.decode.quantise import Int8, rows, together
from saccade.model.block import BARE, Block, BlockCache
from saccade.model.cross import alone, attention
from saccade.model.feed import IN_PLACE, FeedForward
from saccade.model.linear import linear
from saccade.model.model import Model, State

Part = Callable[..., Tensor]


class Moment:
    """What all blocks share in one step: the positions of the rows, and the masks that hide keys from them."""

    def __init__(self, state: State) -> None:
        self.state, self.start = state, state.start
        self._masks: dict[int | None, Tensor | None] = {}
        self._context: tuple[Tensor | None] | None = None  # a tuple once it is known, for the mask itself may be None

    def steps(self, device: torch.device) -> Tensor:
        """The position of each row's token, (N or 1, 1)."""
        if isinstance(self.start, Tensor):
            return self.start.view(-1, 1)
        return torch.tensor([[self.start]], device=device)

    def own(self, cache: Cache, reach: int | None, device: torch.device) -> Tensor | None:
        """Which keys each row may look at, (N,1,1,S); None: all that it is given."""
        if cache.lengths is None:
            return None  # rows of one length: `_self_attention` cuts off what the window hides
        if reach not in self._masks:
            last = (cache.lengths - 1 - cache.forgotten).view(-1, 1, 1, 1)
            places = torch.arange(cache.held, device=device)
            may = places <= last
            self._masks[reach] = may if reach is None else may & (places > last - reach)
        return self._masks[reach]

    def context(self) -> Tensor | None:
        """Which places of its source each row may look at, (N,1,1,S); None: all."""
        if self._context is None:
            padding, context, may = self.state.context_padding, self.state.context, None
            if padding is not None and context is not None:
                lengths = bound("padding", "lengths", padding.lengths).to(context.device).view(-1, 1, 1, 1)
                S = context.shape[1]
                places = torch.arange(S, device=context.device)
                may = places < lengths if padding.side == "right" else places >= S - lengths
            self._context = (may,)
        return self._context[0]


class Plan:
    """The steps of one model, as it is now: make a new one when its modules change."""

    def __init__(self, model: Model) -> None:
        assert model.decoder is not None
        self.model = model
        self._blocks = [
            _block(block, reach, model.decoder.reach)
            for block, reach in zip(model.decoder.blocks, model.decoder.windows, strict=True)
        ]
        norm = model.decoder.norm
        self._norm = None if norm is None else _direct_forward(norm)

    @staticmethod
    def pays(model: Model) -> bool:
        """Whether the plan computes what the modules would: it calls no hooks, knows no dropout, and hands nothing but
        states from block to block.
        """
        assert model.decoder is not None
        return (
            model.decoder.shares is None
            and not any(
                module.training or module._forward_hooks or module._forward_pre_hooks for module in model.modules()
            )
            and not (nn.modules.module._global_forward_hooks or nn.modules.module._global_forward_pre_hooks)
        )

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """The states (N,C) that the head would be shown after tokens (N,), which `state` then holds too."""
        moment = Moment(state)
        steps = moment.steps(tokens.device)
        x = self.model.target_embed({"tokens": tokens.unsqueeze(1)}, steps.expand(tokens.shape[0], 1)).squeeze(1)
        for block, cache in zip(self._blocks, state.caches, strict=True):
            x = block(x, moment, cache)
        return x if self._norm is None else self._norm(x)


def _block(block: nn.Module, reach: int | None, mask: Mask | None) -> Part:
    """One block: x (N,C), moment, caches -> (N,C). reach: how many positions it looks at; mask: which of them a segment
    memory allows.
    """
    if type(block) is not Block or not _is_plain_block(block):
        return lambda x, moment, cache: block(
            x.unsqueeze(1), moment.state.context, mask=mask, context_mask=moment.state.context_padding, cache=cache
        ).squeeze(1)
    attend = _self_attention(block.attention, reach, mask)
    cross = None if block.cross is None else _cross_attention(block.cross)
    feed = _feed(block.feed)
    norm, feed_norm = _direct_forward(block.attention_norm), _direct_forward(block.feed_norm)
    cross_norm = None if block.cross_norm is None else _direct_forward(block.cross_norm)
    alpha = block.alpha

    def parallel(x: Tensor, moment: Moment, cache: BlockCache) -> Tensor:
        y = attend(norm(x), moment, cache.own).add_(x).add_(feed(feed_norm(x)))
        return y if cross is None or cross_norm is None else y.add_(cross(cross_norm(x), moment, cache.context))

    def pre(x: Tensor, moment: Moment, cache: BlockCache) -> Tensor:
        x = attend(norm(x), moment, cache.own).add_(x)
        if cross is not None and cross_norm is not None:
            x = cross(cross_norm(x), moment, cache.context).add_(x)
        return feed(feed_norm(x)).add_(x)

    def post(x: Tensor, moment: Moment, cache: BlockCache) -> Tensor:
        x = norm(attend(x, moment, cache.own).add_(x, alpha=alpha))
        if cross is not None and cross_norm is not None:
            x = cross_norm(cross(x, moment, cache.context).add_(x, alpha=alpha))
        return feed_norm(feed(x).add_(x, alpha=alpha))

    return {"parallel": parallel, "pre": pre}.get(block.order, post)


def _is_plain_block(block: Block) -> bool:
    """Whether this is a transformer's block as the plan knows it."""
    whole = block.order not in BARE and block.feed is not None and isinstance(block.kind, alone | attention)
    return whole and _is_plain_attention(block.mix) and (block.cross is None or _is_plain_attention(block.cross))


def _is_plain_attention(layer: nn.Module) -> bool:
    """Whether this is attention as the plan knows it."""
    if type(layer) is not Attention or layer.kernel not in ("auto", "sdpa"):
        return False
    if layer.summary is not None or layer.gate is not None:
        return False
    terms = () if layer.mask is None else layer.mask.terms()
    known = all(term is causal or isinstance(term, window) for term in terms)
    doors = frozenset() if layer.position is None else layer.position.doors
    product = isinstance(layer.score, dot | scaled_dot) and isinstance(layer.normaliser, softmax)
    return known and product and doors <= {"heads"} and (causal in terms or layer.mask is None)


def _self_attention(layer: Attention, reach: int | None, mask: Mask | None) -> Part:
    """Self-attention: x (N,C), moment, cache -> (N,C)."""
    project = _joint_projection(layer.query, layer.key, layer.value)
    heads, kv_heads, width = layer.heads, layer.kv_heads, layer.head_width
    turn, query_norm, key_norm = layer.position, layer.query_norm, layer.key_norm
    look = _attend_and_project(layer)

    def attend(x: Tensor, moment: Moment, cache: Cache) -> Tensor:
        N = x.shape[0]
        q, k, v = project(x)
        q, k, v = q.view(N, heads, 1, width), k.view(N, kv_heads, 1, width), v.view(N, kv_heads, 1, width)
        if query_norm is not None and key_norm is not None:
            q, k = query_norm(q), key_norm(k)
        if turn is not None:
            steps = moment.steps(x.device)
            q, k = turn.on_heads(q, steps), turn.on_heads(k, steps)
        k, v = cache.append(k, v)
        for watcher in layer.watchers:
            start = moment.start - cache.forgotten
            watcher.calls.append(_record(layer, q, k, Grid(1, k.shape[2], start, x.device), mask))
            cache.watched = True
        if reach is not None and cache.lengths is None:
            k, v = k[:, :, -reach:], v[:, :, -reach:]
        return look(q, k, v, moment.own(cache, reach, x.device))

    return attend


def _cross_attention(layer: Attention) -> Part:
    """Cross-attention over keys and values that were projected before: x (N,C), moment, cache -> (N,C)."""
    query, heads, width, query_norm = _direct_forward(layer.query), layer.heads, layer.head_width, layer.query_norm
    look = _attend_and_project(layer)

    def attend(x: Tensor, moment: Moment, cache: Cache) -> Tensor:
        k, v = cache.keys, cache.values
        q = query(x).view(cache.rows, -1, heads, width).transpose(1, 2)  # beams of one source ask it as one
        q = q if query_norm is None else query_norm(q)
        assert k is not None
        assert v is not None
        for watcher in layer.watchers:
            seen = _record(layer, q, k, Grid(q.shape[2], k.shape[2], 0, x.device))
            seen = seen._replace(meaning=seen.meaning._replace(mask=moment.state.context_padding))
            watcher.calls.append(seen.apart(q.shape[2]))
            cache.watched = True
        return look(q, k, v, moment.context())

    return attend


def _record(layer: Attention, q: Tensor, k: Tensor, grid: Grid, mask: Mask | None = None) -> Seen:
    """What a watcher keeps of a call, as `Attention` itself would have recorded it."""
    masks = [each for each in (layer.mask, mask) if each is not None]
    allowed = reduce(and_, masks) if masks else None
    meaning = Meaning(layer.score, allowed, layer.normaliser, layer.position)
    return Seen(q, k, meaning, grid, versions(meaning, grid))


def _attend_and_project(layer: Attention) -> Part:
    """softmax(q k^T) v, and out: (N,H,1,D) or, where K rows share their keys, (N/K,H,K,D) -> (N,C)."""
    assert isinstance(layer.score, dot | scaled_dot)
    assert isinstance(layer.normaliser, softmax)
    out, grouped = _direct_forward(layer.out), layer.heads != layer.kv_heads
    empty = torch.empty(0, layer.head_width)
    scale = layer.score.factors(empty, empty)[2] * layer.normaliser.beta
    width = layer.heads * layer.head_width

    def look(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None) -> Tensor:
        y = F.scaled_dot_product_attention(q, k, v, may, scale=scale, enable_gqa=grouped)
        return out(y.transpose(1, 2).reshape(-1, width))

    return look


def _feed(feed: nn.Module) -> Part:
    """(N,C) -> (N,C)."""
    if type(feed) is not FeedForward:
        return lambda x: feed(x.unsqueeze(1)).squeeze(1)
    down, gated = _direct_forward(feed.down), feed.gate is not None
    activate = IN_PLACE.get(feed.activation, feed.activation)
    project = _joint_projection(feed.up) if feed.gate is None else _joint_projection(feed.gate, feed.up)

    def run(x: Tensor) -> Tensor:
        inner = project(x)
        y = activate(inner[0])
        return down(y.mul_(inner[1]) if gated else y)

    return run


def _joint_projection(*layers: nn.Module) -> Callable[[Tensor], Sequence[Tensor]]:
    """Several projections of the same rows, in one product where they are quantised."""
    quantised = [layer for layer in layers if type(layer) is Int8]
    if len(quantised) == len(layers):
        joined, sizes = together(quantised), [layer.weight.shape[0] for layer in quantised]
        if len(sizes) == 1:
            return lambda x: (joined.product(*rows(x)),)
        return lambda x: joined.product(*rows(x)).split_with_sizes(sizes, 1)
    calls = [_direct_forward(layer) for layer in layers]
    return lambda x: [call(x) for call in calls]


def _direct_forward(module: nn.Module) -> Part:
    """A module's forward without the cost of calling a module."""
    if type(module) is nn.LayerNorm:
        shape, weight, bias, eps = module.normalized_shape, module.weight, module.bias, module.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    if type(module) is nn.Linear:
        matrix, offset = module.weight, module.bias
        return lambda x: linear(x, matrix, offset)
    return module.forward
