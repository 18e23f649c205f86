"""A server under mixed load for a while: some seconds, or as many as SACCADE_SOAK says; its memory stays as it is."""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from small import ask, idle, serving, translating, wait_for, writing

SOAK = float(os.environ.get("SACCADE_SOAK", "4"))


@pytest.mark.proof
def test_memory_is_flat_under_mixed_load():
    runs = {"writer": writing(), "translator": translating()}
    with serving(runs, answers=31, looks=7) as made:
        end = time.monotonic() + SOAK / 4
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda number: mix(made, number, end, least=12), range(6)))
        before, end = memory(), time.monotonic() + SOAK
        with ThreadPoolExecutor(6) as pool:
            counts = list(pool.map(lambda number: mix(made, number, end), range(6)))
        wait_for(lambda: idle(made))
        assert min(counts) > 0
        grown = memory() - before
        assert grown < 48 << 20, f"{grown >> 20} MB more after {sum(counts)} requests"
        assert len(made.server.history) <= 31
        assert len(made.server.inspector.looks) <= 7


def mix(made, number: int, end: float, least: int = 0) -> int:
    """One client: whole and streamed answers, looks, bad requests, and leaving; `least` of them, however slow."""
    count = 0
    with httpx.Client(base_url=made.url, timeout=60) as client:
        while time.monotonic() < end or count < least:
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
