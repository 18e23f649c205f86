"""The named models: counted exactly, sized honestly, built for nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.attend.kernel import as_kernel
from saccade.attend.layer import Attention
from saccade.zoo.names import LECTURE, ZOO, named
from saccade.zoo.size import size

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


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_parameters_are_exact(name, count):
    assert size(name, length=7)["parameters"] == count


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
    begin = time.perf_counter()
    model = saccade.build("megatron-8.3b", device="meta")
    assert time.perf_counter() - begin < 2
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
        (lambda: saccade.build("gpt2", device="meta", head="label(3)"), "give the model pooler = true"),
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


def run(*args: str) -> subprocess.CompletedProcess[str]:
    code = "from saccade.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=120)


def test_size_on_the_command_line():
    found = json.loads(run("size", "gpt2", "--length", "17", "--json").stdout)
    assert found == {"model": "gpt2", **size("gpt2", length=17)}
    assert found["parameters"] == PARAMETERS["gpt2"]
    assert (found["layers"], found["width"], found["heads"], found["length"]) == (12, 768, 12, 17)
    assert {"bytes_weights", "bytes_training", "bytes_activations", "flops_forward", "flops_training"} <= found.keys()
    done = run("size", "gtp2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("saccade: no model is called 'gtp2'; did you mean 'gpt2'")
    assert len(done.stderr.strip().splitlines()) == 1
