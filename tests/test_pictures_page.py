"""The scripts of docs/pictures.md make folders that are trained in one command."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from absent import data_set

BLOCKS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[1] / "docs" / "pictures.md").read_text(), re.DOTALL)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("number", "name", "folder", "most"), [(0, "bccd", "cells/train", 301), (1, "emoji-captions", "emoji", 386)]
)
def test_folders_are_made_and_trained(number, name, folder, most, tmp_path, monkeypatch, command):
    monkeypatch.setenv("SACCADE_DATA", str(data_set(name).parent))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(BLOCKS[number])
    runpy.run_path(str(tmp_path / "block.py"))
    counts = [len(list(each.iterdir())) for each in (tmp_path / folder).iterdir()]
    assert max(counts) == most < sum(counts) / 2, "no class is most of all"
    options = ["-o", "train.steps=2", "-o", "train.every=2", "-o", "x.source.size=16", "-o", "model.encoder=1"]
    done = command("train", "classify", "--files", folder, *options, "--run", "run")
    assert done.returncode == 0, done.stderr
    assert "skipped" not in done.stdout + done.stderr, "every picture can be read"
