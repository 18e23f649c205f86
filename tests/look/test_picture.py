"""Pictures: every map can be drawn, says what it holds, and needs nothing from elsewhere."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from rich.console import Console
from tasks import look

import saccade
from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.look.atlas import atlas, per_line
from saccade.look.axis import columns_of, rows_of
from saccade.look.chart import NOTED, heat, smaller
from saccade.look.colour import scale_of
from saccade.look.label import width_of
from saccade.look.map import Map
from saccade.look.page import document, page
from saccade.look.part import Cells, Lettering
from saccade.look.picture import KINDS, draw, save
from saccade.look.report import drawn
from saccade.look.scheme import of_mask, of_position, scheme_of
from saccade.look.view import View

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<b>&\"'</b>",
    "</svg><script>alert(1)</script>",
    "]]>",
    "\x00\x1b\n",
    "  ",
    "\u05e9\u05dc\u05d5\u05dd",
    "=1+1",
]
NAMES = st.text(st.integers(0, sys.maxunicode).map(chr), max_size=40)


def map_of(values, rows=None, columns=None, title="a map") -> Map:
    values = torch.as_tensor(values, dtype=torch.float32)
    R, C = values.shape
    rows, columns = rows or [f"r{n}" for n in range(R)], columns or [f"c{n}" for n in range(C)]
    return Map(values, rows, columns, list(range(R)), list(range(C)), title)


def random(R: int, C: int) -> torch.Tensor:
    return torch.rand(R, C, generator=torch.Generator().manual_seed(R * C))


ODD = {
    "one": map_of([[0.7]]),
    "zero": map_of(torch.zeros(5, 7)),
    "signed": map_of(random(5, 7) - 0.5),
    "broken": map_of([[math.nan, 1.0], [math.inf, -2.0], [0.0, -math.inf]]),
    "nothing but broken": map_of([[math.nan]]),
    "row": map_of(random(1, 311)),
    "column": map_of(random(311, 1)),
    "hostile": map_of(random(7, 7), HOSTILE, HOSTILE[::-1], HOSTILE[1]),
    "long": map_of(random(3, 2), ["a very long name " * 9] * 3, ["b" * 300] * 2, "t" * 500),
    "many": map_of(random(311, 307)),
    "nameless": map_of(random(2, 3), ["", ""], ["", "", ""], ""),
}


class Page(HTMLParser):
    """What an HTML page is made of, and what it asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    handle_startendtag = handle_starttag


def assert_alone(text: str) -> Page:
    """Nothing outside is referred to, nothing runs, nothing has an id that could meet another."""
    found = Page(text)
    assert not {"script", "iframe", "link", "object", "embed", "img", "use", "foreignobject"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("id", "src", "xlink:href")
        assert name != "href" or value.startswith("data:image/png;base64,")
    assert "@import" not in text
    assert "url(" not in text
    return found


@pytest.mark.parametrize("name", ODD)
def test_odd_maps_in_every_kind(name):
    found = {kind: draw(ODD[name], kind) for kind in KINDS}
    root = ET.fromstring(found["svg"])
    picture = Pillow.open(io.BytesIO(found["png"]))
    size = [math.ceil(float(root.get(each)) * 2) for each in ("width", "height")]
    assert list(picture.size) == size
    assert_alone(found["svg"].decode())
    assert_alone(found["html"].decode())
    assert sorted(np.load(io.BytesIO(found["npz"]))) == sorted(
        ("values", "rows", "columns", "row_places", "column_places", "title")
    )


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("width", [7, 80])
def test_odd_maps_in_a_terminal(name, width):
    console = Console(width=width, file=io.StringIO())
    console.print(drawn(ODD[name], width), soft_wrap=True)
    lines = console.file.getvalue().splitlines()
    assert len(lines) >= min(len(ODD[name].rows), 3)


@examples(40)
@given(st.lists(NAMES, min_size=1, max_size=5), st.lists(NAMES, min_size=1, max_size=5), NAMES)
def test_any_names_are_drawn_inside_the_sheet(rows, columns, title):
    drawing = heat(map_of(random(len(rows), len(columns)), rows, columns, title))
    ET.fromstring(drawing.to_svg().encode())
    for label in (each for each in drawing.parts if isinstance(each, Lettering)):
        length = width_of(label.text, label.size, bold=label.bold)
        begin = {"start": 0.0, "middle": -length / 2, "end": -length}[label.anchor]
        angle = math.radians(label.turn)
        for along in (begin, begin + length):
            assert 0 <= label.x + along * math.cos(angle) <= drawing.width
            assert 0 <= label.y + along * math.sin(angle) <= drawing.height


def test_cells_have_the_colours_of_their_values():
    values = torch.tensor([[0.0, 0.25, 0.5], [1.0, 0.75, 0.125]])
    drawing = heat(map_of(values))
    cells = next(each for each in drawing.parts if isinstance(each, Cells))
    picture = Pillow.open(io.BytesIO(drawing.to_png(2)))
    root = ET.fromstring(drawing.to_svg())
    filled = [each for each in root.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    for number, value in enumerate(values.flatten().tolist()):
        row, column = divmod(number, 3)
        expected = tuple(scale_of("sequential")[round(value * 254)].tolist())
        x, y = cells.x + (column + 0.5) * cells.width / 3, cells.y + (row + 0.5) * cells.height / 2
        assert picture.getpixel((int(2 * x), int(2 * y))) == expected
        assert filled[number].get("fill") == "#{:02x}{:02x}{:02x}".format(*expected)
        assert filled[number].find(f"{SVG}title").text == f"r{row} \u2192 c{column}: {value:.4g}"


def test_the_scale_tells_its_numbers():
    labels = [each.text for each in heat(map_of([[0.2, 0.8]])).parts if isinstance(each, Lettering)]
    assert labels[-3:] == ["0.8", "0.4", "0"]
    labels = [each.text for each in heat(map_of([[-0.2, 0.8]])).parts if isinstance(each, Lettering)]
    assert labels[-3:] == ["0.8", "0", "-0.8"]
    drawn = heat(map_of([[0.2, 0.8]]), colours="diverging")
    labels = [each.text for each in drawn.parts if isinstance(each, Lettering)]
    assert labels[-3:] == ["0.8", "0", "-0.8"]


def test_a_large_map_keeps_its_peaks_and_stays_small():
    values = torch.zeros(2003, 1999)
    values[1234, 567] = 1.0
    values[77, 1998] = -2.0
    made = smaller(map_of(values), 600)
    assert max(made.values.shape) <= 600
    assert sorted(made.values.unique().tolist()) == [-2.0, 0.0, 1.0]
    row, column = (made.values == 1.0).nonzero()[0].tolist()
    assert made.row_places[row] <= 1234 < made.row_places[row + 1]
    assert made.columns[column] == f"c{made.column_places[column]}"
    drawing = heat(map_of(values))
    assert sum(isinstance(each, Lettering) for each in drawing.parts) < 150
    assert len(drawing.to_svg()) < 100_000
    assert max(drawing.width, drawing.height) < 900


def test_cells_tell_their_numbers_where_they_are_few():
    side = math.isqrt(NOTED)
    assert draw(map_of(random(side, side)), "svg").count(b"<title>") == NOTED + 1
    assert draw(map_of(random(side, side + 1)), "svg").count(b"<title>") == 1


def test_names_never_touch_their_neighbours():
    for cell in (1, 2, 5, 9, 10, 11, 13, 20, 30):
        for made in (rows_of(["name"] * 97, cell), columns_of(["name"] * 97, cell)):
            places = [place for place, _ in made.names]
            apart = min(b - a for a, b in pairwise(places))
            assert apart >= made.size + 1 or (apart == cell and made.size <= cell - 1)
    letters = columns_of([*"a sentence letter by letter"], 13)
    assert all(label.turn == 0 for label in letters.above(0, 0))
    mixed = columns_of([*"letters", "<end>"], 13)
    assert [label.turn != 0 for label in mixed.above(0, 0)] == [False] * 7 + [True]
    first = columns_of(["<begin>", *"letters"], 13)
    turned, *flat = first.above(0, 0)
    assert turned.turn != 0
    assert turned.y < min(label.y - label.size / 2 for label in flat), "a turned name stands over its flat neighbours"
    assert first.height > columns_of(["<begin>"], 13).height


def test_a_small_map_is_as_wide_as_its_title():
    title = "encoder.blocks.1.attention, mean over 4 heads"
    assert title.encode() in draw(map_of(random(2, 3), title=title), "svg")
    assert heat(map_of(random(2, 3)), title="w" * 999).width < 600


def test_csv_reads_back_exactly_and_computes_nothing():
    names = ["=1+1", "+a", "-b", "@c", "a,b", 'say "x"', "two\r\nlines", "'", "\u65e5\u672c"]
    given = map_of(random(9, 9) / 3, names, names[::-1])
    lines = list(csv.reader(io.StringIO(draw(given, "csv").decode(), newline="")))
    harmless = [f"'{name}" if name[0] in "=+-@" else name for name in names]
    assert lines[0] == ["", *harmless[::-1]]
    assert [line[0] for line in lines[1:]] == harmless
    assert np.array_equal(np.array([line[1:] for line in lines[1:]]).astype(np.float32), given.values.numpy())
    signed = map_of([[-1.5, 3e-8]])
    assert draw(signed, "csv").decode().splitlines()[1] == "r0,-1.5,3e-08"  # numbers stay numbers


def test_npz_reads_back_exactly_without_pickle():
    given = map_of(random(7, 7), HOSTILE, HOSTILE[::-1], "a title")
    found = np.load(io.BytesIO(draw(given, "npz")), allow_pickle=False)
    assert np.array_equal(found["values"], given.values.numpy())
    assert found["values"].dtype == np.float32
    assert (found["rows"].tolist(), found["columns"].tolist()) == (given.rows, given.columns)
    assert found["row_places"].tolist() == given.row_places
    assert str(found["title"]) == "a title"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    for kind in KINDS:
        path = save(tmp_path / f"map.{kind.upper()}", ODD["signed"])
        assert path.read_bytes()[:20] == draw(ODD["signed"], kind)[:20]
    with pytest.raises(SaccadeError, match="did you mean 'svg'"):
        save(tmp_path / "map.svgg", ODD["one"])
    with pytest.raises(SaccadeError, match="is no folder: make it first"):
        save(tmp_path / "not" / "there.svg", ODD["one"])
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(SaccadeError, match="is a folder"):
        save(tmp_path / "folder.svg", ODD["one"])
    before = (tmp_path / "map.SVG").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SaccadeError, match="the disk is full"):
        save(tmp_path / "map.SVG", ODD["one"])
    assert (tmp_path / "map.SVG").read_bytes() == before
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: draw(ODD["one"], "svgs"), "did you mean 'svg'"),
        (lambda: draw(ODD["one"], "svg", colours="sequentail"), "did you mean 'sequential'"),
        (lambda: draw(ODD["one"], "svg", side=0), "side is a whole number"),
        (lambda: draw(map_of(torch.zeros(0, 3)), "svg"), "nothing to draw"),
        (lambda: drawn(map_of(torch.zeros(3, 0)), 80), "3 rows and 0 columns has nothing to draw"),
        (lambda: of_mask("causal", 0), "length is a whole number from 1"),
        (lambda: of_mask("causl", 5), "did you mean 'causal'"),
        (lambda: of_mask(saccade.padding([2, 3]), 5), "differs from example to example"),
        (lambda: of_position("sinusiod"), "did you mean 'sinusoid'"),
        (lambda: of_position("sinusoid", 5, 10**9), "width is a whole number"),
        (lambda: scheme_of("window(3", 5), "cannot read the mask"),
        (lambda: scheme_of("nought"), "no mask or position is called 'nought'"),
        (lambda: View("atlas", "3"), "every head"),
    ],
)
def test_bad_input_is_told(made, why):
    with pytest.raises(SaccadeError, match=re.escape(why)):
        made()


def test_a_mask_is_one_where_one_may_look():
    made = of_mask("causal & window(3)", 7)
    i, j = torch.arange(7).view(-1, 1), torch.arange(7)
    assert torch.equal(made.values, ((j <= i) & (i - j < 3)).float())
    assert (made.title, made.rows) == ("causal & window(3)", [*"0123456"])
    assert torch.equal(of_mask(saccade.bigbird(2, 3, 1, 1), 16).values.bool(), saccade.bigbird(2, 3, 1, 1)(16))


def test_the_lectures_heat_map_of_sinusoids():
    made = of_position("sinusoid")
    assert made.values.shape == (100, 500)
    t = torch.arange(100, dtype=torch.float64)
    for k in (0, 1, 17, 249):
        w = 10000 ** (-2 * k / 500)
        torch.testing.assert_close(made.values[:, 2 * k].double(), (w * t).sin(), rtol=0, atol=1e-6)
        torch.testing.assert_close(made.values[:, 2 * k + 1].double(), (w * t).cos(), rtol=0, atol=1e-6)
    assert of_position("sinusoid(concatenate, width=16)").values.shape == (100, 16)


@pytest.mark.parametrize("name", ["alibi", "t5", "relative(5)", "xl", "rotary", "rotary(interleaved)"])
def test_positions_between_tokens_depend_on_the_distance_alone(name):
    state = torch.random.get_rng_state()
    values = of_position(name, 31).values
    assert values.shape == (31, 31)
    torch.testing.assert_close(values[1:, 1:], values[:-1, :-1], rtol=1e-4, atol=1e-5)
    assert float(values.std()) > 0
    assert torch.equal(state, torch.random.get_rng_state())  # drawing draws nothing from anybody's numbers
    if name == "alibi":
        assert values[3, 7] == -4 * 0.5


SENTENCE = "the cat that chased the dogs sleeps"
TEXT = Text.train([SENTENCE, "ein Hund <b>&\"' der jagt."], "bpe", vocab=271)


def look_of(**changes):
    torch.manual_seed(0)
    values = {"vocab": TEXT.vocab, "width": 12, "heads": 3, "hidden": 17, "head": "vocabulary"} | changes
    model = saccade.build(saccade.ModelConfig(**values)).eval()
    read, said = TEXT.encode([SENTENCE, "ein Hund <b>&\"'"])
    return look(model, TEXT, read, said, ended="encoder" in changes)


@pytest.fixture(scope="module")
def looks():
    return {
        "translated": look_of(encoder=2, decoder=2, position="sinusoid"),
        "written": look_of(decoder=3, width=39, heads=13),
    }


@pytest.mark.parametrize("name", ["translated", "written"])
def test_the_atlas_shows_every_head_where_nothing_covers_it(looks, name):
    seen = looks[name]
    drawing = atlas(seen)
    images = [each for each in drawing.parts if isinstance(each, Cells)]
    assert len(images) == sum(layer.heads for layer in seen.layers)
    for number, one in enumerate(images):
        assert 0 <= one.x <= one.x + one.width <= drawing.width
        assert 0 <= one.y <= one.y + one.height <= drawing.height
        for other in images[:number]:
            beside = one.x >= other.x + other.width or other.x >= one.x + one.width
            assert beside or one.y >= other.y + other.height
    texts = [each.text for each in drawing.parts if isinstance(each, Lettering)]
    for layer in seen.layers:
        assert f"{layer.name}  ({layer.rows} \u2192 {layer.columns})" in texts
    entropies = [each.entropy for layer in seen.layers for each in seen.statistics(layer.name)]
    assert [text for text in texts if "entropy" in text] == [
        f"{number % seen.layers[0].heads}: entropy {each:.2f}" for number, each in enumerate(entropies)
    ]
    assert Pillow.open(io.BytesIO(drawing.to_png(1))).width == math.ceil(drawing.width)


@pytest.mark.parametrize(("heads", "line"), [(1, 1), (12, 12), (13, 7), (32, 11)])
def test_heads_stand_in_even_lines(heads, line):
    assert per_line(heads) == line


@pytest.mark.parametrize("name", ["translated", "written"])
def test_a_page_is_a_fragment_that_meets_nobody(looks, name):
    text = page(looks[name])
    found = assert_alone(text)
    assert found.tags[0] == "div"
    assert not {"html", "head", "body"} & set(found.tags)
    assert {value for key, value in found.attributes if key == "class"} >= {"saccade-look", "saccade-heads"}
    for rules in re.findall(r"<style>(.*?)</style>", text, re.DOTALL):
        for selector in re.findall(r"([^{}]+)\{", rules):
            assert all(each.strip().startswith(".saccade-look") for each in selector.split(","))
    heads = sum(layer.heads for layer in looks[name].layers)
    assert found.tags.count("tr") == heads + 1
    assert "&lt;b&gt;&amp;&quot;&#x27;" in text
    assert found.tags.count("svg") == text.count("</svg>") == 2


def test_a_document_obeys_the_readers_light(looks):
    text = document("<title>", page(looks["written"]))
    assert_alone(text)
    assert text.startswith("<!doctype html>")
    assert "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text
    assert "&lt;title&gt;" in text


def test_views_of_a_look(looks, tmp_path):
    seen = looks["translated"]
    assert View(words=True, hide="special").map(seen).rows[:2] == ["ein", "Hund"]
    assert "<end>" not in View(hide="special").map(seen).rows
    assert View("decoder.blocks.1.cross", "2").map(seen).title == "decoder.blocks.1.cross, head 2"
    assert max(View(size=3).map(seen).values.shape) <= 3
    whole = View().write(seen, tmp_path / "all.html").read_text()
    assert "heads in numbers" in whole
    shown = View(words=True, hide=["special"]).write(seen, tmp_path / "words.html").read_text()
    drawn = atlas(seen, words=True, hide="special").to_svg(ink="currentColor", paper=None)
    assert drawn in shown
    assert "heads in numbers" not in View("alignment").write(seen, tmp_path / "one.html").read_text()
    for kind in ("svg", "png", "html"):
        assert View("atlas").write(seen, tmp_path / f"atlas.{kind}").stat().st_size > 1000
    with pytest.raises(SaccadeError, match="a picture of many maps"):
        View("atlas").write(seen, tmp_path / "atlas.csv")
    assert not (tmp_path / "atlas.csv").exists()
