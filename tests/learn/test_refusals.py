"""What cannot be trained is told in one sentence, and leaves nothing behind."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import MODEL, TRAIN, classify, translate, words, write

import saccade
from saccade import SaccadeError
from saccade.command import learning
from saccade.learn.prepare import prepare
from saccade.learn.validate import evaluate
from saccade.recipes.read import from_values, recipe
from saccade.store import checkpoint
from saccade.words.vectors import Vectors


@pytest.mark.parametrize("role", ["validation", "test"])
def test_a_label_that_training_never_shows(role, tmp_path):
    made = classify(tmp_path).model_dump(exclude_none=True)
    (tmp_path / "more.tsv").write_text("abc\tearly\nabd\tearli\n")
    made["data"][role] = [str(tmp_path / "more.tsv")]
    with pytest.raises(SaccadeError, match=r"example 2: no training row .* no label 'earli'; did you mean 'early'"):
        saccade.train(from_values(made), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_named_text_has_its_task(tmp_path):
    with pytest.raises(SaccadeError, match="its task is write, not classify"):
        saccade.train("shakespeare-char", options=["task=classify"], run=tmp_path / "run")


def test_one_process_at_a_time(tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / "run")
    with checkpoint.locked(tmp_path / "run"), pytest.raises(SaccadeError, match="being trained by another process"):
        saccade.train(translate(tmp_path), run=tmp_path / "run")


def test_a_folder_that_is_not_theirs(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(SaccadeError, match="there already and not empty"):
        saccade.train(translate(tmp_path), run=tmp_path / "mine")
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_newer_run_is_refused(tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(SaccadeError, match="newer saccade"):
        saccade.train(translate(tmp_path), run=tmp_path / "run")


@pytest.mark.parametrize(
    ("a", "b", "data", "why"),
    [
        (b"x\ny\n", b"x\n", {}, r"b\.txt ends after line 1 but .*a\.txt goes on"),
        (b"", b"x\n", {}, r"a\.txt is empty"),
        (b"ab\n\xff\n", b"x\ny\n", {}, r"a\.txt, line 2"),
        (b"a\na\naa\n" * 9, b"a\na\na\n" * 9, {}, "only one symbol"),
        (b"\n\n", b"\n\n", {}, "no text|no example"),
        (
            b"abc\n" * 50,
            b"cba\n" * 50,
            {},
            "(train|val): no example is left: there were none; give more data",
        ),  # one source: it is on one side alone
        (b"ab\ncd\n", b"x\n\n", {"skip": False}, r"line 2.*blank"),
    ],
)
def test_bad_files(tmp_path, a, b, data, why):
    (tmp_path / "a.txt").write_bytes(a)
    (tmp_path / "b.txt").write_bytes(b)
    with pytest.raises(SaccadeError, match=why) as problem:
        saccade.train(translate(tmp_path, data), run=tmp_path / "run")
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "run").exists()
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"data": {"files": ["nowhere", "b.txt"]}}, "nowhere is not there"),
        ({"data": {"name": "multi30"}}, "did you mean 'multi30k'"),
        ({"data": {}}, "names no data"),
        ({"task": "write", "data": {"name": "multi30k"}}, "its task is translate, not write"),
        ({"task": "classify", "decode": {}}, r"y\.tokenizer is unknown; there are: agree, kind, smoothing"),
        ({"task": "classify", "decode": {}, "y": {}}, "needs an encoder alone"),
    ],
)
def test_recipes_of_another_task(tmp_path, change, why, monkeypatch):
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    values = {**translate(tmp_path).model_dump(exclude_none=True), **change}
    with pytest.raises(SaccadeError, match=why):
        saccade.train(from_values(values), run=tmp_path / "run")


def test_what_cannot_be_trained_leaves_no_folder(tmp_path):
    with pytest.raises(SaccadeError, match=r"a batch may have 3: raise train\.batch, or lower the limit"):
        saccade.train(translate(tmp_path, train={"batch": 3}), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_start_that_is_not_there_is_told(tmp_path):
    recipe = translate(tmp_path).model_copy(update={"model": None, "start": str(tmp_path / "nowhere")})
    with pytest.raises(SaccadeError, match=r"start: .*nowhere is no folder: train what it goes on from first"):
        saccade.train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_rare_label_and_a_header(tmp_path, capsys):
    rows = "".join(f"{each}\t{'rare' if n == 7 else 'abc'[n % 3]}\n" for n, each in enumerate(words(60)))
    values = {
        "task": "classify",
        "data": {"files": [str(tmp_path / "t.tsv")], "tokenizer": "characters", "vocab": 30, "share": 0.5},
        "model": {**MODEL, "encoder": 1},
        "train": TRAIN,
    }
    (tmp_path / "t.tsv").write_text(rows)
    run = saccade.train(from_values(values), run=tmp_path / "run", console=Console(width=200))
    assert run.task.y.names == ["a", "b", "c", "rare"]
    assert "label: 4 labels: 'rare' " in capsys.readouterr().out
    (tmp_path / "t.tsv").write_text("text\tlabel\n" + rows)
    with pytest.raises(SaccadeError, match=r"looks like a header; say so with data.columns = \['text', 'label'\]"):
        saccade.train(from_values(values), run=tmp_path / "other")


def test_data_that_changed_are_not_measured_on(tmp_path):
    recipe = translate(tmp_path)
    run = saccade.train(recipe, run=tmp_path / "run")
    before = evaluate(run, "val")
    sources, targets = (tmp_path / each for each in ("a.txt", "b.txt"))
    sources.write_text("new\n" + sources.read_text())
    targets.write_text("wen\n" + targets.read_text())
    with pytest.raises(SaccadeError, match=r"data\.files\[0\], data\.files\[1\] changed since the run was trained"):
        evaluate(run, "val")
    found = evaluate(run, file=str(sources), against=str(targets))
    assert found["examples"] == 121
    assert before["examples"] < 121


def test_an_option_is_not_blamed_on_a_line_of_the_recipe(tmp_path):
    with pytest.raises(SaccadeError, match=r"^write: train\.steps should be "):
        recipe("write", ["train.steps=abc"])
    (tmp_path / "r.toml").write_text('\ufefftask = "write"\n[train]\nsteps = "abc"\n')
    with pytest.raises(SaccadeError, match=r"r\.toml, line 3: train\.steps should be "):
        recipe(tmp_path / "r.toml", ["data.name=tinyshakespeare", "model.width=8", "model.heads=1", "model.decoder=1"])


@pytest.mark.parametrize(
    ("model", "told"), [({"memory": 0}, "differ by their dropout"), ({"dropout": 0.1}, "a memory goes on from one")]
)
def test_passes_that_cannot_agree(tmp_path, model, told):
    with pytest.raises(SaccadeError, match=told):
        saccade.train(write(tmp_path, model=model, train={"agree": 1.0}), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_files_that_a_run_could_not_keep_or_read_otherwise(tmp_path):
    made = translate(tmp_path)
    odd = tmp_path / os.fsdecode(b"caf\xe9.txt")
    odd.write_text("x\n")
    files = [str(odd), str(tmp_path / "b.txt")]
    with pytest.raises(SaccadeError, match="this name is not UTF-8, and a run could not store it"):
        saccade.train(made, run=tmp_path / os.fsdecode(b"\xffx"))
    with pytest.raises(SaccadeError, match="this name is not UTF-8, and a run could not store it"):
        saccade.train(made.model_copy(update={"data": made.data.model_copy(update={"files": files})}), run="run")
    with pytest.raises(SaccadeError, match="a text has no columns"):
        saccade.train(write(tmp_path, data={"columns": [1]}), run=tmp_path / "run")
    with pytest.raises(SaccadeError, match=r"data\.pair"):
        translate(tmp_path, data={"pair": "de"})


def test_labels_of_a_file_are_read_as_training_reads_them(tmp_path):
    run = saccade.train(classify(tmp_path), run=tmp_path / "run")
    (tmp_path / "x").write_text("abc\n" + "g" * 300 + "\n")
    (tmp_path / "y").write_text("early \nlate\t\n")
    found = evaluate(run, file=str(tmp_path / "x"), against=str(tmp_path / "y"))
    (tmp_path / "z").write_text("early\nlate\n")
    assert found["metrics"] == evaluate(run, file=str(tmp_path / "x"), against=str(tmp_path / "z"))["metrics"]
    assert found["unfit"] == 1
    (tmp_path / "y").write_text("early\nLate\n")
    with pytest.raises(SaccadeError, match=r"y, line 2: there is no label 'Late'; did you mean 'late'"):
        evaluate(run, file=str(tmp_path / "x"), against=str(tmp_path / "y"))


@pytest.mark.parametrize("device", ["nonsense", "meta", "cuda"])
def test_devices_that_are_not_there(tmp_path, device):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(SaccadeError, match=r"train\.device"):
        saccade.train(translate(tmp_path, train={"device": device}), run=tmp_path / "run")


def test_a_read_only_cache_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SaccadeError, match="cannot be written: Not a directory"):
        saccade.train(translate(tmp_path), run=tmp_path / "run")


def test_over_long_examples_are_counted(tmp_path, capsys):
    run = saccade.train(translate(tmp_path, {"limit": 5}), run=tmp_path / "run", console=Console(width=200))
    said = capsys.readouterr().out
    assert "longer than 5 tokens" in said
    found = evaluate(run, "val")
    assert 0 < found["unfit"] < found["examples"]
    assert f"skipped {found['unfit']}: longer than 5 tokens" in said
    assert "leakage: none" in said
    assert "parameters" in said


def test_what_has_no_loss_may_have_an_answer(tmp_path, monkeypatch, capsys):
    """A target that is too long for the loss is no reason not to answer its source."""
    (tmp_path / "x").write_text("abc\nabd\n" + "g" * 9 + "\n")
    (tmp_path / "y").write_text("cba\n" + "g" * 9 + "\ncba\n")
    held = [str(tmp_path / each) for each in ("x", "y")]
    run = prepare(translate(tmp_path, {"limit": 7, "validation": held}), lambda _: None).run
    found = evaluate(run, "val")
    assert (found["examples"], found["unfit"], found["without_loss"]) == (3, 1, 2)
    monkeypatch.setattr("saccade.store.load.load", lambda path: run)
    learning.evaluate("run", split="val")
    said = capsys.readouterr().out
    assert "  1 of the examples without an answer: " in said
    assert "  2 of the examples without a loss: " in said


def test_a_language_model_is_not_searched_while_it_is_measured(tmp_path):
    run = prepare(write(tmp_path), lambda _: None).run
    assert evaluate(run, decode=run.decode())["examples"] == 1
    with pytest.raises(SaccadeError, match=r"only the loss of this run is measured, .*: leave out the decode options"):
        evaluate(run, decode=run.decode(temperature=0.5))


def test_who_draws_beside_the_beam_of_a_recipe_is_told_how(tmp_path):
    run = prepare(translate(tmp_path, decode={"beam": 4}), lambda _: None).run
    with pytest.raises(SaccadeError, match="a beam search does not know temperature: leave it out, or give beam = 1"):
        run.predict("abc", temperature=0.5)
    assert run.predict("abc", temperature=0.5, beam=1, max_tokens=3)


def test_word_vectors_are_no_run(tmp_path):
    Vectors(["eye", "ear"], np.eye(2, dtype=np.float32)).save(tmp_path / "words")
    with pytest.raises(SaccadeError, match="is no run: it holds word vectors"):
        saccade.train(tmp_path / "words")


def test_a_header_that_may_be_one_is_told(tmp_path):
    made = classify(tmp_path)
    path = tmp_path / "texts.tsv"
    path.write_text("phrase\tstars\n" + path.read_text())
    said: list[str] = []
    prepare(made, said.append)
    assert any(
        "the label of the first line, 'stars', stands in no other: if that line is a header" in each for each in said
    )


def test_what_is_wrong_with_a_model_is_told_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("saccade.learn.prepare.survey", lambda *_: pytest.fail("the data were read"))
    for change, why in (
        ({"mixer": "gruu", "position": None}, "did you mean 'gru'"),
        ({"score": "dott"}, "did you mean 'dot'"),
    ):
        with pytest.raises(SaccadeError, match=why):
            saccade.train(translate(tmp_path, model=change), run=tmp_path / "run")
    with pytest.raises(SaccadeError, match=r"train\.device = 'gpu' is not available on this machine"):
        saccade.train(translate(tmp_path, train={"device": "gpu"}), run=tmp_path / "run")


def test_tables_that_are_cut_otherwise(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("good day;pos\nbad day;neg\n" * 20)
    values = classify(tmp_path).model_dump(exclude_none=True)
    values["data"]["files"] = [str(path)]
    with pytest.raises(SaccadeError, match=r"classify reads 2 columns, and there is 1 .*apart by ';'"):
        saccade.train(from_values(values), run=tmp_path / "run")
    (tmp_path / "one.tsv").write_text("green sleeps cat\nred dog\n" * 20)
    written = write(tmp_path).model_dump(exclude_none=True)
    written["data"]["files"] = [str(tmp_path / "one.tsv")]
    with pytest.raises(SaccadeError, match=r"has no column 'text' in its first line; .*by number too"):
        saccade.train(from_values(written), run=tmp_path / "run")


@pytest.mark.parametrize("blank", ["", " \t "])
def test_a_blank_input_is_refused_as_training_does(blank, tmp_path, command):
    """Alone with an error; among others with a note, and the others are answered."""
    run = tmp_path / "run"
    saccade.train(translate(tmp_path, train={"steps": 1}), run=run)
    for more in ([], ["--json"], ["--stream"]):
        done = command("predict", run, blank, *more)
        assert done.returncode == 2
        assert done.stderr == "saccade: this text is empty: there is nothing to translate\n"
        assert not done.stdout.strip()
    done = command("predict", run, "abc", blank, "cab")
    assert done.returncode == 0
    assert f"{blank!r}: empty: there is nothing to translate" in done.stderr
    alone = [command("predict", run, each).stdout.rstrip("\n") for each in ("abc", "cab")]
    assert done.stdout.split("\n")[:3] == [alone[0].replace("\n", "\\n"), "", alone[1].replace("\n", "\\n")]
    (found,) = saccade.load(run).predict(blank)
    assert (found.value, found.note) == (None, "empty: there is nothing to translate")
    done = command("look", run, blank)
    assert (done.returncode, done.stderr) == (2, "saccade: this text is empty: there is nothing to translate\n")
