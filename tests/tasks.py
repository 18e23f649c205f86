"""Tasks of texts, put together by hand, and what they read and wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import saccade
from saccade.field.label import Label, LabelConfig
from saccade.field.numbers import Numbers, NumbersConfig, Spread
from saccade.field.text.config import SourceTextConfig, StreamedTextConfig, TargetTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.target import TargetText
from saccade.field.text.text import Text
from saccade.look.look import Look, look_at
from saccade.task.example import Example
from saccade.task.task import Task


def translate(text: Text, objective: str | None = None, limit: int | None = None, **y: Any) -> Task:
    """A text to a text; y: keys of [y]."""
    source = SourceText(text, SourceTextConfig(limit=limit), needs="decoder")
    target = TargetText(text, TargetTextConfig(limit=limit, **y))
    return Task("translate", {"source": source}, "target", target, asks="translate", objective=objective)


def write(text: Text, **keys: Any) -> Task:
    """A text that goes on; closed, remembers and framed are its manner, the other keys those of [y]."""
    manner = {name: keys.pop(name) for name in ("closed", "remembers", "framed") if name in keys}
    return Task("write", {}, "text", StreamedText(text, StreamedTextConfig(**keys), **manner), asks="go on from")


def classify(text: Text, names: Sequence[str], limit: int | None = None, **y: Any) -> Task:
    """A text to a label."""
    source = SourceText(text, SourceTextConfig(limit=limit), needs="pooled")
    return Task("classify", {"source": source}, "label", Label(names, LabelConfig(**y)), asks="classify")


def regress(text: Text, mean: Sequence[float], spread: Sequence[float], limit: int | None = None, **y: Any) -> Task:
    """A text to numbers of this mean and spread."""
    source = SourceText(text, SourceTextConfig(limit=limit), needs="pooled")
    numbers = Numbers(Spread(list(mean), list(spread)), NumbersConfig(**y))
    return Task("regress", {"source": source}, "numbers", numbers, asks="measure")


def read(text: Text) -> Task:
    """A text alone, to be looked into."""
    return Task("look", {"source": SourceText(text, SourceTextConfig(limit=None), needs=None)})


def example(task: Task, tokens: Sequence[int], written: Sequence[int] = (), *, ended: bool = False) -> Example:
    """Tokens that were read as they are, and those that were written."""
    if not task.x:
        return Example({}, list(tokens), list(written), ended)
    return Example({"source": saccade.Input({"tokens": torch.tensor([list(tokens)])})}, [], list(written), ended)


def task_for(model: saccade.Model, text: Text, labels: Sequence[str] | None = None) -> Task:
    """What a model can do with texts, by its stacks."""
    if model.decoder is not None:
        return write(text) if model.encoder is None else translate(text)
    return read(text) if labels is None else classify(text, labels)


def look(
    model: saccade.Model,
    text: Text,
    tokens: Sequence[int],
    written: Sequence[int] = (),
    *,
    ended: bool = False,
    labels: Sequence[str] | None = None,
) -> Look:
    """A look at a model that read these tokens as they are and wrote those, or was said to have."""
    task = task_for(model, text, labels)
    return look_at(task, model, example(task, tokens, written, ended=ended))


def tokens_of(run: saccade.Run, text: str) -> list[int]:
    """The tokens that a run's model is shown of a text."""
    seen = run.task.answer.example(run.model, text, run.decode(), target="" if run.task.answer.writes else None)
    return seen.read or next(iter(seen.x.values())).values["tokens"][0].tolist()
