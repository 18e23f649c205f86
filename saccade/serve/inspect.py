"""`/v1/inspect`: what the layers of a run looked at. First a small description, then one map at a time, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from saccade.look.excerpt import Excerpt
from saccade.look.look import Look, look_at
from saccade.look.map import Map
from saccade.look.picture import picture
from saccade.look.report import described
from saccade.model.model import Model
from saccade.number import finite
from saccade.recipe import DecodeConfig
from saccade.serve.answer import attended, whole
from saccade.serve.completion import new_id
from saccade.serve.kept import Answers
from saccade.serve.limit import Limits
from saccade.serve.looks import Inspection, Looks
from saccade.serve.opened import Opened
from saccade.serve.refusal import Refusal, as_json, to_bytes
from saccade.serve.searches import searches_of
from saccade.serve.wire import InspectBody
from saccade.task.example import Example

PICTURES = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "npz": "application/octet-stream",
}
GIVEN = ("completion", "like", "text", "input")  # what an inspection may be of


class Inspector:
    """Looks into the runs of a server."""

    def __init__(self, opened: Mapping[str, Opened], answers: Answers, limits: Limits) -> None:
        self.opened = opened
        self.answers, self.limits, self.looks = answers, limits, Looks(limits)

    async def inspect(self, opened: Opened | None, body: InspectBody, request: Request) -> Response:
        """One input through one run; opened: the run that the request names."""
        made = await attended(request, self._inspected(opened, body, request))
        self.looks.keep(made)
        return as_json(await attended(request, made.opened.desk.work(partial(describe, made))))

    async def map(self, name: str, options: MapOptions, kind: str) -> Response:
        """One map as bytes; headers say what they are."""
        if kind not in ("uint8", "float16"):
            raise Refusal(400, f"type is uint8 or float16; got {kind[:40]!r}", "type")
        made = self.looks.find(name)
        excerpt = options.excerpt(self.limits)
        found = await made.opened.desk.work(partial(excerpt.map, made.look))
        content, scale = (as_bytes if kind == "uint8" else as_halves)(found)
        headers = {
            "X-Shape": ",".join(str(each) for each in found.values.shape),
            "X-Scale": repr(scale),
            "X-Type": kind,
            "X-Rows": to_bytes(found.row_places).decode(),
            "X-Columns": to_bytes(found.column_places).decode(),
            "Cache-Control": "no-store",
        }
        return Response(content, 200, headers, "application/octet-stream")

    async def picture(self, name: str, options: MapOptions, kind: str) -> Response:
        """One map drawn, or its numbers as a file."""
        if kind not in PICTURES:
            raise Refusal(400, f"format is one of {', '.join(PICTURES)}; got {kind[:40]!r}", "format")
        made = self.looks.find(name)
        content = await made.opened.desk.work(partial(picture, made.look, options.excerpt(self.limits), kind))
        headers = {"Content-Disposition": f'attachment; filename="map.{kind}"', "Cache-Control": "no-store"}
        return Response(content, 200, headers, PICTURES[kind])

    async def pair(self, name: str, layer: str, head: int, row: int, column: int) -> Response:
        """How one weight comes about."""
        made = self.looks.find(name)
        found = await made.opened.desk.work(lambda: made.look.pair(layer, head, row, column))
        return as_json({"layer": layer, "head": head, "row": row, "column": column, **finite(found._asdict())})

    def instead(self, name: str, place: int, token: int) -> Response:
        """The text to go on with, were another token at a place."""
        return as_json({"text": self.looks.find(name).look.instead(place, token)})

    async def ablation(self, name: str, layer: str) -> Response:
        """By how much each head of a layer matters."""
        made = self.looks.find(name)
        found = await made.opened.desk.work(lambda: made.look.ablation(layer))
        return as_json({"layer": layer, "matters": made.look.matters, **finite(found._asdict())})

    def forget(self, name: str) -> Response:
        """Frees its memory."""
        self.looks.forget(name)
        return as_json({"id": name, "object": "inspection", "deleted": True})

    async def _inspected(self, opened: Opened | None, body: InspectBody, request: Request) -> Inspection:
        given = [name for name in GIVEN if getattr(body, name) is not None]
        if len(given) != 1:
            raise Refusal(
                400, "give one of text or input (with model), completion and like", given[-1] if given else "text"
            )
        if body.like is not None:
            return await self._again(opened, body.like, body.step)
        if body.completion is None:
            opened = opened or self._only()
            return await self._look(opened, await self._read(opened, body, given[0], request), body.step)
        model, example = self.answers.find(body.completion, body.choice or 0)
        if opened is not None and opened.name != model:
            raise Refusal(400, f"this answer is of {model!r}: leave model out, or ask with like", "model")
        return await self._look(self.opened[model], example, body.step)

    async def _again(self, opened: Opened | None, name: str, step: int | None) -> Inspection:
        """The same example through a snapshot or another run."""
        before = self.looks.find(name)
        other = opened or before.opened
        if other.run.meaning != before.opened.run.meaning:
            raise Refusal(400, "what was read here means something else to that run: look at its own input", "model")
        made = await other.desk.work(lambda: before.look.again(other.weights(step)))
        return Inspection(new_id("look"), made, other, other.run.step if step is None else step)

    async def _look(self, opened: Opened, example: Example, step: int | None) -> Inspection:
        made = await opened.desk.work(lambda: self._looked(opened, example, opened.weights(step)))
        return Inspection(new_id("look"), made, opened, opened.run.step if step is None else step)

    def _looked(self, opened: Opened, example: Example, model: Model) -> Look:
        fields, most = opened.task.x, self.limits.look_tokens
        count = sum(len(fields[name].side(x)) for name, x in example.x.items())
        count += len(example.read) + len(example.written)
        if count > most:
            raise Refusal(400, f"{count} units (tokens, patches) are too many to look into: {most} at most")
        return look_at(opened.task, model, example)

    async def _read(self, opened: Opened, body: InspectBody, name: str, request: Request) -> Example:
        """What a run reads of an input, and what was written after it: what the request says, or what it writes now."""
        if body.target is not None and not opened.writes:
            raise Refusal(409, f"{opened.name} writes nothing: leave target out", "target")
        raw = await opened.clerk.work(lambda: opened.intake.received(getattr(body, name), name))
        decode = opened.decoding({"max_tokens": body.max_tokens or None})
        if body.target is None and opened.writes and (opened.task.x or body.max_tokens):
            return await self._written(opened, raw, decode, request)
        return await opened.clerk.work(partial(opened.intake.shown, raw, decode, body.target))

    async def _written(self, opened: Opened, raw: Any, decode: DecodeConfig, request: Request) -> Example:
        """An input, and what the engine writes for it now."""
        made = await opened.clerk.work(partial(searches_of, opened, [raw], decode))
        await whole(request, opened.engine, made.jobs, made.add)
        return made.example(0)

    def _only(self) -> Opened:
        if len(self.opened) > 1:
            raise Refusal(400, f"several runs are served: give model, one of {', '.join(self.opened)}", "model")
        return next(iter(self.opened.values()))


class MapOptions:
    """What a map's address asks for."""

    def __init__(
        self,
        layer: str | None,
        head: str,
        rows: str | None,
        columns: str | None,
        size: int | None,
        words: bool,
        hide: str,
    ) -> None:
        self.layer, self.words, self.size = layer, words, size
        self.head, self.hide = head[:40], hide[:80]  # what is wrong with them is told in few words
        self.rows, self.columns = span("rows", rows), span("columns", columns)

    def excerpt(self, limits: Limits) -> Excerpt:
        """Which map it is, no larger than maps may be."""
        size = limits.map_side if self.size is None else self.size
        if not 1 <= size <= limits.map_side:
            raise Refusal(400, f"size is a number from 1 to {limits.map_side}; got {size}", "size")
        return Excerpt(self.layer, self.head, self.words, self.hide, size, self.rows, self.columns)


def span(name: str, given: str | None) -> tuple[int, int] | None:
    """`3:17` as two numbers."""
    if given is None or not given:
        return None
    begin, colon, end = given.partition(":")
    if not colon or not (begin + end).isdecimal() or not begin or not end or len(given) > 24:
        raise Refusal(400, f"{name} is written begin:end, as in 0:20; got {given[:40]!r}", name)
    return int(begin), int(end)


def describe(made: Inspection) -> dict[str, Any]:
    """What there is to see, small whatever the model is: no map is computed."""
    about = {"id": made.name, "object": "inspection", "model": made.opened.name, "step": made.step}
    return about | described(made.look)


def as_bytes(found: Map) -> tuple[bytes, float]:
    """A byte a cell: value * 255 / scale, and the scale; what is below 0 becomes 0."""
    values = np.nan_to_num(found.values.numpy(), nan=0.0, posinf=0.0, neginf=0.0)
    scale = float(values.max(initial=0.0)) or 1.0
    return np.rint(values.clip(0) * (255.0 / scale)).astype(np.uint8).tobytes(), scale


def as_halves(found: Map) -> tuple[bytes, float]:
    """Two bytes a cell, little-endian; the scale is 1."""
    most = float(np.finfo(np.float16).max)
    values = np.nan_to_num(found.values.numpy(), nan=0.0, posinf=most, neginf=-most)
    return values.clip(-most, most).astype("<f2").tobytes(), 1.0
