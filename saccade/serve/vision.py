"""`/v1/chat/completions` for a run that reads pictures: the last picture of the chat is its input, its result the
assistant's message. A run that also reads a text, a question about the picture, takes the last text of the user.

Such a run reads nothing else: other texts change nothing. How tokens are chosen is for a run that writes; without a
word about it, it writes by its own search.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saccade.recipe import DecodeConfig
from saccade.serve.client import EventStream
from saccade.serve.completion import sampling, usage
from saccade.serve.message import ChatBody, Message
from saccade.serve.predict import PredictBody, Prediction
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.served import Served
from saccade.serve.transcript import CHOICE, History, News


def sees(served: Served) -> bool:
    """Whether a run reads one picture, alone or with one text: what the parts of a message can hold."""
    parts = sorted(str(each.part) for each in served.task.x.values())
    return served.task.y is not None and parts in (["image_url"], ["image_url", "text"])


class Vision:
    """One request: a picture in a chat, and what the run says to it."""

    def __init__(self, served: Served, body: ChatBody, history: History) -> None:
        if (body.n or 1) > 1 or body.logprobs:
            raise Refusal(400, f"{served.name} says one thing to a picture: leave out n and logprobs", "n")
        if body.max_tokens is not None and body.max_completion_tokens not in (None, body.max_tokens):
            raise Refusal(400, "max_tokens and max_completion_tokens mean the same: give one", "max_tokens")
        self.served, self.body, x = served, body, served.task.x
        given = {name: PARTS[str(each.part)](body.messages, len(x)) for name, each in x.items()}
        raw = given if len(x) > 1 else next(iter(given.values()))
        asked = PredictBody(model=None, input=[raw], options=None, logprobs=None)
        self.prediction = Prediction(served, asked, history, "messages", "chatcmpl")

    async def respond(self, request: Request) -> Response:
        """The result as a message, in pieces where the request asks for a stream."""
        decode = self._decode()
        if self.body.stream and self.served.writes:
            return await self.prediction.stream(request, decode, self._written)
        (result,) = await self.prediction.results(request, decode)
        if self.body.stream:
            return EventStream(self._pieces(result.text), lambda: None)
        message = {"role": "assistant", "content": result.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        for each in self.prediction.transcripts:
            choice["finish_reason"] = each.reason
        read = usage(0, self.prediction.transcripts)
        return as_json(self.prediction.head("chat.completion") | {"choices": [choice], "usage": read})

    def _decode(self) -> DecodeConfig:
        """How it writes: as the run does, or as the request asks for; of a run that says all at once, nothing."""
        body, most = self.body, self.body.max_tokens or self.body.max_completion_tokens
        if not self.served.writes:
            return self.served.decode
        chosen = any(getattr(body, name) is not None for name in (*CHOICE, "seed", "min_tokens", "stop"))
        return sampling(self.served, body, most) if chosen else self.served.decoding({"max_tokens": most})

    async def _written(self, news: AsyncIterator[News]) -> AsyncIterator[dict[str, Any]]:
        """What is written, piece by piece."""
        yield self._chunk({"role": "assistant", "content": ""}, None)
        async for each in news:
            self.prediction.add(each)
            if each.piece:
                yield self._chunk({"content": each.piece}, None)
        (transcript,) = self.prediction.transcripts
        yield self._chunk({}, transcript.reason)
        if self.body.usage:
            yield self._told()

    def _told(self) -> dict[str, Any]:
        """The last event of a stream: how many tokens were written; a picture has none."""
        head = self.prediction.head("chat.completion.chunk")
        return head | {"choices": [], "usage": usage(0, self.prediction.transcripts)}

    def _chunk(self, delta: dict[str, str], reason: str | None) -> dict[str, Any]:
        head = self.prediction.head("chat.completion.chunk")
        return head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    async def _pieces(self, text: str) -> AsyncIterator[dict[str, Any]]:
        """The whole text is one piece."""
        for delta, reason in (({"role": "assistant", "content": text}, None), ({}, "stop")):
            yield self._chunk(delta, reason)
        if self.body.usage:
            yield self._told()


def _picture(messages: Sequence[Message], inputs: int) -> str:
    """The last picture; beside a question the only one of its message, since nobody knows which is meant."""
    shown = [each.pictures for each in messages if each.pictures]
    if not shown:
        raise Refusal(400, "there is no picture in these messages: give a part of type image_url", "messages")
    if inputs > 1 and len(shown[-1]) > 1:
        told = f"this run reads one picture and one question; a message holds {len(shown[-1])} pictures: send one"
        raise Refusal(400, told, "messages")
    if shown[-1][-1].lower().startswith(("http:", "https:")):
        raise Refusal(400, "addresses are not fetched: send the picture itself, as a data: URL", "messages")
    return shown[-1][-1]


def _question(messages: Sequence[Message], inputs: int) -> str:
    """The last text of the user."""
    texts = [each.plain()["content"].strip() for each in messages if each.role == "user"]
    found = [each for each in texts if each]
    if not found:
        raise Refusal(400, "there is a picture and no question: give a part of type text beside it", "messages")
    return found[-1]


PARTS = {"image_url": _picture, "text": _question}  # what an input of a run is, by the type of its part of a message
