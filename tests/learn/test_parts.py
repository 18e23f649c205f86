"""Parts of a user's own, wherever a run is opened: in Python and by `--parts` on the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny import classify, translate

import saccade
from saccade import SaccadeError, spec
from saccade.command.parts import parts_of
from saccade.recipes.write import as_toml

CODE = """
import torch

def mine(q, k):
    return -(q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)

def near(q, k):
    return mine(q, k) * 2

class Apart(torch.nn.Module):
    window = 2

    def __init__(self, width, causal):
        super().__init__()
        self.out = torch.nn.Linear(width, width)

    def forward(self, x, *, mask=None, cache=None):
        return self.out(x)

PARTS = {"mine": mine, "apart": Apart}
"""


def far(q, k):
    return -(q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)


@pytest.fixture(scope="module")
def trained(shared) -> Path:
    """A translator with a score of its own, and a module of that score beside it."""

    def make(folder: Path) -> None:
        (folder / "own_parts.py").write_text(CODE)
        asked = translate(folder, model={"score": "mine", "position": None}, train={"every": 3})
        saccade.train(asked, run=folder / "run", parts={"mine": far})
        shutil.copytree(folder / "run", folder / "twin")

    return shared("parts", make)


@pytest.fixture
def here(trained, monkeypatch):
    monkeypatch.chdir(trained)
    yield trained
    sys.modules.pop("own_parts", None)


def test_a_run_keeps_its_parts(trained, tmp_path):
    run = saccade.load(trained / "run", parts={"mine": far})
    assert run.model.decoder.blocks[0].attention.score is far
    said = run.predict("abc")[0].text
    assert run.at(run.snapshots[0]).predict("abc")
    assert run.at(run.snapshots[-1]).look("abc").layers
    assert run.quantise().predict("abc")[0].text
    assert run.evaluate()["examples"] > 0
    again = saccade.load(run.save(tmp_path / "copy"), parts=run.parts)
    assert again.predict("abc")[0].text == said
    with spec.knowing({"mine": far}):
        inside = saccade.load(trained / "run")
    assert inside.at(inside.snapshots[0]).predict("abc"), "a run opened among known parts keeps them, too"
    assert spec.brought() == {}


def test_what_is_missing_is_asked_for(trained, tmp_path):
    for given in ({}, {"other": far}):
        with pytest.raises(
            SaccadeError, match=r"no score is called 'mine'.*parts=\{'mine': ...\}.*--parts MODULE:mine"
        ):
            saccade.load(trained / "run", parts=given)
    with pytest.raises(SaccadeError, match=r"no score is called 'mine'.*--parts MODULE:mine"):
        saccade.train(trained / "run")
    with pytest.raises(SaccadeError, match="a part's name is one word"):
        saccade.load(trained / "run", parts={"a b": far})
    asked = translate(tmp_path, model={"score": "mnie", "position": None})
    with pytest.raises(SaccadeError, match=r"no score is called 'mnie'; did you mean 'mine'\?$"):
        saccade.train(asked, run=tmp_path / "run", parts={"mine": far})


def test_a_run_with_parts_goes_on_exactly(tmp_path, monkeypatch):
    from saccade.learn.loop import Loop

    asked = classify(tmp_path, model={"mask": "close"})
    close = saccade.window(3)
    whole = saccade.train(asked, run=tmp_path / "whole", parts={"close": close})
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 3)
        assert saccade.train(asked, run=tmp_path / "cut", parts={"close": close}).step == 3
    cut = saccade.train(tmp_path / "cut", parts={"close": close})
    assert cut.step == 6
    for a, b in zip(whole.model.parameters(), cut.model.parameters(), strict=True):
        assert torch.equal(a, b)


COMMANDS = [
    ("evaluate", "run", "--json"),
    ("predict", "run", "abc", "--json"),
    ("look", "run", "abc", "--json"),
    ("look", "run", "abc", "--json", "--step", "1"),
    ("import", "run", "{tmp}/copy"),
    ("export", "run", "{tmp}/int8", "--quantise", "int8", "--json"),
    ("train", "run"),
    ("compare", "run", "twin", "--json"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_that_opens_a_run_takes_parts(words, here, command, tmp_path):
    words = [each.format(tmp=tmp_path) for each in words]
    done = command(*words, "--parts", "own_parts:mine")
    assert done.returncode == 0, done.stderr
    without = command(
        *[each.replace("copy", "none").replace("int8", "none") if "/" in each else each for each in words]
    )
    assert without.returncode == 2
    assert "no score is called 'mine'" in without.stderr
    assert len(without.stderr.strip().splitlines()) == 1


def test_the_server_opens_a_run_with_parts(here, monkeypatch, command):
    found = {}

    def serve(runs, **_):
        from saccade.serve.serve import open_runs

        found.update(open_runs(runs))

    monkeypatch.setattr("saccade.serve.serve.serve", serve)
    assert command("serve", "run", "--parts", "own_parts:mine").returncode == 0
    assert found["run"].predict("abc")


def test_what_parts_are_called(here):
    assert list(parts_of(["own_parts:mine"])) == ["mine"]
    assert parts_of(["mine=own_parts:near"])["mine"].__name__ == "near"
    assert sorted(parts_of(["own_parts:PARTS", "own_parts:near"])) == ["apart", "mine", "near"]
    assert str(here) not in sys.path


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (["own_parts"], "--parts takes MODULE:NAME, or CALLED=MODULE:NAME for another name; got 'own_parts'"),
        (["own_parts.py:mine"], "there is no module own_parts.py in "),
        (["./own_parts:mine"], "as Python imports it"),
        (["own_parst:mine"], "there is no module own_parst in "),
        (["own_parts:mien"], "the module own_parts has no 'mien'; did you mean 'mine'"),
        (["own_parts:mine", "mine=own_parts:near"], "two parts are called 'mine'"),
        (["broken:mine"], "importing broken failed in line 2: ZeroDivisionError: division by zero"),
        (["unreadable:mine"], "importing unreadable failed in line 1: SyntaxError"),
        (["lacking:mine"], "importing lacking failed: No module named 'nowhere_at_all'"),
    ],
)
def test_parts_that_cannot_be_had(parts, why, here, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_parts.py").write_text(CODE)
    (tmp_path / "broken.py").write_text("mine = 1\nmine / 0\n")
    (tmp_path / "unreadable.py").write_text("def mine(:\n")
    (tmp_path / "lacking.py").write_text("import nowhere_at_all\n")
    with pytest.raises(SaccadeError, match=why) as problem:
        parts_of(parts)
    assert "\n" not in str(problem.value)


@pytest.mark.proof
def test_parts_in_processes_of_their_own(here, tmp_path):
    """Begun, stopped, gone on and asked in four processes; each imports what it is told to and nothing else."""
    recipe = translate(here, model={"score": "mine", "position": None}, train={"steps": 4000, "every": 50})
    (tmp_path / "mine.toml").write_text(as_toml(recipe))
    base = [sys.executable, "-m", "saccade"]
    options = ["--run", str(tmp_path / "run"), "--parts", "own_parts:PARTS"]
    training = subprocess.Popen(
        [*base, "train", str(tmp_path / "mine.toml"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in training.stdout:
        if "step" in line and "validation" in line:
            break
    training.send_signal(signal.SIGINT)
    _, told = training.communicate(timeout=60)
    assert training.returncode == 130, told
    assert "saved: the same command goes on" in told
    step = max(int(each.name.removeprefix("step-")) for each in (tmp_path / "run" / "checkpoints").iterdir())
    recipe = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert recipe["parts"] == ["apart", "mine"]
    for words in (["predict", str(tmp_path / "run"), "abc"], ["evaluate", str(tmp_path / "run"), "--json"]):
        done = subprocess.run([*base, *words, "--parts", "own_parts:mine"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"] == step
