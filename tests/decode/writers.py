"""Small models that write, in float64, the same each time."""

from __future__ import annotations

import torch
from torch import nn

import saccade
from saccade import ModelConfig

V = 41
SMALL = {"vocab": V, "width": 24, "heads": 3, "hidden": 31, "decoder": 2, "tie": False, "head": "vocabulary"}
CONFIGS = {
    "gpt2": SMALL | {"position": "learned(59)"},
    "mistral": SMALL | {"position": "rotary", "mask": "window(5)", "norm": "rms"},
    "alibi": SMALL | {"position": "alibi"},
    "transformer": SMALL | {"encoder": 1, "order": "post", "position": "sinusoid"},
}


def model(name: str, seed: int = 0, std: float = 0.6) -> saccade.Model:
    torch.manual_seed(seed)
    made = saccade.build(ModelConfig(**CONFIGS[name])).double().eval()
    for weight in made.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=std)
    return made


MODELS = {name: model(name) for name in CONFIGS}
