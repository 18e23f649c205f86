"""Clients that leave, that do not read, that ask for too much; runs that are slow or break."""

from __future__ import annotations

import json
import os
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from small import serving, slow, translating, wait_for, writing

SOAK = float(os.environ.get("SACCADE_SOAK", "4"))
LONG = {"prompt": "the eye", "max_tokens": 300}


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
    return all(each.engine.load == 0 for each in made.server.opened.values())


def test_two_hundred_clients_leave_in_the_middle_and_the_next_is_served_soon():
    with serving({"run": slow(writing(), 0.004)}) as made, httpx.Client(base_url=made.url, timeout=5) as client:
        lines = [ask(made.port, {**LONG, "stream": True, "logprobs": 5}) for _ in range(200)]
        for line in lines[:40]:
            assert b"200 OK" in line.recv(200)
        for line in lines:
            line.close()
        begin = time.monotonic()
        assert client.post("/v1/completions", json={"prompt": "a", "max_tokens": 5}).status_code == 200
        assert time.monotonic() - begin < 5
        wait_for(lambda: idle(made))
        assert made.server.opened["run"].engine._entries == {}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", LONG),
        ("/v1/completions", {**LONG, "n": 5, "temperature": 1}),
        ("/v1/predict", {"input": "the eye", "options": {"max_tokens": 300}}),
    ],
)
def test_who_leaves_without_streaming_frees_its_place_too(path, body):
    with serving({"run": slow(writing(), 0.02)}) as made:
        engine = made.server.opened["run"].engine
        line = ask(made.port, body, path)
        wait_for(lambda: engine.load >= 1 and engine.steps > 2)
        line.close()
        wait_for(lambda: engine.load == 0, 2)
        steps = engine.steps
        time.sleep(0.2)
        assert engine.steps <= steps + 1, "nothing is computed for nobody"
        assert made.server.metrics.left == 1


def test_a_beam_search_is_left_too():
    with serving({"run": slow(translating(), 0.02)}) as made:
        engine = made.server.opened["run"].engine
        line = ask(made.port, {"text": "the eye " * 30, "beam": 3, "max_tokens": 300}, "/v1/translate")
        wait_for(lambda: engine.steps > 2)
        line.close()
        wait_for(lambda: engine.load == 0, 2)


FLOOD = {"prompt": "eye " * 250, "max_tokens": 30, "stream": True, "logprobs": 20, "echo": True, "n": 3}


def test_slow_readers_hold_up_nobody():
    with serving({"run": writing(room=1201)}, buffer=8192) as made, ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=made.url, timeout=10))
        lines = [stack.enter_context(ask(made.port, FLOOD, receive_buffer=4096)) for _ in range(5)]
        assert all(line.recv(100) for line in lines)
        wait_for(lambda: idle(made))
        assert len(made.listener.server_state.tasks) == 5, "answers are written, and nobody reads them"
        begin = time.monotonic()
        assert client.post("/v1/completions", json={"prompt": "a", "max_tokens": 5}).status_code == 200
        assert time.monotonic() - begin < 5


def test_who_does_not_read_is_given_up_after_a_while():
    with ExitStack() as stack:
        made = stack.enter_context(serving({"run": writing(room=1201)}, buffer=8192, patience=0.5))
        line = stack.enter_context(ask(made.port, FLOOD, receive_buffer=4096))
        assert line.recv(100)
        assert made.listener.server_state.tasks
        wait_for(lambda: idle(made) and not made.listener.server_state.tasks)


def test_a_slow_run_blocks_no_other():
    runs = {"slow": slow(writing(), 1.0), "quick": writing()}
    with serving(runs) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        line = ask(made.port, {**LONG, "model": "slow"})
        wait_for(lambda: made.server.opened["slow"].engine.load == 1)
        begin = time.monotonic()
        for _ in range(5):
            body = {"model": "quick", "prompt": "the eye", "max_tokens": 5}
            assert client.post("/v1/completions", json=body).status_code == 200
        assert time.monotonic() - begin < 1
        line.close()


def test_a_slow_look_blocks_no_writing():
    run = writing()
    with serving({"run": run}) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        opened = made.server.opened["run"]
        hold = threading.Event()
        opened.desk._thread.submit(hold.wait)
        with ThreadPoolExecutor(1) as pool:
            looked = pool.submit(client.post, "/v1/inspect", json={"text": "the eye"})
            body = {"prompt": "the eye", "max_tokens": 5}
            assert httpx.post(f"{made.url}/v1/completions", json=body, timeout=5).status_code == 200
            assert not looked.done()
            hold.set()
            assert looked.result().status_code == 200


def test_a_full_queue_says_so_and_empties():
    with serving({"run": slow(writing(), 0.01)}, rows=3, waiting=5) as made, ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=made.url, timeout=30))
        engine = made.server.opened["run"].engine
        for _ in range(8):
            stack.enter_context(ask(made.port, LONG))
        wait_for(lambda: engine.load == 8)
        response = client.post("/v1/completions", json={"prompt": "a", "max_tokens": 1})
        assert response.status_code == 429
        assert response.json()["error"]["type"] == "rate_limit_error"
        assert "room for 8" in response.json()["error"]["message"]
        stack.pop_all().close()
        wait_for(lambda: engine.load == 0)


def test_a_step_that_breaks_is_told_and_the_next_request_is_served(caplog):
    run = writing()
    broken = {"now": False}

    def fail(*_: object) -> None:
        if broken["now"]:
            raise RuntimeError("a secret of the machine")

    run.model.decoder.register_forward_hook(fail)
    with serving({"run": run}) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        body = {"prompt": "the eye", "max_tokens": 5}
        good = client.post("/v1/completions", json=body).json()["choices"]
        broken["now"] = True
        response = client.post("/v1/completions", json=body)
        assert response.status_code == 500
        assert "secret" not in response.text
        assert response.json()["error"]["type"] == "server_error"
        broken["now"] = False
        assert client.post("/v1/completions", json=body).json()["choices"] == good
        assert client.get("/health").status_code == 200


def test_broken_weights_are_told_to_those_who_ask():
    run = writing()
    run.model.head.bias.data[7] = float("nan")
    with serving({"run": run, "good": writing()}) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        body = {"model": "run", "prompt": "the eye", "max_tokens": 5}
        response = client.post("/v1/completions", json=body)
        assert response.status_code == 400
        assert "weights are broken" in response.json()["error"]["message"]
        with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as streamed:
            assert "weights are broken" in "".join(streamed.iter_text())
        assert client.post("/v1/completions", json={**body, "model": "good"}).status_code == 200


def test_many_clients_at_once_are_each_told_their_own():
    with serving({"run": writing()}) as made, httpx.Client(base_url=made.url, timeout=60) as client:
        bodies = [{"prompt": f"{n} eyes", "max_tokens": 23, "temperature": 1, "seed": n} for n in range(17)]
        alone = [client.post("/v1/completions", json=each).json()["choices"][0]["text"] for each in bodies]
        with ThreadPoolExecutor(17) as pool:
            found = list(pool.map(lambda each: client.post("/v1/completions", json=each).json(), bodies))
        assert [each["choices"][0]["text"] for each in found] == alone


def test_memory_is_flat_under_mixed_load():
    """SACCADE_SOAK=120 makes it two minutes."""
    runs = {"writer": writing(), "translator": translating()}
    with serving(runs, answers=31, looks=7) as made:
        end = time.monotonic() + SOAK / 4
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda number: mix(made, number, end), range(6)))
        before, end = memory(), time.monotonic() + SOAK
        with ThreadPoolExecutor(6) as pool:
            counts = list(pool.map(lambda number: mix(made, number, end), range(6)))
        wait_for(lambda: idle(made))
        assert min(counts) > 0
        grown = memory() - before
        assert grown < 48 << 20, f"{grown >> 20} MB more after {sum(counts)} requests"
        assert len(made.server.answers) <= 31
        assert len(made.server.inspector.looks) <= 7


def mix(made, number: int, end: float) -> int:
    """One client: whole and streamed answers, looks, bad requests, and leaving."""
    count = 0
    with httpx.Client(base_url=made.url, timeout=60) as client:
        while time.monotonic() < end:
            kind = (number + count) % 6
            write = {"model": "writer", "prompt": f"{count} eyes", "max_tokens": 40, "temperature": 1}
            if kind == 0:
                assert client.post("/v1/completions", json={**write, "logprobs": 5}).status_code == 200
            elif kind == 1:
                with client.stream("POST", "/v1/completions", json={**write, "stream": True}) as response:
                    assert "[DONE]" in "".join(response.iter_text())
            elif kind == 2:
                with ask(made.port, {**write, "max_tokens": 250, "stream": True}) as line:
                    line.recv(300)
            elif kind == 3:
                seen = client.post("/v1/inspect", json={"model": "translator", "text": f"{count} eyes"}).json()
                assert client.get(f"/v1/inspect/{seen['id']}/map").status_code in (200, 404)
            elif kind == 4:
                body = {"model": "translator", "text": f"{count} eyes", "beam": 3, "max_tokens": 20}
                assert client.post("/v1/translate", json=body).status_code == 200
            else:
                assert client.post("/v1/completions", json={"prompt": [count] * 50}).status_code == 400
            count += 1
    return count


def memory() -> int:
    """Bytes that the process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
