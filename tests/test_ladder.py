"""The whole ladder, for every recipe that is listed: own files, a report, exact resuming, `evaluate` with a baseline,
`predict`, `look`, the server, `compare`, one sentence for bad input, and a header that tells what was measured.

A recipe that is added is held to all of it by being listed.
"""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from absent import NEEDED, data_set
from own import own_files
from serve.small import serving
from typer.testing import CliRunner

import saccade
from saccade import disk
from saccade.cli import app
from saccade.data.generated import GENERATED
from saccade.recipes import read as recipes
from saccade.serve.limit import Limits
from saccade.task.pair import pair_of, resolved

HERE = Path(__file__).parents[1]
STEPS, EVERY = 4, 2
SMALL = {"width": 16, "heads": 2, "hidden": 24, "encoder": 2, "decoder": 2}
# What a small model of a recipe needs beside that.
OWN = {
    "citeseer-gat": ["train.batch=3400", "model.encoder=1", "model.encoder_mixer=gat(1)"],  # its one graph, one map
    "cora-gat": ["train.batch=3000", "model.encoder=1", "model.encoder_mixer=gat(1)"],
    "cora-gcn": ["train.batch=3000"],  # its one graph
    "easy-vqa": ["data.first=1000"],  # fewer questions do not have every answer
    "recall": ["data.recall.length=64", "data.recall.distance=8", "data.recall.pairs=4", "y.window=64"],
}


def options(name: str) -> list[str]:
    """A recipe, small enough to be trained in a moment."""
    made, found = (
        recipes.recipe(name),
        [f"train.steps={STEPS}", f"train.every={EVERY}", "train.patience=", "train.keep=5"],
    )
    model = {} if made.model is None else made.model.model_dump()
    for key, most in SMALL.items():
        if isinstance(model.get(key), int) and model[key] > most:  # stages stay: they name a mixer for each layer
            found.append(f"model.{key}={most}")
    found += ["train.batch=512"] if made.train.batch > 512 else []
    found += [f"x.{name}.size={smaller(table['size'])}" for name, table in made.x.items() if "size" in table]
    found += ["data.examples=200", "data.held=20"] if made.data.name in GENERATED else ["data.first=120"]
    writes = pair_of(made).y.kind.needs == "decoder"
    found += ["decode.max_tokens=8"] if writes and made.decode.max_tokens > 8 else []
    return [*found, *OWN.get(name, [])]


def smaller(size: int | list[int]) -> int | list[int]:
    """The sides of a small picture: half of a line's, 16 of a square's."""
    return [each // 2 for each in size] if isinstance(size, list) else min(size, 16)


def command(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, (words, found.output, found.exception)
    return found.stdout


def refused(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert isinstance(found.exception, saccade.SaccadeError), (words, found.output, found.exception)
    return str(found.exception)


def named(raw: Any, task: Any, folder: Path) -> str:
    """An input as the command line names it: a text, the name of a file, or several of these as JSON."""
    sample = raw if isinstance(raw, str) else task.sample(raw)
    if len(task.x) > 1:
        return json.dumps({name: _filed(each, folder) for name, each in json.loads(sample).items()})
    return _filed(sample, folder)


def _filed(sample: str, folder: Path) -> str:
    """A sample as it is; of a picture, the name of a file that holds it."""
    if not sample.startswith("data:"):
        return sample
    path = folder / f"input.{sample.partition(';')[0].rpartition('/')[2]}"
    path.write_bytes(base64.b64decode(sample.partition(",")[2]))
    return str(path)


def weights(run: Path) -> dict[str, str]:
    """The hashes of the last checkpoint, its training state among them."""
    return {
        each.name: disk.digest(each) for each in sorted((run / "checkpoints" / f"step-{STEPS}").glob("*.safetensors"))
    }


def ladder() -> list[Any]:
    """Every recipe; in `make test` those that stand for a kind of X and Y, whose files are their user's own."""
    quick = {"write", "classify-images"}
    return [pytest.param(name, marks=[pytest.mark.proof] * (name not in quick)) for name in recipes.names()]


@pytest.mark.parametrize("name", ladder())
def test_ladder(name, tmp_path, monkeypatch, capsys):
    made = recipes.recipe(name)
    for each in NEEDED.get(made.data.name, ()):
        data_set(each)
    monkeypatch.chdir(tmp_path)
    if made.start is not None:  # a recipe that goes on from another's run
        before = Path(made.start).name
        saccade.train(before, run=made.start, options=options(before))
    files = own_files(name, tmp_path)
    given = [word for each in options(name) for word in ("-o", each)]
    told = command("train", name, *given, *(["--files", *files] if files else []), "--run", "runs/one")
    assert "train: " in told, "a report stands before the training"
    assert "parameters" in told
    _resumes(name, files)
    run = saccade.load("runs/one")
    rows = pair_of(run.recipe).supply(run.recipe).rows("val")
    raw = next(each for each in map(run.task.inputs, rows) if not isinstance(each, str) or each.strip())
    raw = raw.strip()[:20] if isinstance(raw, str) else raw
    line = named(raw, run.task, tmp_path)
    _evaluates(run)
    _predicts(run, raw, line)
    _looks(run, raw, line, tmp_path)
    _serves(run, raw)
    _compares(run)
    _keeps(name)
    _header(name)
    _refuses(name)


def _resumes(name: str, files: list[str]) -> None:
    """A run that lost its last checkpoint, and one that lost all but the first, end in the same weights."""
    for lost in ([STEPS], [STEPS, EVERY]):
        shutil.copytree("runs/one", "runs/two")
        for step in lost:
            shutil.rmtree(f"runs/two/checkpoints/step-{step}")
        command("train", "runs/two")
        assert weights(Path("runs/two")) == weights(Path("runs/one")), f"{name} resumed is not {name} uninterrupted"
        shutil.rmtree("runs/two")


def _evaluates(run: saccade.Run) -> None:
    found = json.loads(command("evaluate", "runs/one", "--split", "val", "--json"))
    assert {"run", "step", "split", "examples", "metrics", "baseline"} <= found.keys()
    assert found["metrics"]
    if found["baseline"]:
        assert found["baseline"].keys() - {"what"} <= found["metrics"].keys()
    assert "loss" in command("evaluate", "runs/one", "--split", "val")


def _predicts(run: saccade.Run, raw: Any, line: str) -> None:
    (result,) = run.predict([raw])
    assert run.predict(raw) == [result], "one input needs no list"
    assert json.loads(command("predict", "runs/one", line, "--json"))["text"] == result.text
    assert "".join(run.stream(raw)) is not None
    many = run.predict([raw] * 3)
    assert [each.text for each in many] == [result.text] * 3, "batched = alone"
    again = saccade.load(run.save("runs/saved")).predict([raw])
    assert [each[:2] for each in again] == [result[:2]], "saved and loaded = the same answers"


def _looks(run: saccade.Run, raw: Any, line: str, folder: Path) -> None:
    if not any(isinstance(each, saccade.Attention) for each in run.model.modules()):
        assert "nothing in it attends" in refused("look", "runs/one", line)
        return
    seen = run.look(raw)
    side = seen.sides[seen.layers[0].columns]
    assert len(side)
    assert all(unit.text for unit in side.tokens)
    for ending in ("svg", "png", "html", "csv"):
        command("look", "runs/one", line, "--out", f"look.{ending}")
        assert Path(f"look.{ending}").stat().st_size > 100
    assert "<svg" in seen._repr_html_() or "<img" in seen._repr_html_()
    assert json.loads(command("look", "runs/one", line, "--json"))["sides"].keys() == seen.sides.keys()
    assert run.predict([raw]) == run.predict([raw]), "watched = not watched"


def _serves(run: saccade.Run, raw: Any) -> None:
    with serving({"run": run}) as house, httpx.Client(base_url=house.url, timeout=60) as client:
        body = {"model": "run", "input": run.task.sample(raw)}
        answer = client.post("/v1/predict", json=body)
        assert answer.status_code == 200, answer.text
        (result,) = run.predict([raw])
        assert answer.json()["results"][0]["text"] == result.text
        look = client.post("/v1/inspect", json={"completion": answer.json()["id"]})
        if not any(isinstance(each, saccade.Attention) for each in run.model.modules()):
            assert look.status_code == 400
        elif len(next(iter(run.look(raw).sides.values()))) > Limits().look_tokens:  # a large graph
            assert look.status_code == 400
            assert "are too many to look into" in look.json()["error"]["message"]
        else:
            assert look.status_code == 200, look.text
            layer = look.json()["layers"][0]["name"]
            assert client.get(f"/v1/inspect/{look.json()['id']}/map", params={"layer": layer}).status_code == 200
        about = client.get("/v1/models").json()["data"][0]["saccade"]
        assert about["task"] == run.task.verb
        wrong = client.post("/v1/predict", json={"model": "run", "input": {"no": "such input"}})
        assert wrong.status_code == 400
        assert wrong.json()["error"]["message"]


def _compares(run: saccade.Run) -> None:
    run.save("runs/other")
    if run.task.answer.compared is None:
        assert "evaluate" in refused("compare", "runs/one", "runs/other", "--split", "val")
        return
    found = json.loads(command("compare", "runs/one", "runs/other", "--split", "val", "--limit", "8", "--json"))
    assert [each["run"] for each in found["runs"]] == ["runs/one", "runs/other"]
    assert all(each["difference"] == 0 for each in found["differences"])


def _keeps(name: str) -> None:
    found = json.loads(command("check", "symmetry", "runs/one", "--json"))
    assert found["kept"], f"{name} breaks a promise"
    assert {"embed", "model"} <= {each["where"].split()[0] for each in found["rows"]}
    assert "held-out" in found["tried"]


def _header(name: str) -> None:
    head = recipes.header(name)
    assert {"command", "about", "minutes", "score"} <= head.keys()
    assert head["command"].startswith(f"saccade train {name}")
    row = f"| `{name}` | {head['about']} | {head['score']} | {head['minutes']} |"
    assert row in (HERE / "docs" / "recipes.md").read_text().splitlines(), "docs/recipes.md has its measured row"


def _refuses(name: str) -> None:
    wrong = refused("train", name, "-o", "y.nonsense=3", "--run", "runs/wrong")
    assert "y.nonsense" in wrong
    assert not Path("runs/wrong").exists()
    assert "runs/none" in refused("predict", "runs/none", "x")


def test_every_recipe_says_all_keys_of_its_fields():
    for name in recipes.names():
        made = resolved(recipes.recipe(name))
        assert all("kind" in table for table in (*made.x.values(), made.y))
