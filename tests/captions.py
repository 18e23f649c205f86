"""Small models that write of pictures, one for each way to look at a grid of features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from own import captions

import saccade
from saccade.recipes.read import from_values

GRID = "convolutions((5,), channels=3)"  # 8 x 12 pixels -> 2 x 3 cells
CAPTIONERS: dict[str, dict[str, Any]] = {
    "transformer": {"encoder": 2, "decoder": 2, "position": "sinusoid"},
    "grid alone": {  # Xu et al. 2015
        "encoder": 2,
        "encoder_mixer": "convolution2d(3)",
        "decoder": 1,
        "mixer": "lstm",
        "cross": "feeding",
        "score": "additive",
        "heads": 1,
        "order": "plain",
        "feed": "none",
    },
    "grid and gru": {
        "encoder": 1,
        "encoder_mixer": "convolution2d(3)",
        "decoder": 2,
        "mixer": "gru",
        "cross": "feeding",
        "feed": "none",
    },
    "stages": {"encoder": [1, 1], "decoder": 1, "position": "sinusoid"},
}


def captioner(name: str, vocab: int = 29) -> saccade.Model:
    """An untrained model of 8 x 12 or other pictures to tokens, the same each time, in float64."""
    torch.manual_seed(3)
    usual = {"vocab": vocab, "width": 12, "heads": 2, "hidden": 17, "head": "vocabulary", "embed": GRID}
    config = saccade.ModelConfig(**usual | CAPTIONERS[name] | {"decoder_keys": {"embed": "tokens"}})
    return saccade.build(config).double().eval()


def recipe(folder: Path, name: str = "transformer", **tables: Any) -> saccade.Recipe:
    """The smallest training on pictures of a user's own, each with a text."""
    captions(folder)
    values = {
        "task": "caption",
        "data": {"files": [str(folder / "captions.tsv")], "share": 0.2},
        "x": {"source": {"kind": "image", "embed": "convolutions((5,))"}},
        "y": {"tokenizer": "words", "vocab": 60},
        "model": {"width": 12, "heads": 2, "hidden": 17, **CAPTIONERS[name]},
        "train": {"steps": 6, "batch": 40, "every": 3, "rate": 1e-2},
        "decode": {"max_tokens": 9},
    }
    for key, table in tables.items():
        values[key] = {**values.get(key, {}), **table}
    return from_values(values)
