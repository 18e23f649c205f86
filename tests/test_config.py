"""Configurations: what is refused, in which words, and that nothing changes afterwards."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from saccade import Model, ModelConfig, SaccadeError
from saccade.config import Config, read

SMALL = {"vocab": 13, "width": 6, "heads": 3, "decoder": 2}


class Outer(Config):
    """A configuration inside another, as a recipe has it."""

    model: ModelConfig
    steps: int = 5


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"widht": 6}, "widht is unknown; did you mean 'width'"),
        ({"kv_head": 1}, "kv_head is unknown; did you mean 'kv_heads'"),
        ({"zzz": 1}, "zzz is unknown; there are: .*vocab.*width"),
        ({"width": 6.0}, "^width should be a whole number >= 1; got 6.0"),
        ({"width": "6"}, "^width should be a whole number >= 1; got '6'"),
        ({"width": True}, "^width should be a whole number >= 1; got True"),
        ({"width": None}, "^width should be a whole number >= 1; got None"),
        ({"width": 0}, "^width should be a whole number >= 1; got 0"),
        ({"decoder": -1}, "^decoder should be a whole number >= 0; got -1"),
        ({"dropout": 1.0}, "^dropout should be a number >= 0 and < 1; got 1.0"),
        ({"epsilon": 0}, "^epsilon should be a number > 0; got 0"),
        ({"tie": 1}, "^tie should be true or false; got 1"),
        ({"order": "Post"}, "^order should be 'post', 'pre', 'deep', 'parallel', 'residual', 'half' or 'plain'; got"),
        ({"feed": "swigl"}, "^feed should be .*'swiglu'.*; got 'swigl'; did you mean 'swiglu'"),
        ({"feed": "zzzzz"}, "^feed should be .*'swiglu'.*; got 'zzzzz'$"),
        ({"attention_bias": "kv"}, "^attention_bias should be true or false or 'qkv'; got 'kv'"),
        ({"masks": {"l": 3}}, "^masks.l should be a text; got 3"),
        ({"decoder": 0}, "an encoder, a decoder, or both: give one of them a depth"),
        ({"width": 7}, "3 heads do not divide a width of 7; or give head_width"),
        ({"kv_heads": 2}, "2 key heads do not divide 3 heads"),
        ({"pattern": "lg", "masks": {"l": "window(2)"}}, "the pattern's letter 'g' is not in masks"),
        ({"experts": 3, "chosen": 5}, "5 experts cannot be chosen from 3"),
        ({"vocab": [1] * 1000}, "^vocab should be a whole number >= 0; got .1, 1"),
    ],
)
def test_wrong_values_are_told_in_one_sentence(change, why):
    with pytest.raises(SaccadeError, match=why) as problem:
        read(ModelConfig, SMALL | change)
    told = str(problem.value)
    assert "\n" not in told
    assert "pydantic" not in told
    assert len(told) < 700
    with pytest.raises(ValueError, match=r"\w"):  # the class itself is no back door
        ModelConfig(**(SMALL | change))


def test_a_missing_field_is_named():
    with pytest.raises(SaccadeError, match=r"^width is missing: it takes a whole number >= 1$"):
        read(ModelConfig, {key: value for key, value in SMALL.items() if key != "width"})
    with pytest.raises(SaccadeError, match="needs its vocab"):
        Model(read(ModelConfig, {key: value for key, value in SMALL.items() if key != "vocab"}))


def test_a_contradiction_does_not_recite_the_whole_configuration():
    with pytest.raises(SaccadeError) as problem:
        read(ModelConfig, SMALL | {"width": 7})
    assert "'vocab'" not in str(problem.value)


def test_paths_are_dotted():
    with pytest.raises(SaccadeError, match=r"^model\.heads should be a whole number >= 1; got 'many'$"):
        read(Outer, {"model": SMALL | {"heads": "many"}})
    with pytest.raises(SaccadeError, match=r"^model\.widht is unknown; did you mean 'width'"):
        read(Outer, {"model": SMALL | {"widht": 6}})
    with pytest.raises(SaccadeError, match=r"^stepps is unknown; did you mean 'steps'"):
        read(Outer, {"model": SMALL, "stepps": 7})


def test_frozen_and_equal_by_value():
    config = read(ModelConfig, SMALL)
    with pytest.raises(ValidationError, match="frozen"):
        config.width = 12
    assert config == ModelConfig(**SMALL)
    assert config != read(ModelConfig, SMALL | {"vocab": 17})
    assert read(ModelConfig, config.model_dump()) == config
    assert read(ModelConfig, SMALL).masks is not config.masks


def test_what_is_left_out_agrees():
    config = read(ModelConfig, SMALL | {"width": 7, "head_width": 5, "experts": 3, "chosen": 3})
    assert (config.width, config.head_width, config.hidden, config.kv_heads) == (7, 5, None, None)
    assert read(ModelConfig, SMALL | {"epsilon": 1}).epsilon == 1.0
    assert read(ModelConfig, SMALL | {"attention_bias": "qkv"}).attention_bias == "qkv"
    assert read(ModelConfig, SMALL | {"experts": 0, "chosen": 9}).chosen == 9  # no choice, nothing to contradict


def test_a_key_of_a_table_that_was_left_out_is_told_with_it():
    with pytest.raises(SaccadeError, match=r"^heads is unknown; did you mean 'model\.heads'"):
        read(Outer, {"model": SMALL, "heads": 3})
