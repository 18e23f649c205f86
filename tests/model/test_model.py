"""Whole models: the laws over five families and a strange one, heads, embeddings, and what is refused."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from texts import texts
from torch import Tensor, nn

import saccade
from saccade import Model, ModelConfig, SaccadeError, padding
from saccade.attend.position import waves
from saccade.model.embed import Embed

V = 53
SMALL = {"vocab": V, "width": 15, "heads": 3, "hidden": 17}
GPT2 = SMALL | {"decoder": 3, "position": "learned(23)", "feed": "gelu_tanh"}
LLAMA = SMALL | {"width": 24, "heads": 6, "kv_heads": 2, "decoder": 3, "norm": "rms", "feed": "swiglu", "bias": False}
T5 = SMALL | {"encoder": 2, "decoder": 3, "norm": "rms", "feed": "relu", "bias": False, "head_width": 7, "score": "dot"}
TRANSFORMER = SMALL | {"encoder": 2, "decoder": 3, "order": "post", "feed": "relu", "position": "sinusoid"}
BERT = SMALL | {"encoder": 3, "order": "post", "position": "learned(23)", "offset": 2, "segments": 2}
STRANGE = SMALL | {"decoder": 3, "order": "parallel", "position": "relative(3)", "pattern": "lg", "head_norm": True}
CONFIGS = {
    "gpt2": GPT2 | {"head": "vocabulary"},
    "llama": LLAMA | {"position": "rotary", "tie": False, "head": "vocabulary"},
    "t5": T5 | {"position": "t5(8, 16)", "share_position": True, "scale_output": True, "head": "vocabulary"},
    "transformer": TRANSFORMER | {"scale_embedding": True, "head": "vocabulary", "output_bias": True},
    "bert": BERT | {"norm_embedding": True, "pooler": True, "head": "masked"},
    "linformer": BERT | {"summary": "linformer(4, 13, none)", "head": "masked"},
    "linformers": TRANSFORMER | {"summary": "linformer(4, 13)", "share_summary": True, "head": "vocabulary"},
    "strange": STRANGE | {"masks": {"l": "window(3)", "g": "everyone"}, "experts": 3, "capacity": 0.4},
}
DECODERS = [name for name, each in CONFIGS.items() if each.get("decoder")]


def model(name: str, **changes) -> Model:
    """A small model in float64 whose weights are all random."""
    torch.manual_seed(0)
    made = saccade.build(ModelConfig(**(CONFIGS[name] | changes))).double().eval()
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.3)
    return made


def tokens(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def inputs(name: str, B: int, T: int) -> tuple[Tensor, ...]:
    both = CONFIGS[name].get("encoder") and CONFIGS[name].get("decoder")
    return (tokens(B, 5, seed=2), tokens(B, T)) if both else (tokens(B, T),)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("parts", [[1] * 11, [4, 1, 6], [1, 3, 2, 5]], ids=str)
@pytest.mark.parametrize("name", DECODERS)
def test_step_by_step_is_all_at_once(name, parts, gradient):
    ours = model(name)
    *source, target = inputs(name, 2, 11)
    source = [texts(each, [3, 5]) for each in source]
    whole = ours(*source, target)
    before = {key: value.clone() for key, value in ours.state_dict().items()}
    with torch.set_grad_enabled(gradient):
        state = ours.start(*source)
        close(torch.cat([ours.decode_step(part, state) for part in target.split(parts, 1)], 1), whole)
    assert state.length == 11
    assert all(torch.equal(value, before[key]) for key, value in ours.state_dict().items())


@pytest.mark.parametrize("name", DECODERS)
def test_a_padded_prompt_goes_on_as_if_alone(name):
    ours = model(name)
    *source, target = inputs(name, 2, 12)
    state = ours.start(*source)
    prompt = torch.stack((target[0, :7].roll(3), target[1, :7]))  # the first has 4 tokens and 3 pads before them
    steps = [ours.decode_step(prompt, state, padding=padding([4, 7], "left"))]
    rest = torch.stack((target[0, 4:9], target[1, 7:12]))
    steps = torch.cat(steps + [ours.decode_step(part, state) for part in rest.split([1, 3, 1], 1)], 1)
    close(steps[:1, 3:], ours(*(each[:1] for each in source), target[:1, :9]))
    close(steps[1:], ours(*(each[1:] for each in source), target[1:]))


@pytest.mark.parametrize("name", CONFIGS)
def test_left_padding_is_right_padding_is_alone(name):
    ours = model(name)
    *source, last = inputs(name, 2, 7)
    left_last = torch.stack((last[0].roll(3), last[1]))
    if source:
        left_source = torch.stack((source[0][0].roll(2), source[0][1]))
        right = ours(texts(source[0], [3, 5]), texts(last, [4, 7]))
        left = ours(texts(left_source, [3, 5], "left"), texts(left_last, [4, 7], "left"))
        alone = ours(source[0][:1, :3], last[:1, :4])
    else:
        right, left = ours(texts(last, [4, 7])), ours(texts(left_last, [4, 7], "left"))
        alone = ours(last[:1, :4])
    close(right[:1, :4], alone)
    close(left[:1, 3:], alone)
    close(left[1], right[1])


@pytest.mark.parametrize("name", CONFIGS)
def test_batched_is_alone(name):
    ours, given = model(name), inputs(name, 3, 7)
    close(ours(*given), torch.cat([ours(*(each[b : b + 1] for each in given)) for b in range(3)]))


@pytest.mark.parametrize("name", CONFIGS)
def test_only_an_encoder_sees_the_future(name):
    ours = model(name)
    *source, target = inputs(name, 2, 11)
    other = torch.cat((target[:, :6], (target[:, 6:] + 1) % V), 1)
    a, b = ours(*source, target), ours(*source, other)
    assert (a[:, 6:] - b[:, 6:]).abs().amin(dim=(0, 1)).max() > 1e-6
    changed = (a[:, :6] - b[:, :6]).abs().max()
    assert changed > 1e-6 if name in ("bert", "linformer") else changed < 1e-12
    if source:
        assert (ours(source[0].flip(1), target) - a).abs().max() > 1e-6


HEADS = {"vocabulary": (2, 7, V), "masked": (2, 7, V), "next_sentence": (2, 2), "label(5)": (2, 5), "span": (2, 7, 2)}
HEADS |= {"label(5, bare=True)": (2, 5), "tags(5)": (2, 7, 5)}


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize(("head", "shape"), HEADS.items())
def test_heads(head, shape, tie):
    ours = model("bert", head=head, tie=tie)
    assert ours(tokens(2, 7)).shape == shape
    has_table = head in ("vocabulary", "masked")
    table = ours.embed.tokens.weight
    assert (has_table and ours.head.weight is table) == (has_table and tie)
    ours(tokens(2, 7)).square().sum().backward()
    absent = [v for v in range(V) if v not in tokens(2, 7)]
    reached = bool((table.grad[absent] != 0).all())  # rows that no token used are reached through the head alone
    assert reached == (has_table and tie)
    assert (table.grad[tokens(2, 7)[0]] != 0).any()
    assert all(each.grad is not None for name, each in ours.named_parameters() if "pooler" not in name)


def test_pooled_heads_are_their_formula():
    ours, given = model("bert", head="label(5)"), tokens(2, 7)
    close(ours(given), ours.head.out(torch.tanh(ours.pooler(ours.encode(given)[:, 0]))))


@pytest.mark.parametrize("side", ["left", "right"])
def test_pooled_heads_read_the_first_token_wherever_padding_is(side):
    ours, given = model("bert", head="label(5)"), tokens(2, 7)
    padded = torch.stack((given[0].roll(3), given[1])) if side == "left" else given
    close(ours(texts(padded, [4, 7], side))[:1], ours(given[:1, :4]))


def test_scaled_and_biased_output():
    ours = model("t5", output_bias=True)
    *_, target = given = inputs("t5", 2, 7)
    states = ours.decode(target, ours.encode(given[0]))
    close(ours(*given), states @ ours.embed.tokens.weight.T / 15**0.5 + ours.head.bias)


@pytest.mark.parametrize("position", [None, "sinusoid", "learned(13)"])
@pytest.mark.parametrize("segments", [0, 3])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("offset", [0, 2])
def test_embedding_is_its_formula(position, segments, scale, offset):
    config = SMALL | {"encoder": 1, "position": position, "segments": segments, "scale_embedding": scale}
    embed = Embed(ModelConfig(**config, offset=offset)).double()
    given, kinds = tokens(2, 7), tokens(2, 7, seed=3) % 3
    steps = torch.tensor([[0, 0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6]])  # the first has three pads on the left
    for start, at in ((0, torch.arange(7).expand(2, 7)), (3, torch.arange(3, 10).expand(2, 7)), (steps, steps)):
        expected = embed.tokens.weight[given] * (15**0.5 if scale else 1)
        if position == "sinusoid":
            expected = expected + waves(at + offset, 15, 10000.0, torch.float64)
        elif position is not None:
            expected = expected + embed.position.weight[at + offset]
        if segments:
            both = {"tokens": given, "segments": kinds}
            close(embed(both, start), expected + embed.segments.weight[kinds])
            expected = expected + embed.segments.weight[0]
        close(embed({"tokens": given}, start), expected)


def test_norm_of_the_embedding():
    ours = model("bert", norm_embedding=True)
    bare = ours.embed.norm
    ours.embed.norm = None
    x = ours.embed({"tokens": tokens(2, 7)})
    ours.embed.norm = bare
    close(ours.embed({"tokens": tokens(2, 7)}), bare(x))


@pytest.mark.parametrize("name", CONFIGS)
def test_names_read_as_english(name):
    ours = model(name)
    names = list(ours.state_dict())
    for each in names:
        assert re.fullmatch(r"(embed|encoder|decoder|pooler|head)(\.([a-z]+(_[a-z]+)?|\d+))*", each), each
    own = dict(ours.named_parameters())
    tied = set(names) - own.keys()
    allowed = {"head.weight"} if CONFIGS[name].get("tie", True) and CONFIGS[name].get("head") else set()
    if name == "t5":
        allowed |= {f"{stack}.blocks.{n}.attention.position.weight" for stack in ("encoder", "decoder") for n in (1, 2)}
    if name == "linformers":
        allowed |= {f"encoder.blocks.1.attention.summary.{part}" for part in ("key", "value")}
    assert tied == allowed & set(names)
    other = model(name)
    for weight in other.parameters():
        nn.init.zeros_(weight)
    other.load_state_dict(ours.state_dict())
    given = inputs(name, 2, 7)
    assert torch.equal(other(*given), ours(*given))


@pytest.mark.parametrize("name", CONFIGS)
def test_meta_tells_shapes(name):
    config = ModelConfig(**CONFIGS[name])
    ours = saccade.build(config, device="meta")
    given = tuple(each.to("meta") for each in inputs(name, 2, 7))
    assert ours(*given).shape == (2, 7, V if config.head else config.width)
    lengths = torch.empty(2, dtype=torch.long, device="meta")
    assert ours(*given[:-1], texts(given[-1], lengths, "left")).shape[:2] == (2, 7)


def stepped(name: str, *parts: int, **options) -> None:
    ours = model(name)
    state = ours.start()
    for part in parts:
        ours.decode_step(tokens(2, part), state, **options)


WRONG = {
    "no encoder": (lambda: model("gpt2").encode(tokens(2, 7)), "no encoder"),
    "a source without an encoder": (lambda: model("gpt2").start(tokens(2, 7)), "no encoder"),
    "no decoder": (lambda: model("bert").decode(tokens(2, 7)), "no decoder"),
    "no decoder to step": (lambda: model("bert").decode_step(tokens(2, 7), model("bert").start()), "no decoder"),
    "no target": (lambda: model("t5")(tokens(2, 7)), "source and a target; this call brings no target"),
    "a target too many": (lambda: model("gpt2")(tokens(2, 7), tokens(2, 7)), "a decoder alone takes one sequence"),
    "a target for an encoder": (lambda: model("bert")(tokens(2, 7), tokens(2, 7)), "an encoder alone takes one"),
    "no context": (lambda: model("t5").decode(tokens(2, 7)), "context"),
    "no source": (lambda: stepped("t5", 3), "source"),
    "floats": (
        lambda: model("gpt2")(torch.zeros(2, 7)),
        r"whole numbers \(batch, length\); got torch.float32 \(2, 7\)",
    ),
    "bools": (lambda: model("gpt2")(torch.ones(2, 7, dtype=torch.bool)), "whole numbers"),
    "one axis": (lambda: model("gpt2")(tokens(7)), r"whole numbers \(batch, length\); got torch.int64 \(7,\)"),
    "past the table": (lambda: model("gpt2")(tokens(2, 24)), "position 23 lies past the end of a table of 23"),
    "stepping past the table": (lambda: stepped("gpt2", 20, 4), "position 23 lies past the end"),
    "past the table with an offset": (lambda: model("bert")(tokens(2, 22)), r"shorten the input (to 21|by 1)\b"),
    "too many lengths": (lambda: model("gpt2")(texts(tokens(2, 7), [1, 2, 3])), "3 entries for a batch of 2"),
    "lengths of another batch on the left": (
        lambda: model("bert")(texts(tokens(2, 7), [1, 2, 3], "left")),
        "3 entries for a batch of 2",
    ),
    "lengths of another batch for a gru": (
        lambda: saccade.build(ModelConfig(**SMALL, encoder=1, mixer="gru"))(texts(tokens(2, 7), [1, 2, 3])),
        "3 entries for a batch of 2",
    ),
    "nothing to pool": (lambda: model("bert").pool(torch.zeros(2, 0, 15).double()), "these sequences have none"),
    "segments without kinds": (
        lambda: model("t5").encode(texts(tokens(2, 7), segments=tokens(2, 7) % 2)),
        "this model has no segments",
    ),
    "an unknown segment": (
        lambda: model("bert")(texts(tokens(2, 7), segments=tokens(2, 7) * 0 + 5)),
        "kinds of 2: segments",
    ),
    "segments of other tokens": (
        lambda: model("bert")(texts(tokens(2, 7), segments=tokens(2, 6) % 2)),
        r"got int64 \(2, 6\) for tokens \(2, 7\)",
    ),
    "an unknown token": (lambda: model("gpt2")(tokens(2, 7) + V), "vocab"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_is_told_in_one_sentence(what):
    call, why = WRONG[what]
    with pytest.raises(SaccadeError, match=why) as problem:
        call()
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("score", ["bilinear", "additive", "gate", "integral", "feature(elu)"])
def test_turned_vectors_of_other_scores_than_products_stay_at_their_places(score):
    given = {"vocab": V, "width": 12, "heads": 2, "encoder": 2, "score": score}
    given |= {"normaliser": "sum"} if score.startswith("feature") else {}
    ids = tokens(1, 6)
    moved = torch.cat((torch.zeros(1, 3, dtype=torch.long), ids), 1)
    turned = saccade.build(ModelConfig(position="rotary", **given)).double().eval()
    with pytest.raises(SaccadeError, match="of turned vectors means absolute places"):
        turned(texts(moved, [6], "left"))
    near = saccade.build(ModelConfig(position="alibi", **given)).double().eval()
    close(near(texts(moved, [6], "left"))[:, 3:], near(ids))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"position": "sinusoid"}, "a memory goes with positions that are distances, and 'sinusoid' counts"),
        ({"position": "learned(23)"}, "a memory goes with positions that are distances, and 'learned"),
        ({"mask": "prefix(2)"}, "a memory moves the places that the mask 'prefix"),
        ({"pattern": "lg", "masks": {"l": "window(3)", "g": "blocks(2)"}}, "that the mask 'blocks"),
        ({"position": "rotary", "score": "bilinear"}, "that the score 'bilinear' of turned vectors means"),
    ],
)
def test_a_memory_goes_by_distances(changes, why):
    with pytest.raises(SaccadeError, match=why):
        saccade.build(ModelConfig(**SMALL, decoder=2, memory=5, **changes))


def test_left_padding_does_not_move_absolute_masks():
    """A mask over absolute places would mean others behind padding: refused. Relative ones mean the same."""
    ids = tokens(1, 6)
    moved = torch.cat((torch.zeros(1, 3, dtype=torch.long), ids), 1)
    for mask in ("prefix(2)", "blocks(2)", "bigbird(2, 1, 1, 1)"):
        fixed = saccade.build(saccade.ModelConfig(vocab=13, width=12, heads=2, encoder=1, mask=mask)).eval()
        with pytest.raises(SaccadeError, match="means absolute places"):
            fixed(texts(moved % 13, [6], "left"))
    near = saccade.build(saccade.ModelConfig(vocab=13, width=12, heads=2, encoder=1, mask="window(2)")).double().eval()
    torch.testing.assert_close(near(texts(moved % 13, [6], "left"))[:, 3:], near(ids % 13))


def test_activations_in_place_touch_nobody_elses_numbers():
    config = saccade.ModelConfig(vocab=13, width=12, heads=2, encoder=1, order="post", hidden=12)
    model = saccade.build(config).eval()
    ids = tokens(1, 6) % 13
    kept, up = [], model.encoder.blocks[0].feed.up
    hook = torch.nn.modules.module.register_module_forward_hook(lambda *call: kept.append(call))
    with torch.no_grad():
        model(ids)
    hook.remove()
    seen = [(inputs[0], output) for module, inputs, output in kept if module is up]
    assert len(seen) == 1
    torch.testing.assert_close(seen[0][1], up(seen[0][0]))
    model.encoder.blocks[0].feed.up = torch.nn.Identity()
    expected = model(ids)
    with torch.no_grad():
        torch.testing.assert_close(model(ids), expected)


def test_assigned_weights_stay_tied():
    model = saccade.build("gpt2", vocab=13, width=12, heads=2, decoder=1, head="vocabulary")
    other = saccade.build(model.config, device="meta")
    other.load_state_dict(model.state_dict(), assign=True)
    assert other.head.weight is other.embed.tokens.weight


def test_a_model_can_be_copied():
    model = saccade.build("gpt2", vocab=13, width=12, heads=2, decoder=1, head="vocabulary").eval()
    model.decoder.blocks[0].attention.kernel = "plain"
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embed.tokens.weight
    assert torch.equal(twin(tokens(1, 6) % 13), model(tokens(1, 6) % 13))


@pytest.mark.parametrize("pool", ["last", "mean"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_decoder_that_pools_does_not_see_its_padding(pool, side):
    values = {"vocab": 31, "width": 12, "heads": 3, "decoder": 2, "position": "rotary", "head": "label(3)"}
    model = Model(ModelConfig(**values, pool=pool, pooler=True)).double().eval()
    alone = model(torch.tensor([[5, 6, 7]]))
    beside = {"left": [9, 9, 5, 6, 7], "right": [5, 6, 7, 9, 9]}[side]
    both = model(texts(torch.tensor([beside, [1, 2, 3, 4, 8]]), [3, 5], side))
    torch.testing.assert_close(both[:1], alone)
