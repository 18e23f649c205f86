"""What a recipe's [decode] asks for is what is searched, for each input by itself."""

from __future__ import annotations

import pytest
import tasks
import torch
from torch import nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.config import read
from saccade.field.text.text import Text
from saccade.recipe import DecodeConfig
from saccade.task.task import Task

LINES = ["der hund sieht den mann", "the dog bites a man 🙂", "öäü a b c d e f g h i j k l m n o p q r s t u v w x y z"]
TEXT = Text.train(LINES, "characters", vocab=60)
INPUTS = ["dog", "the dog bites a man", "a", "der hund sieht den mann the dog", "", "zyx wvu"]


def made(kind: str) -> tuple[Task, saccade.Model]:
    torch.manual_seed(0)
    config = {"vocab": TEXT.vocab, "width": 24, "heads": 3, "decoder": 2, "position": "alibi", "head": "vocabulary"}
    config |= {"encoder": 1} if kind == "translate" else {}
    model = saccade.build(ModelConfig(**config)).double().eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.5)
    return (tasks.translate(TEXT) if kind == "translate" else tasks.write(TEXT)), model


def decode(**options) -> DecodeConfig:
    return read(DecodeConfig, options)


OPTIONS = {
    "greedy": {},
    "beam": {"beam": 3, "length_penalty": 0.6},
    "rewarded": {"beam": 3, "length_penalty": 0.0, "length_reward": 0.7},
    "diverse": {"beam": 4, "groups": 2, "diversity": 0.5},
    "drawn": {"temperature": 0.9, "top_k": 9, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.2, "seed": 5},
    "stopped": {"temperature": 1.0, "seed": 3, "stop": ["e", "an"]},
    "matching": {"matching": "[a-f]{3,9}", "temperature": 1.0, "seed": 2},
    "ahead": {"draft": "lookup", "temperature": 0.5, "seed": 1},
    "long": {"min_tokens": 25, "max_tokens": 40},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", ["translate", "write"])
def test_each_input_is_answered_as_if_alone(kind, name):
    task, model = made(kind)
    asked = decode(**({"max_tokens": 30} | OPTIONS[name]))
    together = task.predict(model, INPUTS, asked)
    for text, result in zip(INPUTS, together, strict=True):
        (alone,) = task.predict(model, [text], asked)
        assert (result.text, result.note) == (alone.text, alone.note)
        assert result.score == pytest.approx(alone.score, abs=1e-8)
    texts = [each.text for each in together if not each.note]
    if name == "stopped":
        assert not any("e" in each or "an" in each for each in texts)
    if name == "matching":
        assert all(3 <= len(each) <= 9 and set(each) <= set("abcdef") for each in texts)


@pytest.mark.parametrize("name", sorted(name for name, given in OPTIONS.items() if "beam" not in given))
@pytest.mark.parametrize("kind", ["translate", "write"])
def test_what_is_streamed_is_what_is_predicted(kind, name):
    task, model = made(kind)
    asked = decode(**({"max_tokens": 30} | OPTIONS[name]))
    (result,) = task.predict(model, ["the dog"], asked)
    assert "".join(task.answer.stream(model, "the dog", asked)) == result.text


@pytest.mark.parametrize("kind", ["translate", "write"])
def test_a_recipe_with_a_beam_streams_greedily(kind):
    task, model = made(kind)
    (greedy,) = task.predict(model, ["the dog"], decode(max_tokens=30))
    asked = decode(max_tokens=30, beam=3, length_penalty=0.3, length_reward=0.5)
    assert "".join(task.answer.stream(model, "the dog", asked)) == greedy.text
    with pytest.raises(SaccadeError, match="this text is empty"):
        list(task.answer.stream(model, "", decode()))
    with pytest.raises(SaccadeError, match="a beam search does not know temperature"):
        task.predict(model, ["the dog"], decode(beam=2, temperature=1.0))
