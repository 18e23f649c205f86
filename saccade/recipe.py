"""A recipe: one TOML file says data, model and training. What it does not know it refuses, with path and line.

task = "translate"            [data] files = ["a.en", "a.de"]     [model] width = 128, ...     [train] steps = 5000
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from saccade import config
from saccade.config import Config, Key, ModelConfig, read
from saccade.error import SaccadeError, nearest
from saccade.recipes.earlier import moved, paths, today

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
            raise ValueError(f"{self.pairs} pairs, their questions and the distance take {least} tokens")
        if self.pairs > self.keys:
            raise ValueError(f"{self.pairs} pairs need as many keys, and there are {self.keys}")
        return self


class DataConfig(Config):
    """Where examples come from; how they become numbers is said by the fields, in [x.NAME] and [y]."""

    name: str | None = Field(None, description="a named data set, or `dates`, `copy` or `recall`, which are made here")
    pair: str | None = Field(
        None,
        pattern=r"^\w+-\w+$",
        description="languages, such as en-de; of own files, as they are called (a.en a.de); BLEU's tokens need it",
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
    held: int = Field(1000, ge=1, description="examples of a generator to validate, and to test, on")
    recall: RecallConfig | None = Field(None, description="how the texts of `recall` are made")
    skip: bool = Field(True, description="blank and over-long examples are counted and left out; false: refused")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        own = {"files": self.files, "validation": self.validation, "test": self.test, "columns": self.columns}
        given = [key for key, value in own.items() if value]
        if self.name is not None and given:
            raise ValueError(f"give a name or files, not both: there is a name, {self.name!r}, and data.{given[0]}")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"data.columns names a column twice: {self.columns}")
        if self.recall is not None and self.name != "recall":
            raise ValueError("data.recall says how texts are made: write name = 'recall' too, or leave it out")
        return self


class TrainConfig(Config):
    """How a model learns. Everything counts steps, nothing the clock."""

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
        None, description="what is learned beside the likelihood: reward(0.1, samples=4), the expected GLEU (translate)"
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
    compile: bool = Field(False, description="by torch.compile: pays from some minutes on, for examples of one length")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps, ...")

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, values: Any) -> Any:
        """TOML has lists, no pairs."""
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
    stop: list[str] = Field(default_factory=list, description="texts before which the writing ends")
    matching: str | None = Field(None, description="a regular expression that the whole text must match")
    draft: Literal["lookup"] | None = Field(None, description="guess ahead by what followed the last words before")
    replace_unknown: bool = Field(False, description="an unknown word becomes the source word looked at most")


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a recipe was read, and its text: no part of what it says, so that all of them are equal.

    brought: the paths that options set; moved: by their path today, the keys of 0.1.0 that stand in the text.
    """

    source: str
    text: str
    brought: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)

    def line(self, path: str) -> int | None:
        """The line on which a dotted path is set, where that is known."""
        return None if path in self.brought else _line(self.text, self.moved.get(path, path))

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
    train: TrainConfig
    decode: DecodeConfig = Field(default_factory=lambda: read(DecodeConfig, {}))
    _origin: Origin = PrivateAttr(default_factory=lambda: Origin("recipe", ""))

    @model_validator(mode="after")
    def _begins(self) -> Self:
        if (self.model is None) == (self.start is None):
            raise ValueError("give a [model] to begin anew, or start = a folder to go on from its weights, not both")
        if self.start is not None and self.train.embedding is not None:
            raise ValueError("start brings an embedding along: leave out train.embedding, or begin with a [model]")
        return self

    def wrong(self, path: str, problem: str) -> SaccadeError:
        """What is wrong at a dotted path, with its line where that is known."""
        line = self._origin.line(path)
        return SaccadeError(f"{self._origin.source}{f', line {line}' if line else ''}: {problem}")


def names() -> list[str]:
    """The built-in recipes."""
    return sorted(each.name.removesuffix(".toml") for each in _built_in().iterdir() if each.name.endswith(".toml"))


def header(name: str) -> dict[str, str]:
    """What the comment at the head of a built-in recipe says: `# key: value` lines."""
    found = re.findall(r"^# (\w+): (.+)$", (_built_in() / f"{name}.toml").read_text(), re.MULTILINE)
    return dict(found)


def for_files(kinds: tuple[str, ...]) -> list[str]:
    """The built-in recipes for own files whose columns are of these kinds, where they say so."""
    own = [name for name in names() if "--files" in header(name)["command"]]
    told = {
        name: (*(each.get("kind") for each in made.x.values()), made.y.get("kind"))
        for name in own
        for made in (recipe(name),)
    }
    return [name for name, each in told.items() if each == kinds]


def recipe(source: str | Path | Recipe, options: Iterable[str] = ()) -> Recipe:
    """A recipe from a built-in name, a TOML file or a Recipe, with options `a.b=value` over it."""
    options = list(options)
    if isinstance(source, Recipe):
        return from_values(_plain(source), options) if options else source
    text = _text(source)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SaccadeError(f"{source} is no TOML: {problem}") from None
    return from_values(values, options, str(source), text)


def keys() -> Iterator[Key]:
    """Every key of a recipe; [model] may also name a model of the zoo, whose values its others go over."""
    for each in config.keys(Recipe):
        if each.path == "model.vocab":  # the first
            yield Key("model.name", "text", None, False, "a model of the zoo to change: see `saccade list models`")
        yield each


def idle(decode: DecodeConfig) -> dict[str, str]:
    """What was asked of a search and does nothing in it, and what it belongs to."""
    usual = DecodeConfig.model_fields
    belongs = {
        **dict.fromkeys(("length_penalty", "length_reward", "groups"), ("beam", decode.beam > 1)),
        "diversity": ("groups", decode.groups > 1),
        **dict.fromkeys(("top_k", "top_p", "min_p"), ("temperature", decode.temperature > 0)),
    }
    return {
        name: whose
        for name, (whose, there) in belongs.items()
        if not there and getattr(decode, name) != usual[name].default
    }


def from_values(
    values: Mapping[str, Any], options: Iterable[str] = (), source: str = "recipe", text: str = ""
) -> Recipe:
    """A recipe from plain values; what is wrong is told with its dotted path and, where known, its line."""
    given = dict(map(option_of, options))
    brought = frozenset(each for path in given for each in (path, *paths(path, values)))
    origin = Origin(source, text, brought, moved(values))
    values = _without_model(values, given)
    for path, value in given.items():
        for each in (path, *(paths(path, values) if value is None else ())):
            values = _put(values, each.split("."), value)
    values = today(values)
    if isinstance(values.get("model"), dict) and "name" in values["model"]:
        values["model"] = _named(dict(values["model"]))
    try:
        made = read(Recipe, values)
        made._origin = origin
        return made
    except SaccadeError as problem:
        told = str(problem).removeprefix(f"{Recipe.__name__}: ")
        path = told.split(":")[0].split(" ")[0]
        line = origin.line(path)
        raise SaccadeError(f"{source}{f', line {line}' if line else ''}: {told}") from None


def option_of(text: str) -> tuple[str, Any]:
    """The path and the value of `a.b=value`; a value that is no TOML is taken as text, and none at all as None."""
    path, equals, written = text.partition("=")
    if not equals or not path.strip():
        raise SaccadeError(f"an option is written a.b=value; got {text!r}")
    if not written.strip():
        return path.strip(), None
    try:
        (value, *more) = tomllib.loads(f"value = {written}").values()
    except tomllib.TOMLDecodeError:
        value, more = written, []
    if more:
        raise SaccadeError(f"an option is one value on one line; got {text!r}: give each its own -o")
    return path.strip(), value


def differences(old: Recipe, new: Recipe) -> list[str]:
    """The dotted keys in which two recipes differ."""
    a, b = _flat(_plain(old)), _flat(_plain(new))
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def to_toml(tables: Mapping[str, Any], above: str = "") -> str:
    """Plain values, and tables of them in tables, as TOML (JSON's strings and numbers are TOML's too)."""
    inner = {key: value for key, value in tables.items() if isinstance(value, dict) and value}
    plain = {key: value for key, value in tables.items() if key not in inner and value is not None}
    lines = [f"{_key(key)} = {as_value(value)}" for key, value in plain.items()]
    for name, table in inner.items():
        path = f"{above}{_key(name)}"
        body = to_toml(table, f"{path}.").strip()
        held = any(not (isinstance(each, dict) and each) for each in table.values())
        lines += ["", f"[{path}]\n{body}" if held else body]
    return "\n".join(lines).strip() + "\n"


def as_toml(made: Recipe) -> str:
    """The whole recipe, with all that was left to its defaults."""
    return to_toml(_plain(made))


def _built_in() -> Any:
    return resources.files("saccade") / "recipes"


def _text(source: str | Path) -> str:
    """The text of a recipe's file; a bare name is a built-in one."""
    if isinstance(source, str) and source in names():
        return str((_built_in() / f"{source}.toml").read_text())
    path = Path(source)
    if path.suffix != ".toml":
        raise SaccadeError(
            f"no recipe is called {str(source)!r}; {nearest(str(source), names())} (or give a .toml file)"
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise SaccadeError(f"{path} is not UTF-8") from None


def _named(model: dict[str, Any]) -> dict[str, Any]:
    """A model of the zoo by its name, with changes; its vocabulary is the data's."""
    from saccade.zoo.names import named

    base = named(str(model.pop("name"))).model_dump()
    return {**base, "vocab": 0, **model}


def _without_model(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe without its own [model], where an option brings another along: by name, or with weights."""
    changed = any(path.split(".")[0] == "model" for path in given)
    brought = given.get("model.name") is not None or (given.get("start") is not None and not changed)
    return {key: value for key, value in values.items() if key != "model" or not brought}


def _put(table: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """The table with a value at a path; None: without what stood there."""
    first, *rest = path
    if not rest:
        return {key: each for key, each in {**table, first: value}.items() if key != first or value is not None}
    inner = table.get(first, {})
    if not isinstance(inner, dict):
        raise SaccadeError(f"{first} holds a value, not a table: {first}.{'.'.join(rest)} cannot be set")
    return {**table, first: _put(inner, rest, value)}


def _line(text: str, path: str) -> int | None:
    """The line on which a dotted path is set, or on which its table begins."""
    table, found = "", None
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[\s*([\w.\"']+)\s*\]", line)
        if head:
            table = re.sub("[\"']", "", head[1])
            if path == table or path.startswith(f"{table}."):
                found = number
        key = re.match(r"\s*([\w.]+)\s*=", line)
        whole = f"{table}.{key[1]}".lstrip(".") if key else ""
        if path == whole:
            return number
        if whole and path.startswith(f"{whole}."):  # a table on one line
            found = number
    return found


def _plain(made: Config) -> dict[str, Any]:
    return made.model_dump(exclude_none=True)


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = list(value) if isinstance(value, tuple) else value
    return found


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def as_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_value(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
