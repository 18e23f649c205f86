"""Several seeds in one command: a run of its own for each, their mean, and going on where it stopped."""

from __future__ import annotations

import json
import statistics
import time

import pytest
from learn.tiny import classify
from typer.testing import CliRunner

import saccade
from saccade import SaccadeError, disk
from saccade.cli import app
from saccade.learn import seeds
from saccade.learn.seeds import train_seeds
from saccade.recipes.write import as_toml


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "mine.toml").write_text(as_toml(classify(folder)))
    return folder, train_seeds(folder / "mine.toml", 3, run=folder / "runs", options=["seed=4"])


def test_the_mean_is_that_of_the_runs(several):
    folder, found = several
    assert found.runs == ["seed-4", "seed-5", "seed-6"]
    measured = [saccade.evaluate(saccade.load(folder / "runs" / name))["metrics"]["loss"] for name in found.runs]
    assert found.metrics["loss"].values == pytest.approx(measured)
    assert found.metrics["loss"].mean == pytest.approx(statistics.mean(measured))
    assert found.metrics["loss"].deviation == pytest.approx(statistics.stdev(measured))
    assert len(set(measured)) == 3
    assert found.split == "val"
    assert found.baseline["what"].startswith("always")


def test_a_run_of_several_is_the_run_of_its_seed(several, tmp_path):
    folder, _ = several
    alone = saccade.train(folder / "mine.toml", run=tmp_path / "alone", options=["seed=5"])
    weights = [
        path / "checkpoints" / f"step-{alone.step}" / "model.safetensors"
        for path in (tmp_path / "alone", folder / "runs" / "seed-5")
    ]
    assert len({disk.digest(each) for each in weights}) == 1


def test_the_same_command_goes_on(several, monkeypatch):
    folder, found = several
    calls = []
    measure = seeds.evaluate
    monkeypatch.setattr(seeds, "evaluate", lambda run: (calls.append(run.path.name), measure(run))[1])
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.safetensors")}
    time.sleep(0.01)
    more = train_seeds(folder / "mine.toml", 4, run=folder / "runs", options=["seed=4"])
    assert calls == ["seed-7"], "what is finished is neither trained nor measured again"
    assert more.metrics["loss"].values[:3] == found.metrics["loss"].values
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    assert json.loads((folder / "runs" / "seeds.json").read_text()).keys() == {*found.runs, "seed-7"}


def test_on_the_command_line(several, monkeypatch):
    folder, _ = several
    monkeypatch.chdir(folder)
    told = CliRunner().invoke(app, ["train", "mine.toml", "-o", "seed=4", "--seeds", "3", "--run", "runs"])
    assert told.exit_code == 0, told.output
    assert "runs, 3 runs (seed-4 to seed-6), val" in told.stdout
    assert "±" in told.stdout
    assert "baseline: always" in told.stdout


@pytest.mark.parametrize(
    ("source", "count", "why"),
    [
        ("mine.toml", 1, "several seeds are two at least; got 1"),
        ("runs/seed-4", 2, "runs/seed-4 is a run, which has one seed: for several, give its recipe"),
    ],
)
def test_what_is_refused(several, monkeypatch, source, count, why):
    monkeypatch.chdir(several[0])
    with pytest.raises(SaccadeError, match=why):
        train_seeds(source, count)


def test_a_run_is_no_folder_of_several(several):
    folder, _ = several
    with pytest.raises(SaccadeError, match="seed-4 is a run: give another --run"):
        train_seeds(folder / "mine.toml", 2, run=folder / "runs" / "seed-4")
