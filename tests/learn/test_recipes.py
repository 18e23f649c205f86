"""Every built-in recipe builds and takes a step; the curve of `dates` begins as it always did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from own import own_files
from rich.console import Console

from saccade import recipe as recipes
from saccade.data.supply import GENERATED
from saccade.learn.loop import Loop
from saccade.learn.prepare import prepare
from saccade.learn.progress import Metrics, Progress


def first_losses(name, tmp_path, options=(), steps=1):
    prepared = prepare(recipes.recipe(name, options), lambda _: None)
    loop = Loop(prepared, tmp_path, Progress(Console(quiet=True), 1))
    loop.try_out()
    metrics, batches, losses = Metrics(tmp_path, 0), loop.batches(), []
    tell = loop._tell
    loop._tell = lambda *args: (losses.append(args[1]), tell(*args))
    for _ in range(steps):
        loop.advance(batches, metrics)
    metrics.close()
    return losses


def begun(name, tmp_path):
    """The run that a recipe goes on from, named after the recipe that makes it."""
    start = recipes.recipe(name).start
    if start is None:
        return []
    run = prepare(recipes.recipe(Path(start).name), lambda _: None).run
    return [f"start={run.save(tmp_path / 'begun')}"]


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_takes_a_step(name, tmp_path):
    data = recipes.recipe(name).data
    if data.name not in (None, "dates", "recall") and not os.environ.get("SACCADE_DATA"):
        pytest.skip(f"SACCADE_DATA names no folder with {data.name}")
    few = ["data.examples=500", "data.held=20"] if data.name in GENERATED else []
    files = own_files(name, tmp_path)
    own = [f"data.files={files}"] if files else []
    options = [*own, *begun(name, tmp_path), *few]
    (loss,) = first_losses(name, tmp_path, options)
    assert 0 < loss < 13


def test_the_curve_of_dates(tmp_path):
    """A change that should not alter numbers must not alter these (float32, any number of threads)."""
    options = ["data.examples=3000", "data.held=20", "train.warmup=2"]
    losses = first_losses("dates", tmp_path, options, steps=6)
    assert losses == pytest.approx(GOLDEN, rel=2e-3)


GOLDEN = [7.88420, 6.60884, 4.77940, 3.95558, 3.36250, 2.96251]
