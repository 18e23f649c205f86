"""The nearest neighbour as a baseline: equal to going through all pairs, in blocks of any size."""

from __future__ import annotations

import captions
import numpy as np
import pytest

import saccade
from saccade.field.picture import pixels_of
from saccade.learn import neighbour as module
from saccade.learn.corpora import corpus_of, supply_of
from saccade.learn.neighbour import neighbour


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captions")
    return saccade.train(captions.recipe(folder, data={"share": 0.3}), run=folder / "run")


def rows_and_corpus(run):
    supply = supply_of(run, run.recipe)
    return supply, corpus_of(run.recipe, supply, run, "train", lambda _: None)


def by_all_pairs(supply):
    """For each held-out row the caption of the training picture with the least sum of squared differences."""
    train = [(pixels_of(raw).astype(float), caption) for raw, caption in supply.rows("train")]
    for raw, wanted in supply.rows("val"):
        apart = [((pixels_of(raw).astype(float) - pixels) ** 2).sum() for pixels, _ in train]
        yield train[int(np.argmin(apart))][1], wanted


@pytest.mark.parametrize("values", [1 << 24, 7 * 16 * 16 * 3, 1])
def test_it_is_the_least_of_all_pairs(run, monkeypatch, values):
    monkeypatch.setattr(module, "VALUES", values)
    supply, corpus = rows_and_corpus(run)
    rows = [*supply.rows("val")]
    read = module.Inputs(run.task, run.model, [row[0] for row in rows])
    numbers = module.nearest(run.task, read, corpus)
    found = [each.text for each in run.task.target.copied(corpus.column("target"), numbers, rows)]
    wanted = [*by_all_pairs(supply)]
    assert found == [copied for copied, _ in wanted]
    assert len({*found}) > 1
    scores = neighbour(run.task, run.model, rows, lambda: corpus)
    assert scores["exact_match"] == pytest.approx(np.mean([copied == true for copied, true in wanted]))


def test_evaluate_tells_it_beside_the_metrics(run):
    found = run.evaluate(split="val")
    assert found["baseline"]["what"] == "that of the nearest training picture"
    assert found["baseline"].keys() - {"what"} <= found["metrics"].keys()
    supply, _ = rows_and_corpus(run)
    pairs = [*by_all_pairs(supply)]
    assert found["baseline"]["exact_match"] == pytest.approx(np.mean([copied == wanted for copied, wanted in pairs]))


def test_a_picture_of_the_training_rows_is_its_own_neighbour(run):
    supply, corpus = rows_and_corpus(run)
    rows = [*supply.rows("train")]
    assert neighbour(run.task, run.model, rows, lambda: corpus)["exact_match"] == 1.0


def test_a_picture_without_an_answer_counts_as_wrong(run):
    supply, corpus = rows_and_corpus(run)
    rows = [*supply.rows("train")][:3]
    rows[0] = ("  ", rows[0][1])
    assert neighbour(run.task, run.model, rows, lambda: corpus)["exact_match"] == pytest.approx(2 / 3)


def test_another_language_is_further_than_any_picture(tmp_path):
    """Beside a picture that is asked for in another language, only training rows in that language are near."""
    captions.captions(tmp_path)
    told = [line.split("\t") for line in (tmp_path / "captions.tsv").read_text().splitlines()]
    rows = [(name, language, f"{language} {text}") for name, text in told for language in ("en", "de")]
    (tmp_path / "both.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    x = {"source": {"kind": "image", "embed": "convolutions((5,))"}, "language": {"tokenizer": "words", "vocab": 60}}
    files = {"files": [str(tmp_path / "both.tsv")], "share": 0.3}
    run = saccade.train(captions.recipe(tmp_path, data=files, x=x), run=tmp_path / "run")
    supply, corpus = rows_and_corpus(run)
    held = [*supply.rows("val")]
    read = module.Inputs(run.task, run.model, [run.task.inputs(row) for row in held])
    found = run.task.target.copied(corpus.column("target"), module.nearest(run.task, read, corpus), held)
    assert [each.text.split()[0] for each in found] == [language for _, language, _ in held]
    assert {language for _, language, _ in held} == {"en", "de"}
    (one, other) = run.predict([{"source": held[0][0], "language": each} for each in ("en", "de")])
    assert one.score != other.score, "the model is told the language"
