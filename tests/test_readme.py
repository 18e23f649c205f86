"""The README's blocks run, and what it names exists."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest

import saccade.learn.train  # noqa: F401  the blocks import it too: what torch takes to load is not theirs

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_blocks_run(block, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(block)
    runpy.run_path(str(tmp_path / "block.py"))
    shown = capsys.readouterr().out
    for line in block.splitlines():
        if line.startswith("print(") and "exactly: " in line:
            assert line.rpartition("exactly: ")[2] in shown


def test_files_are_there():
    """Only files that git tracks count: those of .venv or of a run would hide a name that is gone."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {part for path in map(Path, listed.splitlines()) for part in (path.as_posix(), path.name)}
    named = re.findall(r"[\w./-]*\w\.(?:py|md)\b|docs/\w+\.svg", TEXT)
    assert named
    assert [name for name in named if name.removeprefix("./") not in tracked] == []


def test_picture_is_self_contained():
    for picture in re.findall(r"docs/(\w+\.svg)", TEXT):
        assert not re.search(r"(?:href|src|url\()\W*https?:", (ROOT / "docs" / picture).read_text())
