"""Several X: two texts to one that is written, through training, searching, looking, saving and serving."""

from __future__ import annotations

import httpx
import pytest
from serve.small import serving

import saccade
from saccade.recipes.read import from_values

ROWS = [
    (a * (n % 3 + 1), b * (n % 2 + 1), (a + b) * (n % 2 + 1)) for n in range(20) for a in "abc" for b in ("x y", "z")
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    (folder / "rows.tsv").write_text("".join("\t".join(row) + "\n" for row in ROWS))
    values = {
        "task": "join",
        "data": {"files": [str(folder / "rows.tsv")], "share": 0.1},
        "x": {"first": {"tokenizer": "characters", "vocab": 20}, "second": {"tokenizer": "characters", "vocab": 20}},
        "y": {"kind": "text"},
        "model": {"width": 12, "heads": 2, "hidden": 17, "encoder": 1, "decoder": 1, "position": "rotary"},
        "train": {"steps": 4, "every": 2, "batch": 100, "rate": 1e-2},
        "decode": {"max_tokens": 7},
    }
    return saccade.train(from_values(values), run=folder / "run")


INPUTS = [{"first": "aa", "second": "z"}, {"second": "x y", "first": "c"}, {"first": "bbb", "second": "zz"}]


@pytest.mark.parametrize("options", [{}, {"beam": 3}, {"temperature": 0.7, "seed": 5}])
def test_batched_is_alone(run, options):
    together = run.predict(INPUTS, **options)
    for given, found in zip(INPUTS, together, strict=True):
        (alone,) = run.predict(given, **options)
        assert alone.text == found.text
        assert alone.score == pytest.approx(found.score, abs=1e-5)


def test_saved_and_loaded_is_the_same(run, tmp_path):
    again = saccade.load(run.save(tmp_path / "saved"))
    assert again.predict(INPUTS) == run.predict(INPUTS)
    assert "".join(again.stream(INPUTS[0])) == run.predict(INPUTS[0])[0].text


def test_both_are_looked_at(run):
    seen = run.look({"first": "aa", "second": "z"}, "az")
    assert [unit.text for unit in seen.sides["input"].tokens if not unit.special] == ["a", "a", "z"]
    map = seen.map("alignment")
    assert map.values.shape == (3, len(seen.sides["input"]))


def test_what_is_missing_or_unknown_is_told(run):
    with pytest.raises(saccade.SaccadeError, match="second is missing"):
        run.predict({"first": "a"})
    with pytest.raises(saccade.SaccadeError, match="reads no 'third'"):
        run.predict({"first": "a", "second": "z", "third": "z"})
    with pytest.raises(saccade.SaccadeError, match="a table of them by name"):
        run.predict("a")


def test_over_the_network(run):
    with serving({"run": run}) as house, httpx.Client(base_url=house.url, timeout=60) as client:
        answer = client.post("/v1/predict", json={"model": "run", "input": INPUTS})
        assert [each["text"] for each in answer.json()["results"]] == [each.text for each in run.predict(INPUTS)]
        look = client.post("/v1/inspect", json={"completion": answer.json()["id"]})
        assert look.status_code == 200, look.text
        wrong = client.post("/v1/predict", json={"model": "run", "input": {"first": "a"}})
        assert wrong.status_code == 400
        assert "second is missing" in wrong.json()["error"]["message"]
