"""`ModelConfig`: the configuration of a model. Each part of it has its own keys and refuses those that conflict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    FieldSerializationInfo,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from saccade.table import Config as Config
from saccade.table import Key as Key
from saccade.table import keys as keys
from saccade.table import read as read
from saccade.table import sentence

POOLED = ("auto", "first", "last", "mean", "attention", "first+mean", "max", "sum")  # names of pools; seeds(k) beside
SEEDS = re.compile(r"seeds\(([1-9]\d{0,3})\)")
QUERIES = re.compile(r"(queries|anchors)\b")  # embeds of a decoder that asks for a set


class Width(Config):
    """What every part of a model shares."""

    vocab: int = Field(0, ge=0, description="tokens; 0: as many as the data of a recipe has, or none are read or said")
    width: int = Field(ge=1, description="numbers of the vector at each position")


class Stacks(Width):
    """The encoder and the decoder: a depth each, or a table of its depth and of keys that differ from the shared ones,
    as in `encoder = {depth = 6, heads = 3}` or [model.encoder]. An encoder over a picture may have stages, `encoder =
    [2, 2, 6, 2]`: after each of them four neighbours become one, and width and heads double.
    """

    encoder: int = Field(
        0, ge=0, description="depth of the encoder; a list: of its stages; or a table: depth, and keys of its own"
    )
    decoder: int = Field(0, ge=0, description="depth of the decoder; or a table: depth, and keys of its own")
    encoder_keys: dict[str, Any] = Field(default_factory=dict, exclude=True)  # what its table says beside the depth
    decoder_keys: dict[str, Any] = Field(default_factory=dict, exclude=True)
    encoder_mixer: str | list[str] | None = Field(
        None, description="of the encoder, where it is another: gru(both=True); of a list, one a layer, the last again"
    )
    stages: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list, exclude=True)  # what encoder's list says
    window: int = Field(
        0, ge=0, description="cells of a side of the windows of a picture that the encoder's attention stays in (Swin)"
    )
    merge: str = Field("patches", description="how four neighbours become one between stages: patches, convolution(3)")
    cross: Literal["attention", "embedded", "feeding", "lowest", "fixed", "into", "beside"] = Field(
        "attention",
        description="embedded: embeddings in question and answer too; feeding: the context goes into a recurrent step; "
        "lowest: of the lowest layer, for all of them; fixed: a source is one vector, beside each state; into: it "
        "goes into each recurrent step; beside: place above place",
    )
    join: Literal["one", "context"] = Field(
        "one", description="of several inputs: one sequence; context: the last looks at the others, layer by layer"
    )
    context: int = Field(
        0, ge=0, description="layers over the inputs that the last one looks at, with join = 'context'"
    )
    context_pool: Literal["none", "mean", "attention"] = Field(
        "none", description="mean, attention: the last input looks at the others as one vector, whose pool this is"
    )
    pair: int = Field(
        0, ge=0, description="numbers of the vector of each pair of the encoder's positions (AlphaFold); 0: none"
    )
    pair_updates: str = Field(
        "outer outgoing incoming starting ending feed",
        description="what each layer does with pairs, in this order; none: attention reads them as they came",
    )
    memory: int = Field(0, ge=0, description="positions of earlier segments that each layer keeps")
    streams: Literal[1, 2] = Field(1, description="2: a second stream asks for a place without seeing it (XLNet)")

    @model_validator(mode="before")
    @classmethod
    def _split_tables(cls, values: Any) -> Any:
        """A table `{depth, ...}` becomes a depth and the keys beside it."""
        for name in ("encoder", "decoder") if isinstance(values, dict) else ():
            table = values.get(name)
            if isinstance(table, dict):
                if not table.get("depth"):
                    raise ValueError(f"{name}.depth: a table of the {name} gives its depth")
                keys = {key: value for key, value in table.items() if key != "depth"}
                values = {**values, name: table["depth"], f"{name}_keys": keys}
        stages = values.get("encoder") if isinstance(values, dict) else None
        if isinstance(stages, list) and stages and all(type(each) is int for each in stages):
            values = {**values, "encoder": sum(stages), "stages": stages}
        return values

    @field_serializer("encoder", "decoder")
    def _depth_or_table(self, depth: int, info: FieldSerializationInfo) -> Any:
        """Writes a stack as it was read: its depth, or a table where it has keys of its own."""
        own = self.encoder_keys if info.field_name == "encoder" else self.decoder_keys
        written = self.stages if self.stages and info.field_name == "encoder" else depth
        return {"depth": written, **own} if own else written

    @model_validator(mode="after")
    def _check_depths(self) -> Self:
        if not self.encoder and not self.decoder:
            raise ValueError("a model has an encoder, a decoder, or both: give one of them a depth")
        if self.cross != "attention" and not (self.encoder and self.decoder):
            raise ValueError(f"cross = {self.cross!r} is what a decoder knows of an encoder: give both a depth")
        if self.stages and sum(self.stages) != self.encoder:
            raise ValueError(f"the stages {self.stages} have {sum(self.stages)} layers together, not {self.encoder}")
        if (self.window or len(self.stages) > 1) and not self.encoder:
            raise ValueError("stages and windows are those of an encoder over a picture: give an encoder")
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
    scale: str | None = Field(
        None,
        description="a learned factor of each part's output: channels(1e-5), one a channel (LayerScale); one(0), one",
    )
    path_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of examples that skip a part, growing to this with depth (stochastic depth)"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="of the embedding and of each part's output")


class Attends(Width):
    """Attention: its heads, its meaning, its products."""

    heads: int = Field(ge=1, description="of every attention")
    gate: bool = Field(False, description="a gate on what each head found: times sigmoid(W x + b) (AlphaFold)")
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
    def _check_heads(self) -> Self:
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
    def _check_pattern(self) -> Self:
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
    feed_dropout: float | None = Field(None, ge=0, lt=1, description="inside it; as `dropout` by default")
    experts: int = Field(0, ge=0, description="feed-forwards to choose from (0: one, and no choice)")
    chosen: int = Field(2, ge=1, description="experts that each token visits")
    capacity: float = Field(1.25, gt=0, description="tokens an expert takes while training, x its fair share")

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        if self.experts and self.feed == "none":
            raise ValueError("experts are feed-forwards to choose from, and feed = 'none' has none: leave one out")
        if self.experts and self.chosen > self.experts:
            raise ValueError(f"{self.chosen} experts cannot be chosen from {self.experts}")
        return self


class Reads(Width):
    """The embedding: from an input to vectors, and how they carry positions."""

    embed: str | dict[str, str] = Field(
        "tokens", description="how what is read becomes vectors; a table: of several inputs, by name, read as one"
    )
    scale_embedding: bool = Field(False, description="the vectors of tokens times sqrt(width)")
    norm_embedding: bool = Field(False, description="a norm after the embedding")
    class_tokens: int = Field(
        0, ge=0, le=2, description="learned vectors before the input: 1, whose state stands for all (ViT); 2 (DeiT)"
    )
    registers: int = Field(0, ge=0, description="further learned vectors behind those, without a place (DINOv2)")
    segments: int = Field(0, ge=0, description="kinds of segment with a vector of their own (BERT)")
    position: str | None = Field(None, description="how a model knows positions: see `saccade list positions`")
    share_position: bool = Field(False, description="one table for all layers of a stack")
    layer_positions: bool = Field(
        False, description="a learned table like the input's before each layer but the first, of its own (YOLOS)"
    )
    offset: int = Field(0, ge=0, description="rows of the position table before the first position")

    @model_validator(mode="after")
    def _check_embed(self) -> Self:
        if not self.embed:
            raise ValueError("embed names nothing: write how the input becomes vectors, as in 'tokens'")
        names = self.embed if isinstance(self.embed, dict) else ()
        for name in names:
            if not name.isidentifier():
                raise ValueError(f"embed names each input by one word; got {name!r}")
        if names and (self.class_tokens or self.registers):
            raise ValueError("class tokens and registers stand before one input: leave them out beside several")
        return self


class Says(Width):
    """What the states become."""

    pooler: bool = Field(False, description="a layer on the pooled state (BERT)")
    pool: str = Field(
        "auto",
        description="whose state that is: first, last, mean; auto: one that knows of all tokens, where there is one, "
        "else the mean; attention: a mean with learned weights; first+mean: both, side by side (DINOv2); max, sum: of "
        "each channel; seeds(k): what k learned vectors find in all (Set Transformer)",
    )
    tie: bool = Field(True, description="the vocabulary's output has the weights of the embedding")
    scale_output: bool = Field(False, description="the output divided by sqrt(width) before a tied vocabulary")
    output_bias: bool = Field(False, description="of the vocabulary's output")
    head: str | None = Field(None, description="what the states become; a recipe's task chooses it")
    named_heads: dict[str, str] = Field(default_factory=dict, description="further heads, by the names they answer to")

    @field_validator("pool")
    @classmethod
    def _known_pool(cls, text: str) -> str:
        if text not in POOLED and SEEDS.fullmatch(text) is None:
            raise ValueError(f"{text!r} is no pool: write {', '.join(POOLED)} or seeds(4)")
        return text

    @property
    def seeds(self) -> int:
        """How many learned vectors pool the states; 0: none do."""
        found = SEEDS.fullmatch(self.pool)
        return 0 if found is None else int(found[1])


class StackConfig(Reads, Feeds, Mixes, Attends, Norms):
    """The keys that the stacks share, and that each may have of its own."""


class ModelConfig(Says, StackConfig, Stacks):
    """A transformer in words: encoder-only, decoder-only, or both. BERT, GPT-2 or LLaMA are values of these fields."""

    def stack(self, decoder: bool) -> ModelConfig:
        """The configuration of one stack: the shared keys, and over them its own."""
        own = dict(self.decoder_keys if decoder else self.encoder_keys)
        own |= dict.fromkeys(IN_FRONT, 0) if decoder and (self.class_tokens or self.registers) else {}
        own |= {"position": None} if decoder and own.get("embed") and QUERIES.match(str(own["embed"])) else {}
        if not own and not self.encoder_keys and not self.decoder_keys:
            return self
        return self.model_copy(update={**own, "encoder_keys": {}, "decoder_keys": {}})

    def widened(self, stage: int) -> ModelConfig:
        """The configuration of a stage: width, heads and hidden double with each."""
        if not stage:
            return self
        sizes = {key: getattr(self, key) for key in ("width", "heads", "kv_heads", "hidden")}
        return self.model_copy(update={key: None if size is None else size << stage for key, size in sizes.items()})

    @property
    def queried(self) -> bool:
        """Whether the last stack is shown learned queries, a set: each sees all others."""
        return bool(self.decoder) and QUERIES.match(str(self.stack(decoder=True).embed)) is not None

    @property
    def states_width(self) -> int:
        """The width of the states that the heads read: of the decoder, or of the encoder's last stage."""
        return self.stack(decoder=True).width if self.decoder else self.encoder_width

    @property
    def encoder_width(self) -> int:
        """The width of the encoder's states."""
        return self.stack(decoder=False).widened(max(len(self.stages) - 1, 0)).width

    def mixers(self, decoder: bool) -> list[str]:
        """The mixers of a stack's layers, from the lowest up; the last one serves all layers above it too."""
        own = self.stack(decoder).mixer
        named = own if decoder or self.encoder_mixer is None else self.encoder_mixer
        return [named] if isinstance(named, str) else named

    @model_validator(mode="after")
    def _check_stack_keys(self) -> Self:
        """The keys of a stack's table are known, and go together with the shared ones."""
        _check_keys_of(self, "encoder", self.encoder_keys)
        _check_keys_of(self, "decoder", self.decoder_keys)
        if "mixer" in self.encoder_keys and self.encoder_mixer is not None:
            raise ValueError("encoder.mixer and encoder_mixer say the same: leave one out")
        if self.decoder and isinstance(self.stack(decoder=True).embed, dict):
            raise ValueError("a decoder reads one input: give it an embed of its own, as in decoder.embed = 'tokens'")
        return self

    @model_validator(mode="after")
    def _check_join(self) -> Self:
        """A context needs an encoder that looks at it, whose layers see whole inputs."""
        if self.join == "one":
            if self.context or self.context_pool != "none":
                raise ValueError("context and context_pool are of inputs that the last one looks at: join = 'context'")
            return self
        if not self.encoder:
            raise ValueError("join = 'context' lets an encoder look at other inputs: give the encoder a depth")
        if self.memory or self.streams == 2 or len(self.stages) > 1 or self.window:
            raise ValueError("join = 'context' is of whole inputs: leave out memory, streams, stages and window")
        return self

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        """A grid that is merged, or cut into windows, has nothing before its first cell."""
        own = self.stack(decoder=False)
        if (self.window or len(self.stages) > 1) and (own.class_tokens or own.registers):
            raise ValueError("stages and windows are of a picture alone: leave out class_tokens and registers")
        if len(self.stages) > 1 and (self.memory or self.streams == 2 or own.share_position or own.share_summary):
            raise ValueError("stages differ in width: leave out memory, streams, share_position and share_summary")
        if self.window and (own.mask or own.pattern or own.summary):
            raise ValueError("window says where attention may look: leave out mask, pattern and summary")
        return self

    @model_validator(mode="after")
    def _check_mixers(self) -> Self:
        """There are not more mixers than layers, and keys that only attention reads stand beside attention alone."""
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
    def _check_attention_keys(self) -> Self:
        """Keys of attention are given only where something attends."""
        both = self.encoder and self.decoder
        looks = self.join == "context" or (both and self.cross in ("attention", "embedded", "feeding", "lowest"))
        mixers = [each for decoder in self._stacks_present() for each in self.mixers(decoder)]
        asks = self.seeds or any(each.partition("(")[0].strip() == "induced" for each in mixers)
        if looks or asks or "attention" in mixers:
            return self
        for key, usual in (("score", "scaled_dot"), ("normaliser", "softmax"), ("project", True)):
            for own in (getattr(self.stack(decoder), key) for decoder in self._stacks_present()):
                if own != usual:
                    raise ValueError(f"{key} = {own!r} belongs to attention, and nothing here attends")
        return self

    @model_validator(mode="after")
    def _check_summary(self) -> Self:
        """A summary is used only where every position may see every other."""
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

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        """Pairs are of all positions of one sequence, which attention reads."""
        if not self.pair:
            return self
        if not self.encoder:
            raise ValueError("pairs tell every position of every other: give an encoder")
        if self.mixers(decoder=False) != ["attention"]:
            raise ValueError("pairs are a bias of attention: leave out the encoder's mixer")
        if self.stack(decoder=False).summary is not None or len(self.stages) > 1:
            raise ValueError("a pair is of two positions, which a summary or stages merge: leave those out")
        if self.memory or self.streams == 2:
            raise ValueError("pairs are of one sequence at once: leave out memory, and streams = 2")
        return self

    def _stacks_present(self) -> list[bool]:
        """The stacks of this model, each as the argument of `stack`: False the encoder, True the decoder."""
        return [decoder for decoder, depth in ((False, self.encoder), (True, self.decoder)) if depth]


IN_FRONT = ("class_tokens", "registers")  # what an encoder alone has before its input
READ_ALONE = (
    "vocab",
    "segments",
    "summary",
    "share_summary",
    *IN_FRONT,
)  # keys that an encoder may have of its own, no decoder


def _check_keys_of(config: ModelConfig, stack: str, own: Mapping[str, Any]) -> None:
    """Refuses keys that no stack has of its own, and values that do not go with the shared ones."""
    for key in own:
        of_model = key in ModelConfig.model_fields and key not in StackConfig.model_fields
        if of_model or (stack == "decoder" and key in READ_ALONE):
            raise ValueError(f"{stack}.{key}: this key is the whole model's: write model.{key}")
    shared = {key: getattr(config, key) for key in StackConfig.model_fields}
    try:
        if own:
            StackConfig(**{**shared, **own})
    except ValidationError as problem:
        wrong = sentence(StackConfig, problem).removeprefix("StackConfig: ")
        key = wrong.split(":")[0].split(" ")[0]  # a sentence begins with the key, if one key is at fault
        raise ValueError(f"{stack}.{wrong}" if key in own else f"{stack}: {wrong}") from None
