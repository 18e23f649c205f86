"""How good a model is: the mean loss over a whole split, and the task's own metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from saccade.data import source
from saccade.data.corpus import Corpus
from saccade.error import SaccadeError, nearest
from saccade.learn.alignment import aligned, attends
from saccade.learn.prepare import characters_of, corpus_of, supply_of
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, TrainConfig
from saccade.store.run import Run
from saccade.task.answer import Answer
from saccade.task.carry import Carry
from saccade.task.classify import Classify
from saccade.task.task import Task
from saccade.task.write import Write

LOOKED = 200  # dates whose alignment is measured


def mean_loss(task: Task, model: Model, corpus: Corpus, config: TrainConfig, device: str = "cpu") -> tuple[float, int]:
    """Nats a prediction, without smoothing, and the number of predictions; everything in the corpus counts once."""
    total, count, carry = 0.0, 0, Carry(model)
    with torch.no_grad(), at_rest(model):
        for batch in task.whole(corpus, config):
            total += float(task.loss(model, carry.along(batch.to(device))))
            count += batch.count
    return total / count, count


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
    if decode not in (None, run.decode()) and isinstance(run.task, Write | Answer):
        raise SaccadeError("its loss alone is measured, and nothing is searched for: leave out the options of a search")
    decode = run.decode() if decode is None else decode
    if file is not None and split is not None:
        raise SaccadeError("give a split of the recipe's data or files of your own, not both")
    if (file is None) != (against is None):
        raise SaccadeError("a file of inputs and its references belong together: give --file and --against")
    if file is not None and isinstance(run.task, Answer):
        raise SaccadeError("its answers stand inside its texts, and no file holds them: evaluate it on a split")
    if file is not None and against is not None:
        rows = [*source.rows([file, against], strict=True)]
        if isinstance(run.task, Classify):
            rows = _labelled(rows, run.task, against)
        metrics, beside = run.task.judge(run.model, rows, decode, run.limit)
        if not metrics:
            raise SaccadeError("a language model answers to no references: evaluate it on a split of its recipe")
        split, examples = f"{file} against {against}", len(rows)
    else:
        split, examples, metrics, beside = _split(run, split, decode, say)
    found = {"step": run.step, "split": split, "examples": examples, "metrics": metrics}
    return {**found, "decode": decode.model_dump(), **beside}


def _labelled(rows: list[tuple[str, ...]], task: Classify, path: str) -> list[tuple[str, ...]]:
    """The rows with their labels as training reads them; refuses one that the model does not know."""
    for number, (_, label) in enumerate(rows, 1):
        if label.strip() not in task.labels.names:
            raise SaccadeError(
                f"{path}, line {number}: no label is called {label.strip()!r}; {nearest(label, task.labels.names)}"
            )
    return [(text, label.strip()) for text, label in rows]


def _split(run: Run, split: str | None, decode: DecodeConfig, say: Callable[[str], None]) -> tuple[str, int, Any, Any]:
    """The loss and the metrics of one of the recipe's own splits."""
    if run.recipe is None:
        raise SaccadeError("this folder has no recipe, so no data of its own: give --file and --against")
    supply, task = supply_of(run, run.recipe), run.task
    split = split or supply.splits[-1]
    rows = [*supply.rows(split)]
    corpus = corpus_of(run.recipe, supply, task, split, run.limit, say)
    loss, count = mean_loss(task, run.model, corpus, run.recipe.train)
    metrics = dict(task.measures(loss, count, characters_of(supply, task, corpus, split)))
    found, beside = task.judge(run.model, rows, decode, run.limit)
    by_letter = run.recipe.data.name == "dates" and run.recipe.data.tokenizer == "characters"
    looked = aligned(run, min(LOOKED, len(rows)), split) if by_letter and attends(run.model) else None
    found |= {} if looked is None else {"aligned": looked}
    if run.recipe.task == "write":
        texts = len(corpus) if supply.by_line else 1
        return split, texts, {**metrics, **found}, {**beside, "tokens": count}
    missing = len(rows) - len(corpus)
    return split, len(rows), {**metrics, **found}, {**beside, **({"without_loss": missing} if missing else {})}
