"""`saccade bench attention`: the core beside torch's raw kernel, `nn.MultiheadAttention` and x-transformers.

Mask building counts on both sides. Both layers do the same matrix products with the same biases.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.bench.race import race, row

BATCH, HEADS, WIDTH = 4, 8, 512
LENGTHS = (128, 512, 2048)
MASKS = ("none", "causal", "padding", "causal+padding")


def rows(rounds: int = 15, lengths: tuple[int, ...] = LENGTHS) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured."""
    torch.manual_seed(0)
    for T in lengths:
        for name in MASKS:
            yield from _kernels(T, name, rounds)
    for T in lengths:
        yield from _layers(T, rounds)
    for T in lengths:
        yield from _watching(T, rounds)
    yield from _memory()


def _kernels(T: int, name: str, rounds: int) -> Iterator[dict[str, Any]]:
    q, k, v = (torch.randn(BATCH, HEADS, T, WIDTH // HEADS) for _ in range(3))
    lengths = torch.linspace(T // 2, T, BATCH).long()

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

    yield _faced(f"attention T={T} {name}, forward", "torch sdpa", ours, theirs, rounds)
    for x in (q, k, v):
        x.requires_grad_()
    yield _faced(
        f"attention T={T} {name}, forward+backward", "torch sdpa", _step(ours, q, k, v), _step(theirs, q, k, v), rounds
    )


def _layers(T: int, rounds: int) -> Iterator[dict[str, Any]]:
    x = torch.randn(BATCH, T, WIDTH)
    ours = saccade.Attention(WIDTH, HEADS)
    torch_layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with torch.no_grad():
        nn.init.normal_(torch_layer.in_proj_bias, std=0.02)
        nn.init.normal_(torch_layer.out_proj.bias, std=0.02)
        for layer, part in zip((ours.query, ours.key, ours.value), torch_layer.in_proj_bias.chunk(3), strict=True):
            layer.bias.copy_(part)
    peers: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        "nn.MultiheadAttention": (torch_layer, lambda: torch_layer(x, x, x, need_weights=False)[0])
    }
    x_layer = _x_transformers()
    if x_layer is not None:
        peers["x-transformers"] = (x_layer, lambda: x_layer(x))
    for peer, (module, call) in peers.items():
        for mode in ("eval", "train"):
            ours.train(mode == "train")
            module.train(mode == "train")
            with torch.no_grad():
                yield _faced(f"layer T={T}, forward ({mode} mode)", peer, lambda: ours(x), call, rounds)
        step = _step(lambda: ours(x), *ours.parameters()), _step(call, *module.parameters())
        yield _faced(f"layer T={T}, forward+backward", peer, *step, rounds)


def _x_transformers() -> nn.Module | None:
    """Its layer with the same products: flash means torch's sdpa there."""
    try:
        from x_transformers.x_transformers import Attention as XAttention
    except ImportError:
        return None
    return XAttention(dim=WIDTH, heads=HEADS, dim_head=WIDTH // HEADS, flash=True)


def _watching(T: int, rounds: int) -> Iterator[dict[str, Any]]:
    x, layer = torch.randn(BATCH, T, WIDTH), saccade.Attention(WIDTH, HEADS, mask="causal")

    def watched() -> None:
        with saccade.watch(layer):
            layer(x)

    with torch.no_grad():
        yield _faced(f"watch T={T}, forward", "not watched", watched, lambda: layer(x), rounds)


def _memory() -> Iterator[dict[str, Any]]:
    """Peak memory of additive attention, forward+backward, each in a process of its own."""
    ours, theirs = (_peak(kernel) for kernel in ("chunked", "plain"))
    yield row("additive B=1 H=1 D=64 T=4096, forward+backward, peak memory", "plain", ours, theirs, "GB")


_ADDITIVE = """
import resource, sys, torch
from saccade.attend.score import additive
import saccade
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
q, k, v = (torch.randn(1, 1, 4096, 64, requires_grad=True) for _ in range(3))
saccade.attention(q, k, v, score=additive(64), kernel=sys.argv[1]).sum().backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e9)
"""


def _peak(kernel: str) -> float:
    done = subprocess.run([sys.executable, "-c", _ADDITIVE, kernel], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _step(forward: Callable[[], Tensor], *inputs: Tensor) -> Callable[[], object]:
    gradient = torch.randn_like(forward())
    return lambda: torch.autograd.grad(forward(), inputs, gradient, allow_unused=True)


def _faced(
    case: str, peer: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int
) -> dict[str, Any]:
    medians = race({"ours": ours, "theirs": theirs}, rounds=rounds)
    return row(case, peer, medians["ours"], medians["theirs"])
