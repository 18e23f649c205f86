"""`saccade bench train`: training steps of the real loop beside nanoGPT's loop, a plain one around `nn.LSTM`, and
`transformers`' Trainer.

Every side is a process of its own, with the same weights and batches of the same shapes (the first one the same, whose
loss must agree); they take turns, a few steps each, so that what disturbs the machine disturbs both. nanoGPT itself is
no package: its loop and model for a processor are written down here from its README (AdamW with two groups, clipping,
no compilation) in plain torch.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn

from saccade.bench.race import BenchProcess, row, tell
from saccade.config import ModelConfig
from saccade.learn.loop import Loop
from saccade.learn.prepare import Prepared, prepare
from saccade.learn.progress import MetricsLog, Progress
from saccade.model.model import Model
from saccade.recipe import Recipe
from saccade.recipes import read as recipes
from saccade.store.export import export
from saccade.store.run import Run
from saccade.task.batch import Batch
from saccade.task.pair import resolved

LETTERS = "".join(map(chr, [*range(48, 58), *range(65, 91), *range(97, 122)]))  # 61: with four special ones, 65 tokens
STEPS = 4  # of a turn, after one that is not counted

GPT = {"order": "pre", "feed": "gelu_tanh", "position": "learned(256)"}
MARIAN = {
    "order": "post",
    "feed": "relu",
    "position": "sinusoid(layout=half)",
    "scale_embedding": True,
    "output_bias": True,
}
RECURRENT = {"order": "plain", "feed": "none", "mixer": "lstm", "heads": 1}
NANO, PLAIN, TRAINER = "nanoGPT's loop", "nn.LSTM, a plain loop", "transformers' Trainer"
SMALL = {**GPT, "vocab": 65, "width": 128, "heads": 4, "decoder": 4}
MEDIUM = {**GPT, "vocab": 5000, "width": 192, "heads": 6, "decoder": 6}
TRANSLATOR = {**MARIAN, "vocab": 10000, "width": 128, "heads": 4, "hidden": 256, "encoder": 4, "decoder": 4}
LSTM = {**RECURRENT, "vocab": 65, "width": 256, "decoder": 2}
LSTM_WORDS = {**RECURRENT, "vocab": 10000, "width": 192, "decoder": 2}
LARGE = {**GPT, "vocab": 50257, "width": 768, "heads": 12, "decoder": 12}


class Case(NamedTuple):
    """A model, the tokens of its batches and windows, and the peer."""

    model: dict[str, Any]
    batch: int
    length: int
    peer: str
    task: str = "write"
    compile: bool = False  # ours; nanoGPT's README leaves it out on a processor, Trainer's default is not to


CASES = {
    "gpt 4 x 128, 12 x 64": Case({**SMALL, "feed": "gelu", "bias": False}, 768, 64, NANO),
    "gpt 4 x 128, 12 x 64, compiled": Case({**SMALL, "feed": "gelu", "bias": False}, 768, 64, NANO, compile=True),
    "gpt 4 x 128 with biases, 12 x 64": Case(SMALL, 768, 64, TRAINER),
    "gpt 4 x 128 with biases, 12 x 64, compiled": Case(SMALL, 768, 64, TRAINER, compile=True),
    "gpt 6 x 192, 5,000 tokens, 16 x 128": Case(MEDIUM, 2048, 128, TRAINER),
    "gpt 6 x 192, 5,000 tokens, 16 x 128, compiled": Case(MEDIUM, 2048, 128, TRAINER, compile=True),
    "translator 4 + 4 x 128, 10,000 tokens": Case(TRANSLATOR, 2048, 1, TRAINER, "translate"),
    "lstm 2 x 256, 32 x 64": Case(LSTM, 2048, 64, PLAIN),
    "lstm 2 x 192, 10,000 tokens, 20 x 35": Case(LSTM_WORDS, 700, 35, PLAIN),
    "gpt2 124 M, 4 x 256": Case(LARGE, 1024, 256, TRAINER),
}
PACKAGES = {TRAINER: ("transformers", "accelerate"), NANO: (), PLAIN: ()}


def rows(seconds: float = 40.0) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds."""
    for name, case in CASES.items():
        if all(find_spec(each) for each in PACKAGES[case.peer]):
            ours, theirs, ratio = _turns(name, case.peer, seconds)
            yield row(f"{name}, training step", case.peer, ours, theirs, ratio)


def _turns(name: str, peer: str, seconds: float) -> tuple[float, float, float]:
    """Median seconds of a step on each side, and the median of the turns' own ratios."""
    with tempfile.TemporaryDirectory() as folder:
        calls = [f"side({name!r}, {each!r}, {folder!r})" for each in ("saccade", peer)]
        sides = [BenchProcess("saccade.bench.train", call, XDG_CACHE_HOME=folder) for call in calls]
        try:
            first = [side.first for side in sides]
            if not math.isclose(*first, rel_tol=2e-4):
                raise AssertionError(f"{name}: the losses begin apart, {first[0]} and {first[1]}")
            times: list[tuple[float, float]] = []
            end = time.monotonic() + seconds
            while len(times) < 5 or (time.monotonic() < end and len(times) < 101):
                order = sides if len(times) % 2 else sides[::-1]
                found = {side: side.turn() for side in order}
                times.append((found[sides[0]], found[sides[1]]))
        finally:
            for side in sides:
                side.close()
    median = statistics.median
    return median(a for a, _ in times), median(b for _, b in times), median(b / a for a, b in times)


def side(name: str, which: str, folder: str) -> None:
    """One side of a case; called in a process of its own."""
    prepared = _prepared(name, which, Path(folder))
    SIDES[which](prepared, Path(folder) / which.split("'")[0])


def _prepared(name: str, which: str, folder: Path) -> Prepared:
    """The same data and the same weights on both sides: all of it depends on the case alone."""
    case = CASES[name]
    draw = random.Random(0)
    files = [folder / f"{which}.txt" for which in ("a", "b")][: 2 if case.task == "translate" else 1]
    for file in files:
        lines = ("".join(draw.choices(LETTERS, k=draw.randint(8, 24))) for _ in range(4000))
        text = "\n".join(lines) if case.task == "translate" else "".join(lines)
        if not file.exists():
            file.write_text(text)
    letters: dict[str, Any] = {"tokenizer": "characters", "vocab": 65}
    fields = {"x": {"source": letters}} if case.task == "translate" else {"y": {**letters, "window": case.length}}
    train: dict[str, Any] = {"steps": 1 << 20, "batch": case.batch, "every": 1 << 20, "decay": 0.1}
    train["compile"] = which == "saccade" and case.compile
    data = {"files": list(map(str, files))}
    made = resolved(
        recipes.from_values({"task": case.task, "data": data, **fields, "model": case.model, "train": train})
    )
    found = prepare(made, lambda _: None)
    torch.manual_seed(0)
    config = ModelConfig(**{**case.model, "head": "vocabulary"})  # the vocabulary of the case, larger than the text's
    return found._replace(run=Run(Model(config), recipe=made.model_copy(update={"model": config})))


def _ours(prepared: Prepared, folder: Path) -> None:
    """The real loop, data and bookkeeping included."""
    folder.mkdir(parents=True, exist_ok=True)
    loop = Loop(prepared, folder, Progress(Console(quiet=True), 1))
    batches, metrics = loop.batches(), MetricsLog(folder, 0)
    tell(_loss(prepared))

    def step() -> None:
        loop.advance(batches, metrics)

    _serve(step)


def _loss(prepared: Prepared) -> float:
    """Of the first batch, before anything is learned."""
    recipe = _recipe(prepared)
    _, _, batch = next(prepared.task.walk(prepared.train, recipe.train, recipe.seed, 0, 0))
    with torch.no_grad():
        (term,) = prepared.task.terms(prepared.run.model, batch).values()
        return float(term.sum) / batch.count


def _nano_loop(kind: Callable[[Model], nn.Module], prepared: Prepared, folder: Path) -> None:
    """nanoGPT's loop around a module that is made of ours and gives the mean loss."""
    recipe = _recipe(prepared)
    model = kind(prepared.run.model)
    stream, length = prepared.train.column("text").array("tokens"), recipe.y["window"]
    rows_ = recipe.train.batch // length

    def batch() -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(stream) - length, (rows_,)).tolist()
        x = torch.stack([torch.from_numpy(stream[i : i + length].astype(np.int64)) for i in starts])
        y = torch.stack([torch.from_numpy(stream[i + 1 : i + 1 + length].astype(np.int64)) for i in starts])
        return x, y

    matrices = [each for each in model.parameters() if each.dim() >= 2]
    vectors = [each for each in model.parameters() if each.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
    _, _, first = next(prepared.task.walk(prepared.train, recipe.train, recipe.seed, 0, 0))
    with torch.no_grad():
        tell(float(model(first.y.values["tokens"], first.y.values["wanted"])))
    drawn = [batch()]

    def step() -> None:
        for group in optimiser.param_groups:
            group["lr"] = 1e-3
        loss = model(*drawn[0])
        drawn[0] = batch()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    _serve(step)


class Tied(nn.Module):
    """An embedding tied to the head, with our weights, and the loss inside; subclasses say what stands between."""

    def __init__(self, source: Model) -> None:
        super().__init__()
        self.tokens = nn.Embedding(source.config.vocab, source.config.width)
        self.head = nn.Linear(source.config.width, source.config.vocab, bias=False)
        self.head.weight = self.tokens.weight
        self.tokens.weight.data.copy_(cast(Tensor, source.table).data)

    def states(self, x: Tensor) -> Tensor:
        """(B,T) -> (B,T,C)."""
        raise NotImplementedError

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        logits = self.head(self.states(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1), ignore_index=-1)


class Nano(Tied):
    """nanoGPT's model without biases, in its manner: stacked projections."""

    def __init__(self, source: Model) -> None:
        super().__init__(source)
        C, self.heads = source.config.width, source.config.heads
        self.places, self.norm = nn.Embedding(256, C), nn.LayerNorm(C)
        self.blocks = nn.ModuleList(NanoBlock(C) for _ in range(source.config.decoder))
        self._copy_weights(dict(source.named_parameters()))

    @torch.no_grad()
    def _copy_weights(self, own: dict[str, nn.Parameter]) -> None:
        self.places.weight.copy_(own["embed.position.weight"])
        self.norm.weight.copy_(own["decoder.norm.weight"])
        for number, block in enumerate(self.blocks):
            before = f"decoder.blocks.{number}."
            stacked = torch.cat([own[f"{before}attention.{each}.weight"] for each in ("query", "key", "value")])
            cast(NanoBlock, block).qkv.weight.copy_(stacked)
            for name, theirs in (
                ("out", "attention.out"),
                ("up", "feed.up"),
                ("down", "feed.down"),
                ("norm1", "attention_norm"),
                ("norm2", "feed_norm"),
            ):
                getattr(block, name).weight.copy_(own[f"{before}{theirs}.weight"])

    def states(self, x: Tensor) -> Tensor:
        """(B,T) -> (B,T,C)."""
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h, self.heads)
        return cast(Tensor, self.norm(h))


class PlainLSTM(Tied):
    """What one writes first: an embedding, `nn.LSTM`, and the embedding again."""

    def __init__(self, source: Model) -> None:
        super().__init__(source)
        C, own = source.config.width, dict(source.named_parameters())
        self.lstm = nn.LSTM(C, C, source.config.decoder, batch_first=True)
        for name, weight in self.lstm.named_parameters():
            kind, _, layer = name.rpartition("_l")
            weight.data.copy_(own[f"decoder.blocks.{layer}.mixer.forth.{kind}_l0"].data)

    def states(self, x: Tensor) -> Tensor:
        """(B,T) -> (B,T,C)."""
        return cast(Tensor, self.lstm(self.tokens(x))[0])


class NanoBlock(nn.Module):
    """x + attention(norm(x)), then x + feed(norm(x))."""

    def __init__(self, C: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.up, self.gelu, self.down = nn.Linear(C, 4 * C, bias=False), nn.GELU(), nn.Linear(4 * C, C, bias=False)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: Tensor, heads: int) -> Tensor:
        """(B,T,C) -> (B,T,C)."""
        B, T, C = x.shape
        q, k, v = (each.view(B, T, heads, C // heads).transpose(1, 2) for each in self.qkv(self.norm1(x)).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).contiguous().view(B, T, C)))
        return x + self.drop(self.down(self.gelu(self.up(self.norm2(x)))))


def _trainer(prepared: Prepared, folder: Path) -> None:
    """transformers' Trainer over the same batches, which come to it whole."""
    import transformers as hf

    recipe = _recipe(prepared)
    translates = recipe.task == "translate"
    export(prepared.run, folder, "marian" if translates else "gpt2")
    kind = hf.MarianMTModel if translates else hf.GPT2LMHeadModel
    model = kind.from_pretrained(folder)
    model.config.use_cache = False
    for each in model.modules():  # no dropout on either side
        if isinstance(each, nn.Dropout):
            each.p = 0.0
        elif isinstance(getattr(each, "dropout", None), float):
            cast(Any, each).dropout = 0.0

    class TrainerBatches(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[dict[str, Tensor]]:
            for _, _, batch in prepared.task.walk(prepared.train, recipe.train, recipe.seed, 0, 0):
                yield _hugging_face_batch(batch)

    with torch.no_grad():
        tell(float(model(**next(iter(TrainerBatches()))).loss))
    turns = _Turns()

    class Callback(hf.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            turns.step_done()

    arguments = hf.TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=1,
        max_steps=1 << 20,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        weight_decay=0.1,
        adam_beta2=0.98,
        remove_unused_columns=False,
    )
    trainer = hf.Trainer(
        model, arguments, train_dataset=TrainerBatches(), data_collator=lambda each: each[0], callbacks=[Callback()]
    )
    trainer.train()


def _hugging_face_batch(batch: Batch) -> dict[str, Tensor]:
    """A batch with the names of transformers, whose GPT-2 would shift the labels itself unless they come shifted."""
    shown, wanted = batch.y.values["tokens"], batch.y.values["wanted"]
    if not batch.x:
        return {"input_ids": shown, "labels": shown, "shift_labels": wanted}
    (x,) = batch.x.values()
    source = x.values["tokens"]
    lengths = x.lengths[0] if x.lengths else torch.full((x.rows,), source.shape[1])
    seen = (torch.arange(source.shape[1]) < lengths[:, None]).long()
    labels = wanted.masked_fill(wanted < 0, -100)
    return {"input_ids": source, "attention_mask": seen, "decoder_input_ids": shown, "labels": labels}


class _Turns:
    """Counts the steps of a loop, which may be a peer's own, into turns."""

    def __init__(self) -> None:
        self.left = 0
        self.begin = 0.0

    def step_done(self) -> None:
        """Answers at the end of a turn and waits for the next."""
        self.left -= 1
        if self.left == STEPS:
            self.begin = time.perf_counter()  # the first step of a turn warms up
        if self.left <= 0:
            if self.begin:
                tell((time.perf_counter() - self.begin) / STEPS)
            if not sys.stdin.readline():
                sys.exit()
            self.left, self.begin = STEPS + 1, 0.0


def _serve(step: Callable[[], None]) -> None:
    """Steps for ever; `_Turns` waits between the turns and ends the process."""
    turns = _Turns()
    while True:
        step()
        turns.step_done()


def _recipe(prepared: Prepared) -> Recipe:
    assert prepared.run.recipe is not None
    return prepared.run.recipe


SIDES: dict[str, Callable[[Prepared, Path], None]] = {
    "saccade": _ours,
    NANO: partial(_nano_loop, Nano),
    PLAIN: partial(_nano_loop, PlainLSTM),
    TRAINER: _trainer,
}
