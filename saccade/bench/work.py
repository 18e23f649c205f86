"""The works of `saccade bench decode`, and the sides that write them: ours, `transformers` and CTranslate2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.bench.race import forget_peak, peak, spent, tell
from saccade.config import ModelConfig
from saccade.decode.generate import generate
from saccade.decode.quantise import quantise
from saccade.model.model import Model
from saccade.store.export import export
from saccade.store.load import load
from saccade.store.run import Run

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
# CTranslate2 converts a model of transformers.
PACKAGES = {"transformers": ("transformers",), "CTranslate2": ("ctranslate2", "transformers")}


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
        """The token that ends a sequence, which no side may write."""
        return 0 if self.family == "marian" else self.model["vocab"] - 1

    @property
    def inputs(self) -> list[list[int]]:
        """Prompts or sources, always the same."""
        draw = torch.Generator().manual_seed(0)
        return torch.randint(1, self.model["vocab"] - 1, (self.sequences, self.given), generator=draw).tolist()


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
            cast(Tensor, model.table)[work.begin] = 0
            cast(Tensor, cast(nn.Module, model.head).bias)[[work.begin, work.end]] = -1e4
    export(Run(model), folder / "hf", work.family)
    if installed("CTranslate2"):
        for precision in ("float32", "int8"):
            _convert(work, folder, precision)


def side(work: Work, label: str, folder: str) -> None:
    """One side of a work; called in a process of its own.

    Memory is what it holds while it writes, without imports. It is measured first, because the heap is fragmented once
    models were opened and freed.
    """
    who, precision = label.split()
    opens = SIDES[who](work, Path(folder), precision)
    before = peak()
    write = opens((1, _cores()))
    forget_peak()
    tokens, memory = write(work.tokens), peak() - before
    del write
    way = min(ways(who, work), key=lambda way: _trial(opens(way), work))
    write = opens(way)
    write(2)
    tell({"threads": way[0] * way[1], "memory": memory, "tokens": tokens})
    for _ in sys.stdin:
        tell(spent(partial(write, work.tokens)))


def _ours(work: Work, folder: Path, precision: str) -> Open:
    def opens(way: Way) -> Write:
        torch.set_num_threads(way[1])
        return writer(opened(folder, precision), work)

    return opens


def opened(folder: Path, precision: str) -> Model:
    """Our model of a work, in float32 or int8."""
    model = load(folder / "hf").model
    return quantise(model) if precision == "int8" else model


def writer(model: Model, work: Work) -> Write:
    """A function that writes a work with our model."""
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


def ways(who: str, work: Work) -> list[Way]:
    """Threads to try: 1, 2, 4 ... and all cores; CTranslate2 may also share a batch among workers."""
    cores = _cores()
    counts = sorted({*(1 << n for n in range(cores.bit_length()) if 1 << n <= cores), cores})
    workers = [each for each in counts if who == "CTranslate2" and each <= work.sequences] or [1]
    return [(each, count) for each in workers for count in counts if each * count <= cores]


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _trial(write: Write, work: Work) -> float:
    """Seconds for a few tokens of a work, the best of four."""
    few = max(2, work.tokens // 8)
    return min(spent(partial(write, few)) for _ in range(4))


def installed(who: str) -> bool:
    """Whether a side has what it needs."""
    return all(find_spec(each) for each in PACKAGES.get(who, ()))


SIDES: dict[str, Callable[[Work, Path, str], Open]] = {
    "saccade": _ours,
    "transformers": _transformers,
    "CTranslate2": _ctranslate2,
}
