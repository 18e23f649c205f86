"""Augmentations: each against a loop over pictures and pixels, drawn again alike, and never at use."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import saccade
from saccade.error import SaccadeError
from saccade.field.augment import AREA, augments
from saccade.field.image import Image, ImageConfig

B, C, H, W = 11, 3, 5, 7
PIXELS = torch.from_numpy(np.random.default_rng(3).standard_normal((B, C, H, W)))
EVERY = ["crop(2)", "flip", "erase(0.7)", "turn(30)", "scale(0.8, 1.5)", "colour(0.4)"]


def made(text, seed=1, pixels=PIXELS):
    draw, pixels = np.random.default_rng(seed), pixels.clone()
    for each in augments(text):
        pixels = each(pixels, draw)
    return pixels


def bilinear(picture, y, x):
    """What stands at a place between pixels; outside, the edge."""
    y, x = min(max(y, 0), H - 1), min(max(x, 0), W - 1)
    top, left = min(int(y), H - 2), min(int(x), W - 2)
    y, x = y - top, x - left
    a, b = picture[:, top, left], picture[:, top, left + 1]
    c, d = picture[:, top + 1, left], picture[:, top + 1, left + 1]
    return (a * (1 - x) + b * x) * (1 - y) + (c * (1 - x) + d * x) * y


def moved(back):
    """Every pixel of every picture, looked up where `back(n)` of its place (x, y) from the middle lies."""
    found = torch.empty_like(PIXELS)
    for n in range(B):
        (a, b), (c, d) = back(n)
        for i in range(H):
            for j in range(W):
                y, x = i - (H - 1) / 2, j - (W - 1) / 2
                found[n, :, i, j] = bilinear(PIXELS[n], c * x + d * y + (H - 1) / 2, a * x + b * y + (W - 1) / 2)
    return found


def test_crop_cuts_a_part_of_a_larger_picture():
    draw = np.random.default_rng(1)
    down, right = (draw.integers(-2, 3, (B, 1))[:, 0] for _ in range(2))
    for n, picture in enumerate(made("crop(2)")):
        padded = np.pad(PIXELS[n].numpy(), ((0, 0), (2, 2), (2, 2)), mode="edge")
        top, left = 2 + down[n], 2 + right[n]
        assert np.array_equal(picture, padded[:, top : top + H, left : left + W])
    assert len({*down.tolist()}) > 2


def test_flip_exchanges_left_and_right():
    chosen = np.random.default_rng(1).random(B) < 0.5
    assert 0 < chosen.sum() < B
    for n, picture in enumerate(made("flip")):
        assert torch.equal(picture, PIXELS[n].flip(-1) if chosen[n] else PIXELS[n])
    assert torch.equal(made("flip(1) flip(1)"), PIXELS)
    assert torch.equal(made("flip(0)"), PIXELS)


def test_erase_takes_one_rectangle_of_some_pictures():
    large = torch.ones(211, 2, 31, 37)
    found = made("erase(0.3)", pixels=large)
    gone = found == 0
    assert torch.equal(gone[:, 0], gone[:, 1]), "every channel"
    assert ((found == 1) | gone).all(), "with the mean"
    hit = [each[0] for each in gone if each.any()]
    assert 40 < len(hit) < 90
    for each in hit:
        rows, columns = each.any(1), each.any(0)
        assert torch.equal(each, rows[:, None] & columns), "a rectangle"
        assert AREA[0] * 0.5 < each.float().mean() < AREA[1] * 1.2
    assert torch.equal(made("erase(0)"), PIXELS)
    assert (made("erase(1)") == 0).flatten(1).any(1).all()


def test_turn_looks_every_pixel_up():
    angles = np.random.default_rng(1).uniform(-30, 30, B) * math.pi / 180
    wanted = moved(lambda n: ((math.cos(angles[n]), -math.sin(angles[n])), (math.sin(angles[n]), math.cos(angles[n]))))
    torch.testing.assert_close(made("turn(30)"), wanted)


def test_scale_looks_every_pixel_up():
    factors = np.exp(np.random.default_rng(1).uniform(math.log(0.8), math.log(1.5), B))
    torch.testing.assert_close(made("scale(0.8, 1.5)"), moved(lambda n: ((1 / factors[n], 0), (0, 1 / factors[n]))))
    torch.testing.assert_close(made("scale(1, 1)"), PIXELS)


def test_colour_moves_contrast_and_brightness():
    draw = np.random.default_rng(1)
    contrast, shift = draw.uniform(0.6, 1.4, B), draw.uniform(-0.4, 0.4, (B, C))
    for n, picture in enumerate(made("colour(0.4)")):
        for channel in range(C):
            torch.testing.assert_close(picture[channel], PIXELS[n, channel] * contrast[n] + shift[n, channel])


@pytest.mark.parametrize("text", [*EVERY, " ".join(EVERY)])
def test_the_same_draw_gives_the_same_pictures(text):
    assert torch.equal(made(text), made(text))
    assert not torch.equal(made(text), made(text, seed=2))
    assert made(text).shape == PIXELS.shape
    assert made(text, pixels=PIXELS.float()).dtype == torch.float32


def test_augmentations_are_made_in_the_order_they_are_written():
    draw = np.random.default_rng(1)
    crop, flip = augments("crop(2) flip")
    assert torch.equal(made(" crop( 2 )   flip "), flip(crop(PIXELS.clone(), draw), draw))
    assert augments("") == augments("  ") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("flop", "no augmentation is called 'flop'; did you mean 'flip'"),
        ("crop", "crop"),
        ("crop(0)", "1 or more"),
        ("crop(1.5)", "1 or more"),
        ("erase(2)", "from 0 to 1"),
        ("turn(-3)", "up to 180"),
        ("scale(2, 1)", "factor between both"),
        ("colour(strong)", "strength above 0"),
        ("crop(2), flip", "augmentation"),
        ("crop(2", "augmentation"),
    ],
)
def test_what_means_nothing_is_told_when_the_recipe_is_read(text, told):
    with pytest.raises(SaccadeError, match=told):
        saccade.config.read(ImageConfig, {"augment": text})


def field(**keys):
    config = ImageConfig(embed="patches(4)", **keys)
    raws = list(np.random.default_rng(0).integers(0, 256, (9, 8, 12, 3)).astype(np.uint8))
    made = Image.load(config, {"c.image.json": Image.made(config, raws)}, "c", "pooled")
    return made, {"pixels": np.stack(made.encode(raws)["pixels"])}


def test_nothing_is_augmented_at_use_nor_in_a_corpus():
    (plain, taken), (augmented, same) = field(), field(augment=" ".join(EVERY))
    assert np.array_equal(taken["pixels"], same["pixels"])
    assert plain.encoding == augmented.encoding
    seen = [each.collate(taken).values["pixels"] for each in (plain, augmented)]
    assert torch.equal(*seen)
    drawn = [each.collate(taken, np.random.default_rng(1)).values["pixels"] for each in (plain, augmented)]
    assert torch.equal(drawn[0], seen[0])
    assert not torch.equal(drawn[1], seen[1])
    assert augmented.adds()
    assert not plain.adds()
