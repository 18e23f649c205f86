"""`saccade bench decode`: writing tokens beside `transformers` and CTranslate2, with the same random weights.

Every side is a process of its own, with the number of threads at which it is fastest; they take turns, so that what
disturbs the machine disturbs all. All write equally many tokens: none may end early. For our own side there is also how
near a token comes to its matrix products alone and to reading its weights, and how its time grows with the context.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.bench.race import BenchProcess, race, row, spent
from saccade.bench.work import GPT2, OPUS, Work, installed, make, opened, writer
from saccade.config import ModelConfig
from saccade.decode.quantise import Int8
from saccade.decode.quantise import rows as quantised
from saccade.decode.step import ModelStepper
from saccade.model.model import Model

WORKS = {
    "gpt2 124 M, 1 x 64 tokens": Work("gpt2", GPT2, sequences=1, given=16, tokens=64),
    "gpt2 124 M, 8 x 64 tokens": Work("gpt2", GPT2, sequences=8, given=16, tokens=64),
    "marian 6 + 6, 64 x 20 tokens, beam 5": Work("marian", OPUS, sequences=64, given=20, tokens=20, beam=5),
}
GROWTH = {
    "gpt2 124 M": (GPT2, (64, 512, 1024)),
    "gpt2 124 M, rotary": ({**GPT2, "position": "rotary"}, (1024, 8192)),
}
PAIRS = (
    ("float32", "transformers float32"),
    ("float32", "CTranslate2 float32"),
    ("int8", "transformers float32"),
    ("int8", "CTranslate2 int8"),
)
PAUSE = 0.25  # seconds between turns: a team of threads spins for 0.2 after its work, on cores that are the next one's
STEPS = 16  # tokens that a time at some context is the median of
READ = 1 << 27  # numbers that are read to measure the memory: more than any cache holds


def rows(
    seconds: float = 30.0,
    works: dict[str, Work] = WORKS,
    growth: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = GROWTH,
) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured: the sides of a work race for about so many seconds, three rounds at least."""
    threads, models = 1, [work.model for work in works.values()]
    with tempfile.TemporaryDirectory() as aside:
        for name, work in works.items():
            folder, chosen = Path(aside, str(models.index(work.model))), dict[str, int]()
            if not folder.exists():
                make(work, folder)
            yield from _contest(name, work, folder, seconds, chosen)
            if work.family == "gpt2" and work.sequences == 1:
                threads = chosen["float32"]
                for precision, own in chosen.items():
                    yield from _limits(name, work, folder, precision, own, seconds)
    for name, (model, contexts) in growth.items():
        yield from _growth(name, model, contexts, threads)


def _contest(name: str, work: Work, folder: Path, seconds: float, chosen: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The lines of a work, with all sides in turn. `chosen` is filled with our threads for each precision."""
    pairs = [(f"saccade {precision}", peer) for precision, peer in PAIRS]
    labels = dict.fromkeys(label for pair in pairs for label in pair if installed(label.split()[0]))
    with ExitStack() as stack:
        sides = {
            label: stack.enter_context(
                closing(BenchProcess("saccade.bench.work", f"side({work!r}, {label!r}, {str(folder)!r})"))
            )
            for label in labels
        }
        first = {label: each.first for label, each in sides.items()}
        for label, found in first.items():
            if [len(each) for each in found["tokens"]] != [work.tokens] * work.sequences:
                raise AssertionError(f"{name}: {label} wrote another number of tokens than it should")
        times = _turns(sides, seconds)
    for own, peer in pairs:
        precision = own.split()[1]
        chosen[precision] = first[own]["threads"]
        yield from _compare(f"{name}, {precision}", peer, (first[own], first.get(peer)), (times[own], times.get(peer)))


def _turns(sides: dict[str, BenchProcess], seconds: float) -> dict[str, list[float]]:
    """The seconds of each side's turns."""
    times: dict[str, list[float]] = {label: [] for label in sides}
    end, rounds = time.monotonic() + seconds, 0
    while rounds < 3 or (time.monotonic() < end and rounds < 101):
        for label in list(sides)[:: 1 if rounds % 2 else -1]:
            time.sleep(PAUSE)
            times[label].append(sides[label].turn())
        rounds += 1
    return times


def _compare(case: str, peer: str, first: tuple[Any, Any], times: tuple[Any, Any]) -> Iterator[dict[str, Any]]:
    """The lines of a pair; of ours alone where the peer is not installed."""
    (ours, theirs), median = first, statistics.median
    if theirs is None:
        yield row(case, peer, median(times[0]), None)
        yield row(f"{case}, memory", peer, ours["memory"], None, unit="GB")
        return
    ratio = median(b / a for a, b in zip(*times, strict=True))
    yield row(case, peer, median(times[0]), median(times[1]), ratio)
    yield row(f"{case}, memory", peer, ours["memory"], theirs["memory"], unit="GB")
    yield row(f"{case}, threads that suit", peer, ours["threads"], theirs["threads"], unit="threads")
    if case.endswith("float32"):
        same = agreement(ours["tokens"], theirs["tokens"])
        yield row(f"{case}, tokens that agree", peer, same, 1.0, same, unit="share")


def agreement(ours: list[list[int]], theirs: list[list[int]]) -> float:
    """The share of places with the same token on both sides."""
    pairs = [pair for both in zip(ours, theirs, strict=True) for pair in zip(*both, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def _limits(
    name: str, work: Work, folder: Path, precision: str, threads: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """A token of one sequence beside its matrix products alone, and beside reading the weights as fast as memory can.

    The prompt is one token long, so that every step is the same.
    """
    short = work._replace(given=1, tokens=min(work.tokens, 16))
    with _threads(threads):
        model = opened(folder, precision)
        write = writer(model, short)
        with torch.inference_mode():
            modules, products = _products(model, partial(write, 1))
            ours, theirs, ratio = race(
                partial(write, short.tokens), lambda: _run(products, short.tokens), seconds=seconds / 4
            )
        reading = sum(each.nbytes for module in modules for each in _tensors(module)) / _bandwidth()
    case = f"{name.partition(',')[0]}, a token, {precision}"
    yield row(case, "its products alone", ours / short.tokens, theirs / short.tokens, ratio)
    yield row(case, "reading its weights", ours / short.tokens, reading)


def _products(model: Model, run: Callable[[], object]) -> tuple[list[nn.Module], list[Callable[[], object]]]:
    """The modules that multiply by a matrix while `run` runs, in their order, and the products on what they got."""
    modules: list[nn.Module] = []
    products: list[Callable[[], object]] = []

    def seen(module: nn.Module, given: tuple[Any, ...], _: object) -> None:
        if isinstance(given[0], Tensor):  # a table of tokens is asked for by named values, and multiplies nothing
            x = given[0].flatten(0, -2)
            modules.append(module)
            products.append(partial(module.product, *quantised(x)) if isinstance(module, Int8) else partial(module, x))

    holders = [each for each in model.modules() if any(tensor.dim() > 1 for tensor in _tensors(each))]
    hooks = [each.register_forward_hook(seen) for each in holders]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return modules, products


def _run(products: list[Callable[[], object]], times: int) -> None:
    for _ in range(times):
        for product in products:
            product()


def _tensors(module: nn.Module) -> list[Tensor]:
    """Its own, not those of the modules inside."""
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]


def _bandwidth() -> float:
    """Bytes a second that the threads read at best: a sum, or a product with a vector, of a large buffer."""
    buffer = torch.ones(READ)
    table, vector = buffer.view(-1, 1 << 12), torch.ones(1 << 12)
    best = min(spent(read) for _ in range(5) for read in (buffer.sum, partial(torch.mv, table, vector)))
    return buffer.nbytes / best


@torch.inference_mode()
def _growth(name: str, model: dict[str, Any], contexts: tuple[int, ...], threads: int) -> Iterator[dict[str, Any]]:
    """The time of a token at each context, beside the one before."""
    stepper = ModelStepper(Model(ModelConfig(**model)).eval())
    state, _ = stepper.start([[1]])
    length, times = 1, []
    with _threads(threads):
        for context in contexts:
            while length < context - STEPS:
                read = min(512, context - STEPS - length)
                stepper.step(torch.ones(1, read, dtype=torch.long), state)
                length += read
            step = partial(stepper.step, torch.ones(1, 1, dtype=torch.long), state)
            times.append(statistics.median(spent(step) for _ in range(STEPS)))
            length += STEPS
    for (near, before), (far, after) in pairwise(zip(contexts, times, strict=True)):
        yield row(f"{name}, a token at context {far:,}", f"at context {near:,}", after, before)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
