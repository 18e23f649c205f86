"""`saccade bench decode`: writing tokens beside `transformers` and CTranslate2, with the same random weights.

Every side is a process of its own, with the threads that suit it best; they take turns, so that what disturbs the
machine disturbs all. All write equally many tokens: none may end. Of our own side also how near a token comes to its
matrix products alone and to the reading of its weights, and how its time grows with the context.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.bench.race import Side, forget_peak, peak, race, row, tell
from saccade.config import ModelConfig
from saccade.decode.generate import generate
from saccade.decode.quantise import Int8, quantise
from saccade.decode.quantise import rows as quantised
from saccade.decode.step import ModelStepper
from saccade.model.model import Model
from saccade.store.run import Run, export, load

Write = Callable[[int], list[list[int]]]  # so many tokens a sequence
Way = tuple[int, int]  # workers, and threads of each
Open = Callable[[Way], Write]

GPT2 = {
    "vocab": 50257,
    "width": 768,
    "heads": 12,
    "decoder": 12,
    "order": "pre",
    "feed": "gelu_tanh",
    "position": "learned(1024)",
    "head": "vocabulary",
}
OPUS = {
    "vocab": 58101,
    "width": 512,
    "heads": 8,
    "hidden": 2048,
    "encoder": 6,
    "decoder": 6,
    "order": "post",
    "feed": "silu",
    "position": "sinusoid(layout=half)",
    "scale_embedding": True,
    "output_bias": True,
    "head": "vocabulary",
}


class Work(NamedTuple):
    """A model, and what it is asked to write."""

    family: str
    model: dict[str, Any]
    sequences: int
    given: int  # tokens of each prompt, or of each source
    tokens: int  # that each sequence gets
    beam: int = 1

    @property
    def begin(self) -> int:
        """Marian's decoder begins with the padding, whose vector is zero."""
        return self.model["vocab"] - 1

    @property
    def end(self) -> int:
        """The token that nobody may write."""
        return 0 if self.family == "marian" else self.model["vocab"] - 1

    @property
    def inputs(self) -> list[list[int]]:
        """Prompts or sources, always the same."""
        draw = torch.Generator().manual_seed(0)
        return torch.randint(1, self.model["vocab"] - 1, (self.sequences, self.given), generator=draw).tolist()


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
PACKAGES = {"transformers": ("transformers",), "CTranslate2": ("ctranslate2", "transformers")}  # it reads the other's
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


def make(work: Work, folder: Path) -> None:
    """The model of a work as folders that the sides open.

    Larger feed-forwards let a token depend on more than the last one: plain random weights with a tied table say the
    same token for ever. Marian's padding and end are made impossible by the bias, since CTranslate2 does not know the
    former and forbids the latter before it computes probabilities, not after.
    """
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    model = Model(ModelConfig(**work.model))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".feed." in name and weight.dim() == 2:
                weight.mul_(3)
        if work.family == "marian":
            model.embed.tokens.weight[work.begin] = 0
            cast(Tensor, cast(nn.Module, model.head).bias)[[work.begin, work.end]] = -1e4
    export(Run(model), folder / "hf", work.family)
    if _installed("CTranslate2"):
        for precision in ("float32", "int8"):
            _convert(work, folder, precision)


def side(work: Work, label: str, folder: str) -> None:
    """One side of a work; called in a process of its own.

    Memory is what it holds while it writes, imports aside: before anything else, as a later opening would find its
    memory in pieces.
    """
    who, precision = label.split()
    opens = SIDES[who](work, Path(folder), precision)
    before = peak()
    write = opens((1, _cores()))
    forget_peak()
    tokens, memory = write(work.tokens), peak() - before
    del write
    way = min(_ways(who, work), key=lambda way: _trial(opens(way), work))
    write = opens(way)
    write(2)
    tell({"threads": way[0] * way[1], "memory": memory, "tokens": tokens})
    for _ in sys.stdin:
        tell(_seconds(write, work.tokens))


def _contest(name: str, work: Work, folder: Path, seconds: float, chosen: dict[str, int]) -> Iterator[dict[str, Any]]:
    """A work on all sides. `chosen` learns the threads of ours, a precision each."""
    pairs = [(f"saccade {precision}", peer) for precision, peer in PAIRS]
    labels = dict.fromkeys(label for pair in pairs for label in pair if _installed(label.split()[0]))
    with ExitStack() as stack:
        sides = {
            label: stack.enter_context(
                closing(Side("saccade.bench.decode", f"side({work!r}, {label!r}, {str(folder)!r})"))
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


def _turns(sides: dict[str, Side], seconds: float) -> dict[str, list[float]]:
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
        model = _model(folder, precision)
        write = _writer(model, short)
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
        if given[0].is_floating_point():  # a table is asked for by whole numbers
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
    best = min(_seconds(read) for _ in range(5) for read in (buffer.sum, partial(torch.mv, table, vector)))
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
            times.append(statistics.median(_seconds(step) for _ in range(STEPS)))
            length += STEPS
    for (near, before), (far, after) in pairwise(zip(contexts, times, strict=True)):
        yield row(f"{name}, a token at context {far:,}", f"at context {near:,}", after, before)


def _ours(work: Work, folder: Path, precision: str) -> Open:
    def opens(way: Way) -> Write:
        torch.set_num_threads(way[1])
        return _writer(_model(folder, precision), work)

    return opens


def _model(folder: Path, precision: str) -> Model:
    model = load(folder / "hf").model
    return quantise(model) if precision == "int8" else model


def _writer(model: Model, work: Work) -> Write:
    inputs, translates = work.inputs, work.family == "marian"

    def write(tokens: int) -> list[list[int]]:
        found = generate(
            model,
            None if translates else inputs,
            sources=inputs if translates else None,
            begin=work.begin if translates else None,
            end=work.end,
            min_tokens=tokens,
            max_tokens=tokens,
            beam=work.beam,
        )
        return [each.tokens for each in found]

    return write


def _transformers(work: Work, folder: Path, _: str) -> Open:
    kind = _peer(work)

    def opens(way: Way) -> Write:
        torch.set_num_threads(way[1])
        model = kind.from_pretrained(folder / "hf").eval()
        inputs = torch.tensor(work.inputs)
        skip = 1 if work.family == "marian" else work.given  # what stands before the tokens it wrote

        def write(tokens: int) -> list[list[int]]:
            made = model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                min_new_tokens=tokens,
                max_new_tokens=tokens,
                eos_token_id=work.end,
                pad_token_id=work.begin,
                do_sample=False,
                num_beams=work.beam,
                use_cache=True,
            )
            return cast(list[list[int]], made[:, skip:].tolist())

        return write

    return opens


def _peer(work: Work) -> Any:
    """The class at transformers."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return transformers.MarianMTModel if work.family == "marian" else transformers.GPT2LMHeadModel


def _ctranslate2(work: Work, folder: Path, precision: str) -> Open:
    import ctranslate2

    inputs = [list(map(str, each)) for each in work.inputs]

    def opens(way: Way) -> Write:
        workers, threads = way
        kind = ctranslate2.Translator if work.family == "marian" else ctranslate2.Generator
        model = kind(str(folder / precision), compute_type=precision, inter_threads=workers, intra_threads=threads)
        most = -(-work.sequences // workers)  # a batch for each worker

        def write(tokens: int) -> list[list[int]]:
            if work.family == "marian":
                found = model.translate_batch(
                    inputs,
                    beam_size=work.beam,
                    min_decoding_length=tokens,
                    max_decoding_length=tokens,
                    max_batch_size=most,
                )
                return [list(map(int, each.hypotheses[0])) for each in found]
            found = model.generate_batch(
                inputs, min_length=tokens, max_length=tokens, max_batch_size=most, include_prompt_in_result=False
            )
            return [each.sequences_ids[0] for each in found]

        return write

    return opens


def _convert(work: Work, folder: Path, precision: str) -> None:
    """The folder for CTranslate2, by its own tables of names; its converter would ask for a tokenizer besides."""
    from ctranslate2.converters import transformers as tables

    loader = tables.MarianMTLoader() if work.family == "marian" else tables.GPT2Loader()
    spec = loader.get_model_spec(_peer(work).from_pretrained(folder / "hf"))
    words = [str(token) for token in range(work.model["vocab"])]
    if work.family == "marian":
        spec.register_source_vocabulary(words[:-1])  # without the padding
        spec.register_target_vocabulary(words[:-1])
        spec.config.decoder_start_token = words[work.end]  # any: it begins with a zero vector
        spec.config.add_source_eos = False
    else:
        spec.register_vocabulary(words)
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = words[work.end]
    spec.validate()
    spec.optimize(quantization=precision)
    (folder / precision).mkdir()
    spec.save(str(folder / precision))


def _ways(who: str, work: Work) -> list[Way]:
    """Threads to try: 1, 2, 4 ... and all cores; CTranslate2 may also share a batch among workers."""
    cores = _cores()
    counts = sorted({*(1 << n for n in range(cores.bit_length()) if 1 << n <= cores), cores})
    workers = [each for each in counts if who == "CTranslate2" and each <= work.sequences] or [1]
    return [(each, count) for each in workers for count in counts if each * count <= cores]


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _trial(write: Write, work: Work) -> float:
    few = max(2, work.tokens // 8)
    return min(_seconds(write, few) for _ in range(4))


def _seconds(run: Callable[..., object], *given: Any) -> float:
    begin = time.perf_counter()
    run(*given)
    return time.perf_counter() - begin


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _installed(who: str) -> bool:
    return all(find_spec(each) for each in PACKAGES.get(who, ()))


SIDES: dict[str, Callable[[Work, Path, str], Open]] = {
    "saccade": _ours,
    "transformers": _transformers,
    "CTranslate2": _ctranslate2,
}
