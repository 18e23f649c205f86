"""Every built-in recipe builds and takes a step; the curve of `dates` begins as it always did."""

from __future__ import annotations

from pathlib import Path

import pytest
from absent import NEEDED, data_set
from own import own_files
from rich.console import Console

from saccade.data.generated import GENERATED
from saccade.data.named import DATA
from saccade.learn.loop import Loop
from saccade.learn.prepare import prepare
from saccade.learn.progress import MetricsLog, Progress
from saccade.recipes import read as recipes


def first_losses(name, tmp_path, options=(), steps=1):
    prepared = prepare(recipes.recipe(name, options), lambda _: None)
    loop = Loop(prepared, tmp_path, Progress(Console(quiet=True), 1))
    loop.try_out()
    metrics, batches, losses = MetricsLog(tmp_path, 0), loop.batches(), []
    log = loop._log
    loop._log = lambda *args: (losses.append(args[1].loss), log(*args))
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


def every_recipe():
    """Those of a named data set are read whole before their first step: `make proof` takes it."""
    named = {name for name in recipes.names() if recipes.recipe(name).data.name in DATA}
    return [pytest.param(name, marks=[pytest.mark.proof] * (name in named)) for name in recipes.names()]


@pytest.mark.parametrize("name", every_recipe())
def test_every_recipe_takes_a_step(name, tmp_path):
    data = recipes.recipe(name).data
    for each in NEEDED.get(data.name, ()):
        data_set(each)
    few = ["data.examples=500", "data.held=20"] if data.name in GENERATED else []
    files = own_files(name, tmp_path)
    own = [f"data.files={files}"] if files else []
    options = [*own, *begun(name, tmp_path), *few, "size=full"]
    (loss,) = first_losses(name, tmp_path, options)
    assert loss == pytest.approx(FIRST[name], rel=2e-3)


def test_the_curve_of_dates(tmp_path):
    """A change that should not alter numbers must not alter these (float32, any number of threads)."""
    options = ["data.examples=3000", "data.held=20", "train.warmup=2"]
    losses = first_losses("dates", tmp_path, options, steps=6)
    assert losses == pytest.approx(GOLDEN, rel=2e-3)


GOLDEN = [7.88420, 6.60884, 4.77940, 3.95558, 3.36250, 2.96251]
# The loss of the first step, of weights that nobody has trained.
FIRST = {
    "shapes-detr": 7.9927,
    "sound-events": 6.1322,
    "points-boxes": 13.0375,
    "detect": 8.8970,
    "detect-events": 5.6391,
    "bccd-detr": 7.6654,
    "answer": 1.6041,
    "caption": 5.7169,
    "citeseer-gat": 1.7942,
    "classify": 0.79673,
    "classify-graphs": 0.69703,
    "classify-images": 0.67822,
    "classify-nodes": 0.72937,
    "classify-sounds": 0.74451,
    "copy-rnn": 3.1803,
    "copy-rnn-attention": 3.1775,
    "cora-gat": 1.9478,
    "cora-gcn": 1.9475,
    "dates": 7.5132,
    "dates-rnn-attention": 9.2245,
    "distances": 1.0055,
    "easy-vqa": 2.5095,
    "emoji-caption": 7.4523,
    "emoji-caption-languages": 8.2788,
    "emoji-caption-rnn": 7.4992,
    "eth-ucy-tracks": 3.5097,
    "fashion-mnist-cnn-attention": 2.5669,
    "fashion-mnist-swin": 2.3495,
    "fashion-mnist-vit": 2.3382,
    "foretell": 3.7101,
    "fsdd-spell": 5.1994,
    "fsdd-strings": 7.1438,
    "fsdd-strings-sharp": 7.1356,
    "lanes-tracks": 3.5036,
    "lines-read": 16.601,
    "mixture": 4.8491,
    "mnist-points": 2.4442,
    "mnist-points-deepsets": 2.7268,
    "mnist-vit": 2.3827,
    "motifs-graph": 0.6984,
    "multi30k-en-de": 9.7318,
    "multi30k-en-de-bytenet": 9.697,
    "multi30k-en-de-convs2s": 9.2581,
    "multi30k-en-de-gnmt": 11.729,
    "multi30k-en-de-gnmt-reward": 11.837,
    "multi30k-en-de-rnn": 9.2129,
    "multi30k-en-de-rnn-attention": 9.2629,
    "multi30k-en-de-transformer": 9.7318,
    "multi30k-en-fr": 9.6511,
    "read": 30.793,
    "recall": 6.371,
    "regress": 0.83506,
    "regress-images": 0.75079,
    "relations-vqa": 2.7661,
    "set-maximum": 0.98430,
    "shakespeare-char": 4.228,
    "shakespeare-char-best": 4.2587,
    "shakespeare-char-xl": 4.2409,
    "transcribe": 3.0397,
    "translate": 6.592,
    "wikitext-2": 10.425,
    "write": 5.6684,
}
