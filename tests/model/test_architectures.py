"""Whole models of every architecture: in company as alone, from a cache as without, and they learn."""

from __future__ import annotations

import pytest
import torch
from architectures import ARCHITECTURES, architecture
from texts import texts
from torch import nn

import saccade
from saccade.attend import score
from saccade.config import read
from saccade.model.feeding import Feeding
from saccade.model.recurrent import Recurrent

BLIND = ("fixed", "into", "mean", "bytenet")  # no attention looks


def test_architectures_are_built_of_what_they_say():
    assert [type(block.mix) for block in architecture("feeding", encoder=2).decoder.blocks] == [Feeding, Feeding]
    gnmt = architecture("gnmt", encoder=3, decoder=3)
    assert [type(block.mix) for block in gnmt.decoder.blocks] == [Feeding, Recurrent, Recurrent]
    assert [block.mix.back is None for block in gnmt.encoder.blocks] == [False, True, True]
    kinds = {name: {type(each).__name__ for each in architecture(name, encoder=2).modules()} for name in ARCHITECTURES}
    assert {name for name, found in kinds.items() if "Attention" not in found} == set(BLIND)
    assert {name for name, found in kinds.items() if "SourceVector" in found} == {"fixed", "into", "mean"}
    assert {name for name, found in kinds.items() if "SourceBeside" in found} == {"bytenet"}


@pytest.mark.parametrize("cross", ["fixed", "into"])
@pytest.mark.parametrize("mixer", ["convolution(3)", "dilated(3)", "gru", "gru(both=True)", "gated", "attention"])
def test_one_vector_knows_every_token(mixer, cross):
    """Where a state knows its neighbours alone, the vector is the mean of all."""
    model = architecture("fixed", mixer="gru", encoder_mixer=mixer, cross=cross, encoder=2)
    x = torch.randn(1, 30, model.config.width, dtype=torch.float64, requires_grad=True)
    context = model.encoder(x)
    out = model.decoder(torch.randn(1, 3, model.config.width, dtype=torch.float64), context)
    (gradient,) = torch.autograd.grad(out[0, -1].sum(), x)
    assert gradient[0].ne(0).any(1).all()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_translates_in_company_as_alone(name):
    model = architecture(name, encoder=2)
    sources = [[3, 4, 5, 6, 7, 9], [8, 9], [4, 4, 4]]
    together = saccade.generate(model, sources=sources, begin=1, end=2, max_tokens=9, beam=3, n=2)
    for source, found in zip(sources, together, strict=True):
        (alone,) = saccade.generate(model, sources=[source], begin=1, end=2, max_tokens=9, beam=3, n=2)
        assert [each.tokens for each in found] == [each.tokens for each in alone]
        assert [each.logprob for each in found] == pytest.approx([each.logprob for each in alone], abs=1e-9)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_translates_from_a_cache_as_without(name):
    """Greedy tokens, with a draft and without, are those that the whole target at once calls likeliest."""
    model = architecture(name, encoder=2)
    sources = [[3, 4, 5, 3, 4, 5, 3, 4], [8, 9], [4, 4, 4]]
    options = {"begin": 1, "max_tokens": 11}
    found = saccade.generate(model, sources=sources, **options)
    for source, each in zip(sources, found, strict=True):
        logits = model(torch.tensor([source]), torch.tensor([[1, *each.tokens[:-1]]]))[0]
        assert logits.argmax(-1).tolist() == each.tokens
        said = logits.log_softmax(-1)[range(11), each.tokens]
        assert said.tolist() == pytest.approx(each.logprobs, abs=1e-9)
        (guessed,) = saccade.generate(model, sources=[source], draft="lookup", **options)
        assert guessed.tokens == each.tokens


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "sparse"])  # its blocks are absolute places
def test_every_architecture_takes_targets_padded_on_either_side(name):
    model, lengths = architecture(name, encoder=2), [7, 3]
    source = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 3, 4, 5]])
    target = torch.tensor([[1, 4, 5, 6, 7, 8, 9], [1, 5, 6, 0, 0, 0, 0]])
    left = torch.tensor([target[0].tolist(), [0, 0, 0, 0, 1, 5, 6]])
    a = model(source, texts(target, lengths))
    b = model(source, texts(left, lengths, "left"))
    torch.testing.assert_close(a[0], b[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(a[1, :3], b[1, 4:], rtol=0, atol=1e-12)
    torch.testing.assert_close(a[1, :3], model(source[1:], target[1:, :3])[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in (*BLIND, "sparse")])
def test_what_looks_at_a_source_is_seen_in_its_place(name):
    """On whichever side the targets are padded, the weights stand where their tokens stand."""
    model, lengths, seen = architecture(name, encoder=2), [7, 3], []
    source, target = torch.randint(3, 29, (2, 5)), torch.randint(3, 29, (2, 7))
    left = torch.stack((target[0], target[1].roll(4)))
    for shown, side in ((target, "right"), (left, "left")):
        with saccade.watch(model) as watched:
            model(source, texts(shown, lengths, side))
        seen.append([watched.weights(each) for each in watched.layers if "cross" in each])
    assert seen[0]
    for a, b in zip(*seen, strict=True):
        torch.testing.assert_close(a[0], b[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(a[1, :, :3], b[1, :, 4:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", ["dot", "bilinear"])
def test_luongs_attention_is_his_formula(score):
    """Dot: s.h, general: s W h; c = sum_j softmax_j h_j, and the state that goes on is tanh(W [c; s])."""
    model = architecture("luong", encoder=1, decoder=1, score=score)
    source, target = torch.randint(3, 29, (2, 5)), torch.randint(3, 29, (2, 7))
    h, block = model.encode(source), model.decoder.blocks[0]
    s = block.mix(model.embed({"tokens": target}))
    asked = s @ block.cross.score.weight[0] if score == "bilinear" else s
    c = torch.softmax(asked @ h.mT, -1) @ h
    torch.testing.assert_close(
        model.decode(target, h), torch.tanh(block.join(torch.cat((c, s), 2))), rtol=0, atol=1e-12
    )
    assert {name for name, _ in block.cross.named_parameters()} == ({"score.weight"} if score == "bilinear" else set())


def test_bahdanaus_attention_is_his_formula():
    """e_tj = v tanh(W s_(t-1) + U h_j), c_t = sum_j softmax_j h_j, s_t = f([y_t; c_t], s_(t-1))."""
    model = architecture("bahdanau", encoder=1, decoder=1)
    source, target = torch.randint(3, 29, (2, 5)), torch.randint(3, 29, (2, 7))
    h, feeding = model.encode(source), model.decoder.blocks[0].mix
    (W,), (U,), (v,), bias = (getattr(feeding.cross.score, name) for name in ("query", "key", "vector", "bias"))
    s, states = torch.zeros(2, 12).double(), []
    for y in model.embed({"tokens": target}).unbind(1):
        e = (torch.tanh((s @ W)[:, None] + h @ U + bias.flatten()) @ v)[..., 0]
        c = (torch.softmax(e, -1)[:, None] @ h)[:, 0]
        s = feeding.cell(torch.cat((y, c), 1)[:, None], s[None])[0][:, 0]
        states.append(s)
    torch.testing.assert_close(model.decode(target, h), torch.stack(states, 1), rtol=0, atol=1e-12)


def test_convs2s_asks_and_finds_embeddings():
    """a_ij = softmax_j((d_i + g_i) . z_j), c_i = sum_j a_ij (z_j + e_j); sums are times sqrt(1/2) (Gehring 2017)."""
    model = architecture("convs2s", encoder=2, decoder=2, heads=1, score="dot", position="learned(11)")
    source, target = torch.randint(3, 29, (2, 5)), torch.randint(3, 29, (2, 7))
    half, e, g = 0.5**0.5, model.embed({"tokens": source}), model.embed({"tokens": target})
    z, x = model.encoder(e), g
    for block in model.decoder.blocks:
        x = (x + block.mix(x)) * half
        cross = block.cross
        weights = torch.softmax(cross.query((x + g) * half) @ cross.key(z).mT, -1)
        x = (x + cross.out(weights @ cross.value((z + e) * half))) * half
    torch.testing.assert_close(model.decode(target, model.encode(source)), x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["additive", "feeding lstm"])
def test_what_the_keys_of_a_source_offer_is_computed_once(name, monkeypatch):
    """However many steps ask them, in training and while it writes; and the weights are those of the score."""
    made, offer = [], score.additive.offer
    monkeypatch.setattr(score.additive, "offer", lambda self, k: made.append(k.shape) or offer(self, k))
    model = architecture(name, encoder=1)
    source, target = torch.randint(3, 29, (2, 5)), torch.randint(3, 29, (2, 7))
    with saccade.watch(model) as seen:
        model(source, target)
    layers = [each for each in seen.layers if "cross" in each]
    assert len(made) == len(layers) == 2
    made.clear()
    saccade.generate(model, sources=source.tolist(), begin=1, max_tokens=6)
    assert len(made) == 2
    for layer in layers:
        weights = seen.weights(layer)
        assert torch.allclose(weights.sum(-1), torch.ones(()).double())
        assert weights.shape == (2, ARCHITECTURES[name]["heads"], 7, 5)


def test_features_of_turned_vectors_stand_at_absolute_places():
    """Features of turned vectors depend on distances alone only in the mean over draws, so left padding is refused."""
    model = architecture("elu", encoder=2, position="rotary")
    source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[0, 1, 5]])
    with pytest.raises(saccade.SaccadeError, match=r"'feature' of turned vectors.*on the right"):
        model(source, texts(target, [2], "left"))


def alone(name: str) -> saccade.Model:
    """The decoder of an architecture without an encoder."""
    own = {"score": "scaled_dot", "project": True} if "mixer" in ARCHITECTURES[name] else {}  # nothing attends any more
    return architecture(name, cross="attention", encoder_mixer=None, **own)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_writes_from_a_cache_as_without(name):
    model = alone(name)
    prompts = [[3, 4, 5, 6], [7], [5, 5, 5, 5, 5, 5, 2]]
    for prompt, found in zip(prompts, saccade.generate(model, prompts, max_tokens=11), strict=True):
        best = model(torch.tensor([prompt + found.tokens]))[0, len(prompt) - 1 : -1].argmax(-1)
        assert best.tolist() == found.tokens


@pytest.mark.parametrize("name", ["recurrent", "fixed", "memory", "convolution"])
def test_every_architecture_goes_on_from_a_beginning_that_was_kept(name):
    """Also where the shared beginning ends just where a window has forgotten what lies before."""
    model = alone(name).float()
    generator = torch.Generator().manual_seed(0)
    long = torch.randint(3, 29, (600,), generator=generator).tolist()
    scheduler = saccade.Scheduler(model, prefixes=5000)
    scheduler.submit(long, max_tokens=1)
    scheduler.run()
    for shared in (535, 536, 537, 599):
        prompt = [*long[:shared], 7, 8]
        found = scheduler.submit(prompt, max_tokens=3)
        scheduler.run()
        (wanted,) = saccade.generate(model, [prompt], max_tokens=3)
        assert found.tokens == wanted.tokens


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_nothing_to_read_gives_nothing(name):
    model = architecture(name, encoder=2)
    empty = torch.zeros(2, 0, dtype=torch.long)
    some = torch.tensor([[3, 4, 5], [6, 7, 8]])
    assert model(some, empty).shape == (2, 0, 29)
    assert model(some[:0], some[:0]).shape == (0, 3, 29)
    assert model(empty, some).isfinite().all()


QUICK = ("convs2s",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.proof] * (name not in QUICK)) for name in ARCHITECTURES]
)
def test_every_architecture_learns(name):
    """To say a source backwards: within some steps the loss is well below that of guessing."""
    model = architecture(name, encoder=2, decoder=1, vocab=7, width=24, scale_embedding=True).float().train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(200):
        source = torch.randint(2, 7, (32, 4), generator=generator)
        target = source.flip(1)
        shown = torch.cat((torch.ones(32, 1, dtype=torch.long), target[:, :-1]), 1)
        loss = nn.functional.cross_entropy(model(source, shown).flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) / 20 < 1.3 < losses[0]  # one batch is luck


@pytest.mark.parametrize(
    ("shape", "values", "inputs", "output"),
    [
        ("one to one", {"encoder": 1, "decoder": 0, "head": "label(5)", "pooler": True}, [(3, 1)], (3, 5)),
        ("one to many", {"encoder": 1}, [(3, 1), (3, 4)], (3, 4, 29)),
        ("many to one", {"encoder": 1, "decoder": 0, "head": "label(5)", "pooler": True}, [(3, 7)], (3, 5)),
        ("many to many, one each", {"encoder_mixer": None}, [(3, 7)], (3, 7, 29)),
        ("many to many", {"encoder": 1}, [(3, 7), (3, 4)], (3, 4, 29)),
    ],
)
@pytest.mark.parametrize("mixer", ["gru(both=True)", "gru"])
def test_the_five_shapes_of_the_lecture(shape, values, inputs, output, mixer):
    model = architecture("recurrent", **{"encoder_mixer": mixer, **values})
    found = model(*(torch.randint(29, size) for size in inputs))
    assert found.shape == output


@pytest.mark.parametrize("name", ["recurrent", "fixed", "additive", "feeding lstm", "gnmt", "memory"])
@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_architectures_train_in_half_precision(name, precision):
    model = architecture(name, encoder=2).float().train()
    source, target = torch.randint(29, (2, 5)), torch.randint(29, (2, 4))
    exact = model(source, target)
    with torch.autocast("cpu", precision):
        said = model(source, target)
    said.float().square().mean().backward()
    with torch.no_grad(), torch.autocast("cpu", precision):
        torch.testing.assert_close(model(source, target), said.detach())
    assert (said - exact).abs().max() < 0.1 * exact.abs().max()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


@pytest.mark.parametrize(
    "values",
    [
        {"encoder": 1, "cross": "fixed", "mixer": "gru", "score": "nonsense"},
        {"cross": "attention", "mixer": "gru", "normaliser": "sparsemax"},
        {"encoder": 2, "decoder": 0, "mixer": "lstm", "score": "additive"},
        {"encoder": 1, "cross": "fixed", "mixer": "gru", "project": False},
    ],
)
def test_words_of_attention_are_refused_where_nothing_attends(values):
    with pytest.raises(saccade.SaccadeError, match="belongs to attention, and nothing here attends"):
        read(saccade.ModelConfig, {"vocab": 9, "width": 8, "heads": 1, "decoder": 1, **values})


@pytest.mark.parametrize("cross", ["fixed", "into"])
def test_a_source_of_no_tokens_is_one_that_is_all_padding(cross):
    model, target = architecture("fixed", mixer="gru", cross=cross, encoder=1), torch.tensor([[1, 2, 3]])
    none = model(torch.empty(1, 0, dtype=torch.long), target)
    hidden = model(texts(torch.tensor([[5, 6]]), [0]), target)
    torch.testing.assert_close(none, hidden)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_steps_of_many_rows_under_autocast(kind, monkeypatch):
    """As training with rewards in bfloat16 samples: states are float32, after a prompt and after a step alike."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    layer = Recurrent(kind, 8)
    x, steps = torch.randn(20, 4, 8), saccade.Cache()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        whole = layer(x)
        found = torch.cat([layer(each, cache=steps) for each in x.split([2, 1, 1], 1)], 1)
    torch.testing.assert_close(found, whole)
