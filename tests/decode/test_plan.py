"""The plan of one-token steps says what the modules say, for every configuration; hooks and watchers are respected."""

from __future__ import annotations

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
    plan, between, same_rows = Plan(ours), halfway(monkeypatch), []
    for _ in range(9):
        tokens = torch.randint(0, V, (3,))
        theirs = ours.advance(tokens.unsqueeze(1), plain)[:, 0]
        said = plan.step(tokens, planned)
        if kind == "float":
            torch.testing.assert_close(said, theirs, rtol=1e-9, atol=1e-9)
        else:
            torch.testing.assert_close(said, theirs, rtol=0, atol=0.03 * float(theirs.abs().max()))
            same_rows.append((said - theirs).abs().amax(1).lt(1e-4))
            assert (same_rows[-1] | between).all()
    assert kind == "float" or torch.stack(same_rows).double().mean() >= 0.9
    assert planned.length == plain.length == 14


def halfway(monkeypatch):
    """Three rows: whether an activation of theirs has stood half way between two integers since. It becomes either, by
    the last bit of a float, and the row remembers which in its cache.
    """
    found, exact = torch.zeros(3, dtype=torch.bool), quantise_module.rows

    def watched(x):
        integers, scale = exact(x)
        close = ((x / scale).frac().abs() - 0.5).abs().amin(1).lt(1e-4)
        found.logical_or_(close if len(close) == len(found) else close.any())  # an expert has some of the rows
        return integers, scale

    monkeypatch.setattr(quantise_module, "rows", watched)
    monkeypatch.setattr(plan_module, "rows", watched)
    return found


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
