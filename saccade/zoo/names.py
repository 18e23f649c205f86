"""The named models, each a configuration and never a copy.

Vaswani et al. 2017, Devlin et al. 2019, Dai et al. 2019, Yang et al. 2019, Liu et al. 2019, Radford et al. 2019,
Shoeybi et al. 2019, Touvron et al. 2023, Jiang et al. 2023, Raffel et al. 2020; of pictures Dosovitskiy et al. 2021,
Touvron et al. 2021 (DeiT), Liu et al. 2021, Oquab et al. 2023.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError, nearest


def _transformer(width: int, heads: int) -> dict[str, Any]:
    return {
        "vocab": 37000,
        "width": width,
        "heads": heads,
        "encoder": 6,
        "decoder": 6,
        "order": "post",
        "feed": "relu",
        "position": "sinusoid",
        "scale_embedding": True,
    }


def _bert(depth: int, width: int, heads: int) -> dict[str, Any]:
    return {
        "vocab": 30522,
        "width": width,
        "heads": heads,
        "encoder": depth,
        "order": "post",
        "epsilon": 1e-12,
        "position": "learned(512)",
        "segments": 2,
        "norm_embedding": True,
        "pooler": True,
    }


def _roberta(depth: int, width: int, heads: int) -> dict[str, Any]:
    own = {"vocab": 50265, "position": "learned(514)", "offset": 2, "segments": 1, "epsilon": 1e-5}
    return _bert(depth, width, heads) | own


def _xlnet(depth: int, width: int, heads: int) -> dict[str, Any]:
    return {
        "vocab": 32000,
        "width": width,
        "heads": heads,
        "encoder": depth,
        "order": "post",
        "epsilon": 1e-12,
        "attention_bias": False,
        "position": "xl(True, half)",
        "memory": 512,
        "streams": 2,
    }


def _gpt2(depth: int, width: int, heads: int, vocab: int = 50257) -> dict[str, Any]:
    own = {"vocab": vocab, "width": width, "heads": heads, "decoder": depth}
    return own | {"feed": "gelu_tanh", "position": "learned(1024)"}


def _llama(depth: int, width: int, heads: int, kv_heads: int, hidden: int, vocab: int = 32000) -> dict[str, Any]:
    own = {"vocab": vocab, "width": width, "heads": heads, "kv_heads": kv_heads, "decoder": depth, "hidden": hidden}
    return own | {
        "norm": "rms",
        "feed": "swiglu",
        "bias": False,
        "position": "rotary",
        "tie": False,
        "head": "vocabulary",
    }


def _t5(depth: int, width: int, heads: int, hidden: int) -> dict[str, Any]:
    return {
        "vocab": 32128,
        "width": width,
        "heads": heads,
        "head_width": 64,
        "hidden": hidden,
        "encoder": depth,
        "decoder": depth,
        "norm": "rms",
        "epsilon": 1e-6,
        "feed": "relu",
        "bias": False,
        "score": "dot",
        "position": "t5",
        "share_position": True,
        "scale_output": True,
    }


def _vit(depth: int, width: int, heads: int, class_tokens: int = 1) -> dict[str, Any]:
    return {
        "width": width,
        "heads": heads,
        "encoder": depth,
        "epsilon": 1e-12,
        "embed": "patches(16, 3)",
        "class_tokens": class_tokens,
        "position": f"learned((14, 14), before={class_tokens})",
        "pool": "first",
        "pooler": True,
    }


def _dinov2(depth: int, width: int, heads: int) -> dict[str, Any]:
    own = {"epsilon": 1e-6, "embed": "patches(14, 3)", "position": "learned((37, 37), before=1)"}
    return _vit(depth, width, heads) | own | {"scale": "channels(1.0)", "pool": "first+mean", "pooler": False}


def _swin(stages: list[int], width: int, heads: int) -> dict[str, Any]:
    return {
        "width": width,
        "heads": heads,
        "encoder": stages,
        "embed": "patches(4, 3)",
        "norm_embedding": True,
        "window": 7,
        "position": "offsets((7, 7))",
        "pool": "mean",
        "path_dropout": 0.1,
    }


ZOO: dict[str, dict[str, Any]] = {
    "transformer-base": _transformer(512, 8),
    "transformer-big": _transformer(1024, 16),
    "bert-base": _bert(12, 768, 12),
    "bert-large": _bert(24, 1024, 16),
    "roberta-base": _roberta(12, 768, 12),
    "roberta-large": _roberta(24, 1024, 16),
    "xlnet-base": _xlnet(12, 768, 12),
    "xlnet-large": _xlnet(24, 1024, 16),
    "transformer-xl": {
        "vocab": 204,
        "width": 512,
        "heads": 8,
        "decoder": 12,
        "order": "post",
        "feed": "relu",
        "attention_bias": False,
        "position": "xl",
        "memory": 512,
        "head": "vocabulary",
    },
    "gpt2": _gpt2(12, 768, 12),
    "gpt2-medium": _gpt2(24, 1024, 16),
    "gpt2-large": _gpt2(36, 1280, 20),
    "gpt2-xl": _gpt2(48, 1600, 25),
    "megatron-1.2b": _gpt2(40, 1536, 16, 51200),
    "megatron-2.5b": _gpt2(54, 1920, 20, 51200),
    "megatron-4.2b": _gpt2(64, 2304, 24, 51200),
    "megatron-8.3b": _gpt2(72, 3072, 32, 51200),
    "llama-7b": _llama(32, 4096, 32, 32, 11008),
    "llama-2-70b": _llama(80, 8192, 64, 8, 28672),
    "mistral-7b": _llama(32, 4096, 32, 8, 14336) | {"mask": "window(4096)"},
    "t5-small": _t5(6, 512, 8, 2048),
    "t5-base": _t5(12, 768, 12, 3072),
    "vit-base": _vit(12, 768, 12),
    "vit-large": _vit(24, 1024, 16),
    "deit-base": _vit(12, 768, 12, class_tokens=2),
    "dinov2-small": _dinov2(12, 384, 6),
    "dinov2-base": _dinov2(12, 768, 12),
    "swin-tiny": _swin([2, 2, 6, 2], 96, 3),
    "swin-base": _swin([2, 2, 18, 2], 128, 4),
}


class Lecture(NamedTuple):
    """A row of the lecture's table "Scaling up Transformers"."""

    model: str
    layers: int
    width: int
    heads: str
    parameters: str
    data: str
    training: str


LECTURE: dict[str, Lecture] = {
    "transformer-base": Lecture("Transformer-Base", 12, 512, "8", "65M", "", "8x P100 (12 hours)"),
    "transformer-big": Lecture("Transformer-Large", 12, 1024, "16", "213M", "", "8x P100 (3.5 days)"),
    "bert-base": Lecture("BERT-Base", 12, 768, "12", "110M", "13 GB", ""),
    "bert-large": Lecture("BERT-Large", 24, 1024, "16", "340M", "13 GB", ""),
    "xlnet-large": Lecture("XLNet-Large", 24, 1024, "16", "~340M", "126 GB", "512x TPU-v3 (2.5 days)"),
    "roberta-large": Lecture("RoBERTa", 24, 1024, "16", "355M", "160 GB", "1024x V100 GPU (1 day)"),
    "gpt2": Lecture("GPT-2", 12, 768, "?", "117M", "40 GB", ""),
    "gpt2-medium": Lecture("GPT-2", 24, 1024, "?", "345M", "40 GB", ""),
    "gpt2-large": Lecture("GPT-2", 36, 1280, "?", "762M", "40 GB", ""),
    "gpt2-xl": Lecture("GPT-2", 48, 1600, "?", "1.5B", "40 GB", ""),
    "megatron-1.2b": Lecture("Megatron-LM", 40, 1536, "16", "1.2B", "174 GB", "64x V100 GPU"),
    "megatron-2.5b": Lecture("Megatron-LM", 54, 1920, "20", "2.5B", "174 GB", "128x V100 GPU"),
    "megatron-4.2b": Lecture("Megatron-LM", 64, 2304, "24", "4.2B", "174 GB", "256x V100 GPU (10 days)"),
    "megatron-8.3b": Lecture("Megatron-LM", 72, 3072, "32", "8.3B", "174 GB", "512x V100 GPU (9 days)"),
}


def named(name: str) -> ModelConfig:
    """The configuration of a named model."""
    if name not in ZOO:
        raise SaccadeError(f"no model is called {name!r}; {nearest(name, ZOO)}")
    return read(ModelConfig, ZOO[name])
