"""Looking at sets: points where they lie, and learned vectors as sides of their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import saccade
from saccade.config import ModelConfig
from saccade.field.label import Label, LabelConfig
from saccade.field.points import Points, PointsConfig
from saccade.look.look import look
from saccade.look.view import View
from saccade.recipe import DecodeConfig
from saccade.task.task import Task

SET = np.random.default_rng(0).uniform(0, 1, (5, 2)).astype(np.float32)  # as many points as learned vectors


def looked(coordinates=2, **keys):
    config = PointsConfig(coordinates=coordinates)
    source = Points.load(config, {Points.stored("x"): Points.made(config, iter([SET]))}, "x", "pooled")
    task = Task("classify", {"source": source}, "label", Label(["a", "b"], LabelConfig()), asks="classify")
    torch.manual_seed(0)
    model = saccade.Model(task.configure(ModelConfig(width=12, heads=3, hidden=8, encoder=1, **keys)))
    return look(task, model, SET, DecodeConfig())


@pytest.fixture(scope="module")
def seen():
    return looked(mixer="induced(5)", pool="seeds(1)")


def test_learned_vectors_have_sides_of_their_own(seen):
    """Also where there are as many points as learned vectors."""
    sides = {each.name: (each.rows, each.columns) for each in seen.layers}
    assert sides == {
        "encoder.blocks.0.mixer.ask.attention": ("5 learned vectors", "point set"),
        "encoder.blocks.0.mixer.attention": ("point set", "5 learned vectors"),
        "pooling.seeds.ask.attention": ("1 learned vector", "point set"),
    }
    assert seen.usual == "pooling.seeds.ask.attention", "a map of what was read"
    for name, (rows, columns) in sides.items():
        map = seen.map(name)
        assert map.values.shape == (len(seen.sides[rows]), len(seen.sides[columns]))
        assert torch.allclose(map.values.sum(1), torch.ones(len(map.rows)), atol=1e-5)


def test_a_rollout_is_of_self_attention(seen):
    with pytest.raises(saccade.SaccadeError, match="no stack has self-attention"):
        seen.map("rollout:encoder")


@pytest.mark.parametrize("layer", [None, "atlas", "encoder.blocks.0.mixer.attention"])
def test_points_are_drawn_where_they_lie(seen, layer, tmp_path):
    for ending in ("svg", "png"):
        path = View(layer).write(seen, tmp_path / f"a.{ending}")
        assert path.stat().st_size > 500


def test_points_that_look_at_each_other_are_drawn():
    seen = looked(position="rotary(base=10)")
    side = seen.sides["point set"]
    assert side.kind == "points"
    assert len({each.place for each in side.tokens}) == len(SET)
    assert "<svg" in seen._repr_html_()


def test_points_without_places_are_named_by_their_numbers():
    side = looked(coordinates=0, pool="seeds(1)").sides["point set"]
    assert side.kind == "words"
    assert side.tokens[0].text == ",".join(f"{each:.3g}" for each in SET[0])
