"""`train`: from a recipe to a run; a run that is there already goes on from its last good checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from saccade import disk, spec
from saccade.data.reader import present
from saccade.error import SaccadeError
from saccade.learn import budget, unused
from saccade.learn.corpora import Say, located
from saccade.learn.device import device_of
from saccade.learn.fitting import fitting
from saccade.learn.further import further, further_as
from saccade.learn.loop import Loop
from saccade.learn.prepare import Prepared, prepare, resume, say_report
from saccade.learn.progress import Progress, say
from saccade.learn.run_name import usual_folder
from saccade.recipe import Recipe
from saccade.recipes import read as recipes
from saccade.recipes.read import option_of
from saccade.recipes.write import as_value, differences
from saccade.store import checkpoint
from saccade.store.load import PARTS, asking_for_parts, begun_in, fields_in, load, recipe_of
from saccade.store.run import Run
from saccade.task.pair import resolved


def train(
    recipe: str | Path | Recipe,
    *,
    files: str | Path | Sequence[str | Path] = (),
    run: str | Path | None = None,
    options: Iterable[str] = (),
    minutes: float | None = None,
    parts: Mapping[str, Any] | None = None,
    console: Console | None = None,
) -> Run:
    """Trains a recipe (a Recipe, a built-in name, a TOML file, or a run folder to go on with) and gives the run.

    files: your own, for a recipe that takes them: `train("translate", files=["a.en", "a.de"])`; where another recipe of
    the same task reads such files (`classify` and a folder of pictures), that one is taken. run: its folder,
    `runs/NAME` by default; if it is there, the run goes on, exactly as if it had never stopped. options: `a.b=value`,
    over the recipe. minutes: what the training may take, at the price of steps and, where there are sizes, of a smaller
    model. parts: scores or masks of your own by the names the recipe calls them. console: where progress is shown; by
    default a terminal or a notebook, where there is one. Ctrl-C saves the run and raises `Stopped`.
    """
    console = _usual_console() if console is None else console
    own = [str(each) for each in ([files] if isinstance(files, str | Path) else files)]
    options = [*options, *([] if minutes is None else [f"train.minutes={minutes}"])]
    with spec.knowing(parts):
        chosen = fitting(recipe, own, options, partial(say, console))
        asked, folder = _recipe_and_folder(chosen, own, run, options)
        new = None if (folder / disk.MANIFEST).is_file() else _begin(asked, folder, console)
        with checkpoint.locked(folder):
            _go_on(asked, folder, console, new)
        return load(folder)


def _usual_console() -> Console:
    """What `rich` finds: a terminal or a notebook; where there is neither, nothing is printed."""
    console = Console()
    console.quiet = not (console.is_terminal or console.is_jupyter)
    return console


def _recipe_and_folder(
    source: str | Path | Recipe, files: Sequence[str], run: str | Path | None, options: Iterable[str]
) -> tuple[Recipe | None, Path]:
    """The recipe, and the folder of its run; a recipe of None: the one in the folder. Files that are not there are
    refused before the folder is looked at, which may hold the run of other files.
    """
    options = [*options, *([f"data.files={as_value(list(files))}"] if files else [])]
    if not isinstance(source, Recipe) and (Path(source) / disk.MANIFEST).is_file():
        if run is not None and Path(run).absolute() != Path(source).absolute():
            raise SaccadeError(
                f"{source} is a run and goes on in its own folder; to begin another, give its recipe.toml"
            )
        if options:
            raise SaccadeError(
                f"{source} goes on with its own recipe, and options belong to a new run ({options[0]}); "
                f"{further(Path(source), dict(map(option_of, options)))}"
            )
        return None, Path(source)
    made = resolved(recipes.recipe(source, options))
    unused.refuse(made, options)
    present([*made.data.files, *made.data.validation, *made.data.test])
    return made, usual_folder(source, files) if run is None else Path(run)


def _begin(asked: Recipe | None, folder: Path, console: Console) -> Loop:
    """Makes the run folder, with a checkpoint of step 0, all at once."""
    assert asked is not None  # it is None only where the folder has a manifest, and this one has none
    begun, folder = budget.clock(), disk.vacant(folder)
    progress = Progress(console, asked.train.steps)
    try:
        device_of(asked.train.device)  # before anything is read
        prepared = _prepare(asked, begun, progress.say)
        say_report(prepared, progress.say)
        loop = Loop(prepared, folder, progress)
        loop.try_out()
        prepared.run.about["folder"] = os.path.realpath(Path.cwd())  # where its own files lie
        prepared.run.about |= {PARTS: sorted(own)} if (own := spec.brought()) else {}
        with disk.aside(folder) as aside:
            prepared.run.fill(aside)
            first = checkpoint.path_of(aside, 0)
            first.mkdir(parents=True)
            checkpoint.fill(first, 0, loop.tensors(), loop.numbers())
    finally:
        progress.close()
    return loop


def _prepare(asked: Recipe, begun: float, say: Say) -> Prepared:
    """The parts of a new run, at the size and with the steps that its data and its minutes allow; the manifest keeps
    what was asked for, so that the same command goes on. begun: when, by the clock of `budget`.
    """
    timed = asked.train.minutes is not None
    prepared = budget.within_minutes(asked, begun, say) if timed else prepare(asked, say)
    prepared.run.about["asked"] = asked.model_dump(mode="json", exclude_none=True)
    return prepared


def _go_on(asked: Recipe | None, folder: Path, console: Console, new: Loop | None) -> None:
    """All remaining steps, from the last good checkpoint. new: the loop of a run that was just begun, which need not be
    prepared again.
    """
    checkpoint.sweep(folder)
    saved = _read_saved(folder, asked)
    progress = Progress(console, saved.recipe.train.steps)
    try:
        found = checkpoint.newest(folder, quarantine=progress.say)
        with asking_for_parts(folder, disk.manifest(folder)):
            loop = new or Loop(resume(saved.recipe, saved.files, progress.say), folder, progress)
        loop.progress = progress
        _check_data(folder, saved, loop.prepared)
        loop.restore(found)
        _check_best(folder, loop, progress.say)
        if found.step >= saved.recipe.train.steps:
            progress.say(f"{folder} is finished: step {found.step}")
            return
        if found.step:
            progress.say(f"going on from step {found.step} of {saved.recipe.train.steps}")
        loop.run()
        used = f"; the best is of step {best}" if (best := _best_step(loop)) is not None else ""
        progress.say(f"{folder}: step {loop.state['step']}, {loop.state['seconds'] / 60:.1f} minutes of training{used}")
    finally:
        progress.close()


def _check_best(folder: Path, loop: Loop, say: Say) -> None:
    """With patience the best checkpoint is the one that is used: if it is damaged, it is put aside here."""
    step = _best_step(loop)
    if step is None or step not in checkpoint.steps(folder):
        return
    try:
        checkpoint.read(folder, step, ())
    except disk.DamagedError as problem:
        checkpoint.put_aside(folder, step, problem, say)


def _best_step(loop: Loop) -> int | None:
    """With patience, the step whose weights are used, where it is not the last."""
    step: int = loop.state["best_step"]
    return None if loop.config.patience is None or step == loop.state["step"] else step


class Saved(NamedTuple):
    """What a run folder says of itself, its weights aside."""

    recipe: Recipe
    files: dict[str, bytes]
    data: dict[str, Any]


def _read_saved(folder: Path, asked: Recipe | None) -> Saved:
    """What the folder says; refuses another recipe, a damaged folder, and one that training did not make."""
    about = disk.verify(folder)
    if "asked" not in about:
        load(folder)  # refuses what is no run at all
        raise SaccadeError(f"{folder} was not made by training: to begin from its weights, set start = {str(folder)!r}")
    before = resolved(recipes.from_values(about["asked"], source=str(folder)))
    if asked is not None and "sizes" not in about["asked"]:  # of a version whose recipes had none
        asked = asked.model_copy(update={"sizes": []})
    made = recipe_of(folder)
    # The folder's recipe.toml names the run too: it differs from what was asked for by the size that was chosen.
    if asked is not None and (keys := min((differences(each, asked) for each in (before, made)), key=len)):
        advice = further_as(folder, asked, keys)
        raise SaccadeError(
            f"{folder} was begun with another recipe; {', '.join(keys)} differ{'s' if len(keys) == 1 else ''}: "
            f"give another --run, or the same recipe{advice and f'; {advice}'}"
        )
    if asked is None:
        made = located(made, about["data"]["made_of"], begun_in(folder, about))
    return Saved(made, fields_in(folder, about), about["data"])


def _check_data(folder: Path, saved: Saved, prepared: Prepared) -> None:
    """Refuses to go on with other data than the run was begun with."""
    before, now = saved.data, prepared.run.about["data"]
    if "format" not in before:  # of 0.1.0, whose fingerprints are of other arrays
        now = {**now, "train": before["train"], "val": before["val"]}
        now.pop("format")
    if before == now:
        return
    old, new = before["made_of"], now["made_of"]
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)) or ["its tokens"]
    raise SaccadeError(f"the data of {folder} have changed since it was begun ({', '.join(changed)}): begin a new run")
