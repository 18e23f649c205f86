"""What `/v1/models` says of a run: as one of OpenAI's models, with what a page or a program needs to know to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.decode.quantise import parameters_of
from saccade.serve.opened import Opened

SAMPLE = 200  # characters of a text that is offered as an example
# The name of the input, and the options, that the routes take which are made for one manner of answer.
ROUTES = {"/v1/completions": ("prompt", ["max_tokens", "temperature", "seed"]), "/v1/translate": ("text", [])}


def about(opened: Opened) -> dict[str, Any]:
    """The run as one of OpenAI's models; `saccade` says what else there is to know."""
    model, run, task = opened.model, opened.run, opened.task
    config, limits = model.config, task.limits(model)
    found = {
        "task": task.verb,
        "step": run.step,
        "family": run.family,
        "parameters": parameters_of(model),
        "quantised": run.quantised,
        "encoder": config.encoder,
        "decoder": config.decoder,
        "width": config.width,
        "heads": config.heads,
        "vocab": None if task.text is None else task.text.vocab,
        "room": model.room,
        "snapshots": run.snapshots,
        "samples": _samples(opened),
        "decode": opened.decode.model_dump(exclude_none=True),
        "x": [
            {"name": name, "kind": each.kind, "unit": each.unit, "limit": limits[name]} for name, each in task.x.items()
        ],
        "y": None if task.y is None else task.y.kind,
        "asks": asks(opened),
    }
    return {"id": opened.name, "object": "model", "created": opened.created, "owned_by": "saccade", "saccade": found}


def asks(opened: Opened) -> dict[str, Any] | None:
    """How a run is asked: the route and the field of its body, whether the answer is streamed, whether it goes on from
    the input, whether one line is enough, the options it takes, the inputs it wants, and what it does in words. None
    where it says nothing.
    """
    if opened.task.y is None:
        return None
    field, options = ROUTES.get(opened.route, ("input", []))
    return {
        "route": opened.route,
        "field": field,
        "streams": opened.route in ROUTES,
        "continues": opened.continues,
        "line": not opened.continues,
        "options": options,
        "inputs": _inputs(opened),
        "does": _does(opened),
    }


def _inputs(opened: Opened) -> list[dict[str, Any]]:
    """What is asked for: each X, or the beginning of what is written; where there are several, by their names."""
    task = opened.task
    fields: Mapping[str, Any] = task.x or {task.name: task.target}
    if len(fields) > 1:
        return [{"name": name, "kind": each.kind, "label": name.capitalize()} for name, each in fields.items()]
    return [
        {"name": name, "kind": each.kind, "label": f"{_article(each.noun)} {each.noun} to {task.asks}"}
        for name, each in fields.items()
    ]


def _samples(opened: Opened) -> list[str]:
    """Inputs to try: the beginnings of texts, and all of what cannot be cut."""
    fields = list((opened.task.x or opened.task.fields).values())
    whole = len(fields) > 1 or fields[0].text is None
    return [each if whole else each[:SAMPLE] for each in opened.run.samples]


def _does(opened: Opened) -> str:
    """What a run does: goes on with texts, translates, classifies."""
    task = opened.task
    if opened.continues:
        return f"goes on with {task.target.noun}s"
    return f"{task.asks[:-1]}ies" if task.asks.endswith("y") else f"{task.asks}s"


def _article(noun: str) -> str:
    return "An" if noun[0] in "aeiou" else "A"
