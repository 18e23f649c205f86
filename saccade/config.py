"""`ModelConfig`: a model in words. Each part of it has its own keys, and refuses what does not go together there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, FieldSerializationInfo, ValidationError, field_serializer, model_validator

from saccade.table import Config as Config
from saccade.table import Key as Key
from saccade.table import keys as keys
from saccade.table import read as read
from saccade.table import sentence


class Width(Config):
    """What every part of a model shares."""

    vocab: int = Field(0, ge=0, description="tokens; 0: as many as the data of a recipe has, or none are read or said")
    width: int = Field(ge=1, description="numbers of the vector at each position")


class Stacks(Width):
    """The encoder and the decoder: a depth each, or a table of its depth and of keys that differ from the shared ones,
    as in `encoder = {depth = 6, heads = 3}` or [model.encoder].
    """

    encoder: int = Field(0, ge=0, description="depth of the encoder; or a table: depth, and keys of its own")
    decoder: int = Field(0, ge=0, description="depth of the decoder; or a table: depth, and keys of its own")
    encoder_keys: dict[str, Any] = Field(default_factory=dict, exclude=True)  # what its table says beside the depth
    decoder_keys: dict[str, Any] = Field(default_factory=dict, exclude=True)
    encoder_mixer: str | list[str] | None = Field(
        None, description="of the encoder, where it is another: gru(both=True); of a list, one a layer, the last again"
    )
    cross: Literal["attention", "embedded", "feeding", "lowest", "fixed", "into", "beside"] = Field(
        "attention",
        description="embedded: embeddings in question and answer too; feeding: the context goes into a recurrent step; "
        "lowest: of the lowest layer, for all of them; fixed: a source is one vector, beside each state; into: it "
        "goes into each recurrent step; beside: place above place",
    )
    memory: int = Field(0, ge=0, description="positions of earlier segments that each layer keeps")
    streams: Literal[1, 2] = Field(1, description="2: a second stream asks for a place without seeing it (XLNet)")

    @model_validator(mode="before")
    @classmethod
    def _tables(cls, values: Any) -> Any:
        """A table becomes a depth and keys."""
        for name in ("encoder", "decoder") if isinstance(values, dict) else ():
            table = values.get(name)
            if isinstance(table, dict):
                if not table.get("depth"):
                    raise ValueError(f"{name}.depth: a table of the {name} gives its depth")
                keys = {key: value for key, value in table.items() if key != "depth"}
                values = {**values, name: table["depth"], f"{name}_keys": keys}
        return values

    @field_serializer("encoder", "decoder")
    def _table(self, depth: int, info: FieldSerializationInfo) -> Any:
        """As it was read."""
        own = self.encoder_keys if info.field_name == "encoder" else self.decoder_keys
        return {"depth": depth, **own} if own else depth

    @model_validator(mode="after")
    def _depths(self) -> Self:
        if not self.encoder and not self.decoder:
            raise ValueError("a model has an encoder, a decoder, or both: give one of them a depth")
        if self.cross != "attention" and not (self.encoder and self.decoder):
            raise ValueError(f"cross = {self.cross!r} is what a decoder knows of an encoder: give both a depth")
        return self


class Norms(Width):
    """How the parts of a block are put together."""

    order: Literal["post", "pre", "deep", "parallel", "residual", "half", "plain"] = Field(
        "pre", description="where norms stand, and how the output of a part joins its input"
    )
    norm: Literal["layer", "rms"] = Field("layer", description="mean and spread, or the spread alone")
    epsilon: float = Field(1e-5, gt=0, description="added to a norm's variance")
    final_norm: bool | None = Field(None, description="a norm after each stack; by default where the order is pre")
    bias: bool = Field(True, description="of every product; norms keep theirs")
    dropout: float = Field(0.0, ge=0, lt=1, description="of the embedding and of each part's output")


class Attends(Width):
    """Attention: its heads, its meaning, its products."""

    heads: int = Field(ge=1, description="of every attention")
    kv_heads: int | None = Field(None, ge=1, description="of keys and values, shared by `heads`; as many by default")
    head_width: int | None = Field(None, ge=1, description="of one head; width / heads by default")
    head_norm: bool = Field(False, description="a norm on each head's queries and keys")
    attention_bias: bool | Literal["qkv"] | None = Field(
        None, description="of attention's products, where it differs; qkv: not of the last one"
    )
    attention_dropout: float | None = Field(None, ge=0, lt=1, description="of the weights; as `dropout` by default")
    project: bool = Field(
        True, description="attention's products of queries, keys, values and output; false: states meet as they are"
    )
    score: str = Field("scaled_dot", description="of a query and a key: see `saccade list scores`")
    normaliser: str = Field("softmax", description="scores to weights: see `saccade list normalisers`")
    summary: str | None = Field(
        None, description="of keys and values, in an encoder's self-attention: linformer(256, 4096)"
    )
    share_summary: bool = Field(False, description="one summary for all layers")

    @model_validator(mode="after")
    def _divide(self) -> Self:
        if self.head_width is None and self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a width of {self.width}; or give head_width")
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"{self.kv_heads} key heads do not divide {self.heads} heads")
        shared = {self.heads * (self.head_width or self.width // self.heads), self.width}
        if not self.project and (self.kv_heads not in (None, self.heads) or len(shared) > 1):
            raise ValueError(
                "project = false lets all heads share the width as it is: leave out kv_heads and head_width"
            )
        return self


class Mixes(Width):
    """How positions meet, and which of them may."""

    mixer: str = Field("attention", description="how a block's positions meet: attention, gru, convolution(3), ...")
    mask: str | None = Field(None, description="a further mask of every self-attention")
    pattern: str | None = Field(None, description="a letter a layer, repeated: each names one of `masks`")
    masks: dict[str, str] = Field(default_factory=dict, description="masks by the letters of `pattern`")

    @model_validator(mode="after")
    def _letters(self) -> Self:
        for letter in self.pattern or "":
            if letter not in self.masks:
                raise ValueError(f"the pattern's letter {letter!r} is not in masks")
        return self


class Feeds(Width):
    """The feed-forward part, or experts to choose from."""

    feed: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_tanh", "none"] = Field(
        "gelu", description="the activation of the feed-forward part, gated or not; none: no such part"
    )
    hidden: int | None = Field(None, ge=1, description="width inside the feed-forward; 4 x width by default")
    experts: int = Field(0, ge=0, description="feed-forwards to choose from (0: one, and no choice)")
    chosen: int = Field(2, ge=1, description="experts that each token visits")
    capacity: float = Field(1.25, gt=0, description="tokens an expert takes while training, x its fair share")

    @model_validator(mode="after")
    def _choose(self) -> Self:
        if self.experts and self.feed == "none":
            raise ValueError("experts are feed-forwards to choose from, and feed = 'none' has none: leave one out")
        if self.experts and self.chosen > self.experts:
            raise ValueError(f"{self.chosen} experts cannot be chosen from {self.experts}")
        return self


class Reads(Width):
    """From what is read to vectors, and how places are told."""

    embed: str | dict[str, str] = Field(
        "tokens", description="how what is read becomes vectors; a table: of several inputs, by name, read as one"
    )
    scale_embedding: bool = Field(False, description="the vectors of tokens times sqrt(width)")
    norm_embedding: bool = Field(False, description="a norm after the embedding")
    segments: int = Field(0, ge=0, description="kinds of segment with a vector of their own (BERT)")
    position: str | None = Field(None, description="how places are told: see `saccade list positions`")
    share_position: bool = Field(False, description="one table for all layers of a stack")
    offset: int = Field(0, ge=0, description="rows of the position table before the first position")

    @model_validator(mode="after")
    def _inputs(self) -> Self:
        wrong = [name for name in self.embed if not name.isidentifier()] if isinstance(self.embed, dict) else []
        if wrong or not self.embed:
            raise ValueError(
                f"embed names each input by one word; got {wrong[0]!r}" if wrong else "embed names nothing"
            )
        return self


class Says(Width):
    """What the states become."""

    pooler: bool = Field(False, description="a layer on the pooled state (BERT)")
    pool: Literal["auto", "first", "last", "mean"] = Field(
        "auto", description="whose state that is; auto: one that knows of all tokens, where there is one, else the mean"
    )
    tie: bool = Field(True, description="the vocabulary's output has the weights of the embedding")
    scale_output: bool = Field(False, description="the output divided by sqrt(width) before a tied vocabulary")
    output_bias: bool = Field(False, description="of the vocabulary's output")
    head: str | None = Field(None, description="what the states become; a recipe's task chooses it")
    named_heads: dict[str, str] = Field(default_factory=dict, description="further heads, by the names they answer to")


class StackConfig(Reads, Feeds, Mixes, Attends, Norms):
    """The keys that the stacks share, and that each may have of its own."""


class ModelConfig(Says, StackConfig, Stacks):
    """A transformer in words: encoder-only, decoder-only, or both. BERT, GPT-2 or LLaMA are values of these fields."""

    def stack(self, decoder: bool) -> ModelConfig:
        """The configuration of one stack: the shared keys, and over them its own."""
        if not self.encoder_keys and not self.decoder_keys:
            return self
        own = self.decoder_keys if decoder else self.encoder_keys
        return self.model_copy(update={**own, "encoder_keys": {}, "decoder_keys": {}})

    def mixers(self, decoder: bool) -> list[str]:
        """Those of the decoder's layers, or the encoder's, from the lowest on; the last goes on to the top."""
        own = self.stack(decoder).mixer
        named = own if decoder or self.encoder_mixer is None else self.encoder_mixer
        return [named] if isinstance(named, str) else named

    @model_validator(mode="after")
    def _own(self) -> Self:
        """The keys of one stack are shared ones, and with them it is one that could be."""
        _check_own(self, "encoder", self.encoder_keys)
        _check_own(self, "decoder", self.decoder_keys)
        if "mixer" in self.encoder_keys and self.encoder_mixer is not None:
            raise ValueError("encoder.mixer and encoder_mixer say the same: leave one out")
        if self.decoder and isinstance(self.stack(decoder=True).embed, dict):
            raise ValueError("a decoder reads one input: give it an embed of its own, as in decoder.embed = 'tokens'")
        return self

    @model_validator(mode="after")
    def _layers(self) -> Self:
        """Mixers: one a layer, and what belongs to attention beside attention alone."""
        first = self.mixers(decoder=False)
        if not first:
            raise ValueError("encoder_mixer: an empty list names no mixer")
        if self.encoder_mixer is not None and len(first) > self.encoder:
            raise ValueError(f"encoder_mixer names {len(first)} layers, and the encoder has {self.encoder}")
        if self.cross in ("feeding", "lowest", "into") and self.mixers(decoder=True) == ["attention"]:
            raise ValueError("a context is fed into a recurrent step: write mixer = 'gru', 'lstm' or 'rnn'")
        for decoder in (True, False):
            own = self.stack(decoder)
            masked = own.mask is not None or own.pattern is not None or self.memory or self.streams == 2
            others = [each for each in self.mixers(decoder) if each != "attention"]
            if others and masked:
                raise ValueError(f"masks, memory and streams belong to attention; the mixer here is {others[0]!r}")
        return self

    @model_validator(mode="after")
    def _attend(self) -> Self:
        """Words of attention, where something attends."""
        both = self.encoder and self.decoder
        looks = both and self.cross in ("attention", "embedded", "feeding", "lowest")
        mixers = [each for decoder in self._there() for each in self.mixers(decoder)]
        if looks or "attention" in mixers:
            return self
        for key, usual in (("score", "scaled_dot"), ("normaliser", "softmax"), ("project", True)):
            for own in (getattr(self.stack(decoder), key) for decoder in self._there()):
                if own != usual:
                    raise ValueError(f"{key} = {own!r} belongs to attention, and nothing here attends")
        return self

    @model_validator(mode="after")
    def _summarise(self) -> Self:
        """A summary stands where all positions may mix."""
        own, mixers = self.stack(decoder=False), self.mixers(decoder=False)
        if own.summary is None:
            return self
        if not self.encoder:
            raise ValueError("a summary mixes all positions, so that a decoder would see the future: give an encoder")
        if "attention" not in mixers:
            raise ValueError(f"a summary belongs to self-attention, and the encoder has {mixers[0]!r} alone")
        if own.mask is not None or own.pattern is not None:
            raise ValueError("a summary mixes all positions, of which a mask can hide none: leave out mask and pattern")
        if self.memory or self.streams == 2:
            raise ValueError("a summary is of one sequence at once: leave out memory, and streams = 2")
        return self

    def _there(self) -> list[bool]:
        """Which stacks there are: True of a decoder."""
        return [decoder for decoder, depth in ((False, self.encoder), (True, self.decoder)) if depth]


READ_ALONE = ("vocab", "segments", "summary", "share_summary")  # keys that an encoder may have of its own, no decoder


def _check_own(config: ModelConfig, stack: str, own: Mapping[str, Any]) -> None:
    """Refuses keys that no stack has of its own, and values that do not go with the shared ones."""
    for key in own:
        whole = key in ModelConfig.model_fields and key not in StackConfig.model_fields
        if whole or (stack == "decoder" and key in READ_ALONE):
            raise ValueError(f"{stack}.{key}: this key is the whole model's: write model.{key}")
    shared = {key: getattr(config, key) for key in StackConfig.model_fields}
    try:
        if own:
            StackConfig(**{**shared, **own})
    except ValidationError as problem:
        told = sentence(StackConfig, problem).removeprefix("StackConfig: ")
        raise ValueError(f"{stack}.{told}" if told.split(":")[0].split(" ")[0] in own else f"{stack}: {told}") from None
