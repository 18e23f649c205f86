"""Recipes of 0.1.0: every key they had is read, and one that is wrong or has no effect is refused."""

from __future__ import annotations

import pytest

from saccade import SaccadeError
from saccade.recipe import plain
from saccade.recipes.earlier import MOVED, today
from saccade.recipes.read import from_values, recipe
from saccade.recipes.write import flat
from saccade.task.pair import pair_of, resolved

STACKS = {"translate": {"encoder": 1, "decoder": 1}, "write": {"decoder": 1}, "classify": {"encoder": 1}}


def values_of(task, data=None, train=None):
    model = {"width": 6, "heads": 3, **STACKS[task]}
    return {
        "task": task,
        "data": {"files": ["a"], **(data or {})},
        "model": model,
        "train": {"steps": 1, **(train or {})},
    }


def told(task, *options):
    """All that a recipe says, by dotted path."""
    return flat(plain(resolved(from_values(values_of(task), options))))


TEXTS = {"translate": ["x.source", "y"], "write": ["y"], "classify": ["x.source"]}
READ = {"translate": ["x.source", "y"], "classify": ["x.source"]}
SAID = {"translate": ["y"], "write": ["y"], "classify": ["y"]}
KEYS = {  # of 0.1.0: a value, its name today, and where it stands by task
    "data.tokenizer": ("words", "tokenizer", TEXTS),
    "data.vocab": (307, "vocab", TEXTS),
    "data.lower": (True, "lower", TEXTS),
    "data.limit": (37, "limit", READ),
    "data.ask": ("?", "ask", {"write": ["y"]}),
    "train.length": (41, "window", {"write": ["y"]}),
    "train.smoothing": (0.3, "smoothing", SAID),
    "train.agree": (1.5, "agree", SAID),
    "train.unmerge": (0.2, "unmerge", READ),
}


def written(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_they_are_all_here():
    assert KEYS.keys() == MOVED.keys()


@pytest.mark.parametrize("task", STACKS)
@pytest.mark.parametrize("old", KEYS)
def test_a_key_stands_where_its_fields_are(old, task):
    value, name, places = KEYS[old]
    option = f"{old}={written(value)}"
    if task not in places:
        problem = rf"{old} belongs to .*, and the task is {task}: take it away \(-o {old}=\)"
        with pytest.raises(SaccadeError, match=problem):
            told(task, option)
        return
    found, usual = told(task, option), told(task)
    paths = {f"{place}.{name}" for place in places[task]}
    assert {path for path in found if found[path] != usual.get(path)} == paths
    assert all(found[path] == value for path in paths)


@pytest.mark.parametrize("task", STACKS)
def test_what_was_left_to_its_default_says_nothing(task):
    """Recipes that runs of 0.1.0 keep have all keys, those of other tasks too."""
    data = {"tokenizer": "bpe", "vocab": 8000, "lower": False, "limit": 256}
    more = {"smoothing": 0.0, "agree": 0.0, "unmerge": 0.0, "unmerge_side": "both", "reward": 0.0, "samples": 4}
    assert resolved(from_values(values_of(task, data, {"length": 256, **more}))) == resolved(
        from_values(values_of(task))
    )


def test_of_which_texts_sub_words_come_apart():
    both, source = (told("translate", "train.unmerge=0.2", f"train.unmerge_side={side}") for side in ("both", "source"))
    assert (both["x.source.unmerge"], both["y.unmerge"]) == (0.2, 0.2)
    assert (source["x.source.unmerge"], source["y.unmerge"]) == (0.2, 0.0)
    assert told("classify", "train.unmerge=0.2", "train.unmerge_side=source")["x.source.unmerge"] == 0.2


@pytest.mark.parametrize(
    ("options", "objective"),
    [
        (["train.reward=0.7"], "reward(0.7, samples=4)"),
        (["train.reward=0.7", "train.samples=3"], "reward(0.7, samples=3)"),
        (["train.reward=0.0"], None),
        (["train.objective='reward(0.9, samples=7)'"], "reward(0.9, samples=7)"),
        (["train.objective='reward(0.9, samples=7)'", "train.samples=3"], "reward(0.9, samples=3)"),
        (["train.objective='reward(0.9, 7)'", "train.reward=0.2"], "reward(0.2, samples=7)"),
        (["train.objective='reward(0.9)'", "train.reward=0"], None),
        (["train.objective='reward(0.9)'", "train.reward="], None),
    ],
)
def test_rewards_are_an_objective(options, objective):
    assert told("translate", *options).get("train.objective") == objective


def test_options_of_0_1_0_go_over_the_recipes_of_today():
    made = resolved(recipe("recall", ["train.length=37", "data.vocab=300"]))
    assert (made.y["window"], made.y["vocab"], made.y["ask"]) == (37, 300, "?")
    assert "ask" not in resolved(recipe("recall", ["data.ask="])).y, "taken away"
    assert resolved(recipe("translate")).x["source"]["limit"] == 128
    assert resolved(recipe("translate", ["data.limit="])).x["source"]["limit"] == 256, "as it is unless given"
    assert recipe("multi30k-en-de-gnmt-reward", ["train.samples=2"]).train.objective == "reward(0.9, samples=2)"


def test_what_is_given_stays_as_it_is():
    values = values_of("translate", {"vocab": 307})
    today(values)
    assert values == values_of("translate", {"vocab": 307})


@pytest.mark.parametrize(
    ("task", "options", "why"),
    [
        ("translate", ["data.vocab=3"], r"recipe: x\.source\.vocab should be a whole number >= 5; got 3"),
        ("write", ["train.length=long"], r"y\.window should be a whole number >= 1; got 'long'"),
        ("translate", ["data.tokenizer=letters"], r"x\.source\.tokenizer should be 'characters', 'words', .* or 'bpe'"),
        ("translate", ["data.vocabulary=300"], r"data\.vocabulary is unknown"),
        (
            "translate",
            ["train.unmerge=0.1", "train.unmerge_side=left"],
            "train.unmerge_side = 'left' is neither 'both'",
        ),
        ("translate", ["train.unmerge_side=source"], "train.unmerge_side belongs to train.unmerge and does nothing"),
        ("translate", ["train.samples=9"], "train.samples belongs to train.reward and does nothing here: take it away"),
        ("translate", ["train.objective='reward(0.9'", "train.samples=9"], "cannot read the objective"),
    ],
)
def test_a_wrong_one_is_told(task, options, why):
    with pytest.raises(SaccadeError, match=why) as problem:
        told(task, *options)
    assert "\n" not in str(problem.value)


def test_the_line_of_a_wrong_one_is_told(tmp_path):
    path = tmp_path / "mine.toml"
    model = "[model]\nwidth = 6\nheads = 3\nencoder = 1\ndecoder = 1\n"
    text = f'task = "translate"\n[data]\nname = "dates"\nvocab = 3\n{model}'
    path.write_text(f"{text}[train]\nsteps = 1\nsmoothing = 1.5\n")
    with pytest.raises(SaccadeError, match=r"mine.toml, line 4: x\.source\.vocab should be .*got 3"):
        pair_of(recipe(path))
    with pytest.raises(SaccadeError, match=r"mine.toml, line 12: y\.smoothing should be .*got 1\.5"):
        pair_of(recipe(path, ["data.vocab=300"]))
