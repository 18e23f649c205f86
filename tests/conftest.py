"""What every test stands on: a cache of its own, folders that all workers share, and how long a test may take.

`make test` runs what is not marked `proof`, and fails a test that takes more than MOST seconds. `make proof` runs what
is marked, and every test by hypothesis again, with all of its examples (`tests/examples.py`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

MOST = 5.0  # seconds that a test without the mark `proof` may take

settings.register_profile("test", max_examples=20, deadline=None, derandomize=True, database=None)
settings.register_profile("proof", max_examples=100, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("proof" if _proves(config) else "test")


def _proves(config: pytest.Config) -> bool:
    return config.option.markexpr == "proof"


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m does not ask for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _proves(config):
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("proof")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    before = time.monotonic(), _worked()
    result = yield
    took = min(time.monotonic() - before[0], _worked() - before[1])
    if took > MOST and item.get_closest_marker("proof") is None:
        pytest.fail(
            f"{took:.1f} seconds: mark it `proof`, or let it share a fixture (at most {MOST:g} s)", pytrace=False
        )
    return result


def _worked() -> float:
    """CPU seconds of this process and of the children that it has waited for.

    A busy machine stretches the clock but not these; several threads stretch these but not the clock: the lesser of
    both is what the test takes on a quiet machine.
    """
    return sum(os.times()[:4])


@pytest.fixture(autouse=True)
def cache(tmp_path):
    """A folder of the test's own for token stores and data: the user's is neither read nor written."""
    with pytest.MonkeyPatch.context() as patch:  # its own, so that a test's `monkeypatch.undo` leaves it
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield tmp_path / "cache"


@pytest.fixture
def command(monkeypatch, capsys) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line in this process: `command("list", "masks")` gives its exit code and what it wrote."""
    from saccade.cli import main

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["saccade", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as over:
            main()
        return subprocess.CompletedProcess(words, int(over.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """`shared(name, make)` is a folder that `make(folder)` filled once for all workers; later nobody writes into it."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made, done = root / "shared" / name, root / "shared" / f"{name}.done"
        made.parent.mkdir(exist_ok=True)
        with (root / "shared" / f"{name}.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(made, ignore_errors=True)  # of a worker that failed to make it
                made.mkdir()
                patch.setenv("XDG_CACHE_HOME", str(made / "cache"))
                make(made)
                done.touch()
        return made

    return folder
