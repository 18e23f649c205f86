"""The routes put together: an application for any ASGI server, with its guard around it."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from saccade import __version__
from saccade.error import SaccadeError
from saccade.serve.about import about
from saccade.serve.chat import Chat
from saccade.serve.client import Left
from saccade.serve.completion import Completion, CompletionBody
from saccade.serve.guard import Guard
from saccade.serve.inspect import InspectBody, Inspector, MapOptions
from saccade.serve.limit import Limits
from saccade.serve.message import ChatBody
from saccade.serve.metrics import Metrics
from saccade.serve.page import Page
from saccade.serve.predict import PredictBody, Prediction
from saccade.serve.refusal import Refusal, as_json, as_refusal, invalid
from saccade.serve.served import Served, find_run
from saccade.serve.transcript import History
from saccade.serve.translate import TranslateBody, Translation
from saccade.serve.vision import Vision, sees
from saccade.store.run import Run


class Strict(Request):
    """A request whose JSON is JSON: UTF-8, and numbers that are numbers."""

    async def json(self) -> Any:
        """The body; what is wrong with it is answered with 400."""
        try:
            return json.loads((await self.body()).decode(), parse_constant=_refuse_constant, parse_float=_finite_float)
        except UnicodeDecodeError:
            raise HTTPException(400, "the body is not UTF-8") from None
        except RecursionError:
            raise HTTPException(400, "the body is nested too deeply") from None
        except ValueError as problem:
            raise HTTPException(400, f"the body is not JSON: {problem}") from None


class Route(APIRoute):
    """A route whose requests are read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own, with our request."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(Strict(request.scope, request.receive))

        return strict


class Server:
    """The runs that are served, with the history of their answers, the looks into them and the metrics."""

    def __init__(self, runs: Mapping[str, Run], limits: Limits) -> None:
        if not runs:
            raise SaccadeError("there is nothing to serve: give one run at least")
        self.limits, self.metrics, self.page = limits, Metrics(), Page()
        self.served = {name: Served(name, run, limits) for name, run in runs.items()}
        self.history = History(limits.answers, limits.answer_bytes)
        self.inspector = Inspector(self.served, self.history, limits)

    def find(self, name: str | None) -> Served:
        """A run by its name; the only one needs none."""
        return find_run(self.served, name)

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """The engines work while the server does."""
        for each in self.served.values():
            each.engine.start()
        yield
        self.stop()
        for each in self.served.values():
            each.engine.join(1.0)

    def refuse(self) -> None:
        """Takes no new requests."""
        for each in self.served.values():
            each.engine.refuse()

    def stop(self) -> None:
        """Ends what is still being written."""
        for each in self.served.values():
            each.close()


def application(
    runs: Mapping[str, Run], *, host: str = "127.0.0.1", key: str | None = None, limits: Limits | None = None
) -> tuple[Guard, Server]:
    """An ASGI application for these runs, called by their names, and what is behind it. It works in its lifespan."""
    limits = limits or Limits()
    server = Server(runs, limits)
    app = FastAPI(title="saccade", version=__version__, lifespan=server.lifespan, docs_url=None, redoc_url=None)
    app.router.route_class = Route
    _add_errors(app, server)
    _add_page(app, server)
    _add_answers(app, server)
    _add_looks(app, server)
    largest = replace(limits, body=max(each.body_bytes for each in server.served.values()))
    return Guard(app, host=host, key=key, limits=largest, metrics=server.metrics), server


def _add_errors(app: FastAPI, server: Server) -> None:
    """Every error is answered in the same shape, that of OpenAI's."""

    async def refused(request: Request, problem: Exception) -> Response:
        return as_refusal(problem).response()

    async def unreadable(request: Request, problem: Exception) -> Response:
        return invalid(problem.errors()).response()  # type: ignore[attr-defined]

    async def other(request: Request, problem: Exception) -> Response:
        said = {404: "there is no such route here", 405: f"{request.method} is not for this route"}
        status, detail = problem.status_code, problem.detail  # type: ignore[attr-defined]
        return Refusal(status, said.get(status, str(detail))).response()

    async def left(request: Request, problem: Exception) -> Response:
        server.metrics.left += 1
        return Response(None, 499)

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(SaccadeError, refused)
    app.add_exception_handler(RequestValidationError, unreadable)
    app.add_exception_handler(404, other)
    app.add_exception_handler(405, other)
    app.add_exception_handler(HTTPException, other)
    app.add_exception_handler(Left, left)
    app.add_exception_handler(Exception, refused)


def _add_page(app: FastAPI, server: Server) -> None:
    """The page, and the routes for monitoring."""

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return server.page.send("index.html", request)

    @app.get("/page/{name}", include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        return server.page.send(name, request)

    @app.get("/health")
    async def health() -> Response:
        dead = [each.name for each in server.served.values() if not each.engine.alive]
        return as_json({"status": "dead" if dead else "ok"}, 503 if dead else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        text = server.metrics.text(server.served.values(), len(server.history), server.inspector.looks)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _add_answers(app: FastAPI, server: Server) -> None:
    """The routes of the models and their answers."""

    @app.get("/v1/models")
    async def models() -> Response:
        return as_json({"object": "list", "data": [about(each) for each in server.served.values()]})

    @app.get("/v1/models/{name}")
    async def model(name: str) -> Response:
        return as_json(about(server.find(name)))

    @app.post("/v1/completions")
    async def completions(body: CompletionBody, request: Request) -> Response:
        served = server.find(body.model)
        completion = await served.reading.work(lambda: Completion(served, body, server.history))  # tokenises
        return await completion.respond(request)

    @app.post("/v1/chat/completions")
    async def chat(body: ChatBody, request: Request) -> Response:
        served = server.find(body.model)
        return await (Vision if sees(served) else Chat)(served, body, server.history).respond(request)

    @app.post("/v1/translate")
    async def translate(body: TranslateBody, request: Request) -> Response:
        return await Translation(server.find(body.model), body, server.history).respond(request)

    @app.post("/v1/predict")
    async def predict(body: PredictBody, request: Request) -> Response:
        return await Prediction(server.find(body.model), body, server.history).respond(request)


def _add_looks(app: FastAPI, server: Server) -> None:
    """The routes of /v1/inspect."""
    inspector = server.inspector

    @app.post("/v1/inspect")
    async def inspect(body: InspectBody, request: Request) -> Response:
        return await inspector.inspect(None if body.model is None else server.find(body.model), body, request)

    @app.get("/v1/inspect/{id}/map")
    async def map(id: str, options: Annotated[MapOptions, Depends(_map_options)], type: str = "uint8") -> Response:
        return await inspector.map(id, options, type)

    @app.get("/v1/inspect/{id}/picture")
    async def picture(id: str, options: Annotated[MapOptions, Depends(_map_options)], format: str = "svg") -> Response:
        return await inspector.picture(id, options, format)

    @app.get("/v1/inspect/{id}/pair")
    async def pair(id: str, layer: str, head: int, row: int, column: int) -> Response:
        return await inspector.pair(id, layer, head, row, column)

    @app.get("/v1/inspect/{id}/instead")
    async def instead(id: str, place: int, token: int) -> Response:
        return inspector.instead(id, place, token)

    @app.get("/v1/inspect/{id}/ablation")
    async def ablation(id: str, layer: str) -> Response:
        return await inspector.ablation(id, layer)

    @app.delete("/v1/inspect/{id}")
    async def forget(id: str) -> Response:
        return inspector.forget(id)


def _map_options(
    layer: str | None = None,
    head: str = "mean",
    rows: str | None = None,
    columns: str | None = None,
    size: int | None = None,
    words: bool = False,
    hide: str = "",
) -> MapOptions:
    """The options of a map, from its address."""
    return MapOptions(layer, head, rows, columns, size, words, hide)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large a number")
    return value
