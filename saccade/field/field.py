"""What a field is: it knows one kind of thing, and everything about that kind is in its file.

A field encodes raw things as named arrays (dense, or ragged: as long as each example is), says how large each is, and
collates many of them into one `Input`. As X it names the embed of a model and the units of a map; as Y the head, what a
decoder is shown, the loss, the metrics and a baseline. Whoever trains, evaluates, predicts, looks or serves asks the
fields, and never which of them it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from saccade.config import Config, ModelConfig
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.unit import Lengths, Side
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

Taken = Mapping[str, Any]  # named arrays of some examples: of a ragged one a list, of a dense one (n, ...)
Encoded = dict[str, list[Any]]  # the same of raw things that were just read


class Array(NamedTuple):
    """How one named array of a field lies on the disk: its type, and the shape of an example or, of a ragged one, of
    each of its positions.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    ragged: bool = False


class Term(NamedTuple):
    """A part of a loss: summed over its predictions (how many those are, `counts` says), and its weight beside others.

    told: whether its value means something; that of a reward is there for its gradient alone.
    """

    sum: Tensor
    weight: float = 1.0
    told: bool = True


class Column(Protocol):
    """What a corpus, or an epoch's view of it, gives of one column."""

    def lengths(self) -> np.ndarray:
        """The positions of each example, along its ragged arrays."""

    def take(self, indices: np.ndarray) -> Taken:
        """Some examples."""

    def array(self, name: str) -> np.ndarray:
        """All examples of one array, one after another, as they lie in the file."""


class Kind(Protocol):
    """A class of fields, before anything was read: its keys in a recipe, and how its files come about."""

    kind: ClassVar[str]
    keys: ClassVar[type[Config]]
    along: ClassVar[bool]  # whether weights to start from bring their own
    everything: ClassVar[bool]  # whether rows that are split off for validation are read too
    several: ClassVar[bool]  # whether several cells of a table make one
    held: ClassVar[str | None]  # what it is called where it is held out and learned from all the same; None: never told

    @staticmethod
    def stored(column: str) -> str:
        """The file that holds what was learned from the data."""

    @staticmethod
    def made(config: Any, raws: Iterable[Any]) -> bytes:
        """That file, from the raw things of the training rows."""

    @staticmethod
    def cell(text: Any, folder: Path) -> Any:
        """A raw thing from a cell of a table (from several, where one has several), or a line of a file, in this
        folder.
        """

    @staticmethod
    def identity(raw: Any) -> bytes:
        """What makes two raw things the same, for splits and for what is held out and learned from all the same."""

    @staticmethod
    def parts(raws: Iterable[Any]) -> Iterable[Any]:
        """What of raw things is long enough to be told from others."""


class Field(Kind, Protocol):
    """What every field says of its kind."""

    unit: str  # what its size counts, in the plural: tokens, pictures
    noun: str  # what one of them is called
    limit: int | None  # units of the longest example
    around: int  # positions that are added to it
    unmerging: Any  # of texts: how their tokens come apart, anew in each epoch (`Unmerging`), or None

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Its named arrays."""

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Raw things as arrays; refuses what is not of this kind."""

    def sizes(self, column: Column) -> np.ndarray:
        """How much of a batch's budget each example takes."""

    def fault(self, size: int, limit: int | None) -> str | None:
        """Why an example of this size is left out, if it is."""

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Examples as tensors for a model. draw: random numbers of (seed, epoch, position), None at use."""

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """A line about a column, to be read before training; pieces: its examples are but parts of something longer."""

    def show(self, raw: Any) -> str:
        """A raw thing in one line."""

    def glimpse(self, raw: Any) -> Any:
        """The beginning of a raw thing that may be long."""

    def sample(self, raw: Any) -> str:
        """A raw thing as it is kept with a run, to be offered again."""


class Source(Field, Protocol):
    """A field that may be X."""

    lengths: Lengths  # by which a comparison sorts

    @property
    def model(self) -> Mapping[str, Any]:
        """What a model must have to read it: its embed, its vocabulary."""

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """The tokens before and behind an input, where it is made of tokens."""

    def line(self, text: str) -> Any:
        """A raw thing as the command line, or a cell of a table, names it."""

    def received(self, value: Any) -> Any:
        """A raw thing as it comes over the network, where a string is never a path."""

    def side(self, x: Input) -> Side:
        """The units of one example: what the rows and columns of a map are."""

    def bucket(self, raw: Any) -> int:
        """Its length as people count it, by which a comparison sorts."""


class Target(Field, Protocol):
    """A field that may be Y."""

    head: str
    main: str  # the metric to tell first
    known: tuple[str, ...]  # those that a comparison can tell
    needs: str  # which states the head reads: "pooled" or "decoder"
    answer: str  # a spec of `saccade.task.answer`
    rows: str  # a spec of `saccade.data.rows`: what a row is
    metrics: tuple[str, ...]
    passes: int  # how often a batch is read for its loss

    @property
    def model(self) -> Mapping[str, Any]:
        """What a model must have to say it."""

    @property
    def published(self) -> dict[str, Any]:
        """What config.json at Hugging Face says of it."""

    def fits(self, config: ModelConfig) -> None:
        """Refuses a model that cannot learn it as the recipe asks."""

    def fits_room(self, room: int | None) -> None:
        """Refuses what the recipe asks for and a model with so many positions has no room for."""

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input | None:
        """What a decoder is shown while it learns; None where there is none."""

    def counts(self, y: Input) -> dict[str, int]:
        """The predictions that each term of the loss is a mean of, the one that counts for all first."""

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """The terms of the loss. learning: with what the recipe adds for that (smoothing, agreement)."""

    def extent(self, rows: Iterable[Any], column: Column) -> int:
        """How much a split holds in a unit that does not depend on the field (characters), 0 where that is unknown."""

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        """What a mean loss says."""

    def score(self, results: Sequence[Result], raws: Sequence[Any]) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics of results beside what was wanted, and what belongs to them (signatures, intervals)."""

    def quick(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, float]:
        """A cheap part of them, to be seen while training."""

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """What an answer that learned nothing scores, with `what` it is; nothing, where there is none."""

    def windowed(self, length: int) -> Target:
        """The same in windows of another length, where it is one long stream."""

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """The metrics as counts of each example, for a comparison."""


class Pooled(Target, Protocol):
    """A Y that the head says at once, of a pooled state."""

    def results(self, scores: Tensor) -> list[Result]:
        """What each row of the head's words (B, ...) says."""

    def likely(self, scores: Tensor, said: Result) -> Tensor:
        """How likely what was said is by each row of the head's words, (B,): what an ablation measures."""

    def matters(self, said: Result) -> str:
        """The same in words."""


class Written(Target, Protocol):
    """A Y that a decoder writes token by token."""

    text: Any  # its vocabulary
    begin: int
    end: int

    def side(self, tokens: Sequence[int]) -> Side:
        """The units of what was written."""


class Streamed(Target, Protocol):
    """A Y that stands alone, and goes on."""

    text: Any
    config: Any

    def closing(self, closed: bool) -> Streamed:
        """The same whose texts have an end, or none."""

    def prompt(self, tokens: list[int]) -> list[int]:
        """What a model is shown of tokens to go on from."""

    def side(self, tokens: Sequence[int]) -> Side:
        """The units of what was written."""
