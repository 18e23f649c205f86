"""Completions through OpenAI's own client, and by hand where it hides something."""

from __future__ import annotations

import openai
import pytest
import torch
from small import events, text, writing

import saccade

LENGTH = 11


@pytest.fixture(scope="module")
def ai(house):
    with openai.OpenAI(base_url=f"{house.url}/v1", api_key="none", max_retries=0, timeout=30) as made:
        yield made


def ours(prompt: str, **options: object) -> list[saccade.Sequence]:
    field = text()
    options = {"max_tokens": LENGTH, "end": field.end, "text": field, **options}
    return saccade.generate(writing().model, field.encode([prompt]), **options)


def test_the_models_are_listed(ai):
    found = {each.id: each for each in ai.models.list()}
    assert set(found) == {"writer", "chatter", "translator", "classifier"}
    assert found["translator"].saccade["task"] == "translate"
    assert ai.models.retrieve("writer").saccade["parameters"] == sum(x.numel() for x in writing().model.parameters())
    with pytest.raises(openai.NotFoundError, match="did you mean 'writer'"):
        ai.models.retrieve("wrtier")


def test_what_is_written_is_what_generate_writes(ai):
    (expected,) = ours("the eye")
    found = ai.completions.create(model="writer", prompt="the eye", max_tokens=LENGTH)
    assert found.object == "text_completion"
    assert found.choices[0].text == expected.text
    assert found.choices[0].finish_reason == "length"
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (7, LENGTH)


def test_a_stream_is_the_same_in_pieces(ai):
    whole = ai.completions.create(model="writer", prompt="the eye", max_tokens=LENGTH, temperature=0.9, seed=5)
    options = {"stream": True, "stream_options": {"include_usage": True}, "temperature": 0.9, "seed": 5}
    chunks = list(ai.completions.create(model="writer", prompt="the eye", max_tokens=LENGTH, **options))
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == whole.choices[0].text
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "length"
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage.completion_tokens == LENGTH
    assert chunks[-1].choices == []
    assert len(chunks) > 3, "pieces come while they are written"


def test_a_seed_says_what_is_written_and_each_choice_has_its_own(ai):
    options = {"model": "writer", "prompt": ["a", "the eye"], "max_tokens": LENGTH, "temperature": 1.1, "n": 3}
    first, again = (ai.completions.create(seed=7, **options) for _ in range(2))
    assert [each.text for each in first.choices] == [each.text for each in again.choices]
    assert [each.index for each in first.choices] == list(range(6))
    expected = ours("the eye", temperature=1.1, seed=7, n=3)[0]
    assert [each.text for each in first.choices[3:]] == [each.text for each in expected]
    assert len({each.text for each in first.choices[3:]}) == 3
    assert first.usage.prompt_tokens == 1 + 7


def test_a_stop_string_ends_a_text_and_is_not_told(ai):
    (free,) = ours("the eye")
    stop = free.text[4:6]
    before = free.text[: free.text.index(stop)]
    options = {"model": "writer", "prompt": "the eye", "max_tokens": LENGTH, "stop": ["#", stop], "logprobs": 0}
    found = ai.completions.create(**options).choices[0]
    assert (found.text, found.finish_reason) == (before, "stop")
    assert "".join(found.logprobs.tokens) == before
    chunks = list(ai.completions.create(stream=True, **options))
    assert "".join(chunk.choices[0].text for chunk in chunks) == before
    assert "".join(token for chunk in chunks for token in chunk.choices[0].logprobs.tokens) == before


def test_logprobs_are_the_models_own(ai):
    (expected,) = ours("the eye", top=3)
    found = ai.completions.create(model="writer", prompt="the eye", max_tokens=LENGTH, logprobs=3).choices[0].logprobs
    assert found.token_logprobs == pytest.approx(expected.logprobs, abs=1e-5)
    assert "".join(found.tokens) == expected.text
    assert found.text_offset == list(range(LENGTH))
    for told, best in zip(found.top_logprobs, expected.top, strict=True):
        assert sorted(told.values())[::-1] == pytest.approx([value for _, value in best], abs=1e-5)


def test_streamed_tokens_come_with_their_alternatives(client):
    body = {"model": "writer", "prompt": "the eye", "max_tokens": LENGTH, "logprobs": 5, "stream": True}
    with client.stream("POST", "/v1/completions", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        pieces = events(response)
    told = [piece["choices"][0]["logprobs"] for piece in pieces]
    assert sum(len(each["tokens"]) for each in told) == LENGTH
    for piece, each in zip(pieces, told, strict=True):
        assert "".join(each["tokens"]) == piece["choices"][0]["text"]
        assert all(len(top) == 5 for top in each["top_logprobs"])


def test_echo_tells_the_prompt_again_and_judges_it(ai):
    options = {"model": "writer", "prompt": "the eye", "logprobs": 2, "echo": True}
    found = ai.completions.create(max_tokens=3, **options).choices[0]
    assert found.text.startswith("the eye")
    assert found.logprobs.token_logprobs[0] is None
    assert found.logprobs.text_offset == list(range(10))
    field = text()
    (tokens,) = field.encode([found.text])
    logits = writing().model(torch.tensor([tokens[:-1]])).log_softmax(-1)[0].detach()
    own = [float(logits[place, token]) for place, token in enumerate(tokens[1:])]
    assert found.logprobs.token_logprobs[1:] == pytest.approx(own, abs=1e-4)
    judged = ai.completions.create(max_tokens=0, **options).choices[0]
    assert judged.text == "the eye"
    assert judged.logprobs.token_logprobs[1:] == pytest.approx(own[:6], abs=1e-4)


def test_a_prompt_may_be_tokens(ai):
    (tokens,) = text().encode(["the eye"])
    texts = [
        ai.completions.create(model="writer", prompt=prompt, max_tokens=LENGTH).choices[-1].text
        for prompt in ("the eye", tokens, [tokens], ["x", "the eye"], [[5], tokens])
    ]
    assert len(set(texts)) == 1


def test_without_max_tokens_the_runs_own_count_as_far_as_there_is_room(ai):
    found = ai.completions.create(model="writer", prompt="a" * 300)
    assert found.usage.completion_tokens <= 8


REFUSED = {
    "prompt": ({"prompt": ""}, "empty"),
    "tokens": ({"prompt": [5, 999]}, "vocabulary"),
    "temperature": ({"temperature": -1}, "temperature"),
    "max_tokens": ({"max_tokens": 100_000}, "max_tokens"),
    "room": ({"prompt": "a" * 299, "max_tokens": 20}, "positions"),
    "n": ({"n": 17}, "n should be 16 or less"),
    "sequences": ({"prompt": ["a"] * 60, "n": 3}, "too many"),
    "logprobs": ({"logprobs": 21}, "logprobs"),
    "stop": ({"stop": [""]}, "stop"),
    "stops": ({"stop": ["a"] * 17}, "stop"),
    "best_of": ({"best_of": 3}, "best_of"),
    "suffix": ({"suffix": "x"}, "suffix is not offered"),
    "logit_bias": ({"extra_body": {"logit_bias": {"5": 1}}}, "logit_bias is not offered"),
    "regex": ({"extra_body": {"matching": "(a+)+"}}, "matching is not offered"),
    "misspelt": ({"extra_body": {"temprature": 1}}, "did you mean 'temperature'"),
    "nothing": ({"max_tokens": 0}, "echo"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(ai, name):
    given, said = REFUSED[name]
    with pytest.raises(openai.BadRequestError) as problem:
        ai.completions.create(**{"model": "writer", "prompt": "the eye", "max_tokens": 3, **given})
    assert said in problem.value.body["message"]
    assert len(problem.value.body["message"]) <= 400


def test_what_changes_nothing_is_passed_over(ai):
    extra = {"store": True, "metadata": {"a": "b"}, "logit_bias": {}, "frequency_penalty": 0, "best_of": 1}
    found = ai.completions.create(model="writer", prompt="the eye", max_tokens=3, user="me", extra_body=extra)
    assert found.choices[0].text == ours("the eye", max_tokens=3)[0].text


def test_a_run_that_does_not_write_says_which_route_does(ai):
    with pytest.raises(openai.ConflictError, match="/v1/translate"):
        ai.completions.create(model="translator", prompt="a")
    with pytest.raises(openai.ConflictError, match="/v1/predict"):
        ai.completions.create(model="classifier", prompt="a")


def test_half_a_character_is_refused_and_not_echoed(client):
    body = b'{"model": "writer", "prompt": "a\\ud800", "max_tokens": 3}'
    response = client.post("/v1/completions", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert "half a character" in response.json()["error"]["message"]
