"""Inputs of another kind: a picture for a run that reads texts, and the reverse, in Python, on the command line, over
the network: one sentence each.
"""

from __future__ import annotations

import base64
import json

import httpx
import numpy as np
import photos
import pytest
import torch
from learn.tiny import classify
from PIL import Image
from serve.small import serving
from typer.testing import CliRunner

import saccade
from saccade import png
from saccade.cli import app
from saccade.recipes.read import from_values

PIXELS = np.zeros((8, 12, 3), np.uint8)
URL = f"data:image/png;base64,{base64.b64encode(png.encode(PIXELS)).decode()}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "a.png").write_bytes(png.encode(PIXELS))
    picture = saccade.train(photos.recipe(photos.photos(folder)), run=folder / "picture")
    text = saccade.train(classify(folder), run=folder / "text")
    return folder, {"picture": picture, "text": text}


@pytest.mark.parametrize("given", [PIXELS, Image.fromarray(PIXELS), b"bytes", 7, None, {"source": "a text"}])
def test_what_is_no_text(runs, given):
    for ask in (runs[1]["text"].predict, runs[1]["text"].look):
        with pytest.raises(saccade.SaccadeError, match="a text was expected"):
            ask(given)


@pytest.mark.parametrize("given", ["a text", b"bytes", 7, None, {"source": PIXELS}])
def test_what_is_no_picture(runs, given):
    for ask in (runs[1]["picture"].predict, runs[1]["picture"].look):
        with pytest.raises(saccade.SaccadeError, match="picture"):
            ask(given)


@pytest.mark.parametrize("command", ["predict", "look"])
def test_on_the_command_line(runs, command):
    folder, _ = runs
    for run, given, told in (("picture", "a text", "reads pictures"), ("text", str(folder / "a.png"), "reads texts")):
        found = CliRunner().invoke(app, [command, str(folder / run), given])
        assert isinstance(found.exception, saccade.SaccadeError)
        assert told in str(found.exception)


def test_a_tensor_is_one_picture(runs):
    assert len(runs[1]["picture"].predict(torch.zeros(8, 12, 3))) == 1
    assert len(runs[1]["picture"].predict([torch.zeros(8, 12, 3)] * 2)) == 2


def test_a_list_of_files_is_read_from_its_own_folder(runs):
    folder, _ = runs
    (folder / "list.txt").write_text("a.png\na.png\n")
    (folder / "wanted.txt").write_text("left\nright\n")
    files = ["--file", str(folder / "list.txt"), "--against", str(folder / "wanted.txt")]
    found = CliRunner().invoke(app, ["evaluate", str(folder / "picture"), *files, "--json"])
    assert json.loads(found.stdout)["metrics"] == {"accuracy": 0.5, "macro_f1": pytest.approx(1 / 3)}


def test_a_size_that_comes_along_with_a_start(runs, tmp_path):
    folder, _ = runs
    made = photos.recipe(folder / "photos")
    values = {**made.model_dump(exclude_none=True), "start": str(folder / "picture")}
    del values["model"]
    begun = from_values(values)
    with pytest.raises(saccade.SaccadeError, match="comes along with the weights of start"):
        saccade.train(begun, run=tmp_path / "run", options=["x.source.embed=patches(2)"])
    run = saccade.train(begun, run=tmp_path / "run")
    assert run.task.x["source"].grid == (2, 3)


@pytest.mark.parametrize("position", ["sinusoid", "rotary", None])
def test_a_picture_and_a_text_are_read_together(tmp_path, position):
    """Positions of the text beside those of the picture: trained, answered alone and in company."""
    where = photos.photos(tmp_path)
    lines = [
        f"{path.relative_to(where)}\tis it {word}?\t{'yes' if word == path.parent.name else 'no'}"
        for path in sorted(where.rglob("*.png"))
        for word in ("left", "right")
    ]
    (where / "asked.tsv").write_text("\n".join(lines) + "\n")
    made = from_values(
        {
            "task": "ask",
            "data": {"files": [str(where / "asked.tsv")], "share": 0.2},
            "x": {
                "picture": {"kind": "image", "embed": "patches(4)"},
                "question": {"tokenizer": "characters", "vocab": 40},
            },
            "y": {"kind": "label"},
            "model": {"width": 16, "heads": 2, "encoder": 1, "position": position},
            "train": {"steps": 4, "every": 2, "batch": 200},
        }
    )
    run = saccade.train(made, run=tmp_path / "run")
    several = [{"picture": PIXELS, "question": each} for each in ("is it left?", "is it")]
    together = run.predict(several)
    for given, found in zip(several, together, strict=True):
        (alone,) = run.predict(given)
        assert alone.value == found.value
        assert alone.score == pytest.approx(found.score, abs=1e-5)
    seen = run.look(several[0])
    assert len(seen.sides["input"]) == 6 + len("is it left?") + 1


def test_over_the_network(runs):
    folder, opened = runs
    wrong = {
        "picture": ["a text", str(folder / "a.png"), 7, {"source": URL}, "http://127.0.0.1:1/a.png"],
        "text": [URL, 7, {"source": "a text"}],
    }
    with serving(opened) as house, httpx.Client(base_url=house.url, timeout=60) as client:
        for run, values in wrong.items():
            for value in values:
                for route, key in (("/v1/predict", "input"), ("/v1/inspect", "input")):
                    answer = client.post(route, json={"model": run, key: value})
                    assert answer.status_code == 400, (route, run, value, answer.text)
                    assert f"this run reads {run}s" in answer.json()["error"]["message"]
        right = client.post("/v1/predict", json={"model": "picture", "input": URL}).json()
        assert right["results"][0]["value"] == opened["picture"].predict(PIXELS)[0].value


def test_a_path_alone_is_never_opened_over_the_network(runs):
    """Not even one that happens to be base64."""
    with serving({"picture": runs[1]["picture"]}) as house, httpx.Client(base_url=house.url) as client:
        answer = client.post("/v1/predict", json={"model": "picture", "input": "etcpasswd/aa"})
        assert answer.status_code == 400
        assert "no picture" in answer.json()["error"]["message"]


def test_what_reads_pictures_is_not_exported_as_what_reads_tokens(runs, tmp_path):
    folder, _ = runs
    found = CliRunner().invoke(app, ["export", str(folder / "picture"), str(tmp_path / "out"), "--format", "hf"])
    assert "no family at Hugging Face can express this model" in str(found.exception)
    assert not (tmp_path / "out").exists()
