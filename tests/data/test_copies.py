"""The copy task: the same number gives the same text, of every length."""

from __future__ import annotations

from collections import Counter

import pytest

from saccade.data.copies import LETTERS, LONGEST, SHORTEST, example, examples
from saccade.error import SaccadeError
from saccade.recipes.read import from_values
from saccade.task.pair import pair_of


def test_examples_say_the_same_again():
    rows = list(examples(2000))
    assert all(source == target for source, target in rows)
    lengths = Counter(len(source.split()) for source, _ in rows)
    assert set(lengths) == set(range(SHORTEST, LONGEST + 1))
    assert set("".join(source for source, _ in rows)) == {*LETTERS, " "}
    assert rows[17] == example(17) != example(17, seed=1)
    assert not {source for source, _ in rows} & {source for source, _ in examples(500, split="test")}


def supply_of(values):
    recipe = from_values(values)
    return pair_of(recipe).supply(recipe)


def test_a_recipe_names_it():
    values = {
        "task": "translate",
        "data": {"name": "copy", "examples": 7, "held": 3, "tokenizer": "words"},
        "model": {"width": 8, "heads": 2, "encoder": 1, "decoder": 1},
        "train": {"steps": 1},
    }
    supply = supply_of(values)
    assert [len(list(supply.rows(split))) for split in supply.splits] == [7, 3, 3]
    assert supply.made_of() == {"copy": 1, "examples": 7, "held": 3, "seed": 0}
    with pytest.raises(SaccadeError, match="copy has pairs of texts: its task is translate"):
        supply_of({**values, "task": "write", "model": {"width": 8, "heads": 2, "decoder": 1}}).rows("val")
    with pytest.raises(SaccadeError, match=r"no data set 'copi'; .*copy"):
        supply_of({**values, "data": {"name": "copi"}})
    with pytest.raises(SaccadeError, match="the split 'dev' is unknown"):
        example(0, split="dev")
