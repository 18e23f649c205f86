"""Mixers: whatever mixes, whole = step by step, batched = alone, left padding = right padding, and nothing leaks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from architectures import architecture
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from texts import texts
from torch import Tensor, nn

import saccade
from saccade.attend.cache import Cache
from saccade.config import read
from saccade.model import recurrent
from saccade.model.accumulator import scan
from saccade.model.convolution import NARROW, Convolution
from saccade.model.mixer import MIXERS, as_mixer
from saccade.model.recurrent import LARGE, SEVERAL

C, T = 14, 13
CAUSAL = [
    "composite",
    "forgetting(0.8)",
    "forgetting",
    "gated",
    "gated(mean=True)",
    "rnn",
    "gru",
    "lstm",
    "convolution(4)",
    "dilated(2)",
]
WHOLE = [
    "composite(both=True)",
    "forgetting(0.5, both=True)",
    "gated(both=True)",
    "gated(mean=True, both=True)",
    "rnn(both=True)",
    "gru(both=True)",
    "lstm(both=True)",
    "convolution(5)",
    "dilated(3, rates=2)",
]
GRAPHS = {"graph", "gat"}  # which look along edges: test_graph
SETS = {"deepset", "induced"}  # which read whole sets: test_sets
LABELS = {"encoder_mixer": None, "decoder": 0, "encoder": 2, "head": "label(5)", "pooler": True}


def made(text: str, *, causal: bool = True, number: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return as_mixer(text, width=C, causal=causal, number=number).double()


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def test_every_mixer_is_tested():
    assert {each.split("(")[0] for each in CAUSAL} == set(MIXERS) - {"attention", "convolution2d", *GRAPHS, *SETS}


@pytest.mark.parametrize("text", CAUSAL)
@examples(10)
@given(cuts=st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_whole_is_step_by_step(text, cuts):
    mixer, x = made(text), draw(3, sum(cuts), C)
    cache = Cache(mixer.window)
    with torch.no_grad():
        parts = torch.cat([mixer(each, cache=cache) for each in x.split(cuts, 1)], 1)
        torch.testing.assert_close(parts, mixer(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("text", CAUSAL)
def test_no_mixer_sees_what_comes_after(text):
    mixer, x = made(text), draw(2, T, C)
    before = mixer(x)
    x[:, 7:] = 100.0
    assert torch.equal(mixer(x)[:, :7], before[:, :7])


@pytest.mark.parametrize(("text", "causal"), [*((each, True) for each in CAUSAL), *((each, False) for each in WHOLE)])
def test_padding_changes_nothing_even_if_it_is_broken(text, causal):
    mixer, x, lengths = made(text, causal=causal), draw(3, T, C), [T, 5, 8]
    right, left = torch.full_like(x, torch.nan), torch.full_like(x, torch.nan)
    for row, length in enumerate(lengths):
        right[row, :length], left[row, T - length :] = x[row, :length], x[row, :length]
    a, b = mixer(right, mask=saccade.padding(lengths)), mixer(left, mask=saccade.padding(lengths, "left"))
    for row, length in enumerate(lengths):
        alone = mixer(x[row : row + 1, :length])[0]
        torch.testing.assert_close(a[row, :length], alone, rtol=0, atol=1e-12)
        torch.testing.assert_close(b[row, T - length :], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("text", WHOLE)
def test_both_ways_see_everything(text):
    mixer = made(text, causal=False, number=0)
    x = draw(1, 5, C).requires_grad_()
    mixer(x)[0, 2].sum().backward()
    near = [1, 2, 3] if "dilated" in text else range(5)
    assert all(bool(x.grad[0, place].any()) for place in near)


@pytest.mark.parametrize("text", CAUSAL)
def test_rows_of_a_cache_go_their_own_ways(text):
    mixer, x = made(text), draw(3, 9, C)
    with torch.no_grad():
        cache = Cache(mixer.window)
        mixer(x[:, :5], cache=cache)
        cache.rewind(torch.tensor([5, 2, 4]))
        cache.reorder(torch.tensor([2, 0, 1, 1]))
        went = mixer(x[:1, 5:8].expand(4, -1, -1), cache=cache)
        for row, (origin, length) in enumerate([(2, 4), (0, 5), (1, 2), (1, 2)]):
            alone = mixer(torch.cat((x[origin : origin + 1, :length], x[:1, 5:8]), 1))
            torch.testing.assert_close(went[row], alone[0, length:], rtol=0, atol=1e-12)


@examples(40)
@given(st.integers(0, 40), st.integers(0, 10_000))
def test_the_scan_is_the_loop_and_so_are_its_gradients(length, seed):
    kept, brought = torch.sigmoid(draw(2, length, 3, seed=seed)).requires_grad_(), draw(2, length, 3, seed=seed + 1)
    brought.requires_grad_()
    state, states = torch.zeros(2, 3, dtype=torch.double), []
    for step in range(length):
        state = kept[:, step] * state + brought[:, step]
        states.append(state)
    loop = torch.stack(states, 1) if states else brought
    found = scan(kept, brought)
    torch.testing.assert_close(found, loop, rtol=0, atol=1e-12)
    outer = draw(2, length, 3, seed=seed + 2)
    for a, b in zip(
        torch.autograd.grad(found, (kept, brought), outer, allow_unused=True),
        torch.autograd.grad(loop, (kept, brought), outer, allow_unused=True),
        strict=True,
    ):
        if b is not None and length > 1:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_composite_memory_is_attention_that_takes_everything_alike():
    mixer, x = made("composite"), draw(2, T, C)
    value = mixer.value(x).unsqueeze(1)
    ones = torch.ones(2, 1, T, 1, dtype=torch.double)
    memory = saccade.attention(ones, ones, value, mask="causal", score="dot", normaliser="none").squeeze(1)
    torch.testing.assert_close(mixer(x), mixer.out(memory), rtol=0, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_forgetting_is_linear_attention_with_a_decay(gamma):
    mixer, x = made(f"forgetting({gamma})"), draw(2, T, C)
    places = torch.arange(T)
    decay = torch.where(places[:, None] >= places, gamma ** (places[:, None] - places).clamp(min=0).double(), 0.0)
    torch.testing.assert_close(mixer(x), mixer.out(decay @ mixer.value(x)), rtol=0, atol=1e-12)
    if gamma == 1.0:
        torch.testing.assert_close(mixer(x), made("composite")(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "causal", "why"),
    [
        ("grru", True, "no mixer is called 'grru'; .*gru"),
        ("gru(both=True)", True, "a decoder cannot read both ways"),
        ("gru(both=3)", False, "both is True or False"),
        ("forgetting(1.5)", True, "gamma is a share from 0 to 1"),
        ("forgetting(True)", True, "gamma is a share from 0 to 1"),
        ("convolution(0)", True, "kernel is a whole number from 1"),
        ("convolution(100000000)", True, "kernel is a whole number from 1 to 1024"),
        ("attention()", True, "attention takes no arguments here"),
        ("attention(3)", True, r"too many positional arguments; it is written attention\(\)"),
        ("convolution(4)", False, "has no middle"),
        ("dilated(3, rates=0)", True, "rates is a whole number"),
        ("gru(width=3)", True, "'width' is filled in by the layer"),
    ],
)
def test_mixers_that_cannot_be(text, causal, why):
    with pytest.raises(saccade.SaccadeError, match=why):
        as_mixer(text, width=C, causal=causal, number=0)


def test_what_mixers_refuse():
    mixer, x = made("gru"), draw(1, 3, C)
    with pytest.raises(saccade.SaccadeError, match="the only mask it takes is padding"):
        mixer(x, mask=saccade.causal)
    for text in ("gru(both=True)", "gated(both=True)", "convolution(3)"):
        with pytest.raises(saccade.SaccadeError, match="needs the whole text"):
            made(text, causal=False)(x, cache=Cache(1))
    with pytest.raises(saccade.SaccadeError, match="cannot be shared by two directions"):
        as_mixer("lstm(both=True)", width=7, causal=False, number=0)
    with pytest.raises(saccade.SaccadeError, match="masks, memory and streams belong to attention"):
        read(saccade.ModelConfig, {"width": 4, "heads": 1, "decoder": 1, "mixer": "gru", "mask": "window(3)"})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"decoder": 1, "cross": "fixed", "mixer": "gru"}, "what a decoder knows of an encoder"),
        ({"decoder": 1, "encoder_mixer": "gru"}, "encoder_mixer names 1 layers, and the encoder has 0"),
        ({"encoder": 1, "encoder_mixer": ["gru", "gru"]}, "names 2 layers, and the encoder has 1"),
        ({"encoder": 1, "encoder_mixer": []}, "an empty list names no mixer"),
        ({"encoder": 1, "decoder": 1, "cross": "feeding"}, "a context is fed into a recurrent step"),
        ({"encoder": 1, "decoder": 1, "cross": "feeding", "mixer": "gated"}, "fed into rnn, gru or lstm"),
        ({"decoder": 1, "mixer": "gru", "position": "rotary"}, "belongs to self-attention, and the decoder has none"),
    ],
)
def test_configurations_that_cannot_be(values, why):
    with pytest.raises(saccade.SaccadeError, match=why):
        saccade.build(read(saccade.ModelConfig, {"vocab": 7, "width": 4, "heads": 1, **values}))


def test_an_empty_call_of_a_mixer_is_written_alike():
    models = [architecture("feeding", encoder=1, mixer=mixer) for mixer in ("gru", "gru()")]
    assert [type(each) for each in models[0].modules()] == [type(each) for each in models[1].modules()]


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, SEVERAL, 65])
@pytest.mark.parametrize("large", [dict.fromkeys(LARGE, 0), LARGE], ids=["any", "large"])
def test_a_step_is_torchs_however_many_rows_there_are(kind, threads, rows, large, monkeypatch):
    monkeypatch.setattr(recurrent, "LARGE", large)
    ours, x, cache = made(kind).float(), draw(rows, 3, C).float(), Cache(2)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            found = torch.cat([ours(each, cache=cache) for each in x.split(1, 1)], 1)
            torch.testing.assert_close(found, ours.forth(x)[0])
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kernel", [1, 3, NARROW - 1, NARROW + 1])
@pytest.mark.parametrize("dilation", [1, 2])
def test_a_convolution_is_torchs_however_it_is_computed(kernel, dilation):
    ours = Convolution(C, kernel, dilation=dilation).double()
    for x in (draw(3, T, C), draw(1, 2, C), draw(40, 9, C)):
        wide = F.conv1d(x.mT, ours.filter.weight, ours.filter.bias, dilation=dilation, padding="same")
        torch.testing.assert_close(ours(x), F.glu(wide, 1).mT)


@pytest.mark.parametrize("text", CAUSAL)
def test_long_texts_forget_what_nobody_needs_and_rewind_to_what_is_left(text):
    mixer, x = made(text).float(), draw(2, 700, C).float()
    with torch.no_grad():
        cache, whole = Cache(mixer.window), mixer(x)
        went = [mixer(each, cache=cache) for each in x.split(100, 1)]
        torch.testing.assert_close(torch.cat(went, 1), whole, rtol=1e-4, atol=1e-4)
        assert cache.forgotten > 256
        least = int(cache.forgotten) + mixer.window - 1
        for length in (least + 1, least):
            cache.rewind(length)
            again = mixer(x[:, length : length + 3], cache=cache)
            torch.testing.assert_close(again, whole[:, length : length + 3], rtol=1e-4, atol=1e-4)
            cache.rewind(length)
        with pytest.raises(saccade.SaccadeError, match="cannot be rewound"):
            cache.rewind(least - 1)


@pytest.mark.parametrize("text", CAUSAL)
def test_a_cache_that_was_rewound_to_nothing_begins_anew(text):
    mixer, x = made(text), draw(2, 5, C)
    with torch.no_grad():
        cache = Cache(mixer.window)
        mixer(x, cache=cache)
        cache.rewind(0)
        torch.testing.assert_close(mixer(x, cache=cache), mixer(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("text", "causal"), [*((each, True) for each in CAUSAL), *((each, False) for each in WHOLE)])
def test_what_is_broken_in_padding_reaches_no_gradient(text, causal):
    mixer, x = made(text, causal=causal), draw(2, 5, C)
    x[1, 2:] = torch.nan
    output = mixer(x, mask=saccade.padding([5, 2]))
    (output[0].sum() + output[1, :2].sum()).backward()
    assert all(bool(each.grad.isfinite().all()) for each in mixer.parameters())


@pytest.mark.parametrize("mixer", ["attention", *CAUSAL[:-2], *WHOLE])
@pytest.mark.parametrize("pool", ["auto", "mean"])
def test_every_token_has_a_say_in_many_to_one(mixer, pool):
    """Whatever reads a text, on whichever side it is padded, the answer knows all of it and nothing else."""
    model = architecture("recurrent", **LABELS, mixer=mixer, pool=pool)
    text = torch.randint(3, 29, (1, 7))
    said = model(text)
    for place in range(7):
        other = text.clone()
        other[0, place] = 2
        assert (model(other) - said).abs().max() > 1e-9, place
    padded = torch.cat((text, torch.full((1, 3), 11)), 1)
    torch.testing.assert_close(model(texts(padded, [7])), said, rtol=0, atol=1e-12)
    padded = padded.roll(3, 1)
    torch.testing.assert_close(model(texts(padded, [7], "left")), said, rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_pooled_is_what_was_asked_for(side):
    states, lengths = draw(3, 6, 12), [6, 1, 4]
    real = [row[6 - n :] if side == "left" else row[:n] for row, n in zip(states, lengths, strict=True)]
    wanted = {
        "first": [row[0] for row in real],
        "last": [row[-1] for row in real],
        "mean": [row.mean(0) for row in real],
    }
    for pool, rows in wanted.items():
        model = architecture("recurrent", **LABELS, mixer="attention", pool=pool)
        found = model.pool(states, saccade.padding(lengths, side))
        torch.testing.assert_close(found, torch.tanh(model.pooler(torch.stack(rows))), rtol=0, atol=1e-12)
    same = architecture("recurrent", **LABELS, mixer="attention")
    assert same.pooling.name == "first"


@pytest.mark.parametrize("text", ["composite", "forgetting(0.999)", "forgetting", "gated", "gated(mean=True)"])
def test_memories_add_up_in_float32(text):
    """Rounded to bfloat16, 0.999 is 1, and small terms are lost in large sums."""
    mixer, x = made(text), draw(1, 2000, C)
    if mixer.fade is not None:
        nn.init.constant_(mixer.fade, 8.0)
    wanted = mixer(x)[:, -100:]
    small = made(text).bfloat16()
    small.load_state_dict(mixer.state_dict())
    with torch.no_grad():
        whole = small(x.bfloat16())[:, -100:]
        cache = Cache(small.window)
        steps = torch.cat([small(each, cache=cache) for each in x.bfloat16().split(100, 1)], 1)[:, -100:]
        with torch.autocast("cpu", torch.bfloat16):
            cast = made(text).float().requires_grad_(False)
            cast.load_state_dict(mixer.state_dict())
            mixed = cast(x.float())[:, -100:]
    for each in (whole, steps, mixed):
        assert each.dtype is torch.bfloat16
        assert (each - wanted).norm() / wanted.norm() < 0.03


@pytest.mark.parametrize("keys", [{"position": "rotary"}, {"position": None}, {"encoder_mixer": ["attention", "gruu"]}])
def test_a_mixer_that_does_not_exist_is_told_before_what_does_not_go_with_it(keys):
    values = {"vocab": 13, "width": 6, "heads": 3, "encoder": 2, "mixer": "transformer", **keys}
    with pytest.raises(
        saccade.SaccadeError, match=r"no mixer is called '(transformer|gruu)'; (there are: |did you mean )"
    ):
        saccade.build(saccade.ModelConfig(**values))
