"""Texts that ask for what they said: every question has its answer, far enough back."""

from __future__ import annotations

import re

import pytest

from saccade.config import read
from saccade.data.recall import ASK, example, examples
from saccade.error import SaccadeError
from saccade.recipe import RecallConfig
from saccade.recipes.read import from_values
from saccade.task.pair import pair_of


def config_of(**more):
    return read(RecallConfig, {"length": 71, "pairs": 7, "keys": 11, "values": 5, "distance": 13, **more})


@pytest.mark.parametrize(("split", "distances"), [("train", set(range(14))), ("val", {13}), ("test", {13})])
def test_every_question_is_answered_by_the_one_pair_before_the_distance(split, distances):
    counts, fillers = set(), set()
    for (text,) in examples(300, config_of(), split=split):
        words = text.split()
        assert len(words) == 71
        asked = words.index(ASK)
        filler = sum(word[0] == "w" for word in words)
        fillers.add(filler)
        found = {tuple(word.split("=")) for word in words[: asked - filler]}
        said = dict(found)
        assert len(said) == len(found)  # a key has one value
        questions = re.findall(r"\? (k\d+) (v\d+)", text)
        assert dict(questions) == said
        assert len(questions) == len(said) == words.count(ASK)
        assert words[asked:] == [word for key, value in questions for word in (ASK, key, value)]
        assert all(word[0] == "w" for word in words[asked - filler : asked])
        counts.add(len(said))
    assert counts == set(range(1, 8))
    assert fillers == distances


def test_the_same_number_gives_the_same_text_and_splits_share_none():
    config = config_of()
    rows = [text for (text,) in examples(200, config)]
    assert rows[17] == example(17, config) != example(17, config, seed=1)
    others = {example(number, config, split=split) for split in ("val", "test") for number in range(200)}
    assert len(others) == 400
    assert not others & set(rows)
    with pytest.raises(SaccadeError, match="the split 'dev' is unknown"):
        example(0, config, split="dev")


def values_of(**more):
    return {
        "task": "write",
        "data": {"name": "recall", "ask": "?", "examples": 7, "held": 3, "tokenizer": "split", **more},
        "model": {"width": 8, "heads": 2, "decoder": 1},
        "train": {"steps": 1},
    }


def supply_of(values):
    recipe = from_values(values)
    return pair_of(recipe).supply(recipe)


def test_a_recipe_names_it():
    supply = supply_of(values_of(recall={"length": 60, "pairs": 4, "distance": 7}))
    assert [len(list(supply.rows(split))) for split in supply.splits] == [7, 3, 3]
    assert supply.by_line
    made = supply.made_of()
    assert made["recall"] == 1
    assert (made["length"], made["pairs"], made["keys"], made["distance"]) == (60, 4, 32, 7)
    assert len(next(supply_of(values_of()).rows("val"))[0].split()) == 512


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"data": {"recall": {"length": 60, "pairs": 16, "distance": 3}}}, "the distance take 67 tokens"),
        ({"data": {"recall": {"pairs": 9, "keys": 8}}}, "9 pairs need as many keys, and there are 8"),
        ({"data": {"recall": {"lenght": 60}}}, r"data\.recall\.lenght is unknown; did you mean 'length'"),
        ({"data": {"name": "copy", "recall": {}}}, "write name = 'recall' too"),
    ],
)
def test_wrong_options_are_told(change, why):
    values = values_of()
    values = {**values, **change, "data": {**values["data"], **change.get("data", {})}}
    with pytest.raises(SaccadeError, match=why):
        from_values(values)


def test_another_task_is_refused():
    values = values_of()
    del values["data"]["ask"]
    model = {"width": 8, "heads": 2, "encoder": 1, "decoder": 1}
    with pytest.raises(SaccadeError, match="recall has texts to go on with: its task is write, not translate"):
        supply_of({**values, "task": "translate", "model": model}).rows("val")
