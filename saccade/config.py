"""Configurations, checked when they are made: unknown keys are refused and the nearest name is told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from saccade.error import SaccadeError, nearest

Read = TypeVar("Read", bound="Config")


class Config(BaseModel):
    """The common ground: nothing unknown, nothing changed after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ModelConfig(Config):
    """A transformer in words: encoder-only, decoder-only, or both. BERT, GPT-2 or LLaMA are values of these fields."""

    vocab: int = Field(0, ge=0, description="tokens; 0: as many as the data of a recipe has")
    width: int = Field(ge=1, description="numbers of the vector at each position")
    heads: int = Field(ge=1, description="of every attention")
    encoder: int = Field(0, ge=0, description="depth of the encoder")
    decoder: int = Field(0, ge=0, description="depth of the decoder")
    hidden: int | None = Field(None, ge=1, description="width inside the feed-forward; 4 x width by default")
    kv_heads: int | None = Field(None, ge=1, description="of keys and values, shared by `heads`; as many by default")
    head_width: int | None = Field(None, ge=1, description="of one head; width / heads by default")
    mixer: str = Field("attention", description="how a block's positions meet: attention, gru, convolution(3), ...")
    encoder_mixer: str | list[str] | None = Field(
        None, description="of the encoder, where it is another: gru(both=True); of a list, one a layer, the last again"
    )
    cross: Literal["attention", "embedded", "feeding", "lowest", "fixed", "into", "beside"] = Field(
        "attention",
        description="embedded: embeddings in question and answer too; feeding: the context goes into a recurrent step; "
        "lowest: of the lowest layer, for all of them; fixed: a source is one vector, beside each state; into: it "
        "goes into each recurrent step; beside: place above place",
    )
    order: Literal["post", "pre", "deep", "parallel", "residual", "half", "plain"] = Field(
        "pre", description="where norms stand, and how the output of a part joins its input"
    )
    norm: Literal["layer", "rms"] = Field("layer", description="mean and spread, or the spread alone")
    epsilon: float = Field(1e-5, gt=0, description="added to a norm's variance")
    final_norm: bool | None = Field(None, description="a norm after each stack; by default where the order is pre")
    feed: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_tanh", "none"] = Field(
        "gelu", description="the activation of the feed-forward part, gated or not; none: no such part"
    )
    experts: int = Field(0, ge=0, description="feed-forwards to choose from (0: one, and no choice)")
    chosen: int = Field(2, ge=1, description="experts that each token visits")
    capacity: float = Field(1.25, gt=0, description="tokens an expert takes while training, x its fair share")
    bias: bool = Field(True, description="of every product; norms keep theirs")
    attention_bias: bool | Literal["qkv"] | None = Field(
        None, description="of attention's products, where it differs; qkv: not of the last one"
    )
    project: bool = Field(
        True, description="attention's products of queries, keys, values and output; false: states meet as they are"
    )
    head_norm: bool = Field(False, description="a norm on each head's queries and keys")
    score: str = Field("scaled_dot", description="of a query and a key: see `saccade list scores`")
    normaliser: str = Field("softmax", description="scores to weights: see `saccade list normalisers`")
    position: str | None = Field(None, description="how places are told: see `saccade list positions`")
    summary: str | None = Field(
        None, description="of keys and values, in an encoder's self-attention: linformer(256, 4096)"
    )
    share_summary: bool = Field(False, description="one summary for all layers")
    share_position: bool = Field(False, description="one table for all layers of a stack")
    offset: int = Field(0, ge=0, description="rows of the position table before the first position")
    mask: str | None = Field(None, description="a further mask of every self-attention")
    pattern: str | None = Field(None, description="a letter a layer, repeated: each names one of `masks`")
    masks: dict[str, str] = Field(default_factory=dict, description="masks by the letters of `pattern`")
    segments: int = Field(0, ge=0, description="kinds of segment with a vector of their own (BERT)")
    memory: int = Field(0, ge=0, description="positions of earlier segments that each layer keeps")
    streams: Literal[1, 2] = Field(1, description="2: a second stream asks for a place without seeing it (XLNet)")
    scale_embedding: bool = Field(False, description="the vectors of tokens times sqrt(width)")
    norm_embedding: bool = Field(False, description="a norm after the embedding")
    pooler: bool = Field(False, description="a layer on the pooled state (BERT)")
    pool: Literal["auto", "first", "last", "mean"] = Field(
        "auto", description="whose state that is; auto: one that knows of all tokens, where there is one, else the mean"
    )
    tie: bool = Field(True, description="the vocabulary's output has the weights of the embedding")
    scale_output: bool = Field(False, description="the output divided by sqrt(width) before a tied vocabulary")
    output_bias: bool = Field(False, description="of the vocabulary's output")
    dropout: float = Field(0.0, ge=0, lt=1, description="of the embedding and of each part's output")
    attention_dropout: float | None = Field(None, ge=0, lt=1, description="of the weights; as `dropout` by default")
    head: str | None = Field(None, description="what the states become; a recipe's task chooses it")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if not self.encoder and not self.decoder:
            raise ValueError("a model has an encoder, a decoder, or both: give one of them a depth")
        if self.head_width is None and self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a width of {self.width}; or give head_width")
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"{self.kv_heads} key heads do not divide {self.heads} heads")
        shared = {self.heads * (self.head_width or self.width // self.heads), self.width}
        if not self.project and (self.kv_heads not in (None, self.heads) or len(shared) > 1):
            raise ValueError(
                "project = false lets all heads share the width as it is: leave out kv_heads and head_width"
            )
        if self.pattern is not None:
            for letter in self.pattern:
                if letter not in self.masks:
                    raise ValueError(f"the pattern's letter {letter!r} is not in masks")
        first = self.mixers(decoder=False)
        if not first:
            raise ValueError("encoder_mixer: an empty list names no mixer")
        if self.encoder_mixer is not None and len(first) > self.encoder:
            raise ValueError(f"encoder_mixer names {len(first)} layers, and the encoder has {self.encoder}")
        if self.cross != "attention" and not (self.encoder and self.decoder):
            raise ValueError(f"cross = {self.cross!r} is what a decoder knows of an encoder: give both a depth")
        others = [each for each in (self.mixer, *first) if each != "attention"]
        masked = self.mask is not None or self.pattern is not None or self.memory or self.streams == 2
        if self.cross in ("feeding", "lowest", "into") and self.mixer == "attention":
            raise ValueError("a context is fed into a recurrent step: write mixer = 'gru', 'lstm' or 'rnn'")
        if others and masked:
            raise ValueError(f"masks, memory and streams belong to attention; the mixer here is {others[0]!r}")
        looks = self.cross in ("attention", "embedded", "feeding", "lowest") if self.encoder and self.decoder else False
        if not looks and "attention" not in [*(first if self.encoder else []), *([self.mixer] if self.decoder else [])]:
            for key, usual in (("score", "scaled_dot"), ("normaliser", "softmax"), ("project", True)):
                if getattr(self, key) != usual:
                    raise ValueError(f"{key} = {getattr(self, key)!r} belongs to attention, and nothing here attends")
        if self.summary is not None:
            self._summarises(first)
        if self.experts and self.feed == "none":
            raise ValueError("experts are feed-forwards to choose from, and feed = 'none' has none: leave one out")
        if self.experts and self.chosen > self.experts:
            raise ValueError(f"{self.chosen} experts cannot be chosen from {self.experts}")
        return self

    def mixers(self, decoder: bool) -> list[str]:
        """Those of the decoder's layers, or the encoder's, from the lowest on; the last goes on to the top."""
        named = self.mixer if decoder or self.encoder_mixer is None else self.encoder_mixer
        return [named] if isinstance(named, str) else named

    def _summarises(self, mixers: list[str]) -> None:
        """Refuses a summary where positions may not mix."""
        if not self.encoder:
            raise ValueError("a summary mixes all positions, so that a decoder would see the future: give an encoder")
        if "attention" not in mixers:
            raise ValueError(f"a summary belongs to self-attention, and the encoder has {mixers[0]!r} alone")
        if self.mask is not None or self.pattern is not None:
            raise ValueError("a summary mixes all positions, of which a mask can hide none: leave out mask and pattern")
        if self.memory or self.streams == 2:
            raise ValueError("a summary is of one sequence at once: leave out memory, and streams = 2")


def read(kind: type[Read], values: Mapping[str, Any]) -> Read:
    """A configuration from plain values; what is wrong is told in one sentence with its dotted path."""
    try:
        return kind(**values)
    except ValidationError as problem:
        raise SaccadeError(_sentence(kind, problem)) from None


def _sentence(kind: type[Config], problem: ValidationError) -> str:
    """The first thing that is wrong; where a field takes several kinds of value, all of them are told."""
    unknown = [each for each in problem.errors() if each["type"] == "extra_forbidden"]
    first = (unknown or problem.errors())[0]  # a name that is misspelt is missing too
    path, known = _path(kind, first["loc"])
    where = ".".join(path) or kind.__name__
    if first["type"] == "extra_forbidden":
        inside = [each.path for each in keys(kind) if len(path) == 1 and each.path.endswith(f".{path[0]}")]
        return f"{where} is unknown; {f'did you mean {inside[0]!r}?' if inside else nearest(path[-1], known)}"
    same = [each for each in problem.errors() if _path(kind, each["loc"])[0] == path]
    told = " or ".join(dict.fromkeys(_told(kind, path, each) for each in same))
    got = "" if first["type"] == "missing" or isinstance(first["input"], dict) else f"; got {first['input']!r:.80}"
    return f"{where}: {told}{got}{_meant(first)}"


def _told(kind: type[Config], path: list[str], error: Any) -> str:
    """What was expected; where pydantic would show a regular expression, what the key is about."""
    if error["type"] != "string_pattern_mismatch":
        return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    meaning = next((each.meaning for each in keys(kind) if each.path == ".".join(path)), "")
    return f"Input should be as in: {meaning}" if meaning else str(error["msg"])


def _meant(error: Any) -> str:
    """The nearest of the values that a key takes, where one is near."""
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    near = nearest(error["input"], re.findall("'([^']+)'", error["ctx"]["expected"]))
    return f"; {near}" if near.startswith("did") else ""


def _path(kind: type[Config], loc: tuple[int | str, ...]) -> tuple[list[str], Iterable[str]]:
    """The dotted path of an error, without pydantic's names of alternatives, and the names known at its end."""
    path: list[str] = []
    known: Iterable[str] = kind.model_fields
    for part in loc:
        path.append(str(part))
        field = kind.model_fields.get(str(part))
        known = kind.model_fields
        if field is None:
            break
        inner = field.annotation
        if get_origin(inner) is dict:
            path += [str(key) for key in loc[len(path) :]]
            break
        table = _table(inner)
        if table is None:
            break
        kind = table
    return path, known


def _table(annotation: Any) -> type[Config] | None:
    """The configuration that a field holds, if it holds one."""
    held = (each for each in (annotation, *get_args(annotation)) if isinstance(each, type))
    return next((each for each in held if issubclass(each, Config)), None)


class Key(NamedTuple):
    """A value of a configuration: its dotted path, what it takes, what it is unless given, and what it means."""

    path: str
    takes: str
    usual: Any
    needed: bool
    meaning: str


def keys(kind: type[Config], before: str = "") -> Iterator[Key]:
    """Every value of a configuration, those of its tables too."""
    for name, field in kind.model_fields.items():
        table = _table(field.annotation)
        if table is not None:
            yield from keys(table, f"{before}{name}.")
            continue
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        bounds = [
            (sign, getattr(each, name))
            for each in field.metadata
            for name, sign in SIGNS.items()
            if hasattr(each, name)
        ]
        takes = " ".join([_takes(field.annotation), " and ".join(f"{sign} {_shown(value)}" for sign, value in bounds)])
        yield Key(f"{before}{name}", takes.strip(), usual, field.is_required(), field.description or "")


def _takes(annotation: Any) -> str:
    """What a field takes, in words."""
    origin, inside = get_origin(annotation), [each for each in get_args(annotation) if each is not type(None)]
    if origin is Literal:
        return " | ".join(map(str, inside))
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(_takes, inside)))
    if origin is Annotated:
        return _takes(inside[0])
    if origin in (list, tuple):
        return f"list of {_takes(inside[0])}"
    return WORDS.get(origin or annotation, str(annotation))


def _shown(bound: float) -> str:
    return f"2^{bound.bit_length() - 1}" if isinstance(bound, int) and bound >= 1 << 31 else str(bound)


SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
WORDS = {int: "whole number", float: "number", str: "text", bool: "true | false", dict: "table of texts"}
