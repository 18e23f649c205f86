"""Drawings: SVG that holds any text, PNG with the same things at the same places."""

from __future__ import annotations

import base64
import io
import re
import sys
import xml.etree.ElementTree as ET

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from saccade import png
from saccade.error import SaccadeError
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, stride_of, visible, width_of
from saccade.look.part import Cells, Lettering, Line, Rectangle, frame

SVG = "{http://www.w3.org/2000/svg}"
ANYTHING = st.text(st.integers(0, sys.maxunicode).map(chr), max_size=23)  # halves of characters too


def opened(content: bytes) -> Pillow.Image:
    return Pillow.open(io.BytesIO(content)).convert("RGB")


def inked(picture: Pillow.Image) -> tuple[int, int, int, int]:
    """The box around everything that is not paper."""
    return picture.convert("L").point([255] * 200 + [0] * 56).getbbox()


@given(ANYTHING)
def test_any_text_gives_an_svg_that_reads_the_same(text):
    drawing = Drawing(100, 50, text)
    drawing.add(Lettering(3, 5, text), Cells(0, 0, 7, 11, torch.zeros(1, 1, 3).byte(), lambda *_: text))
    root = ET.fromstring(drawing.to_svg().encode())
    (label,) = root.iter(f"{SVG}text")
    assert set(root.iter()) == {root, *root.iter(f"{SVG}title"), *root.iter(f"{SVG}rect"), *root.iter(f"{SVG}g"), label}
    kept = [each for each in text if each.isascii() and each.isprintable()]
    shown = label.text or ""
    assert [each for each in kept if each not in "\\x0123456789abcdef"] == [
        each for each in shown if each.isascii() and each not in "\\x0123456789abcdef"
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("  ", "\u00b7\u00b7"),
        (" the", "the"),
        ("\n", "\u23ce"),
        ("a\x00", "a\\x00"),
        ("\u0301x", "\u25cc\u0301x"),
        ("\u202eevil", "\ufffdevil"),
        ("\xad", "U+00AD"),
        ("\ud800", "\ufffd"),
        ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("", ""),
    ],
)
def test_names_can_be_seen(text, name):
    assert visible(text) == name


def test_long_names_are_cut_where_the_room_ends():
    assert shorten("eye", 100, 12) == "eye"
    cut = shorten("a name that is far too long", 60, 12)
    assert cut.startswith("a nam")
    assert cut.endswith("\u2026")
    assert 45 < width_of(cut, 12) <= 60
    assert shorten("wide", 1, 12) == "\u2026"


@pytest.mark.parametrize(("count", "step", "stride"), [(7, 13.0, 1), (7, 12.9, 2), (300, 2.0, 10), (3, 0.001, 5)])
def test_so_many_names_are_left_out_that_the_others_stand_apart(count, step, stride):
    assert stride_of(count, step, 13.0) == stride


def test_text_is_not_narrower_than_it_is_measured():
    """Pillow knows its fonts; whoever opens an SVG has about the same ones."""
    for text in ("the European Economic Area", "MMMMWWWW", "illicit", "1979-05-03", "\u05e9\u05dc\u05d5\u05dd"):
        drawing = Drawing(400, 40)
        drawing.add(Lettering(10, 20, text, 12))
        left, _, right, _ = inked(opened(drawing.to_png(2)))
        assert left >= 18
        assert (right - left) / 2 <= width_of(text, 12) + 2


def test_png_has_the_size_and_the_colours_of_the_drawing():
    drawing = Drawing(50, 31)
    cells = torch.tensor([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [7, 11, 13]], [[1, 2, 3], [4, 5, 6]]]).byte()
    drawing.add(Cells(10, 5, 20, 15, cells), Rectangle(40, 3, 5, 7, "#102030"))
    for scale in (1, 2, 1.5):
        picture = opened(drawing.to_png(scale))
        assert picture.size == (50 * scale, -(-31 * scale // 1))
        for row in range(3):
            for column in range(2):
                place = int((10 + 10 * (column + 0.5)) * scale), int((5 + 5 * (row + 0.5)) * scale)
                assert picture.getpixel(place) == tuple(cells[row, column].tolist())
        assert picture.getpixel((int(42 * scale), int(6 * scale))) == (16, 32, 48)
        assert picture.getpixel((1, 1)) == (255, 255, 255)


def test_labels_stand_at_their_anchor_and_turn_around_it():
    boxes = {}
    for anchor in ("start", "middle", "end"):
        for turn in (0, -90, 90):
            drawing = Drawing(200, 200)
            drawing.add(Lettering(100, 100, "mmmmmm", 12, anchor, turn))
            boxes[anchor, turn] = inked(opened(drawing.to_png(1)))
    left, top, right, bottom = boxes["start", 0]
    assert left >= 99
    assert right > 150
    assert top < 100 < bottom
    left, top, right, bottom = boxes["start", -90]  # up
    assert bottom <= 102
    assert top < 50
    assert left < 100 < right
    left, top, right, bottom = boxes["end", 90]  # down to the anchor
    assert bottom <= 102
    left, top, right, bottom = boxes["middle", 0]
    assert abs((left + right) / 2 - 100) <= 2
    with pytest.raises(SaccadeError, match="anchor is 'start', 'middle' or 'end'"):
        Lettering(0, 0, "x", anchor="left")


def test_an_embedded_image_is_a_png_of_its_cells():
    cells = torch.randint(0, 256, (5, 7, 3), generator=torch.Generator().manual_seed(0)).byte()
    assert opened(png.encode(cells.numpy())).tobytes() == bytes(cells.flatten().tolist())
    drawing = Drawing(50, 50)
    drawing.add(Cells(0, 0, 21, 10, cells))  # cells of 3 x 2
    (found,) = re.findall(r'href="data:image/png;base64,([^"]*)"', drawing.to_svg())
    enlarged = opened(base64.b64decode(found))
    assert enlarged.size == (21, 10)
    assert enlarged.getpixel((20, 9)) == tuple(cells[4, 6].tolist())


def test_lines_and_what_lies_behind():
    drawing = Drawing(40, 40)
    drawing.add(Line(5, 20, 35, 20, 2), *frame(1, 1, 38, 38))
    picture = opened(drawing.to_png(1))
    assert max(picture.getpixel((20, 20))) < 60
    assert min(picture.getpixel((20, 10))) == 255
    drawing.add(Line(5, 5, 35, 11, 2, 0.5))  # slanted, and half as dark
    assert 100 < max(opened(drawing.to_png(1)).getpixel((20, 8))) < 200
    assert 'fill="#ffffff"' in drawing.to_svg()
    assert "#ffffff" not in drawing.to_svg(ink="currentColor", paper=None)


def test_without_pillow_the_way_out_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SaccadeError, match=r"PNG and GIF need pillow: pip install 'saccade\[look\]'"):
        Drawing(3, 5).to_png()
    assert Drawing(3, 5).to_svg()


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), "2"])
def test_a_scale_that_is_none(scale):
    with pytest.raises(SaccadeError, match="scale is a number above 0"):
        Drawing(3, 5).to_png(scale)


def test_a_picture_that_would_fill_the_memory():
    with pytest.raises(SaccadeError, match="too large"):
        Drawing(30_000, 50_000).to_png()
