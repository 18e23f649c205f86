"""Event F1 against mir_eval and against trying every pairing; sums of examples; labels alone, times alone."""

from __future__ import annotations

import itertools

import mir_eval
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from saccade.field.elements.element import elements
from saccade.field.elements.timing import by_label, counts_of, pairs, tallies, timed
from saccade.field.tally import intervals

LABELS = ("a", "b", "c")


def sound(*events, seconds=7.0):
    """Elements from (label, begin, end)."""
    return elements([each[0] for each in events], [each[1:] for each in events], (0.0, seconds))


def drawn(random, count):
    """Events at few times, so that many of them are near each other; some times differ by the tolerance exactly."""
    begins = random.choice([0.0, 0.05, 0.1, 0.13, 1.0, 1.05], count)
    lengths = random.choice([0.2, 0.25, 0.31, 1.0], count)
    labels = random.choice(LABELS, count)
    return sound(*zip(labels.tolist(), begins.tolist(), (begins + lengths).tolist(), strict=True))


def most_pairs(found, wanted):
    """The largest number of pairs, by trying all of them."""

    def alike(n, m):
        apart = np.abs(found.corners[n] - wanted.corners[m]).round(4)
        return found.labels[n] == wanted.labels[m] and (apart <= 0.05).all()

    small, large, test = len(found.labels), len(wanted.labels), alike
    if small > large:
        small, large, test = large, small, lambda m, n: alike(n, m)
    ways = itertools.permutations(range(large), small)
    return max((sum(test(n, m) for n, m in enumerate(way)) for way in ways), default=0)


@settings(max_examples=150, deadline=None)
@given(some.integers(0, 5), some.integers(0, 5), some.integers(0, 10_000))
def test_as_many_pairs_as_any_pairing_has(count, other, seed):
    random = np.random.default_rng(seed)
    found, wanted = drawn(random, count), drawn(random, other)
    chosen = pairs(found, wanted)
    assert len(chosen) == most_pairs(found, wanted)
    assert len({n for n, _ in chosen}) == len({m for _, m in chosen}) == len(chosen)
    for n, m in chosen:
        assert found.labels[n] == wanted.labels[m]
        assert (np.abs(found.corners[n] - wanted.corners[m]) <= 0.05 + 1e-9).all()


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_mir_eval_computes(seed):
    random = np.random.default_rng(seed)
    found, wanted = drawn(random, int(random.integers(1, 30))), drawn(random, int(random.integers(1, 30)))
    pitch = {label: 100.0 * 2**n for n, label in enumerate(LABELS)}
    given = [(each.corners, np.array([pitch[label] for label in each.labels])) for each in (wanted, found)]
    precision, recall, f1, _ = mir_eval.transcription.precision_recall_f1_overlap(
        *given[0], *given[1], onset_tolerance=0.05, offset_ratio=0.0, offset_min_tolerance=0.05
    )
    own = {name: each.value for name, each in tallies([found], [wanted]).items()}
    expected = {"event_f1": f1, "event_precision": precision, "event_recall": recall}
    assert own == pytest.approx({name: value or (0.0) for name, value in expected.items()})


def test_a_greedy_choice_would_find_fewer():
    found = sound(("a", 1.0, 2.0), ("a", 1.05, 2.0))
    wanted = sound(("a", 1.04, 2.0), ("a", 0.98, 2.0))
    assert counts_of(found, wanted).tolist() == [2, 2, 2]
    assert pairs(found, wanted) == [(0, 1), (1, 0)]


def test_both_ends_and_the_label_count():
    wanted = sound(("a", 1.0, 2.0))
    for found, pairs_of in (
        (sound(("a", 1.05, 1.95)), 1),
        (sound(("a", 1.06, 2.0)), 0),
        (sound(("a", 1.0, 2.06)), 0),
        (sound(("b", 1.0, 2.0)), 0),
    ):
        assert counts_of(found, wanted).tolist() == [pairs_of, 1, 1]
    assert timed([sound(("b", 1.0, 2.0))], [wanted]) == {"f1": 1.0, "precision": 1.0, "recall": 1.0}


def test_scores_are_of_all_examples_together():
    found = [sound(("a", 1, 2), ("b", 3, 4)), sound(), sound(("a", 0, 1))]
    wanted = [sound(("a", 1, 2)), sound(("b", 1, 2), ("b", 3, 4)), sound(("a", 0, 1))]
    made = tallies(found, wanted)
    assert made["event_f1"].counts.tolist() == [[1, 2, 1], [0, 0, 2], [1, 1, 1]]
    values = {name: each.value for name, each in made.items()}
    assert values == pytest.approx({"event_precision": 2 / 3, "event_recall": 2 / 4, "event_f1": 4 / 7})
    low, high = intervals(made)["event_f1"]
    assert low < 4 / 7 < high
    labels = by_label(found, wanted)
    assert {name: (each["precision"], each["recall"], each["support"]) for name, each in labels.items()} == {
        "a": (1.0, 1.0, 2),
        "b": (0.0, 0.0, 2),
    }
    assert labels["a"]["interval"]["f1"] == [1.0, 1.0]


def test_without_events_there_is_no_score():
    made = tallies([sound()], [sound()])
    assert all(np.isnan(each.value) for each in made.values())
    assert tallies([sound(("a", 0, 1))], [sound()])["event_f1"].value == 0
    assert by_label([], []) == {}
