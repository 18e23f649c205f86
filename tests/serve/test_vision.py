"""Pictures in a chat, through OpenAI's own client: the label is the message, and what cannot be read is told."""

from __future__ import annotations

import base64
import io
import json

import captions
import httpx
import numpy as np
import openai
import photos
import pytest
from small import serving, writing

import saccade
from saccade import png
from saccade.field import picture

PIXELS = np.random.default_rng(1).integers(0, 256, (8, 12, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vision")
    return saccade.train(photos.recipe(photos.photos(folder)), run=folder / "run")


@pytest.fixture(scope="module")
def captioner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captions")
    return saccade.train(captions.recipe(folder, decode={"beam": 2}), run=folder / "run")


@pytest.fixture(scope="module")
def client(run, captioner):
    with (
        serving({"photos": run, "captions": captioner, "writer": writing()}, media=1 << 21) as house,
        httpx.Client(base_url=house.url, timeout=30) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def ai(client):
    with openai.OpenAI(
        base_url=f"{str(client.base_url).rstrip(chr(47))}/v1", api_key="none", max_retries=0, timeout=30
    ) as made:
        yield made


def url(pixels=PIXELS, share=1.0):
    """A picture as a data: URL; share: how much of its file there is."""
    content = png.encode(pixels)
    return f"data:image/png;base64,{base64.b64encode(content[: int(share * len(content))]).decode()}"


def asked(*addresses, text="What is this?"):
    pictures = [{"type": "image_url", "image_url": {"url": each, "detail": "low"}} for each in addresses]
    return [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": text}, *pictures]},
    ]


def test_the_label_of_a_picture_is_the_message(ai, run, client):
    (expected,) = run.predict(PIXELS)
    found = ai.chat.completions.create(model="photos", messages=asked(url()), max_tokens=7)
    assert (found.choices[0].message.content, found.choices[0].finish_reason) == (expected.text, "stop")
    seen = client.post("/v1/inspect", json={"completion": found.id}).json()
    assert seen["output"] == expected.text, "what was answered can be looked into"
    dark, light = (np.full((8, 12, 3), shade, np.uint8) for shade in (0, 255))
    last = ai.chat.completions.create(model="photos", messages=asked(url(light), url(dark)))
    assert last.choices[0].message.content == run.predict(dark)[0].text


def test_it_is_streamed_as_one_piece(ai, run):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(ai.chat.completions.create(model="photos", messages=asked(url()), **options))
    told = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(each.delta.content or "" for each in told) == run.predict(PIXELS)[0].text
    assert told[-1].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens == 0


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (asked("http://localhost:1/x.png"), "addresses are not fetched"),
        (asked("HTTPS://example.org/x.png"), "addresses are not fetched"),
        (asked("file:///etc/hostname"), "base64"),
        (asked("/etc/hostname"), "base64"),
        (asked("data:text/plain;base64,AAAA"), "data:image/png"),
        (asked("data:image/png;base64,AAAA"), "no picture that can be read"),
        (asked(url(share=0.7)), "whole picture"),
        (asked(), "there is no picture"),
        ([{"role": "user", "content": "a boot"}], "there is no picture"),
        ([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}], "messages"),
    ],
)
def test_what_is_no_picture_is_told_in_one_sentence(client, messages, said):
    response = client.post("/v1/chat/completions", json={"model": "photos", "messages": messages})
    problem = response.json()["error"]
    assert response.status_code == 400
    assert said in problem["message"]
    assert len(problem["message"]) < 400


def test_a_run_that_reads_texts_reads_no_picture(client):
    response = client.post("/v1/chat/completions", json={"model": "writer", "messages": asked(url())})
    assert response.status_code in (400, 409)
    assert "writer" in response.json()["error"]["message"]


def test_several_answers_are_refused(client):
    body = {"model": "photos", "messages": asked(url())}
    for options in ({"n": 2}, {"logprobs": True}):
        assert client.post("/v1/chat/completions", json=body | options).status_code == 400


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/predict"])
def test_pixels_are_counted_before_they_are_decoded(client, monkeypatch, route):
    """A small file that would fill the memory: nobody asks pillow for its pixels."""
    from PIL import Image

    made = io.BytesIO()
    Image.new("1", (5000, 5000)).save(made, "PNG")
    bomb = f"data:image/png;base64,{base64.b64encode(made.getvalue()).decode()}"
    assert 5000 * 5000 > picture.SENT > len(bomb)
    monkeypatch.setattr(picture, "_from_pil", lambda opened: pytest.fail("it was decoded"))
    given = {"messages": asked(bomb)} if "chat" in route else {"input": bomb}
    response = client.post(route, json={"model": "photos", **given})
    assert response.status_code == 400
    assert "5000 x 5000 pixels" in response.json()["error"]["message"]


def test_bytes_are_counted_before_they_are_read(client):
    body = {"model": "photos", "messages": asked("data:image/png;base64," + "A" * (1 << 21))}
    assert client.post("/v1/chat/completions", json=body).status_code == 413


def test_what_is_written_of_a_picture_is_the_message(ai, captioner, client):
    """By the run's own beam; with a word about how tokens are chosen, by that."""
    found = ai.chat.completions.create(model="captions", messages=asked(url()))
    (expected,) = captioner.predict(PIXELS)
    assert found.choices[0].message.content == expected.text
    assert found.usage.completion_tokens > 0
    seen = client.post("/v1/inspect", json={"completion": found.id}).json()
    assert seen["output"] == expected.text, "what was written can be looked into"
    short = ai.chat.completions.create(model="captions", messages=asked(url()), max_tokens=1, temperature=0)
    assert short.choices[0].message.content == captioner.predict(PIXELS, beam=1, max_tokens=1)[0].text
    drawn = [
        ai.chat.completions.create(model="captions", messages=asked(url()), temperature=1.0, seed=4).choices[0]
        for _ in range(2)
    ]
    assert drawn[0].message.content == drawn[1].message.content, "the same seed draws the same"


def test_what_is_written_of_a_picture_is_streamed_token_by_token(ai, captioner, client):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(ai.chat.completions.create(model="captions", messages=asked(url()), **options))
    told = [choice for chunk in chunks for choice in chunk.choices]
    pieces = [each.delta.content for each in told if each.delta.content]
    (expected,) = captioner.predict(PIXELS, beam=1)
    assert "".join(pieces) == expected.text
    assert len(pieces) > 1 or len(expected.text.split()) < 2, "word by word"
    assert told[-1].finish_reason in ("stop", "length")
    assert chunks[-1].usage.completion_tokens > 0
    assert client.post("/v1/inspect", json={"completion": chunks[0].id}).status_code == 200


def test_a_prediction_is_streamed_with_its_probabilities(client, captioner):
    body = {"model": "captions", "input": url(), "stream": True, "logprobs": 3}
    events = [
        json.loads(line.removeprefix("data: "))
        for line in client.post("/v1/predict", json=body).text.splitlines()
        if line.startswith("data: {")
    ]
    choices = [choice for event in events for choice in event["choices"]]
    assert "".join(each["text"] for each in choices) == captioner.predict(PIXELS, beam=1)[0].text
    tokens = [logprob for each in choices for logprob in each["logprobs"]["token_logprobs"]]
    assert tokens
    assert all(each <= 0 for each in tokens)
    seen = client.post("/v1/inspect", json={"completion": events[0]["id"]}).json()
    assert [layer["kind"] for layer in seen["layers"]].count("cross") == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"model": "photos", "stream": True}, "says all at once"),
        ({"model": "captions", "logprobs": 2}, "stream"),
        ({"model": "captions", "stream": True, "input": [url(), url()]}, "one input is streamed"),
        ({"model": "captions", "stream": True, "input": "/etc/hostname"}, "base64"),
    ],
)
def test_a_stream_that_cannot_be_is_told(client, body, said):
    response = client.post("/v1/predict", json={"input": url(), **body})
    assert response.status_code == 400
    assert said in response.json()["error"]["message"]
