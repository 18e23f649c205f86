"""`Look`: one text through one model, and what every layer looked at meanwhile.

    seen = saccade.load("runs/dates").look("fr: samedi 3 mai 1979")
    seen.map("alignment", words=True).values
    seen.statistics(seen.layers[0].name)

The model runs once, by its fast kernels; maps are computed afterwards, for what is asked (`watch`, `weighed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import torch

from saccade.attend.layer import Attention
from saccade.decode.sequence import is_whole
from saccade.error import SaccadeError, nearest
from saccade.field.field import PooledTarget
from saccade.field.text.text import Text
from saccade.field.unit import Side
from saccade.look.ablation import Ablation, ablate
from saccade.look.cuts import Cuts, borders_of
from saccade.look.map import Map, fold, token_groups, within
from saccade.look.page import page
from saccade.look.pair import QueryKeyPair, pair_of
from saccade.look.shown import Shown, resting, shown
from saccade.look.statistic import Scene, Spots, Statistic, sampled, statistics
from saccade.look.view import View
from saccade.look.watch import watch
from saccade.look.weighed import Layer, Weighed, alignment, check_head, rollout, single
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.example import Example
from saccade.task.task import Task

ALIGNMENT, ROLLOUT = "alignment", "rollout:"  # maps that are made of several layers
PAIRS = "pairs"  # the map of what the model says of each pair of places
HIDDEN = ("special", "sink")
BROKEN = "\ufffd"  # what bytes become that are no whole character
EMBED = "embed."  # how the layers are called that make one unit of several values
DIGITS = 6  # a head's number has fewer than these
SINK = 0.3  # a column that takes more than this share of all looks is a sink
T = TypeVar("T")


def look(
    task: Task, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
) -> Look:
    """A look at a model that reads an input and writes an answer; target: look at this answer instead of its own.

    adds: a model without an X (a language model) goes on from the input; otherwise it reads the input alone.
    """
    return look_at(task, model, task.answer.example(model, raw, decode, target=target, adds=adds))


def look_at(task: Task, model: Model, example: Example) -> Look:
    """A look at what a model has read and written."""
    return Look(model, shown(task, example, model.config.join))


class Look:
    """`sides` are the sequences by name, `layers` the attention layers between them; `map`, `statistics`, `pair` and
    `ablation` compute what is asked of them.

    A model with an X and a decoder has a side for X, target (what its decoder read) and written (what each of these
    places wrote: the same moved by one); any other model has one. Several X are one side, or two, where the last looks
    at the others. Where layers cut a picture otherwise than X's field
    does (a class token, merged patches), each of these ways is a side.
    """

    def __init__(self, model: Model, shown: Shown) -> None:
        self.model, self.task, self.shown = model, shown.task, shown
        shown.fits(model)
        with resting(model), watch(model) as self.watched:
            states = shown.states(model)
            self.answer, self.told = shown.answer(model, states), shown.told(model, states)  # a pool may attend, too
        self._rollouts: dict[str, Weighed] = {}
        called = [name for name in self.watched.layers if self.watched.calls(name) and self._of_one(name)]
        cuts = Cuts(shown.sides, getattr(model.embed, "named", ()))
        self.layers = [self._layer(name, cuts) for name in called if self._attention(name).summary is None]
        self.sides = shown.marked(cuts.sides, self.told)
        if called and not self.layers:
            self.layer(called[-1])  # says why there is nothing to look at

    @property
    def begun(self) -> int:
        """The number of the first token that the model wrote; of a model that writes nothing, how many it read."""
        return max(map(len, self.sides.values())) if self.shown.target is None else self.shown.begun

    @property
    def output(self) -> str:
        """What the model wrote; of a model that does not write (a classifier), its answer."""
        if (said := self.answer.said or self.told) is not None:
            return said.text
        return "" if self.text is None else self.text.decode(self.shown.written)

    @property
    def pairs(self) -> torch.Tensor | None:
        """What the model says of each pair of places, (T,T), if it does."""
        head = self.model.head
        return None if self.told is None or head is None or head.reads != "pairs" else torch.tensor(self.told.value)

    @property
    def text(self) -> Text | None:
        """The vocabulary of its texts, where there are any."""
        return self.task.text

    @property
    def logprobs(self) -> list[float | None]:
        """Of each token of the predicted side; None for the first token of a text, which nothing predicts."""
        return [*self._unpredicted(None), *self.answer.logprobs]

    @property
    def top(self) -> list[list[tuple[int, float]]]:
        """The likeliest tokens at the place of each, with their log-probabilities."""
        return [*self._unpredicted([]), *self.answer.top]

    @property
    def matters(self) -> str | None:
        """What an ablation measures, in words; None: the model has no output that could become less likely."""
        if self.answer.said is not None:
            if self.task.y is None:
                return f"the log-probability of the label {self.output!r}"
            return cast(PooledTarget, self.task.y).matters(self.answer.said)
        if not self.answer.logprobs:
            return None
        count = len(self.shown.counted)
        tokens = f"{count} tokens" if count > 1 else "token"
        return f"the log-probability of the {tokens} {self.shown.counted_as}"

    @property
    def nbytes(self) -> int:
        """The memory that it holds."""
        return self.watched.nbytes

    def again(self, model: Model) -> Look:
        """The same tokens through other weights."""
        if _what_it_reads(model) != _what_it_reads(self.model):
            raise SaccadeError(
                "that model has another vocabulary or another kind of input: look at an input of its own"
            )
        return Look(model, self.shown)

    def layer(self, name: str) -> Layer:
        """The layer of this name."""
        found = {each.name: each for each in self.layers}
        if name in self.watched.layers and self._attention(name).summary is not None:
            raise SaccadeError(
                f"{name!r} attends to summaries of the whole text, so it has no weights for single tokens: "
                f"saccade.watch gives the weights of the summaries"
            )
        if name not in found:
            raise SaccadeError(f"no layer that looked is called {name!r}; {nearest(name, found)}")
        return found[name]

    @property
    def usual(self) -> str:
        """The map to begin with: the alignment where there is one, else the last layer."""
        if any(each.kind == "cross" for each in self.layers):
            return ALIGNMENT
        of_units = [each for each in self.layers if "columns" not in self._attention(each.name).learned]
        return (of_units or self.layers)[-1].name

    def map(
        self,
        layer: str | None = None,
        head: int | str = "mean",
        *,
        rows: tuple[int, int] | None = None,
        columns: tuple[int, int] | None = None,
        size: int | None = None,
        words: bool = False,
        hide: Sequence[str] = (),
    ) -> Map:
        """Who looked at whom. layer: a name, "alignment" (the mean of all cross-attention), "rollout:encoder" or
        "rollout:decoder", or "pairs": no look, but what the model says of each pair; head: a number (also in digits),
        "mean" or "max".

        words: sub-words become words, columns add up, rows are averaged. hide: "special" tokens, "sink" ones; the
        weights of the others stay as they are. rows and columns: from the first to before the last, of tokens or of
        words. size: cells a side at most; a cell is then the value furthest from 0 of all it covers.
        """
        layer, head = self.usual if layer is None else layer, _head_number(head)
        if size is not None and not (is_whole(size) and size > 0):
            raise SaccadeError(f"size is a whole number from 1; got {size!r}")
        weighed = self._weighed(layer, head)
        hidden = self._hidden_tokens(hide, weighed)
        tall = within(token_groups(self.sides[weighed.rows], words, hidden[0]), rows, "rows")
        wide = within(token_groups(self.sides[weighed.columns], words, hidden[1]), columns, "columns")
        return fold(weighed.weigh, tall, wide, "max" if head == "max" else "mean", size, weighed.title)

    def save(
        self,
        path: str | Path,
        layer: str | None = None,
        head: int | str = "mean",
        *,
        words: bool = False,
        hide: Sequence[str] = (),
        size: int | None = None,
        row: str | None = None,
    ) -> Path:
        """Writes a map as a picture (.svg, .png, .html; .gif: word by word, over a picture) or as numbers (.csv, .npz);
        layer "atlas": all heads, small;
        row: one row alone, by its name ("class", "3,4") or its number.

        A .html without a layer shows everything: the usual map, the atlas and the heads in numbers.
        """
        return View(layer, head, words, hide, size, row).write(self, path)

    def _repr_html_(self) -> str:
        return page(self)

    def statistics(self, layer: str) -> list[Statistic]:
        """Of each head of a layer; of a long text from some of its rows, evenly spread."""
        found = self.layer(layer)
        seen = self.watched.call(layer)
        rows = sampled(seen.q.shape[2])
        weights = self.watched.weights(layer, rows=rows)[0].cpu()
        may = seen.meaning.may(seen.grid.take(rows.to(seen.q.device)))
        S = weights.shape[-1]
        free = torch.ones(len(rows), S, dtype=torch.bool)
        allowed = free if may is None else may.expand(1, -1, len(rows), S)[0].any(0).cpu()
        side = self.sides[found.columns]
        tokens = [each.id for each in side.tokens] if found.rows == found.columns else None
        return statistics(Scene(weights, rows, allowed, tokens, _spots(side)))

    def pair(self, layer: str, head: int, row: int, column: int) -> QueryKeyPair:
        """How the weight of one row and column comes about."""
        found = self.layer(layer)
        for value, count, what in (
            (head, found.heads, "head"),
            (row, len(self.sides[found.rows]), "row"),
            (column, len(self.sides[found.columns]), "column"),
        ):
            if not is_whole(value) or not 0 <= value < count:
                raise SaccadeError(f"{what} {value} does not exist: {layer!r} has {count}")
        return pair_of(self.watched.call(layer), head, row, column)

    def instead(self, place: int, token: int) -> str:
        """The text before a place with another token there: what a model can be asked to go on with."""
        tokens = self.shown.text_tokens
        count = len(tokens)
        if not is_whole(place) or not 0 <= place < count:
            raise SaccadeError(f"place {place} does not exist: the text that goes on has {count}")
        assert self.text is not None
        found = self.text.decode([*tokens[:place], token])
        if token in self.text.silent or BROKEN in found:
            raise SaccadeError("this token is part of a character, or special: no text can end with it")
        return found

    def ablation(self, layer: str) -> Ablation:
        """By how much the log-probability that `matters` names changes without each head of a layer."""
        self.layer(layer)
        if self.matters is None:
            raise SaccadeError("this model has no output that could become less likely: there is nothing to measure")
        module = self._attention(layer)
        with resting(self.model):
            return ablate(
                module, lambda copies: self.shown.likely(self.model, copies, self.answer.said), self.shown.size
            )

    def _unpredicted(self, nothing: T) -> list[T]:
        """A placeholder for each token of the predicted side that nothing predicts."""
        return [nothing] * self.shown.given if self.answer.logprobs else []

    def _of_one(self, name: str) -> bool:
        """Whether a layer looked along the one sequence, and not among its pairs or inside its units, where each has a
        map of its own (`watch` gives those).
        """
        return not name.startswith(EMBED) and self.watched.call(name).q.shape[0] == 1

    def _layer(self, name: str, cuts: Cuts) -> Layer:
        """A layer by its name: decoder.blocks.3.cross, decoder.blocks.0.mixer.cross."""
        stack, *rest = name.split(".")
        kind = "cross" if "cross" in rest else "self"
        seen, attention = self.watched.call(name), self._attention(name)
        rows, columns = self.shown.sides_of(stack, kind)
        places = getattr(seen.grid, "places", None)
        if "columns" in attention.learned:
            wide = cuts.learned(seen.k.shape[2])
        else:
            wide = cuts.name_of(columns, None if kind == "cross" else places, seen.k.shape[2])
        tall = wide if rows == columns else rows
        if attention.learned:
            kind = "asks"
            tall = cuts.learned(seen.q.shape[2]) if "rows" in attention.learned else columns
        borders = borders_of(seen.meaning.mask)
        return Layer(name, stack, self._number(name), kind, tall, wide, attention.heads, borders)

    def _number(self, name: str) -> int:
        """The number of a layer's block; of blocks in stages, how many layers of the stack come before it."""
        stack, *rest = name.split(".")
        numbers = [int(each) for each in rest if each.isdecimal()]
        own = [each for each in self.watched.layers if each.startswith(f"{stack}.")]
        return numbers[0] if len(numbers) == 1 else own.index(name)

    def _attention(self, name: str) -> Attention:
        return cast(Attention, self.model.get_submodule(name))

    def _weighed(self, layer: str, head: int | str) -> Weighed:
        """The weights that a map is made of: of several layers, or of one."""
        check_head(head)
        if layer.startswith(ROLLOUT):
            if is_whole(head):
                raise SaccadeError("a rollout is of all heads: leave the head out")
            return self._rollout(layer.removeprefix(ROLLOUT))
        if layer == PAIRS:
            return self._told_of_pairs()
        if layer == ALIGNMENT:
            return alignment(self.watched, self.layers, head)
        return single(self.watched, self.layer(layer), head)

    def _told_of_pairs(self) -> Weighed:
        """The numbers of pairs, as a map of the places they are of."""
        told = self.pairs
        if told is None:
            raise SaccadeError("this model says nothing of pairs of places: name a layer")
        side = self.layers[-1].columns
        return Weighed(side, side, lambda rows: told[rows.to(told.device)][None], "what is said of each pair")

    def _rollout(self, stack: str) -> Weighed:
        """Kept, since it is the same for every map of the stack."""
        if stack not in self._rollouts:
            self._rollouts[stack] = rollout(self.watched, self.layers, stack)
        return self._rollouts[stack]

    def _hidden_tokens(self, hide: Sequence[str], weighed: Weighed) -> tuple[set[int], set[int]]:
        """The tokens of rows and columns that are left out."""
        named = hide.split(",") if isinstance(hide, str) else hide
        chosen = [each.strip() for each in named if each.strip()]
        for each in chosen:
            if each not in HIDDEN:
                raise SaccadeError(f"there is nothing called {each!r} to hide; {nearest(each, HIDDEN)}")
        rows, columns = set[int](), set[int]()
        if "special" in chosen:
            rows |= _special(self.sides[weighed.rows])
            columns |= _special(self.sides[weighed.columns])
        if "sink" in chosen:
            sinks = _sinks(weighed, len(self.sides[weighed.rows]))
            columns |= sinks
            rows |= sinks if weighed.rows == weighed.columns else set()
        return rows, columns


def _spots(side: Side) -> Spots | None:
    """Where the units of a side lie, if they lie on a picture."""
    if side.cells is None:
        return None
    extras = {number: each.text for number, each in enumerate(side.tokens) if each.place is None}
    return Spots(torch.tensor(side.cells), extras)


def _special(side: Side) -> set[int]:
    return {number for number, token in enumerate(side.tokens) if token.special}


def _sinks(weighed: Weighed, T: int) -> set[int]:
    """Columns that take far more of the looks than their share, measured on some of T rows."""
    shares = weighed.weigh(sampled(T)).float().mean((0, 1))
    return set((shares > max(SINK, 2 / len(shares))).nonzero().flatten().tolist())


def _what_it_reads(model: Model) -> tuple[Any, ...]:
    """Two models that agree in this read the same tokens as the same input."""
    return model.config.vocab, model.config.embed, model.config.join, model.encoder is None


def _head_number(head: int | str) -> int | str:
    """A head given as digits, by an address or a command, as a number."""
    return int(head) if isinstance(head, str) and head.isdecimal() and len(head) < DIGITS else head
