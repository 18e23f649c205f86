"""Runs side by side: draws, buckets and FLOPs against plain counts, small runs of every task, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import photos
import pytest
import sacrebleu
import tasks
import torch
from rich.console import Console
from torch import nn

import saccade
from saccade.cli import main
from saccade.field import metric
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.text import Text
from saccade.learn.bootstrap import differences
from saccade.learn.bucket import Bucket, buckets_of, edges_of
from saccade.learn.compare import _where_they_differ, compare
from saccade.learn.comparison import KINDS, Against, Comparison, RunScores
from saccade.learn.contender import Contender
from saccade.learn.corpora import supply_of
from saccade.learn.cost import flops_a_prediction, forward_flops, writing_speeds
from saccade.learn.tally import of_answers, of_windows
from saccade.learn.validate import evaluate
from saccade.recipes.read import from_values
from saccade.task.batch import Batch
from saccade.zoo.build import build

MODEL = {"width": 12, "heads": 2, "hidden": 16, "position": "rotary"}
WORDS = ["the", "a", "cat", "dog", "bird", "sees", "hears", "likes", "red", "small", "green", "house", "tree"]


def sentences(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 19))) for _ in range(count)]


def recipe(task: str, data: dict, model: dict, **more):
    train = {"steps": 3, "batch": 150, "every": 3, "rate": 1e-2, **more.pop("train", {})}
    values = {"task": task, "data": {"tokenizer": "words", "vocab": 40, "share": 0.3, **data}}
    decode = {} if task == "classify" else {"decode": {"max_tokens": 12}}
    return from_values({**values, "model": {**MODEL, **model}, "train": train, **decode, **more})


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Translators (one of them recurrent), language models and classifiers, trained for three steps."""
    folder = tmp_path_factory.mktemp("runs")
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    texts = sentences(60)
    (folder / "a").write_text("".join(f"{each}\n" for each in texts))
    (folder / "b").write_text("".join(f"{each.upper()}\n" for each in texts))
    (folder / "c.tsv").write_text("".join(f"{each}\t{'cat' in each}\n" for each in texts))
    pair = {"files": [str(folder / "a"), str(folder / "b")]}
    both, gru = {"encoder": 1, "decoder": 1}, {"mixer": "gru", "order": "plain", "feed": "none", "position": None}
    made = {
        "attention": recipe("translate", pair, both),
        "gru": recipe("translate", pair, {**both, **gru}),
        "deeper": recipe("translate", pair, {**both, "decoder": 2}),
        "other": recipe("translate", {**pair, "share": 0.2}, both),
        "writer": recipe("write", {"files": [str(folder / "a")]}, {"decoder": 1}, train={"length": 30}),
        "longer": recipe("write", {"files": [str(folder / "a")]}, {"decoder": 2}, train={"length": 40}),
        "names": recipe("classify", {"files": [str(folder / "c.tsv")]}, {"encoder": 1}),
        "seed": recipe("classify", {"files": [str(folder / "c.tsv")]}, {"encoder": 2}),
    }
    for name, each in made.items():
        saccade.train(each, run=folder / name)
    yield folder
    patch.undo()


def said(texts):
    return [Result(each, each, 0.0) for each in texts]


def batch_of(target, source=None, count=None):
    """Tokens that a decoder is shown (B,T), and as many that are wanted of it, unless told."""
    shown = saccade.Input({"tokens": target})
    x = {} if source is None else {"source": saccade.Input({"tokens": source})}
    return Batch(x, shown, shown, {"tokens": target.numel() if count is None else count})


def reader_of(batches, passes=1):
    """A task that has these batches."""
    return SimpleNamespace(whole=lambda corpus, train: iter(batches), target=SimpleNamespace(passes=passes))


def shares(N: int, seed: int = 1) -> Tally:
    right = np.random.default_rng(seed).integers(0, 2, N).astype(float)
    return Tally(np.stack([right, np.ones(N)], 1), metric.METRICS["exact_match"].score)


def test_the_bootstrap_is_the_plain_loop(monkeypatch):
    monkeypatch.setattr(metric, "CELLS", 100)  # some draws at a time give the same draws
    first, other = shares(37, 1), shares(37, 2)
    (found,) = differences(first, [other], draws=101, seed=5)
    random, gains = np.random.default_rng(5), []
    for _ in range(101):
        drawn = np.repeat(np.arange(37), random.multinomial(37, np.full(37, 1 / 37)))
        gains.append(np.mean([other.counts[each, 0] - first.counts[each, 0] for each in drawn]))
    assert found.difference == pytest.approx(other.counts[:, 0].mean() - first.counts[:, 0].mean())
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(gains, [2.5, 97.5])))
    wins = sum(1.0 if gain < -1e-12 else 0.5 if abs(gain) < 1e-12 else 0.0 for gain in gains)
    assert found.first_better == pytest.approx(wins / 101)
    assert 0 < found.first_better < 1


def test_the_bootstrap_of_bleu_is_that_of_the_metric():
    references = sentences(23)
    first, other = ([each.replace(word, "sky") for each in references] for word in ("cat", "the"))
    made = metric.METRICS["bleu_13a"]
    tallies = [Tally(made.counts(each, references, "en"), made.score) for each in (first, other)]
    (found,) = differences(tallies[0], tallies[1:])
    assert (found.low, found.high) == pytest.approx(metric.interval("bleu_13a", other, references, against=first))


def test_less_of_a_loss_is_better():
    losses = np.abs(np.random.default_rng(0).normal(size=(31, 7))) + 1
    (found,) = differences(of_windows(losses, [])[0]["loss"], [of_windows(losses + 0.1, [])[0]["loss"]])
    assert found.first_better == 1.0
    assert (found.difference, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))


def test_equal_systems_are_better_half_of_the_time():
    (found,) = differences(shares(11), [shares(11)])
    assert found == (0.0, 0.0, 0.0, 0.5)
    assert metric.totals(np.ones((11, 1)), 7).tolist() == [[11.0]] * 7, "as many sentences in each draw"
    with pytest.raises(saccade.SaccadeError, match="the same sentences on both sides"):
        differences(shares(11), [shares(13)])


def test_buckets_have_names_and_hold_every_length_once():
    made = buckets_of((10, 15))
    assert [each.name for each in made] == ["under 10", "10 to 14", "from 15"]
    assert Bucket(4, 5).name == "4"
    lengths = np.arange(40)
    assert (sum(each.holds(lengths).astype(int) for each in made) == 1).all()
    assert edges_of("10, 20,30") == (10, 20, 30)
    for wrong in ("10,x", "", "-3", "1.5"):
        with pytest.raises(saccade.SaccadeError, match="whole numbers with commas"):
            edges_of(wrong)
    for wrong in ((15, 10), (0, 5), (5, 5)):
        with pytest.raises(saccade.SaccadeError, match="that grow"):
            buckets_of(wrong)


@pytest.mark.proof
def test_bleu_of_buckets_is_sacrebleus_of_the_subsets(runs):
    task = saccade.load(runs / "attention").task
    rows = [(each, each.replace("cat", "dog")) for each in sentences(41)]
    answers, buckets = said(row[0] for row in rows), buckets_of((6, 12))
    found = of_answers(task, answers, rows, buckets)
    assert sum(found.sizes) == 41
    for part, bucket, size in zip(found.parts, buckets, found.sizes, strict=True):
        own = [row for row in rows if bucket.low <= len(row[0].split()) < (bucket.high or 99)]
        assert len(own) == size
        score = sacrebleu.corpus_bleu([row[0] for row in own], [[row[1] for row in own]]).score
        assert part["bleu_13a"].value == pytest.approx(score)


def test_windows_add_up_by_place():
    losses = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, np.nan]])
    found = of_windows(losses, buckets_of((2,)))
    assert found.whole["loss"].value == pytest.approx(15 / 5)
    assert [part["loss"].value for part in found.parts] == pytest.approx([4 / 2, 11 / 3])
    assert found.sizes == [2, 3], "at the first place one token has been read, and under two is one"


@pytest.mark.parametrize(("mixer", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_flops_of_a_recurrent_model_by_hand(mixer, gates):
    B, S, T, C, V, count = 3, 11, 7, 5, 13, 17
    values = {"vocab": V, "width": C, "heads": 1, "order": "plain", "feed": "none", "head": "vocabulary"}
    config = saccade.ModelConfig(**values, encoder=1, decoder=1, mixer=mixer, cross="fixed")
    source, target = (torch.zeros(size, dtype=torch.long) for size in ((B, S), (B, T)))
    found = forward_flops(build(config, device="meta").eval(), batch_of(target, source, count))
    cells = 2 * B * (S + T) * gates * C * (C + C)
    fixed, joined, head = 2 * B * 2 * C * C, 2 * B * T * 2 * C * C, 2 * count * C * V
    assert found == cells + fixed + joined + head


def test_flops_of_attention_by_hand():
    B, T, C, V = 2, 7, 12, 13
    config = saccade.ModelConfig(vocab=V, width=C, heads=3, decoder=1, hidden=17, head="vocabulary")
    found = forward_flops(build(config, device="meta").eval(), batch_of(torch.zeros(B, T, dtype=torch.long)))
    assert found == 2 * B * T * (4 * C * C + 2 * T * C + 2 * C * 17 + C * V)


def test_flops_of_training_are_three_passes_over_batches_of_all_lengths():
    config = saccade.ModelConfig(vocab=13, width=12, heads=3, decoder=1, hidden=17, head="vocabulary")
    shapes = [(2, 7), (3, 7), (5, 11), (2, 3)]
    batches = [batch_of(torch.zeros(shape, dtype=torch.long)) for shape in shapes]
    by_hand = sum(2 * B * T * (4 * 12 * 12 + 2 * T * 12 + 2 * 12 * 17 + 12 * 13) for B, T in shapes)
    found = flops_a_prediction(config, reader_of(batches), None, None)
    assert found == pytest.approx(3 * by_hand / sum(B * T for B, T in shapes))
    alike = reader_of(batches[:1] * 30)
    alone = flops_a_prediction(config, alike, None, None)
    assert alone == 3 * 2 * (4 * 12 * 12 + 2 * 7 * 12 + 2 * 12 * 17 + 12 * 13)
    assert flops_a_prediction(config, reader_of(batches[:1] * 30, passes=2), None, None) == 2 * alone
    text = Text.train(["the eye", "jumps"], "words")
    assert [tasks.write(text, agree=each).target.passes for each in (0.0, 2.5)] == [1, 2]
    for change in ({"mask": "window(2)"}, {"normaliser": "sparsemax"}):
        assert flops_a_prediction(config.model_copy(update=change), alike, None, None) is None


def test_who_writes_nothing_is_not_raced():
    silent = SimpleNamespace(model=SimpleNamespace(decoder=None))
    assert writing_speeds([Contender("silent", silent, None, None)], ["cat"]) == [None]


def test_one_sentence_tells_nothing_of_chance():
    one = Tally(np.array([[1.0]]), lambda total: float(total[0]))
    two = Tally(np.array([[1.0], [0.0]]), lambda total: float(total[0]))
    assert differences(one, [one]) == [None]
    assert differences(two, [two]) != [None]


def test_a_score_that_is_no_number_hides_no_other():
    good, other, broken = shares(11, 1), shares(11, 2), shares(11)._replace(score=lambda total: float("nan"))
    found = differences(good, [other, broken])
    assert found == [*differences(good, [other]), None]
    assert differences(broken, [good]) == [None]


def test_translators_side_by_side(runs):
    found = compare([runs / "attention", runs / "gru"], buckets=(5, 9))
    first, second = found.runs
    for entry, name in zip(found.runs, ("attention", "gru"), strict=True):
        run = saccade.load(runs / name)
        judged = evaluate(run)
        assert found.examples == judged["examples"]
        for key in entry.metrics:
            assert entry.metrics[key] == pytest.approx(judged["metrics"][key]), key
        assert entry.parameters == sum(each.numel() for each in run.model.parameters())
        state = json.loads((runs / name / "checkpoints" / "step-3" / "state.json").read_text())
        assert entry.training_tokens == state["tokens"]
        assert entry.training_tokens_per_second == pytest.approx(state["tokens"] / state["seconds"])
        assert entry.decode_tokens_per_second > 0
        assert entry.training_flops > 6 * entry.training_tokens * MODEL["width"] ** 2
    assert sum(size for _, size in found.buckets) == found.examples
    assert [name for name, _ in found.buckets] == ["under 5", "5 to 8", "from 9"]
    whole = {each.metric: each for each in found.differences if each.bucket is None}
    assert whole.keys() == first.metrics.keys() - {"length_ratio"}, "longer is not better"
    assert {each.bucket for each in found.differences} == {None, "under 5", "5 to 8", "from 9"}
    assert whole["chrf"].difference == pytest.approx(second.metrics["chrf"] - first.metrics["chrf"])
    assert compare([runs / "attention", runs / "gru"], buckets=(5, 9)).differences == found.differences


def test_answers_that_are_missing_or_cut_and_searches_that_differ_are_told(runs, tmp_path):
    short = saccade.load(runs / "gru")
    decode = short.recipe.decode.model_copy(update={"beam": 2, "max_tokens": 3})
    x, y = {"source": {**short.recipe.x["source"], "limit": 6}}, {**short.recipe.y, "limit": 6}
    short.recipe = short.recipe.model_copy(update={"decode": decode, "x": x, "y": y})
    short.save(tmp_path / "short")
    lines = {line.name: line.cells for line in compare([runs / "attention", tmp_path / "short"]).lines()}
    found = evaluate(saccade.load(tmp_path / "short"))
    assert lines["no answer: too long, or empty"] == ["0", str(found["unfit"])]
    assert int(lines["answers cut before their end"][1]) == found["cut"] > 0
    assert lines["decode.beam"] == ["1", "2"]
    assert lines["decode.max_tokens"] == ["12", "3"]
    same = {line.name for line in compare([runs / "attention", runs / "gru"]).lines()}
    assert not any(name.startswith(("decode.", "no answer")) for name in same)


def test_language_models_side_by_side(runs):
    found = compare([runs / "longer", runs / "writer"])
    judged = [evaluate(saccade.load(runs / name))["metrics"]["loss"] for name in ("longer", "writer")]
    assert found.runs[1].metrics["loss"] == pytest.approx(judged[1], abs=1e-5)
    assert found.runs[0].metrics["loss"] != pytest.approx(judged[0], abs=1e-7), "windows are those of the shorter one"
    (whole,) = (each for each in found.differences if each.bucket is None)
    assert whole.difference == pytest.approx(found.runs[1].metrics["loss"] - found.runs[0].metrics["loss"])
    assert [(name, size > 0) for name, size in found.buckets][:2] == [("under 16", True), ("16 to 63", True)]
    assert compare([runs / "longer", runs / "writer"], limit=3).examples == 3


def test_classifiers_side_by_side(runs):
    found = compare([runs / "names", runs / "seed"])
    assert found.metric == "accuracy"
    for entry, name in zip(found.runs, ("names", "seed"), strict=True):
        assert entry.metrics["accuracy"] == evaluate(saccade.load(runs / name))["metrics"]["accuracy"]
        assert entry.decode_tokens_per_second is None, "a class is not written"


def test_what_cannot_be_counted_is_left_out(runs, monkeypatch):
    def refused(*_):
        raise saccade.SaccadeError("there is no label 'odd'")

    monkeypatch.setattr("saccade.learn.compare.corpus_of", refused)
    said = []
    found = compare([runs / "names", runs / "seed"], say=said.append)
    assert [each.training_flops for each in found.runs] == [None, None]
    assert any("are not counted: there is no label 'odd'" in each for each in said)


@pytest.mark.parametrize(
    ("names", "options", "why"),
    [
        (["attention"], {}, "needs two runs at least"),
        (["attention", "attention"], {}, "attention is named twice"),
        (["attention", "./attention"], {}, "attention is named twice"),
        (["attention", "names"], {}, "is translate, that of .*names classify"),
        (["attention", "other"], {}, "tested on different data: of the split 'val' one has .* rows"),
        (["attention", "gru"], {"metric": "bleu_13"}, "no metric 'bleu_13'; did you mean 'bleu_13a'"),
        (["attention", "gru"], {"split": "tets"}, "no split 'tets'"),
        (["attention", "a"], {}, "a has 60 lines, and the split 'val' has 17 texts: it should have one answer a line"),
        (["attention", "few"], {"limit": 7}, "few has 3 lines, and the split 'val' has 7 texts"),
        (["a", "b"], {}, "files of answers alone: name the run"),
        (["writer", "a"], {}, "a is a file: language models are compared by their loss"),
    ],
)
def test_what_cannot_be_compared(runs, names, options, why):
    (runs / "few").write_text("eins\nzwei\ndrei\n")
    with pytest.raises(saccade.SaccadeError, match=why):
        compare([runs / name for name in names], **options)


def test_files_that_are_called_alike_are_not_taken_for_the_same(tmp_path, monkeypatch):
    for name, seed in (("one", 3), ("two", 5)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        (tmp_path / name / "a").write_text("".join(f"{each}\n" for each in sentences(60, seed)))
        made = recipe("translate", {"files": ["a", "a"]}, {"encoder": 1, "decoder": 1})
        saccade.train(made, run=tmp_path / name / "run")
    with pytest.raises(saccade.SaccadeError, match="run are tested on different data"):
        compare([tmp_path / "one" / "run", tmp_path / "two" / "run"])


def test_rows_that_differ_in_their_labels_are_told_by_these(runs, tmp_path):
    """The texts are the same in both: it says which column differs, and how."""
    swapped = (runs / "c.tsv").read_text().replace("\tTrue", "\t?").replace("\tFalse", "\tTrue").replace("?", "False")
    (tmp_path / "c.tsv").write_text(swapped)
    saccade.train(recipe("classify", {"files": [str(tmp_path / "c.tsv")]}, {"encoder": 1}), run=tmp_path / "run")
    with pytest.raises(
        saccade.SaccadeError, match=r"has the label '(True|False)' in one, '(True|False)' in the other"
    ) as told:
        compare([runs / "names", tmp_path / "run"])
    one, other = str(told.value).split("has the label ")[1].split(" in one, ")
    assert other.split(" in the")[0] != one


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("yes", "no", ("yes", "no")),
        ("x" * 60 + "one", "x" * 60 + "two", ("..." + "x" * 20 + "one", "..." + "x" * 20 + "two")),
        ("a", "ab", ("a", "ab")),
    ],
)
def test_texts_are_shown_where_they_differ(one, other, told):
    assert _where_they_differ(one, other) == told


def test_labels_are_not_called_tokens(runs, monkeypatch, capsys):
    code, out, _ = command(monkeypatch, capsys, runs / "names", runs / "seed")
    assert code == 0
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[1] == ["", "names", "seed"], "cells apart by tabs, without padding"
    assert all(len(line) == 3 for line in lines[1:])
    names = [line[0] for line in lines]
    assert "training labels" in names
    assert "training labels/s" in names
    assert not any("token" in name for name in names), "and nothing is written token by token"


def test_runs_from_elsewhere_are_tested_on_the_data_of_the_others(runs, tmp_path):
    plain = saccade.load(runs / "attention")
    plain.recipe = None
    plain.save(tmp_path / "elsewhere")
    found = compare([runs / "attention", tmp_path / "elsewhere"], max_tokens=12)
    assert found.runs[1].training_flops is None
    assert found.runs[1].metrics == found.runs[0].metrics
    assert {each.first_better for each in found.differences} == {0.5}
    saccade.load(tmp_path / "elsewhere").save(tmp_path / "twin")
    with pytest.raises(saccade.SaccadeError, match="none of these folders has a recipe"):
        compare([tmp_path / "elsewhere", tmp_path / "twin"])


def test_language_models_from_elsewhere_read_the_texts_of_the_others_to_their_ends(tmp_path):
    """Whoever stands first: windows as long as the run's own, and an end behind each text."""
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in sentences(80)))
    data, train = {"files": [str(tmp_path / "t.jsonl")]}, {"length": 307, "batch": 307}
    plain = saccade.train(recipe("write", data, {"decoder": 1}, train=train), run=tmp_path / "run")
    judged = evaluate(plain)["metrics"]["loss"]
    plain.recipe = None
    plain.save(tmp_path / "elsewhere")
    for names in (("elsewhere", "run"), ("run", "elsewhere")):
        shutil.rmtree(tmp_path / "cache" / "saccade" / "corpora")
        found = compare([tmp_path / name for name in names], max_tokens=12)
        assert [each.metrics["loss"] for each in found.runs] == pytest.approx([judged, judged], rel=1e-6)


def test_answers_from_elsewhere_stand_beside_runs(runs, tmp_path):
    run = saccade.load(runs / "attention")
    texts = [row[0] for row in supply_of(run, run.recipe).rows("val")]
    said, theirs = tmp_path / "said.txt", tmp_path / "theirs.txt.gz"
    said.write_bytes("".join(f"{each.text}\r\n" for each in run.predict(texts)).encode())
    theirs.write_bytes(gzip.compress("".join(f"{each.upper()}\n" for each in [*texts[:-1], " "]).encode()))
    found = compare([said, runs / "attention", theirs], buckets=(5, 9))
    ours, own, other = found.runs
    assert ours.metrics == own.metrics, "what a run said is worth the same in a file"
    assert (ours.buckets, ours.decode, ours.parameters, ours.training_tokens) == (own.buckets, {}, None, None)
    assert other.metrics["exact_match"] == pytest.approx(1 - 1 / len(texts))
    assert (other.unfit, other.step) == (1, None)
    shares = {each.run: each.first_better for each in found.differences if each.bucket is None}
    assert shares == {str(runs / "attention"): 0.5, str(theirs): 0.0}
    lines = {line.name: line.cells for line in found.lines()}
    assert lines["parameters"] == ["-", f"{own.parameters:,}", "-"]
    assert lines["decode tokens/s"][::2] == ["-", "-"]
    assert not any(name.startswith("decode.") for name in lines), "one way of searching does not differ from none"
    for kind in KINDS:
        assert found.save(tmp_path / f"t.{kind}").is_file()
    assert compare([runs / "attention", theirs], limit=5).runs[1].metrics["exact_match"] == 1.0


def test_capitals_of_others_are_no_fault_where_a_model_has_none():
    task = tasks.translate(Text.train(["Ein Mann schläft", "a man sleeps"], "words", vocab=40, lower=True))
    for answer in ("Ein Mann", "ein mann"):
        found = of_answers(task, said([answer]), [("a man", "Ein Mann")], buckets_of(()))
        assert found.whole["exact_match"].value == 1.0


def test_labels_from_elsewhere_stand_beside_classifiers(runs, tmp_path):
    run = saccade.load(runs / "names")
    labels = [row[1] for row in supply_of(run, run.recipe).rows("val")]
    (tmp_path / "labels").write_text("".join(f"{each}\n" for each in labels))
    assert compare([runs / "names", tmp_path / "labels"]).runs[1].metrics == {"accuracy": 1.0, "macro_f1": 1.0}


def command(monkeypatch, capsys, *args: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["saccade", "compare", *map(str, args)])
    with pytest.raises(SystemExit) as over:
        main()
    told = capsys.readouterr()
    return int(over.value.code or 0), told.out, told.err


def test_the_command(runs, tmp_path, monkeypatch, capsys):
    both = runs / "attention", runs / "deeper"
    code, out, err = command(monkeypatch, capsys, *both, "--out", tmp_path / "t.html", "--buckets", "5,9")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("bleu_13a on val, ")
    assert [line.split()[1] for line in out.splitlines() if "training" in line] == ["FLOPs", "tokens", "tokens/s"]
    assert out.splitlines()[-1].endswith("t.html")
    code, out, _ = command(monkeypatch, capsys, *both, "--json", "--limit", 7, "-o", "max_tokens=3")
    told = json.loads(out)
    assert (code, told["examples"], told["runs"][1]["decode"]["max_tokens"]) == (0, 7, 3)
    code, _, err = command(monkeypatch, capsys, *both, "--out", tmp_path / "t.pdf")
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_the_files(runs, tmp_path):
    both = runs / "attention", runs / "deeper"
    found = compare(both, buckets=(5, 9))
    for kind in KINDS:
        assert found.save(tmp_path / f"t.{kind}").is_file()
    kept = json.loads((tmp_path / "t.json").read_text())
    assert kept["runs"][0]["metrics"] == found.runs[0].metrics
    assert len(kept["differences"]) == len(found.differences)
    with (tmp_path / "t.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["run"], first["chrf difference"]) == (str(both[0]), "")
    assert float(second["chrf"]) == found.runs[1].metrics["chrf"]
    whole = next(each for each in found.differences if (each.metric, each.bucket) == ("chrf", None))
    assert float(second["chrf low"]) == whole.low
    page = (tmp_path / "t.html").read_text()
    assert page.count("<tr>") == 1 + len(list(found.lines()))
    assert "<svg" in page
    assert "under 5 words" in page
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("width", "tables"), [(500, 1), (100, 2), (80, 3), (10, 7)])
def test_a_narrow_terminal_gets_several_tables_and_loses_nothing(width, tables):
    names = [f"run-{each}" for each in "abcdefg"]
    entries = [RunScores(each, {"bleu": 12.5}, {"bleu": [12.5]}, 9, 1234, None, 99, 7.0) for each in names]
    against = [Against(each, "run-a", "bleu", None, -1.25, -2.5, 10.75, 0.875) for each in names[1:]]
    found = Comparison("translate", "test", 7, "bleu", "words", [("under 10", 7)], entries, against)
    made = list(found.tables(width))
    assert len(made) == tables
    assert [str(column.header) for table in made for column in table.columns[1:]] == names
    console = Console(width=max(width, 50), file=io.StringIO())
    for table in made:
        console.print(table)
    told = console.file.getvalue()
    assert "\u2026" not in told
    assert told.count("-2.50 to +10.75") == 6
    assert max(map(len, told.splitlines())) <= max(width, 50)


def test_recurrent_layers_are_seen_by_the_counter():
    """What the counting of FLOPs rests on: without numbers, torch takes its recurrent layers apart."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        nn.LSTM(7, 5)(torch.zeros(11, 3, 7))
    assert counter.get_total_flops() == 2 * 3 * 11 * 4 * 5 * (7 + 5)


def test_pictures_have_no_lengths_to_sort_by(tmp_path):
    """One score of each run over all pictures, and no bucket that holds them all once more."""
    recipe = photos.recipe(photos.photos(tmp_path), train={"steps": 1, "every": 1})
    for name in ("one", "two"):
        saccade.train(recipe, run=tmp_path / name)
    found = compare([tmp_path / "one", tmp_path / "two"])
    assert found.described()["buckets"] == []
    names = [line.name for line in found.lines()]
    assert "accuracy" in names
    assert not [name for name in names if "from 0" in name or "token" in name]
    assert "picture" in found.title
    assert found.save(tmp_path / "found.svg").read_text().count(">all<") == 1
    with pytest.raises(saccade.SaccadeError, match="no buckets of them"):
        compare([tmp_path / "one", tmp_path / "two"], buckets=(1, 2))
