"""A newcomer's day in Python: own files, progress, scores, an exported folder, Ctrl-C; types that a checker knows."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tiny import translate, words

import saccade
from saccade import SaccadeError
from saccade.learn.loop import Loop
from saccade.learn.train import _usual_console

SMALL = ["train.steps=2", "train.every=2", "train.batch=90", "model.width=12", "model.heads=2"]
SMALL += ["model.encoder=1", "model.decoder=1", "x.source.vocab=40", "y.vocab=40", "train.warmup=0"]
SMALL += ["x.source.tokenizer=characters", "y.tokenizer=characters", "decode.max_tokens=5", "decode.beam=1"]


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Two parallel files in the working folder: a.en and a.de."""
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text("".join(f"{each}\n" for each in words(120)))
    Path("a.de").write_text("".join(f"{each[::-1]}\n" for each in words(120)))
    return tmp_path


@pytest.fixture(scope="module")
def trained(shared) -> Path:
    return shared("python", lambda made: saccade.train(translate(made), run=made / "run"))


def test_own_files(pair):
    run = saccade.train("translate", files=["a.en", Path("a.de")], options=SMALL)
    assert run.path == Path("runs/translate-a-en-de")
    assert run.recipe.data.files == ["a.en", "a.de"]
    assert saccade.train("translate", files=("a.en", "a.de"), options=SMALL).step == run.step == 2, "it goes on"
    assert run.predict("abc")[0].text
    with pytest.raises(SaccadeError, match=r"a\.dee is not there: check the name of the file"):
        saccade.train("translate", files=["a.en", "a.dee"], run=run.path, options=SMALL)
    with pytest.raises(
        SaccadeError, match=r"goes on with its own recipe, and options belong to a new run \(data.files"
    ):
        saccade.train(run.path, files=["a.en", "a.de"])


def test_one_file_needs_no_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("the eye jumps to what matters\n" * 40)
    options = ["train.steps=1", "y.window=7", "model.width=12", "model.heads=2", "model.decoder=1"]
    run = saccade.train("write", files="text.txt", options=options)
    assert (run.path, run.recipe.data.files) == (Path("runs/write-text"), ["text.txt"])


def test_a_run_says_how_good_it_is(trained, command):
    run = saccade.load(trained / "run")
    found = run.evaluate(split="val", beam=1)
    done = command("evaluate", trained / "run", "--split", "val", "-o", "beam=1", "--json")
    assert found == json.loads(done.stdout)
    assert run.evaluate(file=trained / "a.txt", against=trained / "b.txt")["examples"] == 120
    with pytest.raises(SaccadeError, match="no split 'tset'"):
        run.evaluate("tset")


def test_a_run_tells_what_it_is(trained, tmp_path):
    run = saccade.load(trained / "run")
    told = repr(run)
    assert told.startswith(f"<Run {trained / 'run'}: translate, step 6, ")
    assert f"{sum(each.numel() for each in run.model.parameters()):,} parameters; validation loss " in told
    assert f"loss {run.validation['loss']:.4g}" in told
    last = json.loads((trained / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert run.validation == last["validation"]
    assert "step 1," in repr(run.at(1))
    assert run.at(1).validation == {}, "none before the first"
    assert "validation" not in repr(saccade.load(run.save(tmp_path / "copy")))
    bare = saccade.Run(saccade.build("gpt2", width=12, heads=2, decoder=1, vocab=31))
    assert repr(bare).startswith("<Run model, ")


def test_a_run_is_exported(tmp_path):
    saved = saccade.Run(saccade.build("gpt2", width=12, heads=2, decoder=1, vocab=31, head="vocabulary"))
    assert saved.export(tmp_path / "hf", format="hf") == tmp_path / "hf"
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["model_type"] == "gpt2"
    with pytest.raises(SaccadeError, match="there is no format 'onnx'"):
        saved.export(tmp_path / "onnx", format="onnx")


def test_progress_where_somebody_looks(tmp_path, monkeypatch, capsys):
    """rich decides: in a terminal and in a notebook there is progress, in a pipe there is none."""
    saccade.train(translate(tmp_path), run=tmp_path / "quiet")
    assert capsys.readouterr().out == ""
    assert _usual_console().quiet
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich's own way to say: a terminal
    assert not _usual_console().quiet
    monkeypatch.delenv("FORCE_COLOR")
    with monkeypatch.context() as patch:
        patch.setattr("rich.console._is_jupyter", lambda: True)
        assert not _usual_console().quiet
    shown = Console(file=StringIO(), width=200)
    saccade.train(translate(tmp_path), run=tmp_path / "shown", console=shown)
    assert "step      6/6  loss" in shown.file.getvalue()


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, monkeypatch):
    made = translate(tmp_path, train={"steps": 30, "every": 30})
    advance = Loop.advance

    def interrupted(self, *args):
        advance(self, *args)
        if self.state["step"] == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "advance", interrupted)
        with pytest.raises(saccade.Stopped) as stopped:
            saccade.train(made, run=tmp_path / "run")
    told = stopped.value
    assert isinstance(told, KeyboardInterrupt)
    assert (told.step, told.folder, told.number) == (4, tmp_path / "run", signal.SIGINT)
    command = str(told).split(": ", 1)[1].split(" goes on")[0]
    assert str(told).startswith("stopped at step 4, saved: saccade.train(")
    assert saccade.load(told.folder).step == 4
    (folder,) = ast.parse(command, mode="eval").body.args
    assert saccade.train(ast.literal_eval(folder)).step == 30, "as the exception says it"


def test_only_what_is_public_is_listed():
    assert {"spec", "learn", "annotations", "import_module"} <= vars(saccade).keys(), "which are there, too"
    assert dir(saccade) == sorted([*saccade.__all__, "__version__"])
    assert {"train", "load", "evaluate", "export", "Run", "Stopped"} <= set(saccade.__all__)


USER = """
from pathlib import Path

import saccade

run: saccade.Run = saccade.train("translate", files=["a.en", Path("a.de")], options=["train.steps=9"])
again = saccade.load(run.path or "runs/a", parts={"mine": max})
scores = run.evaluate(split="test", beam=2)
loss = float(scores["metrics"]["loss"])
folder: Path = run.export("out", format="hf")
texts: list[str] = [each.text for each in again.predict(["a", "b"], beam=3)]
pieces = "".join(run.stream("a"))
seen = run.look("a").map("alignment")
early: saccade.Run = run.at(run.snapshots[0])
reveal_type(texts)
reveal_type(run.validation)
reveal_type(saccade.evaluate(run, "val"))
try:
    saccade.train("runs/a", parts={"mine": max})
except saccade.Stopped as stopped:
    step: int = stopped.step
except saccade.SaccadeError as problem:
    print(problem)
model: saccade.Model = saccade.build("gpt2", vocab=31)
small = saccade.quantise(model)
mask: saccade.Mask = saccade.causal & saccade.window(4)
layer = saccade.Attention(12, 3, mask=mask)
"""


@pytest.mark.proof
def test_a_type_checker_knows_every_public_name(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    used = "".join(f"import saccade\nsaccade.{name}\n" for name in saccade.__all__)
    (tmp_path / "names.py").write_text(used)
    words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "user.py", "names.py"]
    where = {**os.environ, "MYPYPATH": str(Path(saccade.__file__).parents[1])}  # where it is not installed by a wheel
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=where)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Revealed type is "list[str]"' in done.stdout.replace("builtins.", "")
    assert 'Revealed type is "dict[str, float]"' in done.stdout.replace("builtins.", "")
    assert 'Revealed type is "dict[str, Any]"' in done.stdout.replace("builtins.", "")
