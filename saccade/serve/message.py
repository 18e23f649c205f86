"""The body of `/v1/chat/completions`: messages whose parts are texts and pictures, in OpenAI's shapes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from saccade.serve.body import LIMITS, Name, SamplingBody, Written


class TextPart(BaseModel):
    """A part of a message that is a text."""

    type: Literal["text"]
    text: Written


class ImageAddress(BaseModel):
    """A picture as a data: URL, though OpenAI calls it an address; `detail` is accepted and changes nothing."""

    url: Annotated[str, Field(max_length=LIMITS.media)]
    detail: Name | None = None


class ImagePart(BaseModel):
    """A part of a message that is a picture."""

    type: Literal["image_url"]
    image_url: ImageAddress


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class Message(BaseModel):
    """One turn of a chat."""

    role: Annotated[str, Field(min_length=1, max_length=64)]
    content: Written | Annotated[list[Part], Field(fail_fast=True, max_length=LIMITS.prompts)] | None = None
    name: Name | None = None

    @property
    def pictures(self) -> list[str]:
        """The pictures among its parts."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.image_url.url for part in parts if isinstance(part, ImagePart)]

    def plain(self) -> dict[str, str]:
        """As templates read it, without pictures."""
        content = self.content or ""
        parts = [] if isinstance(content, str) else [part for part in content if isinstance(part, TextPart)]
        text = content if isinstance(content, str) else "".join(part.text for part in parts)
        return {"role": self.role, "content": text} | ({} if self.name is None else {"name": self.name})


class ChatBody(SamplingBody):
    """How a chat goes on."""

    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=LIMITS.messages)]
    max_tokens: int | None = Field(None, ge=1, le=LIMITS.max_tokens)
    max_completion_tokens: int | None = Field(None, ge=1, le=LIMITS.max_tokens)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs)
