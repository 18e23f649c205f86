"""What pydantic finds wrong with a request is told in plain words."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError
from pydantic_core import core_schema

from saccade.serve.completion import CompletionBody
from saccade.serve.message import ChatBody
from saccade.serve.predict import PredictBody
from saccade.serve.refusal import invalid
from saccade.serve.translate import TranslateBody

THEIRS = ("Input should", "valid", "Field required", "dictionary", "integer", "boolean", "string", "pydantic")


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        (TranslateBody, {}, "text is missing"),
        (TranslateBody, [1], "the request should be an object; got a list"),
        (TranslateBody, {"text": 3}, "text should be a text or a list; got 3"),
        (TranslateBody, {"text": []}, "text should be a text or a list of 1 or more; got a list"),
        (TranslateBody, {"text": "a", "beam": "two"}, "beam should be a whole number; got 'two'"),
        (TranslateBody, {"text": "a", "beam": 0}, "beam should be 1 or more; got 0"),
        (TranslateBody, {"text": "a", "stream": 1}, "stream should be true or false; got 1"),
        (TranslateBody, {"text": "a", "stream_options": 1}, "stream_options should be an object; got 1"),
        (TranslateBody, {"text": "a", "baem": 1}, "the request: 'baem' is unknown; did you mean 'beam'?"),
        (CompletionBody, {"prompt": "a", "temperature": "hot"}, "temperature should be a number; got 'hot'"),
        (CompletionBody, {"prompt": "a", "top_p": 2}, "top_p should be 1 or less; got 2"),
        (CompletionBody, {"prompt": "a", "stop": ""}, "stop should be a text of 1 or more characters"),
        (ChatBody, {"messages": [{"role": "user"}, 3]}, "messages"),
        (PredictBody, {"model": 3, "input": "a"}, "model should be a text; got 3"),
    ],
)
def test_a_wrong_body(kind, body, why):
    with pytest.raises(ValidationError) as problem:
        kind.model_validate(body)
    told = invalid([{**each, "loc": ("body", *each["loc"])} for each in problem.value.errors()]).message
    assert told.startswith(why)
    assert [each for each in THEIRS if each in told] == []


def test_every_kind_of_error():
    context = dict.fromkeys(["gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "expected"], 3)
    for kind in get_args(core_schema.ErrorType):
        error = {"type": kind, "loc": ("body", "text"), "msg": "Input should be a valid string", "input": "a"}
        told = invalid([{**error, "ctx": {**context, "pattern": "a+", "error": "wrong"}}]).message
        assert told.startswith("text")
        assert [each for each in THEIRS if each in told] == []
