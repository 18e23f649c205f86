"""`compare`: runs side by side on the same test data, with what each costs and what chance makes of their differences.

Runs must share their task and their test data; a folder without a recipe (from Hugging Face) is tested on the others'.
Beside them may stand a file of what another system answered. The first named is the one that the others are compared
with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from saccade.data.report import counted
from saccade.data.supply import Row, Supply
from saccade.decode.quantise import parameters_of
from saccade.error import SaccadeError, nearest
from saccade.field.field import Kind, Streamed
from saccade.field.metric import perplexity
from saccade.field.result import unanswered
from saccade.field.unit import Lengths
from saccade.learn.bootstrap import differences
from saccade.learn.bucket import PLACES, Bucket, buckets_of
from saccade.learn.comparison import Against, Comparison, Entry
from saccade.learn.cost import Writer, flops_a_prediction, trained, writing_speeds
from saccade.learn.entrant import Entrant, Given, entrants_of
from saccade.learn.prepare import corpus_of, supply_of
from saccade.learn.tally import Judged, of_answers, of_windows, window_losses
from saccade.recipe import Recipe, TrainConfig
from saccade.store.run import Run
from saccade.task.search import within

Say = Callable[[str], None]
WINDOWED = Lengths("tokens before", PLACES)  # what a language model is told by
WRITTEN = 100  # inputs that the speed of writing is measured on, at most
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

    limit: the first so many sentences or windows alone. buckets: the lengths at which a new bucket begins. metric: the
    one to tell by bucket. options: those of [decode], over each run's own.
    """
    entrants, runs = entrants_of(paths, options)
    task, by_loss = runs[0].task, runs[0].task.answer.compared == "losses"
    unit = WINDOWED if by_loss else next(iter(task.x.values())).lengths
    parts = buckets_of(unit.edges if buckets is None else buckets)
    data = _shared(runs, split, None if by_loss else limit)
    main = _main(runs, metric)
    if by_loss:
        found, examples = _read(runs, data, parts, limit, say)
    else:
        for each in entrants:
            if isinstance(each, Given):
                each.check(data.split, len(data.rows), limit is not None)
        found, examples = [_answered(each, data.rows, parts, say) for each in entrants], len(data.rows)
    say("measuring how fast each writes")
    speeds = dict(zip((each.name for each in runs), writing_speeds(*_race(runs, data.rows)), strict=True))
    entries = [_entry(*each, speeds, data, say) for each in zip(entrants, found, strict=True)]
    sizes = list(zip((each.name for each in parts), found[0].sizes, strict=True))
    against = _against(entries, found, main, parts)
    noun = "window" if by_loss else next(iter(task.x.values())).noun
    return Comparison(task.verb, data.split, examples, main, unit.name, sizes, entries, against, noun)


def _shared(entrants: Sequence[Entrant], split: str | None, limit: int | None) -> Data:
    """The rows that all are tested on, the first `limit` alone; refuses runs whose rows differ."""
    runs = [(each.name, each.run, each.run.recipe) for each in entrants]
    own = [(name, recipe, supply_of(run, recipe)) for name, run, recipe in runs if recipe is not None]
    if not own:
        raise SaccadeError("none of these folders has a recipe, so there are no data to test on: name a run too")
    (name, recipe, supply), *others = own
    split = split or supply.splits[-1]
    rows = list(islice(supply.rows(split), limit))
    for other, _, given in others:  # what is called alike may lie in another folder
        if (told := _unlike(rows, islice(given.rows(split), limit), list(supply.kinds.values()))) is not None:
            raise SaccadeError(f"{name} and {other} are tested on different data: of the split {split!r} {told}")
    return Data(recipe, supply, split, rows)


def _unlike(rows: Sequence[Row], others: Iterable[Row], kinds: Sequence[Kind]) -> str | None:
    """How rows differ, if they do."""
    theirs = list(others)
    if len(rows) != len(theirs):
        return f"one has {len(rows):,} rows, the other {len(theirs):,}"
    for number, (row, other) in enumerate(zip(rows, theirs, strict=True), 1):
        pairs = zip(kinds, row, other, strict=True)
        if any(_unequal(kind, one, another) for kind, one, another in pairs):
            return f"row {number:,} is {row[0]!r:.40} in one, {other[0]!r:.40} in the other"
    return None


def _unequal(kind: Kind, one: Any, other: Any) -> bool:
    """Whether two raw things differ: texts in any letter, what is no text by what makes it the same."""
    if isinstance(one, str) and isinstance(other, str):
        return one != other
    return kind.identity(one) != kind.identity(other)


def _answered(entrant: Entrant | Given, rows: Sequence[Row], buckets: Sequence[Bucket], say: Say) -> Judged:
    """What a run answers, or has answered elsewhere."""
    task = entrant.task
    say(f"{entrant.name}: {counted(len(rows), next(iter(task.x.values())).noun)}")
    results = entrant.answers([task.inputs(row) for row in rows])
    found, missing = of_answers(task, results, rows, buckets), unanswered(results)
    return found._replace(unfit=missing.get("unfit", 0), cut=missing.get("cut", 0))


def _read(
    entrants: Sequence[Entrant], data: Data, buckets: Sequence[Bucket], limit: int | None, say: Say
) -> tuple[list[Judged], int]:
    """What language models lose on the same windows, as long as the shortest that any of them learned from."""
    trains = [_train_of(each.run, data.recipe) for each in entrants]
    rooms = [each.run.model.room for each in entrants if each.run.model.room is not None]
    learned = [cast(Streamed, each.task.target).config.window for each in entrants if each.run.recipe is not None]
    length = min([*learned, *rooms])
    found, examples = [], 0
    for entrant, train in zip(entrants, trains, strict=True):
        say(f"{entrant.name}: reading the text")
        corpus = corpus_of(data.recipe, data.supply, entrant.run, data.split, say)
        losses = window_losses(entrant.task.windowed(length), entrant.run.model, corpus, train, limit)
        found.append(of_windows(losses, buckets))
        examples = len(losses)
    return found, examples


def _train_of(run: Run, recipe: Recipe) -> TrainConfig:
    return recipe.train if run.recipe is None else run.recipe.train


def _main(entrants: Sequence[Entrant], metric: str | None) -> str:
    """The metric that is told by bucket: as asked for, or the one that Y tells first; where runs differ in that, the
    one that is fair to all: of lower-cased text the one that knows no case.
    """
    targets = [each.task.target for each in entrants]
    known = targets[0].known
    if metric is not None and metric not in known:
        raise SaccadeError(f"these runs have no metric {metric!r}; {nearest(metric, known)}")
    return metric or max((each.main for each in targets), key=known.index)


def _race(entrants: Sequence[Entrant], rows: Sequence[Row]) -> tuple[list[Writer], list[str]]:
    """Who writes, and from what: the first inputs, or beginnings of the text that lie evenly in it."""
    if entrants[0].task.x:
        writers = [Writer(each.run, each.task, each.decode) for each in entrants]
        return writers, [entrants[0].task.inputs(row) for row in islice(rows, WRITTEN)]
    text = "".join(row[0] for row in rows)
    starts = range(0, max(1, len(text) - PROMPT), max(1, len(text) // PROMPTS))
    some = [within(each.decode, ADDED) for each in entrants]
    writers = [Writer(each.run, each.task, decode) for each, decode in zip(entrants, some, strict=True)]
    return writers, [text[start : start + PROMPT] for start in starts]


def _entry(entrant: Entrant | Given, judged: Judged, speeds: Mapping[str, float | None], data: Data, say: Say) -> Entry:
    """One line; of answers from a file their quality alone is known."""
    values = {name: each.value for name, each in judged.whole.items()}
    beside = {"perplexity": perplexity(values["loss"])} if "loss" in values else {}
    entry = Entry(
        run=entrant.name,
        metrics=values | beside,
        buckets={name: [part[name].value for part in judged.parts] for name in judged.whole},
        unfit=judged.unfit,
        cut=judged.cut,
    )
    if isinstance(entrant, Given):
        return entry
    run, done = entrant.run, trained(entrant.run)
    rewarded = run.recipe is not None and run.recipe.train.objective  # what is drawn for a reward is not counted
    flops = None if done is None or rewarded else _flops(entrant, data, say)
    return replace(
        entry,
        step=run.step,
        parameters=parameters_of(run.model),
        training_flops=None if done is None or flops is None else done.tokens * flops,
        training_tokens=None if done is None else done.tokens,
        training_tokens_per_second=None if done is None else done.tokens / done.seconds,
        decode_tokens_per_second=speeds[entrant.name],
        decode=entrant.decode.model_dump(),
    )


def _flops(entrant: Entrant, data: Data, say: Say) -> float | None:
    """Of a prediction; None where these data do not fit the run (other labels, every row too long)."""
    run = entrant.run
    try:
        corpus = corpus_of(data.recipe, data.supply, run, data.split, say)
    except SaccadeError as problem:
        say(f"{entrant.name}: the FLOPs of its training are not counted: {problem}")
        return None
    return flops_a_prediction(run.model.config, entrant.task, corpus, _train_of(run, data.recipe))


def _against(entries: Sequence[Entry], found: Sequence[Judged], main: str, buckets: Sequence[Bucket]) -> list[Against]:
    """Every metric of the whole, and the main one in each bucket, against the first run's, where one can be better."""
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
