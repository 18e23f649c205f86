"""Small runs, and a real server on loopback in a thread: what the tests of the server share."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import torch

from saccade.config import ModelConfig
from saccade.field.label import Label
from saccade.field.text.text import Text
from saccade.model.model import Model
from saccade.serve.app import application
from saccade.serve.limit import Limits
from saccade.serve.listen import Listener
from saccade.serve.serve import bound
from saccade.store.run import Run

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.:!?0123456789-\n|"
TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'fool' %}{{ raise_exception('no fools here') }}{% endif %}"
    "|{{ message.role }}: {{ message.content }}\n{% endfor %}|"
)


def small(**values: object) -> Model:
    torch.manual_seed(0)
    common = {"vocab": len(ALPHABET) + 4, "width": 24, "heads": 3, "head": "vocabulary", "tie": False}
    model = Model(ModelConfig(**{**common, **values}, output_bias="decoder" in values)).eval()
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(3)  # so that what comes next depends on what was there
        if model.decoder is not None:
            model.head.bias[:4] = -30.0  # special tokens, the end among them, are never written
    return model


def text() -> Text:
    return Text.train([ALPHABET * 2], "characters", vocab=200)


def writing(room: int = 307, **values: object) -> Run:
    run = Run(small(decoder=2, position=f"learned({room})", **values))
    run.files = {"tokenizer.json": text().to_bytes()}
    return run


def chatting() -> Run:
    run = writing()
    run.files["chat_template.jinja"] = TEMPLATE.encode()
    return run


def translating(**values: object) -> Run:
    run = Run(small(**{"encoder": 2, "decoder": 2, "position": "rotary", **values}))
    run.files = {"tokenizer.json": text().to_bytes()}
    return run


def classifying() -> Run:
    run = Run(small(encoder=2, position="rotary", pooler=True, head="label(3)"))
    run.files = {"tokenizer.json": text().to_bytes(), "labels.json": Label(["bad", "good", "odd"]).to_bytes()}
    return run


def slow(run: Run, seconds: float) -> Run:
    """The same run, every step of which takes a while."""
    run.model.decoder.register_forward_hook(lambda *_: time.sleep(seconds))
    return run


@contextmanager
def serving(
    runs: dict[str, Run], key: str | None = None, buffer: int | None = None, **limits: float
) -> Iterator[SimpleNamespace]:
    """A server of these runs: `url`, and the `server` behind it. buffer: bytes that the system takes before a client
    reads them.
    """
    bounds = Limits(**{"grace": 1.0, **limits})
    guard, server = application(runs, key=key, limits=bounds)
    with bound("127.0.0.1", 0) as listening:
        if buffer is not None:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        listener = Listener(guard, server, bounds)
        thread = threading.Thread(target=listener.run, args=([listening],))
        thread.start()
        wait_for(lambda: listener.started)
        port = listening.getsockname()[1]
        try:
            yield SimpleNamespace(url=f"http://127.0.0.1:{port}", port=port, server=server, listener=listener)
        finally:
            listener.should_exit = True
            thread.join(20)
    assert not thread.is_alive()


def ask(port: int, body: dict, path: str = "/v1/completions", receive_buffer: int | None = None) -> socket.socket:
    """A request on a socket of its own, whose answer nobody has read yet."""
    line = socket.socket()
    if receive_buffer is not None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    line.settimeout(20)
    line.connect(("127.0.0.1", port))
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    line.sendall(head.encode() + b"\r\n\r\n" + content)
    return line


def idle(made) -> bool:
    return all(each.engine.load == 0 for each in made.server.served.values())


def wait_for(what, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def events(response: httpx.Response) -> list[dict]:
    """The pieces of a streamed answer; the last line says that it is done."""
    lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]
