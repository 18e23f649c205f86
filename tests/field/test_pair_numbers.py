"""Numbers of pairs: the loss, the metrics, what a table may be, and that no turning of the points changes an answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import saccade
from saccade import SaccadeError
from saccade.data import distances
from saccade.data.rows import Picked
from saccade.field.graph import Graph, GraphConfig
from saccade.field.pairs import PairNumbers, PairsConfig, table_of
from saccade.field.result import Result
from saccade.look.look import look
from saccade.look.report import described
from saccade.look.view import View
from saccade.recipe import DecodeConfig, DistancesConfig
from saccade.task.batch import states_of
from saccade.task.task import Task

ROWS = [distances.example(n, DistancesConfig(points=points)) for n, points in enumerate((7, 11, 5))]


def task() -> Task:
    graph, config = GraphConfig(embed="pairs(reach=2.2)"), PairsConfig()
    x = Graph.load(graph, {Graph.stored("source"): Graph.made(graph, [row[0] for row in ROWS])}, "source", "places")
    y = PairNumbers.load(
        config, {PairNumbers.stored("numbers"): PairNumbers.made(config, [row[1] for row in ROWS])}, "numbers"
    )
    return Task("regress", {"source": x}, "numbers", y)


def model_of(made: Task, **changes):
    torch.manual_seed(2)
    config = saccade.ModelConfig(width=12, heads=2, encoder=2, pair=8, **changes)
    model = saccade.build(made.configure(config)).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


def batch_of(made: Task, rows):
    columns = {name: field.encode([row[n] for row in rows]) for n, (name, field) in enumerate(made.fields.items())}
    return made.batch(Picked(columns))


def test_the_loss_is_of_known_pairs_alone():
    made = task()
    model, batch = model_of(made), batch_of(made, ROWS)
    said = model.say(states_of(model, batch))[..., 0].detach() * made.y.spread + made.y.mean
    total, count = 0.0, 0
    for number, (_, wanted) in enumerate(ROWS):
        for i, j in np.argwhere(np.isfinite(wanted)).tolist():
            total += float(((said[number, i, j] - wanted[i, j]) / made.y.spread) ** 2)
            count += 1
    (term,) = made.terms(model, batch).values()
    assert float(term.sum.detach()) == pytest.approx(total, rel=1e-5)
    assert batch.count == count
    losses = made.y.losses(model, states_of(model, batch), batch.y).sum(0).detach()
    assert losses.tolist() == pytest.approx([total, count], rel=1e-5)


def test_company_does_not_matter():
    made = task()
    model = model_of(made)
    with torch.inference_mode():
        said = model.say(states_of(model, batch_of(made, ROWS)))
        for number, row in enumerate(ROWS):
            own = model.say(states_of(model, batch_of(made, [row])))[0]
            N = len(own)
            torch.testing.assert_close(said[number, :N, :N], own, rtol=0, atol=1e-12)


@pytest.mark.parametrize("change", ["turned", "mirrored", "moved", "relabelled"])
def test_answers_do_not_depend_on_where_points_lie(change):
    """From coordinates to the answer: only distances are told."""
    random = np.random.default_rng(3)
    points, order = random.standard_normal((7, 3)), np.arange(7)
    known, noise = np.array([[0, 1], [0, 2], [1, 3], [2, 6], [4, 5], [5, 6], [3, 4]]), 0.05 * random.standard_normal(7)
    turn, _ = np.linalg.qr(random.standard_normal((3, 3)))
    turn *= np.linalg.det(turn)
    if change == "relabelled":
        order = random.permutation(7)
    changed = {"turned": points @ turn, "mirrored": points * [-1, 1, 1], "moved": points + 5}.get(change, points)[order]
    made = task()
    model = model_of(made)
    one, other = (
        made.predict(model, [distances.told(where, pairs, noise)[0]], DecodeConfig())[0].value
        for where, pairs in ((points, known), (changed, np.argsort(order)[known]))
    )
    assert np.allclose(np.array(one)[order][:, order], other, atol=1e-4)
    assert np.array(one).std() > 0.01


def test_the_map_of_pairs_is_what_is_said_of_them():
    made = task()
    model, raw = model_of(made), ROWS[0][0]
    seen = look(made, model, raw, DecodeConfig())
    said = torch.tensor(made.predict(model, [raw], DecodeConfig())[0].value)
    assert torch.allclose(seen.map("pairs").values.float(), said.float(), atol=1e-5)
    assert torch.equal(seen.map("pairs", rows=(2, 4)).values, seen.map("pairs").values[2:4])
    assert "<svg" in View("pairs").content(seen, "svg").decode()
    assert described(seen)["pairs"] == seen.layers[-1].columns


def test_a_look_is_along_the_nodes_and_watching_goes_on_to_the_triangles():
    made = task()
    model = model_of(made)
    seen = look(made, model, ROWS[0][0], DecodeConfig())
    assert [each.name for each in seen.layers] == ["encoder.blocks.0.attention", "encoder.blocks.1.attention"]
    assert seen.map().values.shape == (7, 7)
    with saccade.watch(model) as watched, torch.no_grad():
        states_of(model, batch_of(made, ROWS[:1]))
    (name, *_) = (each for each in watched.layers if each.startswith("encoder.pairs"))
    assert watched.weights(name).shape == (7, 4, 7, 7), "a map for each row of pairs"


def test_metrics_are_of_all_known_pairs_together():
    made = task().y
    wanted = [np.array([[np.nan, 1.0], [3.0, np.nan]], np.float32), np.full((1, 1), 2.0, np.float32)]
    results = [Result([[9.0, 2.0], [5.0, 9.0]], "", 0.0), Result([[5.0]], "", 0.0)]
    found = {name: each.value for name, each in made.tallies(results, wanted).items()}
    assert found == pytest.approx({"rmse": ((1 + 4 + 9) / 3) ** 0.5, "mae": 2.0})
    assert all(each.better == -1 for each in made.tallies(results, wanted).values())
    noted = made.tallies([Result(None, "", 0.0, "empty")] * 2, wanted)
    baseline = made.baseline([(None, each) for each in wanted], lambda: None, None)
    assert noted["rmse"].value == pytest.approx(baseline["rmse"])
    assert baseline["what"] == f"always {made.mean:.4g}"


def test_a_table_is_a_cell_of_json():
    table = np.array([[np.nan, 0.1], [2.5, np.nan]], np.float32)
    (cell,) = PairNumbers.cells(table, Path())
    assert json.loads(cell) == [[None, 0.1], [2.5, None]]
    assert np.array_equal(PairNumbers.cell(cell, Path()), table, equal_nan=True)
    assert PairNumbers.identity(PairNumbers.cell(cell, Path())) == PairNumbers.identity(table)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("[[1, 2]]", r"a row and a column for each place; got \(1, 2\)"),
        ("[[1, 2], [3]]", "all equally long"),
        ("[[1, 1e999], [3, 4]]", "infinite"),
        ("[[1, ", "is no JSON"),
        ('[["a"]]', "of numbers and null"),
    ],
)
def test_what_is_no_table(raw, why):
    with pytest.raises(SaccadeError, match=why):
        PairNumbers.cell(raw, Path())


def test_what_cannot_be_learned():
    for raws, why in (([[[None]]], "no pair with a number"), ([[[2.0]], [[2.0]]], "the same number")):
        with pytest.raises(SaccadeError, match=why):
            PairNumbers.made(PairsConfig(), map(table_of, raws))
    with pytest.raises(SaccadeError, match=r"model\.pair = 32"):
        task().y.fits(saccade.ModelConfig(width=12, heads=2, encoder=2))


def test_a_table_of_another_size_is_refused():
    made = task()
    with pytest.raises(SaccadeError, match="a table of 7 x 7 numbers fits this X"):
        made.terms(model_of(made), batch_of(made, [(ROWS[0][0], ROWS[1][1])]))
