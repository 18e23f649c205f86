"""How good a model is: the mean loss over a whole split, and the task's own metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.data import source
from saccade.data.corpus import Corpus
from saccade.data.fresh import Examples
from saccade.error import SaccadeError
from saccade.field.result import Result
from saccade.field.tally import Counts, Tally, intervals, ratio
from saccade.learn.alignment import alignment
from saccade.learn.commonest import by_kind, commonest, scores
from saccade.learn.corpora import corpus_of, extent_of, supply_of, training_of
from saccade.learn.evaluation import Evaluation, out_file
from saccade.learn.neighbour import neighbour
from saccade.learn.spoken import alignment_ms
from saccade.model.dropout import evaluating
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, Recipe, TrainConfig
from saccade.store.run import Run
from saccade.task.batch import states_of
from saccade.task.segment_memory import SegmentMemory
from saccade.task.task import Task

NOTHING = "nothing of this split is to be predicted (does y.ask stand in its texts?)"


def mean_loss(
    task: Task, model: Model, corpus: Corpus, config: TrainConfig, device: str | None = None
) -> tuple[float, dict[str, float], int]:
    """The mean loss of a prediction (of tokens in nats), without smoothing; its terms where it has several; and the
    number of predictions. Every example of the corpus counts once.
    """
    found = losses_of(task, model, corpus, config, device, apart=False)
    return found.mean, found.terms, found.predictions


class Losses(NamedTuple):
    """The mean loss of a prediction, its terms where it has several, and the number of predictions. each (N,2): the sum
    and the number of every example, where that was asked for and is known.
    """

    mean: float
    terms: dict[str, float]
    predictions: int
    each: Counts | None


def losses_of(
    task: Task, model: Model, corpus: Corpus, config: TrainConfig, device: str | None = None, *, apart: bool
) -> Losses:
    """The losses of a whole corpus; apart: those of every example too, from the same pass."""
    totals, counts, weights, memory = Counter[str](), Counter[str](), dict[str, float](), SegmentMemory(model)
    each_batch: list[Tensor | None] = []
    with torch.no_grad(), evaluating(model):
        for batch in task.whole(corpus, config):
            batch = memory.attach(batch.to(device or str(model.device)))
            states = states_of(model, batch)
            found = task.target.loss(model, states, batch.y, learning=False)
            each_batch += [task.target.losses(model, states, batch.y)] if apart else []
            totals.update({name: float(each.sum) for name, each in found.items()})
            weights |= {name: each.weight for name, each in found.items()}
            counts.update(batch.counts)
    main, *others = counts
    if not counts[main]:
        raise SaccadeError(NOTHING)
    means = {name: total / max(counts[name], 1) for name, total in totals.items()}
    known = [each for each in each_batch if each is not None]
    rows = torch.cat(known).double().cpu().numpy() if known else None
    if not others:
        return Losses(means[main], {}, counts[main], rows)
    return Losses(sum(weights[name] * each for name, each in means.items()), means, counts[main], None)


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    file: str | None = None,
    against: str | None = None,
    decode: DecodeConfig | None = None,
    out: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Step, split, number of examples, metrics, how it was decoded, and what belongs to the metrics: 95 % intervals of
    all of them, signatures, scores of each class and a confusion matrix, a baseline, of a language model the number of
    predicted tokens.

    out: a file to write: inputs, answers and references (.tsv, .csv, .jsonl), or a confusion matrix (.svg, .png).
    """
    _check_request(run.task, decode not in (None, run.decode()), split, file, against)
    written = None if out is None else out_file(run.task, out)
    decode = run.decode() if decode is None else decode
    if file is not None and against is not None:
        measured = _evaluate_files(run, file, against, decode)
    else:
        measured = _evaluate_split(run, split, decode, say)
    found = {"step": run.step, "split": measured.split, "examples": measured.examples, "metrics": measured.metrics}
    if written is not None:
        measured.save(run.task, written, "run" if run.path is None else run.path.name)
    return {**found, "decode": decode.model_dump(), **measured.beside, **({"out": str(out)} if out else {})}


def _check_request(task: Task, searched: bool, split: str | None, file: str | None, against: str | None) -> None:
    """Refuses arguments that contradict each other or do not fit the task. searched: [decode] was changed."""
    answers = task.answer.compared == "answers"
    if searched and not answers:
        raise SaccadeError(
            "only the loss of this run is measured, and nothing is written: leave out the decode options"
        )
    if file is not None and split is not None:
        raise SaccadeError("give a split of the recipe's data or files of your own, not both")
    if (file is None) != (against is None):
        raise SaccadeError("a file of inputs and its references belong together: give --file and --against")
    if file is not None and not answers:
        raise SaccadeError(f"{task.verb} is not compared with references: evaluate it on a split of its recipe")


def _evaluate_files(run: Run, file: str, against: str, decode: DecodeConfig) -> Evaluation:
    rows = _rows_of_files(run.task, file, against)
    judged = run.task.judge(run.model, rows, decode)
    return Evaluation(f"{file} against {against}", len(rows), judged.metrics, judged.beside, rows, judged.results)


def _rows_of_files(task: Task, file: str, against: str) -> list[tuple[Any, ...]]:
    """Rows of two files, one of inputs and one of references, read as training reads them."""
    folder, rows = Path(file).parent, []
    for number, (given, wanted) in enumerate(source.rows([file, against], strict=True), 1):
        raw = task.target.cell(wanted, folder)
        try:
            task.target.encode([raw])
        except SaccadeError as problem:
            raise SaccadeError(f"{against}, line {number}: {problem}") from None
        rows.append((task.cell(given, folder), raw))
    return rows


def _evaluate_split(run: Run, split: str | None, decode: DecodeConfig, say: Callable[[str], None]) -> Evaluation:
    """The loss and the metrics of one of the recipe's own splits."""
    recipe, task = run.recipe, run.task
    if recipe is None:
        raise SaccadeError("this folder has no recipe, so no data of its own: give --file and --against")
    supply = supply_of(run, recipe)
    split = split or supply.splits[-1]
    rows = [*supply.rows(split)]
    corpus = corpus_of(recipe, supply, run, split, say)
    losses = losses_of(task, run.model, corpus, recipe.train, apart=True)
    measures = partial(task.target.measures, count=losses.predictions, extent=extent_of(task, rows, corpus))
    found, beside, results = task.judge(run.model, rows, decode)
    own, beside_own = OF_DATA[recipe.data.name](run, recipe, split) if recipe.data.name in OF_DATA else ({}, {})
    beside["interval"] = {**_loss_intervals(losses, measures), **beside.get("interval", {}), **intervals(own)}
    train = partial(training_of, recipe, supply, run, say)
    usual = commonest(task, train, corpus, len(rows))
    plain = _baseline(task, run.model, rows, usual, train, corpus)
    told = "; ".join(each["what"] for each in (plain, beside_own) if "what" in each)
    beside |= {"baseline": {**plain, **beside_own, **({"what": told} if told else {})}}
    groups = [supply.group(row) for row in rows]
    beside |= by_kind(task.target, groups, [row[-1] for row in rows], results, usual)
    metrics = {**measures(losses.mean), **losses.terms, **found, **{name: each.value for name, each in own.items()}}
    if not task.x:
        texts = len(corpus) if supply.by_line else 1
        return Evaluation(split, texts, metrics, {**beside, "tokens": losses.predictions})
    missing = len(rows) - len(corpus)
    beside |= {"without_loss": missing} if missing else {}
    return Evaluation(split, len(rows), metrics, beside, rows, results)


def _loss_intervals(losses: Losses, measures: Callable[[float], dict[str, float]]) -> dict[str, list[float]]:
    """The intervals of all that follows from the mean loss, where the losses of the examples are known."""
    if losses.each is None:
        return {}

    def tally(name: str) -> Tally:
        return Tally(cast(Counts, losses.each), lambda total: measures(ratio(total))[name], -1)

    return intervals({name: tally(name) for name in measures(losses.mean)})


def _baseline(
    task: Task,
    model: Model,
    rows: Sequence[Sequence[Any]],
    usual: Sequence[Result] | None,
    train: Callable[[], Examples],
    corpus: Corpus,
) -> dict[str, Any]:
    """The scores of an answer that learned nothing: the commonest to each question, what Y says, or what the nearest
    training example has.
    """
    if usual is not None:
        asked = list(task.x)[-1]
        told = f"the commonest {task.name} to each {asked}"
        return {"what": told, **scores(task.target, usual, [row[-1] for row in rows])}
    copied = neighbour(task, model, rows, train)
    return copied or task.target.baseline(rows, lambda: train().column(task.name), corpus.column(task.name))


# Metrics that need what only the maker of the data knows, and their baselines, by the name of the data.
OF_DATA: dict[str | None, Callable[[Run, Recipe, str], tuple[dict[str, Tally], dict[str, Any]]]] = {
    "dates": lambda *given: (alignment(*given), {}),
    "fsdd-strings": alignment_ms,
}
