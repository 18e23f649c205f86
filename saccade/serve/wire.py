"""What a request says: the bodies of the routes, checked by pydantic when they come in.

What OpenAI's clients send and what changes no result is passed over; what would change it and is not offered is
refused, and so is a misspelt name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from saccade.error import nearest
from saccade.serve.limit import Limits

LIMITS = Limits()  # what the schema tells; what a server was given is checked beside it
PASSED: tuple[str, ...] = (
    "user",
    "store",
    "metadata",
    "service_tier",
    "safety_identifier",
    "parallel_tool_calls",
    "verbosity",
)
PASSED += ("prompt_cache_key", "prompt_cache_retention", "reasoning_effort")
# Names that are known and not offered, with the values by which they ask for nothing.
UNOFFERED: dict[str, tuple[Any, ...]] = {
    "logit_bias": ({},),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "matching": (),
    "draft": (),
}

Name = Annotated[str, Field(max_length=256)]
Written = Annotated[str, Field(max_length=LIMITS.body)]
Number = Annotated[int, Field(ge=0, lt=1 << 31)]
Tokens = Annotated[list[Number], Field(fail_fast=True, min_length=1, max_length=LIMITS.tokens)]
Several = Annotated[list[Written], Field(fail_fast=True, min_length=1, max_length=LIMITS.prompts)]
Lists = Annotated[list[Tokens], Field(fail_fast=True, min_length=1, max_length=LIMITS.prompts)]
Stop = Annotated[str, Field(min_length=1, max_length=LIMITS.stop_length)]
Stops = Annotated[list[Stop], Field(max_length=LIMITS.stop)]
Id = Annotated[str, Field(min_length=1, max_length=64)]


class Body(BaseModel):
    """The common ground: a run's name, and nothing unknown."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    model: Name | None = Field(None, description="a run, by its name; it may be left out where there is one alone")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        kept = {name: value for name, value in given.items() if name in cls.model_fields}
        for name, value in given.items():
            if name in kept or name in PASSED or value is None or value in UNOFFERED.get(name, ()):
                continue
            if name in UNOFFERED:
                raise ValueError(f"{name} is not offered here: leave it out")
            raise ValueError(f"{name[:80]!r} is unknown; {nearest(name[:80], cls.model_fields)}")
        return kept


class StreamOptions(BaseModel):
    """OpenAI's `stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None  # there is none


class Streaming(Body):
    """What may be answered in pieces."""

    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def usage(self) -> bool:
        """Whether a stream ends with what it took."""
        return bool(self.stream_options and self.stream_options.include_usage)


class Drawn(Streaming):
    """How tokens are chosen. Where the request is silent, the run's own [decode] holds."""

    temperature: float | None = Field(None, ge=0, le=100)
    top_p: float | None = Field(None, ge=0, le=1)
    top_k: int | None = Field(None, ge=0, lt=1 << 31)
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, ge=0.01, le=100)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    seed: int | None = Field(None, ge=-(1 << 62), lt=1 << 62)
    min_tokens: int | None = Field(None, ge=0, le=LIMITS.max_tokens)
    n: int | None = Field(None, ge=1, le=LIMITS.n)
    stop: Stop | Stops | None = None


class CompletionBody(Drawn):
    """How a text goes on."""

    prompt: Written | Several | Tokens | Lists
    max_tokens: int | None = Field(None, ge=0, le=LIMITS.max_tokens)
    logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs)
    echo: bool | None = None
    best_of: int | None = Field(None, ge=1, le=LIMITS.n)

    @model_validator(mode="after")
    def _possible(self) -> CompletionBody:
        if self.best_of is not None and self.best_of > (self.n or 1):
            raise ValueError("best_of above n is not offered here: leave it out, and choose among n yourself")
        if self.max_tokens == 0 and not self.echo:
            raise ValueError(
                "max_tokens = 0 writes nothing: give echo = true to have the prompt judged, or more tokens"
            )
        return self


class Part(BaseModel):
    """A part of a message: text alone is read here."""

    type: Literal["text"]
    text: Written


class Message(BaseModel):
    """One turn of a chat."""

    role: Annotated[str, Field(min_length=1, max_length=64)]
    content: Written | Annotated[list[Part], Field(fail_fast=True, max_length=LIMITS.prompts)] | None = None
    name: Name | None = None

    def plain(self) -> dict[str, str]:
        """As templates read it."""
        parts = self.content if isinstance(self.content, list) else []
        said = "".join(part.text for part in parts) if parts else self.content
        return {"role": self.role, "content": said if isinstance(said, str) else ""} | (
            {} if self.name is None else {"name": self.name}
        )


class ChatBody(Drawn):
    """How a chat goes on."""

    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=LIMITS.messages)]
    max_tokens: int | None = Field(None, ge=1, le=LIMITS.max_tokens)
    max_completion_tokens: int | None = Field(None, ge=1, le=LIMITS.max_tokens)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs)


class TranslateBody(Streaming):
    """What a run writes of a text."""

    text: Written | Several
    beam: int | None = Field(None, ge=1, le=LIMITS.beam)
    max_tokens: int | None = Field(None, ge=1, le=LIMITS.max_tokens)
    logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs)


class PredictBody(Body):
    """What any run says to inputs: each as JSON can tell it, by name where a run reads several things at once."""

    input: Any = Field(description="an input, or a list of inputs; of a run with several X, objects of these by name")
    options: dict[Name, Any] | None = Field(None, description="those of [decode]")


class InspectBody(Body):
    """What to look into: an input, an answer by its id, or what another inspection is of."""

    text: Written | None = None
    input: Any = Field(None, description="what is read, if it is no text; of a run with several X, by name")
    target: Written | None = None
    max_tokens: int | None = Field(None, ge=0, le=LIMITS.max_tokens)
    completion: Id | None = None
    choice: int | None = Field(None, ge=0, lt=LIMITS.sequences, description="which of a completion's choices")
    like: Id | None = None
    step: int | None = Field(None, ge=0, lt=1 << 62)
