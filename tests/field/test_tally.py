"""Intervals against plain loops: the examples are drawn again one by one, and scored anew as a corpus."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
import tasks

from saccade.field import metric
from saccade.field.confusion import macro_f1
from saccade.field.label import Label
from saccade.field.metric import DRAWS
from saccade.field.numbers import Numbers, NumbersConfig, Spread
from saccade.field.result import Result
from saccade.field.tally import FEWEST_DRAWS, Tally, draws_for, intervals, mean
from saccade.field.text.text import Text

WORDS = ["the", "eye", "jumps", "to", "what", "matters", "most"]
N = 23


def sentences(seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(4, 9))) for _ in range(N)]


def changed(texts: list[str]) -> list[str]:
    draw = random.Random(7)
    wrong = [0.5 if number % 3 else 0.05 for number in range(len(texts))]
    return [
        " ".join(word if draw.random() > share else "so" for word in each.split()[: len(each) if share < 0.1 else -1])
        for each, share in zip(texts, wrong, strict=True)
    ]


REFERENCES = sentences(1)
ANSWERS = [*changed(REFERENCES[:-4]), *REFERENCES[-4:]]
NUMBERS = [(float(n % 5), float(n % 3)) for n in range(N)]
LABELS = random.Random(3).choices(["a", "b", "c"], k=N)
SAID = random.Random(4).choices(["a", "b", "c"], k=N)


def of_texts(names):
    task = tasks.translate(Text.train(REFERENCES, "words", vocab=30))
    return task.target, [Result(each, each, 0.0) for each in ANSWERS], REFERENCES, names


FIELDS = {
    "text": lambda: of_texts(("exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower", "length_ratio")),
    "label": lambda: (Label(["a", "b", "c"]), [Result(s, s, 0.0) for s in SAID], LABELS, ("accuracy", "macro_f1")),
    "numbers": lambda: (
        Numbers(Spread([1.0, 2.0], [1.0, 1.0]), NumbersConfig()),
        [Result([each[0] + n % 2, each[1] * 1.3], "", 0.0) for n, each in enumerate(NUMBERS)],
        NUMBERS,
        ("mse", "mae"),
    ),
}


@pytest.mark.parametrize("field", FIELDS)
def test_an_interval_is_that_of_examples_drawn_again(field):
    """Every field's metrics, each of them computed from scratch on every draw."""
    target, results, raws, names = FIELDS[field]()
    assert set(target.meaningful(raws)) == set(names)
    found = intervals(target.tallies(results, raws), draws=25, seed=5)
    draw, scores = np.random.default_rng(5), {name: [] for name in names}
    for _ in range(25):
        times = draw.multinomial(N, np.full(N, 1 / N))
        chosen = np.repeat(np.arange(N), times)
        again = target.tallies([results[n] for n in chosen], [raws[n] for n in chosen])
        for name in names:
            scores[name].append(again[name].value)
    for name in names:
        assert found[name] == pytest.approx(np.percentile(scores[name], [2.5, 97.5]).tolist()), name
        assert found[name][0] < found[name][1]


def test_an_interval_is_of_the_corpus_and_not_of_its_sentences():
    """Long sentences that are right weigh more in BLEU than short ones that are wrong."""
    references = [*[" ".join(WORDS * 3)] * 5, *["to what matters most"] * 5]
    answers = [*references[:5], *["to the matters eye"] * 5]
    task = tasks.translate(Text.train(references, "words", vocab=30))
    tallies = task.target.tallies([Result(each, each, 0.0) for each in answers], references)
    low, high = intervals(tallies)["bleu_13a"]
    pairs = zip(answers, references, strict=True)
    alone = np.mean([metric.measure(["bleu_13a"], [one], [other])["bleu_13a"] for one, other in pairs])
    assert alone + 10 < low < tallies["bleu_13a"].value < high
    values = {"mean": mean(np.random.default_rng(0).normal(size=31))}
    assert intervals(values) == intervals(values), "the same seed, the same interval"
    assert intervals(values) != intervals(values, seed=1)


def test_one_example_or_no_score_has_no_interval():
    assert intervals({}) == {}
    assert intervals({"one": mean(np.ones(1))}) == {}
    never = Tally(np.zeros((5, 2)), lambda total: float("nan"))
    assert list(intervals({"never": never, "half": mean(np.array([0.0, 1, 0, 1, 1]))})) == ["half"]


def test_many_examples_take_no_longer_than_they_may():
    assert draws_for(1) == draws_for(20_000) == DRAWS
    assert draws_for(40_000) == DRAWS // 2
    assert draws_for(10**9) == FEWEST_DRAWS
    draw = np.random.default_rng(0)
    said, wanted = (draw.choice(["a", "b", "c", "d"], 5000).tolist() for _ in range(2))
    begin = time.process_time()
    intervals({"macro_f1": macro_f1(said, wanted, ["a", "b", "c", "d"])})
    assert time.process_time() - begin < 3
