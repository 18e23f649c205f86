"""Every way from one sequence to another that is not the plain transformer: what each must do, it does by a parameter
of the tests that the transformer passes.
"""

from __future__ import annotations

import torch

import saccade

ARCHITECTURES = {
    "recurrent": {"mixer": "gru", "encoder_mixer": "gru(both=True)", "order": "plain", "feed": "none"},
    "fixed": {"mixer": "lstm", "order": "plain", "feed": "none", "cross": "fixed"},
    "into": {"mixer": "gru", "encoder_mixer": "gru(both=True)", "order": "plain", "feed": "none", "cross": "into"},
    "mean": {"mixer": "convolution(3)", "feed": "none", "cross": "fixed"},
    "additive": {"mixer": "lstm", "order": "plain", "feed": "none", "score": "additive", "heads": 1},
    "feeding": {
        "mixer": "gru",
        "encoder_mixer": "gru(both=True)",
        "cross": "feeding",
        "order": "plain",
        "feed": "none",
    },
    "feeding lstm": {"mixer": "lstm", "cross": "feeding", "score": "additive", "heads": 1},
    "gnmt": {
        "mixer": "lstm",
        "encoder_mixer": ["lstm(both=True)", "lstm"],
        "cross": "lowest",
        "order": "residual",
        "feed": "none",
    },
    "convolution": {"mixer": "convolution(3)", "feed": "none"},
    "convs2s": {"mixer": "convolution(3)", "feed": "none", "order": "half", "cross": "embedded"},
    "luong": {"mixer": "lstm", "order": "plain", "feed": "none", "score": "bilinear", "heads": 1, "project": False},
    "bahdanau": {
        "mixer": "gru",
        "encoder_mixer": "gru(both=True)",
        "cross": "feeding",
        "order": "plain",
        "feed": "none",
        "score": "additive",
        "heads": 1,
        "project": False,
    },
    "bare": {"project": False, "cross": "embedded", "position": "sinusoid"},
    "bytenet": {"mixer": "dilated(3, rates=4)", "feed": "none", "cross": "beside"},
    "dilated": {"mixer": "dilated(3)", "order": "post"},
    "memory": {"mixer": "gated", "encoder_mixer": "gated(both=True)"},
    "parallel": {"mixer": "forgetting", "order": "parallel"},
    "favor": {"score": "feature(favor, 8, seed=0, redraw=2)", "normaliser": "sum", "position": "sinusoid"},
    "fourier": {"score": "feature(fourier, 64, seed=0, scale=1)", "normaliser": "sum", "position": "sinusoid"},
    "elu": {"score": "feature(elu)", "normaliser": "sum"},
    "window": {"mask": "window(3)", "position": "rotary"},
    "sparse": {"mask": "bigbird(2, 1, 1, 1)"},
    "far": {"pattern": "ab", "masks": {"a": "dilated(2, 3)", "b": "window(2)"}},
}


def architecture(name: str, **changes) -> saccade.Model:
    """A small model of an architecture, the same each time, in float64."""
    torch.manual_seed(3)
    usual = {"vocab": 29, "width": 12, "heads": 2, "hidden": 17, "decoder": 2, "head": "vocabulary"}
    return saccade.build(saccade.ModelConfig(**usual | ARCHITECTURES[name] | changes)).double().eval()
