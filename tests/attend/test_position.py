"""Positions against the papers' formulas by loops, against Hugging Face's code, and at the steps of a cache."""

import math
from functools import partial
from importlib import import_module
from itertools import product

import pytest
import torch
from torch import nn

import saccade
from saccade import SaccadeError
from saccade.attend.grid import Grid
from saccade.attend.position import alibi, as_position, learned, relative, rotary, sinusoid, t5, xl

B, H, T, S, D, E = 2, 3, 5, 7, 10, 13  # D is even: rotary turns pairs


def randn(*shape):
    return torch.randn(shape, dtype=torch.float64)


def sharp(position):
    """The position in float64 with arbitrary weights, so that what starts at 0 counts."""
    for parameter in position.double().parameters():
        nn.init.normal_(parameter)
    return position


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return randn(B, H, T, D), randn(B, H, S, D), randn(B, H, S, D)


def scores(q, k, position):
    return saccade.weights(q, k, position=position, normaliser="none")


def wave(t, width):
    """The lecture's p(t): sin(w_k t) at 2k and cos(w_k t) at 2k + 1, with w_k = 10000^(-2k / width)."""
    return [(math.cos if n % 2 else math.sin)(t * 10000 ** (-2 * (n // 2) / width)) for n in range(width)]


@pytest.mark.parametrize("width", [12, 13])
@pytest.mark.parametrize("start", [0, 17, torch.tensor([3, 1000])], ids=["first", "later", "batch"])
def test_sinusoid_is_the_lectures(width, start):
    x, starts = randn(B, T, width), torch.as_tensor(start).expand(B)
    wanted = torch.tensor([[wave(int(starts[b]) + t, width) for t in range(T)] for b in range(B)], dtype=torch.float64)
    torch.testing.assert_close(sinusoid().on_input(x, start), x + wanted, rtol=0, atol=1e-12)
    joined = sinusoid("concatenate").on_input(x, start)
    assert torch.equal(joined[..., :width], x)
    torch.testing.assert_close(joined[..., width:], wanted, rtol=0, atol=1e-12)
    assert sinusoid("concatenate", width=6).on_input(x, start).shape == (B, T, width + 6)


def test_products_of_sinusoids_depend_on_the_distance_alone():
    p = sinusoid().on_input(torch.zeros(1, 101, 12, dtype=torch.float64))[0]
    products = p @ p.T
    for distance in (0, 1, 2, 17, 50):
        along = products.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), rtol=0, atol=1e-12)
    assert products[0, 1] > products[0, 2] + 0.1


@pytest.mark.parametrize("start", [0, 6, torch.tensor([2, 6])], ids=["first", "later", "batch"])
def test_learned(start):
    x, added, joined = randn(B, T, D), sharp(learned(11, width=D)), sharp(learned(11, "concatenate", width=E))
    for b, first in enumerate(torch.as_tensor(start).expand(B).tolist()):
        assert torch.equal(added.on_input(x, start)[b], x[b] + added.weight[first : first + T])
        assert torch.equal(joined.on_input(x, start)[b], torch.cat((x[b], joined.weight[first : first + T]), -1))


@pytest.mark.parametrize("start", [7, torch.tensor([7]), torch.tensor([0, 7])], ids=["int", "one", "batch"])
def test_learned_ends(start):
    x, table = randn(B, T, D), learned(11, width=D)
    with pytest.raises(SaccadeError, match=r"^learned: position 11 lies past the end of a table of 11; shorten the"):
        table.on_input(x, start)
    with pytest.raises(SaccadeError, match=r"^learned: .*negative"):
        table.on_input(x, start - 8)
    with pytest.raises(SaccadeError, match=r"^learned: vectors of width 10 cannot be added to an input of width 13$"):
        table.on_input(randn(B, T, E), 0)


def turned(x, layout, positions, width=None):
    """Hugging Face's rotation of the first `width` numbers, with cosines in float64."""
    width = width or x.shape[-1]
    angles = positions.unsqueeze(-1) * 10000.0 ** (-torch.arange(0, width, 2).double() / width)  # (B or 1,T,width/2)
    head, rest = x[..., :width], x[..., width:]
    if layout == "half":
        llama = import_module("transformers.models.llama.modeling_llama")
        angles = torch.cat((angles, angles), -1)
        head, _ = llama.apply_rotary_pos_emb(head, head, angles.cos(), angles.sin())
    else:
        gptj = import_module("transformers.models.gptj.modeling_gptj")
        head = gptj.apply_rotary_pos_emb(head.transpose(1, 2), angles.sin(), angles.cos()).transpose(1, 2)
    return torch.cat((head, rest), -1)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("width", [None, 6, 10])
def test_rotary_is_hugging_faces(layout, width, qkv):
    q, k, v = qkv
    position = rotary(layout, width=width)
    there = torch.tensor([[0, 3, 3, 1000, 7], [5, 4, 3, 2, 1]])
    torch.testing.assert_close(position.on_heads(q, there), turned(q, layout, there, width))
    last, keys = torch.arange(S - T, S)[None], torch.arange(S)[None]
    by_hand = saccade.attention(turned(q, layout, last, width), turned(k, layout, keys, width), v)
    torch.testing.assert_close(saccade.attention(q, k, v, position=position), by_hand)
    torch.testing.assert_close(saccade.attention(q, k, v, position=f"rotary({layout}, width={width})"), by_hand)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rotary_turns(layout, qkv):
    q, k = qkv[0][:, :, :1], qkv[1][:, :, :1]
    position = rotary(layout, base=500.0)

    def product(i, j):
        return (position.on_heads(q, torch.tensor([[i]])) * position.on_heads(k, torch.tensor([[j]]))).sum(-1)

    torch.testing.assert_close(product(3, 1), product(103, 101))
    torch.testing.assert_close(product(0, 0), (q * k).sum(-1))
    assert not torch.allclose(product(3, 1), product(1, 3))
    torch.testing.assert_close(position.on_heads(q, torch.tensor([[17]])).norm(dim=-1), q.norm(dim=-1))


SCALED = {
    "rotary(interpolate=4)": [0.25] * 6,
    "rotary(ntk=4)": [4 ** (-n / 5) for n in range(6)],  # the first pair as before, the last a quarter as fast
    "rotary(yarn=(4, 4096, 8, 1))": None,
    "rotary(llama3=(4, 4096))": None,
}


@pytest.mark.parametrize(("text", "slower"), SCALED.items())
def test_scaled_frequencies(text, slower):
    before = 10000.0 ** (-torch.arange(6, dtype=torch.float64) / 6)
    ratio = as_position(text).frequencies(12) / before
    if slower is not None:
        torch.testing.assert_close(ratio, torch.tensor(slower, dtype=torch.float64))
        return
    turns = 4096 * before / (2 * math.pi)  # 652, 140, 30, 6.5, 1.4, 0.3 times within the old length
    assert ratio[turns > 8].eq(1).all()
    assert ratio[turns < 1] == pytest.approx(0.25)
    assert (ratio.diff() <= 0).all()
    assert 0.25 < ratio[4] < 1


def test_interpolated_positions_are_fractions(qkv):
    """Positions p with interpolate=s stand where p / s stood, in scores and so in everything."""
    q, k, v = qkv
    p = torch.tensor([[0, 4, 12, 4000, 8]])
    slow, fast = rotary("interleaved", 500.0, interpolate=4), rotary("interleaved", 500.0)
    torch.testing.assert_close(slow.on_heads(q, p), fast.on_heads(q, p / 4))
    torch.testing.assert_close(slow.on_heads(q, p), fast.on_heads(q, p // 4))
    whole = saccade.attention(q, k, v, position="rotary")
    assert torch.equal(saccade.attention(q, k, v, position="rotary(interpolate=1)"), whole)
    torch.testing.assert_close(saccade.attention(q, k, v, position="rotary(ntk=1)"), whole)


def test_yarn_makes_queries_and_keys_longer(qkv):
    q, there = qkv[0], torch.arange(T)[None]
    usual, given = rotary(yarn=(4, 2048)), rotary(yarn=(4, 2048, 32, 1, 1.5), width=4)
    gain = 0.1 * math.log(4) + 1
    torch.testing.assert_close(usual.on_heads(q, there).norm(dim=-1), gain * q.norm(dim=-1))
    turned = given.on_heads(q, there)
    torch.testing.assert_close(turned[..., :4].norm(dim=-1), 1.5 * q[..., :4].norm(dim=-1))
    assert torch.equal(turned[..., 4:], q[..., 4:])


@pytest.mark.parametrize("distance", [1, 3, 8])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_relative_is_shaws(distance, mask, qkv):
    """e_ij = q_i.(k_j + a^K_ij) / sqrt(D), o_i = sum_j w_ij (v_j + a^V_ij)."""
    (q, k, _), v = qkv, randn(B, H, S, E)
    position = sharp(relative(distance, head_width=D, value_width=E))
    output = saccade.attention(q, k, v, position=position, mask=mask, kernel="plain")
    for b, h, t in product(range(B), range(H), range(T)):
        i = t + S - T
        seen = [j for j in range(S) if mask is None or j <= i]
        bucket = {j: max(-distance, min(distance, j - i)) + distance for j in seen}
        e = [q[b, h, t] @ (k[b, h, j] + position.key[bucket[j]]) / math.sqrt(D) for j in seen]
        weights = torch.stack(e).softmax(0)
        wanted = sum(w * (v[b, h, j] + position.value[bucket[j]]) for w, j in zip(weights, seen, strict=True))
        torch.testing.assert_close(output[b, h, t], wanted)


@pytest.mark.parametrize("width", [1, 2, D + 1])
def test_relative_values_have_the_width_of_the_values(width, qkv):
    q, k, _ = qkv
    with pytest.raises(SaccadeError, match=rf"^the position's values have width 10 and v has {width}$"):
        saccade.attention(q, k, randn(B, H, S, width), position=relative(3, head_width=D).double())


@pytest.mark.parametrize("input_width", [None, 17])
def test_xl_is_the_papers(input_width, qkv):
    """((q_i + u).k_j + (q_i + v).W r(i - j)) / sqrt(D)."""
    q, k, _ = qkv
    position = sharp(xl(head_width=D, heads=H, input_width=input_width))
    found = scores(q, k, position)
    for b, h, t, j in product(range(B), range(H), range(T), range(S)):
        r = torch.tensor(wave(t + S - T - j, position.input_width), dtype=torch.float64)
        W, u, v = position.distance.weight[h * D : (h + 1) * D], position.content[h], position.place[h]
        wanted = ((q[b, h, t] + u) @ k[b, h, j] + (q[b, h, t] + v) @ (W @ r)) / math.sqrt(D)
        assert found[b, h, t, j].item() == pytest.approx(wanted.item())


def test_xl_is_hugging_faces_xlnet(qkv):
    """XLNet's own core, fed with the same vectors of the distances S ... 1 - T."""
    xlnet = import_module("transformers.models.xlnet.modeling_xlnet")
    q, k, v = qkv
    position = sharp(xl(head_width=D, heads=H))
    config = xlnet.XLNetConfig(d_model=H * D, n_head=H, d_inner=2, n_layer=1, dropout=0.0)
    core = xlnet.XLNetRelativeAttention(config).double()
    core.r_w_bias, core.r_r_bias = (nn.Parameter(each.detach()) for each in (position.content, position.place))
    r = position.distance(torch.tensor([wave(d, H * D) for d in range(S, -T, -1)], dtype=torch.float64))
    r = r.view(S + T, 1, H, D).expand(-1, B, -1, -1)
    wanted = core.rel_attn_core(*(each.permute(2, 0, 1, 3) for each in (q, k, v)), r).permute(1, 2, 0, 3)
    torch.testing.assert_close(saccade.attention(q, k, v, position=position, kernel="plain"), wanted)


# For a number of heads between powers of two the paper's code takes every second slope of the next power.
SLOPES = {
    1: [1 / 256],
    8: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256],
    12: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, *(2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5)],
}


@pytest.mark.parametrize("heads", SLOPES)
def test_alibi(heads):
    q, k = randn(B, heads, T, D), randn(B, heads, S, D)
    bias = scores(q, k, "alibi") - scores(q, k, None)
    for h, t, j in product(range(heads), range(T), range(S)):
        assert bias[0, h, t, j].item() == pytest.approx(-SLOPES[heads][h] * abs(t + S - T - j), abs=1e-12)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "distance"), [(32, 128), (16, 100), (64, 256), (4, 5)])
def test_t5_buckets_are_hugging_faces(bidirectional, buckets, distance):
    hugging_face = import_module("transformers.models.t5.modeling_t5").T5Attention
    away = torch.arange(-300, 301)
    wanted = hugging_face._relative_position_bucket(away, bidirectional, buckets, distance)
    position = sharp(t5(buckets, distance, bidirectional, heads=H))
    assert torch.equal(position.bucket(away), wanted)
    nothing = torch.zeros(1, H, 301, 2).double()
    bias = scores(nothing, nothing, position)[0]
    assert torch.equal(bias[:, 300, :], position.weight[wanted[:301]].T)
    assert torch.equal(bias[:, 0, :], position.weight[wanted[300:]].T)


POSITIONS = {
    "relative": lambda: relative(3, head_width=D),
    "xl": lambda: xl(head_width=D, heads=H),
    "alibi": alibi,
    "t5": lambda: t5(8, 16, heads=H),
    "t5, decoder": lambda: t5(8, 16, bidirectional=False, heads=H),
    "rotary": rotary,
    "rotary, yarn": lambda: rotary(yarn=(4, 8, 2)),
}
every = pytest.mark.parametrize("name", POSITIONS)


@every
@pytest.mark.parametrize("kernel", ["plain", "auto"])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_a_later_start_gives_the_later_rows(name, kernel, mask, qkv):
    position, (_, k, v) = sharp(POSITIONS[name]()), qkv
    q, options = randn(B, H, S, D), {"position": position, "mask": mask, "kernel": kernel}
    whole = saccade.attention(q, k, v, **options)
    for first in range(S):
        end = first + 1 if mask else S  # with a cache, later keys are not there yet
        step = saccade.attention(q[:, :, first:end], k[:, :, :end], v[:, :, :end], start=first, **options)
        torch.testing.assert_close(step, whole[:, :, first:end])


@every
@pytest.mark.parametrize("kernel", ["plain", "auto"])
def test_each_example_may_start_elsewhere(name, kernel, qkv):
    position, (q, k, v) = sharp(POSITIONS[name]()), qkv
    starts = torch.tensor([4, 1])
    together = saccade.attention(q, k, v, position=position, start=starts, kernel=kernel)
    for b, start in enumerate(starts.tolist()):
        one = slice(b, b + 1)
        alone = saccade.attention(q[one], k[one], v[one], position=position, start=start, kernel="plain")
        torch.testing.assert_close(together[one], alone)


@every
@pytest.mark.parametrize("start", [0, 9, torch.tensor([4, 1])], ids=["first", "later", "batch"])
@pytest.mark.parametrize("rows", [range(1, 4), torch.tensor([4, 0, 0])], ids=["range", "tensor"])
def test_some_rows_are_a_slice_of_all(name, start, rows, qkv):
    position, (q, k, _), grid = sharp(POSITIONS[name]()), qkv, Grid(T, S, start, torch.device("cpu"))
    picked = torch.as_tensor(list(rows) if isinstance(rows, range) else rows)
    if "scores" in position.doors:
        whole = position.on_scores(q, k, grid).expand(B, H, T, S)
        some = position.on_scores(q[:, :, picked], k, grid.take(rows)).expand(B, H, 3, S)
        torch.testing.assert_close(some, whole[:, :, picked])
    if "values" in position.doors:
        weights = torch.rand(B, H, T, S).double()
        some = position.on_values(weights[:, :, picked], grid.take(rows))
        torch.testing.assert_close(some, position.on_values(weights, grid)[:, :, picked])


@pytest.mark.parametrize(
    "text", ["relative(3)", "xl", "alibi", "t5", "t5(8, 16, False)", " (t5) ", "rotary", "rotary(ntk=4)"]
)
def test_a_layer_builds_its_position(text):
    layer = saccade.Attention(H * D, H, position=text, mask="causal").double()
    x, cache = randn(B, T, H * D), saccade.Cache()
    with torch.no_grad():
        steps = [layer(x[:, t : t + 1], cache=cache) for t in range(T)]
    torch.testing.assert_close(torch.cat(steps, 1), layer(x))


x = torch.zeros(B, H, T, D)
attend, layer = partial(saccade.attention, x, x, x), partial(saccade.Attention, H * D, H)
NEEDS = r"the position '{0}' has weights: pass a module, saccade\.attend\.position\.{0}\("
PAIRS = "rotary turns pairs: an even number up to the head's width 10, not "
REFUSED = [
    (attend, "sinusoid", "the position sinusoid belongs to the input: apply its on_input to x$"),
    (attend, learned(9, width=D), "the position learned belongs to the input: apply its on_input to x$"),
    (layer, "sinusoid(concatenate)", "the position 'sinusoid' belongs to the embedding, not to an attention layer$"),
    (layer, "learned(9)", "the position 'learned' belongs to the embedding, not to an attention layer$"),
    *((attend, text, NEEDS.format(text.partition("(")[0])) for text in ("relative(3)", "learned(3)", "xl", "t5")),
    (attend, 3, "position is a spec string or a Position, not int$"),
    (attend, t5(heads=2), "t5: built for 2 heads; q has 3$"),
    (attend, xl(head_width=D, heads=2), "xl: built for 2 heads; q has 3$"),
    (attend, xl(head_width=E, heads=H), "xl: built for heads of width 13; q has 10$"),
    (attend, relative(3, head_width=E), "relative: built for heads of width 13; q has 10$"),
    *((attend, rotary(width=width), PAIRS + f"{width}$") for width in (12, 3)),
    (attend, rotary(width=2, ntk=2), "rotary: ntk needs two pairs at least, and heads of width 2 have fewer$"),
]


@pytest.mark.parametrize(("call", "position", "message"), REFUSED)
def test_doors_and_sizes(call, position, message):
    with pytest.raises(SaccadeError, match="^" + message):
        call(position=position)


BAD = {
    "sinusoid(multiply)": "sinusoid: positions are combined by 'add' or 'concatenate', not 'multiply'$",
    "sinusoid(width=wide) sinusoid(width=0) sinusoid(width=2.5)": "sinusoid: width is a whole number from 1; got",
    "sinusoid(base=0) sinusoid(base=large)": "sinusoid: base",
    "learned(0) learned(True) learned(2.0)": "learned: length is a whole number from 1; got",
    "learned(9,width=wide) learned(9,width=0)": "learned: width is a whole number from 1; got",
    "relative(0) relative(-3) relative(far)": "relative: distance is a whole number from 1; got",
    "t5(5,128) t5(2) t5(32,32)": "t5: buckets is even and at least 4, distance larger; got",
    "t5(0) t5(32.0) t5(x)": "t5: buckets is a whole number from 1; got",
    "t5(bidirectional=false)": "t5: bidirectional is True or False",  # else a string, and so true
    "rotary(third)": "rotary: layout is 'half' or 'interleaved', not 'third'$",
    "rotary(width=0) rotary(width=wide)": "rotary: width is a whole number from 1; got",
    "rotary(base=0) rotary(base=-1) rotary(base=large) rotary(base=1e999)": "rotary: base",
    "rotary(base=1.0,yarn=(4,2048))": "rotary: yarn needs a base above 1",
    "rotary(ntk=2,yarn=(2,64))": "rotary: ntk and yarn both change the frequencies: choose one$",
    "rotary(ntk=0.5) rotary(yarn=(0.9,64))": "rotary: .* by a factor from 1; got 0",
    "rotary(ntk=far) rotary(interpolate=True)": "rotary: .* in positive numbers; got factor",
    "rotary(yarn=4) rotary(llama3=(8,64,1,4,2))": r"rotary: .* is written .*=\(factor, length\[",
    "rotary(yarn=(4,64.5))": "rotary: yarn's length is a whole number of positions; got 64.5$",
    "rotary(yarn=(4,64,1,2))": "rotary: yarn's fast is more than its slow; got 1 and 2$",
    "rotary(llama3=(4,64,4,1))": "rotary: llama3's high is more than its low; got 1 and 4$",
    "alibi(8)": r"position alibi: .*it is written alibi\(\)$",
}


@pytest.mark.parametrize(("text", "message"), [(text, each) for texts, each in BAD.items() for text in texts.split()])
def test_bad_arguments(text, message):
    with pytest.raises(SaccadeError, match="^" + message):
        as_position(text, head_width=D, heads=H, input_width=H * D)
