"""Recipes: what they say, what they refuse, and with which words."""

from __future__ import annotations

import tomllib

import pytest

from saccade import SaccadeError
from saccade import recipe as recipes
from saccade.recipe import Recipe, as_toml, differences, from_values, recipe
from saccade.task.pair import keys, resolved

TEXT = """\
task = "translate"

[data]
name = "dates"

[model]
width = 6
heads = 3
encoder = 1
decoder = 1

[train]
steps = 5
betas = [0.9, 0.95]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("name", recipes.names())
def test_every_built_in_recipe_reads_and_says_its_command(name):
    made = resolved(recipe(name))
    assert isinstance(made, Recipe)
    head = recipes.header(name)
    assert head["command"].startswith(f"saccade train {name}")
    assert ("score" in head) == ("minutes" in head)  # what was measured, and in which time
    assert head["about"]


def test_every_key_is_told_with_what_it_takes():
    found = {each.path: each for each in keys()}
    told = {path.replace(" (without x)", "").replace("NAME", "source") for path in found}
    for name in ("recall", "translate", "classify"):
        assert set(recipes._flat(recipes._plain(resolved(recipe(name))))) - {"x"} <= told  # recall has no x
    assert [path for path, each in found.items() if not each.meaning] == []
    assert found["train.steps"][1:4] == ("whole number >= 1", None, True)
    assert found["data.share"].takes == "number > 0 and < 1"
    assert found["x.NAME.tokenizer"][1:4] == ("characters | words | split | bpe", "bpe", False)
    assert found["model.encoder_mixer"].takes == "text | list of text"
    assert found["train.betas"].takes == "list of number"
    told = {path: each.usual for path, each in found.items() if path.startswith(("train.", "decode."))}
    given = [f"{path}={recipes.as_value(usual)}" for path, usual in told.items() if usual is not None]
    assert recipe("recall", given).train.rate == told["train.rate"]  # as they are told they can be given


def test_written_down_and_read_again(file):
    made = recipe(file)
    again = from_values(tomllib.loads(as_toml(made)))
    assert again == made
    assert made.train.betas == (0.9, 0.95)
    whole = resolved(made)
    assert from_values(tomllib.loads(as_toml(whole))) == resolved(whole) == whole != made


def test_options_go_over_the_file(file):
    made = resolved(recipe(file, ["train.steps=7", "model.position=rotary", "data.lower=true", "train.rate=1e-4"]))
    assert (made.train.steps, made.model.position, made.train.rate) == (7, "rotary", 1e-4)
    assert made.x["source"]["lower"] is made.y["lower"] is True
    changed = ["model.position", "train.rate", "train.steps", "x.source.lower", "y.lower"]
    assert differences(resolved(recipe(file)), made) == changed
    assert differences(made, made) == []


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("steps = 5", "stepz = 5", r"mine.toml, line 13: train.stepz is unknown; did you mean 'steps'"),
        ("steps = 5", 'steps = "5"', r"line 13: train.steps: .*integer; got '5'"),
        ("width = 6", "width = 7", r"line 6: model: 3 heads do not divide a width of 7"),
        ("heads = 3", "haeds = 3", r"line 8: model.haeds is unknown; did you mean 'heads'"),
        ('task = "translate"', 'task = "translat"', r"line 1: no task is called 'translat'; .*'translate'"),
        ("[train]", "[trian]", r"line 12: trian is unknown; did you mean 'train'"),
        ("[train]\nsteps = 5", '["train"]\nstepz = 5', r"line 13: train.stepz is unknown"),
        ("[train]\nsteps = 5\nbetas = [0.9, 0.95]", "[train]\nstepz = 5", r"line 13: train.stepz is unknown"),
        ('[data]\nname = "dates"', 'data = {nmae = "dates"}', r"line 3: data.nmae is unknown; did you mean 'name'"),
        ('name = "dates"', 'name = "dates"\nfiles = ["a"]', "data: give a name or files, not both"),
        ("[model]", "[model", "is no TOML"),
        ('task = "translate"', 'start = "run"\ntask = "translate"', "not both"),
    ],
)
def test_what_is_wrong_is_told_with_path_and_line(file, before, after, why):
    assert before in TEXT
    file.write_text(TEXT.replace(before, after))
    with pytest.raises(SaccadeError, match=why) as problem:
        resolved(recipe(file))
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("train.steps", "an option is written a.b=value"),
        ("=5", "an option is written a.b=value"),
        ("task.x=5", "task holds a value, not a table"),
        ("train.stpes=5", "train.stpes is unknown; did you mean 'steps'"),
        ("train.steps=many", "train.steps: .*integer; got 'many'"),
        ("train.clip=inf", "train.clip: .*finite"),
        ("train.betas=[2.0, 3.0]", "train.betas"),
        ("seed=99999999999999999999", "seed"),
        ("train.average=last(0)", "train.average"),
    ],
)
def test_wrong_options(file, option, why):
    with pytest.raises(SaccadeError, match=why):
        recipe(file, [option])


def test_an_option_without_a_value_takes_a_key_away(file):
    assert recipe(file, ["model.position=rotary", "train.patience=3"]).model.position == "rotary"
    made = recipe(file, ["model.position=rotary", "train.patience=3", "model.position=", "train.patience= "])
    assert made.model.position is None
    assert made.train.patience is None


def test_unknown_names(tmp_path):
    with pytest.raises(SaccadeError, match="no recipe is called 'date'; did you mean 'dates'"):
        recipe("date")
    with pytest.raises(SaccadeError, match="cannot be read: No such file"):
        recipe(tmp_path / "nowhere.toml")


def test_a_model_of_the_zoo_with_changes(file):
    file.write_text(
        TEXT.replace("width = 6\nheads = 3\nencoder = 1\ndecoder = 1", 'name = "transformer-base"\nwidth = 64')
    )
    made = recipe(file)
    assert (made.model.width, made.model.heads, made.model.vocab, made.model.order) == (64, 8, 0, "post")


def test_a_model_of_the_zoo_comes_whole(file):
    """As `start` does: of the recipe's own model nothing stays, but what other options say."""
    named, own = recipe(file, ["model.name=transformer-base", "model.dropout=0.3"]).model, recipe(file).model
    assert (named.width, named.heads, named.encoder, named.vocab, named.dropout) == (512, 8, 6, 0, 0.3)
    assert recipe(file, ["model.name="]).model == own
    assert "model.name" in [each.path for each in keys()]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["model.experts=3", "model.feed=none"], "experts are feed-forwards to choose from"),
        (["train.average=ema"], r"train.average: Input should be as in: none, last\(n\), ema\(decay\); got 'ema'"),
        (["data.name=", "data.columns=text"], "data.columns: Input should be a valid list; got 'text'"),
        (["data.name=", "data.columns=[2, 2]"], r"data.columns names a column twice: \[2, 2\]"),
        (["train.steps=5\nseed=3"], r"an option is one value on one line; got 'train.steps=5\\nseed=3'"),
        (["start=run", "model.width=9"], r"mine.toml: give a \[model\] to begin anew"),
    ],
)
def test_options_that_do_not_go_together(file, options, why):
    with pytest.raises(SaccadeError, match=why):
        recipe(file, options)
