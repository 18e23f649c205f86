"""Clients that leave, that do not read, that ask for too much; runs that are slow or break."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
from small import ask, events, idle, serving, slow, translating, wait_for, writing

LONG = {"prompt": "the eye", "max_tokens": 300}


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
        assert made.server.served["run"].engine._running == {}


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
        engine = made.server.served["run"].engine
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
        engine = made.server.served["run"].engine
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


@pytest.mark.parametrize("more", [b"", b"G"])
def test_who_does_not_read_is_given_up_after_a_while(more):
    """Also who sends something meanwhile."""
    with ExitStack() as stack:
        made = stack.enter_context(serving({"run": writing(room=1201)}, buffer=8192, patience=0.5))
        line = stack.enter_context(ask(made.port, FLOOD, receive_buffer=4096))
        assert line.recv(100)
        assert made.listener.server_state.tasks
        wait_for(lambda: idle(made))
        line.sendall(more)
        wait_for(lambda: idle(made) and not made.listener.server_state.tasks)


def test_a_slow_run_blocks_no_other():
    runs = {"slow": slow(writing(), 1.0), "quick": writing()}
    with serving(runs) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        line = ask(made.port, {**LONG, "model": "slow"})
        wait_for(lambda: made.server.served["slow"].engine.load == 1)
        begin = time.monotonic()
        for _ in range(5):
            body = {"model": "quick", "prompt": "the eye", "max_tokens": 5}
            assert client.post("/v1/completions", json=body).status_code == 200
        assert time.monotonic() - begin < 1
        line.close()


def test_a_slow_look_blocks_no_writing():
    run = writing()
    with serving({"run": run}) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        served = made.server.served["run"]
        hold = threading.Event()
        served.looking._thread.submit(hold.wait)
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
        engine = made.server.served["run"].engine
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


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, ValueError, AssertionError])
def test_a_stream_that_breaks_ends_as_streams_do(kind, caplog):
    run = writing()
    steps = []

    def fail(*_: object) -> None:
        steps.append(1)
        if len(steps) > 3:
            raise kind("a secret of the machine")

    run.model.decoder.register_forward_hook(fail)
    body = {"prompt": "the eye", "max_tokens": 9, "stream": True}
    with serving({"run": run}) as made, httpx.Client(base_url=made.url, timeout=30) as client:
        with client.stream("POST", "/v1/completions", json=body) as response:
            *_, last = events(response)
        assert last["error"]["type"] == "server_error"
        assert "secret" not in str(last)


@pytest.mark.parametrize("most", [10**19, 10**400, -1], ids=["long", "endless", "negative"])
@pytest.mark.proof
def test_a_request_that_asks_for_too_much_harms_nobody(most):
    with ExitStack() as stack:
        made = stack.enter_context(serving({"run": slow(writing(), 0.01)}))
        client = stack.enter_context(httpx.Client(base_url=made.url, timeout=30))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        body = {"prompt": "the eye", "max_tokens": 60, "temperature": 1, "top_k": 5}
        other = pool.submit(client.post, "/v1/completions", json=body)
        wait_for(lambda: made.server.served["run"].engine.load)
        options = {"temperature": 1.0, "top_k": most, "max_tokens": 5}
        response = client.post("/v1/predict", json={"input": "abc", "options": options})
        assert response.status_code == 400, response.text
        assert other.result().status_code == 200


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
