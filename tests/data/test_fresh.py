"""Rows that are drawn anew in each epoch: as a corpus would hold them, others in each epoch, from any place on."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from saccade.data import corpus
from saccade.data.fresh import FreshCorpus
from saccade.data.rows import Batching, rows_of
from saccade.data.skipped import Skipped
from saccade.data.supply import Supply
from saccade.error import SaccadeError
from saccade.field.image import Image, ImageConfig, Measured
from saccade.field.label import Label
from saccade.field.text.config import SourceTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.text import Text
from saccade.learn.corpora import training_of
from saccade.learn.prepare import prepare
from saccade.recipes import read as recipes
from saccade.task.pair import pair_of

WORDS = [f"w{number}" for number in range(31)]
TEXT = Text.train(WORDS, "split")
COUNT, KINDS = 29, ["odd", "even"]


class Sketch:
    """A picture that is drawn when it is asked for, and counts how often."""

    drawn = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        Sketch.drawn += 1
        return np.random.default_rng(self.number).integers(0, 256, (7, 5), np.uint8)


class Timed(SourceText):
    """A ragged field whose sizes are known from the raw things."""

    def lengths_of(self, raws):
        return [len(raw.split()) for raw in raws]


def sketched(epoch):
    for number in range(epoch * COUNT, (epoch + 1) * COUNT):
        yield Sketch(number), KINDS[number % 3 == 0]


def written(epoch):
    for number in range(epoch * COUNT, (epoch + 1) * COUNT):
        yield " ".join(WORDS[: number * 7 % 11 + 1]), KINDS[number % 3 == 0]


IMAGE = Image(Measured(7, 5, [0.5], [0.25]), ImageConfig(embed="patches(1)"))
SOURCE = SourceText(TEXT, SourceTextConfig(), needs="pooled")
TIMED = Timed(TEXT, SourceTextConfig(), needs="pooled")
CASES = {
    "pictures": (sketched, {"source": IMAGE, "label": Label(KINDS)}, 4),
    "texts": (written, {"source": SOURCE, "label": Label(KINDS)}, 37),
    "sizes known": (written, {"source": TIMED, "label": Label(KINDS)}, 37),
}


def fresh(rows, fields, **limits):
    return FreshCorpus(rows, fields, key="k", limits=limits, skipped=Skipped())


def values(taken):
    return {name: [(np.asarray(each).dtype.str, np.asarray(each).tolist()) for each in taken[name]] for name in taken}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epoch", [0, 2])
def test_an_epoch_is_what_a_corpus_of_its_rows_would_be(case, epoch, tmp_path):
    rows, fields, _ = CASES[case]
    kept = corpus.build(tmp_path / "corpus", rows(epoch), fields, key="k")
    drawn, some = fresh(rows, fields).seen(epoch), np.array([3, 0, 28, 3])
    for name in fields:
        assert drawn[name].lengths().tolist() == kept.columns[name].lengths().tolist()
        assert values(drawn[name].take(some)) == values(kept.columns[name].take(some))
        for array in fields[name].arrays:
            assert drawn[name].array(array).tolist() == kept.columns[name].array(array).tolist()


@pytest.mark.parametrize("case", CASES)
def test_batches_are_other_ones_in_each_epoch_and_the_same_from_any_place_on(case):
    rows, fields, budget = CASES[case]
    way, batching = rows_of("records", fields), Batching(budget, seed=3)

    def told(step):
        return step[:2], {name: values(each) for name, each in step[2].taken.items()}

    steps = [told(each) for each in islice(way.walk(fresh(rows, fields).seen, batching, 0, 0), 40)]
    epochs = {epoch for (epoch, _), _ in steps}
    assert len(epochs) >= 3
    inputs = [sorted(str(one) for (at, _), taken in steps if at == epoch for one in _each(taken)) for epoch in (0, 1)]
    assert len(inputs[0]) == len(inputs[1]) == COUNT
    assert inputs[0] != inputs[1]
    for begin in (1, 17, 30):
        (epoch, place), _ = steps[begin]
        again = way.walk(fresh(rows, fields).seen, batching, epoch, place)
        assert [told(each) for each in islice(again, 5)] == steps[begin : begin + 5]


def _each(taken):
    return next(iter(taken["source"].values()))


def test_what_is_lazy_is_drawn_for_its_batch_alone():
    rows, fields, budget = CASES["pictures"]
    made, Sketch.drawn = fresh(rows, fields), 0
    steps = rows_of("records", fields).walk(made.seen, Batching(budget), 1, 0)
    [*islice(steps, 3)]
    assert 0 < Sketch.drawn <= 3 * budget


def test_what_is_too_long_is_left_out_in_every_epoch():
    made = fresh(written, CASES["texts"][1], source=7)
    assert 0 < len(made) < COUNT
    assert made.skipped == {"longer than 7 tokens": COUNT - len(made)}
    for epoch in (0, 1):
        column = made.seen(epoch)["source"]
        assert column.lengths().max() <= 7
        assert len(column.take(range(len(column.raws)))["tokens"]) == len(column.raws)


def test_nothing_left_is_refused():
    with pytest.raises(SaccadeError, match="no example is left in epoch 0: 29: longer than 0 tokens"):
        fresh(written, CASES["texts"][1], source=0)


def supply_of(*options):
    recipe = recipes.recipe("dates", ["data.examples=50", "data.held=20", *options])
    return Supply(recipe, {name: part.kind for name, part in pair_of(recipe).parts.items()})


def test_a_generator_goes_on_where_the_epoch_before_ended():
    made, other = supply_of("data.fresh=true"), supply_of("data.examples=150")
    assert made.fresh
    assert not other.fresh
    every = [*other.rows("train")]
    assert [*made.rows("train")] == [*made.epoch(0)] == every[:50]
    assert [*made.epoch(2)] == every[100:]
    assert [*made.rows("val")] == [*other.rows("val")]
    assert made.made_of() != supply_of().made_of()


def test_a_stream_is_made_once():
    told = "data.fresh: the rows of write are parts of one long stream"
    few = ["data.examples=9", "data.held=3", "train.steps=1"]
    with pytest.raises(SaccadeError, match=told):
        prepare(recipes.recipe("recall", ["data.fresh=true", *few]), lambda _: None)


def test_a_run_says_what_its_rows_depend_on():
    few = ["data.held=3", "data.fresh=true", "train.steps=1", "model.width=8", "model.heads=2"]
    made = [prepare(recipes.recipe("dates", [*few, f"data.examples={count}"]), lambda _: None) for count in (9, 9, 11)]
    prints = [each.run.about["data"]["train"] for each in made]
    assert prints[0] == prints[1] != prints[2]
    one = made[0]
    again = training_of(one.run.recipe, one.supply, one.run, lambda _: None)
    assert again.fingerprint == prints[0]
