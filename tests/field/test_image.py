"""Pictures: read as a person sees them, from files, bytes, PIL and arrays; what is no picture is told."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import saccade
from saccade import png
from saccade.config import read
from saccade.error import SaccadeError
from saccade.field.field import UnreadableError
from saccade.field.image import Image, ImageConfig
from saccade.field.label import Label
from saccade.field.picture import PICTURE, extent_of, fitted, pixels_of
from saccade.model.patches import patches
from saccade.recipe import DecodeConfig
from saccade.task.task import Task

GREY = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7
RGB = np.stack([GREY, 255 - GREY, GREY // 2], 2)


def field(raws, **keys):
    config = ImageConfig(**keys)
    return Image.load(config, {"c.image.json": Image.made(config, raws)}, "c", "pooled")


def saved(picture, kind="png", **options):
    made = io.BytesIO()
    picture.save(made, kind, **options)
    return made.getvalue()


def test_every_way_to_give_a_picture_is_the_same(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png.encode(RGB))
    picture = Pillow.open(path)
    ways = [path, str(path), path.read_bytes(), picture, RGB, torch.from_numpy(RGB), RGB.astype(np.int64), RGB / 255]
    for way in ways:
        assert np.array_equal(pixels_of(way), RGB.transpose(2, 0, 1))


@pytest.mark.parametrize("channels", [1, 3])
def test_png_is_what_pillow_reads(channels):
    pixels = RGB[:, :, :channels]
    assert np.array_equal(np.asarray(Pillow.open(io.BytesIO(png.encode(pixels)))), pixels.squeeze())


def test_a_picture_is_read_as_a_person_sees_it():
    deep = Pillow.fromarray(GREY.astype(np.uint16) * 257)
    assert np.array_equal(pixels_of(saved(deep))[0], GREY), "16 bits"
    clear = Pillow.fromarray(np.dstack([RGB, np.zeros((5, 7), np.uint8)]))
    assert (pixels_of(saved(clear)) == 255).all(), "what is transparent lies on white"
    palette = Pillow.fromarray(RGB).convert("P", palette=Pillow.Palette.ADAPTIVE, colors=64)
    assert np.array_equal(pixels_of(saved(palette)).transpose(1, 2, 0), np.asarray(palette.convert("RGB")))
    frames = [Pillow.fromarray(np.full((5, 7), shade, np.uint8)) for shade in (40, 200)]
    moving = saved(frames[0], "gif", save_all=True, append_images=frames[1:])
    assert (pixels_of(moving) == 40).all(), "of an animation the first frame"
    exif = Pillow.Exif()
    exif[0x0112] = 6  # the camera was held upright
    turned = saved(Pillow.fromarray(RGB), exif=exif)
    assert np.array_equal(pixels_of(turned), np.rot90(RGB, -1).transpose(2, 0, 1))
    assert pixels_of(saved(Pillow.fromarray(RGB).convert("CMYK"), "jpeg")).shape == (3, 5, 7)
    assert np.array_equal(pixels_of(Pillow.fromarray(GREY > 100))[0], np.where(GREY > 100, 255, 0))


def test_grey_stays_grey_and_colours_are_found():
    assert field([GREY], embed="patches(1)").channels == 1
    assert field([GREY, RGB], embed="patches(1)").channels == 3
    assert field([RGB], embed="patches(1)", colours="grey").channels == 1
    weighed = field([RGB], embed="patches(1)", colours="grey").encode([RGB])["pixels"][0][0]
    assert np.abs(weighed - np.asarray(Pillow.fromarray(RGB).convert("L")).astype(int)).max() <= 1


def test_a_model_sees_numbers_of_mean_0_and_spread_1():
    draw = np.random.default_rng(3)
    raws = [draw.integers(0, 256, (8, 8, 3)).astype(np.uint8) // 2 for _ in range(37)]
    made = field(raws, embed="patches(4)")
    pixels = made.collate({"pixels": np.stack(made.encode(raws)["pixels"])}).values["pixels"]
    torch.testing.assert_close(pixels.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(pixels.square().mean((0, 2, 3)), torch.ones(3), atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", [(5, 7), (70, 30), (28, 28), (3, 100)])
def test_pictures_are_fitted_by_their_middle(shape):
    pixels = np.broadcast_to(np.linspace(0, 255, shape[1]).astype(np.uint8), (3, *shape)).copy()
    found = fitted(pixels, 16, 16)
    assert found.shape == (3, 16, 16)
    assert abs(float(found.mean()) - 127) < 8, "what is cut is cut alike on both sides"


@pytest.mark.parametrize("shape", [(5, 35), (35, 5), (10, 14), (3, 4)])
def test_pictures_are_padded_whole(shape):
    """A dark square in the middle of light stays whole, and what is around it has the light of the edge."""
    height, width = shape
    picture = np.full((height, width), 200, np.uint8)
    picture[height // 2, width // 2] = 0
    (pixels,) = field([picture], size=[10, 14], fit="pad", embed="patches(1)").encode([picture])["pixels"]
    assert pixels.shape == (1, 10, 14)
    scale = min(10 / height, 14 / width)
    dark = (200 - pixels.astype(float)).sum()
    assert dark == pytest.approx(200 * scale**2, rel=0.35, abs=20), "the square is as large as its share"
    assert (pixels[:, [0, -1]][:, :, [0, -1]] == 200).all(), "the corners have the light of the edge"
    same = field([picture], size=[height, width], fit="pad", embed="patches(1)").encode([picture])["pixels"][0]
    assert np.array_equal(same[0], picture)


@pytest.mark.parametrize("shape", [(5, 35), (35, 7), (20, 28), (10, 14)])
def test_pictures_are_stretched_whole(shape):
    """What lies in a share of both sides lies there afterwards."""
    height, width = shape
    picture = np.zeros((height, width), np.uint8)
    picture[: height * 3 // 5, width // 7 * 4 :] = 200
    made = field([picture], size=[10, 14], fit="stretch", embed="patches(1)")
    pixels = made.encode([picture])["pixels"][0][0].astype(float)
    inside = np.zeros((10, 14), bool)
    inside[:6, 8:] = True
    assert ((pixels > 100) == inside).all()
    assert pixels.mean() == pytest.approx(picture.mean(), abs=4)
    assert made.encoding == {"fit": "stretch"}


def test_the_extent_of_a_picture_in_a_file(tmp_path):
    """As its pixels have it, turned or not, without decoding them."""
    for value in range(1, 9):
        exif = Pillow.Exif()
        exif[0x0112] = value
        path = tmp_path / f"{value}.png"
        Pillow.fromarray(RGB).save(path, exif=exif)
        assert extent_of(path) == pixels_of(path).shape[1:]
    (tmp_path / "cut.png").write_bytes((tmp_path / "1.png").read_bytes()[:60])
    with pytest.raises(UnreadableError, match="no "):
        extent_of(tmp_path / "cut.png")
    (tmp_path / "none.png").write_bytes(b"none")
    with pytest.raises(UnreadableError, match="is no picture that can be read"):
        extent_of(tmp_path / "none.png")
    with pytest.raises(UnreadableError, match="is not there, and it should be a picture"):
        extent_of(tmp_path / "gone.png")


def test_two_sides():
    made = field([GREY], size=[8, 16], embed="patches(4)")
    assert (made.height, made.width, made.grid) == (8, 16, (2, 4))
    with pytest.raises(SaccadeError, match="size is one number, or two"):
        read(ImageConfig, {"size": [8, 8, 8]})
    with pytest.raises(SaccadeError, match="size"):
        read(ImageConfig, {"size": [8, 0]})


def test_a_line_becomes_one_row_of_cells():
    made = field([GREY], size=[32, 128], embed="convolutions((3, 3), steps=(2, (2, 1), (2, 1)))")
    assert made.grid == (4, 64)
    with pytest.raises(SaccadeError, match="steps has a 1, a 2 or a pair of them"):
        field([GREY], size=[8, 8], embed="convolutions((3,), steps=(2, (2, 3)))")


def test_what_is_seen_is_shown_again():
    made = field([RGB[:4, :6], RGB[1:5, 1:7]], embed="patches(2)")
    x = made.collate({"pixels": np.stack(made.encode([RGB[:4, :6]])["pixels"])})
    side = made.side(x)
    assert np.array_equal(pixels_of(PICTURE.received(side.shown["picture"])), RGB[:4, :6].transpose(2, 0, 1))
    assert (side.kind, side.shown["grid"], len(side)) == ("patches", [2, 3], 6)
    assert side.tokens[4].text == "2,2"
    assert side.tokens[4].place == pytest.approx((1 / 3, 1 / 2, 1 / 3, 1 / 2))


def test_patches_are_one_product_each():
    """The same as torch's own unfolding and a linear map, row by row of the grid."""
    config = saccade.ModelConfig(width=11, heads=1, encoder=1, vocab=2)
    torch.manual_seed(1)
    part = patches(3, 2, config=config).double()
    pixels = torch.randn(5, 2, 6, 9, dtype=torch.double)
    unfolded = torch.nn.functional.unfold(pixels, 3, stride=3).mT
    wanted = unfolded @ part.weight.flatten(1).T + part.bias
    torch.testing.assert_close(part({"pixels": pixels}), wanted)
    with pytest.raises(SaccadeError, match="multiples of 3"):
        part({"pixels": pixels[..., :8]})


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"no picture", "no picture that can be read"),
        (7, "a picture was expected"),
        (np.zeros((2, 3, 5)), r"\(height, width\)"),
        (np.full((2, 3), 300), "from 0 to 255"),
        (np.full((2, 3), np.nan), "from 0 to 1"),
        (np.zeros((0, 3)), "without pixels"),
        ("there/is/none.png", "cannot be read as a picture"),
    ],
)
def test_what_is_no_picture(raw, told):
    with pytest.raises(SaccadeError, match=told):
        pixels_of(raw)


@pytest.mark.parametrize(
    "value", [7, "/etc/passwd", "https://there.is/none.png", "data:text/plain;base64,aaaa", "data:"]
)
def test_over_the_network_a_string_is_never_a_path_or_an_address(value):
    with pytest.raises(SaccadeError, match=r"base64|data:"):
        field([GREY], embed="patches(1)").received(value)


def test_over_the_network_a_picture_is_base64():
    made, content = field([RGB], embed="patches(1)"), png.encode(RGB)
    plain = base64.b64encode(content).decode()
    for value in (plain, f"data:image/png;base64,{plain}"):
        assert np.array_equal(pixels_of(made.received(value)), RGB.transpose(2, 0, 1))
    with pytest.raises(SaccadeError, match="no picture that can be read"):
        made.received(base64.b64encode(b"plain words").decode())


def test_a_size_that_no_patch_divides():
    with pytest.raises(SaccadeError, match="not made of squares of 5"):
        field([GREY], size=12, embed="patches(5)")


def test_a_huge_picture_is_told_before_it_is_read():
    bomb = saved(Pillow.new("1", (9000, 9000)))
    assert len(bomb) < 20_000
    with pytest.raises(SaccadeError, match="9000 x 9000 pixels"):
        pixels_of(bomb)


def test_a_thin_picture_takes_no_more_room_than_it_has():
    thin = np.zeros((3, 1, 1 << 20), np.uint8)
    thin[:, :, (1 << 19) - 5 :] = 200
    assert fitted(thin, 28, 28).shape == (3, 28, 28)
    made = field([RGB], size=28, embed="patches(4)")
    assert made.encode([thin.transpose(1, 2, 0)])["pixels"][0].shape == (3, 28, 28)


def test_what_comes_over_the_network_is_kept_small_and_may_not_be_huge():
    made = field([RGB], size=8, embed="patches(4)")
    large = base64.b64encode(saved(Pillow.new("L", (3000, 2000)))).decode()
    assert np.asarray(made.received(large)).shape == (8, 8, 3)
    with pytest.raises(SaccadeError, match="16,777,216 are read at most"):
        made.received(base64.b64encode(saved(Pillow.new("1", (5000, 5000)))).decode())


def test_formats_that_run_programs_are_not_opened():
    with pytest.raises(SaccadeError, match="no picture that can be read"):
        pixels_of(saved(Pillow.fromarray(RGB), "eps"))


def test_a_picture_that_is_cut_off():
    content = saved(Pillow.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)))
    for cut in (20, 60, 4000):
        with pytest.raises(SaccadeError, match="picture"):
            pixels_of(content[:cut])
    with pytest.raises(SaccadeError, match="no whole picture"):
        pixels_of(Pillow.open(io.BytesIO(content[:4000])))


def test_a_blank_name_gets_a_note_and_the_others_their_answer(tmp_path):
    """On the command line, in a file of names and over the network."""
    path = tmp_path / "a.png"
    path.write_bytes(png.encode(np.tile(RGB, (4, 3, 1))))
    label = Label(["bad", "good"])
    task = Task("classify", {"source": field([path], embed="patches(4)")}, "label", label, asks="classify")
    config = saccade.ModelConfig(width=12, heads=2, encoder=1)
    model = saccade.build(task.configure(config))
    sent = base64.b64encode(path.read_bytes()).decode()
    for given in (
        [task.line(each) for each in ("", str(path), "  ")],
        [task.cell(each, tmp_path) for each in ("", "a.png", "  ")],
        [task.received(each) for each in ("", sent, "  ")],
    ):
        found = task.predict(model, given, DecodeConfig())
        assert [each.note for each in found] == ["empty: there is nothing to classify", None, found[0].note]
        assert found[1].value in label.names
