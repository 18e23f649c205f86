"""What may happen to a run on its way: a damaged file, broken weights, a full disk. It is noticed and told."""

from __future__ import annotations

import io
import json

import pytest
import torch
from examples import proofs
from rich.console import Console
from tiny import classify, translate, write

import saccade
from saccade import SaccadeError, disk
from saccade.error import SaccadeWarning
from saccade.learn import average
from saccade.learn.loop import Loop
from saccade.number import finite
from saccade.store import checkpoint


def stopped(made, run, step, monkeypatch):
    """A run that was stopped after a step, as by patience."""
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == step)
        saccade.train(made, run=run)


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


DAMAGE = {"flipped": flip, "gone": lambda path: path.unlink(), "cut": lambda path: path.write_bytes(b"{")}


@pytest.mark.parametrize("damage", proofs(DAMAGE, but=["cut"]))
def test_a_mean_is_not_made_of_damaged_weights(damage, tmp_path, monkeypatch):
    made = translate(tmp_path, train={"steps": 8, "every": 2, "average": "last(3)"})
    whole = saccade.train(made, run=tmp_path / "whole")
    run = tmp_path / "run"
    stopped(made, run, 6, monkeypatch)
    DAMAGE[damage](run / "averages" / "step-4.safetensors")
    said = io.StringIO()
    saccade.train(made, run=run, console=Console(file=said, width=1000))
    assert "step-4.safetensors" in said.getvalue()
    assert "it is left out of the mean" in said.getvalue()
    parts = [disk.load_tensors(run / "averages" / f"step-{each}.safetensors") for each in (2, 6, 8)]
    for name, each in saccade.load(run).model.named_parameters():
        assert torch.equal(each, (sum(part[name].double() for part in parts) / 3).float())
    assert not all(map(torch.equal, whole.model.parameters(), saccade.load(run).model.parameters()))


def test_a_checkpoint_further_back_finds_its_mean(tmp_path, monkeypatch):
    """Damaged checkpoints are gone back behind, and the mean is the same as if nothing had happened."""
    made = translate(tmp_path, train={"steps": 10, "every": 2, "average": "last(3)", "keep": 3})
    whole = saccade.train(made, run=tmp_path / "whole")
    run = tmp_path / "run"
    stopped(made, run, 8, monkeypatch)
    for step in (6, 8):
        flip(checkpoint.path_of(run, step) / "training.safetensors")
    found = saccade.train(made, run=run)
    assert all(map(torch.equal, whole.model.parameters(), found.model.parameters()))


def test_weights_that_change_under_a_run_stop_it(tmp_path, monkeypatch):
    made = translate(tmp_path, train={"steps": 8, "every": 2, "average": "last(3)"})
    keep = average.last.keep

    def damaging(self, step):
        keep(self, step)
        if step == 4:
            flip(self.folder / "step-2.safetensors")

    monkeypatch.setattr("saccade.learn.average.last.keep", damaging)
    with pytest.raises(SaccadeError, match=r"step-2\.safetensors is damaged"):
        saccade.train(made, run=tmp_path / "run")


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_used_is_the_last_checkpoint_that_is_whole(damage, tmp_path, command):
    """And nothing is written: training alone puts a damaged one aside."""
    run = tmp_path / "run"
    saccade.train(translate(tmp_path), run=run)
    file = "manifest.json" if damage == "cut" else "model.safetensors"
    DAMAGE[damage](checkpoint.path_of(run, 6) / file)
    before = sorted(each.relative_to(run) for each in run.rglob("*"))
    with pytest.warns(SaccadeWarning, match=r"step-6.* (damaged|lacks).*; the checkpoint of step 3 is used instead"):
        assert saccade.load(run).step == 3
    for words in (("predict", run, "abc"), ("evaluate", run), ("look", run, "abc")):
        done = command(*words)
        assert done.returncode == 0
        told = [line for line in done.stderr.splitlines() if line.startswith("saccade: ")]
        assert len(told) == 1
        assert told[0].endswith("; the checkpoint of step 3 is used instead")
    assert sorted(each.relative_to(run) for each in run.rglob("*")) == before
    flip(checkpoint.path_of(run, 3) / "state.json")
    with pytest.raises(disk.DamagedError, match="step-6"):
        saccade.load(run)


def test_a_damaged_best_checkpoint_is_put_aside(tmp_path, monkeypatch):
    made = translate(tmp_path, train={"steps": 8, "every": 1, "patience": 50})
    losses = iter([5.0, 4.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    monkeypatch.setattr("saccade.learn.loop.mean_loss", lambda *_: (next(losses), {}, 10))
    run = tmp_path / "run"
    assert saccade.train(made, run=run).step == 3
    flip(checkpoint.path_of(run, 3) / "model.safetensors")
    with pytest.warns(
        SaccadeWarning, match=r"step-3.* is damaged: .*: this is the best .* the last one, of step 8, is"
    ):
        assert saccade.load(run).step == 8
    said = io.StringIO()
    with pytest.warns(SaccadeWarning, match="the best checkpoint, of step 3, is gone; the last one, of step 8, is"):
        found = saccade.train(made, run=run, console=Console(file=said, width=1000))
    assert found.step == 8
    assert "step-3.damaged" in said.getvalue()
    assert (run / "checkpoints" / "step-3.damaged").is_dir()


@pytest.mark.parametrize("broken", ["stop", "skip"])
@pytest.mark.parametrize("task", [classify, translate])
def test_broken_weights_are_never_saved(task, broken, tmp_path):
    """A finite gradient and too long a step: the weights are no numbers any more, and the next loss would say so."""
    made = task(tmp_path, train={"every": 1, "rate": 1e38, "clip": 0.0, "optimiser": "sgd", "broken": broken})
    with pytest.raises(SaccadeError, match=r"step \d.* (finite|nan|inf)"):
        saccade.train(made, run=tmp_path / "run")
    for step in checkpoint.steps(tmp_path / "run"):
        weights = checkpoint.read(tmp_path / "run", step).tensors["model"]
        assert all(each.isfinite().all() for each in weights.values())


def test_a_validation_that_is_no_number_is_told_before_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("saccade.learn.loop.mean_loss", lambda *_: (float("nan"), {}, 10))
    with pytest.raises(SaccadeError, match="step 3: the loss on the validation split is nan; the checkpoints before"):
        saccade.train(translate(tmp_path), run=tmp_path / "run")
    assert checkpoint.steps(tmp_path / "run") == [0]


class Full(io.StringIO):
    """A log on a disk without room."""

    def write(self, text):
        raise OSError(28, "No space left on device")


def test_a_log_without_room_ends_no_training(tmp_path):
    run = saccade.train(translate(tmp_path), run=tmp_path / "run", console=Console(file=Full()))
    assert run.step == 6
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count('"validation"') == 2


@pytest.mark.parametrize(
    ("decode", "why"),
    [
        ({"matching": "("}, "the pattern"),
        ({"stop": [""]}, "stop"),
        ({"beam": 4, "temperature": 0.5}, "beam|temperature"),
        ({"beam": 4, "groups": 3}, "groups"),
    ],
)
@pytest.mark.parametrize("task", [translate, write])
def test_a_search_that_cannot_be_is_told_before_a_folder_is_made(task, decode, why, tmp_path):
    with pytest.raises(SaccadeError, match=why):
        saccade.train(task(tmp_path, decode=decode), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_more_tokens_at_least_than_at_most(tmp_path):
    with pytest.raises(SaccadeError, match="min_tokens"):
        saccade.train(translate(tmp_path, decode={"min_tokens": 50, "max_tokens": 12}), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_unreadable_checkpoints_are_not_taken_for_none(tmp_path, monkeypatch):
    saccade.train(translate(tmp_path), run=tmp_path / "run")

    def refused(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("saccade.store.checkpoint.os.scandir", refused)
    with pytest.raises(SaccadeError, match="checkpoints cannot be read: Permission denied"):
        saccade.load(tmp_path / "run")


@pytest.mark.parametrize("name", ["a**b", "[x]", "a?b"])
def test_a_folder_may_be_called_what_a_pattern_is(name, tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / name)
    assert saccade.train(translate(tmp_path), run=tmp_path / name).step == 6


def test_a_link_is_told_before_anything_is_read(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SaccadeError, match=r"is a link to .*nowhere: give the folder itself"):
        saccade.train(translate(tmp_path), run=tmp_path / "link")


def test_json_has_no_infinity():
    assert json.dumps(finite({"a": [float("inf"), 1.5], "b": {"c": (float("nan"),)}})) == (
        '{"a": [null, 1.5], "b": {"c": [null]}}'
    )
