"""Looking at scenes: the ways that agents came, the futures that are told of them, and lines to whom each looks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import saccade
from saccade.field.tracks.futures import Futures, FuturesConfig
from saccade.field.tracks.scene import Sequel
from saccade.field.tracks.tracks import Tracks, TracksConfig
from saccade.field.unit import Side, Unit
from saccade.look.look import look
from saccade.look.renderer import names_few, rendered
from saccade.look.view import View
from saccade.look.ways import CAME, GOES, ways_of
from saccade.recipe import DecodeConfig
from saccade.task.task import Task


@pytest.fixture(scope="module")
def seen():
    places = np.random.default_rng(0).normal(0.3, 0.4, (4, 8, 2)).cumsum(1)
    places[2, 1] = places[3, 4] = np.nan
    sequel = Sequel(places[:, :5], places[:, 5:])
    x, y = TracksConfig(), FuturesConfig(count=3)
    source = Tracks.load(x, {Tracks.stored("x"): Tracks.made(x, [sequel.seen])}, "x", "places")
    target = Futures.load(y, {Futures.stored("y"): Futures.made(y, [sequel])}, "y")
    task = Task("foretell", {"x": source}, "y", target, asks="foretell")
    torch.manual_seed(0)
    keys = {"width": 12, "heads": 3, "hidden": 8, "encoder": 2, "pair": 5, "pair_updates": "none"}
    return look(task, saccade.Model(task.configure(saccade.ModelConfig(**keys))), sequel.seen, DecodeConfig())


def test_ways_have_the_tracks_and_the_likeliest_future_last():
    units = [Unit(0, "1", 0, False, (0.5, 0.5)), Unit(1, "2", 1, False, (0.1, 0.1))]
    told = {"ways": [[[0.6, 0.5], [0.7, 0.5]], [[0.5, 0.6], [0.5, 0.7]], [[0.4, 0.5], [0.3, 0.5]]]}
    told["probabilities"] = [0.75, 0.24, 0.01]
    side = Side(units, ["1", "2"], "", "tracks", {"tracks": [[None, [0.5, 0.5]], [[0.1, 0.1]] * 2]})
    assert [each.colour for each in ways_of(side)] == [CAME, CAME]
    found = ways_of(side.showing(futures=[told, None]))
    assert [each.colour for each in found] == [CAME, CAME, GOES, GOES], "one is too unlikely to be drawn"
    assert found[-1].note == "1: 75%"
    assert found[-1].places == [(0.5, 0.5), (0.6, 0.5), (0.7, 0.5)]
    assert found[-1].strength > found[-2].strength
    lines = [*found[0].drawn(lambda place: place, 1.0)]
    assert lines == [], "no line begins where nobody was seen"
    assert len([*found[-1].drawn(lambda place: place, 1.0)]) == 3, "two steps and an end"
    far = found[-1]._replace(places=[(0.5, 0.5), (1.5, 0.5)])
    assert [*far.drawn(lambda place: place, 1.0)] == [], "what leaves the square is not drawn"
    assert ways_of(Side(units, ["1", "2"], "")) == []


@pytest.mark.parametrize("view", [View(), View(row="2"), View("atlas"), View("encoder.blocks.0.attention", 1)])
def test_scenes_are_drawn(seen, view, tmp_path):
    for ending in ("svg", "png"):
        assert view.write(seen, tmp_path / f"a.{ending}").stat().st_size > 500
    text = (tmp_path / "a.svg").read_text()
    assert CAME in text
    assert GOES in text


def test_lines_go_to_whom_an_agent_looks(seen):
    from saccade.look.excerpt import Excerpt
    from saccade.look.nodes import LEAST, WEIGHT
    from saccade.look.part import Line

    excerpt = Excerpt(row="1")
    weights = seen.map(rows=(0, 1)).values[0]
    drawn = [each for each in rendered(seen, excerpt, "svg").parts if isinstance(each, Line) and each.colour == WEIGHT]
    assert len(drawn) == int((weights[1:] > LEAST * weights.max()).sum())
    assert names_few(seen, excerpt)
    assert len({each.place for each in seen.sides["scene"].tokens}) == 4
