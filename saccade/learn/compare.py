"""`compare`: runs side by side on the same test data, with what each costs and what chance makes of their differences.

Runs must share their task and their test data; a folder without a recipe (from Hugging Face) is tested on the data of
the others. A file with the answers of another system may be compared too. All are compared with the first run named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple, cast

from saccade.data.report import counted
from saccade.data.supply import Row, Supply
from saccade.decode.quantise import parameters_of
from saccade.error import SaccadeError, nearest
from saccade.field.field import Kind, StreamTarget
from saccade.field.metric import perplexity
from saccade.field.result import unanswered
from saccade.field.unit import Lengths
from saccade.learn.bootstrap import differences
from saccade.learn.bucket import PLACES, Bucket, buckets_of
from saccade.learn.comparison import Against, Comparison, RunScores
from saccade.learn.contender import Contender, Given, contenders_of
from saccade.learn.corpora import corpus_of, supply_of
from saccade.learn.cost import flops_a_prediction, trained, writing_speeds
from saccade.learn.tally import Judged, of_answers, of_windows, window_losses
from saccade.recipe import Recipe, TrainConfig
from saccade.store.run import Run
from saccade.task.decode_options import within

Say = Callable[[str], None]
WINDOWED = Lengths("tokens before", PLACES)  # the buckets of a language model
WRITTEN = 100  # inputs that the speed of writing is measured on, at most
TOLD = 40  # letters of rows that differ
PROMPTS, PROMPT, ADDED = 8, 20, 64  # of a language model: how many, their characters, and the tokens it adds


class Data(NamedTuple):
    """What all are tested on: rows of a split, and the recipe whose data they are."""

    recipe: Recipe
    supply: Supply
    split: str
    rows: list[Row]


def compare(
    paths: Sequence[str | Path],
    split: str | None = None,
    *,
    limit: int | None = None,
    buckets: Sequence[int] | None = None,
    metric: str | None = None,
    say: Say = lambda _: None,
    **options: Any,
) -> Comparison:
    """The runs of these folders on a split of their data, the last there is by default; a file has the answers of
    another system to the same texts, in their order, one a line.

    limit: only the first so many sentences or windows. buckets: the lengths at which a new bucket begins. metric: the
    one that is shown by bucket. options: those of [decode], over each run's own.
    """
    contenders, runs = contenders_of(paths, options)
    task, by_loss = runs[0].task, runs[0].task.answer.compared == "losses"
    unit = WINDOWED if by_loss else next(iter(task.x.values())).lengths
    parts = _buckets(unit, buckets)
    data = _shared_data(runs, split, None if by_loss else limit)
    wanted = [row[-1] for row in data.rows]
    main, shown = _main_metric(runs, metric, wanted), runs[0].task.target.meaningful(wanted)
    if by_loss:
        found, examples = _score_windows(runs, data, parts, limit, say)
    else:
        for each in contenders:
            if isinstance(each, Given):
                each.check(data.split, len(data.rows), limit is not None)
        scored = (_score_answers(each, data.rows, parts, say) for each in contenders)
        found, examples = [each.only({*shown, main}) for each in scored], len(data.rows)
    say("measuring how fast each writes")
    speeds = dict(zip((each.name for each in runs), writing_speeds(*_writers_and_inputs(runs, data.rows)), strict=True))
    entries = [_run_scores(*each, speeds, data, say) for each in zip(contenders, found, strict=True)]
    sizes = list(zip((each.name for each in parts), found[0].sizes, strict=True))
    against = _differences_from_first(entries, found, main, parts)
    noun = "window" if by_loss else next(iter(task.x.values())).noun
    predicted = task.target.unit
    return Comparison(task.verb, data.split, examples, main, unit.name, sizes, entries, against, noun, predicted)


def _buckets(unit: Lengths, asked: Sequence[int] | None) -> list[Bucket]:
    """The buckets asked for, or the usual ones; none where examples have no length (pictures)."""
    if unit.edges:
        return buckets_of(unit.edges if asked is None else asked)
    if asked is not None:
        raise SaccadeError(
            f"{unit.name} are all of one length here, so there are no buckets of them: leave buckets out"
        )
    return []


def _shared_data(contenders: Sequence[Contender], split: str | None, limit: int | None) -> Data:
    """The rows that all are tested on, only the first `limit`; refuses runs whose rows differ."""
    runs = [(each.name, each.run, each.run.recipe) for each in contenders]
    own = [(name, recipe, supply_of(run, recipe)) for name, run, recipe in runs if recipe is not None]
    if not own:
        raise SaccadeError("none of these folders has a recipe, so there are no data to test on: name a run too")
    (name, recipe, supply), *others = own
    split = split or supply.splits[-1]
    rows = list(islice(supply.rows(split), limit))
    for other, _, given in others:  # the rows themselves: files of one name may differ from folder to folder
        if (told := _difference_of_rows(rows, islice(given.rows(split), limit), supply.kinds)) is not None:
            raise SaccadeError(f"{name} and {other} are tested on different data: of the split {split!r} {told}")
    return Data(recipe, supply, split, rows)


def _difference_of_rows(rows: Sequence[Row], others: Iterable[Row], kinds: Mapping[str, Kind]) -> str | None:
    """How rows differ, if they do: the first column that does, by its name."""
    theirs = list(others)
    if len(rows) != len(theirs):
        return f"one has {len(rows):,} rows, the other {len(theirs):,}"
    for number, (row, other) in enumerate(zip(rows, theirs, strict=True), 1):
        for name, one, another in zip(kinds, row, other, strict=True):
            if _differ(kinds[name], one, another):
                here, there = _where_they_differ(str(one), str(another))
                return f"row {number:,} has the {name} {here!r} in one, {there!r} in the other"
    return None


def _where_they_differ(one: str, other: str) -> tuple[str, str]:
    """The parts of two texts around the first letter in which they differ."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    begin = max(0, sum(1 for _ in same) - TOLD // 2)
    before = "..." if begin else ""
    return before + one[begin : begin + TOLD], before + other[begin : begin + TOLD]


def _differ(kind: Kind, one: Any, other: Any) -> bool:
    """Whether two raw things differ: texts in any letter, others by their identity."""
    if isinstance(one, str) and isinstance(other, str):
        return one != other
    return kind.identity(one) != kind.identity(other)


def _score_answers(contender: Contender | Given, rows: Sequence[Row], buckets: Sequence[Bucket], say: Say) -> Judged:
    """The scores of a run's answers, or of the answers in a file."""
    task = contender.task
    say(f"{contender.name}: {counted(len(rows), next(iter(task.x.values())).noun)}")
    results = contender.answers([task.inputs(row) for row in rows])
    found, missing = of_answers(task, results, rows, buckets), unanswered(results)
    return found._replace(unfit=missing.get("unfit", 0), cut=missing.get("cut", 0))


def _score_windows(
    contenders: Sequence[Contender], data: Data, buckets: Sequence[Bucket], limit: int | None, say: Say
) -> tuple[list[Judged], int]:
    """The losses of language models on the same windows, which are as long as the shortest that any was trained on."""
    trains = [_train_of(each.run, data.recipe) for each in contenders]
    rooms = [each.run.model.room for each in contenders if each.run.model.room is not None]
    learned = [cast(StreamTarget, each.task.target).config.window for each in contenders if each.run.recipe is not None]
    length = min([*learned, *rooms])
    found, examples = [], 0
    for contender, train in zip(contenders, trains, strict=True):
        say(f"{contender.name}: reading the text")
        corpus = corpus_of(data.recipe, data.supply, contender.run, data.split, say)
        losses = window_losses(contender.task.windowed(length), contender.run.model, corpus, train, limit)
        found.append(of_windows(losses, buckets))
        examples = len(losses)
    return found, examples


def _train_of(run: Run, recipe: Recipe) -> TrainConfig:
    return recipe.train if run.recipe is None else run.recipe.train


def _main_metric(contenders: Sequence[Contender], metric: str | None, wanted: Sequence[Any]) -> str:
    """The metric that is shown by bucket: the one asked for, or the main metric of Y. Where runs differ in that, the
    one that is fair to all: if one run writes lower case only, the metric that ignores case.
    """
    targets = [each.task.target for each in contenders]
    known = targets[0].known
    if metric is not None and metric not in known:
        raise SaccadeError(f"these runs have no metric {metric!r}; {nearest(metric, known)}")
    return metric or max((each.main_of(wanted) for each in targets), key=known.index)


def _writers_and_inputs(contenders: Sequence[Contender], rows: Sequence[Row]) -> tuple[Sequence[Contender], list[str]]:
    """The runs as their writing speed is measured, and what they write from: the first inputs, or short prompts that
    lie evenly in the text.
    """
    if contenders[0].task.x:
        return contenders, [contenders[0].task.inputs(row) for row in islice(rows, WRITTEN)]
    text = "".join(row[0] for row in rows)
    starts = range(0, max(1, len(text) - PROMPT), max(1, len(text) // PROMPTS))
    short = [each._replace(decode=within(each.decode, ADDED)) for each in contenders]
    return short, [text[start : start + PROMPT] for start in starts]


def _run_scores(
    contender: Contender | Given, judged: Judged, speeds: Mapping[str, float | None], data: Data, say: Say
) -> RunScores:
    """All that is known of a contender; of answers from a file there are metrics, but no costs."""
    values = {name: each.value for name, each in judged.whole.items()}
    beside = {"perplexity": perplexity(values["loss"])} if "loss" in values else {}
    entry = RunScores(
        run=contender.name,
        metrics=values | beside,
        buckets={name: [part[name].value for part in judged.parts] for name in judged.whole},
        unfit=judged.unfit,
        cut=judged.cut,
    )
    if isinstance(contender, Given):
        return entry
    run, done = contender.run, trained(contender.run)
    rewarded = run.task.judged is not None  # FLOPs of sampling for a reward are unknown
    flops = None if done is None or rewarded else _flops_of(contender, data, say)
    return replace(
        entry,
        step=run.step,
        parameters=parameters_of(run.model),
        training_flops=None if done is None or flops is None else done.tokens * flops,
        training_tokens=None if done is None else done.tokens,
        training_tokens_per_second=None if done is None else done.tokens / done.seconds,
        decode_tokens_per_second=speeds[contender.name],
        decode=contender.decode.model_dump(),
    )


def _flops_of(contender: Contender, data: Data, say: Say) -> float | None:
    """FLOPs of training for each prediction; None where these data do not fit the run (other labels, all too long)."""
    run = contender.run
    try:
        corpus = corpus_of(data.recipe, data.supply, run, data.split, say)
    except SaccadeError as problem:
        say(f"{contender.name}: the FLOPs of its training are not counted: {problem}")
        return None
    return flops_a_prediction(run.model.config, contender.task, corpus, _train_of(run, data.recipe))


def _differences_from_first(
    entries: Sequence[RunScores], found: Sequence[Judged], main: str, buckets: Sequence[Bucket]
) -> list[Against]:
    """Every metric over all examples, and the main one in each bucket, beside the first run's; without metrics of which
    neither more nor less is better.
    """
    wholes: list[tuple[str | None, str, list[Any]]] = [
        (None, name, [each.whole[name] for each in found]) for name in found[0].whole
    ]
    parts = [(bucket.name, main, [each.parts[n][main] for each in found]) for n, bucket in enumerate(buckets)]
    made = []
    for bucket, metric, (first, *others) in [*wholes, *parts]:
        if not first.better:
            continue
        for entry, each in zip(entries[1:], differences(first, others), strict=True):
            if each is not None:
                made.append(Against(entry.run, entries[0].run, metric, bucket, *each))
    return made
