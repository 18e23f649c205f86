"""`/v1/inspect`: what the layers of a run looked at. First a small description, then one map at a time, as bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from saccade.look.excerpt import Excerpt
from saccade.look.look import Look, look_at
from saccade.look.map import Map
from saccade.look.picture import picture
from saccade.look.report import described
from saccade.number import finite
from saccade.recipe import DecodeConfig
from saccade.serve.body import LIMITS, Body, Id, Written
from saccade.serve.client import attended
from saccade.serve.limit import Limits
from saccade.serve.refusal import Refusal, as_json, to_bytes
from saccade.serve.served import Served, find_run
from saccade.serve.transcript import History, new_id
from saccade.task.example import Example

PICTURES = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "gif": "image/gif",
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "npz": "application/octet-stream",
}
GIVEN = ("completion", "like", "text", "input")  # what an inspection may be of


class InspectBody(Body):
    """What to look into: an input, an answer by its id, or what another inspection is of."""

    text: Written | None = None
    input: Any = Field(None, description="what is read, if it is no text; of a run with several X, by name")
    target: Written | None = None
    max_tokens: int | None = Field(None, ge=0, le=LIMITS.max_tokens)
    completion: Id | None = None
    choice: int | None = Field(None, ge=0, lt=LIMITS.sequences, description="which of a completion's choices")
    like: Id | None = None
    step: int | None = Field(None, ge=0, lt=1 << 62)


class Inspection(NamedTuple):
    """A look, the run and step that it is of, and its id."""

    name: str
    look: Look
    served: Served
    step: int

    @property
    def nbytes(self) -> int:
        """The bytes that it holds, with a rollout of each side and the weights of a snapshot."""
        sides = sum(4 * len(side.tokens) ** 2 for side in self.look.sides.values())
        own = self.step != self.served.run.step
        weights = sum(each.nbytes for each in self.look.model.parameters()) if own else 0
        return self.look.nbytes + sides + weights


class Looks:
    """Inspections by their ids; the oldest are forgotten when there are too many or they hold too much."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[str, Inspection] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, inspection: Inspection) -> None:
        """Keeps an inspection as the newest; refuses one that is too large by itself."""
        if inspection.nbytes > self._limits.look_bytes:
            most = self._limits.look_bytes >> 20
            raise Refusal(
                400, f"this look needs {inspection.nbytes >> 20} MB of the {most} for all looks: give a shorter input"
            )
        self._kept[inspection.name] = inspection
        self.nbytes += inspection.nbytes
        while len(self._kept) > self._limits.looks or self.nbytes > self._limits.look_bytes:
            self.forget(next(iter(self._kept)))

    def find(self, name: str) -> Inspection:
        """An inspection by its id, which becomes the newest."""
        if name not in self._kept:
            raise Refusal(
                404, f"no inspection is called {name[:64]!r}: it was forgotten, or never existed; inspect again", "id"
            )
        self._kept.move_to_end(name)
        return self._kept[name]

    def forget(self, name: str) -> None:
        """Removes an inspection."""
        self.nbytes -= self.find(name).nbytes
        del self._kept[name]


class Inspector:
    """Looks into the runs of a server."""

    def __init__(self, runs: Mapping[str, Served], history: History, limits: Limits) -> None:
        self.runs, self.history, self.limits, self.looks = runs, history, limits, Looks(limits)

    async def inspect(self, served: Served | None, body: InspectBody, request: Request) -> Response:
        """One input through one run; served: the run that the request names."""
        made = await attended(request, self._inspect(served, body, request))
        self.looks.keep(made)
        return as_json(await attended(request, made.served.looking.work(partial(describe, made))))

    async def map(self, name: str, options: MapOptions, kind: str) -> Response:
        """One map as bytes; headers say what they are."""
        if kind not in ("uint8", "float16"):
            raise Refusal(400, f"type is uint8 or float16; got {kind[:40]!r}", "type")
        made = self.looks.find(name)
        excerpt = options.excerpt(self.limits)
        found = await made.served.looking.work(partial(excerpt.map, made.look))
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
        content = await made.served.looking.work(partial(picture, made.look, options.excerpt(self.limits), kind))
        headers = {"Content-Disposition": f'attachment; filename="map.{kind}"', "Cache-Control": "no-store"}
        return Response(content, 200, headers, PICTURES[kind])

    async def pair(self, name: str, layer: str, head: int, row: int, column: int) -> Response:
        """How one weight comes about."""
        made = self.looks.find(name)
        found = await made.served.looking.work(lambda: made.look.pair(layer, head, row, column))
        return as_json({"layer": layer, "head": head, "row": row, "column": column, **finite(found._asdict())})

    def instead(self, name: str, place: int, token: int) -> Response:
        """The text up to a place, with another token there, to go on from."""
        return as_json({"text": self.looks.find(name).look.instead(place, token)})

    async def ablation(self, name: str, layer: str) -> Response:
        """By how much each head of a layer matters."""
        made = self.looks.find(name)
        found = await made.served.looking.work(lambda: made.look.ablation(layer))
        return as_json({"layer": layer, "matters": made.look.matters, **finite(found._asdict())})

    def forget(self, name: str) -> Response:
        """Frees what it holds."""
        self.looks.forget(name)
        return as_json({"id": name, "object": "inspection", "deleted": True})

    async def _inspect(self, served: Served | None, body: InspectBody, request: Request) -> Inspection:
        given = [name for name in GIVEN if getattr(body, name) is not None]
        if len(given) != 1:
            raise Refusal(
                400, "give one of text or input (with model), completion and like", given[-1] if given else "text"
            )
        if body.like is not None:
            return await self._look_again(served, body.like, body.step)
        if body.completion is not None:
            return await self._look_back(served, body.completion, body.choice or 0, body.step)
        served = served or find_run(self.runs, None)
        return await self._look(served, await self._read(served, body, given[0], request), body.step)

    async def _look_again(self, served: Served | None, id: str, step: int | None) -> Inspection:
        """The same example through a snapshot or another run."""
        before = self.looks.find(id)
        other = served or before.served
        if other.run.meaning != before.served.run.meaning:
            raise Refusal(
                400, "that run has another vocabulary or another kind of input: look at an input of its own", "model"
            )
        look = await other.looking.work(lambda: before.look.again(other.weights(step)))
        return Inspection(new_id("look"), look, other, other.run.step if step is None else step)

    async def _look_back(self, served: Served | None, id: str, choice: int, step: int | None) -> Inspection:
        """What was read and written for an answer."""
        model, example = self.history.find(id, choice)
        if served is not None and served.name != model:
            raise Refusal(400, f"this answer is of {model!r}: leave model out, or ask with like", "model")
        return await self._look(self.runs[model], example, step)

    async def _look(self, served: Served, example: Example, step: int | None) -> Inspection:
        def look() -> Look:
            model = served.weights(step)
            self._check_size(served, example)
            return look_at(served.task, model, example)

        return Inspection(
            new_id("look"), await served.looking.work(look), served, served.run.step if step is None else step
        )

    def _check_size(self, served: Served, example: Example) -> None:
        """Refuses an example with more units than may be looked into."""
        fields, most = served.task.x, self.limits.look_tokens
        count = sum(len(fields[name].side(x)) for name, x in example.x.items())
        count += len(example.read) + len(example.written)
        if count > most:
            raise Refusal(400, f"{count} units (tokens, patches) are too many to look into: {most} at most")

    async def _read(self, served: Served, body: InspectBody, name: str, request: Request) -> Example:
        """The example to look into: the input, and the target that the request gives or that the run writes now."""
        if body.target is not None and not served.writes:
            raise Refusal(409, f"{served.name} writes nothing: leave target out", "target")
        raw = await served.reading.work(lambda: served.inputs.received(getattr(body, name), name))
        decode = served.decoding({"max_tokens": body.max_tokens or None})
        if body.target is None and served.writes and (served.task.x or body.max_tokens):
            return await self._write(served, raw, decode, request)
        return await served.reading.work(partial(served.inputs.example, raw, decode, body.target))

    async def _write(self, served: Served, raw: Any, decode: DecodeConfig, request: Request) -> Example:
        """An input, and what the engine writes for it now."""
        (ask,) = await served.reading.work(partial(served.inputs.answerable, [raw], decode))
        transcript = served.transcript(ask, decode)
        await served.engine.write(request, [transcript])
        return served.example(transcript)


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
        self.head, self.hide = head[:40], hide[:80]  # cut, since an error quotes them
        self.rows, self.columns = span("rows", rows), span("columns", columns)

    def excerpt(self, limits: Limits) -> Excerpt:
        """Which map to make; refuses one larger than the server's limit."""
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
    """What there is to see. It stays small for every model, since no map is computed for it."""
    about = {"id": made.name, "object": "inspection", "model": made.served.name, "step": made.step}
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
