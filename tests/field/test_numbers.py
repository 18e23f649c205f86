"""Numbers as Y: learned in units of their spread, told and judged in their own; the mean beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import saccade
from saccade.cli import app
from saccade.error import SaccadeError
from saccade.field.numbers import Numbers, NumbersConfig, Spread
from saccade.field.result import Result
from saccade.recipes.read import from_values

TABLE = [(2.0, -300.0), (4.0, 100.0), (9.0, 500.0)]


def field(rows=TABLE, **keys):
    config = NumbersConfig(**keys)
    return Numbers.load(config, {"numbers.json": Numbers.made(config, rows)}, "y")


def test_they_are_learned_in_units_of_their_spread_and_told_in_their_own():
    made = field()
    values = made.collate({"values": np.array(TABLE)}).values["values"]
    torch.testing.assert_close(values.double().mean(0), torch.zeros(2).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(values.double().square().mean(0), torch.ones(2).double(), atol=1e-6, rtol=0)
    assert [each.value for each in made.results(values)] == [pytest.approx(row, rel=1e-5) for row in TABLE]
    assert field([(1,), (2,)]).results(torch.zeros(1, 1))[0].value == 1.5, "one number is no list"


@pytest.mark.parametrize(("loss", "wanted"), [("squared", (4 + 1) / 2), ("absolute", (2 + 1) / 2)])
def test_the_loss_is_the_mean_over_the_numbers(loss, wanted):
    made = field(loss=loss)

    class Says:
        def say(self, states):
            return y.values["values"] + torch.tensor([[2.0, -1.0]])

    y = made.collate({"values": np.array(TABLE)})
    (term,) = made.loss(Says(), None, y, learning=True).values()
    assert float(term.sum) == pytest.approx(3 * wanted)
    assert made.counts(y) == {loss: 3}


def test_the_mean_is_the_baseline():
    made, rows = field(), [("a", (3.0, 0.0)), ("b", (6.0, 300.0))]
    found = made.baseline(rows, lambda: None, None)
    away = np.array([(3.0, 0.0), (6.0, 300.0)]) - [5.0, 100.0]
    assert found == {
        "what": "always 5 100",
        "mse": pytest.approx((away**2).mean()),
        "mae": pytest.approx(np.abs(away).mean()),
    }
    unanswered = [Result(None, "", 0.0, "empty")] * 2
    assert made.quick(unanswered, [row[-1] for row in rows])["mse"] == found["mse"], "no answer counts as the mean"


def test_less_is_better():
    tallies = field().tallies([Result([2.0, 0.0], "", 0.0)], [(2.0, 7.0)])
    assert {name: (each.value, each.better) for name, each in tallies.items()} == {"mse": (24.5, -1), "mae": (3.5, -1)}


def test_what_an_ablation_measures_is_how_near_the_numbers_stay():
    made = Numbers(Spread([5.0], [2.0]), NumbersConfig())
    said = made.results(torch.tensor([[1.0]]))[0]
    assert (said.value, said.text) == (7.0, "7")
    assert made.likely(torch.tensor([[1.0], [3.0]]), said).tolist() == [0.0, -4.0]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(1.0,), (1.0, 2.0)], "some have 1, some 2"),
        ([(1.0, 3.0), (2.0, 3.0)], "number 2 is the same in all training rows"),
        ([(0.1,)] * 20, "number 1 is the same"),
        ([], "no row with numbers"),
    ],
)
def test_rows_from_which_nothing_can_be_learned(rows, told):
    with pytest.raises(SaccadeError, match=told):
        field(rows)


@pytest.mark.parametrize(
    ("cell", "told"), [("much", "'much' is no number"), ("inf", "no finite number"), ("1 x", "'x'")]
)
def test_cells_that_are_no_numbers(cell, told):
    with pytest.raises(SaccadeError, match=told):
        Numbers.cell(cell, Path())


def test_numbers_of_one_cell_or_of_several():
    assert Numbers.cell("1; -2 3e2", Path()) == (1.0, -2.0, 300.0)
    assert Numbers.cell(("1", " -2", "3e2"), Path()) == (1.0, -2.0, 300.0)


def recipe(files, columns=(), **more):
    values = {
        "task": "regress",
        "data": {"files": list(map(str, files)), "share": 0.2, "columns": list(columns)},
        "x": {"source": {"tokenizer": "characters", "vocab": 30}},
        "model": {"width": 16, "heads": 2, "encoder": 1, "position": "rotary"},
        "train": {"steps": 150, "every": 50, "batch": 400, "rate": 1e-2},
    }
    return from_values({**values, **more})


def test_a_table_with_a_header_and_two_numbers_in_one_command(tmp_path):
    """Letters to how many there are, and how many of them are an a."""
    draw = np.random.default_rng(1)
    texts = ["".join(draw.choice(list("abc"), draw.integers(1, 9))) for _ in range(300)]
    lines = ["words,ignored,count,as", *(f"{each},-,{len(each)},{each.count('a')}" for each in texts)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    made = recipe([tmp_path / "t.csv"], ("words", "count", "as"))
    run = saccade.train(made, run=tmp_path / "run")
    (result,) = run.predict("abcab")
    assert len(result.value) == 2
    assert result.text == " ".join(f"{each:.6g}" for each in result.value)
    told = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--json"])
    found = json.loads(told.stdout)
    assert found["metrics"]["mse"] < 0.5 * found["baseline"]["mse"], "it learned to count"
    assert found["metrics"].keys() == {"loss", "mse", "mae"}
    seen = run.look("abcab")
    assert "squared distance" in seen.matters
    assert seen.ablation(seen.layers[0].name).heads


def test_a_row_that_has_no_number_is_told_with_its_place(tmp_path):
    (tmp_path / "t.csv").write_text("a,1\nb,2\nc,none\n")
    with pytest.raises(SaccadeError, match=r"t.csv, row 3: 'none' is no number"):
        saccade.train(recipe([tmp_path / "t.csv"]), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
