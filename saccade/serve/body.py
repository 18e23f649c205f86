"""What the bodies of all requests have in common, checked by pydantic when they come in; each route adds its own.

What OpenAI's clients send without changing a result is ignored; what would change it and is not offered is refused,
and so is a misspelt name.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from saccade.error import nearest
from saccade.serve.limit import Limits

LIMITS = Limits()  # those of the schema; the limits that a server was given are checked beside them
# Sent by OpenAI's clients, without any effect on the result.
IGNORED = (
    "user",
    "store",
    "metadata",
    "service_tier",
    "safety_identifier",
    "parallel_tool_calls",
    "verbosity",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
)
# Names of OpenAI's that are not offered here, each with the values that have no effect and so are accepted.
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
    """What all bodies share: the name of a run, and no unknown names."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    model: Name | None = Field(None, description="a run, by its name; it may be left out where there is one alone")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        kept = {name: value for name, value in given.items() if name in cls.model_fields}
        for name, value in given.items():
            if name in kept or name in IGNORED or value is None or value in UNOFFERED.get(name, ()):
                continue
            if name in UNOFFERED:
                raise ValueError(f"{name} is not offered here: leave it out")
            raise ValueError(f"{name[:80]!r} is unknown; {nearest(name[:80], cls.model_fields)}")
        return kept


class StreamOptions(BaseModel):
    """OpenAI's `stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None  # accepted; nothing is ever obfuscated


class Streaming(Body):
    """What may be answered in pieces."""

    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def usage(self) -> bool:
        """Whether a stream ends with the counts of tokens."""
        return bool(self.stream_options and self.stream_options.include_usage)


class SamplingBody(Streaming):
    """How tokens are chosen; by default as the run's own [decode] says."""

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
