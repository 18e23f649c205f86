"""`train`: from a recipe to a run; on a run that is there already, from its last good checkpoint on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from saccade import disk, spec
from saccade import recipe as recipes
from saccade.error import SaccadeError
from saccade.learn import vain
from saccade.learn.loop import Loop, device_of
from saccade.learn.prepare import Prepared, Say, located, prepare, say_report
from saccade.learn.progress import Progress
from saccade.recipe import Recipe, differences
from saccade.store import checkpoint
from saccade.store.run import Run, begun_in, fields_in, fill, load, recipe_of
from saccade.task.pair import resolved


def train(
    recipe: str | Path | Recipe,
    *,
    run: str | Path | None = None,
    options: Iterable[str] = (),
    parts: Mapping[str, Any] | None = None,
    console: Console | None = None,
) -> Run:
    """Trains a recipe (a Recipe, a built-in name, a TOML file, or a run folder to go on with) and gives the run.

    run: its folder, `runs/NAME` by default; if it is there, the run goes on, exactly as if it had never stopped.
    options: `a.b=value`, over the recipe. parts: scores or masks of your own by the names the recipe calls them.
    """
    console = Console(quiet=True) if console is None else console
    asked, folder = _asked(recipe, run, options)
    with spec.knowing(parts):
        new = None if (folder / disk.MANIFEST).is_file() else _begin(asked, folder, console)
        with checkpoint.locked(folder):
            _go_on(asked, folder, console, new)
        return load(folder)


def _asked(source: str | Path | Recipe, run: str | Path | None, options: Iterable[str]) -> tuple[Recipe | None, Path]:
    """The recipe, and the folder of its run; None: the folder's own."""
    options = list(options)
    if not isinstance(source, Recipe) and (Path(source) / disk.MANIFEST).is_file():
        if run is not None and Path(run).absolute() != Path(source).absolute():
            raise SaccadeError(
                f"{source} is a run and goes on in its own folder; to begin another, give its recipe.toml"
            )
        if options:
            raise SaccadeError(f"{source} goes on with its own recipe: options belong to a new run ({options[0]})")
        return None, Path(source)
    name, made = "run" if isinstance(source, Recipe) else Path(source).stem, resolved(recipes.recipe(source, options))
    vain.refuse(made, options)
    return made, Path("runs", name) if run is None else Path(run)


def _begin(asked: Recipe | None, folder: Path, console: Console) -> Loop:
    """Makes the run folder, with a checkpoint of step 0, all at once."""
    assert asked is not None  # a folder without a manifest is nobody's run
    folder = disk.vacant(folder)
    progress = Progress(console, asked.train.steps)
    try:
        device_of(asked.train.device)  # before anything is read
        prepared = prepare(asked, progress.say)
        say_report(prepared, progress.say)
        loop = Loop(prepared, folder, progress)
        loop.try_out()
        prepared.run.about["folder"] = os.path.realpath(Path.cwd())  # where its own files lie
        with disk.aside(folder) as aside:
            fill(aside, prepared.run)
            first = checkpoint.path_of(aside, 0)
            first.mkdir(parents=True)
            checkpoint.fill(first, 0, loop.tensors(), loop.numbers())
    finally:
        progress.close()
    return loop


def _go_on(asked: Recipe | None, folder: Path, console: Console, new: Loop | None) -> None:
    """All steps that are left, from the last good checkpoint; a run that was made just now is prepared already."""
    checkpoint.sweep(folder)
    known = _known(folder, asked)
    progress = Progress(console, known.recipe.train.steps)
    try:
        found = checkpoint.newest(folder, quarantine=progress.say)
        loop = new or Loop(prepare(known.recipe, progress.say, known.files), folder, progress)
        loop.progress = progress
        _same_data(folder, known, loop.prepared)
        loop.restore(found)
        _best_is_whole(folder, loop, progress.say)
        if found.step >= known.recipe.train.steps:
            progress.say(f"{folder} is finished: step {found.step}")
            return
        if found.step:
            progress.say(f"going on from step {found.step} of {known.recipe.train.steps}")
        loop.run()
        used = f"; the best is of step {best}" if (best := _best(loop)) is not None else ""
        progress.say(f"{folder}: step {loop.state['step']}, {loop.state['seconds'] / 60:.1f} minutes of training{used}")
    finally:
        progress.close()


def _best_is_whole(folder: Path, loop: Loop, say: Say) -> None:
    """With patience the best checkpoint is the one that is used: a damaged one is put aside as the last one is."""
    step = _best(loop)
    if step is None or step not in checkpoint.steps(folder):
        return
    try:
        checkpoint.read(folder, step, ())
    except disk.DamagedError as problem:
        checkpoint.put_aside(folder, step, problem, say)


def _best(loop: Loop) -> int | None:
    """With patience, the step whose weights are used, where it is not the last."""
    step: int = loop.state["best_step"]
    return None if loop.config.patience is None or step == loop.state["step"] else step


class Known(NamedTuple):
    """What a run folder says of itself, its weights aside."""

    recipe: Recipe
    files: dict[str, bytes]
    data: dict[str, Any]


def _known(folder: Path, asked: Recipe | None) -> Known:
    """Refuses another recipe, a damaged folder, or one that was never trained."""
    about = disk.verify(folder)
    if "asked" not in about:
        load(folder)  # refuses what is no run at all
        raise SaccadeError(f"{folder} was not made by training: to begin from its weights, set start = {str(folder)!r}")
    before = resolved(recipes.from_values(about["asked"], source=str(folder)))
    if asked is not None and (keys := differences(before, asked)):
        raise SaccadeError(
            f"{folder} was begun with another recipe; {', '.join(keys)} differ{'s' if len(keys) == 1 else ''}: "
            "give another --run, or the same recipe"
        )
    made = recipe_of(folder)
    if asked is None:
        made = located(made, about["data"]["made_of"], begun_in(folder, about))
    return Known(made, fields_in(folder, about), about["data"])


def _same_data(folder: Path, known: Known, prepared: Prepared) -> None:
    before, now = known.data, prepared.run.about["data"]
    if "format" not in before:  # of 0.1.0, whose fingerprints are of other arrays
        now = {**now, "train": before["train"], "val": before["val"]}
        now.pop("format")
    if before == now:
        return
    old, new = before["made_of"], now["made_of"]
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)) or ["its tokens"]
    raise SaccadeError(f"the data of {folder} have changed since it was begun ({', '.join(changed)}): begin a new run")
