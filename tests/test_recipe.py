"""Recipes: what they say, what they refuse, and with which words."""

from __future__ import annotations

import tomllib
from typing import get_args

import pytest
from pydantic_core import core_schema

from saccade import SaccadeError
from saccade.recipe import Recipe, plain
from saccade.recipes import read as recipes
from saccade.recipes.read import from_values, recipe
from saccade.recipes.write import as_toml, as_value, differences, flat
from saccade.table import expected
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
        assert set(flat(plain(resolved(recipe(name))))) - {"x"} <= told  # recall has no x
    assert [path for path, each in found.items() if not each.meaning] == []
    assert found["train.steps"][1:4] == ("whole number >= 1", None, True)
    assert found["data.share"].takes == "number > 0 and < 1"
    assert found["x.NAME.tokenizer"][1:4] == ("characters | words | split | bpe", "bpe", False)
    assert found["model.encoder_mixer"].takes == "text | list of text"
    assert found["train.betas"].takes == "list of number"
    told = {path: each.usual for path, each in found.items() if path.startswith(("train.", "decode."))}
    given = [f"{path}={as_value(usual)}" for path, usual in told.items() if usual is not None]
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
        ("steps = 5", 'steps = "5"', r"line 13: train.steps should be a whole number >= 1; got '5'"),
        ("width = 6", "width = 7", r"line 6: model: 3 heads do not divide a width of 7"),
        ("heads = 3", "haeds = 3", r"line 8: model.haeds is unknown; did you mean 'heads'"),
        ('task = "translate"', 'task = "translat"', r"line 1: no task is called 'translat'; .*'translate'"),
        ("[train]", "[trian]", r"line 12: trian is unknown; did you mean 'train'"),
        ("[train]\nsteps = 5", '["train"]\nstepz = 5', r"line 13: train.stepz is unknown"),
        ("[train]\nsteps = 5\nbetas = [0.9, 0.95]", "[train]\nstepz = 5", r"line 13: train.stepz is unknown"),
        ('[data]\nname = "dates"', 'data = {nmae = "dates"}', r"line 3: data.nmae is unknown; did you mean 'name'"),
        ('name = "dates"', 'name = "dates"\nfiles = ["a"]', "data: give a name or files, not both"),
        ("[model]", "[model", "is no TOML"),
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
        ("train.steps=many", "train.steps should be a whole number >= 1; got 'many'"),
        ("train.clip=inf", "train.clip should be a finite number"),
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
        (["train.average=ema"], r"train.average should be as in: none, last\(n\), ema\(decay\); got 'ema'"),
        (["data.name=", "data.columns=text"], "data.columns should be a list; got 'text'"),
        (["data.name=", "data.columns=[2, 2]"], r"data.columns names a column twice: \[2, 2\]"),
        (["train.steps=5\nseed=3"], r"an option is one value on one line; got 'train.steps=5\\nseed=3'"),
        (["model="], r"mine.toml: give a \[model\] to begin anew"),
        (["start=run", "model.widht=9"], "mine.toml: model.widht is unknown; did you mean 'width'"),
        (["model.mixer=convolutio", "model.mask=causal"], "model.mixer: no mixer .*; did you mean 'convolution'"),
        (
            ["model.encoder={depth=1, mixer='gruu'}", "model.summary='linformer(2, 4)'"],
            "encoder.mixer: no mixer .*'gru'",
        ),
    ],
)
def test_options_that_do_not_go_together(file, options, why):
    with pytest.raises(SaccadeError, match=why):
        recipe(file, options)


SAID = ("Input should", "valid", "required", "parse", "dictionary", "integer", "boolean", "string", "None", "pydantic")


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("train.steps=many", "train.steps should be a whole number >= 1; got 'many'"),
        ("train.steps=2.5", "train.steps should be a whole number >= 1; got 2.5"),
        ("train.steps=0", "train.steps should be a whole number >= 1; got 0"),
        ("train.rate=fast", "train.rate should be a number > 0; got 'fast'"),
        ("train.rate=nan", "train.rate should be a finite number; got nan"),
        ("train.final=2", "train.final should be a number >= 0 and <= 1; got 2"),
        ("train.compile=1", "train.compile should be true or false; got 1"),
        ("train.device=3", "train.device should be a text; got 3"),
        ("train.schedule=cosin", "'cosine' or 'inverse_sqrt'; got 'cosin'; did you mean 'cosine'?"),
        ("train.average=last(x)", "train.average should be as in: none, last(n), ema(decay); got 'last(x)'"),
        ("train.betas=[0.9]", "train.betas: entry 2 is missing"),
        ("train.betas=[0.9, 0.9, 0.9]", "train.betas should be a list of 2 or fewer; got (0.9, 0.9, 0.9)"),
        ("train.betas=[0.9, 2.0]", "train.betas (entry 2) should be below 1; got 2.0"),
        ("train.betas=['a', 0.9]", "train.betas (entry 1) should be a number; got 'a'"),
        ("train.steps=", "train.steps is missing: it takes a whole number >= 1"),
        ("train=5", "train should be a table; got 5"),
        ("model=[1]", "model should be a table; got [1]"),
        ("model.masks={a=3}", "model.masks.a should be a text; got 3"),
        ("model.embed=7", "model.embed should be a text or a table; got 7"),
        ("model.attention_bias=kv", "model.attention_bias should be true or false or 'qkv'; got 'kv'"),
        ("model.streams=3", "model.streams should be 1 or 2; got 3"),
        ("model.encoder={depth=1, heads='a'}", "encoder.heads should be a whole number >= 1; got 'a'"),
        ("x.source=5", "x.source should be a table; got 5"),
        ("data.columns=[1, 'a']", "data.columns should be a list of text or list of whole number"),
        ("decode.stop=[1]", "decode.stop (entry 1) should be a text; got 1"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(file, option, why):
    with pytest.raises(SaccadeError) as problem:
        resolved(recipe(file, [option]))
    told = str(problem.value)
    assert why in told
    assert [each for each in SAID if each in told] == []


def test_every_error_of_pydantic_has_plain_words():
    """Those that no table here can give too."""
    context = dict.fromkeys(
        ["gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern", "expected"], 3
    )
    for kind in get_args(core_schema.ErrorType):
        told = expected({"type": kind, "msg": "Input should be a valid thing", "ctx": {**context, "error": "wrong"}})
        assert told
        assert [each for each in SAID if each in told] == []


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("data.columns=[review,stars]", '["review", "stars"]'),  # what bash leaves of data.columns=["review","stars"]
        ("data.columns=review,stars", '["review", "stars"]'),
        ("data.columns=review", '["review"]'),
        ("data.columns=1,2", "[1, 2]"),
        ("train.betas=0.9,0.98", "[0.9, 0.98]"),
        ("data.files=[a.en, a.de]", '["a.en", "a.de"]'),
    ],
)
def test_a_list_without_its_quotes_is_told_how_to_write_it(file, option, written):
    key = option.partition("=")[0]
    with pytest.raises(SaccadeError, match=f"{key} should be a list; got .*: write ") as problem:
        recipe(file, ["data.name=", option])
    assert f"-o '{key}={written}'" in str(problem.value)
    assert recipe(file, ["data.name=", f"{key}={written}"])
