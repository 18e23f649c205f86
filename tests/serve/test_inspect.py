"""Inspections over HTTP: the same numbers as in Python, one map at a time, in a bounded memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small import classifying, serving, translating, wait_for, writing

from saccade.look.look import look_at

CROSS = "decoder.blocks.1.cross"


def inspect(client, **body):
    response = client.post("/v1/inspect", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def cells(response) -> np.ndarray:
    assert response.status_code == 200, response.text
    shape = [int(each) for each in response.headers["x-shape"].split(",")]
    if response.headers["x-type"] == "float16":
        return np.frombuffer(response.content, "<f2").reshape(shape).astype(np.float32)
    return np.frombuffer(response.content, np.uint8).reshape(shape) * (float(response.headers["x-scale"]) / 255)


@pytest.fixture(scope="module")
def seen(client):
    return inspect(client, model="translator", text="the eye, ok", max_tokens=5)


def test_the_description_is_small_and_says_what_there_is(seen):
    assert seen["object"] == "inspection"
    assert list(seen["sides"]) == ["source", "target", "written"]
    assert "".join(each["text"] for each in seen["sides"]["written"]["tokens"]) == seen["output"]
    assert all(token["logprob"] <= token["top"][0][2] for token in seen["sides"]["written"]["tokens"])
    assert [layer["name"] for layer in seen["layers"]][-1] == CROSS
    assert all(len(layer["heads"]) == 3 for layer in seen["layers"])
    assert seen["matters"] == "the log-probability of the 5 tokens written"


@pytest.mark.parametrize("kind", ["uint8", "float16"])
def test_a_map_is_the_one_of_python(client, seen, kind):
    run = translating()
    shown = run.task.answer.example(run.model, "the eye, ok", run.decode(), target=seen["output"])
    own = look_at(run.task, run.model, shown._replace(ended=False)).map(CROSS, 1, rows=(0, 3), hide=["special"])
    options = {"layer": CROSS, "head": "1", "rows": "0:3", "hide": "special", "type": kind}
    response = client.get(f"/v1/inspect/{seen['id']}/map", params=options)
    np.testing.assert_allclose(cells(response), own.values.numpy(), atol=1 / 255 if kind == "uint8" else 1e-3)
    assert json.loads(response.headers["x-rows"]) == own.row_places
    assert json.loads(response.headers["x-columns"]) == own.column_places


def test_a_map_is_no_larger_than_asked_for(client, seen):
    for layer in ("alignment", "rollout:encoder", "encoder.blocks.0.attention"):
        response = client.get(f"/v1/inspect/{seen['id']}/map", params={"layer": layer, "size": 4, "words": "true"})
        assert max(cells(response).shape) <= 4


def test_a_pair_and_an_ablation_add_up(client, seen):
    options = {"layer": CROSS, "head": 2, "row": 1, "column": 3}
    pair = client.get(f"/v1/inspect/{seen['id']}/pair", params=options).json()
    assert sum(pair["products"]) == pytest.approx(pair["dot"], abs=1e-4)
    whole = client.get(f"/v1/inspect/{seen['id']}/map", params={"layer": CROSS, "head": "2", "type": "float16"})
    assert cells(whole)[1, 3] == pytest.approx(pair["weight"], abs=1e-3)
    found = client.get(f"/v1/inspect/{seen['id']}/ablation", params={"layer": CROSS}).json()
    assert found["before"] == pytest.approx(
        sum(each["logprob"] for each in seen["sides"]["written"]["tokens"]), abs=1e-3
    )
    assert len(found["heads"]) == 3


@pytest.mark.parametrize(
    ("kind", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!"), ("csv", b""), ("npz", b"PK")]
)
def test_a_picture_is_a_file(client, seen, kind, begin):
    response = client.get(f"/v1/inspect/{seen['id']}/picture", params={"layer": CROSS, "format": kind})
    assert response.status_code == 200
    assert response.content.lstrip().lower().startswith(begin.lower())
    assert f'filename="map.{kind}"' in response.headers["content-disposition"]


@pytest.mark.parametrize("route", ["completions", "translate", "predict", "chat/completions"])
def test_an_answer_can_be_looked_into_by_its_id(client, route):
    bodies = {
        "completions": {"model": "writer", "prompt": "the eye", "max_tokens": 5},
        "translate": {"model": "translator", "text": "the eye", "beam": 2, "max_tokens": 5},
        "predict": {"model": "writer", "input": "the eye", "options": {"max_tokens": 5}},
        "chat/completions": {
            "model": "chatter",
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": 5,
            "n": 2,
            "temperature": 1,
        },
    }
    answer = client.post(f"/v1/{route}", json=bodies[route]).json()
    found = inspect(client, completion=answer["id"])
    if "results" in answer:
        said = answer["results"][0]["text"]
    else:
        choice = answer["choices"][-1]
        said = choice["message"]["content"] if "message" in choice else choice["text"]
        found = inspect(client, completion=answer["id"], choice=len(answer["choices"]) - 1)
    assert found["output"] == said


def test_a_stop_string_is_no_end(client):
    body = {"model": "writer", "prompt": "the eye", "max_tokens": 9}
    free = client.post("/v1/completions", json=body).json()["choices"][0]["text"]
    answer = client.post("/v1/completions", json={**body, "stop": free[3]}).json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    tokens = inspect(client, completion=answer["id"])["sides"]["text"]["tokens"]
    assert not any(token["special"] for token in tokens)
    assert len(tokens) == 7 + 1 + free.index(free[3])


def test_a_decoders_text_goes_on_as_far_as_asked(client):
    given = inspect(client, model="writer", text="the eye")
    assert (given["begun"], len(given["sides"]["text"]["tokens"]), given["output"]) == (7, 7, "")
    more = inspect(client, model="writer", text="the eye", max_tokens=4)
    assert (more["begun"], len(more["sides"]["text"]["tokens"])) == (7, 11)
    assert "logprob" not in more["sides"]["text"]["tokens"][0]
    assert more["output"] == writing().predict("the eye", max_tokens=4)[0].text


def test_another_token_makes_another_text(client):
    seen = inspect(client, model="writer", text="the eye", max_tokens=4)
    side = seen["sides"]["text"]
    assert side["text"] == "the eye" + seen["output"]
    token = side["tokens"][9]["top"][1]
    response = client.get(f"/v1/inspect/{seen['id']}/instead", params={"place": 9, "token": token[0]})
    assert response.json() == {"text": side["text"][:9] + token[1]}
    for place, token in ((11, 7), (9, 10**20), (-1, 7), (3, 2)):
        response = client.get(f"/v1/inspect/{seen['id']}/instead", params={"place": place, "token": token})
        assert response.status_code == 400, response.text


def test_a_classifier_names_its_label(client):
    found = inspect(client, model="classifier", text="the eye")
    assert found["output"] == classifying().predict("the eye")[0].text
    assert found["matters"] == f"the log-probability of the label {found['output']!r}"


def test_the_same_tokens_go_through_another_run(client):
    first = inspect(client, model="writer", text="the eye")
    again = inspect(client, like=first["id"], model="chatter")
    assert again["sides"]["text"]["words"] == first["sides"]["text"]["words"]
    assert again["model"] == "chatter"


def test_a_snapshot_is_looked_into(tmp_path):
    import httpx
    from safetensors.torch import save_file

    from saccade.store.load import load

    writing().save(tmp_path / "run")
    other = writing()
    with __import__("torch").no_grad():
        for each in other.model.parameters():
            each.mul_(0.5)
    (tmp_path / "run" / "snapshots").mkdir()
    save_file(dict(other.model.named_parameters()), tmp_path / "run" / "snapshots" / "step-17.safetensors")
    with serving({"run": load(tmp_path / "run")}) as made, httpx.Client(base_url=made.url) as client:
        now = inspect(client, text="the eye")
        then = inspect(client, like=now["id"], step=17)
        assert (now["step"], then["step"]) == (0, 17)
        assert now["layers"] != then["layers"]
        assert client.post("/v1/inspect", json={"like": now["id"], "step": 18}).status_code == 400
        assert client.get("/v1/models").json()["data"][0]["saccade"]["snapshots"] == [17]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"model": "writer"}, 400),
        ({"model": "writer", "text": ""}, 400),
        ({"model": "writer", "text": "a", "completion": "cmpl-1"}, 400),
        ({"completion": "cmpl-1"}, 404),
        ({"like": "look-1"}, 404),
        ({"text": "a"}, 400),
        ({"model": "writer", "text": "a", "step": 3}, 400),
        ({"model": "classifier", "text": "a", "target": "b"}, 409),
    ],
)
def test_what_cannot_be_looked_into_is_refused(client, body, status):
    response = client.post("/v1/inspect", json=body)
    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    "address",
    [
        "map?layer=nothing",
        "map?head=77",
        "map?head=some",
        "map?rows=5",
        "map?rows=9:3",
        "map?rows=-1:3",
        "map?size=0",
        "map?size=99999",
        "map?type=float64",
        "map?hide=everything",
        "picture?format=exe",
        "pair?layer=decoder.blocks.1.cross&head=0&row=999&column=0",
        "pair?layer=decoder.blocks.1.cross&head=-1&row=0&column=0",
        "pair",
        "ablation?layer=alignment",
    ],
)
def test_what_is_not_there_is_told(client, seen, address):
    response = client.get(f"/v1/inspect/{seen['id']}/{address}")
    assert response.status_code == 400, response.text
    assert len(response.json()["error"]["message"]) <= 400


def test_the_oldest_inspections_are_forgotten(client, house):
    import httpx

    with serving({"run": writing()}, looks=3) as made, httpx.Client(base_url=made.url) as other:
        names = [inspect(other, text="the eye")["id"] for _ in range(5)]
        kept = [other.get(f"/v1/inspect/{name}/map").status_code for name in names]
        assert kept == [404, 404, 200, 200, 200]
        assert other.delete(f"/v1/inspect/{names[4]}").json()["deleted"]
        assert other.get(f"/v1/inspect/{names[4]}/map").status_code == 404
        assert len(made.server.inspector.looks) == 2
        for name in names[2:4]:
            other.delete(f"/v1/inspect/{name}")
        assert made.server.inspector.looks.nbytes == 0


def test_the_memory_of_inspections_is_bounded():
    import httpx

    with serving({"run": writing()}, look_bytes=100_000) as made, httpx.Client(base_url=made.url) as other:
        for _ in range(8):
            inspect(other, text="the eye " * 8)
        assert 0 < made.server.inspector.looks.nbytes <= 100_000
        assert other.post("/v1/inspect", json={"text": "a" * 300}).status_code == 400
        assert other.post("/v1/inspect", json={"text": "a" * 3000}).status_code == 400


@pytest.mark.proof
def test_looking_disturbs_nobody_who_writes(client, house):
    """Inspections run beside a stream; what it writes is the same as alone."""
    body = {"model": "writer", "prompt": "the eye", "max_tokens": 200, "temperature": 0.9, "seed": 11}
    alone = client.post("/v1/completions", json=body).json()["choices"][0]["text"]
    pieces = []
    with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as response:
        for line in response.iter_lines():
            if len(pieces) % 20 == 3:
                inspect(client, model="writer", text="look at this " * 9)
            if line.startswith("data: {"):
                pieces.append(json.loads(line[6:])["choices"][0]["text"])
    assert "".join(pieces) == alone
    assert not any(each.watchers for each in house.server.served["writer"].model.modules() if hasattr(each, "watchers"))
    wait_for(lambda: house.server.served["writer"].engine.load == 0)
