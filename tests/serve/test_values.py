"""Values of any kind over HTTP: what a run's X cannot read is refused in one sentence, and nothing is a path."""

from __future__ import annotations

import os

import httpx
import numpy as np
import pytest
from dots import Dots, captioning, labelling
from small import classifying, serving, text, translating, writing

from saccade.field.text.text import Text
from saccade.look.chart import heat
from saccade.look.renderer import RENDERERS, Renderer
from saccade.look.thumb import SmallMatrix
from saccade.serve.limit import Limits
from saccade.serve.predict import as_plain
from saccade.serve.served import InputReader
from saccade.task.task import Task

PICTURE = "data:image/png;base64,iVBORw0KGgo="
RUNS = {"translator": translating, "classifier": classifying, "writer": writing}


def refused(response, said: str = "give a string") -> str:
    """The one sentence of a refusal."""
    assert response.status_code == 400, response.text
    message = response.json()["error"]["message"]
    assert said in message
    assert len(message) <= 400
    return message


@pytest.mark.parametrize("value", [5, None, 1.5, True, {"source": "the eye"}, [["the", "eye"]], [5], ["a", {}]])
@pytest.mark.parametrize("name", RUNS)
def test_a_text_run_reads_strings_alone(client, name, value):
    refused(client.post("/v1/predict", json={"model": name, "input": value}))
    one = value[-1] if isinstance(value, list) else value
    if one is not None:
        refused(client.post("/v1/inspect", json={"model": name, "input": one}))


@pytest.mark.parametrize("name", ["translator", "classifier"])
def test_a_picture_is_no_text(client, name):
    refused(client.post("/v1/predict", json={"model": name, "input": PICTURE}))
    refused(client.post("/v1/inspect", json={"model": name, "input": PICTURE}))
    refused(client.post("/v1/inspect", json={"model": name, "text": PICTURE}))


def test_inputs_are_counted(client):
    for inputs in ([], ["a"] * 65):
        refused(client.post("/v1/predict", json={"model": "classifier", "input": inputs}), "1 to 64")
    refused(client.post("/v1/predict", json={"model": "classifier"}), "input is missing")
    body = {"model": "classifier", "input": "a", "text": "a"}
    refused(client.post("/v1/inspect", json=body), "give one of text or input")


@pytest.mark.parametrize("name", RUNS)
def test_a_path_is_a_text_like_any_other(client, tmp_path, monkeypatch, name):
    """The file is a pipe into which nobody writes: whoever opened it would wait for ever."""
    monkeypatch.chdir(tmp_path)
    path = "pipe.txt"
    os.mkfifo(path)
    options = {} if name == "classifier" else {"max_tokens": 5}
    body = {"model": name, "input": path}
    (found,) = client.post("/v1/predict", json=body | ({"options": options} if options else {})).json()["results"]
    assert found["text"] == RUNS[name]().predict([path], **options)[0].text
    for given in ({"text": path}, {"input": path}):
        seen = client.post("/v1/inspect", json={"model": name, **given, "max_tokens": 2}).json()
        assert seen["sides"]["source" if name == "translator" else "text"]["text"].startswith(path)
    body = {"translator": {"text": path}, "writer": {"prompt": path}}.get(name)
    if body is not None:
        route = "translate" if name == "translator" else "completions"
        assert client.post(f"/v1/{route}", json={"model": name, "max_tokens": 2, **body}).status_code == 200


def test_what_was_classified_is_looked_into_by_its_id(client):
    inputs = ["the eye", "", "a b"]
    answer = client.post("/v1/predict", json={"model": "classifier", "input": inputs}).json()
    for choice in (0, 2):
        seen = client.post("/v1/inspect", json={"completion": answer["id"], "choice": choice}).json()
        own = client.post("/v1/inspect", json={"model": "classifier", "text": inputs[choice]}).json()
        assert seen["output"] == answer["results"][choice]["text"] == answer["results"][choice]["value"]
        assert {**seen, "id": ""} == {**own, "id": ""}
    for number in (0, 2):
        chances = answer["results"][number]["probabilities"]
        assert set(chances) == {"bad", "good", "odd"}
        assert max(chances, key=chances.get) == answer["results"][number]["text"]
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
    assert answer["results"][1] == {
        "text": "",
        "score": 0.0,
        "note": "empty: there is nothing to classify",
        "value": None,
    }
    refused(client.post("/v1/inspect", json={"completion": answer["id"], "choice": 1}), "empty")
    assert client.post("/v1/inspect", json={"completion": answer["id"], "choice": 3}).status_code == 404


def test_results_are_counted_alike_where_some_are_written(client):
    """The choice of an answer is the number of its input, also behind one that has none."""
    body = {"model": "writer", "input": ["", "the eye"], "options": {"max_tokens": 5}}
    answer = client.post("/v1/predict", json=body).json()
    assert answer["results"][1]["value"] == answer["results"][1]["text"]
    refused(client.post("/v1/inspect", json={"completion": answer["id"]}), "empty")
    seen = client.post("/v1/inspect", json={"completion": answer["id"], "choice": 1}).json()
    assert seen["output"] == answer["results"][1]["text"]


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("writer", ("/v1/completions", "prompt", True, True, ["max_tokens", "temperature", "seed"])),
        ("translator", ("/v1/translate", "text", True, False, [])),
        ("classifier", ("/v1/predict", "input", False, False, [])),
    ],
)
def test_a_run_tells_how_it_is_asked(client, name, asks):
    about = client.get(f"/v1/models/{name}").json()["saccade"]
    found = about["asks"]
    assert tuple(found[key] for key in ("route", "field", "streams", "continues", "options")) == asks
    assert found["line"] is not found["continues"]
    words = {
        "writer": ("A text to go on from", "goes on with texts"),
        "translator": ("A text to translate", "translates"),
        "classifier": ("A text to classify", "classifies"),
    }
    assert (found["inputs"][0]["label"], found["does"]) == words[name]
    known = [{"name": "source", "kind": "text", "unit": "tokens", "limit": None}]
    assert about["x"] == ([] if name == "writer" else known)
    assert about["y"] == ("label" if name == "classifier" else "text")


INPUTS = ["the eye", "", "a b", "x" * 400]  # one is empty, and one longer than the writer has positions for
FULL = [each for each in INPUTS if each]  # of an X, one that is blank is not read at all
FEW = {"max_tokens": 3}


@pytest.mark.parametrize(
    ("route", "body", "texts"),
    [
        ("translate", {"model": "translator", "text": ["the eye", "a b"], **FEW}, ["the eye", "a b"]),
        ("translate", {"model": "translator", "text": "the eye", "stream": True, **FEW}, ["the eye"]),
        ("completions", {"model": "writer", "prompt": ["the eye", "a b"], "n": 2, **FEW}, ["the eye", "a b"]),
        ("completions", {"model": "writer", "prompt": "a b", "echo": True, "logprobs": 2, **FEW}, ["a b"]),
        ("chat/completions", {"model": "chatter", "messages": [{"role": "user", "content": "hi"}], **FEW}, None),
        ("predict", {"model": "writer", "input": INPUTS, "options": FEW}, INPUTS),
        ("predict", {"model": "translator", "input": INPUTS, "options": FEW}, FULL),
        ("predict", {"model": "classifier", "input": INPUTS}, FULL),
        ("inspect", {"model": "translator", "text": "the eye", **FEW}, ["the eye"]),
        ("inspect", {"model": "writer", "text": "the eye", **FEW}, ["the eye"]),
        ("inspect", {"model": "writer", "text": "the eye"}, ["the eye"]),
        ("inspect", {"model": "classifier", "text": "the eye"}, ["the eye"]),
    ],
)
def test_each_text_of_a_request_is_encoded_once(client, monkeypatch, route, body, texts):
    encode, encoded = Text.encode, []
    monkeypatch.setattr(Text, "encode", lambda self, texts: (encoded.extend(texts), encode(self, texts))[1])
    response = client.post(f"/v1/{route}", json=body)
    assert response.status_code == 200, response.text
    assert encoded == (texts or ["|user: hi\n|"])
    answer = None if body.get("stream") or route == "inspect" else response.json()["id"]
    if answer is not None:  # what was read is looked into without reading it again
        assert client.post("/v1/inspect", json={"completion": answer}).status_code == 200
        assert len(encoded) == len(texts or [1])


@pytest.fixture(scope="module")
def dotted():
    runs = {"labeller": labelling(), "captioner": captioning(), "writer": writing()}
    with serving(runs, body=10_007, media=40_009) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        yield client


def test_values_that_are_no_text_are_decoded_by_their_field(dotted):
    body = {"model": "labeller", "input": [[1, 2, 3], [6], [], [1] * 6]}
    answer = dotted.post("/v1/predict", json=body).json()
    expected = labelling().predict([[1, 2, 3], [6]])
    assert [each["value"] for each in answer["results"]] == [*(each.text for each in expected), None, None]
    notes = [each["note"] for each in answer["results"]]
    assert notes[2:] == ["empty: there is nothing to classify", "too long: 6 dots, and the model was made for 5"]
    for wrong in ("1,2", [[7]], {"row": [1]}, [1, 2]):
        refused(dotted.post("/v1/predict", json={"model": "labeller", "input": wrong}), "give a list of shades")


def test_dots_are_looked_into_with_their_places(dotted):
    answer = dotted.post("/v1/predict", json={"model": "labeller", "input": [[1, 2, 3]]}).json()
    by_id = dotted.post("/v1/inspect", json={"completion": answer["id"]}).json()
    seen = dotted.post("/v1/inspect", json={"model": "labeller", "input": [1, 2, 3]}).json()
    assert {**seen, "id": ""} == {**by_id, "id": ""}
    (side,) = seen["sides"].values()
    assert (side["kind"], side["grid"], side["text"]) == ("dots", [1, 3], "")
    assert side["tokens"][1]["place"] == pytest.approx([1 / 3, 0, 1 / 3, 1])
    assert seen["output"] == answer["results"][0]["text"]


def test_a_renderer_draws_the_maps_of_its_kind(dotted, monkeypatch):
    asked = []

    def render(look, excerpt, kind):
        asked.append((excerpt.head, kind))
        return heat(excerpt.map(look), title="dots as dots are drawn")

    monkeypatch.setitem(RENDERERS, "dots", Renderer(render, SmallMatrix))
    for name, drawn in (("labeller", 1), ("writer", 0)):
        given = {"input": "the eye" if name == "writer" else [1, 2]}
        seen = dotted.post("/v1/inspect", json={"model": name, **given}).json()
        for kind in ("svg", "html"):
            response = dotted.get(f"/v1/inspect/{seen['id']}/picture", params={"format": kind, "head": 1})
            assert response.text.count("dots as dots are drawn") >= drawn
            assert drawn or "dots as dots" not in response.text
        assert dotted.get(f"/v1/inspect/{seen['id']}/picture", params={"format": "csv"}).status_code == 200
    assert asked == [("1", "svg"), ("1", "html")]


def test_a_text_is_written_of_what_is_none(dotted):
    body = {"model": "captioner", "input": [[1, 2, 3], [4, 4]], "options": {"max_tokens": 6}}
    answer = dotted.post("/v1/predict", json=body).json()
    expected = captioning().predict([[1, 2, 3], [4, 4]], max_tokens=6)
    assert [each["text"] for each in answer["results"]] == [each.text for each in expected]
    seen = dotted.post("/v1/inspect", json={"completion": answer["id"], "choice": 1}).json()
    assert list(seen["sides"]) == ["row", "target", "written"]
    assert [side["kind"] for side in seen["sides"].values()] == ["dots", "words", "words"]
    assert seen["output"] == expected[1].text
    for route, given in (("translate", {"text": "a"}), ("completions", {"prompt": "a"})):
        response = dotted.post(f"/v1/{route}", json={"model": "captioner", **given})
        assert response.status_code == 409
        assert "/v1/predict" in response.json()["error"]["message"]
    asks = dotted.get("/v1/models/captioner").json()["saccade"]["asks"]
    assert (asks["route"], asks["streams"], asks["inputs"][0]["kind"]) == ("/v1/predict", True, "dots")


def test_a_run_that_reads_more_than_texts_has_room_for_it(dotted):
    def ask(size: int) -> int:
        return dotted.post("/v1/predict", json={"model": "labeller", "input": "x" * size}).status_code

    assert (ask(20_000), ask(40_000)) == (400, 413)
    with serving({"run": writing()}, body=10_007, media=40_009) as made:
        body = {"input": "x" * 20_000}
        assert httpx.post(f"{made.url}/v1/predict", json=body).status_code == 413


def test_several_inputs_are_given_by_name():
    run = labelling()
    source = classifying().task.x["source"]
    run.__dict__["task"] = Task("answer", {"row": Dots(), "question": source}, "label", run.task.y)
    inputs = InputReader(run.task, run.model, Limits())
    assert inputs.received({"question": "what?", "row": [1]}) == {"row": [1], "question": "what?"}
    for wrong, said in (
        ({"row": [1]}, "question is missing"),
        ({"row": [1], "question": 5}, "give a string"),
        ({"row": [1], "qestion": "a", "question": "b"}, "did you mean 'question'"),
        ("what?", "by name"),
    ):
        with pytest.raises(Exception, match=said) as problem:
            inputs.received(wrong)
        assert problem.value.status == 400


def test_json_tells_what_it_can():
    assert as_plain("the eye") == "the eye"
    assert as_plain(np.array([[1.5, np.nan], [2, np.inf]])) == [[1.5, None], [2.0, None]]
    assert as_plain({"boxes": [np.float32(1), (2, None)], 3: True}) == {"boxes": [1.0, [2, None]], "3": True}
    assert as_plain(object()) is None
    assert as_plain(text()) is None


@pytest.mark.parametrize("name", ["classifier", "translator"])
@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_input_is_refused_where_it_is_the_only_one(client, name, blank):
    body = {"model": name, "input": blank}
    refused(client.post("/v1/predict", json=body), "this text is empty: there is nothing to")
    several = client.post("/v1/predict", json={**body, "input": ["the eye", blank]}).json()["results"]
    assert several[0]["note"] is None
    assert several[1]["note"].startswith("empty: there is nothing to")
    if name == "translator":
        refused(client.post("/v1/translate", json={"model": name, "text": blank}), "this text is empty")
