"""A recipe: data, fields, model, training and search, as tables of checked values. `recipes/` reads and writes them.

task = "translate"            [data] files = ["a.en", "a.de"]     [model] width = 128, ...     [train] steps = 5000
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, PrivateAttr, model_validator

from saccade import config
from saccade.config import Config, Key, ModelConfig, read
from saccade.error import SaccadeError, nearest

Share = Annotated[float, Field(ge=0, lt=1)]


class RecallConfig(Config):
    """How the texts of `recall` are made: pairs of a key and its value, then filler, and a question for each pair."""

    length: int = Field(512, ge=8, description="tokens of a text, the questions among them")
    distance: int = Field(128, ge=0, description="tokens of filler between pairs and questions; to learn from, at most")
    pairs: int = Field(32, ge=1, description="keys that are given a value, at most; each is asked for once")
    keys: int = Field(32, ge=1, description="keys to draw from")
    values: int = Field(16, ge=2, description="values to draw from")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        least = 4 * self.pairs + self.distance
        if least > self.length:
            needed = f"{self.pairs} pairs, their questions and the distance take {least} tokens"
            raise ValueError(f"{needed}, and a text has {self.length}: raise length, or lower pairs or distance")
        if self.pairs > self.keys:
            raise ValueError(f"{self.pairs} pairs need as many keys, and there are {self.keys}")
        return self


class DistancesConfig(Config):
    """Which points `distances` are of, and how many of them are told."""

    points: int = Field(24, ge=3, description="points of an example")
    shape: Literal["sphere", "ball", "walk"] = Field(
        "sphere", description="where they lie in space: on a unit sphere; normal around its centre; along a random walk"
    )
    given: float = Field(0.3, gt=0, lt=1, description="the share of all distances that are told")
    noise: float = Field(0.05, ge=0, lt=1, description="of what is told, as a share of each distance")


class SoundscapeConfig(Config):
    """How the events of `tones` and `spoken-events` lie in a sound."""

    overlap: bool = Field(
        True, description="half of the sounds to learn from have events that may overlap; false: none has"
    )
    most: int = Field(6, ge=1, le=20, description="events of a sound, at most; the least is none")


class LanesConfig(Config):
    """How many cars the scenes of `lanes` have, and what is seen of them."""

    cars: int = Field(4, ge=1, le=12, description="cars of a lane, at most; there are two lanes, which cross or merge")
    seen: int = Field(8, ge=2, description="steps of 0.4 s that are seen")
    told: int = Field(12, ge=1, description="steps that come")


class WindowsConfig(Config):
    """How a recording is cut into scenes: a window of steps seen and steps to come, at every so many steps."""

    seen: int = Field(8, ge=1, description="steps that are seen")
    told: int = Field(12, ge=1, description="steps that come")
    every: int = Field(1, ge=1, description="steps from the beginning of a window to that of the next")


Drawn = Literal["words", "numbers", "mixed"]  # texts of lines


class LinesConfig(Config):
    """What the lines of `lines` say, and how long they are."""

    texts: list[Drawn] = Field(
        default_factory=lambda: [*get_args(Drawn)],
        min_length=1,
        description="what is written: words that are made up, numbers, letters and digits mixed; drawn evenly",
    )
    shortest: int = Field(4, ge=1, le=64, description="characters of the shortest text")
    longest: int = Field(8, ge=1, le=64, description="characters of the longest text")
    words: list[str] = Field(
        default_factory=list, description="texts to draw in place of those; some of them are held out, by a hash"
    )
    width: int = Field(128, ge=32, le=2048, multiple_of=8, description="pixels of a picture, which is 32 high")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest is {self.shortest} and longest {self.longest}: the shortest is no longer")
        if any(not text.strip() for text in self.words):
            raise ValueError("words has a text of nothing: each is drawn as it stands")
        most = max([self.longest, *map(len, self.words)]) if self.words else self.longest
        if 8 * most > self.width:
            raise ValueError(f"a text has up to {most} characters, and each needs 8 pixels: set width to {8 * most}")
        return self


APART = ("speaker", "place")  # keys of [data] that name what is held out


class DataConfig(Config):
    """Where examples come from. How they become numbers, the fields say, in [x.NAME] and [y]."""

    name: str | None = Field(
        None, description="a named data set, or `dates`, `copy`, `recall`, `lines` ..., which are made here"
    )
    pair: str | None = Field(
        None,
        pattern=r"^\w+-\w+$",
        description="languages, such as en-de; of own files, as they are called (a.en a.de); BLEU's tokens need it",
    )
    speaker: str | None = Field(
        None, description="of fsdd: this speaker alone is the test split, and is heard in no other"
    )
    place: str | None = Field(
        None, description="of eth-ucy: this place alone is the test split; eth by default, or hotel, univ, zara"
    )
    both: bool = Field(False, description="the pairs of the training split are learned from both ways (translate)")
    files: list[str] = Field(
        default_factory=list, description="own files: two of parallel text, a text, a table, or a folder by class"
    )
    columns: list[str] | list[int] = Field(
        default_factory=list, description="which columns of a table: names in its first line, keys of JSONL, or numbers"
    )
    validation: list[str] = Field(
        default_factory=list, description="own files to validate on; else a share is split off"
    )
    test: list[str] = Field(default_factory=list, description="own files to test on")
    first: int | None = Field(None, ge=1, description="of each split the first so many rows alone, to try things out")
    share: float = Field(0.05, gt=0, lt=1, description="of own files that becomes the validation split")
    examples: int = Field(150_000, ge=1, description="how many examples a generator makes")
    fresh: bool | None = Field(
        None,
        description="training rows that are made here are drawn anew in each epoch; by default as their maker says",
    )
    held: int = Field(1000, ge=1, description="examples of a generator to validate, and to test, on")
    recall: RecallConfig | None = Field(None, description="how the texts of `recall` are made")
    lines: LinesConfig | None = Field(None, description="what the pictures of `lines` say")
    distances: DistancesConfig | None = Field(None, description="which points and distances `distances` are of")
    soundscape: SoundscapeConfig | None = Field(
        None, description="how the events of `tones` and `spoken-events` lie in a sound"
    )
    lanes: LanesConfig | None = Field(None, description="how many cars `lanes` have")
    windows: WindowsConfig | None = Field(None, description="how own tables of tracks are cut into scenes")
    skip: bool = Field(True, description="blank and over-long examples are counted and left out; false: refused")

    @property
    def apart(self) -> dict[str, str]:
        """Who or what is held out for the test split, by the key that names it."""
        return {key: value for key in APART if (value := getattr(self, key)) is not None}

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        own = {"files": self.files, "validation": self.validation, "test": self.test, "columns": self.columns}
        given = [key for key, value in own.items() if value]
        if self.name is not None and given:
            raise ValueError(f"give a name or files, not both: there is a name, {self.name!r}, and data.{given[0]}")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"data.columns names a column twice: {self.columns}")
        told = {
            "recall": ("how texts are made", ("recall",)),
            "lines": ("what pictures of lines say", ("lines",)),
            "distances": ("of which points", ("distances",)),
            "soundscape": ("how events lie in a sound", ("tones", "spoken-events")),
            "lanes": ("how many cars there are", ("lanes",)),
        }
        for key, (what, owners) in told.items():
            if getattr(self, key) is not None and self.name not in owners:
                named = " or ".join(map(repr, owners))
                raise ValueError(f"data.{key} says {what}: write name = {named} too, or leave it out")
        return self


class TrainConfig(Config):
    """How a model learns. Everything counts steps; the clock decides once, before the first step (`minutes`)."""

    steps: int = Field(ge=1, description="of the optimiser")
    batch: int = Field(
        4096, ge=1, description="tokens of a batch, padding included, on the longer side; of pictures, how many"
    )
    accumulate: int = Field(1, ge=1, description="batches whose gradients make one step")
    optimiser: Literal["adamw", "adam", "sgd", "muon"] = Field(
        "adamw", description="muon: of the matrices inside the blocks, adamw for the rest"
    )
    rate: float = Field(1e-3, gt=0, description="the highest learning rate")
    matrix_rate: float = Field(0.02, gt=0, description="muon's own rate, of the matrices inside the blocks")
    betas: tuple[Share, Share] = Field((0.9, 0.98), description="of adam and adamw")
    momentum: float = Field(0.95, ge=0, lt=1, description="of sgd and muon")
    decay: float = Field(0.0, ge=0, description="weight decay, of matrices alone")
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = Field(
        "cosine", description="how the rate falls after the warm-up"
    )
    warmup: int = Field(0, ge=0, description="steps in which the rate rises to its height")
    final: float = Field(0.0, ge=0, le=1, description="where linear and cosine end, as a share of the highest rate")
    balance: float = Field(
        0.01, ge=0, description="how much experts should be visited evenly (Fedus et al. 2021), where there are any"
    )
    objective: str | None = Field(
        None,
        description="what is learned in training alone: reward(0.1, samples=4), the expected GLEU (translate); "
        "mixup(0.2), pairs of examples blended into one (pictures)",
    )
    clip: float = Field(1.0, ge=0, description="the longest gradient; 0: any")
    average: str = Field(
        "none", pattern=r"^(none|last\([1-9]\d*\)|ema\(0?\.\d+\))$", description="none, last(n), ema(decay)"
    )
    embedding: str | None = Field(
        None, description="a folder of `saccade words`: the rows of tokens that are its words begin with its vectors"
    )
    every: int = Field(500, ge=1, description="steps between validations, each with a checkpoint")
    keep: int = Field(2, ge=2, description="checkpoints kept")
    patience: int | None = Field(None, ge=1, description="validations without a better loss before the run stops")
    broken: Literal["stop", "skip"] = Field("stop", description="at a loss or gradient that is not finite, or a spike")
    spike: float | None = Field(None, gt=1, description="a gradient so many times longer than usual is a spike")
    precision: Literal["float32", "float64", "bfloat16", "float16"] = Field(
        "float32", description="of the products; weights stay float32 (float64) in any case"
    )
    minutes: float | None = Field(
        None, gt=0, description="for the whole training: fewer steps, and a smaller size, where it would take longer"
    )
    compile: bool = Field(False, description="by torch.compile: pays from some minutes on, for examples of one length")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps, ...")

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, values: Any) -> Any:
        """Takes betas as a list too: TOML has no tuples."""
        if isinstance(values, dict) and isinstance(values.get("betas"), list):
            values = {**values, "betas": tuple(values["betas"])}
        return values


class DecodeConfig(Config):
    """How a result is searched for; `saccade.generate` says what each means."""

    max_tokens: int = Field(256, ge=1, description="written at most")
    ratio: float | None = Field(
        None, gt=0, description="tokens at most for each token of a source, and ten more (translate): loops end sooner"
    )
    min_tokens: int = Field(0, ge=0, description="written before an end is possible")
    beam: int = Field(1, ge=1, description="candidates of a beam search; 1: none")
    length_penalty: float = Field(
        1.0, ge=0, description="a candidate's log probability is divided by its length to this power"
    )
    length_reward: float = Field(
        0.0, ge=0, description="what is added for each of its tokens; with length_penalty = 0, near 0.8: longer texts"
    )
    groups: int = Field(1, ge=1, description="of a diverse beam")
    diversity: float = Field(0.0, ge=0, description="what a group loses for a token that an earlier one has")
    temperature: float = Field(0.0, ge=0, description="0: the likeliest token; else drawn, the more freely the higher")
    top_k: int = Field(0, ge=0, lt=1 << 31, description="drawn from so many likeliest tokens; 0: from all")
    top_p: float = Field(
        1.0, ge=0, le=1, description="drawn from the fewest tokens that have this probability together"
    )
    min_p: float = Field(
        0.0, ge=0, le=1, description="drawn from tokens with this share of the likeliest's probability"
    )
    repetition_penalty: float = Field(
        1.0, gt=0, description="above 1: what was written becomes less likely, by division"
    )
    presence_penalty: float = Field(0.0, description="taken off the score of a token that was written")
    frequency_penalty: float = Field(0.0, description="taken off it each time it was written")
    seed: int | None = Field(None, description="of the draws")
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="of boxes and other elements: those that are less sure are left out; else y.threshold",
    )
    stop: list[str] = Field(default_factory=list, description="texts before which the writing ends")
    matching: str | None = Field(None, description="a regular expression that the whole text must match")
    draft: Literal["lookup"] | None = Field(None, description="guess ahead by what followed the last words before")
    replace_unknown: bool = Field(False, description="an unknown word becomes the source word looked at most")


class SizeConfig(Config):
    """The values of a recipe that smaller data need: they take the place of the recipe's own."""

    name: str = Field(min_length=1, description="by which -o size=NAME asks for it")
    up_to: int = Field(ge=1, description="for so much training data at most: characters of texts, examples of others")
    x: dict[str, dict[str, Any]] = Field(default_factory=dict, description="keys of [x.NAME], by NAME")
    y: dict[str, Any] = Field(default_factory=dict, description="keys of [y]")
    model: dict[str, Any] = Field(default_factory=dict, description="keys of [model]")
    train: dict[str, Any] = Field(default_factory=dict, description="keys of [train]")

    @model_validator(mode="after")
    def _check_tables(self) -> Self:
        """[model] and [train] are checked on their own, beside values that go with any others; the fields check
        theirs.
        """
        heads = self.model.get("heads", 1)
        for name, kind, beside in (
            ("model", ModelConfig, {"width": heads, "heads": 1, "encoder": 1}),
            ("train", TrainConfig, {"steps": 1}),
        ):
            try:
                read(kind, {**beside, **getattr(self, name)})
            except SaccadeError as problem:
                # A sentence begins with the key at fault or, if several are, with the name of the class.
                wrong = f"{name}.{problem}".replace(f"{name}.{kind.__name__}:", f"{name}:")
                raise ValueError(wrong) from None
        return self

    def tables(self) -> dict[str, Any]:
        """What it puts in place of the recipe's own values, by table; empty tables are left out."""
        tables = self.model_dump(exclude={"name", "up_to"})
        tables["x"] = {name: table for name, table in self.x.items() if table}
        return {name: table for name, table in tables.items() if table}


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a recipe was read from, and its text. All origins are equal, so that two recipes with the same values are.

    brought: the paths that options set, which have no line in the text; moved: the keys of 0.1.0 that stand in the
    text, by their path today.
    """

    source: str
    text: str
    brought: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)

    def line(self, path: str) -> int | None:
        """The line on which a dotted path is set, where that is known."""
        return None if path in self.brought else _line_of(self.moved.get(path, path), self.text)

    def error(self, path: str, problem: str) -> SaccadeError:
        """The error for a problem at a dotted path, with its line where that is known."""
        line = self.line(path)
        where = f"{self.source}, line {line}" if line else self.source
        return SaccadeError(f"{where}: {problem}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return 0


class Recipe(Config):
    """Everything that makes a run. [x.NAME] and [y] are plain tables here, which the fields read."""

    task: str = Field(description="what is made of what: translate, write, classify, ...")
    seed: int = Field(0, ge=0, lt=1 << 63, description="of weights, order, dropout and splits")
    start: str | None = Field(
        None, description="a run or a Hugging Face folder whose weights and tokenizer to begin with"
    )
    data: DataConfig
    x: dict[str, dict[str, Any]] = Field(default_factory=dict, description="the inputs by name, each with its kind")
    y: dict[str, Any] = Field(default_factory=dict, description="the output, with its kind")
    model: ModelConfig | None = Field(None, description="the model; with start it is the one found there")
    changes: dict[str, Any] | None = Field(None, description="of the model found at start; written as [model], too")
    train: TrainConfig
    decode: DecodeConfig = Field(default_factory=lambda: read(DecodeConfig, {}))
    size: str = Field("auto", description="auto: one of `sizes` by the amount of data; its name; full: none of them")
    sizes: list[SizeConfig] = Field(
        default_factory=list, description="[[sizes]], from small to large: what smaller data need; options win over it"
    )
    _origin: Origin = PrivateAttr(default_factory=lambda: Origin("recipe", ""))
    _refused: SaccadeError | None = PrivateAttr(None)  # what is wrong with [model] where no size is laid over it

    @model_validator(mode="before")
    @classmethod
    def _split_changes(cls, values: Any) -> Any:
        """Beside `start`, [model] holds changes of the model that is found there."""
        if not isinstance(values, dict) or values.get("start") is None or not isinstance(values.get("model"), dict):
            return values
        for key in values["model"]:
            if key not in ModelConfig.model_fields:
                raise ValueError(f"model.{key} is unknown; {nearest(key, ModelConfig.model_fields)}")
        return {**values, "model": None, "changes": values["model"] or None}

    @model_validator(mode="after")
    def _begins(self) -> Self:
        if (self.model is None) == (self.start is None):
            raise ValueError("give a [model] to begin anew, or start = a folder whose weights to begin with")
        if self.changes is not None and self.start is None:
            raise ValueError("changes are those of the model found at start: write them as [model], or give a start")
        if self.start is not None and self.train.embedding is not None:
            raise ValueError("start brings an embedding along: leave out train.embedding, or begin with a [model]")
        return self

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        names = [each.name for each in self.sizes]
        for number, each in enumerate(self.sizes):
            if each.name in ("auto", "full", *names[:number]):
                raise ValueError(f"sizes.{number}.name: {each.name!r} is taken: give it another")
            if number and each.up_to <= self.sizes[number - 1].up_to:
                raise ValueError(f"sizes.{number}.up_to: sizes stand from small to large, each for more data")
        known = ("auto", *names, "full")
        if self.size not in known:
            raise ValueError(f"size: no size is called {self.size!r}; {nearest(self.size, known)}")
        return self

    def wrong(self, path: str, problem: str) -> SaccadeError:
        """The error for a problem at a dotted path, with its line where that is known."""
        return self._origin.error(path, problem)


def keys() -> Iterator[Key]:
    """Every key of a recipe; [model] may also name a model of the zoo, whose values its others go over."""
    for each in config.keys(Recipe):
        if each.path == "model.vocab":  # the first key of [model]
            yield Key("model.name", "text", None, False, "a model of the zoo to change: see `saccade list models`")
        if each.path != "changes":  # which are written as [model]
            yield each


def idle(decode: DecodeConfig) -> dict[str, str]:
    """The options of a search that were changed and have no effect, each with the option that would give it one."""
    usual = DecodeConfig.model_fields
    owners = {
        **dict.fromkeys(("length_penalty", "length_reward", "groups"), ("beam", decode.beam > 1)),
        "diversity": ("groups", decode.groups > 1),
        **dict.fromkeys(("top_k", "top_p", "min_p"), ("temperature", decode.temperature > 0)),
    }
    return {
        name: owner
        for name, (owner, used) in owners.items()
        if not used and getattr(decode, name) != usual[name].default
    }


def plain(made: Config) -> dict[str, Any]:
    """The values of a table as plain tables; what is None is left out, as TOML has no word for it."""
    return made.model_dump(exclude_none=True)


def _line_of(path: str, text: str) -> int | None:
    """The line on which a dotted path is set, or on which its table begins; of a list of tables, with its number."""
    table, found, counts = "", None, Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[\s*(\[?)\s*([\w.\"']+)\s*\]", line)
        if head:
            table = re.sub("[\"']", "", head[2])
            if head[1]:
                counts[table] += 1
                table = f"{table}.{counts[table] - 1}"
            if path == table or path.startswith(f"{table}."):
                found = number
        key = re.match(r"\s*([\w.]+)\s*=", line)
        full = f"{table}.{key[1]}".lstrip(".") if key else ""
        if path == full:
            return number
        if full and path.startswith(f"{full}."):  # a table on one line: key = { ... }
            found = number
    return found
