"""Sub-words taken apart again: the same text in other tokens, by the seed and the place alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data import corpus
from saccade.data.field import Label, Text
from saccade.data.unmerge import Unmerge
from saccade.error import SaccadeError
from saccade.recipe import Recipe, TrainConfig
from saccade.task.classify import Classify
from saccade.task.translate import Translate

TEXTS = ["the cat sat on the mat", "that cat sat there", "the other mat", "a cat, a mat: the cat's mat"] * 5
LONG = " and ".join(TEXTS[:4])  # so that the others have room to grow
BPE = Text.train(TEXTS, "bpe", vocab=300)


def rows(texts, text=BPE):
    return [np.array(each, np.uint16) for each in text.encode(texts)]


@given(st.lists(st.sampled_from(TEXTS) | st.text(min_size=1, max_size=9), min_size=1, max_size=5), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_the_text_stays_the_same(texts, place):
    for share in (0.1, 0.5, 0.99):
        made = Unmerge(BPE, share, 1000).at(0, place)(rows(texts))
        assert [BPE.decode(each) for each in made] == [BPE.decode(each) for each in rows(texts)]
        assert all(len(a) >= len(b) for a, b in zip(made, rows(texts), strict=True))


def test_no_share_is_no_change_at_all():
    given = rows(TEXTS)
    assert Unmerge(BPE, 0.0, 5).at(3, 4)(given) is given


def test_as_many_are_taken_apart_as_asked_for():
    """Of a token that was merged of two letters, once the share, and its letters never."""
    (whole, pair), *_ = BPE.merges
    made = Unmerge(BPE, 0.3, 20_000).at(0, 0)([np.full(10_000, whole)])[0]
    apart = (made != whole).sum() / 2
    assert abs(apart / 10_000 - 0.3) < 0.02
    assert set(made.tolist()) == {whole, *pair}


def test_what_comes_out_is_taken_apart_in_turn():
    deep, (left, right) = next((w, p) for w, p in BPE.merges if p[0] in {each for each, _ in BPE.merges})
    made = Unmerge(BPE, 0.5, 20_000).at(0, 0)([np.full(4_000, deep)])[0]
    kept, halved = (made == deep).sum(), (made == left).sum()
    assert abs(kept / 4_000 - 0.5) < 0.03
    assert abs(halved / 4_000 - 0.25) < 0.03  # half of those that were taken apart
    assert (made == right).any()


def test_a_place_has_its_own_spelling_and_keeps_it():
    apart, given = Unmerge(BPE, 0.4, 1000, seed=7), rows(TEXTS)
    once, again, later, other = (
        np.concatenate(each.at(*place)(given)).tolist()
        for each, place in (
            (apart, (1, 2)),
            (Unmerge(BPE, 0.4, 1000, seed=7), (1, 2)),
            (apart, (2, 2)),
            (Unmerge(BPE, 0.4, 1000, seed=8), (1, 2)),
        )
    )
    assert once == again
    assert once != later
    assert once != other


def test_a_row_that_would_grow_too_long_stays():
    given = rows(TEXTS)
    longest = max(map(len, given))
    made = Unmerge(BPE, 0.9, longest).at(0, 0)(given)
    assert max(map(len, made)) <= longest
    kept = [np.array_equal(a, b) for a, b in zip(made, given, strict=True)]
    assert any(kept)
    assert not all(kept)


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_only_what_was_merged_can_be_taken_apart(kind):
    with pytest.raises(SaccadeError, match="merges nothing"):
        Unmerge(Text.train(TEXTS, kind, vocab=300), 0.1, 9)


def a_translator(folder):
    pairs = [(a, b) for a in TEXTS[:4] for b in TEXTS[:4]] + [(LONG, LONG)]
    task = Translate(BPE)
    return task, corpus.build(folder, pairs, task.fields, key="pairs")


def a_classifier(folder):
    task = Classify(BPE, Label(["cat", "mat"]))
    examples = [(each, "mat" if "mat" in each else "cat") for each in (*TEXTS, LONG)]
    return task, corpus.build(folder, examples, task.fields, key="examples")


@pytest.mark.parametrize("make", [a_translator, a_classifier])
def test_training_sees_other_spellings_and_validation_none(make, tmp_path):
    task, found = make(tmp_path / "corpus")
    plain, apart = (
        TrainConfig.model_validate({"steps": 1, "batch": 200, "unmerge": each}, context={}) for each in (0.0, 0.5)
    )
    walked = list(islice(task.walk(found, apart, 3, 0, 0), 12))
    epoch, place, _ = walked[7]
    gone_on = list(islice(task.walk(found, apart, 3, epoch, place), 3))
    for (*at, a), (*there, b) in zip(walked[7:10], gone_on, strict=True):  # as a resumed run would go on
        assert at == there
        assert torch.equal(a.source, b.source)
        assert torch.equal(a.wanted, b.wanted)
    exact = [next(task.walk(found, plain, 3, *each[:2]))[2] for each in walked]
    assert sum(each[2].source.numel() for each in walked) > sum(each.source.numel() for each in exact)
    for a, b in zip(task.whole(found, apart), task.whole(found, plain), strict=True):
        assert torch.equal(a.source, b.source)


@pytest.mark.parametrize(
    ("task", "train", "told"),
    [("write", {}, "windows of one text"), ("translate", {"reward": 0.5}, "spells otherwise")],
)
def test_a_recipe_that_cannot_is_told(task, train, told):
    model = {"width": 8, "heads": 1, "decoder": 1, "encoder": int(task == "translate")}
    train = {"steps": 1, "unmerge": 0.1, **train}
    with pytest.raises(ValueError, match=told):
        Recipe.model_validate({"task": task, "data": {"name": "dates"}, "model": model, "train": train})
