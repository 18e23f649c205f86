"""Blocks and stacks: their orders by formula, torch's layers as an outside oracle, DeepNet's numbers, patterns."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.config import read
from saccade.model.block import Block
from saccade.model.norm import NORMS
from saccade.model.parts import EncoderOutput
from saccade.model.stack import Memory, Stack, deep, layer_position

SMALL = {"vocab": 11, "width": 15, "heads": 3, "hidden": 17, "encoder": 1}
ORDERS = ("post", "pre", "deep", "parallel")


def config(**changes) -> ModelConfig:
    return read(ModelConfig, SMALL | changes)


def block(*, cross: bool = False, alpha: float = 1.0, **changes) -> Block:
    """A block in float64 whose weights are all random, norms and biases included."""
    torch.manual_seed(0)
    made = Block(config(**changes), source=EncoderOutput(15, "first") if cross else None, alpha=alpha).double()
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.4)
    return made


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def normed(kind: str, x: Tensor, norm: nn.Module, epsilon: float) -> Tensor:
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * norm.weight + norm.bias
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * norm.weight


@pytest.mark.parametrize("kind", NORMS)
def test_norms(kind):
    norm, x = NORMS[kind](7, 0.03).double(), numbers(2, 5, 7)
    for weight in norm.parameters():
        nn.init.normal_(weight)
    torch.testing.assert_close(norm(x), normed(kind, x, norm, 0.03), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_orders_are_their_formulas(order, cross, kind):
    epsilon = 0.03
    ours = block(order=order, norm=kind, cross=cross, epsilon=epsilon, alpha=1.7 if order == "deep" else 1.0)
    x, context = numbers(2, 5, 15), numbers(2, 3, 15) if cross else None
    parts = [(ours.attention, ours.attention_norm)]
    parts += [(lambda y: ours.cross(y, context), ours.cross_norm)] if cross else []
    parts += [(ours.feed, ours.feed_norm)]
    y = x
    if order == "parallel":
        y = x + sum(f(normed(kind, x, norm, epsilon)) for f, norm in parts)
    for f, norm in parts if order != "parallel" else ():
        if order == "pre":
            y = y + f(normed(kind, y, norm, epsilon))
        else:
            y = normed(kind, (1.7 if order == "deep" else 1.0) * y + f(y), norm, epsilon)
    torch.testing.assert_close(ours(x, context), y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", ORDERS)
def test_a_decoder_looks_at_its_context(order):
    try:
        stack = Stack(config(order=order, decoder=2), decoder=True).double()
    except SaccadeError:
        return  # to refuse is honest, to ignore is not
    x, context = numbers(2, 5, 15), numbers(2, 3, 15)
    (gradient,) = torch.autograd.grad(stack(x, context).square().sum(), context, allow_unused=True)
    assert gradient is not None, f"{order} ignores the context"
    assert (gradient != 0).all()


def copied(ours: Block, theirs: nn.Module) -> dict[str, str]:
    """Our weights in torch's layer; gives torch's names of ours, where they are one to one."""
    names = {"attention.out": "self_attn.out_proj", "attention_norm": "norm1", "feed.up": "linear1"}
    names |= {"feed.down": "linear2", "feed_norm": "norm2"}
    stacks = {"attention": "self_attn"}
    if ours.cross is not None:
        names |= {"cross.out": "multihead_attn.out_proj", "cross_norm": "norm2", "feed_norm": "norm3"}
        stacks["cross"] = "multihead_attn"
    own = {f"{b}.{kind}": ours.get_parameter(f"{a}.{kind}") for a, b in names.items() for kind in ("weight", "bias")}
    for a, b in stacks.items():
        part = ours.get_submodule(a)
        own[f"{b}.in_proj_weight"] = part.stacked()
        own[f"{b}.in_proj_bias"] = torch.cat((part.query.bias, part.key.bias, part.value.bias))
    assert own.keys() == theirs.state_dict().keys()
    theirs.load_state_dict({name: value.detach() for name, value in own.items()})
    return {f"{b}.{kind}": f"{a}.{kind}" for a, b in names.items() for kind in ("weight", "bias")}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("feed", ["relu", "gelu"])
@pytest.mark.parametrize("order", ["post", "pre"])
@pytest.mark.parametrize("cross", [False, True])
def test_parity_with_torch(cross, order, feed, masked):
    ours = block(order=order, feed=feed, cross=cross, epsilon=1e-3)
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    theirs = kind(15, 3, 17, 0.0, feed, 1e-3, batch_first=True, norm_first=order == "pre", dtype=torch.float64)
    names = copied(ours, theirs)
    x, context = numbers(2, 7, 15), numbers(2, 5, 15)
    own, their = {}, {}
    if masked:
        own["mask"] = saccade.causal & saccade.padding([4, 7])
        key = "tgt" if cross else "src"
        their = {f"{key}_mask": ~saccade.causal(7), f"{key}_key_padding_mask": ~saccade.padding([4, 7])(1, 7)[:, 0, 0]}
        if cross:
            own["context_mask"] = saccade.padding([5, 2])
            their["memory_key_padding_mask"] = ~saccade.padding([5, 2])(1, 5)[:, 0, 0]
    a = ours(x, context, **own) if cross else ours(x, **own)
    b = theirs(x, context, **their) if cross else theirs(x, **their)
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    weight, inputs = torch.randn_like(a), [x, context] if cross else [x]
    mine = torch.autograd.grad(a, [*inputs, *map(ours.get_parameter, names.values())], weight, retain_graph=True)
    yours = torch.autograd.grad(b, [*inputs, *map(theirs.get_parameter, names)], weight, retain_graph=True)
    torch.testing.assert_close(mine, yours, rtol=1e-10, atol=1e-10)
    projections = [ours.get_parameter(f"attention.{part}.weight") for part in ("query", "key", "value")]
    stacked = torch.cat(torch.autograd.grad(a, projections, weight))
    torch.testing.assert_close(
        stacked, torch.autograd.grad(b, theirs.self_attn.in_proj_weight, weight)[0], rtol=1e-10, atol=1e-10
    )


def test_dropout_only_while_training():
    ours, x = block(dropout=0.5), numbers(2, 5, 15)
    assert torch.equal(ours.eval()(x), ours(x))
    assert not torch.equal(ours.train()(x), ours(x))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("final", [None, True, False])
def test_the_last_norm(order, final):
    stack = Stack(config(order=order, final_norm=final), decoder=False).double()
    assert (stack.norm is not None) == (order in ("pre", "parallel") if final is None else final)
    x = numbers(2, 5, 15)
    y = stack.blocks[0](x)
    torch.testing.assert_close(stack(x), y if stack.norm is None else F.layer_norm(y, (15,)))


DEEPNET = {  # Wang et al. 2022, figure 2: alpha and beta of the encoder, of the decoder
    (18, 0): ((2 * 18) ** (1 / 4), (8 * 18) ** (-1 / 4), None, None),
    (0, 18): (None, None, (2 * 18) ** (1 / 4), (8 * 18) ** (-1 / 4)),
    (6, 10): (
        0.81 * (6**4 * 10) ** (1 / 16),
        0.87 * (6**4 * 10) ** (-1 / 16),
        (3 * 10) ** (1 / 4),
        (12 * 10) ** (-1 / 4),
    ),
}


@pytest.mark.parametrize(("depths", "expected"), DEEPNET.items())
def test_deepnets_numbers(depths, expected):
    """In every block, and measured on the initial weights: xavier normal, std = gain sqrt(2 / (in + out))."""
    torch.manual_seed(0)
    encoder, decoder = depths
    model = saccade.build(
        ModelConfig(
            vocab=11,
            width=60,
            heads=3,
            kv_heads=1,
            encoder=encoder,
            decoder=decoder,
            order="deep",
            hidden=90,
            feed="swiglu",
        )
    )
    for stack, alpha, beta in ((model.encoder, *expected[:2]), (model.decoder, *expected[2:])):
        if stack is None:
            assert alpha is None
            continue
        assert [each.alpha for each in stack.blocks] == pytest.approx([alpha] * len(stack.blocks))
        assert deep(encoder, decoder, stack is model.decoder) == pytest.approx((alpha, beta))
        found: dict[str, list[Tensor]] = {}
        for name, weight in stack.named_parameters():
            if name.endswith("weight") and weight.dim() == 2:
                scaled = weight.detach() / (2 / sum(weight.shape)) ** 0.5
                found.setdefault(name.split(".")[-2], []).append(scaled.flatten())
        assert found.keys() == {"query", "key", "value", "out", "gate", "up", "down"}
        for name, values in found.items():
            gain = 1.0 if name in ("query", "key") else beta
            assert float(torch.cat(values).std()) == pytest.approx(gain, rel=0.02), name


def test_the_other_orders_leave_the_residual_alone():
    for order in ("post", "pre", "parallel"):
        assert saccade.build(config(order=order)).encoder.blocks[0].alpha == 1


@pytest.mark.parametrize("decoder", [False, True])
def test_patterns(decoder):
    """Letter by letter, repeated: l is near, g is everything; seen through `watch`."""
    depth = {"decoder": 5, "encoder": 0} if decoder else {"encoder": 5}
    masks = {"l": "window(2)", "g": "everyone"}
    model = saccade.build(config(pattern="llg", masks=masks, mask="~blocks(3)|window(3)", **depth)).double()
    with saccade.watch(model) as seen:
        model(torch.randint(11, (2, 7)))
    i, j = torch.arange(7).view(-1, 1), torch.arange(7)
    common = (i // 3 != j // 3) | ((i - j).abs() < 3)
    common = common & (j <= i) if decoder else common
    near = common & ((i - j).abs() < 2)
    name = "decoder" if decoder else "encoder"
    assert seen.layers == [f"{name}.blocks.{n}.attention" for n in range(5)]
    for layer, allowed in zip(seen.layers, (near, near, common, near, near), strict=True):
        assert torch.equal(seen.weights(layer) > 0, allowed.expand(2, 3, 7, 7)), layer


def test_positions_of_layers():
    both = config(position="t5(8, 16)", share_position=True, decoder=3, encoder=2)
    encoder, decoder = Stack(both, decoder=False), Stack(both, decoder=True)
    for stack, two_way in ((encoder, True), (decoder, False)):
        own = stack.blocks[0].attention.position
        assert all(each.attention.position is own for each in stack.blocks)
        assert (own.bidirectional, own.buckets, own.distance) == (two_way, 8, 16)
    apart = Stack(config(position="t5(8, 16)", decoder=3), decoder=True).blocks
    assert apart[0].attention.position is not apart[1].attention.position
    assert apart[0].cross.position is None
    for written in ("t5", "t5()", " t5 ( 8, distance=16 ) "):
        assert Stack(config(position=written, decoder=1), decoder=True).blocks[0].attention.position.buckets in (8, 32)
    for written in ("sinusoid", "learned(7)", None):
        assert layer_position(config(position=written), ["attention"], True) is None


@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("order", ["pre", "post", "deep", "parallel", "residual", "half", "plain"])
def test_a_memory_goes_with_every_order(order, streams):
    torch.manual_seed(0)
    made = saccade.build(config(order=order, memory=23, streams=streams, position="alibi")).double().eval()
    tokens, memory = torch.randint(11, (2, 13)), made.memory()
    made(tokens[:, :7], memory=memory)
    found = made(tokens[:, 7:], memory=memory)
    torch.testing.assert_close(found, made(tokens)[:, 7:], rtol=0, atol=1e-12)  # of one layer, which kept it all
    if streams == 2:
        assert made.permuted(tokens, torch.randperm(13)).shape == (2, 13, 15)


def test_a_memory_keeps_no_more_than_it_holds():
    memory = Memory(3)
    for length in (2, 101, 7):
        memory.keep(0, torch.zeros(1, length, 5))
        assert memory.states[0].untyped_storage().nbytes() == memory.states[0].nbytes
