"""Where a run lies by default, which errors come first, and how a run is trained further."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tiny import translate

import saccade
from saccade import SaccadeError
from saccade.learn.loop import Loop
from saccade.learn.run_name import usual_folder
from saccade.recipes.write import as_toml


@pytest.mark.parametrize(
    ("recipe", "files", "name"),
    [
        ("translate", ["a.en", "a.de"], "translate-a-en-de"),
        ("translate", ["data/a.en.gz", "data/a.de.gz"], "translate-a-en-de"),
        ("translate", ["train.en", "other.de"], "translate-train-en-other-de"),
        ("translate", ["en/train.txt", "de/train.txt"], "translate-en-train-de-train"),
        ("translate", ["a.tok.en", "a.tok.de"], "translate-a-tok-en-tok-de"),
        ("translate", ["a", "a.de"], "translate-a-de"),
        ("translate", ["pairs.tsv"], "translate-pairs"),
        ("classify-images", ["photos"], "classify-images-photos"),
        ("folder/mine.toml", [], "mine"),
        ("dates", [], "dates"),
    ],
)
def test_the_name_says_the_recipe_and_all_files(recipe, files, name):
    assert usual_folder(recipe, files) == Path("runs", name)


@pytest.fixture(scope="module")
def trained(shared) -> Path:
    """A finished run of the recipe mine.toml, under its usual name."""

    def make(folder: Path) -> None:
        (folder / "mine.toml").write_text(as_toml(translate(folder)))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            (folder / "a.txt").rename("a.en"), (folder / "b.txt").rename("a.de")
            saccade.train("mine.toml", files=["a.en", "a.de"])

    return shared("names", make)


def test_a_missing_file_is_told_before_the_folder_is_looked_at(trained, monkeypatch, command):
    monkeypatch.chdir(trained)
    assert Path("runs/mine-a-en-de").is_dir()
    folder = ["--run", "runs/mine-a-en-de"]
    for more in ([], folder):
        done = command("train", "mine.toml", "--files", "a.en", "a.dee", *more)
        assert (done.returncode, done.stderr) == (2, "saccade: a.dee is not there: check the name of the file\n")
    done = command("train", "mine.toml", "--files", "a.en", "a.de", "-o", 'data.test=["c.en", "c.de"]')
    assert done.stderr == "saccade: c.en is not there: check the name of the file\n"
    done = command("train", "mine.toml", "--files", "a.en", "a.en", *folder)
    assert "was begun with another recipe; data.files, y.language differ: give another --run" in done.stderr
    assert "saccade train" not in done.stderr, "other files are no way to go on"


@pytest.mark.parametrize("words", [["mine.toml", "--files", "a.en", "a.de"], ["runs/mine-a-en-de"]])
def test_a_finished_run_says_how_to_train_it_further(words, trained, tmp_path, monkeypatch, command):
    """The command of the error is one that works: a new run from these weights, for the steps that are left."""
    monkeypatch.chdir(trained)
    done = command("train", *words, "-o", "train.steps=8")
    assert done.returncode == 2
    told = done.stderr.strip().split("to train its weights for 2 more steps: ")[1]
    start = "-o train.steps=2 -o start=runs/mine-a-en-de --run runs/mine-a-en-de-2"
    assert told == f"saccade train runs/mine-a-en-de/recipe.toml {start}"
    _, *given, _ = shlex.split(told)
    done = command(*given, tmp_path / "further")
    assert done.returncode == 0, done.stderr
    assert saccade.load(tmp_path / "further").step == 2
    assert f'"{Path("runs/mine-a-en-de")}"' in (tmp_path / "further" / "recipe.toml").read_text().splitlines()[0]


def test_a_stopped_run_counts_the_steps_it_has(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained)
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 3)
        saccade.train("mine.toml", files=["a.en", "a.de"], run=tmp_path / "cut")
    with pytest.raises(
        SaccadeError, match=r"for 4 more steps: .* -o train.steps=4 -o 'train.average=ema\(0.9\)' -o st"
    ):
        saccade.train(tmp_path / "cut", options=["train.steps=7", "train.average=ema(0.9)"])
    with pytest.raises(SaccadeError, match=r"train.rate differs: .*; to begin one with its weights: .*train.rate=0.1 "):
        saccade.train("mine.toml", files=["a.en", "a.de"], run=tmp_path / "cut", options=["train.rate=0.1"])
    assert saccade.train("mine.toml", files=["a.en", "a.de"], run=tmp_path / "cut").step == 6
