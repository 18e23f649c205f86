"""Emoji and their names: a sheet of pictures beside a table."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from PIL import Image

from saccade.data import emoji
from saccade.error import SaccadeError

LINES = (
    "0\t0023\ttrain\t8\tkeycap: #\tTaste: #\ttouches\u00a0: #",
    "1\t002A\tval\t8\tkeycap: *\tTaste: *\ttouches\u202f: *",
    '26\t0030\ttrain\t8\tkeycap "0"\tTaste: 0\ttouches : 0',
)


@pytest.fixture
def paths(tmp_path):
    head = "index\thexcode\tsplit\tgroup\ten\tde\tfr"
    (tmp_path / "captions.tsv.gz").write_bytes(gzip.compress("\n".join([head, *LINES]).encode()))
    sheet = np.zeros((64, 32 * 25, 3), np.uint8)
    for index in (0, 1, 26):
        down, right = divmod(index, 25)
        sheet[32 * down :, 32 * right :][:32, :32] = index + 1
    Image.fromarray(sheet).save(tmp_path / "images.webp", lossless=True)
    return [tmp_path / "captions.tsv.gz", tmp_path / "images.webp"]


def test_a_split_has_its_own_pictures_and_captions(paths):
    rows = [*emoji.captioned(paths, "train", "picture-de")]
    assert [caption for _, caption in rows] == ["Taste: #", "Taste: 0"]
    for (picture, _), shade in zip(rows, (1, 27), strict=True):
        assert picture.shape == (32, 32, 3)
        assert (picture == shade).all()
    assert [caption for _, caption in emoji.captioned(paths, "val", "picture-en")] == ["keycap: *"]
    assert [caption for _, caption in emoji.captioned(paths, "train", "picture-en")][1] == 'keycap "0"'


def test_spaces_of_typography_are_plain_ones(paths):
    assert [caption for _, caption in emoji.captioned(paths, "train", "picture-fr")] == ["touches : #", "touches : 0"]


def test_each_picture_comes_once_for_each_language(paths):
    rows = [*emoji.in_each_language(paths, "val")]
    assert [row[1:] for row in rows] == [("en", "keycap: *"), ("de", "Taste: *"), ("fr", "touches : *")]
    assert all((picture == 2).all() for picture, *_ in rows)


def test_a_damaged_table_is_told(paths):
    paths[0].write_bytes(paths[0].read_bytes()[:40])
    with pytest.raises(SaccadeError, match="cannot be read"):
        [*emoji.captioned(paths, "train", "picture-en")]
