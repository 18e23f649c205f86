"""What a served run reads of a text, and where it ends."""

from __future__ import annotations

import json
from contextlib import closing

from small import chatting, text, writing
from tokenizers import processors

from saccade.serve.limit import Limits
from saccade.serve.opened import Opened


def elsewhere(run, ends: list[int]):
    """The same run as if it came from elsewhere: its tokenizer puts <begin> before a text, and these tokens end one."""
    made = text().tokenizer
    made.post_processor = processors.TemplateProcessing(single="<begin> $A", special_tokens=[("<begin>", 1)])
    run.files |= {"tokenizer.json": made.to_str().encode(), "special.json": json.dumps({"end": ends}).encode()}
    return run


def test_prompts_are_framed_and_chats_are_not():
    """A chat's template says itself what stands before it."""
    with closing(Opened("small", elsewhere(writing(), [2, 9]), Limits())) as opened:
        bare, intake = text().encode(["hello"])[0], opened.intake
        assert intake.prompt("hello") == intake.shown("hello", opened.decode, None).read == [1, *bare]
        assert intake.asked("hello", opened.decode).prompt == [1, *bare]
        assert intake.encode("hello") == bare
        ask = intake.onward([5], opened.decode, cut=True)
        assert opened.jobs.make(ask, opened.decode).options["end"] == [2, 9]
    with closing(Opened("small", writing(), Limits())) as opened:
        assert opened.intake.prompt("hello") == opened.intake.encode("hello") == bare


def test_a_turn_ends_where_the_template_or_the_configuration_says():
    run = elsewhere(chatting(), [9])
    run.files["tokenizer_config.json"] = json.dumps({"eos_token": "<end>"}).encode()
    with closing(Opened("small", run, Limits())) as opened:
        assert opened.turn == [2, 9]
