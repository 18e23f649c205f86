"""A run finds its own files: those that it was begun with, from wherever it is used."""

from __future__ import annotations

import pytest
from tiny import translate

import saccade
from saccade import SaccadeError
from saccade.learn.compare import compare
from saccade.learn.validate import evaluate


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A run that was begun from its folder with relative names, behind a link, and a folder with other files."""
    home, elsewhere, disk = (tmp_path / name for name in ("home", "elsewhere", "disk/deep"))
    for folder in (elsewhere, disk, home):
        folder.mkdir(parents=True)
    recipe = translate(home)
    for stranger in (elsewhere / "a.txt", tmp_path / "a.txt", tmp_path / "disk" / "a.txt"):
        stranger.write_text("something else\n")
    (home / "runs").symlink_to(disk)
    monkeypatch.chdir(home)
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"files": ["a.txt", "b.txt"]})})
    saccade.train(recipe, run="runs/mine")
    return home, recipe


def test_a_run_knows_its_files_from_wherever_it_is_used(home, tmp_path, monkeypatch):
    """Those that lay where it was begun, not others of the same name."""
    folder, _ = home
    run = saccade.load("runs/mine")
    here = evaluate(run, "val")["metrics"]
    run.save(tmp_path / "kept")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert evaluate(run, "val")["metrics"] == here
    assert evaluate(saccade.load(tmp_path / "kept"), "val")["metrics"] == here
    assert evaluate(saccade.load(folder / "runs" / "mine"), "val")["metrics"] == here
    assert saccade.train(folder / "runs" / "mine").step == 6
    assert len(compare([str(folder / "runs" / "mine"), str(tmp_path / "kept")]).runs) == 2


def test_a_recipe_that_is_asked_for_means_the_files_that_lie_here(home, tmp_path, monkeypatch):
    folder, recipe = home
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(SaccadeError, match=r"b\.txt is not there"):
        saccade.train(recipe, run=folder / "runs" / "mine")
    (folder / "a.txt").write_text("changed\n")
    monkeypatch.chdir(folder)
    with pytest.raises(SaccadeError, match=r"data\.files\[0\] changed since the run was trained"):
        evaluate(saccade.load("runs/mine"), "val")
