"""int8 weights: exact integers, bounded error, rows on their own, and models that are used as any other."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from examples import examples, proofs
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.decode import quantise as module
from saccade.decode.generate import generate
from saccade.decode.quantise import (
    FEW,
    LONGEST,
    WIDE,
    Int8,
    drift,
    is_quantised,
    quantise,
    rows,
    together,
)
from saccade.field.loss import token_loss

V = 23
SMALL = {"vocab": V, "width": 15, "heads": 3, "hidden": 17, "decoder": 2, "tie": False, "head": "vocabulary"}
CONFIGS = {
    "gpt2": SMALL | {"position": "learned(29)", "offset": 2, "tie": True, "output_bias": True},
    "llama": SMALL | {"width": 24, "heads": 6, "kv_heads": 2, "norm": "rms", "feed": "swiglu", "position": "rotary"},
    "xl": SMALL | {"position": "xl", "memory": 24},
    "experts": SMALL | {"position": "alibi", "experts": 3, "chosen": 1, "score": "additive"},
    "t5": SMALL | {"encoder": 2, "norm": "rms", "position": "t5(8, 16)", "tie": True, "scale_output": True},
    "transformer": SMALL | {"encoder": 2, "order": "post", "position": "sinusoid", "dropout": 0.3, "tie": True},
}
PROMPTS = [[5, 3, 7, 1, 2], [4], [9, 9, 6], [1, 2, 3]]
SOURCES = [[3, 1], [5, 5, 9, 13, 2, 2], [7], [19, 4, 4]]


def model(name: str, **changes) -> saccade.Model:
    torch.manual_seed(0)
    made = saccade.build(ModelConfig(**(CONFIGS[name] | changes))).eval()
    for weight in made.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.4)
    return made


def layer(N: int, K: int, bias: bool = True) -> tuple[nn.Linear, Int8]:
    linear = nn.Linear(K, N, bias=bias)
    integers, scale = rows(linear.weight.detach())
    return linear, Int8(integers, scale.squeeze(1), linear.bias.detach() if bias else None)


def call(ours: saccade.Model, tokens: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return ours(tokens) if ours.encoder is None else ours(tokens, tokens)


shapes = st.integers(1, 70)


@examples(60)
@given(M=st.integers(0, 40), N=shapes, K=st.one_of(shapes, st.just(1024)), bias=st.booleans(), seed=st.integers(0, 99))
def test_the_product_is_exact(M, N, K, bias, seed):
    generator = torch.Generator().manual_seed(seed)
    x, w = (torch.randint(-127, 128, (each, K), generator=generator).char() for each in (M, N))
    x[: M // 2], w[: N // 2] = 127, -127  # the largest sums there are, 2**24 at most: float32 holds them
    scale = 2.0 ** torch.randint(-9, 3, (N,), generator=generator)
    xs = 2.0 ** torch.randint(-9, 3, (M, 1), generator=generator)
    b = torch.zeros(N) if bias else None
    assert torch.equal(Int8(w, scale, b).product(x, xs).double(), x.double() @ w.double().T * xs.double() * scale)


@examples(60)
@given(M=shapes, N=shapes, K=shapes, bias=st.booleans(), loud=st.floats(1e-20, 1e20), seed=st.integers(0, 99))
def test_the_error_is_bounded(M, N, K, bias, loud, seed):
    """Half a step of each factor times the other: |xq xs - x| <= xs / 2, |wq ws - w| <= ws / 2."""
    torch.manual_seed(seed)
    linear, ours = layer(N, K, bias)
    x = torch.randn(M, K) * loud
    xs, ws = x.abs().amax(1, keepdim=True) / 127, linear.weight.detach().abs().amax(1) / 127
    w = linear.weight.detach().abs().double()
    bound = xs / 2 * w.sum(1) + ws / 2 * x.abs().double().sum(1, keepdim=True) + K * xs * ws / 4
    with torch.no_grad():
        wanted = nn.functional.linear(x.double(), linear.weight.double(), linear.bias.double() if bias else None)
    assert ((ours(x) - wanted).abs() <= bound * 1.001 + wanted.abs() * 1e-6 + 1e-7).all()


def test_leading_axes_and_dtypes():
    _, ours = layer(7, 5)
    x = torch.randn(2, 3, 4, 5)
    flat = ours(x.view(-1, 5))
    assert torch.equal(ours(x), flat.view(2, 3, 4, 7))
    assert torch.equal(ours(x[0, 0, 0]), flat[0])
    assert ours(x[:, :, :0]).shape == (2, 3, 0, 7)
    assert torch.equal(ours(x.double()), ours(x).double())
    assert torch.equal(ours(x.bfloat16()), ours(x.bfloat16().float()).bfloat16())
    turned = torch.randn(5, 6).T  # not contiguous
    assert torch.equal(ours(turned), ours(turned.contiguous()))


def test_a_loud_row_does_not_change_its_neighbour():
    _, ours = layer(31, 64)
    x = torch.randn(9, 64)
    other = x.clone()
    other[3] *= 1e6
    quiet = [number for number in range(9) if number != 3]
    assert torch.equal(ours(x)[quiet], ours(other)[quiet])
    for number in quiet:
        assert torch.equal(ours(x[number : number + 1])[0], ours(x)[number])


def test_zeros_and_broken_numbers():
    linear, ours = layer(7, 90)
    x = torch.randn(6, 90)
    before = ours(x)
    x[0], x[2, 5], x[3, 6], x[4] = 0, torch.nan, torch.inf, 1e-42
    xq, xs = rows(x)
    assert not xq[0].any()
    assert xs[0].isfinite()
    after = ours(x)
    assert torch.equal(after[0], linear.bias.detach())
    assert after[2:4].isnan().all()
    assert torch.equal(after[4], linear.bias.detach())
    assert torch.equal(after[[1, 5]], before[[1, 5]])
    broken = linear.weight.detach().clone()
    broken[3, 2] = torch.nan
    integers, scale = rows(broken)
    found = Int8(integers, scale.squeeze(1))(torch.randn(2, 90))
    assert found[:, 3].isnan().all()
    assert found[:, :3].isfinite().all()


def test_the_turned_weights_follow_what_is_put_there():
    _, ours = layer(7, 7)
    x = torch.randn(2, 7)
    before = ours(x)
    again = copy.deepcopy(ours)
    assert again.weight.data_ptr() != ours.weight.data_ptr()
    assert ours._turned is not None
    assert again._turned is None  # what is made of the weights is not copied with them
    ours.weight = ours.weight.flip(0)
    assert not torch.equal(ours(x), before)
    assert torch.equal(again(x), before)
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again(x), ours(x))
    again.load_state_dict(layer(7, 7)[1].state_dict(), assign=True)
    assert not torch.equal(again(x), ours(x))
    torch.testing.assert_close(again.double()(x.double()), again.float()(x).double(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_quantised_model_says_nearly_the_same(name):
    ours = model(name)
    before = copy.deepcopy(ours.state_dict())
    made = quantise(ours)
    assert not is_quantised(ours)
    assert all(torch.equal(value, before[key]) for key, value in ours.state_dict().items())
    left = [key for key, each in made.named_modules() if isinstance(each, nn.Linear)]
    assert all("position" in key or "score" in key or key.endswith("feed.router") for key in left), left
    tokens = torch.randint(0, V, (5, 11))
    wanted, found = call(ours, tokens), call(made, tokens)
    assert (found - wanted).abs().max() > 0
    assert (found - wanted).norm() < 0.06 * wanted.norm()
    before = {each.data_ptr() for each in ours.parameters()}
    assert not before & {each.data_ptr() for each in made.parameters()}  # nothing keeps the floats' memory
    assert not any(each.requires_grad for each in made.parameters())


def test_what_a_double_model_becomes():
    ours = model("llama")
    made, double = quantise(ours), quantise(copy.deepcopy(ours).double())
    tokens = torch.randint(0, V, (2, 5))
    assert torch.equal(call(made, tokens), call(double, tokens))


@pytest.mark.parametrize("name", ["gpt2", "t5", "transformer"])
def test_tied_tables_are_one(name):
    ours = model(name)
    made = quantise(ours)
    assert made.embed.tokens.weight is made.head.weight
    tokens = torch.arange(V)
    table = ours.embed.tokens.weight.detach()
    assert (
        (made.embed.tokens({"tokens": tokens[None]})[0] - table).abs()
        <= table.abs().amax(1, keepdim=True) / 254 * 1.001
    ).all()
    state = made.state_dict()
    again = quantise(model(name, tie=True))
    for own in again.state_dict().values():
        own.zero_()
    again.load_state_dict({key: value.clone() for key, value in state.items()}, assign=True)
    assert again.embed.tokens.weight is again.head.weight
    assert torch.equal(call(again, tokens[None]), call(made, tokens[None]))
    for bad in (-1, V):
        with pytest.raises(SaccadeError, match="outside the vocabulary"):
            made.embed({"tokens": torch.tensor([[bad]])})


def test_untied_embeddings_stay():
    made = quantise(model("llama"))
    assert made.embed.tokens.weight.is_floating_point()
    assert made.head.weight.dtype is torch.int8


def test_bytes():
    ours = model("gpt2", vocab=2000, width=60, hidden=240)
    made = quantise(ours)
    parts = [*made.parameters(), *made.buffers()]
    linear = sum(each.numel() for key, each in ours.named_parameters() if each.dim() > 1 and "position" not in key)
    assert sum(each.nbytes for each in parts if each.dtype is torch.int8) == linear
    assert sum(each.nbytes for each in parts) < 0.34 * sum(each.nbytes for each in ours.parameters())


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "transformer"])
def test_a_loud_row_does_not_change_its_neighbour_in_a_whole_model(name):
    """The same quiet rows beside others, step by step with a cache: the same logits, bit for bit."""
    ours = model(name, tie=False)
    with torch.no_grad():
        ours.embed.tokens.weight[7] *= 1e4
    made = quantise(ours)
    quiet, loud = torch.tensor([[1, 2, 3, 4]] * 3), torch.tensor([[1, 2, 3, 4], [7, 2, 7, 3], [1, 2, 3, 4]])
    found = []
    with torch.inference_mode():
        for tokens in (quiet, loud):
            state = made.start() if made.encoder is None else made.start(tokens)
            first = made.decode_step(tokens[:, :2], state)
            found.append(torch.cat([first, *(made.decode_step(tokens[:, i : i + 1], state) for i in (2, 3))], 1))
    assert torch.equal(found[0][[0, 2]], found[1][[0, 2]])
    assert not torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("name", CONFIGS)
def test_generate_writes_as_without_a_cache(name):
    made = quantise(model(name))
    sources = SOURCES if made.encoder is not None else None
    found = generate(made, PROMPTS, sources=sources, max_tokens=7)
    for number, (each, prompt) in enumerate(zip(found, PROMPTS, strict=True)):
        tokens, logprob = list(prompt), 0.0
        before = () if sources is None else (torch.tensor([sources[number]]),)
        for token in each.tokens:
            with torch.no_grad():
                logprobs = made(*before, torch.tensor([tokens]))[0, -1].log_softmax(-1)
            assert logprobs[token] > logprobs.max() - 0.1  # a float that rounds otherwise may move an integer by one
            logprob += float(logprobs[token])
            tokens.append(token)
        assert each.logprob == pytest.approx(logprob, abs=0.3)
    assert generate(made, PROMPTS, sources=sources, max_tokens=7, beam=3)


@pytest.mark.parametrize("tie", proofs([True, False], but=[True]))
def test_a_trained_model_writes_the_same(tie):
    torch.manual_seed(0)
    ours = saccade.build(ModelConfig(**(CONFIGS["gpt2"] | {"width": 24, "hidden": 48, "tie": tie})))
    optimiser = torch.optim.Adam(ours.parameters(), 1e-2)
    first = torch.randint(0, V, (200, 16, 1))
    steps = (first + 5 * torch.arange(12)) % V  # each number follows from the one before
    for batch in steps:
        loss = token_loss(ours, ours.states(batch[:, :-1]).last.flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        loss.div(batch[:, 1:].numel()).backward()
        optimiser.step()
    made = quantise(ours.eval())
    prompts = [[each] for each in range(V)]
    wanted, found = (generate(each, prompts, max_tokens=10) for each in (ours, made))
    agree = [a == b for x, y in zip(wanted, found, strict=True) for a, b in zip(x.tokens, y.tokens, strict=True)]
    assert sum(agree) > 0.95 * len(agree)
    assert sum(x.tokens == [(t + 5 * i) % V for i in range(1, 11)] for t, x in enumerate(found)) > 0.8 * V
    moved = drift(ours, made)
    assert 0 < moved["kl_divergence"] < 0.01
    assert moved["top1_agreement"] > 0.95


def test_drift_sees_a_broken_model():
    ours = model("gpt2")
    assert drift(ours, ours) == {"kl_divergence": 0.0, "top1_agreement": 1.0}
    broken = quantise(ours)
    broken.head.scale = broken.head.scale.flip(0) * torch.linspace(-2, 2, V)
    moved = drift(ours, broken)
    assert moved["kl_divergence"] > 0.5
    assert moved["top1_agreement"] < 0.5
    encoder = saccade.build("bert-base", vocab=V, width=24, heads=3, encoder=2, head="masked").eval()
    assert 0 < drift(encoder, quantise(encoder))["kl_divergence"] < 0.01
    body = saccade.build("bert-base", vocab=V, width=24, heads=3, encoder=2)
    with pytest.raises(SaccadeError, match="without a head"):
        drift(body, quantise(body))


def test_it_cannot_be_trained():
    ours = model("gpt2")
    made = quantise(ours)
    tokens = torch.randint(0, V, (2, 5))
    with pytest.raises(RuntimeError, match="does not require grad"):
        token_loss(made, made.states(tokens).last.flatten(0, 1), tokens.flatten()).backward()
    with torch.no_grad():
        found = token_loss(made, made.states(tokens).last.flatten(0, 1), tokens.flatten())
        wanted = token_loss(ours, ours.states(tokens).last.flatten(0, 1), tokens.flatten())
    assert float(found) == pytest.approx(float(wanted), rel=0.05)
    made.requires_grad_(True)
    with pytest.raises(SaccadeError, match="cannot be trained"):
        made(tokens)
    with torch.no_grad():
        made(tokens)


def test_refusals(monkeypatch):
    ours = model("gpt2")
    with pytest.raises(SaccadeError, match="'int9'; did you mean 'int8'"):
        quantise(ours, "int9")
    with pytest.raises(SaccadeError, match="int8 already"):
        quantise(quantise(ours))
    elsewhere = SimpleNamespace(is_cpu=False, is_meta=False, device=torch.device("cuda"))
    with pytest.raises(SaccadeError, match="on the CPU alone, not on cuda"):
        layer(3, 5)[1].product(elsewhere, torch.ones(1, 1))
    with pytest.raises(SaccadeError, match="32 bits"):
        Int8(torch.empty(1, LONGEST + 1, dtype=torch.int8, device="meta"), torch.ones(1))
    assert module._exact()
    module._exact.cache_clear()
    exact = torch._int_mm
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: exact(a, b).clamp(max=2**23))  # as 16 bits would cut it off
    with pytest.raises(SaccadeError, match="inexactly"):
        quantise(ours)
    module._exact.cache_clear()


def test_several_rows_of_a_vocabulary_are_the_same_bit_for_bit():
    """They go another way, to which the company of a row must not matter."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-127, 128, (WIDE + 3, 37), generator=generator, dtype=torch.int8)
    made = Int8(weight, torch.rand(WIDE + 3, generator=generator), torch.randn(WIDE + 3, generator=generator))
    x = torch.randn(FEW + 3, 37, generator=generator)
    x[1] *= 1e4
    assert torch.equal(made(x), torch.cat([made(each[None]) for each in x]))


def test_layers_that_are_joined_say_the_same_and_share_their_memory():
    torch.manual_seed(0)
    layers = [layer(n, 12, bias=n != 7)[1] for n in (5, 7, 9)]
    x = torch.randn(3, 12)
    before = [each(x) for each in layers]
    joined = together(layers)
    assert together(layers) is joined
    for each, part, expected in zip(layers, joined(x).split([5, 7, 9], 1), before, strict=True):
        assert torch.equal(part, expected)
        assert torch.equal(each(x), expected)
        assert each.weight.untyped_storage().data_ptr() == joined.weight.untyped_storage().data_ptr()
    layers[1].weight = layers[1].weight.clone()
    assert together(layers) is not joined
    twin = copy.deepcopy(layers[0])
    assert torch.equal(twin(x), before[0])


def test_weights_lie_in_rows_however_they_came():
    ours = model("gpt2")
    with torch.no_grad():
        up = ours.decoder.blocks[0].feed.up
        up.weight = nn.Parameter(up.weight.t().contiguous().t())
    made = quantise(ours)
    assert all(each.weight.is_contiguous() for each in made.modules() if isinstance(each, Int8))
