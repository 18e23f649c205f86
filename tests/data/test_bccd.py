"""Blood cells, read out of their archive: the counts of the data set, without its two boxes that have no area."""

from __future__ import annotations

import io
import tarfile
from collections import Counter

import numpy as np
import pytest
from absent import data_set
from PIL import Image as Pillow

from saccade import SaccadeError
from saccade.data import named
from saccade.data.bccd import LABELS, rows


def test_the_counts_of_the_data_set():
    data_set("bccd")
    found = {split: list(named.rows_of("bccd", split, None, None)) for split in ("train", "val", "test")}
    assert [len(each) for each in found.values()] == [205, 87, 72]
    counts = Counter(label for each in found.values() for _, boxes in each for label in boxes.labels)
    assert counts == {"RBC": 4153, "WBC": 372, "Platelets": 361}
    assert {*counts} == {*LABELS}
    pictures = [picture for each in found.values() for picture, _ in each]
    assert len({*pictures}) == 364, "no picture is in two splits"
    picture, boxes = found["test"][0]
    assert Pillow.open(io.BytesIO(picture)).size == (640, 480)
    assert boxes.frame.tolist() == [0, 0, 640, 480]
    for each in found.values():
        for _, marks in each:
            assert (marks.corners >= 0).all()
            assert (marks.corners <= marks.frame[[2, 3, 2, 3]]).all()
            assert (np.diff(marks.corners.reshape(-1, 2, 2), axis=1) > 0).all()


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "bccd.tar.gz").write_bytes(b"nothing")
    with pytest.raises(SaccadeError, match="cannot be read as the archive of bccd"):
        list(rows(tmp_path / "bccd.tar.gz", "train"))
    with tarfile.open(tmp_path / "empty.tar.gz", "w:gz"):
        pass
    with pytest.raises(SaccadeError, match="cannot be read as the archive of bccd"):
        list(rows(tmp_path / "empty.tar.gz", "train"))
