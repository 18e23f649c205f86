"""Pictures of text: the same number gives the same line, splits share no text, the fonts are kept apart."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from saccade.config import read
from saccade.data import lines
from saccade.data.generated import GENERATED
from saccade.error import SaccadeError
from saccade.field.picture import pixels_of
from saccade.recipe import DataConfig, LinesConfig
from saccade.recipes.read import from_values

CONFIG = LinesConfig()
QUIET = lines.Manner(lines.SEEN[0], 20, (0.5, 0.5), 0.0, 0.0, 0.0, ink=0, paper=255, fade=0, noise=0)


def drawn(text, width=128, **changes):
    return lines.draw(text, QUIET._replace(**changes), width, np.random.default_rng(0))


def rows(count, split="train", seed=0, config=CONFIG):
    return [lines.example(number, config, split=split, seed=seed) for number in range(count)]


def texts(*args, **named):
    return [text for _, text in rows(*args, **named)]


def test_the_same_number_gives_the_same_line_in_any_order():
    first = {number: lines.example(number, CONFIG) for number in (5, 0, 3)}
    again = {number: lines.example(number, CONFIG) for number in (0, 3, 5)}
    for number, (picture, text) in first.items():
        assert text == again[number][1]
        assert np.array_equal(picture, again[number][0])
        assert np.array_equal(np.asarray(picture), np.asarray(picture)), "read twice, it is the same"
    assert texts(20) != texts(20, seed=1)


def test_another_process_draws_the_same():
    print_hash = (
        "import hashlib, numpy as np; from saccade.data import lines; from saccade.recipe import LinesConfig;"
        "made = [lines.example(n, LinesConfig(), split='test-font') for n in range(9)];"
        "print(hashlib.sha256(b''.join(np.asarray(p).tobytes() + t.encode() for p, t in made)).hexdigest())"
    )
    said = subprocess.run([sys.executable, "-c", print_hash], capture_output=True, text=True, check=True).stdout
    here = b"".join(np.asarray(picture).tobytes() + text.encode() for picture, text in rows(9, "test-font"))
    assert said.strip() == hashlib.sha256(here).hexdigest()


def test_a_line_is_a_grey_picture():
    picture, _ = lines.example(0, CONFIG)
    assert np.asarray(picture).shape == (32, 128)
    assert pixels_of(picture).shape == (3, 32, 128)
    wide, _ = lines.example(0, LinesConfig(width=200))
    assert np.asarray(wide).shape == (32, 200)


def test_splits_share_no_text_however_it_is_cased():
    found = {split: {text.casefold() for text in texts(600, split)} for split in lines.SPLITS}
    assert not found["train"] & (found["val"] | found["test"] | found["test-font"])
    assert not found["val"] & (found["test"] | found["test-font"])
    assert all(len(each) > 500 for each in found.values())


def test_the_unseen_fonts_are_in_one_split_alone():
    for split in lines.SPLITS:
        fonts = {font for picture, _ in rows(50, split) for font in picture.fonts}
        assert fonts == {*(lines.UNSEEN if split == "test-font" else lines.SEEN)}
    random = np.random.default_rng(0)
    assert {lines.manner(random, lines.SEEN).font for _ in range(400)} == {*lines.SEEN}


@pytest.mark.parametrize("kind", lines.TEXTS)
def test_texts_are_as_long_as_asked(kind):
    found = texts(400, config=LinesConfig(texts=[kind], shortest=3, longest=11))
    assert {len(each) for each in found} == {*range(3, 12)}
    assert len({*found}) > 350


def test_letters_that_look_alike_do_not_meet():
    words = texts(800, config=LinesConfig(texts=["words"]))
    assert all(each in (each.lower(), each.title(), each.upper()) for each in words)
    assert {letter for each in words for letter in each.lower()} == {*lines.VOWELS, *lines.CONSONANTS}
    assert not any(lines.SCALED.issuperset(each.lower()) for each in words), "o or O? Another letter tells"
    mixed = texts(800, config=LinesConfig(texts=["mixed"]))
    assert not {letter for each in mixed for letter in each} & {*"OIol"}
    assert all({*each} & {*lines.DIGITS} for each in mixed)
    numbers = texts(400, config=LinesConfig(texts=["numbers"]))
    assert {letter for each in numbers for letter in each} == {*lines.DIGITS, *lines.SIGNS}


@pytest.mark.parametrize("font", [*lines.SEEN, *lines.UNSEEN])
def test_every_font_draws_every_character(font):
    shapes = {each: lines._mask(each, font, 20) for each in sorted(lines.PLAIN - {" "})}
    assert all(bytes(each) for each in shapes.values())
    assert len({(bytes(each), each.size) for each in shapes.values()}) == len(shapes), "all look different"


@pytest.mark.parametrize("place", [0.0, 1.0])
@pytest.mark.parametrize("changes", [{}, {"slant": 0.3}, {"slant": -0.3, "tilt": 0.04}, {"size": 26}])
def test_the_whole_text_is_on_the_picture(place, changes):
    for text in ("WMWMWMWM", "Qgjy", "1"):
        pixels = drawn(text, **changes, place=(place, 0.5))
        assert pixels.min() < 100, "there is ink"
        assert (pixels[:, [0, -1]] == 255).all(), "none of it at the left and right edges"


def test_light_noise_and_blur():
    assert drawn("Ag", ink=200, paper=30).max() <= 200
    assert drawn("Ag", ink=200, paper=30).min() == 30
    assert np.ptp(drawn(" ", fade=40, paper=128)) == 40
    assert 5 < drawn(" ", noise=7, paper=128).astype(float).std() < 9
    assert drawn("Ag", blur=2.0).min() > drawn("Ag").min()


def test_own_words_are_split_and_drawn_in_the_fonts_that_have_them():
    words = [f"{stem} {number}" for stem in ("Tür", "Ωmega", "plain") for number in range(40)]
    config = read(LinesConfig, {"words": words, "width": 128})
    made = {split: rows(200, split, config=config) for split in lines.SPLITS}
    assert {text for each in made.values() for _, text in each} <= {*words}
    assert not {text for _, text in made["train"]} & {text for _, text in made["test"]}
    accented = next(picture for picture, text in made["train"] if "ü" in text)
    assert accented.fonts
    assert not any(font.startswith("cm") for font in accented.fonts)


def test_a_character_that_no_font_has_is_told():
    told = "no font here can draw '漢' of 'a漢字': leave such texts out of data.lines.words"
    with pytest.raises(SaccadeError, match=told):
        GENERATED["lines"](read(DataConfig, {"name": "lines", "lines": {"words": ["abc", "a漢字"]}}))


def test_too_few_words_for_a_split():
    with pytest.raises(SaccadeError, match=r"none of the 1 texts of data\.lines\.words falls to (val|test)"):
        [texts(1, split, config=read(LinesConfig, {"words": ["one"]})) for split in ("val", "test")]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"shortest": 9}, "shortest is 9 and longest 8"),
        ({"longest": 20}, "up to 20 characters, and each needs 8 pixels: set width to 160"),
        ({"words": ["a", " "]}, "words has a text of nothing"),
        ({"texts": ["poems"]}, "texts"),
    ],
)
def test_lines_that_cannot_be(keys, told):
    with pytest.raises(SaccadeError, match=told):
        read(LinesConfig, keys)


def test_keys_of_lines_belong_to_lines():
    data = {"name": "dates", "lines": {"longest": 5}}
    with pytest.raises(SaccadeError, match=r"data\.lines says what pictures of lines say: write name = 'lines' too"):
        from_values({"task": "translate", "data": data, "model": {"width": 8, "heads": 1}, "train": {"steps": 1}})


def test_without_the_fonts_the_way_out_is_told(monkeypatch):
    monkeypatch.setattr(lines, "find_spec", lambda name: None)
    for each in (lines._folder, lines._font):
        each.cache_clear()
    with pytest.raises(SaccadeError, match=r"fonts that come with matplotlib: pip install 'saccade\[lines\]'"):
        lines.check(CONFIG)


def test_without_pillow_the_way_out_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.ImageFont", None)
    for each in (lines._pillow, lines._font):
        each.cache_clear()
    with pytest.raises(SaccadeError, match=r"drawn by pillow: pip install 'saccade\[lines\]'"):
        lines.check(CONFIG)
