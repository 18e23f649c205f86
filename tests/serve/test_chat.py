"""Chats through OpenAI's own client, and their templates."""

from __future__ import annotations

import time

import openai
import pytest
from small import text, writing

import saccade
from saccade.error import SaccadeError
from saccade.serve.refusal import Refusal
from saccade.serve.template import Template, template_of

LENGTH = 7
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "who are you?"}]
SHOWN = "|system: be brief\n|user: who are you?\n|"


@pytest.fixture(scope="module")
def ai(house):
    with openai.OpenAI(base_url=f"{house.url}/v1", api_key="none", max_retries=0, timeout=30) as made:
        yield made


def expected(**options: object) -> str:
    field = text()
    (found,) = saccade.generate(writing().model, field.encode([SHOWN]), max_tokens=LENGTH, text=field, **options)
    return found.text


def test_a_chat_goes_on_from_its_template(ai):
    found = ai.chat.completions.create(model="chatter", messages=MESSAGES, max_tokens=LENGTH)
    assert found.choices[0].message.content == expected()
    assert found.choices[0].message.role == "assistant"
    assert found.usage.prompt_tokens == len(SHOWN)
    again = ai.chat.completions.create(model="chatter", messages=MESSAGES, max_completion_tokens=LENGTH)
    assert again.choices[0].message.content == expected()


def test_a_streamed_chat_says_who_speaks_first(ai):
    options = {"stream": True, "stream_options": {"include_usage": True}, "temperature": 0.8, "seed": 3}
    chunks = list(ai.chat.completions.create(model="chatter", messages=MESSAGES, max_tokens=LENGTH, **options))
    assert chunks[0].choices[0].delta.role == "assistant"
    told = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in told) == expected(temperature=0.8, seed=3)
    assert told[-1].finish_reason == "length"
    assert chunks[-1].usage.completion_tokens == LENGTH


def test_logprobs_of_a_chat_have_their_bytes(ai):
    options = {"logprobs": True, "top_logprobs": 2, "n": 2, "temperature": 0.5, "seed": 1}
    found = ai.chat.completions.create(model="chatter", messages=MESSAGES, max_tokens=LENGTH, **options)
    assert len(found.choices) == 2
    content = found.choices[1].logprobs.content
    assert "".join(each.token for each in content) == found.choices[1].message.content
    assert bytes(content[0].bytes).decode() == content[0].token
    assert all(len(each.top_logprobs) == 2 for each in content)
    assert content[0].logprob <= content[0].top_logprobs[0].logprob


def test_parts_of_text_are_one_text(ai):
    parts = [{"role": "user", "content": [{"type": "text", "text": "who "}, {"type": "text", "text": "are you?"}]}]
    found = ai.chat.completions.create(model="chatter", messages=[MESSAGES[0], *parts], max_tokens=LENGTH)
    assert found.choices[0].message.content == expected()
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]
    with pytest.raises(openai.BadRequestError, match="chatter reads texts"):
        ai.chat.completions.create(model="chatter", messages=picture)


def test_what_a_template_refuses_is_told(ai):
    with pytest.raises(openai.BadRequestError, match="no fools here"):
        ai.chat.completions.create(model="chatter", messages=[{"role": "fool", "content": "x"}])


def test_a_run_without_a_template_does_not_chat(ai):
    with pytest.raises(openai.ConflictError, match="no chat template: use /v1/completions"):
        ai.chat.completions.create(model="writer", messages=MESSAGES)


def test_tools_are_refused(ai):
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with pytest.raises(openai.BadRequestError, match="tools is not offered"):
        ai.chat.completions.create(model="chatter", messages=MESSAGES, tools=[tool])


GREEDY = {
    "loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = 1 %}{% endfor %}{% endfor %}",
    "output": "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
    "product": "{{ 'x' * 10000000000 }}",
    "product of products": "{% set x = 'x' * 100000 %}{{ x * 100000 }}",
    "replace": "{% set x = 'x' * 1000000 %}{{ x | replace('x', x) }}{{ x.replace('x', x) }}",
    "join": "{% set x = 'x' * 1000000 %}{{ ([x] * 1000) | join(x) }}",
    "concatenation": "{% set n = namespace(x='xx') %}{% for i in range(21) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "list": "{{ [0] * 10000000000 }}",
    "power": "{{ 9 ** 9 ** 9 }}",
    "center": "{{ 'x' | center(10000000000) }}",
    "method": "{{ 'x'.ljust(10000000000) }}",
    "format": "{{ '%10000000000d' % 1 }}",
    "range": "{{ range(10000000000) | list }}",
    "indent": "{{ [1] | tojson(indent=10000000000) }}{{ 1 / 0 }}",
    "attribute": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "file": "{% include '/etc/passwd' %}",
    "change": "{{ messages.append(1) }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
}


@pytest.mark.parametrize("name", GREEDY)
def test_a_template_that_takes_too_much_is_stopped(name):
    made = Template(GREEDY[name], {}, seconds=0.3)
    begin = time.monotonic()
    with pytest.raises(Refusal) as problem:
        made.render([{"role": "user", "content": "x"}])
    assert problem.value.status == 400
    assert len(problem.value.message) <= 400
    assert time.monotonic() - begin < 3


def test_a_template_puts_texts_together():
    made = Template("{{ 'a' ~ 1 ~ messages[0].role ~ missing ~ ('b' ~ 2.5) }}", {}, seconds=0.3)
    assert made.render([{"role": "user", "content": "x"}]) == "a1userb2.5"


def test_a_template_is_found_where_checkpoints_keep_it():
    files = {"tokenizer_config.json": b'{"chat_template": "{{ eos_token }}!", "eos_token": {"content": "</s>"}}'}
    assert template_of(files, 1.0).render([]) == "</s>!"
    assert template_of(files, 1.0).end == "</s>"
    several = b'{"chat_template": [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]}'
    assert template_of({"tokenizer_config.json": several}, 1.0).render([]) == "d"
    assert template_of({**files, "chat_template.jinja": b"own"}, 1.0).render([]) == "own"
    assert template_of({}, 1.0) is None
    with pytest.raises(SaccadeError, match="chat template cannot be read"):
        template_of({"chat_template.jinja": b"{% if %}"}, 1.0)
