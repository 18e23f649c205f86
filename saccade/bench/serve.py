"""`saccade bench serve`: streamed completions beside `transformers serve`, with the same random weights.

Every server is a process of its own, halted while it is another's turn, so that one which spins when idle does no harm.
They take turns, so that what disturbs the machine disturbs all: in a turn so many clients ask at the same moment, each
for as many tokens, and read them as they come.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from saccade.bench.race import row
from saccade.bench.work import GPT2, Work, make
from saccade.error import SaccadeError

CLIENTS = (1, 8, 32)
TOKENS, GIVEN = 64, 16  # of an answer and of a prompt
PATIENCE = 180.0  # seconds until a server must have answered for the first time
PAUSE = 0.25  # seconds between turns
NEEDED = ("transformers", "accelerate", "fastapi", "uvicorn", "openai")  # of `transformers serve`
PEERS: dict[str, tuple[str, ...]] = {
    "transformers serve": ("--no-continuous-batching",),
    "transformers serve, continuous batching": ("--continuous-batching",),
}


class Turn(NamedTuple):
    """What one turn of some clients came to."""

    rate: float  # tokens a second, of all clients together
    first: float  # seconds until a client's first token, the median


def rows(
    seconds: float = 30.0, model: dict[str, Any] = GPT2, clients: tuple[int, ...] = CLIENTS, tokens: int = TOKENS
) -> Iterator[dict[str, Any]]:
    """All lines: for each number of clients the servers race for about so many seconds, three rounds at least."""
    size = "gpt2 124 M" if model == GPT2 else "gpt2, smaller"
    with tempfile.TemporaryDirectory() as aside, ExitStack() as stack:
        folder = made(model, Path(aside))
        ours = stack.enter_context(closing(Ours(folder)))
        theirs = {name: stack.enter_context(closing(Theirs(folder, flags))) for name, flags in present().items()}
        for each in (ours, *theirs.values()):
            each.warm()
            each.halt()
        for count in clients:
            turns = contest({"saccade": ours, **theirs}, count, tokens, seconds)
            case = f"{size}, {count} client{'s' * (count > 1)} x {tokens} tokens"
            for peer in PEERS:
                yield from compared(case, peer, turns["saccade"], turns.get(peer))


def compared(case: str, peer: str, ours: list[Turn], theirs: list[Turn] | None) -> Iterator[dict[str, Any]]:
    """The lines of a pair: medians over the rounds, and the median of each round's own ratio."""
    median = statistics.median
    rate, first = median(each.rate for each in ours), median(each.first for each in ours)
    if theirs is None:
        yield row(case, peer, rate, None, unit="tokens/s")
        yield row(f"{case}, first token", peer, first, None)
        return
    pairs = list(zip(ours, theirs, strict=True))
    gained = median(a.rate / b.rate for a, b in pairs)
    yield row(case, peer, rate, median(each.rate for each in theirs), gained, unit="tokens/s")
    sooner = median(b.first / a.first for a, b in pairs)
    yield row(f"{case}, first token", peer, first, median(each.first for each in theirs), sooner)


def contest(servers: dict[str, ServerProcess], clients: int, tokens: int, seconds: float) -> dict[str, list[Turn]]:
    """The turns of each server, in alternating order."""
    found: dict[str, list[Turn]] = {name: [] for name in servers}
    end, rounds = time.monotonic() + seconds, 0
    while rounds < 3 or (time.monotonic() < end and rounds < 101):
        prompts = [_prompt(random.Random(f"{rounds} {client}")) for client in range(clients)]
        for name in list(servers)[:: 1 if rounds % 2 else -1]:
            time.sleep(PAUSE)
            servers[name].go_on()
            found[name].append(asyncio.run(turn(servers[name], prompts, tokens)))
            servers[name].halt()
        rounds += 1
    return found


async def turn(server: ServerProcess, prompts: list[str], tokens: int) -> Turn:
    """All clients at once; each prompt is new, so that no server can have kept its state."""
    begin = time.perf_counter()
    found = await asyncio.gather(*(server.stream(prompt, tokens) for prompt in prompts))
    spent = time.perf_counter() - begin
    return Turn(sum(count for count, _ in found) / spent, statistics.median(first for _, first in found))


class ServerProcess:
    """A process that serves a model by OpenAI's routes."""

    def __init__(self, process: subprocess.Popen[str], port: int, model: str) -> None:
        self.process, self.port, self.model = process, port, model

    def warm(self) -> None:
        """Waits for its first answer, which may take long."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return asyncio.run(self._first())
            except (OSError, EOFError) as problem:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise SaccadeError(f"a server of the bench does not answer: {problem}") from None
            time.sleep(0.2)

    def halt(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    async def stream(self, prompt: str, tokens: int) -> tuple[int, float]:
        """How many tokens came, and the seconds until the first."""
        body = {"model": self.model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True}
        content = json.dumps(body | {"stream_options": {"include_usage": True}}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
        begin, first, counted = time.perf_counter(), 0.0, 0
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + content)
        async for line in reader:
            if not line.startswith(b"data: {"):
                continue
            piece = json.loads(line[6:])
            if not first and any(each.get("text") for each in piece.get("choices", ())):
                first = time.perf_counter() - begin
            counted = (piece.get("usage") or {}).get("completion_tokens", counted)
        writer.close()
        if not first or counted != tokens:
            raise EOFError(f"{counted} of {tokens} tokens came")
        return counted, first

    async def _first(self) -> None:
        await asyncio.wait_for(self.stream("warm", 2), PATIENCE)


class Ours(ServerProcess):
    """`saccade serve`."""

    def __init__(self, folder: Path) -> None:
        code = "from saccade.cli import main; main()"
        process = _started([sys.executable, "-c", code, "serve", f"gpt2={folder}", "--port", "0"])
        assert process.stdout is not None
        found = re.search(r"http://\S+:(\d+)", process.stdout.readline())
        if found is None:
            process.kill()
            process.communicate()
            raise SaccadeError(f"saccade serve did not start: try it by hand with {folder}")
        super().__init__(process, int(found[1]), "gpt2")


class Theirs(ServerProcess):
    """`transformers serve`, on a port that was free a moment ago."""

    def __init__(self, folder: Path, flags: tuple[str, ...]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        code = "from transformers.cli.transformers import main; main()"
        where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
        super().__init__(
            _started([sys.executable, "-c", code, "serve", str(folder), *where, *flags]), port, str(folder)
        )


def present() -> dict[str, tuple[str, ...]]:
    """The peers that can be started here."""
    return PEERS if all(find_spec(name) for name in NEEDED) else {}


def made(model: dict[str, Any], folder: Path) -> Path:
    """A Hugging Face folder that all servers open: random weights, and a tokenizer of letters and words."""
    vocab = model["vocab"]
    make(Work("gpt2", model, 1, GIVEN, TOKENS), folder)
    letters = string.ascii_lowercase  # of the prompts; a token that is half a character would be sent late
    words = [f"Ġw{number}" for number in range(len(letters), vocab - 1)]
    tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate([*letters, *words])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    tokenizer.save(str(folder / "hf" / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (folder / "hf" / "tokenizer_config.json").write_text(json.dumps(about))
    return folder / "hf"


def _prompt(draw: random.Random) -> str:
    return "".join(draw.choices(string.ascii_lowercase, k=GIVEN))


def _started(command: list[str]) -> subprocess.Popen[str]:
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
