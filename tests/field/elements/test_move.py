"""Boxes move with their picture: the light of a rectangle lies where its box says, whatever was done to both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade import SaccadeError
from saccade.config import read
from saccade.field.augment import augments
from saccade.field.boxes import Boxes, BoxesConfig
from saccade.field.elements.element import elements
from saccade.field.elements.move import LEFT, Boxed, moves
from saccade.field.image import Image, ImageConfig, Measured
from saccade.model.input import Input

COUNT = 13
EXACT = ["flip(1)", "tip(1)", "flip(0.5) tip(0.5)", "quarter", "quarter flip quarter tip"]
CUT = ["crop(0.5, 0.9)", "scale(0.6, 1.7)", "crop(0.6, 1.0) quarter scale(0.8, 1.3) flip"]


def lit(seed, height, width):
    """Pictures with one light rectangle each, and its box; the second box of each is not there."""
    draw = np.random.default_rng(seed)
    pixels, boxes = torch.zeros(COUNT, 2, height, width), torch.zeros(COUNT, 2, 4)
    for number in range(COUNT):
        wide, high = int(draw.integers(3, width // 2)), int(draw.integers(3, height // 2))
        left, top = int(draw.integers(width - wide + 1)), int(draw.integers(height - high + 1))
        pixels[number, :, top : top + high, left : left + wide] = 1
        box = [(left + wide / 2) / width, (top + high / 2) / height, wide / width, high / height]
        boxes[number, 0] = torch.tensor(box)
    real = torch.tensor([True, False]).expand(COUNT, 2).clone()
    return Boxed(pixels, boxes, real)


def moved(text, made, seed=1):
    draw, made = np.random.default_rng(seed), Boxed(*(each.clone() for each in made))
    for each in moves(text):
        made = each(made, draw)
    return made


def ends(box, height, width):
    x, y, wide, high = box.tolist()
    return (x - wide / 2) * width, (y - high / 2) * height, (x + wide / 2) * width, (y + high / 2) * height


@pytest.mark.parametrize("text", EXACT)
@pytest.mark.parametrize("sides", [(23, 29), (29, 29)])
@given(st.integers(0, 1 << 20))
@settings(max_examples=7, deadline=None)
def test_light_is_exactly_inside_the_moved_box(text, sides, seed):
    before = lit(seed, *sides)
    found = moved(text, before, seed)
    assert torch.equal(found.real, before.real)
    for pixels, (box, _) in zip(found.pixels, found.boxes, strict=True):
        left, top, right, bottom = (round(each) for each in ends(box, *sides))
        inside = torch.zeros(sides, dtype=torch.bool)
        inside[top:bottom, left:right] = True
        assert torch.equal(pixels[0] == 1, inside)
        assert torch.equal(pixels[0], pixels[1])


@pytest.mark.parametrize("text", CUT)
@pytest.mark.parametrize("sides", [(47, 61), (53, 53)])
@given(st.integers(0, 1 << 20))
@settings(max_examples=7, deadline=None)
def test_what_is_cut_out_or_scaled_keeps_its_light_in_its_box(text, sides, seed):
    """To half a pixel or so, since light is spread between pixels."""
    before = lit(seed, *sides)
    found = moved(text, before, seed)
    for number in range(COUNT):
        light = found.pixels[number, 0] > 0.5
        box, real = found.boxes[number, 0], found.real[number, 0]
        assert not found.real[number, 1]
        assert (found.boxes[number] >= 0).all()
        assert (found.boxes[number, :, 2:] <= 1).all()
        if not real:
            assert light.float().mean() < before.pixels[number, 0].mean() * 4 * LEFT + 0.02
            continue
        rows, columns = light.any(1).nonzero().flatten(), light.any(0).nonzero().flatten()
        seen = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
        assert np.abs(np.array(seen, float) - ends(box, *sides)).max() <= 1.01


def test_a_box_of_which_little_is_left_is_gone():
    """A window over the right three fifths of each picture, and boxes that reach into it more and more."""
    shares = torch.arange(10) / 10 + 0.05
    boxes = torch.tensor([[0.4 + (share - 0.5) * 0.2, 0.5, 0.2, 0.3] for share in shares.tolist()])
    made = Boxed(torch.zeros(1, 1, 10, 10), boxes[None], torch.ones(1, 10, dtype=torch.bool))

    class Right:
        def uniform(self, low, high, size):
            return np.array([[0.6, 1.0]])

        def random(self, size):
            return np.array([[1.0, 0.0]])

    (crop,) = moves("crop(0.6, 1.0)")
    found = crop(made, Right())
    assert found.real[0].tolist() == [share >= LEFT for share in shares.tolist()]
    kept = found.boxes[0, -1]
    torch.testing.assert_close(kept, torch.tensor([(0.19 / 2) / 0.6, 0.5, 0.19 / 0.6, 0.3]))


def test_what_is_outside_has_the_mean_colour():
    made = Boxed(torch.ones(7, 1, 11, 11), torch.zeros(7, 0, 4), torch.zeros(7, 0, dtype=torch.bool))
    found = moved("scale(0.5, 0.5)", made)
    assert (found.pixels[:, 0, 0] == 0).all()
    assert (found.pixels[:, 0, 5, 5] == 1).all()
    assert found.boxes.shape == (7, 0, 4)
    torch.testing.assert_close(moved("crop(0.5, 0.9)", made).pixels, made.pixels, msg="not at the edge of a part")


def test_a_shift_by_whole_pixels_is_a_copy():
    """A window of half of both sides, drawn as large as the whole, lies where the draw says."""
    made, draw = lit(3, 20, 20), np.random.default_rng(5)
    share, place = draw.uniform(0.5, 0.5, (COUNT, 2)), draw.random((COUNT, 2))
    found = moved("crop(0.5, 0.5)", made, 5)
    for number in range(COUNT):
        left, top = place[number] * (1 - share[number])
        x, y, wide, high = made.boxes[number, 0].tolist()
        wanted = [max(0, min(1, (edge - begin) / 0.5)) for edge, begin in ((x - wide / 2, left), (y - high / 2, top))]
        got = found.boxes[number, 0]
        assert (got[:2] - got[2:] / 2).tolist() == pytest.approx(wanted, abs=1e-5)


def test_colour_is_that_of_pictures_alone():
    made = lit(3, 23, 29)
    made.pixels.normal_(generator=torch.Generator().manual_seed(0))
    found = moved("colour(0.4)", made)
    (alone,) = augments("colour(0.4)")
    assert torch.equal(found.pixels, alone(made.pixels.clone(), np.random.default_rng(1)))
    assert torch.equal(found.boxes, made.boxes)


@pytest.mark.parametrize("text", [*EXACT, *CUT, "colour(0.3)"])
def test_the_same_draw_does_the_same(text):
    made = lit(7, 29, 29)
    one, again = moved(text, made), moved(text, made)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert one.pixels.shape == made.pixels.shape
    assert one.boxes.shape == made.boxes.shape
    if text not in ("flip(1)", "tip(1)"):
        assert not torch.equal(one.pixels, moved(text, made, 2).pixels)
    first = made._replace(boxes=made.boxes.clone())
    moves(text)[0](Boxed(made.pixels.clone(), made.boxes, made.real), np.random.default_rng(1))
    assert torch.equal(first.boxes, made.boxes), "boxes are not changed in place"


def test_half_turns_of_what_is_no_square():
    before = lit(7, 23, 29)
    found = moved("quarter", before)
    turned = [torch.equal(a, b.flip(1, 2)) for a, b in zip(found.pixels, before.pixels, strict=True)]
    assert any(turned)
    assert not all(turned)


def test_a_batch_is_moved_with_its_labels():
    """Those that are left keep their labels and come first."""
    made, count = lit(11, 53, 53), 2
    draw = np.random.default_rng(4)
    spans = torch.from_numpy(draw.uniform(0.1, 0.3, (COUNT, count, 4))).float()
    spans[:, :, :2] = torch.from_numpy(draw.uniform(0.15, 0.85, (COUNT, count, 2)))
    labels, lengths = torch.arange(1, 1 + COUNT * count).view(COUNT, count), torch.tensor([0, 1, 2, 2] * 3 + [2])
    spans[torch.arange(count) >= lengths[:, None]] = 0
    y = Input({"labels": labels * (torch.arange(count) < lengths[:, None]), "spans": spans}, lengths)
    text = "crop(0.4, 0.6) flip"
    boxes, _ = field(text)
    x, found = boxes.transformed({"source": Input({"pixels": made.pixels.clone()})}, y, np.random.default_rng(9))
    alone = moved(text, Boxed(made.pixels, spans, torch.arange(count) < lengths[:, None]), 9)
    assert torch.equal(x["source"].values["pixels"], alone.pixels)
    assert 0 < int(alone.real.sum()) < int(lengths.sum()), "some are gone, and some are not"
    assert torch.equal(found.lengths[0], alone.real.sum(1))
    for row, left in enumerate(found.lengths[0].tolist()):
        assert found.values["labels"][row, :left].tolist() == labels[row][alone.real[row]].tolist()
        assert torch.equal(found.values["spans"][row, :left], alone.boxes[row][alone.real[row]])


def field(augment, seen=""):
    """Boxes and a picture for them, as a task has them; seen: what is done to the picture alone."""
    boxes = Boxes.load(read(BoxesConfig, {"augment": augment, "denoise": 0}), {"y.boxes.json": NAMES}, "y")
    measured = Measured(8, 8, [0.5], [0.5])
    picture = Image(measured, read(ImageConfig, {"size": 8, "augment": seen}))
    return boxes, {"source": picture}


NAMES = b'{"labels": ["a"], "most": 2}'


def test_boxes_move_in_training_alone():
    boxes, x = field("flip(1)")
    boxes.joined(x)
    raw = elements(["a"], [[0, 2, 2, 8]], (0, 0, 8, 8))
    taken = {name: [np.asarray(each) for each in rows] for name, rows in boxes.encode([raw]).items()}
    seen = {"source": Input({"pixels": torch.arange(64.0).view(1, 1, 8, 8)})}
    y = boxes.collate(taken)
    assert y.values["spans"].tolist() == [[[0.125, 0.625, 0.25, 0.75]]]
    x, y = boxes.transformed(seen, y, np.random.default_rng(0))
    assert y.values["spans"].tolist() == [[[0.875, 0.625, 0.25, 0.75]]]
    assert x["source"].values["pixels"][0, 0, 0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert boxes.adds() == ["augmentation (flip(1))"]


def test_a_picture_is_not_moved_without_its_boxes():
    boxes, x = field("", seen="colour(0.2) crop(2) erase(0.1) flip")
    with pytest.raises(SaccadeError, match=r"x.source.augment moves what is to be found \(crop, flip\), and its place"):
        boxes.joined(x)
    boxes, x = field("", seen="colour(0.2) erase(0.1)")
    boxes.joined(x)
    boxes, _ = field("flip")
    with pytest.raises(SaccadeError, match="moves boxes along with one picture"):
        boxes.joined({})
    with pytest.raises(SaccadeError, match="no augmentation of pictures with boxes is called 'flop'"):
        read(BoxesConfig, {"augment": "flop"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("flop", "no augmentation of pictures with boxes is called 'flop'"),
        ("flip(2)", "from 0 to 1"),
        ("tip(-1)", "from 0 to 1"),
        ("crop(2)", "crop"),
        ("crop(0, 1)", "above 0 up to 1"),
        ("crop(0.9, 0.8)", "between both"),
        ("crop(0.9, 1.1)", "up to 1"),
        ("scale(2, 1)", "factor between both"),
        ("colour(strong)", "strength above 0"),
        ("quarter(1)", "quarter"),
    ],
)
def test_what_means_nothing_is_told(text, told):
    with pytest.raises(SaccadeError, match=told):
        moves(text)
    assert moves("") == []
