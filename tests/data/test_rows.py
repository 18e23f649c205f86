"""Ways through a corpus: everything once, and from any place on as if nobody had stopped."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from saccade.data import corpus
from saccade.data.rows import Batching, rows_of, unit_of
from saccade.error import SaccadeError
from saccade.field.label import Label
from saccade.field.text.config import SourceTextConfig, StreamedTextConfig, TargetTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.target import TargetText
from saccade.field.text.text import Text

WORDS = [f"w{number}" for number in range(31)]
TEXT = Text.train(WORDS, "split")
PAIRS = [(" ".join(WORDS[n % 31] for n in range(k, k + 1 + k % 5)), " ".join(WORDS[: 1 + k % 7])) for k in range(43)]
TEXTS = [(" ".join(WORDS[(5 * number + place) % 31] for place in range(12)),) for number in range(23)]  # 12, and an end
BOTH = {"source": SourceText(TEXT, SourceTextConfig(), needs="decoder"), "target": TargetText(TEXT, TargetTextConfig())}
NAMED = {"source": SourceText(TEXT, SourceTextConfig(), needs="pooled"), "label": Label(["odd", "even"])}
ALONE = {"text": StreamedText(TEXT, StreamedTextConfig())}
CLOSED = {"text": StreamedText(TEXT, StreamedTextConfig(), closed=True)}

WAYS = {  # fields, rows, the way through them, and how much a batch takes
    "pairs": (BOTH, PAIRS, "records", Batching(41, seed=3)),
    "labels": (NAMED, [(a, "odd" if len(a) % 2 else "even") for a, _ in PAIRS], "records", Batching(29, seed=3)),
    "windows": (ALONE, TEXTS, "windows(7)", Batching(35, seed=3)),
    "segments": (ALONE, TEXTS, "segments(7)", Batching(21, seed=3)),
    "lanes": (ALONE, TEXTS, "segments(7)", Batching(14, accumulate=2, seed=3)),
    "texts": (CLOSED, TEXTS, "texts(12)", Batching(60, seed=3)),
    "parts of texts": (CLOSED, TEXTS, "texts(4, whole=False)", Batching(20, seed=3)),
    "lanes of texts": (CLOSED, TEXTS, "texts(6, whole=False)", Batching(18, accumulate=3, seed=3)),
}


@pytest.fixture
def way(request, tmp_path):
    fields, rows, text, order = WAYS[request.param]
    made = corpus.build(tmp_path / "corpus", rows, fields, key="k")
    return rows_of(text, fields), made.columns, order


def told(step):
    """A step of a walk as plain values."""
    epoch, place, picked = step
    taken = {
        name: {key: [np.asarray(each).tolist() for each in value] for key, value in arrays.items()}
        for name, arrays in picked.taken.items()
    }
    return epoch, place, picked.lane, picked.fresh, taken


def walked(way, count, epoch=0, position=0, seed=None):
    rows, columns, order = way
    order = order if seed is None else Batching(order.budget, order.accumulate, seed)
    return [told(each) for each in islice(rows.walk(lambda _: columns, order, epoch, position), count)]


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_it_goes_on_from_any_place(way):
    whole = walked(way, 60)
    for number, (epoch, place, *_) in enumerate(whole[:40]):
        assert walked(way, 20, epoch, place) == whole[number : number + 20]
    assert walked(way, 60, seed=5) != whole


@pytest.mark.parametrize("way", ["pairs", "labels", "segments", "lanes", "texts", "parts of texts"], indirect=True)
def test_epochs_follow_one_another_and_differ(way):
    whole = walked(way, 90)
    places = {epoch: [place for each, place, *_ in whole if each == epoch] for epoch in (0, 1)}
    assert whole[0][:2] == (0, 0)
    assert all(found == list(range(len(found))) for found in places.values())
    first, second = ([taken for each, *_, taken in whole if each == epoch] for epoch in (0, 1))
    assert first != second


def shown(way):
    rows, columns, order = way
    return list(rows.whole(columns, order))


@pytest.mark.parametrize("way", ["pairs", "labels"], indirect=True)
def test_every_record_comes_once_in_an_epoch_and_in_the_whole(way):
    rows, columns, order = way
    every = sorted(zip(*(_rows(columns[name].take(np.arange(43))) for name in columns), strict=True))
    seen = sorted(each for picked in shown(way) for each in _examples(picked.taken))
    assert seen == every
    epoch = [picked for epoch, _, picked in islice(rows.walk(lambda _: columns, order, 0, 0), 90) if epoch == 0]
    assert sorted(each for picked in epoch for each in _examples(picked.taken)) == every


def _rows(taken):
    """The examples of a column, as tuples of numbers."""
    (values,) = taken.values()
    return [tuple(np.atleast_1d(each).tolist()) for each in values]


def _examples(taken):
    return list(zip(*(_rows(each) for each in taken.values()), strict=True))


@pytest.mark.parametrize("way", ["windows", "segments", "lanes"], indirect=True)
def test_every_token_of_a_stream_is_predicted_once(way):
    stream = way[1]["text"].array("tokens")
    seen = [window for picked in shown(way) for window in picked.taken["text"]["tokens"]]
    assert sorted(token for window in seen for token in window[1:].tolist()) == sorted(stream[1:].tolist())
    whole = stream.astype(np.int64).tobytes()
    assert all(window.tobytes() in whole for window in seen), "side by side as they stand there"


@pytest.mark.parametrize("way", ["texts", "parts of texts"], indirect=True)
def test_every_text_comes_once_and_no_window_reaches_into_the_next(way):
    rows, columns, _ = way
    parts: dict[int, list[int]] = {}
    group = -1
    for picked in shown(way):
        group += picked.fresh
        for row, window in enumerate(picked.taken["text"]["tokens"].tolist()):
            parts.setdefault(100 * group + row, []).extend(window[:-1])
    texts = [each.tolist()[:-1] for each in columns["text"].take(np.arange(23))["tokens"]]
    assert list(parts.values()) == texts
    assert {picked.lane for picked in shown(way)} == ({None} if rows.at_once else {0})


@pytest.mark.parametrize("way", ["lanes", "lanes of texts"], indirect=True)
def test_lanes_take_turns_and_go_on_where_they_were(way):
    order, last = way[2], {}
    for _, place, lane, fresh, taken in walked(way, 40):
        assert lane == place % order.accumulate
        windows = taken["text"]["tokens"]
        if not fresh:
            assert [each[0] for each in windows] == last[lane]
        last[lane] = [each[-1] for each in windows]


def test_the_token_before_a_text_is_told(tmp_path):
    made = corpus.build(tmp_path / "corpus", TEXTS[:3], CLOSED, key="k")
    (picked, *_) = rows_of("texts(12)", CLOSED).whole(made.columns, Batching(36))
    assert picked.taken["text"]["before"].tolist() == [-1, TEXT.end, TEXT.end], "before the first nothing stands"


def test_a_batch_counts_what_differs_in_size():
    assert unit_of(BOTH) == unit_of(NAMED) == unit_of(ALONE) == "tokens"
    assert unit_of({"label": NAMED["label"]}) == "labels"


@pytest.mark.parametrize(
    ("text", "order", "why"),
    [
        ("record", Batching(9), "no rows is called 'record'; did you mean 'records'"),
        ("windows(300)", Batching(9), "the text has 276 tokens and a window takes 301"),
        ("segments(7)", Batching(700), "the text has 276 tokens, and 100 stretches of 7 take 707"),
        ("texts(5)", Batching(9), "the texts have 11 tokens and y.window is 5: set it to 11"),
        ("texts(5, whole=False)", Batching(9), "set it to a divisor of 11"),
        ("texts(11)", Batching(264), "there are 23 texts and a step takes 24"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, text, order, why):
    made = corpus.build(tmp_path / "corpus", TEXTS, ALONE, key="k")
    with pytest.raises(SaccadeError, match=why):
        next(rows_of(text, ALONE).walk(lambda _: made.columns, order, 0, 0))


def test_an_example_that_no_batch_holds_is_told_in_its_unit(tmp_path):
    made = corpus.build(tmp_path / "corpus", PAIRS, BOTH, key="k")
    with pytest.raises(SaccadeError, match=r"example \d+ has 8 tokens and a batch may have 7: raise train.batch"):
        next(rows_of("records", BOTH).walk(lambda _: made.columns, Batching(7), 0, 0))
    assert len(list(rows_of("records", BOTH).whole(made.columns, Batching(7)))) > 1, "to validate on, one alone is read"
