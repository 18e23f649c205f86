"""The plan of one-token steps says what the modules say, for every configuration; hooks and watchers are respected."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from torch import nn

import saccade
from saccade import ModelConfig
from saccade.decode import plan as plan_module
from saccade.decode import quantise as quantise_module
from saccade.decode.plan import Plan
from saccade.decode.quantise import quantise
from saccade.decode.step import ModelStepper

V = 23
SMALL = {"vocab": V, "width": 24, "heads": 6, "hidden": 17, "decoder": 3, "head": "vocabulary", "position": "sinusoid"}
CONFIGS = {
    "gpt2": {"position": "learned(39)", "order": "pre", "offset": 2, "feed": "gelu_tanh"},
    "llama": {"kv_heads": 2, "norm": "rms", "feed": "swiglu", "position": "rotary", "bias": False, "order": "pre"},
    "qwen3": {"head_norm": True, "head_width": 8, "norm": "rms", "position": "rotary", "attention_bias": False},
    "mistral": {"kv_heads": 3, "position": "rotary", "mask": "window(4)"},
    "local and global": {"pattern": "lg", "masks": {"l": "window(3)", "g": "everyone"}},
    "post": {"order": "post", "scale_embedding": True},
    "deep": {"order": "deep", "encoder": 2},
    "parallel": {"order": "parallel", "encoder": 1},
    "transformer": {"encoder": 2, "order": "post", "score": "scaled_dot(0.3)", "normaliser": "softmax(2.0)"},
    "t5": {"encoder": 2, "norm": "rms", "position": "t5(8, 16)", "share_position": True, "score": "dot"},
    "alibi": {"position": "alibi"},
    "sparse": {"normaliser": "sparsemax"},
    "cosine": {"score": "cosine"},
    "experts": {"experts": 3, "chosen": 2},
    "bigbird": {"mask": "bigbird(2, 1, 1, 1)"},
    "bare": {"project": False, "encoder": 2, "order": "post"},
}


def model(name: str, kind: str = "float") -> saccade.Model:
    torch.manual_seed(0)
    made = saccade.build(ModelConfig(**(SMALL | CONFIGS[name]))).eval()
    for weight in made.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.4)
    return quantise(made) if kind == "int8" else made.double()


@pytest.mark.parametrize("kind", ["float", "int8"])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_a_plan_says_what_the_modules_say(name, ragged, kind, monkeypatch):
    ours = model(name, kind)
    stepper = ModelStepper(ours)
    prompts = [[5, 3, 7, 1, 2], [4, 4] if ragged else [4, 4, 1, 1, 0], [9, 9, 6, 2, 2]]
    sources = [[3, 1], [5, 5, 9, 13], [7]] if ours.encoder is not None else None
    (planned, first), (plain, same) = stepper.start(prompts, sources), stepper.start(prompts, sources)
    assert torch.equal(first, same)
    plan, rounding = Plan(ours), Rounding(monkeypatch)
    tolerance = 1e-9 if kind == "float" else 1e-4
    for _ in range(9):
        tokens = torch.randint(0, V, (3,))
        with rounding.noted():
            theirs = ours.advance(tokens.unsqueeze(1), plain)[:, 0]
        torch.testing.assert_close(plan.step(tokens, planned), theirs, rtol=tolerance, atol=tolerance)
    assert planned.length == plain.length == 14


class Rounding:
    """Activations as integers. One half way between two becomes either, by the last bit of a float, and a row keeps it
    in its cache: so the plan takes the integers that the modules had, and may differ from them only half way.
    """

    def __init__(self, monkeypatch):
        self.exact, self.before, self.noting = quantise_module.rows, [], False
        monkeypatch.setattr(quantise_module, "rows", self)
        monkeypatch.setattr(plan_module, "rows", self)

    @contextmanager
    def noted(self):
        self.before, self.noting = [], True
        yield
        self.noting = False

    def __call__(self, x):
        integers, scale = self.exact(x)
        if self.noting:
            self.before.append((x, integers))
            return integers, scale
        same = [(a, b) for a, b in self.before if a.shape == x.shape and torch.allclose(a, x, rtol=1e-5, atol=1e-5)]
        assert same, "the modules multiplied nothing like this"
        other = same[0][1]
        between = ((x / scale).frac().abs() - 0.5).abs() < 1e-4
        assert (between | (integers == other)).all()
        return other, scale


@torch.no_grad()
def test_hooks_are_called():
    ours = model("gpt2")
    stepper, calls = ModelStepper(ours), []
    handle = ours.decoder.blocks[1].feed.down.register_forward_hook(lambda *_: calls.append(1))
    state, _ = stepper.start([[5, 3]])
    stepper.step(torch.tensor([[1]]), state)
    assert len(calls) == 2
    handle.remove()
    state, _ = stepper.start([[5, 3]])
    stepper.step(torch.tensor([[1]]), state)
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["mistral", "transformer", "alibi"])
def test_what_is_watched_is_what_was_looked_at(name):
    ours = model(name)
    sources = [[3, 1], [5, 5, 9, 13]] if ours.encoder is not None else None
    options = {"sources": sources, "max_tokens": 9}
    plain = saccade.generate(ours, [[5, 3, 7], [4]], **options)
    with saccade.watch(ours) as seen:
        assert saccade.generate(ours, [[5, 3, 7], [4]], **options) == plain
    whole = [[5, 3, 7], [4]][0] + plain[0].tokens
    with saccade.watch(ours) as all_at_once, torch.no_grad():
        before = () if sources is None else (torch.tensor(sources[:1]),)
        ours(*before, torch.tensor([whole[:-1]]))
    for layer in (each for each in seen.layers if each.startswith("decoder")):
        row = seen.weights(layer, call=-1)[0, :, -1]
        expected = all_at_once.weights(layer)[0, :, -1]
        held = expected.shape[-1]
        torch.testing.assert_close(row[:, -held:] if "cross" not in layer else row[:, :held], expected)
