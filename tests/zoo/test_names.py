"""The named models: counted exactly, sized honestly, built for nothing."""

from __future__ import annotations

import json
import time

import pytest
import torch
import transformers as hf
from torch.utils.flop_counter import FlopCounterMode

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.attend.kernel import as_kernel
from saccade.attend.layer import Attention
from saccade.zoo.capacity import parameters
from saccade.zoo.names import LECTURE, ZOO, named
from saccade.zoo.size import activations, size

PARAMETERS = {
    "transformer-base": 63_082_496,
    "transformer-big": 214_245_376,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "roberta-base": 124_645_632,
    "roberta-large": 355_359_744,
    "xlnet-base": 116_718_336,
    "xlnet-large": 360_268_800,
    "transformer-xl": 41_066_496,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "megatron-1.2b": 1_213_479_936,
    "megatron-2.5b": 2_490_408_960,
    "megatron-4.2b": 4_199_109_120,
    "megatron-8.3b": 8_317_040_640,
    "llama-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "mistral-7b": 7_241_732_096,
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "vit-base": 86_389_248,
    "vit-large": 304_351_232,
    "deit-base": 86_390_784,
    "dinov2-small": 22_056_192,
    "dinov2-base": 86_579_712,
    "swin-tiny": 27_519_354,
    "swin-base": 86_743_224,
}
# The same models of `transformers`; of DINOv2 without the mask token, which only its pretraining reads.
PICTURES = {
    "vit-base": lambda: hf.ViTModel(hf.ViTConfig()),
    "vit-large": lambda: hf.ViTModel(
        hf.ViTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    ),
    "deit-base": lambda: hf.DeiTModel(hf.DeiTConfig()),
    "dinov2-small": lambda: hf.Dinov2Model(
        hf.Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, use_mask_token=False)
    ),
    "dinov2-base": lambda: hf.Dinov2Model(hf.Dinov2Config(image_size=518, use_mask_token=False)),
    "swin-tiny": lambda: hf.SwinModel(hf.SwinConfig()),
    "swin-base": lambda: hf.SwinModel(hf.SwinConfig(embed_dim=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32])),
}
# Patches of the picture that each was made for, and the papers' FLOPs (products, in 1e9) where they give any.
COST = {
    "vit-base": (196, 17.6),
    "deit-base": (196, 17.6),
    "dinov2-small": (1369, None),
    "swin-tiny": (3136, 4.5),
    "swin-base": (3136, 15.4),
}
SMALL = {"vocab": 53, "width": 12, "heads": 3}
FLOPS = {
    "gpt2": SMALL | {"decoder": 2, "position": "learned(31)", "head": "vocabulary"},
    "llama": SMALL | {"heads": 6, "kv_heads": 2, "decoder": 2, "feed": "swiglu", "hidden": 17, "head": "vocabulary"},
    "t5": SMALL | {"encoder": 2, "decoder": 3, "head_width": 5, "position": "t5(8, 16)", "head": "vocabulary"},
    "bert": SMALL | {"encoder": 2, "order": "post", "segments": 2, "head": "masked"},
    "xl": SMALL | {"decoder": 2, "position": "xl"},
    "relative": SMALL | {"encoder": 2, "position": "relative(3)"},
    "body": SMALL | {"encoder": 2},
    "labels": SMALL | {"encoder": 2, "pooler": True, "head": "label(5)"},
    "span": SMALL | {"encoder": 2, "head": "span"},
    "experts": SMALL | {"decoder": 2, "experts": 5, "chosen": 2, "head": "vocabulary"},
}


@pytest.mark.parametrize(
    ("name", "count"),
    [pytest.param(*each, marks=[pytest.mark.proof] * (each[1] > 3e8)) for each in PARAMETERS.items()],
)
def test_parameters_are_exact(name, count):
    assert size(name, length=7)["parameters"] == count


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_have_the_parameters_of_transformers(name):
    with torch.device("meta"):
        theirs = PICTURES[name]()
    assert sum(each.numel() for each in theirs.parameters()) == PARAMETERS[name] == parameters(named(name))


@pytest.mark.parametrize("name", COST)
def test_pictures_cost_what_the_papers_say(name):
    found, (length, products) = size(name), COST[name]
    assert found["length"] == length
    if products is not None:
        assert found["flops_forward"] / 2e9 == pytest.approx(products, rel=0.01)


def test_activations_shrink_with_the_grid():
    """Each stage has a quarter of the cells and twice the width; so its layers keep half as many numbers."""
    shared = {"width": 12, "heads": 3, "hidden": 24, "embed": "patches(4, 3)"}
    one, two, three = (
        activations(saccade.build(ModelConfig(**shared, encoder=stages), device="meta"), 64)
        for stages in ([2], [2, 1], [2, 2])
    )
    block = activations(saccade.build(ModelConfig(**shared, encoder=3), device="meta"), 64) - one
    assert three - two == pytest.approx(block / 2)


def test_every_name_is_counted():
    assert PARAMETERS.keys() == ZOO.keys(), "a new model is counted here"
    assert LECTURE.keys() <= ZOO.keys()


@pytest.mark.parametrize("name", LECTURE)
def test_the_lectures_table(name):
    model, said = saccade.build(name, device="meta"), LECTURE[name]
    blocks = [block for stack in (model.encoder, model.decoder) if stack is not None for block in stack.blocks]
    assert (len(blocks), model.embed.tokens.weight.shape[1]) == (said.layers, said.width)
    if said.heads != "?":
        assert {block.attention.heads for block in blocks} == {int(said.heads)}
    value, unit = float(said.parameters[:-1].lstrip("~")), {"M": 1e6, "B": 1e9}[said.parameters[-1]]
    assert PARAMETERS[name] == pytest.approx(value * unit, rel=0.07)  # the lecture rounds, and counts GPT-2 low


def test_the_largest_builds_in_no_time():
    begin = time.process_time()  # a busy machine stretches the clock
    model = saccade.build("megatron-8.3b", device="meta")
    assert time.process_time() - begin < 2
    assert all(each.is_meta for each in model.parameters())


def test_changes_and_heads():
    model = saccade.build("bert-base", vocab=53, encoder=2, width=12, heads=3, head="label(5)")
    assert (len(model.encoder.blocks), model.config.segments, model.head.out.out_features) == (2, 2, 5)
    assert named("bert-base").head is None
    assert named("bert-base").vocab == 30522
    assert saccade.build(named("gpt2"), device="meta", decoder=1).config.decoder == 1


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: saccade.build("gtp2"), "no model is called 'gtp2'; did you mean 'gpt2'"),
        (lambda: saccade.build("megatron-8b"), "did you mean 'megatron-8.3b'"),
        (lambda: saccade.build("gpt2", device="meta", dept=3), "dept is unknown"),
        (lambda: saccade.build("gpt2", device="meta", head="vocabulry"), "did you mean 'vocabulary'"),
        (lambda: saccade.build("vit-base", device="meta", head="taught(3)"), "give the model class_tokens = 2"),
        (lambda: saccade.build(7), "build takes a name or a ModelConfig, not int"),
    ],
)
def test_wrong_names(build, why):
    with pytest.raises(SaccadeError, match=why) as problem:
        build()
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("name", FLOPS)
def test_flops_are_torchs_count(name):
    """An independent count: torch's, of the operations that a real forward does."""
    config, length = ModelConfig(**FLOPS[name]), 29
    model = saccade.build(config).eval()
    for each in model.modules():
        if isinstance(each, Attention):
            each.kernel = as_kernel("plain")
    tokens = torch.randint(config.vocab, (1, length))
    inputs = (tokens, tokens) if config.encoder and config.decoder else (tokens,)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs)
    assert size(config, length=length)["flops_forward"] == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_bytes():
    found = size(ModelConfig(**FLOPS["gpt2"]))
    assert found["length"] == 31  # of the learned table
    assert found["bytes_weights"] == 4 * found["parameters"]
    assert found["bytes_training"] == 16 * found["parameters"]
    assert found["flops_training"] == 3 * found["flops_forward"]
    assert size("roberta-base")["length"] == 512  # two rows of its table come before the first position


def test_size_on_the_command_line(command):
    found = json.loads(command("size", "gpt2", "--length", "17", "--json").stdout)
    assert found == {"model": "gpt2", **size("gpt2", length=17)}
    assert found["parameters"] == PARAMETERS["gpt2"]
    assert (found["layers"], found["width"], found["heads"], found["length"]) == (12, 768, 12, 17)
    assert {"bytes_weights", "bytes_training", "bytes_activations", "flops_forward", "flops_training"} <= found.keys()
    done = command("size", "gtp2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("saccade: no model is called 'gtp2'; did you mean 'gpt2'")
    assert len(done.stderr.strip().splitlines()) == 1
