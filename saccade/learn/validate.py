"""How good a model is: the mean loss over a whole split, and the task's own metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from saccade.data import source
from saccade.data.corpus import Column, Corpus
from saccade.data.supply import Supply
from saccade.error import SaccadeError
from saccade.learn.alignment import looked
from saccade.learn.prepare import corpus_of, extent_of, supply_of
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, Recipe, TrainConfig
from saccade.store.run import Run
from saccade.task.carry import Carry
from saccade.task.task import Task

NOTHING = "nothing of this split is to be predicted (does y.ask stand in its texts?)"


def mean_loss(
    task: Task, model: Model, corpus: Corpus, config: TrainConfig, device: str | None = None
) -> tuple[float, dict[str, float], int]:
    """The loss of a prediction (of tokens in nats), without smoothing, its terms where it has several, and the number
    of predictions; everything in the corpus counts once.
    """
    totals, counts, weights, carry = Counter[str](), Counter[str](), dict[str, float](), Carry(model)
    with torch.no_grad(), at_rest(model):
        for batch in task.whole(corpus, config):
            found = task.terms(model, carry.along(batch.to(device or str(model.device))))
            totals.update({name: float(each.sum) for name, each in found.items()})
            weights |= {name: each.weight for name, each in found.items()}
            counts.update(batch.counts)
    main, *others = counts
    if not counts[main]:
        raise SaccadeError(NOTHING)
    means = {name: total / max(counts[name], 1) for name, total in totals.items()}
    if not others:
        return means[main], {}, counts[main]
    return sum(weights[name] * each for name, each in means.items()), means, counts[main]


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    file: str | None = None,
    against: str | None = None,
    decode: DecodeConfig | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Step, split, number of examples, metrics, how it was decoded, and what belongs beside the metrics (of a language
    model the tokens that were predicted).
    """
    task = run.task
    if decode not in (None, run.decode()) and task.answer.compared != "answers":
        raise SaccadeError("its loss alone is measured, and nothing is searched for: leave out the options of a search")
    decode = run.decode() if decode is None else decode
    if file is not None and split is not None:
        raise SaccadeError("give a split of the recipe's data or files of your own, not both")
    if (file is None) != (against is None):
        raise SaccadeError("a file of inputs and its references belong together: give --file and --against")
    if file is not None and against is not None:
        if task.answer.compared != "answers":
            raise SaccadeError(f"{task.verb} answers to no references: evaluate it on a split of its recipe")
        rows = _referred(task, file, against)
        metrics, beside = task.judge(run.model, rows, decode)
        split, examples = f"{file} against {against}", len(rows)
    else:
        split, examples, metrics, beside = _split(run, split, decode, say)
    found = {"step": run.step, "split": split, "examples": examples, "metrics": metrics}
    return {**found, "decode": decode.model_dump(), **beside}


def _referred(task: Task, file: str, against: str) -> list[tuple[Any, ...]]:
    """The lines of a file of inputs, and those of a file of references, as training reads them."""
    folder, rows = Path(file).parent, []
    for number, (given, wanted) in enumerate(source.rows([file, against], strict=True), 1):
        raw = task.target.cell(wanted, folder)
        try:
            task.target.encode([raw])
        except SaccadeError as problem:
            raise SaccadeError(f"{against}, line {number}: {problem}") from None
        rows.append((task.cell(given, folder), raw))
    return rows


def _split(run: Run, split: str | None, decode: DecodeConfig, say: Callable[[str], None]) -> tuple[str, int, Any, Any]:
    """The loss and the metrics of one of the recipe's own splits."""
    if run.recipe is None:
        raise SaccadeError("this folder has no recipe, so no data of its own: give --file and --against")
    supply, task = supply_of(run, run.recipe), run.task
    split = split or supply.splits[-1]
    rows = [*supply.rows(split)]
    corpus = corpus_of(run.recipe, supply, run, split, say)
    loss, terms, count = mean_loss(task, run.model, corpus, run.recipe.train)
    metrics = {**task.target.measures(loss, count, extent_of(supply, task, corpus, split)), **terms}
    found, beside = task.judge(run.model, rows, decode)
    found |= looked(run, split)
    learned = partial(_column, run.recipe, supply, run, say)
    beside |= {"baseline": task.target.baseline(rows, learned, corpus.column(task.name))}
    if not task.x:
        texts = len(corpus) if supply.by_line else 1
        return split, texts, {**metrics, **found}, {**beside, "tokens": count}
    missing = len(rows) - len(corpus)
    return split, len(rows), {**metrics, **found}, {**beside, **({"without_loss": missing} if missing else {})}


def _column(recipe: Recipe, supply: Supply, run: Run, say: Callable[[str], None]) -> Column:
    """What was wanted in training, which a baseline may learn from."""
    return corpus_of(recipe, supply, run, "train", say).column(run.task.name)
