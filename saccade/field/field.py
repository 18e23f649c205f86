"""What a field is: it knows one kind of thing, and everything about that kind is in its file.

A field encodes raw things as named arrays (dense, or ragged: as long as each example is), says how large each is, and
collates many of them into one `Input`. As X it names the embed of a model and the units of a map; as Y the head, what a
decoder is shown, the loss, the metrics and a baseline. Whoever trains, evaluates, predicts, looks or serves asks the
fields, and never which of them it has.

To add a kind, write a class that is a `Source`, a `Target` or both, and name it in `kinds`. What is abstract must be
said; all else has an answer here that most kinds share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from torch import Tensor

from saccade.config import Config, ModelConfig
from saccade.error import SaccadeError
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


class Field(ABC):
    """What every field says of its kind.

    The class itself is asked before anything was read: for its keys in a recipe, and how its files come about.
    """

    kind: ClassVar[str]
    keys: ClassVar[type[Config]]
    along: ClassVar[bool] = True  # whether weights to start from bring their own
    everything: ClassVar[bool] = False  # whether rows that are split off for validation are read too
    several: ClassVar[bool] = False  # whether several cells of a table make one
    held: ClassVar[str | None] = None  # what it is called where it is held out and learned from all the same
    endings: ClassVar[tuple[str, ...]] = ()  # of files that hold one each; none: a cell is the thing itself

    inherited: ClassVar[tuple[str, ...]] = ()  # keys that come along with weights to start from

    config: Any
    unit: str  # what its size counts, in the plural: tokens, pictures
    noun: str  # what one of them is called
    limit: int | None = None  # units of the longest example
    around: int = 0  # positions that are added to it
    text: Any = None  # of texts: their vocabulary (`Text`)
    unmerging: Any = None  # of texts: how their tokens come apart, anew in each epoch (`Unmerging`)

    @classmethod
    def stored(cls, column: str) -> str:
        """The file that holds what was learned from the data; columns that name the same are learned together."""
        return f"{column}.{cls.kind}.json"

    @staticmethod
    @abstractmethod
    def made(config: Any, raws: Iterable[Any]) -> bytes:
        """That file, from the raw things of the training rows."""

    @staticmethod
    @abstractmethod
    def cell(text: Any, folder: Path) -> Any:
        """A raw thing from a cell of a table (from several, where one has several), or a line of a file, in this
        folder.
        """

    @staticmethod
    @abstractmethod
    def identity(raw: Any) -> bytes:
        """What makes two raw things the same, for splits and for what is held out and learned from all the same."""

    @staticmethod
    def parts(raws: Iterable[Any]) -> Iterable[Any]:
        """What of raw things is long enough to be told from others."""
        return raws

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, Array]:
        """Its named arrays."""

    @property
    @abstractmethod
    def model(self) -> Mapping[str, Any]:
        """What a model must have to read it, or to say it: its embed, its vocabulary, a pooler."""

    @property
    def encoding(self) -> Mapping[str, Any]:
        """What its arrays depend on beside its file: a corpus that was made otherwise is made again."""
        found: dict[str, Any] = self.config.model_dump(mode="json")
        return found

    @abstractmethod
    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Raw things as arrays; refuses what is not of this kind."""

    def sizes(self, column: Column) -> np.ndarray:
        """How much of a batch's budget each example takes: its positions along ragged arrays, else 1."""
        return column.lengths() + self.around

    def fault(self, size: int, limit: int | None) -> str | None:
        """Why an example of so many positions is left out, if it is."""
        if not size:
            return f"no {self.unit}"
        return f"longer than {limit} {self.unit}" if limit is not None and size > limit else None

    @abstractmethod
    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Examples as tensors for a model. draw: random numbers of (seed, epoch, position), None at use."""

    @abstractmethod
    def report(self, column: Column, *, pieces: bool = False) -> str:
        """A line about a column, to be read before training; pieces: its examples are but parts of something longer."""

    def show(self, raw: Any) -> str:
        """A raw thing in one line."""
        return str(raw)

    def glimpse(self, raw: Any) -> Any:
        """The beginning of a raw thing that may be long."""
        return raw

    def sample(self, raw: Any) -> str:
        """A raw thing as it is kept with a run, to be offered again."""
        return self.show(raw)


Kind = type[Field]  # a kind of field, before anything was read


class Source(Field):
    """A field that may be X."""

    @classmethod
    @abstractmethod
    def load(cls, config: Any, files: Mapping[str, bytes], column: str, needs: str | None) -> Self:
        """The field, with what a run's files say of it. needs: what Y does; None: the model is looked into alone."""

    @property
    def lengths(self) -> Lengths:
        """What `bucket` counts, and where the usual buckets of a comparison begin."""
        return Lengths(self.unit, ())

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """The tokens before and behind an input, where it is made of tokens."""
        return [], []

    @abstractmethod
    def line(self, text: str) -> Any:
        """A raw thing as the command line, or a cell of a table, names it."""

    @abstractmethod
    def received(self, value: Any) -> Any:
        """A raw thing as it comes over the network, where a string is never a path."""

    @abstractmethod
    def side(self, x: Input) -> Side:
        """The units of one example: what the rows and columns of a map are."""

    def bucket(self, raw: Any) -> int:
        """Its length as people count it, by which a comparison sorts."""
        return 0


class Target(Field):
    """A field that may be Y."""

    head: str
    needs: str  # which states the head reads: "pooled" or "decoder"
    answer: str  # a spec of `saccade.task.answer`
    main: str  # the metric to tell first
    known: tuple[str, ...]  # the metrics that a comparison can tell
    rows: str = "records"  # a spec of `saccade.data.rows`: what a row is
    passes: int = 1  # how often a batch is read for its loss

    @classmethod
    @abstractmethod
    def load(cls, config: Any, files: Mapping[str, bytes], column: str) -> Self:
        """The field, with what a run's files say of it."""

    @property
    def published(self) -> dict[str, Any]:
        """What config.json at Hugging Face says of it."""
        return {}

    def fits(self, config: ModelConfig) -> None:
        """Refuses a model that cannot learn it as the recipe asks."""
        return

    def fits_room(self, room: int | None) -> None:
        """Refuses what the recipe asks for and a model with so many positions has no room for."""
        return

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input | None:
        """What a decoder is shown while it learns; None where there is none."""
        return None

    @abstractmethod
    def counts(self, y: Input) -> dict[str, int]:
        """The predictions that each term of the loss is a mean of, the one that counts for all first."""

    @abstractmethod
    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """The terms of the loss. learning: with what the recipe adds for that (smoothing, agreement)."""

    def extent(self, raws: Iterable[Any], column: Column) -> int:
        """How much a split holds in a unit that does not depend on the field (characters), 0 where that is unknown."""
        return 0

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        """What a mean loss says."""
        return {"loss": loss}

    @abstractmethod
    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """The metrics of results beside what was wanted, as counts of each example, for a comparison."""

    def quick(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, float]:
        """A cheap part of the metrics, to be seen while training."""
        return {name: each.value for name, each in self.tallies(results, raws).items()}

    def score(self, results: Sequence[Result], raws: Sequence[Any]) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics of results beside what was wanted, and what belongs to them (signatures, intervals)."""
        return self.quick(results, raws), {}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """What an answer that learned nothing scores, with `what` it is; nothing, where there is none."""
        return {}

    def windowed(self, length: int) -> Target:
        """The same in windows of another length, where it is one long stream."""
        raise SaccadeError(f"a {self.noun} has no windows")


class Pooled(Target):
    """A Y that the head says at once, of a pooled state."""

    needs = "pooled"

    @property
    def model(self) -> Mapping[str, Any]:
        """A pooled state."""
        return {"pooler": True}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Its file says all."""
        return {}

    @abstractmethod
    def results(self, scores: Tensor) -> list[Result]:
        """What each row of the head's words (B, ...) says."""

    @abstractmethod
    def likely(self, scores: Tensor, said: Result) -> Tensor:
        """How likely what was said is by each row of the head's words, (B,): what an ablation measures."""

    @abstractmethod
    def matters(self, said: Result) -> str:
        """The same in words."""


class Worded(Target):
    """A Y that a decoder writes token by token, with tokens of its `text`."""

    needs = "decoder"

    @abstractmethod
    def side(self, tokens: Sequence[int]) -> Side:
        """The units of what was written."""


class Written(Worded):
    """One after an X, between a token that begins it and one that ends it."""

    begin: int
    end: int


class Streamed(Worded):
    """One that stands alone, and goes on."""

    @abstractmethod
    def closing(self, closed: bool) -> Streamed:
        """The same whose texts have an end, or none."""

    @abstractmethod
    def prompt(self, tokens: list[int]) -> list[int]:
        """What a model is shown of tokens to go on from."""
