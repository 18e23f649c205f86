"""What a served run reads of a text, and where it ends."""

from __future__ import annotations

import json
from contextlib import closing

from small import chatting, text, writing
from tokenizers import processors

from saccade.serve.limit import Limits
from saccade.serve.served import Served


def elsewhere(run, ends: list[int]):
    """The same run as if it came from elsewhere: its tokenizer puts <begin> before a text, and these tokens end one."""
    made = text().tokenizer
    made.post_processor = processors.TemplateProcessing(single="<begin> $A", special_tokens=[("<begin>", 1)])
    run.files |= {"tokenizer.json": made.to_str().encode(), "special.json": json.dumps({"end": ends}).encode()}
    return run


def test_prompts_are_framed_and_chats_are_not():
    """A chat's template says itself what stands before it."""
    with closing(Served("small", elsewhere(writing(), [2, 9]), Limits())) as served:
        bare, inputs = text().encode(["hello"])[0], served.inputs
        assert inputs.prompt("hello") == inputs.example("hello", served.decode, None).read == [1, *bare]
        assert [each.prompt for each in inputs.answerable(["hello"], served.decode)] == [[1, *bare]]
        assert inputs.tokens("hello") == bare
        ask = inputs.continuation([5], served.decode, cut=True)
        assert served.transcript(ask, served.decode).options["end"] == [2, 9]
    with closing(Served("small", writing(), Limits())) as served:
        assert served.inputs.prompt("hello") == served.inputs.tokens("hello") == bare


def test_a_turn_ends_where_the_template_or_the_configuration_says():
    run = elsewhere(chatting(), [9])
    run.files["tokenizer_config.json"] = json.dumps({"eos_token": "<end>"}).encode()
    with closing(Served("small", run, Limits())) as served:
        assert served.turn_ends == [2, 9]
