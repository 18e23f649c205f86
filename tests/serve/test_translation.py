"""Translations and predictions: what the server says is what the run says."""

from __future__ import annotations

import httpx
import pytest
from architectures import ARCHITECTURES
from small import classifying, events, serving, translating, writing

from saccade.learn.alignment import attends

TEXTS = ["the eye", "a b c, d?", "0123456789 0123456789"]


@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_the_runs_own(client, beam):
    body = {"model": "translator", "text": TEXTS, "beam": beam, "max_tokens": 19}
    found = client.post("/v1/translate", json=body).json()
    expected = translating().predict(TEXTS, beam=beam, max_tokens=19)
    assert found["object"] == "translation"
    assert [each["text"] for each in found["choices"]] == [each.text for each in expected]
    assert [each["score"] for each in found["choices"]] == pytest.approx([each.score for each in expected], abs=1e-3)
    assert found["usage"]["prompt_tokens"] == sum(len(each) + 1 for each in TEXTS)


@pytest.mark.parametrize(
    "names", [("recurrent", "bytenet", "window"), pytest.param(tuple(ARCHITECTURES), marks=pytest.mark.proof)]
)
def test_every_architecture_is_served(names):
    """All at once: each answers as its run does, alone and by a beam, and tells what it looked at if it looks."""
    runs = {name.replace(" ", "-"): translating(**{"position": "sinusoid", **ARCHITECTURES[name]}) for name in names}
    with serving(runs) as made, httpx.Client(base_url=made.url, timeout=60) as client:
        for name, run in runs.items():
            for beam in (1, 3):
                body = {"model": name, "text": TEXTS[:2], "beam": beam, "max_tokens": 7}
                found = client.post("/v1/translate", json=body).json()
                expected = run.predict(TEXTS[:2], beam=beam, max_tokens=7)
                assert [each["text"] for each in found["choices"]] == [each.text for each in expected], name
            body = {"model": name, "text": TEXTS[0], "max_tokens": 7}
            response = client.post("/v1/inspect", json=body)
            assert response.status_code == (200 if attends(run.model) else 400), (name, response.text)


def test_a_translation_is_streamed_word_by_word(client):
    body = {"model": "translator", "text": TEXTS[0], "max_tokens": 13, "stream": True, "logprobs": 2}
    with client.stream("POST", "/v1/translate", json=body) as response:
        pieces = events(response)
    assert {piece["object"] for piece in pieces} == {"translation.chunk"}
    (expected,) = translating().predict(TEXTS[0], max_tokens=13)
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == expected.text
    assert sum(len(piece["choices"][0]["logprobs"]["tokens"]) for piece in pieces) == 13
    assert [piece["choices"][0]["finish_reason"] for piece in pieces] == [None] * (len(pieces) - 1) + ["length"]


def test_streams_tell_what_they_took_if_asked(client):
    told = {"stream": True, "stream_options": {"include_usage": True}}
    body = {"model": "translator", "text": TEXTS[0], "max_tokens": 13, **told}
    with client.stream("POST", "/v1/translate", json=body) as response:
        *_, last = events(response)
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 13)
    body = {"model": "writer", "prompt": "the eye", "max_tokens": 0, "echo": True, "logprobs": 1, **told}
    with client.stream("POST", "/v1/completions", json=body) as response:
        *_, last = events(response)
    assert (last["choices"], last["usage"]["prompt_tokens"]) == ([], 7)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"model": "writer", "text": "a"}, 409, "does not translate"),
        ({"model": "translator", "text": ""}, 400, "empty"),
        ({"model": "translator", "text": []}, 400, "text"),
        ({"model": "translator", "text": ["a"] * 65}, 400, "text"),
        ({"model": "translator", "text": ["a", "b"], "stream": True}, 400, "one text"),
        ({"model": "translator", "text": "a", "stream": True, "beam": 3}, 400, "known only at the end"),
        ({"model": "translator", "text": "a", "beam": 99}, 400, "beam"),
        ({"model": "translator", "text": "a", "beam": 3, "logprobs": 1}, 400, "no logprobs"),
        ({"text": "a"}, 400, "give model"),
        ({"model": "translator"}, 400, "text is missing"),
    ],
)
def test_what_cannot_be_translated_is_refused(client, body, status, said):
    response = client.post("/v1/translate", json=body)
    assert response.status_code == status
    assert said in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("name", "run", "options"),
    [
        ("classifier", classifying, {}),
        ("translator", translating, {"beam": 3, "max_tokens": 11}),
        ("writer", writing, {"temperature": 0.7, "seed": 3, "max_tokens": 11}),
    ],
)
def test_any_run_predicts_as_it_does_in_python(client, name, run, options):
    body = {"model": name, "input": TEXTS, "options": options}
    found = client.post("/v1/predict", json=body).json()["results"]
    expected = run().predict(TEXTS, **options)
    assert [each["text"] for each in found] == [each.text for each in expected]
    assert [each["score"] for each in found] == pytest.approx([each.score for each in expected], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"matching": "(a+)+"}, "matching is not offered"),
        ({"beem": 2}, "did you mean 'beam'"),
        ({"beam": 50}, "beam = 50"),
        ({"max_tokens": 10**9}, "max_tokens"),
        ({"beam": 2, "temperature": 0.5}, "does not know temperature"),
        ({"stop": ["a"] * 99}, "stop"),
    ],
)
def test_options_of_strangers_are_bounded(client, options, said):
    response = client.post("/v1/predict", json={"model": "translator", "input": "a", "options": options})
    assert response.status_code == 400
    assert said in response.json()["error"]["message"]
