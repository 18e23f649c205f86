"""`saccade bench model`: whole models beside `transformers` and x-transformers, random weights, no dropout.

Forward in inference, a training step (forward, cross-entropy, backward), peak memory of a training step, and opening a
folder with its first forward. x-transformers has no GPT-2 or BERT; its nearest stack of the same size stands in.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.bench.race import peak, race, row
from saccade.field.loss import token_loss
from saccade.model.model import Model

SHAPES = {"gpt2": (4, 256), "bert-base": (8, 128)}
HEADS = {"gpt2": "vocabulary", "bert-base": "masked"}


def rows(seconds: float = 20.0) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds."""
    for name, (B, T) in SHAPES.items():
        for peer in PEERS[name]:
            if not _installed(peer):
                continue
            torch.manual_seed(0)
            x = torch.randint(0, 30000, (B, T))
            ours, theirs = _ours(name), PEERS[name][peer]()
            with torch.no_grad():
                found = race(_forward(ours.eval(), x), _forward(theirs.eval(), x), seconds=seconds)
                yield row(f"{name} {B} x {T}, forward", peer, *found)
            found = race(_step(ours.train(), x), _step(theirs.train(), x), seconds=seconds)
            yield row(f"{name} {B} x {T}, training step", peer, *found)
            del ours, theirs
            own, other = (_alone(f"memory('{name}', '{side}')") for side in ("saccade", peer))
            yield row(f"{name} {B} x {T}, peak memory of a training step", peer, own, other, unit="GB")
    if _installed("transformers"):
        yield from _opening()


def memory(name: str, side: str) -> float:
    """GB that a training step adds at its peak; called in a process of its own."""
    B, T = SHAPES[name]
    torch.manual_seed(0)
    model = _ours(name) if side == "saccade" else PEERS[name][side]()
    before = peak()
    _step(model.train(), torch.randint(0, 30000, (B, T)))()
    return peak() - before


def opening(folder: str, side: str) -> float:
    """Seconds to open a folder and run once, imports aside; called in a process of its own."""
    x = torch.randint(0, 30000, (1, 16))
    if side == "saccade":
        from saccade.store.load import load

        begin = time.perf_counter()
        with torch.no_grad():
            load(folder).model(x)
    else:
        from transformers import GPT2LMHeadModel

        begin = time.perf_counter()
        with torch.no_grad():
            GPT2LMHeadModel.from_pretrained(folder)(x)
    return time.perf_counter() - begin


def _opening() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as aside:
        folder = str(Path(aside) / "gpt2")
        model: Any = _hugging_face_gpt2()
        model.save_pretrained(folder)
        del model
        times: dict[str, list[float]] = {"saccade": [], "transformers": []}
        for _ in range(3):
            for side, found in times.items():
                found.append(_alone(f"opening({folder!r}, {side!r})"))
        ours, theirs = (sorted(each)[1] for each in times.values())
        yield row("gpt2 folder, open and first forward", "transformers", ours, theirs)


def _alone(call: str) -> float:
    code = f"import warnings; warnings.simplefilter('ignore')\nfrom saccade.bench.model import *\nprint({call})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def _ours(name: str) -> nn.Module:
    return saccade.build(name, head=HEADS[name])


def _hugging_face_gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False))


def _hugging_face_bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def _x_transformers(vocab: int, causal: bool) -> nn.Module:
    from x_transformers import Decoder, Encoder, TransformerWrapper

    layers = (Decoder if causal else Encoder)(dim=768, depth=12, heads=12, attn_flash=True)
    return TransformerWrapper(num_tokens=vocab, max_seq_len=1024, attn_layers=layers, tie_embedding=True)


def _forward(model: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    return lambda: _logits(model(x))


def _step(model: nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward, loss and backward as each side trains: ours with its own loss, the others with torch's."""

    def step() -> None:
        model.zero_grad(set_to_none=True)
        if isinstance(model, Model):
            loss = token_loss(model, model.states(x).last.flatten(0, 1), x.flatten()) / x.numel()
        else:
            loss = F.cross_entropy(_logits(model(x)).flatten(0, 1), x.flatten())
        loss.backward()

    return step


def _logits(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else output.logits


def _installed(peer: str) -> bool:
    from importlib.util import find_spec

    return find_spec(peer.replace("-", "_")) is not None


PEERS: dict[str, dict[str, Callable[[], nn.Module]]] = {
    "gpt2": {"transformers": _hugging_face_gpt2, "x-transformers": lambda: _x_transformers(50257, causal=True)},
    "bert-base": {"transformers": _hugging_face_bert, "x-transformers": lambda: _x_transformers(30522, causal=False)},
}
