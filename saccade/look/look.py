"""`Look`: one text through one model, and what every layer looked at meanwhile.

    seen = saccade.load("runs/dates").look("fr: samedi 3 mai 1979")
    seen.map("alignment", words=True).values
    seen.statistics(seen.layers[0].name)

The model runs once, by its fast kernels; maps are computed afterwards, for what is asked (`watch`). Rollout: Abnar and
Zuidema 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from saccade.attend.layer import Attention
from saccade.decode.sequence import is_whole
from saccade.error import SaccadeError, nearest
from saccade.field.field import Pooled
from saccade.field.text.text import Text
from saccade.field.unit import Side
from saccade.look.ablation import Ablation, ablate
from saccade.look.map import Map, Unit, Weigh, fold
from saccade.look.page import page
from saccade.look.pair import Pair, pair_of
from saccade.look.shown import Shown, resting, shown
from saccade.look.statistic import Scene, Statistic, sampled, statistics
from saccade.look.view import View
from saccade.look.watch import watch
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.example import Example
from saccade.task.task import Task

ALIGNMENT, ROLLOUT = "alignment", "rollout:"  # maps that are made of several layers
HIDDEN = ("special", "sink")
BROKEN = "\ufffd"  # what bytes become that are no whole character
DIGITS = 6  # of a head's number, fewer than these
SINK = 0.3  # a column that takes more than this share of all looks is a sink
T = TypeVar("T")


class Layer(NamedTuple):
    """One attention layer: rows and columns name the sides that look and are looked at."""

    name: str
    stack: str
    number: int
    kind: str
    rows: str
    columns: str
    heads: int


def look(
    task: Task, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
) -> Look:
    """A look at a model that reads an input and writes, or was said to have written, the target.

    adds: an output that stands alone goes on from the input; else it is read as it is.
    """
    return look_at(task, model, task.answer.example(model, raw, decode, target=target, adds=adds))


def look_at(task: Task, model: Model, example: Example) -> Look:
    """A look at what a model has read and written."""
    return Look(model, shown(task, example))


class Look:
    """Sides are the sequences by name, layers what looked at them; `map`, `statistics`, `pair` and `ablation` answer.

    A model with an X and a decoder has a side for X, target (what its decoder read) and written (what each of these
    places wrote: the same moved by one); any other model has one.
    """

    def __init__(self, model: Model, shown: Shown) -> None:
        self.model, self.task, self.shown = model, shown.task, shown
        shown.fits(model)
        with resting(model):
            with watch(model) as self.watched:
                states = shown.states(model)
            self.answer = shown.answer(model, states)
        self.sides = shown.sides
        called = [name for name in self.watched.layers if self.watched.calls(name)]
        self.layers = [self._layer(name) for name in called if self._attention(name).summary is None]
        if called and not self.layers:
            self.layer(called[-1])  # says why there is nothing to look at

    @property
    def begun(self) -> int:
        """From which token of the text on the model wrote it."""
        return self.shown.begun if self.shown.target is not None else len(next(iter(self.sides.values())))

    @property
    def output(self) -> str:
        """What the model wrote, or said at once."""
        if self.answer.said is not None:
            return self.answer.said.text
        return "" if self.text is None else self.text.decode(self.shown.written)

    @property
    def text(self) -> Text | None:
        """The vocabulary of its texts, where there are any."""
        return self.task.text

    @property
    def logprobs(self) -> list[float | None]:
        """Of each token of the side that was predicted; of the first of a text None, which nobody wrote."""
        return self._first(None) + self.answer.logprobs

    @property
    def top(self) -> list[list[tuple[int, float]]]:
        """The likeliest tokens at the place of each, with their log-probabilities."""
        return self._first([]) + self.answer.top

    @property
    def matters(self) -> str | None:
        """What an ablation measures, in words; None: the model says nothing that could become less likely."""
        if self.answer.said is not None:
            told = f"the log-probability of the label {self.output!r}"
            return told if self.task.y is None else cast(Pooled, self.task.y).matters(self.answer.said)
        if not self.answer.logprobs:
            return None
        which, count = "written" if self.shown.wrote else "of the text after its first", len(self.shown.counted)
        return f"the log-probability of the {f'{count} tokens' if count > 1 else 'token'} {which}"

    @property
    def nbytes(self) -> int:
        """The memory that it holds."""
        return self.watched.nbytes

    def again(self, model: Model) -> Look:
        """The same tokens through other weights."""
        if _reads(model) != _reads(self.model):
            raise SaccadeError("what was read here means something else to that model: look at its own input")
        return Look(model, self.shown)

    def layer(self, name: str) -> Layer:
        """The layer of this name."""
        found = {each.name: each for each in self.layers}
        if name in self.watched.layers and self._attention(name).summary is not None:
            raise SaccadeError(
                f"{name!r} looked at summaries of the whole text, of which no token has a part of its own to show: "
                f"saccade.watch has the weights of the summaries"
            )
        if name not in found:
            raise SaccadeError(f"no layer that looked is called {name!r}; {nearest(name, found)}")
        return found[name]

    @property
    def usual(self) -> str:
        """The map to begin with: the alignment where there is one, else the last layer."""
        return ALIGNMENT if any(each.kind == "cross" for each in self.layers) else self.layers[-1].name

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
        "rollout:decoder"; head: a number (also in digits), "mean" or "max".

        words: sub-words become words, columns add up, rows are averaged. hide: "special" tokens, "sink" ones; the
        weights of the others stay as they are. rows and columns: from the first to before the last, of tokens or of
        words. size: cells a side at most; a cell is then the value furthest from 0 of all it covers.
        """
        layer, head = self.usual if layer is None else layer, _head(head)
        if size is not None and not (is_whole(size) and size > 0):
            raise SaccadeError(f"size is a whole number from 1; got {size!r}")
        sides, weigh, title = self._weights(layer, head)
        hidden = self._hidden(hide, sides, weigh)
        tall = _cut(_units(self.sides[sides[0]], words, hidden[0]), rows, "rows")
        wide = _cut(_units(self.sides[sides[1]], words, hidden[1]), columns, "columns")
        return fold(weigh, tall, wide, "max" if head == "max" else "mean", size, title)

    def save(
        self,
        path: str | Path,
        layer: str | None = None,
        head: int | str = "mean",
        *,
        words: bool = False,
        hide: Sequence[str] = (),
        size: int | None = None,
    ) -> Path:
        """Writes a map as a picture (.svg, .png, .html) or as numbers (.csv, .npz); layer "atlas": all heads, small.

        A .html without a layer shows everything: the usual map, the atlas and the heads in numbers.
        """
        return View(layer, head, words, hide, size).write(self, path)

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
        same = found.rows == found.columns
        tokens = [each.id for each in self.sides[found.columns].tokens] if same else None
        return statistics(Scene(weights, rows, allowed, tokens))

    def pair(self, layer: str, head: int, row: int, column: int) -> Pair:
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
        tokens = self._text_tokens()
        count = len(tokens)
        if not is_whole(place) or not 0 <= place < count:
            raise SaccadeError(f"place {place} does not exist: the text that goes on has {count}")
        assert self.text is not None
        found = self.text.decode([*tokens[:place], token])
        if token in self.text.silent or BROKEN in found:
            raise SaccadeError("this token is part of a character, or special: no text can end with it")
        return found

    def _text_tokens(self) -> list[int]:
        """The tokens of the one text that was read, where there is no other side."""
        if self.shown.target is not None:
            return self.shown.target if self.shown.alone else []
        (x, *_) = self.shown.example.x.values()
        return x.values["tokens"][0].tolist() if "tokens" in x.values else []

    def ablation(self, layer: str) -> Ablation:
        """What silencing each head of a layer does to what `matters`."""
        self.layer(layer)
        if self.matters is None:
            raise SaccadeError("nothing was said here that a head could make less likely: there is nothing to measure")
        module = self._attention(layer)
        with resting(self.model):
            return ablate(
                module, lambda copies: self.shown.likely(self.model, copies, self.answer.said), self.shown.size
            )

    def _first(self, nothing: T) -> list[T]:
        """What stands for the first token of a text, which was given."""
        return [nothing] if self.shown.alone and self.answer.logprobs else []

    def _layer(self, name: str) -> Layer:
        """A layer by its name: decoder.blocks.3.cross, decoder.blocks.0.mixer.cross."""
        stack, _, number, *rest = name.split(".")
        kind = "cross" if "cross" in rest else "self"
        read = next(iter(self.sides))
        if stack == "encoder" or self.shown.alone:
            rows = columns = read
        else:
            rows, columns = ("written", read) if kind == "cross" else ("target", "target")
        return Layer(name, stack, int(number), kind, rows, columns, self._attention(name).heads)

    def _attention(self, name: str) -> Attention:
        return cast(Attention, self.model.get_submodule(name))

    def _weights(self, layer: str, head: int | str) -> tuple[tuple[str, str], Weigh, str]:
        """The sides of a map, who computes its weights, and its title."""
        if head not in ("mean", "max") and not (is_whole(head) and head >= 0):
            raise SaccadeError(f"head is a number from 0, 'mean' or 'max'; got {head!r}")
        if layer.startswith(ROLLOUT):
            if is_whole(head):
                raise SaccadeError("a rollout is of all heads: leave the head out")
            rolled = self._rolled(layer.removeprefix(ROLLOUT))
            side = self._selves(layer.removeprefix(ROLLOUT))[0].rows
            return (side, side), lambda rows: rolled[None, rows], f"rollout of the {layer.removeprefix(ROLLOUT)}"
        across = [each for each in self.layers if each.kind == "cross"]
        if layer == ALIGNMENT:
            if not across:
                raise SaccadeError("an alignment is what a decoder looked at in a source; none looked: name a layer")
            return (across[0].rows, across[0].columns), partial(self._all, across, head), f"alignment, {_told(head)}"
        found = self.layer(layer)
        if isinstance(head, int) and not 0 <= head < found.heads:
            raise SaccadeError(f"head {head} does not exist: {layer!r} has {found.heads}")
        return (found.rows, found.columns), partial(self._all, [found], head), f"{layer}, {_told(head)}"

    def _all(self, layers: list[Layer], head: int | str, rows: Tensor) -> Tensor:
        """The weights of some rows in the heads of these layers, (h,r,S)."""
        if isinstance(head, int):
            return torch.cat([self.watched.weights(each.name, head, rows=rows) for each in layers])
        return torch.cat([self.watched.weights(each.name, rows=rows)[0] for each in layers])

    def _selves(self, stack: str) -> list[Layer]:
        found = [each for each in self.layers if each.stack == stack and each.kind == "self"]
        if not found:
            stacks = sorted({each.stack for each in self.layers if each.kind == "self"})
            there = nearest(stack, stacks) if stacks else "no stack has self-attention"
            raise SaccadeError(f"there is no stack {stack!r} to roll out; {there}")
        return found

    @cached_property
    def _rollouts(self) -> dict[str, Tensor]:
        return {}

    def _rolled(self, stack: str) -> Tensor:
        """How much of each token of the input has reached each place of the last layer, (T,T): the product over the
        layers of (W + 1) / 2, with W the mean over the heads.
        """
        if stack not in self._rollouts:
            rolled: Tensor | None = None
            for layer in self._selves(stack):
                weights = self.watched.weights(layer.name)[0].float().mean(0)
                half = (weights + torch.eye(len(weights), device=weights.device)) / 2
                rolled = half if rolled is None else half @ rolled
            assert rolled is not None
            self._rollouts[stack] = rolled
        return self._rollouts[stack]

    def _hidden(self, hide: Sequence[str], sides: tuple[str, str], weigh: Weigh) -> tuple[set[int], set[int]]:
        """The tokens of rows and columns that are left out."""
        named = hide.split(",") if isinstance(hide, str) else hide
        chosen = [each.strip() for each in named if each.strip()]
        for each in chosen:
            if each not in HIDDEN:
                raise SaccadeError(f"there is nothing called {each!r} to hide; {nearest(each, HIDDEN)}")
        out = tuple(
            {number for number, token in enumerate(self.sides[side].tokens) if token.special and "special" in chosen}
            for side in sides
        )
        if "sink" in chosen:
            sinks = set(self._sinks(weigh, len(self.sides[sides[0]])))
            out = (out[0] | (sinks if sides[0] == sides[1] else set()), out[1] | sinks)
        return out[0], out[1]

    def _sinks(self, weigh: Weigh, T: int) -> list[int]:
        """Columns that take far more of the looks than theirs."""
        shares = weigh(sampled(T)).float().mean((0, 1))
        return (shares > max(SINK, 2 / len(shares))).nonzero().flatten().tolist()


def _reads(model: Model) -> tuple[Any, ...]:
    """What decides what an input means to a model."""
    return model.config.vocab, model.config.embed, model.encoder is None


def _head(head: int | str) -> int | str:
    """A head as it is asked for: the digits of an address or a command are its number."""
    return int(head) if isinstance(head, str) and head.isdecimal() and len(head) < DIGITS else head


def _told(head: int | str) -> str:
    return f"head {head}" if isinstance(head, int) else f"{head} over the heads"


def _units(side: Side, words: bool, hidden: set[int]) -> list[Unit]:
    """The tokens of a side, or its words, without what is hidden."""
    if not words:
        tokens = enumerate(side.tokens)
        return [Unit(token.text, number, [number]) for number, token in tokens if number not in hidden]
    found: dict[int, list[int]] = {}
    for number, token in enumerate(side.tokens):
        if number not in hidden:
            found.setdefault(token.word, []).append(number)
    return [Unit(side.words[word], word, tokens) for word, tokens in found.items()]


def _cut(units: list[Unit], span: tuple[int, int] | None, what: str) -> list[Unit]:
    """Those whose number lies in the span."""
    if span is None:
        return units
    if len(span) != 2 or not all(map(is_whole, span)) or not 0 <= span[0] < span[1]:
        raise SaccadeError(f"{what} go from a number to a larger one; got {span!r}")
    begin, end = span
    return [unit for unit in units if begin <= unit.place < end]
