"""`Attention`: the layer. Projections, heads, position and cache around one attention (Vaswani et al. 2017).

Grouped key heads: Shazeer 2019 (one), Ainslie et al. 2023 (some).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attend import linear
from saccade.attend.algebra import everyone, given
from saccade.attend.cache import Cache, Fold
from saccade.attend.edges import Edges
from saccade.attend.grid import Grid, place
from saccade.attend.kernel import Kernel, as_kernel, run
from saccade.attend.mask import Mask, as_mask, causal, conjunction, padding, together
from saccade.attend.meaning import Meaning, agree, called
from saccade.attend.normaliser import Normaliser, as_normaliser
from saccade.attend.position import Position, as_position
from saccade.attend.refuse import (
    refuse_beside_summary,
    refuse_context,
    refuse_inputs,
    refuse_mask,
    refuse_places,
    refuse_sizes,
)
from saccade.attend.score import Score, additive, as_score, offered, turns
from saccade.attend.seen import Log, Seen, versions
from saccade.attend.summary import allows, as_summary, linformer
from saccade.error import SaccadeError


class Call(NamedTuple):
    """One call as a kernel takes it. before: what still earlier keys and values were folded into."""

    q: Tensor  # (B,H,T,D)
    k: Tensor  # (B,G,S,D)
    v: Tensor  # (B,G,S,D)
    meaning: Meaning
    grid: Grid
    before: Tensor | None = None

    def in_segments(self, segments: tuple[Tensor, Tensor] | None) -> Call:
        """The same with the segments of its queries (B,T) and keys (B,S)."""
        return self if segments is None else self._replace(grid=self.grid._replace(segments=segments))

    def biased(self, bias: Tensor | None) -> Call:
        """The same with something added to its scores."""
        if bias is None:
            return self
        grid = self.grid.biased(bias, *self.q.shape[:2])
        return self._replace(meaning=self.meaning._replace(biased=True), grid=grid)


class Attention(nn.Module):
    """Multi-head self-attention, or cross-attention with a context.

    x (B,T,width), context (B,S,context_width) -> (B,T,width). query, key, value and out are separate projections; one
    stacked product is not faster here (LOG.md), and each keeps its name. `mask` of the layer and of the call must both
    allow a look. `head_norm` makes a norm of a head's width for the queries and one for the keys. With a `summary`
    ("linformer(256, 4096)") queries look at sums of keys and values, after norms and positions; without those, x is
    summed before it is projected, which is the same with less work. Without `project`, states meet as they are, as
    they did before transformers (Bahdanau et al. 2015, Luong et al. 2015): c_t = sum_j softmax(score(s_t, h_j)) h_j.
    With a `gate`, what is found is multiplied by sigmoid(W_g x + b_g) before the last product (Jumper et al. 2021).
    """

    query: Any  # as key, value and out: nn.Linear, or its quantised form; without `project` nn.Identity
    key: Any
    value: Any
    out: Any
    context_breaks: ClassVar[Mapping[str, str]] = {}  # a context may come in any order
    learned: tuple[str, ...] = ()  # which sides are vectors of the model itself: those that look ("rows"), "columns"
    gate: Any  # nn.Linear, or None
    watchers: tuple[Log, ...] = ()  # `watch` puts its logs here, and takes them away again

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        context_width: int | None = None,
        head_width: int | None = None,
        score: Score | str = "scaled_dot",
        mask: Mask | Tensor | str | None = None,
        normaliser: Normaliser | str = "softmax",
        position: Position | str | None = None,
        summary: nn.Module | str | None = None,
        kernel: Kernel | ModuleType | str = "auto",
        bias: bool | str = True,
        project: bool = True,
        gate: bool = False,
        head_norm: Callable[[int], nn.Module] | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not isinstance(bias, bool) and bias != "qkv":
            raise SaccadeError(f"Attention: bias is True, False or 'qkv' (all but the last projection); got {bias!r}")
        kv_heads = heads if kv_heads is None else kv_heads
        refuse_sizes(width, heads, kv_heads, head_width, dropout)
        self.width, self.heads, self.kv_heads, self.dropout = width, heads, kv_heads, dropout
        self.context_width = width if context_width is None else context_width
        self.head_width = width // heads if head_width is None else head_width
        self.project = project
        if not project and {heads * self.head_width, kv_heads * self.head_width, self.context_width} != {width}:
            raise SaccadeError(
                "Attention: without projections all heads share the width as it is: leave out kv_heads, head_width and "
                "context_width"
            )
        made = nn.Linear if project else nn.Identity  # Identity takes the same arguments and ignores them
        self.query = made(width, heads * self.head_width, bias=bool(bias))
        self.key = made(self.context_width, kv_heads * self.head_width, bias=bool(bias))
        self.value = made(self.context_width, kv_heads * self.head_width, bias=bool(bias))
        self.out = made(heads * self.head_width, width, bias=bias is True)
        self.gate = nn.Linear(width, heads * self.head_width) if gate else None
        self.query_norm = None if head_norm is None else head_norm(self.head_width)
        self.key_norm = None if head_norm is None else head_norm(self.head_width)
        self.score = as_score(score, width=self.head_width, heads=heads)
        self.position = as_position(position, head_width=self.head_width, heads=heads, input_width=width)
        if self.position is not None and "input" in self.position.doors:
            name = type(self.position).__name__
            raise SaccadeError(f"the position {name!r} belongs to the embedding, not to an attention layer")
        self.mask = None if mask is None else as_mask(mask)
        self.normaliser = as_normaliser(normaliser)
        agree(self.score, self.normaliser)
        self.summary = as_summary(summary, heads=kv_heads)
        if self.summary is not None:
            allows(self.mask, self.position)
        as_kernel(kernel)  # refuses a wrong name now; the name is kept, since a module could not be copied
        self.kernel = kernel
        for projection in (self.query, self.key, self.value, self.out) if project else ():
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)
        if self.gate is not None:
            nn.init.zeros_(self.gate.weight)
            nn.init.ones_(self.gate.bias)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        values: Tensor | None = None,
        mask: Mask | Tensor | str | None = None,
        cache: Cache | None = None,
        start: int | None = None,
        segments: tuple[Tensor, Tensor] | None = None,
        places: Tensor | None = None,
        bias: Tensor | None = None,
        edges: Edges | None = None,
    ) -> Tensor:
        """With a cache, self-attention adds x and looks at all of it; cross-attention projects the context once.

        `values`: what is found in the context, where it is not what is looked at (B,S,context_width).
        `start`: where x stands among the positions of a context that holds its own past (Transformer-XL); else 0.
        `segments`: of x (B,T) and of what it looks at (B,S), for the positions that ask.
        `places`: where x stands, on one axis (B or 1,T) or two (B or 1,T,2), for positions that ask; self-attention
        counts 0, 1, 2 ... without them; what stands nowhere (a class token) is at -1. `bias`: what this call adds to
        the scores, broadcasts to (B,H,T,S). `edges`: those of the graphs that x is made of, for the mask `neighbours`.
        """
        refuse_inputs(self, x, context, values, start)
        refuse_places(self, context, places, bias)
        if self.summary is not None:
            refuse_beside_summary(values, cache)
            call = self._over_slots(self.summary, x, x if context is None else context, mask, start, places)
        elif context is None:
            call = self._over_itself(x, mask, cache, places, edges)
        else:
            call = self._over_context(x, context, context if values is None else values, mask, cache, start)
        call = call.in_segments(segments).biased(bias)
        if self.watchers:
            self._record(call, cache)
        kernel, dropout = as_kernel(self.kernel), self.dropout if self.training else 0.0
        output = run(kernel, call.q, call.k, call.v, call.meaning, call.grid, dropout, call.before)
        del call  # frees q, k and v: their memory, still in the processor's cache, serves the next product
        found = output.transpose(1, 2).flatten(2)  # (B,H,T,D) -> (B,T,H*D)
        return self.out(found if self.gate is None else found * self.gate(x).sigmoid())

    def _over_itself(
        self,
        x: Tensor,
        mask: Mask | Tensor | str | None,
        cache: Cache | None,
        places: Tensor | None,
        edges: Edges | None = None,
    ) -> Call:
        """Self-attention: x looks at itself and, with a cache, at all that came before it."""
        begin = 0 if cache is None else cache.start
        at = begin if places is None else places
        q = self._with_position(self._queries(x), at)
        k, v = self._with_position(self._keys(x), at), self._values(x)
        allowed = self._combined_mask(mask, edges)
        if cache is None:
            grid = place(q, k, begin)._replace(places=places)
            return Call(q, k, v, self._meaning(allowed, q, k.shape[2]), grid)
        if mask is not None:
            refuse_mask(cache, as_mask(mask))
        k, v = cache.append(*self._for_cache(k, v))
        meaning = self._meaning(_hide_behind_ends(allowed, cache), q, k.shape[2])
        return Call(q, k, v, meaning, place(q, k, begin - cache.forgotten), cache.state)

    def _over_context(
        self,
        x: Tensor,
        context: Tensor,
        values: Tensor,
        mask: Mask | Tensor | str | None,
        cache: Cache | None,
        start: int | None,
    ) -> Call:
        """Cross-attention: x looks at a context, whose keys and values a cache keeps from the first call on."""
        begin, again = 0 if start is None else start, cache is not None and cache.length > 0
        offers = None if cache is None else self._offered_score()
        q = self._with_position(self._queries(x), begin)
        k, v = self._context_keys_and_values(context, values, cache, offers)
        meaning = self._meaning(self._combined_mask(mask), q, k.shape[2])
        if again and start is None and (self.position is not None or _asks_for_positions(meaning.mask)):
            raise SaccadeError("a step of cross-attention with a cache needs start= where mask or position ask for it")
        if offers is not None:
            meaning = meaning._replace(score=offers)
        return Call(q, k, v, meaning, place(q, k, begin))

    def _over_slots(
        self,
        summary: nn.Module,
        x: Tensor,
        context: Tensor,
        mask: Mask | Tensor | str | None,
        start: int | None,
        places: Tensor | None,
    ) -> Call:
        """x looks at the slots into which keys and values are summed; they stand nowhere, and all may look at them."""
        at = 0 if places is None else places
        q = self._with_position(self._queries(x), at if start is None else start)
        meaning = self._meaning(self._combined_mask(mask), q, context.shape[1])
        k, v = self._slots(summary, context, meaning.mask, at)
        return Call(q, k, v, meaning._replace(mask=None), place(q, k, 0))

    @property
    def window(self) -> int | None:
        """How many positions back, its own among them, a query looks at most; None: as many as there are."""
        if self.mask is None or not self.mask.relative():
            return None
        return self.mask.back()

    @property
    def fixed(self) -> str | None:
        """The part of this layer that depends on absolute positions, in words; None: there is none.

        It means something else when queries and keys move together, as padding on the left and a memory move them.
        """
        absolute = [] if self.mask is None else [term for term in self.mask.terms() if not term.relative()]
        if absolute:
            return f"the mask {str(absolute[0])!r}"
        if self.position is not None and "heads" in self.position.doors and not turns(self.score):
            return f"the score {called(self.score)!r} of turned vectors"
        return None

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        if self.summary is not None:
            return dict.fromkeys(("permutation", "causality"), "the summary has weights for each place")
        found = {} if self.position is None else dict(self.position.breaks)
        found |= everyone.breaks if self.mask is None else self.mask.breaks
        return found if self.fixed is None else {"shift": f"{self.fixed} means absolute places", **found}

    @property
    def fold(self) -> Fold | None:
        """How a cache folds old keys and values into one state, where the kernel `linear` can go on from that."""
        meaning = Meaning(self.score, self.mask, self.normaliser, self.position)
        if self.kernel not in ("auto", "linear") or self.mask is not causal or linear.refuses(meaning) is not None:
            return None
        return partial(linear.fold, meaning)

    def stacked(self) -> Tensor:
        """[W_q; W_k; W_v], the one matrix whose product with x stacks queries, keys and values of all heads."""
        if not self.project:
            raise SaccadeError("this layer was made without projections: there is nothing to stack")
        if not self.query.weight.is_floating_point():
            raise SaccadeError("the weights of this layer are quantised: stack those of the model they were made from")
        return torch.cat((self.query.weight, self.key.weight, self.value.weight))

    def extra_repr(self) -> str:
        return f"width={self.width}, heads={self.heads}, kv_heads={self.kv_heads}, mask={self.mask}"

    def _queries(self, x: Tensor) -> Tensor:
        q = self._split(self.query(x), self.heads)  # (B,H,T,D)
        return q if self.query_norm is None else self.query_norm(q)

    def _keys(self, x: Tensor) -> Tensor:
        k = self._split(self.key(x), self.kv_heads)  # (B,G,S,D)
        return k if self.key_norm is None else self.key_norm(k)

    def _values(self, x: Tensor) -> Tensor:
        return self._split(self.value(x), self.kv_heads)  # (B,G,S,D)

    def _with_position(self, x: Tensor, start: int | Tensor) -> Tensor:
        """Queries or keys (B,H,T,D), turned if the position does so. start: the first position, or all places."""
        if self.position is None or "heads" not in self.position.doors:
            return x
        return self.position.on_heads(x, _places(x, start))

    def _for_cache(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values that a cache may keep: copies where, without projections, they are the caller's own."""
        return (k, v) if self.project else (k.clone(), v.clone())

    def _context_keys_and_values(
        self, context: Tensor, values: Tensor, cache: Cache | None, offers: offered | None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of a context, (B,G,S,D) each, from the cache if it has them."""
        if cache is not None and cache.keys is not None and cache.values is not None:
            refuse_context(cache, context)
            return cache.keys, cache.values
        k, v = self._with_position(self._keys(context), 0), self._values(values)
        if cache is None:
            return k, v
        k, v = self._for_cache(k, v)
        return cache.append(k if offers is None else offers.score.offer(k), v)

    def _offered_score(self) -> offered | None:
        """The additive score for a cache that keeps W_k k in place of the keys k; None: it keeps the keys."""
        placed = self.position is not None and "scores" in self.position.doors  # such positions need the keys
        if placed or self.heads != self.kv_heads or not isinstance(self.score, additive):
            return None
        return offered(self.score)

    def _slots(self, summary: nn.Module, x: Tensor, mask: Mask | None, at: int | Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the slots, (B,G,slots,D).

        Without norm and position, x may be summed before it is projected: both are linear, and this way may be cheaper.
        """
        bare = self.key_norm is None and self.position is None and type(self.key) is type(self.value) is nn.Linear
        if bare and isinstance(summary, linformer) and summary.sooner(x.shape[1], x.shape[2], self.key.out_features):
            k, v = summary.project(x, self.key, self.value, mask)
            return self._split(k, self.kv_heads), self._split(v, self.kv_heads)
        k, v = summary(self._with_position(self._keys(x), at), self._values(x), mask)
        return k, v

    def _combined_mask(self, mask: Mask | Tensor | str | None, edges: Edges | None = None) -> Mask | None:
        """What the masks of the layer and of the call both allow."""
        both = together(self.mask, None if mask is None else as_mask(mask))
        return both if both is None or edges is None else both.bind(edges=edges)

    def _meaning(self, mask: Mask | None, q: Tensor, keys: int) -> Meaning:
        """What is to be computed; refuses a mask whose data do not fit this call."""
        if mask is not None:
            B, H, T, _ = q.shape
            mask.fits(B, H, T, keys, q.device)
        return Meaning(self.score, mask, self.normaliser, self.position)

    def _record(self, call: Call, cache: Cache | None) -> None:
        """Notes the call for all watchers; without projections q and k are the caller's own and are copied."""
        q, k = (each.detach() if self.project else each.detach().clone() for each in (call.q, call.k))
        folded = call.before is not None
        for watcher in self.watchers:
            watcher.calls.append(Seen(q, k, call.meaning, call.grid, versions(call.meaning, call.grid), folded))
        if cache is not None:
            cache.watched = True

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, self.head_width)).transpose(1, 2)  # (B,T,H*D) -> (B,H,T,D)


def _hide_behind_ends(mask: Mask | None, cache: Cache) -> Mask | None:
    """The mask; where rows of the cache differ in length, also without what lies after each row's end.

    `causal` hides that already.
    """
    if cache.lengths is None or conjunction(mask).causal:
        return mask
    return together(mask, padding(cache.lengths - cache.forgotten))


def _asks_for_positions(mask: Mask | None) -> bool:
    """Whether a mask depends on the positions of queries; a bool tensor does not: its rows are simply those of q."""
    is_causal, _, others = conjunction(mask)
    return is_causal or not all(isinstance(term, given) for term in others)


def _places(x: Tensor, start: int | Tensor) -> Tensor:
    """The places of x (B,H,T,D), (B or 1,T) or (B or 1,T,2). start: the first of them, one or (B,); or all of them."""
    if not isinstance(start, Tensor):
        return torch.arange(start, start + x.shape[2], device=x.device).unsqueeze(0)
    if start.dim() > 1:
        return start.to(x.device)
    return start.view(-1, 1) + torch.arange(x.shape[2], device=x.device)
