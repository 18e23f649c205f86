"""Boxes and events as Y: their units, what is refused, and what is written of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import saccade
from saccade.error import SaccadeError
from saccade.field.boxes import Boxes, BoxesConfig
from saccade.field.elements.criterion import Told
from saccade.field.elements.element import elements
from saccade.field.events import Events, EventsConfig
from saccade.field.field import UnreadableError
from saccade.field.points import Points, PointsConfig
from saccade.task.task import Task

WANTED = [
    elements(["cat", "dog"], [[10, 20, 30, 60], [0, 0, 64, 48]], (0, 0, 64, 80)),
    elements([], [], (0, 0, 64, 80)),
]


def boxes(**keys) -> Boxes:
    config = BoxesConfig(queries=5, **keys)
    return Boxes.load(config, {Boxes.stored("found"): Boxes.made(config, iter(WANTED))}, "found")


def told(y, spans, scores):
    """Of one layer and one example; a score for each query and label, as a probability."""
    chances = torch.tensor(scores)
    return Told(chances.logit()[None, None], torch.tensor(spans)[None, None])


def test_boxes_come_in_pixels_of_the_picture_the_surest_first():
    y = boxes()
    spans = [[0.5, 0.5, 0.5, 0.25], [0.1, 0.1, 0.4, 0.2], [0.5, 0.5, 1.0, 1.0]]
    found = told(y, spans, [[0.2, 0.6], [0.9, 0.1], [0.3, 0.2]])
    (result,) = y.results(found, [np.array([0, 0, 200, 400.0])], 0.5)
    assert result.value == [
        {"label": "cat", "score": pytest.approx(0.9), "box": [0, 0, 60, 80]},  # cut off at the edge
        {"label": "dog", "score": pytest.approx(0.6), "box": [50, 150, 100, 100]},
    ]
    assert result.text == "1 cat, 1 dog"
    (every,) = y.results(found, [np.array([0, 0, 200, 400.0])], 0.0)
    assert [each["label"] for each in every.value] == ["cat", "dog", "cat"]
    (none,) = y.results(found, [np.array([0, 0, 200, 400.0])], 0.95)
    assert (none.value, none.text) == ([], "nothing")


def test_what_is_described_is_read_back():
    y = boxes()
    again = y.undescribed(y.described(WANTED[0]), WANTED[0].frame)
    np.testing.assert_allclose(again.corners, WANTED[0].corners)
    assert again.labels == WANTED[0].labels
    perfect = [y.result(each._replace(scores=np.ones(len(each.labels)))) for each in WANTED]
    assert {name: each.value for name, each in y.tallies(perfect, WANTED).items()} == {
        "map": pytest.approx(1),
        "map50": pytest.approx(1),
        "map75": pytest.approx(1),
    }
    assert y.beside(perfect, WANTED)["map50_by_class"] == {"cat": pytest.approx(1), "dog": pytest.approx(1)}


def test_answers_are_filed_as_coco_has_them():
    y = boxes()
    results = [y.result(each._replace(scores=np.full(len(each.labels), 0.5))) for each in WANTED]
    found = json.loads(y.filed(results, [("a.png", WANTED[0]), (np.zeros((80, 64)), WANTED[1])]))
    assert found[0] == {"image_id": "a.png", "category_id": 1, "bbox": [10, 20, 20, 40], "score": 0.5}
    assert [each["category_id"] for each in found] == [1, 2]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"queries": 1}, r"an example has 2 boxes, and 1 queries ask for them: set y.queries = 4"),
        ({"anchors": False}, r"write y.anchors = true, or y.denoise = 0"),
    ],
)
def test_what_a_model_cannot_find_is_told_before_training(keys, told):
    config = BoxesConfig(**{"queries": 5, **keys})
    y = Boxes.load(config, {Boxes.stored("found"): Boxes.made(config, iter(WANTED))}, "found")
    with pytest.raises(SaccadeError, match=told):
        y.fits(saccade.ModelConfig(width=8, heads=2, encoder=1, decoder=1))


def test_nothing_to_look_for_is_refused():
    with pytest.raises(SaccadeError, match="there is nothing to look for"):
        Boxes.made(BoxesConfig(), iter([WANTED[1]]))
    with pytest.raises(SaccadeError, match="there is no label 'owl'"):
        boxes().encode([elements(["owl"], [[1, 1, 2, 2]], (0, 0, 9, 9))])
    for text in ("", "{}", '{"width": 9}', '{"width": 9, "height": 9, "boxes": [{"label": "a", "box": [1]}]}', "[1"):
        with pytest.raises(UnreadableError, match="this is no set of boxes"):
            Boxes.cell(text, None)
    with pytest.raises((SaccadeError, ValidationError), match="flipp"):
        BoxesConfig(augment="flipp")


def test_boxes_that_move_belong_to_one_picture():
    config = PointsConfig(coordinates=2)
    sets = [np.array([[0.0, 0], [3, 4]])]
    points = Points.load(config, {"x.points.json": Points.made(config, iter(sets))}, "x", "queries")
    with pytest.raises(SaccadeError, match="moves boxes along with one picture"):
        Task("detect", {"x": points}, "found", boxes(augment="flip"))


def test_places_among_points_are_shares_of_their_space():
    """Whatever frame the boxes came with: the cube of the points is the one that anchors look at."""
    config = PointsConfig(coordinates=2)
    sets = [np.array([[0.0, 0], [10, 5]])]
    points = Points.load(config, {"x.points.json": Points.made(config, iter(sets))}, "x", "queries")
    y = boxes()
    Task("detect", {"x": points}, "found", y)
    (spans,) = y.encode([elements(["cat"], [[2, 1, 4, 3]], (0, 0, 99, 99))])["spans"]
    np.testing.assert_allclose(spans, [[0.3, 0.2, 0.2, 0.2]], rtol=1e-6)


def test_events_are_in_seconds():
    heard = [elements(["one"], [[0.5, 1.0]], (0, 2.0)), elements(["two"], [[1.0, 1.5]], (0, 2.0))]
    config = EventsConfig(queries=3)
    y = Events.load(config, {Events.stored("found"): Events.made(config, iter(heard))}, "found")
    found = told(y, [[0.375, 0.25], [0.9, 0.1]], [[0.8, 0.1], [0.1, 0.3]])
    (result,) = y.results(found, [np.array([0, 2.0])], 0.5)
    assert result.value == [{"label": "one", "score": pytest.approx(0.8), "begin": 0.5, "end": 1.0}]
    assert y.tallies([result, result], heard)["event_f1"].value == pytest.approx(0.5)
    assert y.beside([result, result], heard)["times_alone"]["f1"] == pytest.approx(0.5)
