"""Points with boxes in lines of JSON: what is no box is named, counted and left out."""

from __future__ import annotations

import json

import numpy as np
import own
import pytest

from saccade.data import point_boxes, scenes
from saccade.data.reader import ReadRequest, reader_of
from saccade.data.skipped import Skipped, line_of
from saccade.error import SaccadeError
from saccade.field.boxes import Boxes
from saccade.field.points import Points

KINDS = {"source": Points, "boxes": Boxes}
POINTS = [[0, 0, 0, 0.5], [4, 5, 3, 0.25]]
CAR = {"label": "car", "corners": [1, 1, 0, 2, 3, 2]}
FRAME = [0, 0, 0, 7, 5, 3]


def read(folder, *lines, strict=False):
    (folder / "t.jsonl").write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines))
    request = ReadRequest([str(folder / "t.jsonl")], KINDS, "detect", [], Skipped(), strict)
    return list(reader_of(request.files, request).rows(request)), request.skipped


def line(*boxes, **more):
    return {"points": POINTS, "boxes": [*boxes], **more}


def test_lines_hold_points_and_boxes(tmp_path):
    rows, skipped = read(tmp_path, line(CAR, frame=FRAME), line(), "", line(CAR))
    assert [line_of(each) for each in rows] == [1, 2, 4]
    points, found = rows[0]
    assert points.dtype == np.float32
    assert points.tolist() == POINTS
    assert found.labels == ("car",)
    assert found.corners.tolist() == [CAR["corners"]]
    assert found.frame.tolist() == FRAME
    assert rows[1][1].labels == ()
    assert rows[1][1].frame.tolist() == [0, 0, 0, 4, 5, 3], "without a frame, as large as the points and boxes"
    assert not skipped


def test_boxes_may_have_two_axes(tmp_path):
    rows, skipped = read(tmp_path, line(), line({"label": 3, "corners": [-1, 1, 2, 3]}))
    assert [each.axes for _, each in rows] == [2, 2]
    assert rows[1][1].labels == ("3",)
    assert rows[1][1].frame.tolist() == [-1, 0, 4, 5]
    assert not skipped


BAD = {
    "a box of no size": {"label": "car", "corners": [1, 1, 0, 2, 1, 2]},
    "a box whose corners are not 6 numbers": {"label": "car", "corners": [1, 1, 2, 3]},
    "a box whose corners are not finite": {"label": "car", "corners": [1, 1, 0, 2, float("nan"), 2]},
    "a box without a label": {"corners": [1, 1, 0, 2, 3, 2]},
    "a box outside the frame": {"label": "car", "corners": [8, 1, 0, 9, 3, 2]},
}


@pytest.mark.parametrize("reason", BAD)
def test_what_is_no_box_is_left_out_and_named(reason, tmp_path):
    rows, skipped = read(tmp_path, line(CAR, frame=FRAME), line(BAD[reason], CAR, frame=FRAME))
    assert [each.labels for _, each in rows] == [("car",), ("car",)]
    assert skipped.described() == [f"1: {reason} (line 2)"]
    with pytest.raises(SaccadeError, match=rf"t.jsonl, line 2: {reason}: .*; mend it"):
        read(tmp_path, line(CAR, frame=FRAME), line(BAD[reason], CAR, frame=FRAME), strict=True)


@pytest.mark.parametrize("box", [None, 5, "car", {"label": "car"}, {"label": "car", "corners": [[1, 1, 0], [2, 2, 2]]}])
def test_a_box_of_any_other_shape_is_left_out(box, tmp_path):
    rows, skipped = read(tmp_path, line(CAR, box))
    assert [each.labels for _, each in rows] == [("car",)]
    assert sum(skipped.values()) == 1


def test_what_sticks_out_is_cut_off_and_counted(tmp_path):
    rows, skipped = read(tmp_path, line({"label": "car", "corners": [5, -2, 0, 9, 3, 2]}, frame=FRAME))
    assert rows[0][1].corners.tolist() == [[5, 0, 0, 7, 3, 2]]
    assert skipped.described() == [f"1: {point_boxes.STICKS_OUT} (line 1)"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"points": [[1, 2]], "boxes": [CAR]}, "fewer numbers"),
        ({"points": [], "boxes": []}, "fewer numbers"),
        ({"points": [[1, 2, 3], [4]], "boxes": []}, "no set of points"),
        ({"points": POINTS, "boxes": {}}, "another shape"),
        ({"points": POINTS}, "another shape"),
        ({"points": POINTS, "boxes": [], "frame": [0, 0, 0, 1, 1, 0]}, "a frame that is none"),
    ],
)
def test_a_line_that_cannot_be_read_is_left_out(bad, reason, tmp_path):
    rows, skipped = read(tmp_path, line(CAR), bad)
    assert len(rows) == 1
    (told,) = skipped.described()
    assert reason in told
    assert "line 2" in told
    with pytest.raises(SaccadeError, match="line 2: "):
        read(tmp_path, line(CAR), bad, strict=True)


def test_lines_that_are_no_json_end_the_reading(tmp_path):
    with pytest.raises(SaccadeError, match=r"t.jsonl, line 2: this is no JSON"):
        read(tmp_path, line(CAR), '{"points": [[1')
    with pytest.raises(SaccadeError, match=r"t.jsonl, line 2: a line is .*; here stands \[\]"):
        read(tmp_path, line(CAR), "[]")
    with pytest.raises(SaccadeError, match=r"nothing of .*t.jsonl can be read; the first problem: .*line 1"):
        read(tmp_path, {"points": [], "boxes": []})


def test_scenes_come_back_as_they_were(tmp_path):
    own.scenes(tmp_path)
    request = ReadRequest([str(tmp_path / "scenes.jsonl")], KINDS, "detect", [], Skipped())
    rows = list(reader_of(request.files, request).rows(request))
    assert len(rows) == 60
    assert not request.skipped
    for number, (points, found) in enumerate(rows):
        wanted, boxes = scenes.example(number)
        assert np.allclose(points, wanted, atol=1e-3)
        assert found.labels == boxes.labels
        assert np.allclose(found.corners, boxes.corners, atol=1e-3)
        assert found.frame.tolist() == boxes.frame.tolist()
