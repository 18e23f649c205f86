"""Sub-words taken apart again: the same text in other tokens, by the seed and the place alone."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

import saccade
from saccade.config import read
from saccade.data import corpus
from saccade.error import SaccadeError
from saccade.field.label import Label
from saccade.field.text import unmerge
from saccade.field.text.config import SourceTextConfig, TargetTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.target import TargetText
from saccade.field.text.text import Text
from saccade.field.text.unmerge import Unmerging, unmerged_columns
from saccade.recipe import TrainConfig
from saccade.recipes.read import from_values
from saccade.task.task import Task

TEXTS = ["the cat sat on the mat", "that cat sat there", "the other mat", "a cat, a mat: the cat's mat"] * 5
LONG = " and ".join(TEXTS[:4])  # so that the others have room to grow
BPE = Text.train(TEXTS, "bpe", vocab=300)
TRAIN = read(TrainConfig, {"steps": 1, "batch": 200})


def reading(unmerge=0.0, needs="decoder"):
    return SourceText(BPE, SourceTextConfig(unmerge=unmerge), needs=needs)


def corpus_of(folder, texts):
    """The columns of a corpus of one."""
    return corpus.build(folder / "corpus", [(each,) for each in texts], {"text": reading()}, key=repr(texts)).columns


def apart(found, share, *, epoch=0, seed=0):
    """The one column as an epoch spells it."""
    return unmerged_columns(found, {"text": Unmerging(BPE, share)} if share else {}, seed, epoch)["text"]


def tokens(found, share, *, epoch=0, seed=0, indices=None):
    shown = apart(found, share, epoch=epoch, seed=seed)
    indices = np.arange(len(found["text"].lengths())) if indices is None else indices
    return [each.tolist() for each in shown.take(indices)["tokens"]]


@given(st.lists(st.sampled_from(TEXTS) | st.text("abcht é", min_size=1, max_size=9), min_size=1), st.integers(0, 9))
@examples(40)
def test_the_text_stays_the_same(texts, epoch):
    with TemporaryDirectory() as folder:
        texts = [LONG, *(each for each in texts if each.strip())]
        found = corpus_of(Path(folder), texts)
        exact = tokens(found, 0.0)
        for share in (0.1, 0.5, 0.99):
            made = tokens(found, share, epoch=epoch)
            assert [BPE.decode(each) for each in made] == [BPE.decode(each) for each in exact]
            assert all(len(a) >= len(b) for a, b in zip(made, exact, strict=True))
            assert max(map(len, made)) <= max(map(len, exact))
            lengths = apart(found, share, epoch=epoch).lengths()
            assert lengths.tolist() == [len(each) for each in made]


def test_no_share_is_the_corpus_itself(tmp_path):
    found = corpus_of(tmp_path, TEXTS)
    assert reading(0.0).unmerging is None
    assert apart(found, 0.0, epoch=3) is found["text"]


def merged(depth):
    """A token that was merged so many times, one merge inside the other, and what it was merged from."""
    made = dict(BPE.merges[::-1])

    def depth_of(token):
        return 1 + max(map(depth_of, made[token])) if token in made else 0

    return next((token, pair) for token, pair in made.items() if depth_of(token) == depth)


def times(token, count):
    """A column of one token, said again and again; the second example is longer, so that the first may grow."""
    sizes = np.array([count, 9 * count])

    class Same:
        def lengths(self):
            return sizes

        def take(self, indices):
            return {"tokens": [np.full(size, token) for size in sizes[indices]]}

    return {"text": Same()}


def test_as_many_are_taken_apart_as_asked_for():
    whole, pair = merged(1)
    (made,) = tokens(times(whole, 10_000), 0.3, indices=np.array([0]))
    assert abs(sum(each != whole for each in made) / 2 / 10_000 - 0.3) < 0.02
    assert set(made) == {whole, *pair}


def test_what_comes_out_is_taken_apart_in_turn():
    whole, pair = merged(2)
    (made,) = tokens(times(whole, 10_000), 0.5, indices=np.array([0]))
    assert abs(made.count(whole) / 10_000 - 0.5) < 0.02
    deeper = next(each for each in pair if each in dict(BPE.merges))
    assert abs(made.count(deeper) / 10_000 - 0.25) < 0.02  # half of those that were taken apart


def test_an_example_has_a_spelling_in_each_epoch_whoever_stands_beside_it(tmp_path):
    found = corpus_of(tmp_path, [LONG, *TEXTS])
    once = tokens(found, 0.4, epoch=1, seed=7)
    assert tokens(found, 0.4, epoch=1, seed=7) == once
    assert tokens(found, 0.4, epoch=1, seed=7, indices=np.array([9, 3])) == [once[9], once[3]]
    assert tokens(found, 0.4, epoch=2, seed=7) != once
    assert tokens(found, 0.4, epoch=1, seed=8) != once
    assert once[1] != once[5]  # the same text, of another number
    assert tokens(found, 0.4, indices=np.array([], int)) == []


def test_columns_are_spelled_apart(tmp_path):
    fields = {"source": reading(0.4), "target": TargetText(BPE, TargetTextConfig(unmerge=0.4))}
    found = corpus.build(tmp_path / "pairs", [(each, each) for each in (LONG, *TEXTS)], fields, key="pairs")
    shown = unmerged_columns(found.columns, {name: each.unmerging for name, each in fields.items()}, 0, 0)
    every = np.arange(len(found))
    source, target = (np.concatenate(shown[name].take(every)["tokens"]).tolist() for name in fields)
    assert source != target


def test_lengths_are_told_of_all_however_many_are_spelled_at_a_time(tmp_path, monkeypatch):
    shown = apart(corpus_of(tmp_path, [LONG, *TEXTS]), 0.4)
    at_once = shown.lengths().tolist()
    for some in (1, 17, 100):
        monkeypatch.setattr(unmerge, "TOGETHER", some)
        assert shown.lengths().tolist() == at_once


def test_a_share_of_almost_nothing_changes_nothing(tmp_path):
    found = corpus_of(tmp_path, [LONG, *TEXTS])
    assert all(tokens(found, 1e-12, seed=seed) == tokens(found, 0.0) for seed in range(5))


def test_merges_of_a_prefix_inside_words_are_known():
    vocab, merges = {"a": 0, "##b": 1, "ab": 2, "##c": 3, "abc": 4}, [("a", "##b"), ("ab", "##c")]
    model = models.BPE(vocab, merges, continuing_subword_prefix="##")
    assert Text(Tokenizer(model)).merges == [(2, (0, 1)), (4, (2, 3))]


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_only_what_was_merged_can_be_taken_apart(kind):
    with pytest.raises(SaccadeError, match="merges nothing"):
        Unmerging(Text.train(TEXTS, kind, vocab=300), 0.1)


def a_translator(source, target):
    """The task with these shares of its texts taken apart, and examples."""
    pairs = [(a, b) for a in TEXTS[:4] for b in TEXTS[:4]] + [(LONG, LONG)]
    return Task(
        "translate", {"source": reading(source)}, "target", TargetText(BPE, TargetTextConfig(unmerge=target))
    ), pairs


def a_classifier(source, _):
    examples = [(each, "mat" if "mat" in each else "cat") for each in (*TEXTS, LONG)]
    return Task("classify", {"source": reading(source, "pooled")}, "label", Label(["cat", "mat"])), examples


def tensors(batch):
    """All that a batch holds, by name."""
    shown = {**batch.x, "given": batch.given, "y": batch.y}
    return {f"{name} {key}": each for name, one in shown.items() if one is not None for key, each in one.values.items()}


@pytest.mark.parametrize("make", [a_translator, a_classifier])
def test_training_sees_other_spellings_and_validation_none(make, tmp_path):
    (apart, examples), (plain, _) = make(0.5, 0.5), make(0.0, 0.0)
    found = corpus.build(tmp_path / "corpus", examples, plain.fields, key="k")
    walked = list(islice(apart.walk(found, TRAIN, 3, 0, 0), 12))
    last = max(number for number, each in enumerate(walked) if each[0] == 0)
    gone_on = list(islice(apart.walk(found, TRAIN, 3, 0, walked[last][1]), 3))  # as a resumed run would, into epoch 1
    for (*at, a), (*there, b) in zip(walked[last : last + 3], gone_on, strict=True):
        assert at == there
        assert tensors(a).keys() == tensors(b).keys()
        assert all(torch.equal(each, tensors(b)[name]) for name, each in tensors(a).items())
    sides = [each for _, _, batch in walked for each in tensors(batch).values()]
    assert max(side.numel() for side in sides) <= 200
    shown, exact = (
        sum(
            int(each.x["source"].values["tokens"].count_nonzero())
            for epoch, _, each in islice(task.walk(found, TRAIN, 3, 0, 0), 12)
            if not epoch
        )
        for task in (apart, plain)
    )
    assert shown > 1.2 * exact
    for a, b in zip(apart.whole(found, TRAIN), plain.whole(found, TRAIN), strict=True):
        assert all(torch.equal(each, tensors(b)[name]) for name, each in tensors(a).items())


def test_of_a_translator_the_sources_alone(tmp_path):
    task, examples = a_translator(0.5, 0.0)
    found = corpus.build(tmp_path / "corpus", examples, task.fields, key="k")
    made = [each for epoch, _, each in islice(task.walk(found, TRAIN, 3, 0, 0), 40) if not epoch]
    spelled_as, exact = ({"source": [], "target": []} for _ in range(2))
    for batch in made:
        spelled_as["source"] += [row[row > BPE.end].tolist() for row in batch.x["source"].values["tokens"]]
        spelled_as["target"] += [row[row > BPE.end].tolist() for row in batch.given.values["tokens"]]
    for column, rows in exact.items():
        rows += [row.tolist() for row in found.column(column).take(np.arange(len(found)))["tokens"]]
    assert sorted(spelled_as["target"]) == sorted(exact["target"])
    assert sorted(spelled_as["source"]) != sorted(exact["source"])
    assert sorted(map(BPE.decode, spelled_as["source"])) == sorted(map(BPE.decode, exact["source"]))


@pytest.mark.parametrize(
    ("task", "data", "train", "told"),
    [
        ("write", {"files": ["a.txt"]}, {}, "windows of one text"),
        ("translate", {"name": "dates"}, {"reward": 0.5}, "spells otherwise"),
        ("translate", {"name": "dates", "tokenizer": "words"}, {}, "write tokenizer = 'bpe', not 'words'"),
    ],
)
def test_a_recipe_that_cannot_is_told(task, data, train, told):
    model = {"width": 8, "heads": 1, "decoder": 1, "encoder": int(task == "translate")}
    train = {"steps": 1, "unmerge": 0.1, **train}
    with pytest.raises(SaccadeError, match=told):
        saccade.train(from_values({"task": task, "data": data, "model": model, "train": train}))
