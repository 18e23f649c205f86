"""Scenes: points lie on boxes, on the side that the sensor sees; nothing is hidden behind another thing and seen."""

from __future__ import annotations

import numpy as np

from saccade.config import read
from saccade.data import scenes
from saccade.data.generated import GENERATED
from saccade.field.boxes import Boxes, BoxesConfig
from saccade.field.points import Points, PointsConfig
from saccade.recipe import DataConfig

SCENES = [scenes.example(number) for number in range(150)]


def on_box(points, box, slack=0.06):
    return ((points[:, :3] >= box[:3] - slack) & (points[:, :3] <= box[3:] + slack)).all(1)


def test_a_scene():
    counts, labels = set(), set()
    for points, found in SCENES:
        assert points.dtype == np.float32
        assert points.shape[1] == 4
        assert 128 <= len(points) <= 256
        assert found.axes == 3
        assert found.frame.tolist() == list(scenes.SPACE)
        assert (found.corners[:, :3] >= 0).all()
        assert (found.corners[:, 3:] <= found.frame[3:]).all()
        assert (points[:, :3] >= found.frame[:3]).all()
        assert (points[:, :3] <= found.frame[3:].astype(np.float32)).all()
        assert (points[:, 3] >= 0).all()
        assert (points[:, 3] <= 1).all()
        counts.add(len(found.labels))
        labels |= set(found.labels)
    assert counts == {1, 2, 3, 4, 5, 6}
    assert labels == {"car", "person", "sign"}


def test_every_object_is_seen_and_bright_as_its_kind():
    light = {}
    for points, found in SCENES:
        for label, box in zip(found.labels, found.corners, strict=True):
            own = points[on_box(points, box) & (points[:, 2] > 0.1)]
            assert len(own) >= 3, label
            light.setdefault(label, []).append(np.median(own[:, 3]))
    assert np.median(light["sign"]) > np.median(light["car"]) + 0.2 > np.median(light["person"]) + 0.3


def test_objects_stand_apart_on_the_ground():
    for _, found in SCENES:
        assert (found.corners[:, 2] == 0).all()
        for n, a in enumerate(found.corners):
            for b in found.corners[n + 1 :]:
                gap = np.maximum(a[:2] - b[3:5], b[:2] - a[3:5]).max()
                assert gap >= scenes.APART - 1e-9


def test_points_lie_on_the_side_that_is_seen():
    """Behind a box, as seen from the sensor, nothing of it is measured: no point on its far face alone."""
    near = far = 0
    for points, found in SCENES:
        for label, box in zip(found.labels, found.corners, strict=True):
            own = points[on_box(points, box) & (points[:, 2] > 0.1)]
            if label == "car":
                near += int((abs(own[:, 1] - box[1]) < 0.06).sum())
                far += int((abs(own[:, 1] - box[4]) < 0.06).sum())
    assert near > 10 * far


def test_nothing_is_seen_through_another_object():
    """Points along the way from the sensor to each point of an object, walked in small steps, are in no other box."""
    checked = 0
    for points, found in SCENES[:40]:
        for n, box in enumerate(found.corners):
            core = points[on_box(points, box, 0.0) & (points[:, 2] > 0.2), :3].astype(np.float64)
            for m, other in enumerate(found.corners):
                if m == n:
                    continue
                shares = np.linspace(0, 1, 400)[:, None, None]
                way = scenes.SENSOR + shares * (core - scenes.SENSOR)
                inside = ((way > other[:3] + 0.06) & (way < other[3:] - 0.06)).all(2)
                assert not inside.any()
                checked += len(core)
    assert checked > 500


def test_a_number_is_one_scene():
    made = GENERATED["scenes"](read(DataConfig, {"name": "scenes"}))
    rows = [made.row(*each)[0].tobytes() for each in ((0, "train", 0), (1, "train", 0), (0, "val", 0), (0, "train", 1))]
    assert len(set(rows)) == 4
    assert made.row(0, "train", 0)[0].tobytes() == rows[0]
    assert made.kinds == ("points", "boxes")
    assert made.fresh


def test_its_rows_are_boxes_in_the_space_of_the_points():
    config = BoxesConfig(axes=3)
    wanted = [found for _, found in SCENES]
    field = Boxes.load(config, {Boxes.stored("c"): Boxes.made(config, iter(wanted))}, "c")
    shape = Points.made(PointsConfig(coordinates=3), (points for points, _ in SCENES))
    source = Points.load(PointsConfig(coordinates=3), {Points.stored("x"): shape}, "x", "queries")
    field.joined({"x": source})
    assert field.names == ["car", "person", "sign"]
    spans = np.concatenate(field.encode(wanted)["spans"])
    assert (spans[:, :3] - spans[:, 3:] / 2 > -0.01).all()
    assert (spans[:, :3] + spans[:, 3:] / 2 < 1.01).all()
