"""What a run tells while it learns, and who listens."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
from rich.console import Console
from saccade.learn.progress import Progress

sys.stdin.readline()
progress = Progress(Console(), 9)
for step in (1, 2):
    progress.say(f"step {step}")
sys.stderr.write("goes on")
"""


@pytest.mark.proof
def test_a_reader_who_leaves_ends_no_training():
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", CODE], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as training:
        training.stdout.close()
        assert training.communicate("\n", timeout=120)[1] == "goes on"
    assert training.returncode == 0
