"""Options that have no effect are refused; those that have one are accepted."""

from __future__ import annotations

import pytest
from tiny import classify, translate, write

import saccade
from saccade import SaccadeError
from saccade.learn import unused
from saccade.recipe import Recipe, keys
from saccade.recipes import read as recipes
from saccade.recipes.write import as_value
from saccade.task.pair import resolved

TASKS = {"translate": translate, "classify": classify, "write": write}


def asked(source, *options) -> Recipe:
    made = resolved(recipes.recipe(source, options))
    unused.refuse(made, options)
    return made


@pytest.mark.parametrize(
    ("task", "options", "why"),
    [
        (
            "translate",
            ["train.matrix_rate=0.1"],
            "train.matrix_rate belongs to train.optimiser = 'muon' and does nothing",
        ),
        ("translate", ["train.momentum=0.5"], "train.momentum belongs to train.optimiser = 'sgd' or 'muon'"),
        ("translate", ["train.optimiser=sgd", "train.betas=[0.9, 0.95]"], "betas belongs to train.optimiser = 'adam'"),
        ("translate", ["train.unmerge_side=source"], "unmerge_side belongs to train.unmerge"),
        ("translate", ["train.samples=5"], "samples belongs to train.reward"),
        ("translate", ["model.chosen=1"], "model.chosen belongs to model.experts"),
        ("translate", ["model.capacity=2.0"], "model.capacity belongs to model.experts"),
        ("translate", ["train.balance=0.5"], "train.balance belongs to model.experts"),
        (
            "translate",
            ["model.score='feature(favor, 32, seed=0)'"],
            "no softmax follows: write model.normaliser = 'sum'",
        ),
        ("translate", ["decode.length_reward=0.8"], "decode.length_reward belongs to decode.beam and does nothing"),
        ("translate", ["decode.length_penalty=0.6"], "decode.length_penalty belongs to decode.beam"),
        ("translate", ["decode.beam=4", "decode.diversity=1.0"], "decode.diversity belongs to decode.groups"),
        ("translate", ["decode.top_p=0.9"], "decode.top_p belongs to decode.temperature"),
        (
            "translate",
            ["model.pool=mean"],
            "model.pool is for a task that reads a pooled state, and translate reads none",
        ),
        ("translate", ["train.length=64"], r"train.length belongs to .* task is translate: .* \(-o train.length=\)"),
        ("classify", ["train.length=64"], "train.length belongs to a window of one text, and the task is classify"),
        ("classify", ["data.pair=en-de"], "data.pair names languages, and here there are none"),
        ("classify", ["decode.max_tokens=7"], "decode.max_tokens says how to write, and classify writes nothing"),
        ("classify", ["decode.stop=['a']"], "decode.stop says how to write"),
        ("classify", ["data.both=true"], "data.both turns pairs of one kind round, and the task is classify"),
        ("translate", ["data.ask=?"], "data.ask belongs to texts that are gone on with, and the task is translate"),
        (
            "translate",
            ["model.memory=8"],
            "model.memory goes from segment to segment of a text, and translate has none",
        ),
        (
            "write",
            ["data.tokenizer=bpe", "train.unmerge=0.1"],
            "train.unmerge belongs to whole examples, and write reads windows",
        ),
        ("write", ["data.pair=en-de"], "data.pair names languages"),
        ("write", ["train.embedding=words"], "train.embedding brings vectors of words, and nothing here is read by"),
        ("write", ["data.limit=9"], r"data.limit belongs to examples, .* \(y.window\)"),
        (
            "write",
            ["decode.ratio=2.0"],
            "decode.ratio belongs to a text that is written of another, and the task is write",
        ),
        (
            "write",
            ["decode.replace_unknown=true"],
            "decode.replace_unknown belongs to a text that is written of another",
        ),
        ("write", ["data.examples=9"], "data.examples belongs to data that are made here"),
    ],
)
def test_what_would_do_nothing_is_refused(tmp_path, task, options, why):
    with pytest.raises(SaccadeError, match=why):
        asked(TASKS[task](tmp_path), *options)


@pytest.mark.parametrize(
    ("name", "option", "why"),
    [
        ("dates", "data.pair=en-de", "data.pair names languages"),
        ("dates", "data.share=0.5", "data.share splits files, and dates is made here"),
        ("multi30k-en-de", "data.held=9", "data.held belongs to data that are made here"),
        ("multi30k-en-de-gnmt-reward", "data.vocab=8000", "data.vocab comes along with the weights of start"),
        ("multi30k-en-de-gnmt-reward", "data.lower=false", "data.lower comes along with the weights of start"),
        ("shakespeare-char", "task=classify", "tinyshakespeare has texts to go on with: its task is write, not class"),
    ],
)
def test_of_built_in_recipes_too(name, option, why):
    with pytest.raises(SaccadeError, match=why):
        asked(name, option)


@pytest.mark.parametrize("name", recipes.names())
def test_every_built_in_recipe_serves_with_own_files_and_with_weights(name):
    assert asked(name).start == recipes.recipe(name).start
    made = ["data.examples=", "data.held=", "data.recall="]
    assert asked(name, "data.name=", *made, "data.files=['a.en', 'a.de']").data.files
    assert asked(name, "start=run").model is None


def test_what_does_something_is_taken(tmp_path):
    made = translate(tmp_path)
    assert asked(made, "decode.beam=4", "decode.groups=2", "decode.diversity=1.0").decode.diversity == 1.0
    assert asked(made, "decode.temperature=0.7", "decode.top_k=9").decode.top_k == 9
    assert asked(made, "model.experts=3", "train.balance=0.5").train.balance == 0.5
    assert asked(made, "data.pair=en-de", "data.limit=9", "decode.ratio=2.0").data.pair == "en-de"
    assert asked("multi30k-en-de-gnmt-reward", "data.vocab=").x["source"]["vocab"] == 8000  # taken away, not asked for
    told = {each.path: each.usual for each in keys() if each.path.startswith(("train.", "decode."))}
    asked("recall", *(f"{path}={as_value(usual)}" for path, usual in told.items() if usual is not None))


def test_the_recipe_of_a_run_is_not_asked_for_again(tmp_path):
    """Of what was trained already nothing is refused that was allowed then; who asks for the same anew is told."""
    made = translate(tmp_path, train={"momentum": 0.5})
    assert made.train.momentum == 0.5
    with pytest.raises(SaccadeError, match=r"train.momentum belongs"):
        saccade.train(made, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
