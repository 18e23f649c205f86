"""What an evaluation says and writes, for every task: intervals, classes, answers as a file, a split as a file."""

from __future__ import annotations

import csv
import io
import json
import math
import random

import numpy as np
import own
import pytest
import tiny
from rich.console import Console

import saccade
from saccade.data import source
from saccade.error import SaccadeError
from saccade.learn.compare import compare
from saccade.learn.corpora import corpus_of, supply_of
from saccade.learn.heldout import write_split
from saccade.learn.prepare import SHOWN
from saccade.learn.validate import evaluate, mean_loss
from saccade.recipes.read import from_values
from saccade.store.load import load
from saccade.task.pair import pair_of

TASKS = ("translate", "classify", "regress", "write", "pictures", "questions")
ANSWERED = ("translate", "classify", "regress", "pictures")


def regress(folder):
    path = folder / "table.csv"
    path.write_text("".join(f"{each},{len(each)},{each.count('a') / 3}\n" for each in tiny.words(120)))
    values = {
        "task": "regress",
        "data": {"files": [str(path)], "share": 0.2},
        "x": {"source": {"tokenizer": "characters", "vocab": 30}},
        "model": {**tiny.MODEL, "encoder": 1},
        "train": tiny.TRAIN,
    }
    return from_values(values)


def pictures(folder):
    own.photos(folder)
    values = {
        "task": "classify",
        "data": {"files": [str(folder / "photos")], "share": 0.3},
        "x": {"source": {"kind": "image", "embed": "patches(8)", "size": 16}},
        "model": {**tiny.MODEL, "encoder": 1, "position": None},
        "train": tiny.TRAIN,
    }
    return from_values(values)


def questions(folder):
    path, draw = folder / "asked.jsonl", random.Random(0)
    with path.open("w") as file:
        for _ in range(40):
            keys, values = draw.sample("abcd", 2), draw.choices("wxyz", k=2)
            text = f"{keys[0]} {values[0]} {keys[1]} {values[1]} ? {keys[0]} {values[0]}"
            file.write(json.dumps({"text": text}) + "\n")
    values = {
        "task": "write",
        "data": {"files": [str(path)], "share": 0.3},
        "y": {"tokenizer": "words", "vocab": 30, "window": 7, "ask": "?"},
        "model": {**tiny.MODEL, "decoder": 1},
        "train": tiny.TRAIN,
    }
    return from_values(values)


RECIPES = {
    "translate": tiny.translate,
    "classify": tiny.classify,
    "regress": regress,
    "write": lambda folder: tiny.write(folder, train={"steps": 3}),
    "pictures": pictures,
    "questions": questions,
}


@pytest.fixture(scope="module")
def runs(shared):
    """A run of every task, with its files."""

    def make(folder):
        for name, recipe in RECIPES.items():
            (folder / name).mkdir()
            saccade.train(recipe(folder / name), run=folder / name / "run")

    return shared("evaluated", make)


@pytest.fixture(params=TASKS)
def run(runs, request):
    return load(runs / request.param / "run")


def rows_of(run, split="val"):
    return [*supply_of(run, run.recipe).rows(split)]


def test_every_metric_has_an_interval_that_holds_it(run):
    found = evaluate(run)
    assert list(found)[:4] == ["step", "split", "examples", "metrics"]
    assert set(found["interval"]) == set(found["metrics"])
    for name, (low, high) in found["interval"].items():
        assert low <= found["metrics"][name] <= high, name
        assert math.isfinite(low)
        assert math.isfinite(high)
    assert evaluate(run)["interval"] == found["interval"], "the same seed, the same draws"
    supply = supply_of(run, run.recipe)
    corpus = corpus_of(run.recipe, supply, run, "val", lambda _: None)
    assert found["metrics"]["loss"] == mean_loss(run.task, run.model, corpus, run.recipe.train)[0]


@pytest.mark.parametrize("name", ["classify", "pictures"])
def test_a_classifier_is_told_class_by_class(runs, name, command, tmp_path):
    folder = runs / name / "run"
    run = load(folder)
    rows = rows_of(run)
    said = [each.text for each in run.predict([row[0] for row in rows])]
    wanted = [row[-1] for row in rows]
    found = json.loads(command("evaluate", folder, "--json", "--out", tmp_path / "c.svg").stdout)
    labels = found["confusion"]["labels"]
    for n, label in enumerate(labels):
        for m, other in enumerate(labels):
            pairs = sum((a, b) == (label, other) for a, b in zip(wanted, said, strict=True))
            assert found["confusion"]["counts"][n][m] == pairs
        assert found["classes"][label]["support"] == wanted.count(label)
    occur = {*said, *wanted}
    assert found["metrics"]["macro_f1"] == pytest.approx(np.mean([found["classes"][each]["f1"] for each in occur]))
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
    told = command("evaluate", folder).stdout
    assert "label\tprecision\t95 %\trecall\t95 %\tF1\t95 %\texamples" in told, "no padding where no terminal reads"
    assert "wanted \\ answered\t" + "\t".join(labels) in told
    assert "(95 %: " in told
    chances = json.loads(command("predict", folder, rows[0][0], "--json").stdout)["probabilities"]
    assert set(chances) == set(labels)
    assert sum(chances.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
@pytest.mark.parametrize("name", ANSWERED)
def test_answers_are_written_and_compared(runs, name, kind, tmp_path):
    run, path = load(runs / name / "run"), tmp_path / f"answers.{kind}"
    found = evaluate(run, out=path)
    assert found["out"] == str(path)
    rows = rows_of(run)
    answers = [each.text for each in run.predict([row[0] for row in rows])]
    assert list(source.column(path, "answer")) == answers
    assert list(source.column(path, "reference")) == [run.task.target.show(row[-1]) for row in rows]
    assert list(source.column(path, "source")) == [str(row[0]) for row in rows]
    if name != "regress":  # a file of numbers is no file of answers
        both = compare([run.path, path]).runs
        assert both[1].metrics == pytest.approx(both[0].metrics)


@pytest.mark.parametrize(("name", "file"), [("write", "a.tsv"), ("questions", "a.csv"), ("translate", "a.svg")])
def test_what_there_is_not_is_not_written(runs, name, file, tmp_path):
    with pytest.raises(SaccadeError, match=r"no answers to write|gives no labels"):
        evaluate(load(runs / name / "run"), out=tmp_path / file)
    with pytest.raises(SaccadeError, match="no kind of file"):
        evaluate(load(runs / name / "run"), out=tmp_path / "a.txt")
    assert not [*tmp_path.glob("a.*")]


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
@pytest.mark.parametrize("name", ANSWERED)
def test_a_split_is_written_as_training_reads_it(runs, name, kind, tmp_path):
    run, path = load(runs / name / "run"), tmp_path / f"val.{kind}"
    found = write_split(run, "val", [path])
    rows = rows_of(run)
    assert found == ("val", len(rows), [str(path)])
    head = source.titles(path) if kind == "jsonl" else []
    data = run.recipe.data.model_copy(update={"files": [str(path)], "columns": head, "share": 0.5})
    supply = pair_of(run.recipe).supply(run.recipe.model_copy(update={"data": data}))
    kinds = list(supply.kinds.values())
    for row, other in zip(rows, supply.everything(), strict=True):
        assert [k.identity(a) for k, a in zip(kinds, row, strict=True)] == [
            k.identity(b) for k, b in zip(kinds, other, strict=True)
        ]


def test_a_split_goes_out_and_answers_of_another_system_come_back(runs, command, tmp_path):
    folder = runs / "translate" / "run"
    out = [tmp_path / "val.a", tmp_path / "val.b"]
    told = command("data", folder, "--split", "val", "--out", out[0], "--out", out[1])
    assert told.returncode == 0
    assert "val.b: val, " in told.stdout
    rows = rows_of(load(folder))
    assert list(zip(*(each.read_text().splitlines() for each in out), strict=True)) == rows
    (tmp_path / "theirs.txt").write_text("".join(f"{line[::-1]}\n" for line in out[0].read_text().splitlines()))
    found = json.loads(command("compare", folder, tmp_path / "theirs.txt", "--json").stdout)
    assert found["runs"][1]["metrics"]["exact_match"] == 1.0
    assert found["metric"] == "exact_match", "the words have no phrases for BLEU"
    text = tmp_path / "rest.txt"
    assert command("data", runs / "write" / "run", "--out", text).returncode == 0
    assert text.read_text() == "".join(row[0] for row in rows_of(load(runs / "write" / "run")))
    for words, problem in (
        (["--split", "vall", "--out", tmp_path / "v.tsv"], "no split 'vall'"),
        (["--out", tmp_path / "v.txt"], "write one table"),
        (["--out", tmp_path / "nowhere" / "v.tsv"], "is no folder"),
    ):
        refused = command("data", folder, *words)
        assert refused.returncode == 2
        assert problem in refused.stderr


def test_the_size_of_a_run_is_that_of_its_model(runs, command):
    for name in ("translate", "pictures"):
        run = load(runs / name / "run")
        found = json.loads(command("size", run.path, "--json", "--length", "11").stdout)
        assert found["parameters"] == sum(each.numel() for each in run.model.parameters())
        assert found["bytes_stored"] == 4 * found["parameters"] == found["bytes_weights"]
        assert found["flops_training"] == 3 * found["flops_forward"] > 0
        assert found["step"] == run.step
    assert "no model is called" in command("size", runs / "nothing").stderr


def test_training_says_what_its_numbers_are(tmp_path):
    console = Console(record=True, width=200, file=io.StringIO())
    made = tiny.classify(tmp_path, model={"dropout": 0.1}, y={"smoothing": 0.2})
    saccade.train(made, run=tmp_path / "run", console=console)
    told = console.export_text()
    held = len(rows_of(load(tmp_path / "run")))
    assert f"(on {min(held, SHOWN)} examples)" in told
    assert told.count("loss: in training with label smoothing 0.2 and dropout 0.1, in validation without") == 1


def test_a_table_of_csv_has_a_header(runs, tmp_path):
    evaluate(load(runs / "classify" / "run"), out=tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["source", "answer", "reference"]
