"""Metrics: against the formula, against sacrebleu's own door, and on the references of Multi30k."""

from __future__ import annotations

import gzip
import math
import random
import sys
from collections import Counter
from functools import partial

import jiwer
import numpy as np
import pytest
import sacrebleu
from absent import data_set

from saccade.error import SaccadeError
from saccade.field.metric import (
    METRICS,
    accuracy,
    bits_per_character,
    installed,
    interval,
    measure,
    missing,
    moses_lower,
    perplexity,
    signatures,
)


def one(name, hypotheses, references, **options):
    return measure([name], hypotheses, references, **options)[name]


exact_match, bleu_13a, chrf, bleu_tokenised_lower = (
    partial(one, name) for name in ("exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower")
)

TEXT = 'Ein Mann, der im Park (leise) singt und Zwei Hunde spielen. Bart. T-Shirt "El Corazon" rot blau !'
WORDS = TEXT.split()


def corpus(sentences: int, errors: float, seed: int = 0) -> tuple[list[str], list[str]]:
    """References, and hypotheses with some words lost or exchanged."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(5, 13))) + "." for _ in range(sentences)]

    def spoilt(text: str) -> str:
        kept = [word for word in text.split() if draw.random() > errors / 3]
        return " ".join(draw.choice(WORDS) if draw.random() < errors else word for word in kept)

    return [spoilt(each) for each in references], references


def bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni's formula over words between spaces."""
    right, all_of_them = [0] * 4, [0] * 4
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(4):
            a, b = (
                Counter(zip(*(text.split()[i:] for i in range(n + 1)), strict=False))
                for text in (hypothesis, reference)
            )
            right[n] += sum((a & b).values())
            all_of_them[n] += sum(a.values())
    long, wanted = (sum(len(text.split()) for text in texts) for texts in (hypotheses, references))
    precision = sum(math.log(r / a) for r, a in zip(right, all_of_them, strict=True)) / 4
    return 100 * math.exp(min(0, 1 - wanted / long) + precision)


@pytest.mark.parametrize("errors", [0.0, 0.1, 0.4])
def test_bleu_and_chrf_are_sacrebleus(errors):
    hypotheses, references = corpus(53, errors)
    assert bleu_13a(hypotheses, references) == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert chrf(hypotheses, references) == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)
    assert (bleu_13a(hypotheses, references) == pytest.approx(100)) == (errors == 0)
    assert bleu_13a(hypotheses, references) != bleu_13a([each.lower() for each in hypotheses], references)


@pytest.mark.parametrize("errors", [0.1, 0.4])
def test_tokenised_bleu_is_the_formula(errors):
    hypotheses, references = corpus(53, errors)
    ours = bleu_tokenised_lower(hypotheses, references, language="de")
    assert ours == pytest.approx(bleu(moses_lower(hypotheses, "de"), moses_lower(references, "de")))
    assert ours == pytest.approx(bleu_tokenised_lower([each.upper() for each in hypotheses], references, language="de"))


def test_tokenised_bleu_is_not_smoothed():
    assert bleu_tokenised_lower(["a b c e"], ["a b c d"]) == 0
    assert bleu_13a(["a b c e"], ["a b c d"]) > 0


def test_moses_lower():
    given = ["Ein Mann rasiert seinen Bart.", 'Er sagt: "T-Shirt" & Kids\' Food']
    assert moses_lower(given, "de") == ["ein mann rasiert seinen bart .", 'er sagt : " t-shirt " & kids \' food']


def test_the_german_references_of_multi30k_have_12103_tokens():
    file = data_set("multi30k") / "test_2016_flickr.de.gz"
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    assert sum(len(each.split()) for each in moses_lower(lines, "de")) == 12103
    assert bleu_tokenised_lower(lines, lines, language="de") == pytest.approx(100)


def test_measure_gives_numbers_and_signatures_say_how():
    hypotheses, references = corpus(23, 0.2)
    found = measure(METRICS, hypotheses, references, language="de")
    assert found == {
        "exact_match": exact_match(hypotheses, references),
        "bleu_13a": bleu_13a(hypotheses, references),
        "bleu_tokenised_lower": bleu_tokenised_lower(hypotheses, references, language="de"),
        "chrf": chrf(hypotheses, references),
        "length_ratio": one("length_ratio", hypotheses, references),
        "wer": jiwer.wer(references, hypotheses),
        "cer": jiwer.cer(references, hypotheses),
    }
    told = signatures(METRICS, language="de")
    assert told.keys() == found.keys()
    assert told["bleu_13a"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert "tok:none|smooth:none" in told["bleu_tokenised_lower"]
    assert "|moses:de.lower." in told["bleu_tokenised_lower"]
    assert "nc:6|nw:0" in told["chrf"]


def test_errors_of_words_and_characters_are_counted_by_sentence():
    hypotheses, references = ["one three", "", "two two"], ["one two three", "nine", ""]
    counts = METRICS["wer"].counts(hypotheses, references, "en")
    assert counts.tolist() == [[1, 3], [1, 1], [2, 0]]
    assert one("wer", hypotheses, references) == 1.0
    assert METRICS["cer"].counts(["abd"], ["abcd"], "en").tolist() == [[1, 4]]
    assert METRICS["wer"].better == -1


def test_what_is_missing_is_told_with_what_brings_it(monkeypatch):
    monkeypatch.setattr("saccade.field.metric.find_spec", lambda name: None)
    assert [name for name in METRICS if installed(name)] == ["exact_match"]
    assert missing(["wer", "cer"]) == "wer and cer need pip install 'saccade[sound]'"
    assert missing([]) == ""


def test_the_length_ratio_is_what_bleu_is_shortened_by():
    hypotheses, references = ["a b c .", "d e"], ["a b, c .", "d e f"]  # 6 tokens beside 8
    ratio = one("length_ratio", hypotheses, references)
    assert ratio == 6 / 8
    assert math.exp(1 - 1 / ratio) == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).bp)
    assert one("length_ratio", ["a"], [""]) == math.inf


def test_tokenised_text_does_not_complain(caplog):
    hypotheses, references = corpus(211, 0.2)
    bleu_tokenised_lower(hypotheses, references)
    assert not caplog.records
    bleu_13a(moses_lower(hypotheses, "de"), references)  # here it is the user's concern
    assert "forgot to detokenize" in caplog.text


def test_shares():
    assert exact_match(["a", "b", "C"], ["a", "b", "c"]) == pytest.approx(2 / 3)
    assert accuracy([1, 2, 3, 4, 5], [1, 0, 3, 0, 0]) == pytest.approx(0.4)
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert perplexity(1e6) == math.inf
    assert bits_per_character(math.log(2) * 21, 7) == pytest.approx(3)


def test_the_interval_of_a_share_is_the_binomials():
    right = 300
    hypotheses, references = ["a"] * right + ["b"] * (1000 - right), ["a"] * 1000
    low, high = interval("exact_match", hypotheses, references, samples=4000)
    wide = 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert low == pytest.approx(0.3 - wide, abs=0.003)
    assert high == pytest.approx(0.3 + wide, abs=0.003)


@pytest.mark.parametrize("metric", ["bleu_13a", "bleu_tokenised_lower", "chrf"])
def test_the_interval_is_that_of_corpora_drawn_again(metric):
    hypotheses, references = corpus(41, 0.3)
    low, high = interval(metric, hypotheses, references, samples=400)
    draw, scores = random.Random(1), []
    for _ in range(60):
        rows = draw.choices(range(41), k=41)
        again = [hypotheses[row] for row in rows], [references[row] for row in rows]
        scores.append(measure([metric], *again)[metric])
    assert low < measure([metric], hypotheses, references)[metric] < high
    assert np.mean([low <= each <= high for each in scores]) >= 0.8
    assert high - low == pytest.approx(4 * np.std(scores), rel=0.4)
    assert interval(metric, hypotheses, references, samples=400) == (low, high)
    assert interval(metric, hypotheses, references, samples=400, seed=1) != (low, high)


def test_a_pair_is_sharper_than_two_alone():
    worse, references = corpus(83, 0.3)
    better = [
        right if number % 3 == 0 else each for number, (each, right) in enumerate(zip(worse, references, strict=True))
    ]
    low, high = interval("bleu_13a", better, references, against=worse, samples=300)
    assert 0 < low < bleu_13a(better, references) - bleu_13a(worse, references) < high
    assert interval("bleu_13a", worse, references, against=worse, samples=30) == (0, 0)


WRONG = {
    "lengths": (lambda: bleu_13a(["a"], ["a", "b"]), "1 hypotheses for 2 references"),
    "nothing": (lambda: exact_match([], []), "one example at least"),
    "a string": (lambda: exact_match("a", ["a"]), "brings a string"),
    "a typo": (lambda: measure(["bleu_13"], ["a"], ["a"]), "no metric is called 'bleu_13'; did you mean 'bleu_13a'"),
    "no characters": (lambda: bits_per_character(1.0, 0), "one character at least"),
    "no samples": (lambda: interval("chrf", ["a"], ["a"], samples=0), "needs draws"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_is_told_in_one_sentence(what):
    call, why = WRONG[what]
    with pytest.raises(SaccadeError, match=why) as problem:
        call()
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("library", "metric"), [("sacrebleu", "chrf"), ("sacremoses", "bleu_tokenised_lower")])
def test_what_is_not_installed_is_named(library, metric, monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SaccadeError, match=rf"needs {library}: pip install 'saccade\[translate\]'"):
        measure([metric], ["a"], ["a"])
    assert measure(["exact_match"], ["a"], ["a"]) == {"exact_match": 1}
