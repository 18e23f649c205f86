"""Answers alone are learned and judged, whole or in segments."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest
import torch

import saccade
from saccade import SaccadeError
from saccade.data.rows import texts
from saccade.learn.compare import compare
from saccade.learn.prepare import prepare
from saccade.learn.reach import reach
from saccade.learn.validate import evaluate, mean_loss
from saccade.recipes.read import from_values
from saccade.task.answers.questions import Questions
from saccade.task.segment_memory import SegmentMemory


def recipe(model=None, train=None, data=None):
    return from_values(
        {
            "task": "write",
            "data": {
                "name": "recall",
                "ask": "?",
                "tokenizer": "split",
                "examples": 90,
                "held": 11,
                "recall": {"length": 24, "pairs": 3, "keys": 5, "values": 4, "distance": 5},
                **(data or {}),
            },
            "model": {"width": 12, "heads": 2, "decoder": 2, "hidden": 16, "position": "xl", **(model or {})},
            "train": {"steps": 6, "every": 6, "batch": 96, "length": 24, "rate": 1e-2, **(train or {})},
        }
    )


def shown_in(batch):
    return batch.given.values["tokens"]


def wanted_in(batch):
    """The places, of all rows side by side, at which something counts, and what that is."""
    wanted = batch.y.values["wanted"].flatten()
    places = (wanted >= 0).nonzero().squeeze(1)
    return places, wanted[places]


SEGMENTS = {"model": {"memory": 30}, "train": {"length": 6}}


def test_a_batch_holds_whole_texts_and_asks_for_the_values_alone():
    made = prepare(recipe(), lambda _: None)
    assert isinstance(made.task.answer, Questions)
    assert isinstance(made.task.rows, texts)
    drawn = [next(made.task.walk(made.train, made.run.recipe.train, 0, 0, place)) for place in range(22)]
    assert {shown_in(batch).shape for _, _, batch in drawn} == {(4, 24)}
    assert all(batch.lane is None for _, _, batch in drawn)
    seen = Counter(tuple(row) for _, _, batch in drawn for row in shown_in(batch).tolist())
    there = Counter(tuple(row[:-1].tolist()) for row in made.train.column("text").take(range(90))["tokens"])
    assert seen.total() == 88  # two of the 90 wait
    assert seen <= there
    text = made.task.text
    for _, _, batch in drawn[:3]:
        shown, (places, wanted_there) = shown_in(batch).flatten(), wanted_in(batch)
        assert batch.count == int((shown == made.task.y.ask).sum()) == len(places)
        for place, wanted in zip(places.tolist(), wanted_there.tolist(), strict=True):
            assert text.decode([shown[place - 1]]) == "?"
            assert text.decode([shown[place]]).startswith("k")
            assert text.decode([wanted]).startswith("v")


def test_segments_ask_for_the_same_and_questions_may_lie_across():
    whole, parts = (prepare(recipe(**each), lambda _: None) for each in ({}, SEGMENTS))
    found = []
    for made in (whole, parts):
        batches = list(made.task.whole(made.val, made.run.recipe.train))
        found.append(sorted(token for batch in batches for token in wanted_in(batch)[1].tolist()))
    assert found[0] == found[1]
    batches = [next(parts.task.walk(parts.train, parts.run.recipe.train, 0, 0, place))[2] for place in range(5)]
    assert [batch.fresh for batch in batches] == [True, False, False, False, True]
    assert [batch.lane for batch in batches] == [0] * 5


@torch.no_grad()
def test_whole_texts_and_segments_with_a_long_memory_judge_alike():
    """The same weights: a memory that holds a whole text gives the same loss and the same answers."""
    made = [prepare(recipe(**each), lambda _: None) for each in ({}, SEGMENTS)]
    models = [each.run.model.double().eval() for each in made]
    models[1].load_state_dict(models[0].state_dict())
    losses = [
        mean_loss(each.task, model, each.val, each.run.recipe.train) for each, model in zip(made, models, strict=True)
    ]
    (whole, _, count), (parts, _, others) = losses
    assert count == others
    assert whole == pytest.approx(parts, rel=1e-12)
    judged = [each.task.judge(model, each.rows, None)[0]["accuracy"] for each, model in zip(made, models, strict=True)]
    assert judged[0] == judged[1]
    batch = next(iter(made[0].task.whole(made[0].val, made[0].run.recipe.train)))
    places, wanted = wanted_in(batch)
    scores = models[0](shown_in(batch)).flatten(0, 1)[places]
    right = (scores.argmax(-1) == wanted).float().mean()
    (alone,) = [made[0].task.judge(models[0], made[0].rows[:4], None)[0]["accuracy"]]
    assert alone == pytest.approx(float(right))


def test_a_segment_without_a_question_takes_a_step_without_harm():
    made = prepare(recipe(**SEGMENTS), lambda _: None)
    batch = next(made.task.walk(made.train, made.run.recipe.train, 0, 0, 0))[2]
    assert batch.count == 0
    loss = made.task.terms(made.run.model, SegmentMemory(made.run.model).attach(batch))["tokens"].sum
    loss.backward()
    assert float(loss.detach()) == 0


@pytest.mark.parametrize("more", [{}, SEGMENTS])
def test_a_run_says_its_accuracy(tmp_path, more):
    run = saccade.train(recipe(**more), run=tmp_path / "run")
    found = evaluate(run)
    assert set(found["metrics"]) == {"loss", "accuracy"}
    assert 0 <= found["metrics"]["accuracy"] <= 1
    assert found["split"] == "test"
    assert run.predict("k1=v2 w3 ? k1", max_tokens=1, min_tokens=1)[0].note is None
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    with pytest.raises(SaccadeError, match="answers questions inside its texts"):
        compare([tmp_path / "run", tmp_path / "again"])
    with pytest.raises(SaccadeError, match="is not compared with references: evaluate it on a split"):
        evaluate(run, file="a.txt", against="b.txt")
    with pytest.raises(SaccadeError, match=r"give a run whose task is write, without y\.ask"):
        reach(run)


def test_a_run_that_answers_is_served(tmp_path):
    from saccade.serve.limit import Limits
    from saccade.serve.served import Served

    run = saccade.train(recipe(train={"steps": 1}), run=tmp_path / "run")
    served = Served("recall", run, Limits())
    assert served.continues
    assert served.engine._scheduler is not None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"train": {"length": 12}}, "the texts have 24 tokens and y.window is 12: set it to 24"),
        ({"model": {"memory": 8}, "train": {"length": 7}}, "set it to a divisor of 24"),
        ({"train": {"batch": 24 * 91}}, "there are 90 texts and a step takes 91"),
        ({"data": {"ask": "!"}}, "y.ask = '!' is no token of this vocabulary"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, more, why):
    with pytest.raises(SaccadeError, match=why):
        saccade.train(recipe(**more), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_split_that_asks_nothing_is_told(tmp_path):
    """In training before a folder is made."""
    made = prepare(recipe(), lambda _: None)
    made.task.y.ask = 10**6
    with pytest.raises(SaccadeError, match=r"nothing of this split is to be predicted \(does y\.ask stand in"):
        mean_loss(made.task, made.run.model, made.val, made.run.recipe.train)
    for name, text in (("train", "a ? b c d e"), ("val", "a b c d e b")):
        rows = "".join(f'{{"text": "{text}"}}\n' for _ in range(7))
        (tmp_path / f"{name}.jsonl").write_text(rows)
    data = {"files": [str(tmp_path / "train.jsonl")], "validation": [str(tmp_path / "val.jsonl")]}
    told = recipe(train={"length": 6, "batch": 12})
    told = from_values({**told.model_dump(exclude_none=True), "data": data})
    with pytest.raises(SaccadeError, match=r"does y\.ask stand in"):
        saccade.train(told, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_texts_of_several_lengths_are_refused():
    made = prepare(recipe(), lambda _: None)
    with pytest.raises(SaccadeError, match="some have 24 tokens, some 26"):
        made.task.rows.size(np.array([26, 24]))
    with pytest.raises(SaccadeError, match="must have equal lengths; here some have 24 tokens, some 26"):
        made.task.rows.size(np.array([24, 26]))


def test_the_first_word_of_all_is_no_answer():
    """Nothing stands before it, also where the last or the first word of the text is the sign of a question."""
    made = prepare(recipe(), lambda _: None)
    read = made.task.text.encode(["? k1 v1 ? k2"])[0]
    task = made.task.windowed(len(read))
    (picked,) = task.rows.all(np.array([*read, task.text.end]), len(read), 1)
    places, _ = wanted_in(task.batch(picked))
    assert places.tolist() == [1, 4], "behind each sign, and not at the sign itself"
    with pytest.raises(SaccadeError, match="no text to judge"):
        task.judge(made.run.model, [], made.run.decode())
