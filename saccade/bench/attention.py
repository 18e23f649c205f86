"""`saccade bench attention`: the core beside torch's raw kernel, `nn.MultiheadAttention` and x-transformers.

Mask building counts on both sides. Both layers do the same matrix products with the same biases.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.bench.race import race, row

TOKENS, HEADS, WIDTH = 4096, 8, 512  # a batch has as many examples as make up so many tokens
LENGTHS = (128, 512, 2048)
MASKS = ("none", "causal", "padding", "causal+padding")


def rows(seconds: float = 2.0, lengths: tuple[int, ...] = LENGTHS) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds."""
    torch.manual_seed(0)
    for T in lengths:
        for name in MASKS:
            yield from _kernels(T, name, seconds)
    for T in lengths:
        yield from _layers(T, seconds)
    for T in lengths:
        yield from _watching(T, seconds)
    yield from _memory()


def _kernels(T: int, name: str, seconds: float) -> Iterator[dict[str, Any]]:
    q, k, v = (torch.randn(TOKENS // T, HEADS, T, WIDTH // HEADS) for _ in range(3))
    lengths = torch.linspace(T // 2, T, TOKENS // T).long()

    def ours() -> Tensor:
        masks = {
            "none": None,
            "causal": saccade.causal,
            "padding": saccade.padding(lengths),
            "causal+padding": saccade.causal & saccade.padding(lengths),
        }
        return saccade.attention(q, k, v, mask=masks[name])

    def theirs() -> Tensor:
        if name in ("none", "causal"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=name == "causal")
        mask = (torch.arange(T) < lengths[:, None])[:, None, None]
        if name == "causal+padding":
            mask = mask & torch.ones(T, T, dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    yield _raced(f"attention T={T} {name}, forward", "torch sdpa", ours, theirs, seconds)
    for x in (q, k, v):
        x.requires_grad_()
    yield _raced(
        f"attention T={T} {name}, forward+backward", "torch sdpa", _step(ours, q, k, v), _step(theirs, q, k, v), seconds
    )


def _layers(T: int, seconds: float) -> Iterator[dict[str, Any]]:
    """The same products and the same biases: torch's layer has them, x-transformers' has none."""
    x = torch.randn(TOKENS // T, T, WIDTH)
    torch_layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    peers: dict[str, tuple[bool, nn.Module, Callable[[], Tensor]]] = {
        "nn.MultiheadAttention": (True, torch_layer, lambda: torch_layer(x, x, x, need_weights=False)[0])
    }
    x_layer = _x_transformers()
    if x_layer is not None:
        peers["x-transformers"] = (False, x_layer, lambda: x_layer(x))
    for peer, (bias, module, call) in peers.items():
        ours = saccade.Attention(WIDTH, HEADS, bias=bias)
        if not bias and any("bias" in name for name, _ in module.named_parameters()):
            raise AssertionError(f"{peer} has biases: the comparison would not be fair")
        own = partial(ours, x)
        for mode in ("eval", "train"):
            ours.train(mode == "train")
            module.train(mode == "train")
            with torch.no_grad():
                yield _raced(f"layer T={T}, forward ({mode} mode)", peer, own, call, seconds)
        step = _step(own, *ours.parameters()), _step(call, *module.parameters())
        yield _raced(f"layer T={T}, forward+backward", peer, *step, seconds)


def _x_transformers() -> nn.Module | None:
    """Its layer with the same products: flash means torch's sdpa there."""
    try:
        from x_transformers.x_transformers import Attention as XAttention
    except ImportError:
        return None
    return XAttention(dim=WIDTH, heads=HEADS, dim_head=WIDTH // HEADS, flash=True)


def _watching(T: int, seconds: float) -> Iterator[dict[str, Any]]:
    x, layer = torch.randn(TOKENS // T, T, WIDTH), saccade.Attention(WIDTH, HEADS, mask="causal")

    def watched() -> None:
        with saccade.watch(layer):
            layer(x)

    with torch.no_grad():
        yield _raced(f"watch T={T}, forward", "not watched", watched, lambda: layer(x), seconds)


def _memory() -> Iterator[dict[str, Any]]:
    """Peak memory of additive attention, forward+backward, each in a process of its own."""
    ours, theirs = (_peak(kernel) for kernel in ("chunked", "plain"))
    yield row("additive B=1 H=1 D=64 T=4096, forward+backward, peak memory", "plain", ours, theirs, unit="GB")


_ADDITIVE = """
import sys, torch
from saccade.attend.score import additive
import saccade
from saccade.bench.race import peak
before = peak()
q, k, v = (torch.randn(1, 1, 4096, 64, requires_grad=True) for _ in range(3))
saccade.attention(q, k, v, score=additive(64), kernel=sys.argv[1]).sum().backward()
print(peak() - before)
"""


def _peak(kernel: str) -> float:
    done = subprocess.run([sys.executable, "-c", _ADDITIVE, kernel], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _step(forward: Callable[[], Tensor], *inputs: Tensor) -> Callable[[], object]:
    gradient = torch.randn_like(forward())
    return lambda: torch.autograd.grad(forward(), inputs, gradient, allow_unused=True)


def _raced(
    case: str, peer: str, ours: Callable[[], object], theirs: Callable[[], object], seconds: float
) -> dict[str, Any]:
    return row(case, peer, *race(ours, theirs, seconds=seconds))
