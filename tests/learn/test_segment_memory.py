"""Segments in order with a memory: what is walked, what is carried, and that a run goes on exactly."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import translate, write

import saccade
from saccade import SaccadeError
from saccade.learn.compare import compare
from saccade.learn.loop import Loop
from saccade.learn.prepare import prepare, resume
from saccade.learn.progress import MetricsLog, Progress
from saccade.learn.validate import evaluate, mean_loss
from saccade.store import checkpoint
from saccade.task.segment_memory import SegmentMemory


def loop_of(made, tmp_path):
    return Loop(prepare(made, lambda _: None), tmp_path, Progress(Console(quiet=True), 1))


def shown(batch):
    return batch.given.values["tokens"]


def loss_of(loop, batch):
    return loop.task.terms(loop.model, loop.segment_memory.attach(batch))["tokens"].sum


def test_rows_go_on_where_they_were_and_begin_anew_with_an_epoch(tmp_path):
    loop = loop_of(write(tmp_path), tmp_path)
    stream, walk = loop.prepared.train.column("text").array("tokens"), loop.batches()
    drawn = [next(walk) for _ in range(40)]
    places = [place for epoch, place, _ in drawn if epoch == 0]
    assert places == list(range(len(places)))
    assert {epoch for epoch, _, _ in drawn} >= {0, 1, 2}
    for (epoch, place, batch), (after, _, later) in pairwise(drawn):
        assert batch.lane == 0
        assert batch.fresh == (place == 0)
        assert shown(batch).shape == (5, 7)
        goes_on = torch.equal(batch.y.values["wanted"][:, -1], shown(later)[:, 0])
        assert goes_on or after != epoch
    first = [shown(batch) for _, place, batch in drawn if place == 0]
    assert not torch.equal(first[0], first[1])  # the stretches have moved
    rows = torch.cat([shown(batch) for epoch, _, batch in drawn if epoch == 0], 1)
    whole = rows.flatten().numpy().tobytes()
    assert whole in stream.astype(np.int64).tobytes()  # every token of the stretches, once
    again = loop.task.walk(loop.prepared.train, loop.config, 0, 1, 2)
    chosen = next(each for each in drawn if each[:2] == (1, 2))
    assert torch.equal(shown(next(again)[2]), shown(chosen[2]))


def run_of(tmp_path, name, **more):
    return saccade.train(write(tmp_path, **more), run=tmp_path / name)


@pytest.mark.parametrize(
    "train", [{}, pytest.param({"accumulate": 2, "batch": 14, "average": "ema(0.9)"}, marks=pytest.mark.proof)]
)
def test_stopped_anywhere_and_gone_on_is_bit_for_bit_the_same(tmp_path, monkeypatch, train):
    more = {"train": train, "model": {"dropout": 0.2}}
    run_of(tmp_path, "whole", **more)
    plain = Loop.advance
    for step in (3, 8, 9, 21):  # in an epoch, at its end and after it

        def stopping(self, *given, step=step):
            plain(self, *given)
            self.stop = 2 if self.state["step"] == step else 0

        monkeypatch.setattr(Loop, "advance", stopping)
        with pytest.raises(KeyboardInterrupt):
            run_of(tmp_path, "parts", **more)
    monkeypatch.setattr(Loop, "advance", plain)
    run_of(tmp_path, "parts", **more)
    ours, theirs = (checkpoint.newest(tmp_path / each) for each in ("parts", "whole"))
    assert ours.step == theirs.step == 23
    assert ours.state["epoch"] == theirs.state["epoch"] >= 2
    assert ours.tensors.keys() == theirs.tensors.keys() >= {"memory", "model", "training"}
    for name, part in theirs.tensors.items():
        for key, tensor in part.items():
            assert torch.equal(ours.tensors[name][key], tensor), (name, key)
    told = [
        [{k: v for k, v in json.loads(line).items() if k not in ("seconds", "data_share")} for line in lines]
        for lines in ((tmp_path / each / "metrics.jsonl").read_text().splitlines() for each in ("parts", "whole"))
    ]
    assert [each for each in told[0] if "loss" in each] == [each for each in told[1] if "loss" in each]


def test_the_memory_matters_to_what_is_resumed(tmp_path):
    """A run that forgot its memory on the way would take other steps: the test above can fail."""
    loop = loop_of(write(tmp_path), tmp_path)
    batches, metrics = loop.batches(), MetricsLog(tmp_path, 0)
    loop.advance(batches, metrics)
    _, _, batch = next(batches)
    metrics.close()
    with torch.no_grad():
        with_memory = loss_of(loop, batch)
        loop.segment_memory.clear()
        assert loss_of(loop, batch) != with_memory


def test_accumulated_batches_are_lanes_of_one_larger(tmp_path):
    """Gradients of two batches of 3 rows are those of one of 6, over several steps, in float64."""
    found = {}
    for name, train in {"once": {"batch": 42}, "twice": {"batch": 21, "accumulate": 2}}.items():
        made = write(tmp_path, train={**train, "precision": "float64", "optimiser": "sgd"})
        loop = loop_of(made, tmp_path)
        batches, metrics = loop.batches(), MetricsLog(tmp_path, 0)
        for _ in range(5):
            loop.advance(batches, metrics)
        metrics.close()
        found[name] = loop
    assert set(found["twice"].segment_memory.memories) == {0, 1}
    for a, b in zip(*(each.model.parameters() for each in found.values()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_every_token_is_validated_once_with_what_came_before(tmp_path):
    """One row at a time: the loss is that of the whole text at once where nothing is out of reach."""
    loop = loop_of(write(tmp_path, model={"memory": 500}, train={"precision": "float64"}), tmp_path)
    val, model = loop.prepared.val, loop.model
    tokens = torch.from_numpy(val.column("text").array("tokens").astype(np.int64))[None]
    alone = loop.config.model_copy(update={"batch": 7})
    loss, _, count = mean_loss(loop.task, model, val, alone)
    assert count == tokens.shape[1] - 1
    with torch.no_grad():
        scores = model(tokens[:, :-1])[0].log_softmax(-1)
    whole = -scores.gather(1, tokens[0, 1:, None]).mean()
    assert loss == pytest.approx(float(whole), rel=1e-9)
    rows = loop.config.model_copy(update={"batch": 35})
    assert mean_loss(loop.task, model, val, rows)[2] == count
    seen = torch.cat([shown(batch).flatten() for batch in loop.task.whole(val, rows)])
    assert seen.sort().values.tolist() == tokens[0, :-1].sort().values.tolist()


def test_validation_leaves_the_memory_of_training_alone(tmp_path):
    loop = loop_of(write(tmp_path), tmp_path)
    metrics = MetricsLog(tmp_path, 0)
    loop.advance(loop.batches(), metrics)
    before = {name: each.clone() for name, each in loop.segment_memory.state().items()}
    loop.validate(metrics)
    metrics.close()
    assert before.keys() == {"0.0", "0.1"}
    assert all(torch.equal(each, before[name]) for name, each in loop.segment_memory.state().items())
    assert not any(each.requires_grad for each in loop.segment_memory.state().values())


def test_a_broken_step_is_not_remembered(tmp_path):
    loop = loop_of(write(tmp_path, train={"broken": "skip"}), tmp_path)
    batches, metrics = loop.batches(), MetricsLog(tmp_path, 0)
    loop.advance(batches, metrics)
    weight = loop.weights["embed.tokens.weight"]
    kept = weight.detach().clone()
    with torch.no_grad():
        weight.fill_(float("nan"))
    loop.advance(batches, metrics)
    with torch.no_grad():
        weight.copy_(kept)
    loop.advance(batches, metrics)
    metrics.close()
    assert loop.state["skipped"] == 1
    assert all(bool(each.isfinite().all()) for each in loop.segment_memory.state().values())


@pytest.mark.proof
def test_a_run_with_a_memory_is_evaluated_compared_and_writes(tmp_path):
    run, other = run_of(tmp_path, "a"), run_of(tmp_path, "b", model={"memory": 0})
    assert evaluate(run)["metrics"]["loss"] == pytest.approx(
        mean_loss(run.task, run.model, resume(run.recipe, run.files, lambda _: None).val, run.recipe.train)[0]
    )
    assert len(run.predict("the e", max_tokens=30)[0].text) == 30
    assert other.task.y.remembers is False
    found = compare([tmp_path / "a", tmp_path / "b"])
    losses = [each.metrics["loss"] for each in found.runs]
    assert losses[0] != losses[1]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ({"position": "learned(64)"}, "a memory goes with positions that are distances, and 'learned"),
        ({"position": "sinusoid"}, "write model.position = 'xl', 'rotary' or 'alibi'"),
        ({"mask": "prefix(3)"}, "a memory moves the places that the mask 'prefix"),
    ],
)
def test_what_a_memory_does_not_go_with(tmp_path, model, why):
    with pytest.raises(SaccadeError, match=why):
        run_of(tmp_path, "run", model=model)
    assert not (tmp_path / "run").exists()


def test_tasks_without_segments_refuse_a_memory(tmp_path):
    with pytest.raises(SaccadeError, match=r"model\.memory goes from segment to segment of a text, and translate has"):
        saccade.train(translate(tmp_path, model={"memory": 8}), run=tmp_path / "run")


def test_a_text_that_is_too_short_for_its_stretches(tmp_path):
    with pytest.raises(SaccadeError, match=r"stretches of 7 take .* give more text, a smaller batch or a shorter"):
        run_of(tmp_path, "run", train={"batch": 4000})


def test_a_carry_keeps_nothing_of_batches_that_stand_alone(tmp_path):
    loop = loop_of(write(tmp_path, model={"memory": 0}), tmp_path)
    segment_memory = SegmentMemory(loop.model)
    batch = next(loop.batches())[2]
    assert segment_memory.attach(batch) is batch
    assert segment_memory.state() == {}
    assert loop.tensors()["memory"] == {}
