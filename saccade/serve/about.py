"""What `/v1/models` says of a run: as one of OpenAI's models, with what a page or a program needs to know to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.decode.quantise import parameters_of
from saccade.serve.served import Served

SAMPLE = 200  # characters of a text that is offered as an example
# The name of the input in a route's body, if it is not `input`, and the options that the page offers.
ROUTES = {"/v1/completions": ("prompt", ["max_tokens", "temperature", "seed"]), "/v1/translate": ("text", [])}


def about(served: Served) -> dict[str, Any]:
    """The run as one of OpenAI's models; `saccade` says what else there is to know."""
    model, run, task = served.model, served.run, served.task
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
        "samples": _samples(served),
        "decode": served.decode.model_dump(exclude_none=True),
        "x": [
            {"name": name, "kind": each.kind, "unit": each.unit, "limit": limits[name]} for name, each in task.x.items()
        ],
        "y": None if task.y is None else task.y.kind,
        "asks": asks(served),
    }
    return {"id": served.name, "object": "model", "created": served.created, "owned_by": "saccade", "saccade": found}


def asks(served: Served) -> dict[str, Any] | None:
    """How a run is asked: the route and the field of its body, whether the answer is streamed, whether it goes on from
    the input, whether the input is one line, the options, the inputs, and in words what it does. None where the run
    has no output.
    """
    if served.task.y is None:
        return None
    field, options = ROUTES.get(served.route, ("input", []))
    return {
        "route": served.route,
        "field": field,
        "streams": served.writes,
        "continues": served.continues,
        "line": not served.continues,
        "options": options,
        "inputs": _inputs(served),
        "does": _does(served),
    }


def _inputs(served: Served) -> list[dict[str, Any]]:
    """What is asked for: each X, or the beginning of what is written; where there are several, by their names."""
    task = served.task
    fields: Mapping[str, Any] = task.x or {task.name: task.target}
    alone = len(fields) == 1
    return [
        {
            "name": name,
            "kind": each.kind,
            "label": f"{_article(each.noun)} {each.noun} to {task.asks}" if alone else name.capitalize(),
            **getattr(each, "asked", {}),
        }
        for name, each in fields.items()
    ]


def _samples(served: Served) -> list[str]:
    """Inputs to try: the beginnings of texts, and all of what cannot be cut."""
    fields = list((served.task.x or served.task.fields).values())
    whole = len(fields) > 1 or fields[0].text is None
    return [each if whole else each[:SAMPLE] for each in served.run.samples]


def _does(served: Served) -> str:
    """What a run does: goes on with texts, translates, classifies."""
    task = served.task
    if served.continues:
        return f"goes on with {task.target.noun}s"
    return f"{task.asks[:-1]}ies" if task.asks.endswith("y") else f"{task.asks}s"


def _article(noun: str) -> str:
    return "An" if noun[0] in "aeiou" else "A"
