"""`/v1/inspect`: what the layers of a run looked at. First a small description, then one map at a time, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from saccade.look.look import Look, look
from saccade.look.map import Map
from saccade.look.report import described
from saccade.number import finite
from saccade.serve.answer import attended, whole
from saccade.serve.completion import new_id
from saccade.serve.inputs import Inputs
from saccade.serve.kept import Answers, Kept
from saccade.serve.limit import Limits
from saccade.serve.looks import Inspection, Looks
from saccade.serve.opened import Opened
from saccade.serve.refusal import Refusal, as_json, to_bytes
from saccade.serve.wire import InspectBody

PICTURES = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "npz": "application/octet-stream",
}


class Inspector:
    """Looks into the runs of a server."""

    def __init__(self, opened: Mapping[str, Opened], answers: Answers, limits: Limits) -> None:
        self.opened = opened
        self.answers, self.limits, self.looks = answers, limits, Looks(limits)

    async def inspect(self, opened: Opened | None, body: InspectBody, request: Request) -> Response:
        """One text through one run; opened: the run that the request names."""
        made = await attended(request, self._inspected(opened, body, request))
        self.looks.keep(made)
        return as_json(await attended(request, made.opened.desk.work(partial(describe, made))))

    async def map(self, name: str, options: MapOptions, kind: str) -> Response:
        """One map as bytes; headers say what they are."""
        if kind not in ("uint8", "float16"):
            raise Refusal(400, f"type is uint8 or float16; got {kind[:40]!r}", "type")
        made = self.looks.find(name)
        found = await made.opened.desk.work(partial(options.map, made.look, self.limits))
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
        from saccade.look.picture import draw

        made = self.looks.find(name)
        content = await made.opened.desk.work(lambda: draw(options.map(made.look, self.limits), kind))
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
        given = [name for name in ("completion", "like", "text") if getattr(body, name) is not None]
        if len(given) != 1:
            raise Refusal(400, "give one of text (with model), completion and like", given[-1] if given else "text")
        if body.like is not None:
            return await self._again(opened, body.like, body.step)
        if body.completion is not None:
            kept = self.answers.find(body.completion, body.choice or 0)
            if opened is not None and opened.name != kept.model:
                raise Refusal(400, f"this answer is of {kept.model!r}: leave model out, or ask with like", "model")
        else:
            kept = await self._read(opened or self._only(), body, request)
        return await self._look(self.opened[kept.model], kept, body.step)

    async def _again(self, opened: Opened | None, name: str, step: int | None) -> Inspection:
        """The same tokens through a snapshot or another run."""
        before = self.looks.find(name)
        other = opened or before.opened
        made = await other.desk.work(lambda: before.look.again(other.weights(step)))
        return Inspection(new_id("look"), made, other, other.run.step if step is None else step)

    async def _look(self, opened: Opened, kept: Kept, step: int | None) -> Inspection:
        count, most = len(kept.read) + len(kept.written), self.limits.look_tokens
        if count > most:
            raise Refusal(400, f"{count} tokens are too many to look into: {most} at most")

        def work() -> Look:
            model = opened.weights(step)
            return look(model, opened.text, kept.read, kept.written, ended=kept.ended, labels=opened.labels)

        made = await opened.desk.work(work)
        return Inspection(new_id("look"), made, opened, opened.run.step if step is None else step)

    async def _read(self, opened: Opened, body: InspectBody, request: Request) -> Kept:
        """The tokens of a text, and what was written after it: what was said, or what the run writes now."""
        read = await opened.clerk.work(lambda: opened.read(body.text or ""))
        if body.target is not None:
            if opened.model.decoder is None:
                raise Refusal(409, f"{opened.name} writes nothing: leave target out", "target")
            return Kept(opened.name, read, opened.encode(body.target) if body.target else [], True)
        if opened.model.decoder is None or (opened.model.encoder is None and not body.max_tokens):
            return Kept(opened.name, read, [], False)
        decode = opened.decoding({"max_tokens": body.max_tokens or None})
        inputs = Inputs(opened, [body.text or ""], decode)
        await whole(request, opened.engine, inputs.asks, inputs.add)
        return inputs.kept(0)

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

    def map(self, seen: Look, limits: Limits) -> Map:
        """The map, no larger than maps may be."""
        size = limits.map_side if self.size is None else self.size
        if not 1 <= size <= limits.map_side:
            raise Refusal(400, f"size is a number from 1 to {limits.map_side}; got {size}", "size")
        return seen.map(
            self.layer, self.head, rows=self.rows, columns=self.columns, size=size, words=self.words, hide=self.hide
        )


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
