"""What a field is: it knows one kind of thing, and everything about that kind is in its file.

A field encodes raw things as named arrays (dense, or ragged: as long as each example is), says how large each is, and
collates many of them into one `Input`. As X it names the embed of a model and the units of a map; as Y the head, what a
decoder is shown, the loss, the metrics and a baseline. Whoever trains, evaluates, predicts, looks or serves asks the
fields, and never which of them it has.

To add a kind, write a class that is a `Source`, a `Target` or both, and name it in `kinds`. Abstract methods must be
defined; the others have defaults that most kinds share.
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
from saccade.recipe import DecodeConfig

Taken = Mapping[str, Any]  # named arrays of some examples: of a ragged one a list, of a dense one (n, ...)
Encoded = dict[str, list[Any]]  # the arrays of raw things as `encode` gives them, one entry for each example


class UnreadableError(SaccadeError):
    """A raw thing that is none of its kind, or damaged. reason: why, in words that are alike for all such things; name:
    what it is called, where it has a name. Training leaves it out and counts it.
    """

    def __init__(self, message: str, reason: str, name: str = "") -> None:
        super().__init__(message)
        self.reason, self.name = reason, name


class Array(NamedTuple):
    """How one named array of a field lies on the disk: its type, and the shape of an example or, of a ragged one, of
    each of its positions. axis: what those are, where they are not the positions that an example's length counts (the
    edges of a graph, beside its nodes); a field names such arrays last.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    ragged: bool = False
    axis: str = ""


class Term(NamedTuple):
    """A part of a loss: summed over its predictions (`counts` says how many there are), and its weight beside others.

    reported: whether its value means something; that of a reward is there for its gradient alone.
    """

    sum: Tensor
    weight: float = 1.0
    reported: bool = True


class Motion(NamedTuple):
    """What can be done with a raw thing, (raw, random numbers) -> raw, such that the answer stays the same, or why it
    does not; in words. tolerance: what its numbers are rounded to.
    """

    told: str
    apply: Callable[[Any, np.random.Generator], Any]
    because: str | None = None
    tolerance: float = 1e-4


class Column(Protocol):
    """One column of a corpus, or of an epoch's view of it."""

    def lengths(self) -> np.ndarray:
        """The positions of each example, along its ragged arrays."""

    def take(self, indices: np.ndarray) -> Taken:
        """The examples with these numbers."""

    def array(self, name: str) -> np.ndarray:
        """All examples of one array, one after another, as they lie in the file."""


class Field(ABC):
    """What every field says of its kind.

    The class itself is asked before any data is read: for its keys in a recipe, and how its file is made.
    """

    kind: ClassVar[str]
    keys: ClassVar[type[Config]]
    along: ClassVar[bool] = True  # whether its file comes with the weights that a run starts from
    everything: ClassVar[bool] = False  # whether its file is made of the rows split off for validation, too
    several: ClassVar[bool] = False  # whether one example may take several cells of a table
    held: ClassVar[str | None] = None  # what the report on leakage calls its examples; None: they are not looked for
    reads: ClassVar[tuple[str, ...]] = ()  # other kinds whose raw things it reads too: labels are texts
    repeats: ClassVar[bool] = False  # whether a corpus keeps equal things once: large ones, which many rows may share
    endings: ClassVar[tuple[str, ...]] = ()  # of files that hold one example each; none: a cell is the example itself

    recorded: ClassVar[bool] = False  # whether examples may be cut out of a recording (`data.windows`)

    amount_unit: ClassVar[str | None] = None  # what `amount` counts; None: data of this kind are counted in examples
    blends: ClassVar[bool] = False  # whether two examples can be blended into one (`blended`)
    inherited: ClassVar[tuple[str, ...]] = ()  # recipe keys whose values come with the weights that a run starts from

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

    @classmethod
    def brought(cls, model: ModelConfig, options: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes | None:
        """The content of its file, where a Hugging Face folder tells it in other words: in config.json (`options`) or
        in its other files. None: it does not, or its model reads, or predicts, another kind.
        """
        return None

    @classmethod
    def keys_of(cls, model: ModelConfig, files: Mapping[str, bytes]) -> dict[str, Any]:
        """Its keys in a recipe, as far as a model from elsewhere and the files of its fields say them."""
        return {}

    @staticmethod
    @abstractmethod
    def made(config: Any, raws: Iterable[Any]) -> bytes:
        """The content of that file, from the raw things of the training rows."""

    @staticmethod
    @abstractmethod
    def cell(text: Any, folder: Path) -> Any:
        """A raw thing from a cell of a table (from all its cells, where it takes `several`) or from a line of a file;
        folder: where that file lies.
        """

    @staticmethod
    def cells(raw: Any, folder: Path) -> list[str]:
        """The cells of a table in `folder` that `cell` reads as this raw thing: one, or several where it takes
        `several`.
        """
        return [str(raw)]

    @staticmethod
    @abstractmethod
    def identity(raw: Any) -> bytes:
        """Bytes that are equal for equal raw things: splits and the report on leakage go by them."""

    @staticmethod
    def flaw(raw: Any) -> UnreadableError | None:
        """Why a raw thing cannot be read, if it cannot; asked of kinds whose examples are files (`endings`)."""
        return None

    @staticmethod
    def amount(raw: Any) -> int:
        """How much a raw thing is, before anything was learned of its kind: a recipe's `sizes` go by the sum."""
        return 1

    @staticmethod
    def parts(raws: Iterable[Any]) -> Iterable[Any]:
        """The parts of raw things that leakage is counted in: none so short that it occurs twice by chance."""
        return raws

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, Array]:
        """How its arrays lie on the disk, by name."""

    @property
    @abstractmethod
    def model(self) -> Mapping[str, Any]:
        """The keys of a model that can read it, or predict it: its embed, its vocabulary, a pooler."""

    @property
    def encoding(self) -> Mapping[str, Any]:
        """What its arrays depend on beside its file; when it changes, a corpus is made again."""
        found: dict[str, Any] = self.config.model_dump(mode="json")
        return found

    @abstractmethod
    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Raw things as arrays; refuses what is not of this kind."""

    def sizes(self, column: Column) -> np.ndarray:
        """How much of a batch's budget each example takes: its positions along ragged arrays, else 1."""
        return column.lengths() + self.around

    def lengths_of(self, raws: Sequence[Any]) -> Sequence[int] | np.ndarray | None:
        """The positions that raw things will have along ragged arrays, where that is known before they are encoded: 1
        without such arrays; None: encoding them tells.
        """
        ragged = any(each.ragged for each in self.arrays.values())
        return None if ragged else np.ones(len(raws), np.int64)

    def fault(self, size: int, limit: int | None) -> str | None:
        """Why an example of so many positions is left out, if it is."""
        if not size:
            return f"no {self.unit}"
        return f"longer than {limit} {self.unit}" if limit is not None and size > limit else None

    @abstractmethod
    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Examples as tensors for a model. draw: random numbers of (seed, epoch, position), None at use."""

    def blended(self, given: Input, other: Tensor, share: Tensor) -> Input:
        """Each example, by its share (B,), together with the one whose number is in `other` (B,)."""
        raise SaccadeError(f"two {self.unit} cannot be blended into one")

    @abstractmethod
    def report(self, column: Column, *, pieces: bool = False) -> str:
        """A line about a column, to be read before training; pieces: its examples are but parts of something longer."""

    def adds(self) -> list[str]:
        """What it adds in training alone, in words: why the loss there is higher than that of a validation."""
        return []

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

    part: ClassVar[str | None] = None  # the type of the part of a chat's message that holds one, as OpenAI calls it
    compares: ClassVar[bool] = False  # whether it knows how far apart two examples are (`distances`)
    motions: ClassVar[Mapping[str, Motion]] = {}  # what leaves an answer as it is, by the symmetry's name: rotation

    @property
    def shipped(self) -> Mapping[str, bytes]:
        """What says in a Hugging Face folder how it is read: files by name, instead of its own."""
        return {}

    @classmethod
    @abstractmethod
    def load(cls, config: Any, files: Mapping[str, bytes], column: str, needs: str | None) -> Self:
        """The field from a run's files. needs: the states that Y reads; None: there is no Y, the model is only looked
        into.
        """

    @property
    def asked(self) -> Mapping[str, Any]:
        """What somebody who is asked for one should know beside its kind, in JSON's values."""
        return {}

    def vectors(self, column: Column) -> np.ndarray | None:
        """How many vectors each example of a column becomes along the way it is read (the time of a sound, the columns
        of a picture); None: that depends on more.
        """
        return None

    @property
    def lengths(self) -> Lengths:
        """What `bucket` counts, and where the default buckets of a comparison begin."""
        return Lengths(self.unit, ())

    @property
    def moving(self) -> list[str]:
        """What its own augmentation does that moves the things in an example: a Y that says where they are cannot come
        along.
        """
        return []

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """The tokens before and behind an input, where it is made of tokens."""
        return [], []

    def blank(self, raw: Any) -> bool:
        """Whether an input is empty, or spaces alone. Training leaves such rows out, so that it gets no answer."""
        return isinstance(raw, str | bytes) and not raw.strip()

    @abstractmethod
    def line(self, text: str) -> Any:
        """A raw thing as the command line, or a cell of a table, names it."""

    @abstractmethod
    def received(self, value: Any) -> Any:
        """A raw thing as it comes over the network, where a string is never a path."""

    @abstractmethod
    def side(self, x: Input) -> Side:
        """The units of one example: what the rows and columns of a map are."""

    @property
    def space(self) -> np.ndarray | None:
        """Where all its examples lie, (2k,): the low and then the high end of each axis; None: each by itself."""
        return None

    def bounds(self, raw: Any) -> np.ndarray:
        """Where one example lies, (2k,), in its units: (0, 0, width, height) of a picture, (0, seconds) of a sound."""
        if self.space is None:
            raise SaccadeError(f"nothing says where a {self.noun} begins and ends: no elements can be found in it")
        return self.space

    def distances(self, some: Taken, others: Taken) -> np.ndarray:
        """How far each of some examples is from each of others, (n,m) from 0 to 1: what a nearest neighbour goes by."""
        raise SaccadeError(f"nothing says how far two {self.unit} are apart")

    def remark(self, raw: Any, arrays: Mapping[str, Any]) -> str | None:
        """What somebody should know who gets an answer to it; arrays: its own, as `encode` gave them."""
        return None

    def bucket(self, raw: Any) -> int:
        """Its length as people count it; a comparison sorts its examples into buckets by it."""
        return 0


class Target(Field):
    """A field that may be Y."""

    head: str
    needs: str  # which states the head reads: "pooled", those of "places" of X, "decoder", or "queries" of any stack
    answer: str  # a spec of `saccade.task.answer`
    main: str  # the metric that is named first, where it means something
    known: tuple[str, ...]  # all its metrics
    drawn: str | None = None  # what `beside` brings that is drawn as a picture
    rows: str = "records"  # a spec of `saccade.data.rows`: what a row is
    passes: int = 1  # how often a batch is read for its loss
    decides: ClassVar[tuple[str, ...]] = ()  # the keys of [decode] that its answers depend on
    endings_out: ClassVar[tuple[str, ...]] = ()  # of files that `filed` makes of its answers, beside tables
    copies: bool = False  # whether the output of a training example may be an answer (`copied`): a nearest neighbour's

    @classmethod
    @abstractmethod
    def load(cls, config: Any, files: Mapping[str, bytes], column: str) -> Self:
        """The field from a run's files."""

    def asked_of(self, config: ModelConfig) -> Mapping[str, Any]:
        """The keys of a model with these stacks that can predict it, its head among them."""
        return {**self.model, "head": self.head}

    @property
    def published(self) -> dict[str, Any]:
        """What a Hugging Face config.json says of it."""
        return {}

    def fits(self, config: ModelConfig) -> None:
        """Refuses a model that cannot learn it as the recipe asks."""
        return

    def fits_room(self, room: int | None) -> None:
        """Refuses examples that are longer than a model with so many positions can read."""
        return

    def joined(self, x: Mapping[str, Source]) -> None:
        """Hears which inputs it is predicted from, where that matters to it."""
        return

    def moved(self, x: Mapping[str, Input], y: Input, draw: np.random.Generator) -> tuple[Mapping[str, Input], Input]:
        """What is learned from in place of these examples: with whatever moves an input and its output together."""
        return x, y

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input | None:
        """What a decoder is shown while it learns; None where there is none."""
        return None

    @abstractmethod
    def counts(self, y: Input) -> dict[str, int]:
        """How many predictions each term of the loss is a mean of, by name; the first is also the batch's own count."""

    @abstractmethod
    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """The terms of the loss. learning: with what the recipe adds in training (smoothing, agreement)."""

    def losses(self, model: Model, states: States, y: Input) -> Tensor | None:
        """The loss of each example, summed over its predictions, and how many these are, (B,2): what an interval is
        made of. Its sum over the examples is `loss` without learning. None where the loss is not made of examples.
        """
        return None

    def cramped(self, column: Column, vectors: np.ndarray) -> int:
        """How many examples of a column a term of the loss leaves out, since X becomes so few vectors (N,)."""
        return 0

    def extent(self, raws: Iterable[Any], column: Column) -> int:
        """How much a split holds in a unit that does not depend on the field (characters), 0 where that is unknown."""
        return 0

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        """The metrics that follow from a mean loss over `count` predictions."""
        return {"loss": loss}

    @abstractmethod
    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """The metrics of results against the wanted outputs, as counts of each example."""

    def counted(self, raw: Any) -> int:
        """As how many examples a wanted output counts in the tallies."""
        return 1

    def meaningful(self, raws: Sequence[Any]) -> tuple[str, ...]:
        """The metrics that mean something for these wanted outputs; the others are not shown."""
        return self.known

    def main_of(self, raws: Sequence[Any]) -> str:
        """The metric that is named first for these wanted outputs."""
        shown = self.meaningful(raws)
        return self.main if self.main in shown else shown[0]

    def quick(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, float]:
        """The metrics that are cheap enough to compute at each validation."""
        return {name: each.value for name, each in self.tallies(results, raws).items()}

    def beside(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Any]:
        """What belongs to the metrics: signatures, scores of each class."""
        return {}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The scores of an answer that learned nothing, and `what` it is; empty where there is no such answer."""
        return {}

    def copied(self, column: Column, numbers: np.ndarray, wanted: Sequence[Any]) -> list[Result]:
        """The outputs of training examples as answers to examples whose outputs are `wanted`, where it `copies`."""
        raise SaccadeError(f"a {self.noun} is not copied")

    def filed(self, results: Sequence[Result], rows: Sequence[Sequence[Any]]) -> bytes:
        """The answers to rows as a file of the form that others read, where it has `endings_out`."""
        raise SaccadeError(f"{self.unit} are written as a table alone")

    def told(self, taken: Taken) -> list[Result] | None:
        """Encoded outputs as results; None: of outputs that do not come again, of which none is the commonest."""
        return None

    def windowed(self, length: int) -> Target:
        """The same field in windows of another length, where it is one long stream."""
        raise SaccadeError(f"a {self.noun} has no windows")


class PooledTarget(Target):
    """A Y that the head predicts at once, from a pooled state."""

    needs = "pooled"

    @property
    def model(self) -> Mapping[str, Any]:
        return {"pooler": True}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays follow from its file alone."""
        return {}

    @abstractmethod
    def results(self, scores: Tensor) -> list[Result]:
        """The result of each row of the head's output (B, ...)."""

    @abstractmethod
    def likely(self, scores: Tensor, said: Result) -> Tensor:
        """How well each row of the head's output agrees with a result, (B,): what an ablation measures."""

    @abstractmethod
    def matters(self, said: Result) -> str:
        """What `likely` measures, in words."""


class PlacesTarget(Target):
    """A Y that the head predicts at once, for every place of X or every pair of places."""

    needs, answer = "places", "places"

    def placed(self, scores: Tensor, x: Mapping[str, Input]) -> Tensor:
        """The head's output where it is relative to what was read: by default it is not."""
        return scores

    def marked(self, side: Side, said: Result) -> Side:
        """A side of X with what is said of it, for a picture of both: by default as it is."""
        return side

    @abstractmethod
    def results(self, scores: Tensor, lengths: Sequence[int]) -> list[Result]:
        """The result of each row of the head's output (B,T,...), of which so many places are real."""


class TokenTarget(Target):
    """A Y that a decoder writes token by token, with tokens of its `text`."""

    needs = "decoder"
    decides = tuple(key for key in DecodeConfig.model_fields if key != "threshold")

    @abstractmethod
    def side(self, tokens: Sequence[int]) -> Side:
        """The units of what was written."""


class WrittenTarget(TokenTarget):
    """A text after an X, between a token that begins it and one that ends it."""

    begin: int
    end: int


class StreamTarget(TokenTarget):
    """A text without an X, which the model continues."""

    @abstractmethod
    def closing(self, closed: bool) -> StreamTarget:
        """The same field, whose texts have an end token, or none."""

    @abstractmethod
    def prompt(self, tokens: list[int]) -> list[int]:
        """The tokens that a model is shown to continue these."""
