"""Run folders that 0.1.0 wrote open, answer, are looked into and go on as they did then (tests/fixtures/0.1.0)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import saccade

HERE = Path(__file__).parents[1] / "fixtures" / "0.1.0"
EXPECTED = json.loads((HERE / "expected.json").read_text())
DRAWN = {"usual": {}, "beam": {"beam": 3}, "drawn": {"temperature": 1.0, "seed": 3}}
# Of each: texts and ways to ask for them, what is looked at (and said to be written), and the map.
ASKED: dict[str, tuple[list[str], dict[str, dict[str, Any]], tuple[str, str | None], str]] = {
    "translator": (
        ["3 May 1979", "Dec 24, 2001", "1.2.1990"],
        {**DRAWN, "matching": {"matching": r"\d{4}-\d\d-\d\d"}},
        ("3 May 1979", "1979-05-03"),
        "alignment",
    ),
    "writer": (["the cat", "a dog sees"], DRAWN, ("the cat sees", None), "decoder.blocks.0.attention"),
    "classifier": (
        ["a lovely film", "a dull film with a long plot", ""],
        {"usual": {}},
        ("a lovely film", None),
        "encoder.blocks.0.attention",
    ),
    "recall": (
        ["k1=v2 k3=v0 k1=v2 w1 ? k3", "k2=v1 ? k2"],
        {"usual": {}, "beam": {"beam": 2}},
        ("k1=v2 k3=v0 w1 ? k3", None),
        "decoder.blocks.0.attention",
    ),
    "memory": (["the cat", "a dog sees"], DRAWN, ("the cat sees", None), "decoder.blocks.0.attention"),
}


def answers(run: saccade.Run, texts: list[str], **options: Any) -> list[Any]:
    return [[each.text, each.score, each.note] for each in run.predict(texts, **options)]


def near(value: Any) -> Any:
    """As numbers of other machines may differ: in the last of the digits that are kept."""
    if isinstance(value, float):
        return pytest.approx(value, abs=1.1e-5)
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    return [near(each) for each in value] if isinstance(value, list | tuple) else value


@pytest.fixture(params=sorted(ASKED))
def copied(request, tmp_path):
    shutil.copytree(HERE / request.param, tmp_path / "there")
    return request.param, tmp_path / "there" / "run"


def test_a_run_of_an_earlier_version_answers_and_is_looked_into(copied):
    name, folder = copied
    texts, ways, (text, target), layer = ASKED[name]
    expected, run = EXPECTED[name]["before"], saccade.load(folder)
    assert (run.step, run.samples) == (expected["step"], expected["samples"])
    for way, options in ways.items():
        assert answers(run, texts, **options) == near(expected["predict"][way])
    seen = run.look(text) if target is None else run.look(text, target)
    made = seen.map(layer)
    assert seen.output == expected["output"]
    assert seen.logprobs == near(expected["logprobs"])
    assert {"rows": made.rows, "columns": made.columns, "values": made.values.tolist()} == near(expected["map"])


def test_a_run_of_an_earlier_version_goes_on(copied):
    name, folder = copied
    expected = EXPECTED[name]["after"]
    run = saccade.train(folder)
    logged = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = {str(each["step"]): each["loss"] for each in logged if "loss" in each}
    last = next(each["validation"] for each in reversed(logged) if "validation" in each)
    assert (run.step, losses) == (expected["step"], near(expected["losses"]))
    expected["validation"].pop("bleu_13a", None)  # a BLEU of 0 beside references of one word, no longer shown
    assert last == near(expected["validation"])
    assert answers(run, ASKED[name][0]) == near(expected["predict"])
