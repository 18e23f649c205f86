"""Checkpoints: `checkpoints/step-N/` with tensors, `state.json` and, last of all, a manifest with their hashes.

A checkpoint appears whole. Old ones are pruned after a new one is in place; at least two stay. Training renames one
whose hashes do not agree (`step-N.damaged`) and goes on from the one before; `load` passes over it, with a warning, and
writes nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from saccade import disk
from saccade.error import SaccadeError, SaccadeWarning

Tensors = dict[str, dict[str, Tensor]]  # file -> name -> tensor


class Checkpoint(NamedTuple):
    """Tensors by file (`model`, `training`, `average`, `memory`), and the state beside them."""

    step: int
    tensors: Tensors
    state: dict[str, Any]


def path_of(run: Path, step: int) -> Path:
    """The folder of a step's checkpoint."""
    return run / "checkpoints" / f"step-{step}"


def steps(run: Path) -> list[int]:
    """The steps that have a checkpoint, in order."""
    folder = run / "checkpoints"
    try:
        there = [each.name for each in os.scandir(folder) if each.name.startswith("step-") and each.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise SaccadeError(f"{folder} cannot be read: {problem.strerror}") from None
    found = (name.removeprefix("step-") for name in there)
    return sorted(int(each) for each in found if each.isdecimal() and each == str(int(each)))  # no step-07


def fill(folder: Path, step: int, tensors: Tensors, state: dict[str, Any]) -> None:
    """Writes a checkpoint's files into a folder, the manifest last."""
    for name, each in tensors.items():
        if each:
            disk.save_tensors(folder / f"{name}.safetensors", each)
    (folder / "state.json").write_text(json.dumps(state, indent=2, sort_keys=True))
    disk.seal(folder, {"step": step})


def write(run: Path, step: int, tensors: Tensors, state: dict[str, Any]) -> None:
    """A new checkpoint, whole or not at all; one that is there already stays."""
    path = path_of(run, step)
    if path.exists():
        return
    with disk.aside(path) as partial:
        fill(partial, step, tensors, state)


def prune(run: Path, keep: int, apart: Iterable[int] = ()) -> None:
    """Removes all but the last `keep` (two at least) and the steps in `apart`. A checkpoint is renamed before it is
    removed, so that one that is half gone is never read.
    """
    for step in set(steps(run)[: -max(keep, 2)]) - set(apart):
        path = path_of(run, step)
        gone = path.with_name(f".{path.name}.old")
        with disk.explaining(path):
            path.replace(gone)
        shutil.rmtree(gone, ignore_errors=True)


def read(run: Path, step: int, files: Iterable[str] | None = None) -> Checkpoint:
    """A checkpoint, verified; files: which tensors to read, all by default."""
    path = path_of(run, step)
    names = disk.verify(path)["sha256"]
    found = [name.removesuffix(".safetensors") for name in names if name.endswith(".safetensors")]
    wanted = found if files is None else [name for name in files if name in found]
    tensors = {name: disk.load_tensors(path / f"{name}.safetensors") for name in wanted}
    return Checkpoint(step, tensors, json.loads((path / "state.json").read_text()))


def newest(
    run: Path, files: Iterable[str] | None = None, *, quarantine: Callable[[str], None] | None = None
) -> Checkpoint:
    """The last good checkpoint. quarantine: renames damaged ones and is called with a line about each; without it they
    stay where they are, and a warning says which is used instead; if none is good, the newest is refused.
    """
    damaged: list[disk.DamagedError] = []
    for step in reversed(steps(run)):
        try:
            found = read(run, step, files)
        except disk.DamagedError as problem:
            if quarantine is None:
                damaged.append(problem)
            else:
                put_aside(run, step, problem, quarantine)
            continue
        if damaged:
            said = "; ".join(map(str, damaged))
            warnings.warn(f"{said}; the checkpoint of step {step} is used instead", SaccadeWarning, stacklevel=5)
        return found
    if damaged:
        raise damaged[0]
    raise SaccadeError(f"{run} has no checkpoint that is whole: nothing to go on from; train into a new folder")


def put_aside(run: Path, step: int, problem: disk.DamagedError, say: Callable[[str], None]) -> None:
    """Renames a damaged checkpoint, so that it is not read again, and says so."""
    path = path_of(run, step)
    there = _free_name(path.with_name(f"{path.name}.damaged"))
    with disk.explaining(path):
        path.replace(there)
    say(f"{problem}; it was put aside as {there}")


def sweep(run: Path) -> None:
    """Removes what a killed process left half written; `.tmp` is the name under which safetensors begins a file."""
    for pattern in (".*.partial", ".*.old", ".tmp*"):
        for folder in (run, run / "checkpoints", run / "snapshots", run / "averages"):
            for each in folder.glob(pattern):
                with disk.explaining(each):
                    shutil.rmtree(each) if each.is_dir() else each.unlink()


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Holds the lock of a run: a second process that wants to train it is refused. The lock ends with its process."""
    try:
        file = (run / "lock").open("w")
    except OSError as problem:
        raise SaccadeError(f"{run} cannot be written: {problem.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SaccadeError(f"{run} is being trained by another process: wait for it, or stop it") from None
        yield


class CheckpointWriter:
    """Writes checkpoints in a thread while training goes on, one at a time; the next call raises its errors."""

    def __init__(self, run: Path, keep: int) -> None:
        self.run, self.keep = run, keep
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None

    def write(self, step: int, tensors: Tensors, state: dict[str, Any], apart: Iterable[int] = ()) -> None:
        """Starts to write. The tensors must not change meanwhile: the caller passes copies, or waits."""
        self.wait()
        self._thread = threading.Thread(target=self._write, args=(step, tensors, state, tuple(apart)))
        self._thread.start()

    def wait(self) -> None:
        """Waits until the checkpoint is on the disk; raises what went wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    def _write(self, step: int, tensors: Tensors, state: dict[str, Any], apart: tuple[int, ...]) -> None:
        try:
            write(self.run, step, tensors, state)
            prune(self.run, self.keep, apart)
        except Exception as problem:  # raised again by `wait`, in the caller's thread
            self._problem = problem


def _free_name(path: Path) -> Path:
    """The path, or the first numbered one that does not exist."""
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{path.name.split('.')[0]}.damaged-{number}")
    return path
