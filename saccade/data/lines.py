"""`lines`: pictures of short lines of text, 32 pixels high and grey, to be read: data that need no download.

A text is a word that is made up, a number, or letters and digits mixed. It is drawn by Pillow in a font that comes with
matplotlib or Pillow, in any size, contrast and place, some of them slanted, blurred, light on dark, and all with noise.
Letters that fonts draw alike (O and 0, I and l) do not meet in one text. The same number gives the same line, wherever
Pillow and the fonts are the same. A hash of a text says which split it belongs to, so that the texts of `val` and
`test` are in no training row; `test-font` has the texts of `test` in a family of fonts that no other split has.
"""

from __future__ import annotations

from functools import cache, lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade.data.batch import random_of
from saccade.error import SaccadeError, nearest
from saccade.recipe import LinesConfig

VERSION = 1  # of the generator: raise it when the same number gives another line
SPLITS = ("train", "val", "test-font", "test")
HEIGHT = 32
SIZES = (15, 26)  # of a font, in pixels
TRIES = 10_000  # texts that are drawn before a split counts as empty

PILLOW = "Pillow's own"  # the font inside Pillow
SEEN = (
    *(f"DejaVuSans{style}.ttf" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{style}.ttf" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}.ttf" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *("cmr10.ttf", "cmb10.ttf", "cmss10.ttf", "cmti10.ttf", "cmtt10.ttf", PILLOW),
)
UNSEEN = ("STIXGeneral.ttf", "STIXGeneralBol.ttf", "STIXGeneralItalic.ttf", "STIXGeneralBolIta.ttf")

VOWELS, CONSONANTS, DIGITS = "aeiouy", "bcdfghjklmnpqrstvwxz", "0123456789"
SIGNS = ".:/-"
UPPER, LOWER = "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnpqrstuvwxyz"  # beside digits: no O, I, o and l
SCALED = frozenset("cosuvwxz")  # letters of one shape in both cases
PLAIN = frozenset(f"{VOWELS}{CONSONANTS}{DIGITS}{SIGNS} ,;!?()&%+='{VOWELS.upper()}{CONSONANTS.upper()}")


class Manner(NamedTuple):
    """How a line is drawn. place: of the text in the room that it leaves, from 0 to 1; slant: pixels to the right for
    each one up; tilt: down for each one to the right; ink, paper: light from 0 to 255; fade: how much lighter the paper
    is at the right than at the left.
    """

    font: str
    size: int
    place: tuple[float, float]
    slant: float
    tilt: float
    blur: float
    ink: float
    paper: float
    fade: float
    noise: float


class DrawnLine:
    """A picture of a text, drawn when it is asked for. numbers: the seed of how it looks."""

    def __init__(self, text: str, fonts: tuple[str, ...], width: int, numbers: tuple[int, ...]) -> None:
        self.text, self.fonts, self.width, self.numbers = text, fonts, width, numbers

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        random = random_of(*self.numbers)
        pixels = draw(self.text, manner(random, self.fonts), self.width, random)
        return pixels if dtype is None else pixels.astype(dtype)


def example(number: int, config: LinesConfig, *, split: str = "train", seed: int = 0) -> tuple[DrawnLine, str]:
    """The line of this number and its text: the same whenever and in whatever order it is asked for."""
    if split not in SPLITS:
        raise SaccadeError(f"lines: the split {split!r} is unknown; {nearest(split, SPLITS)}")
    text = _text_of(number, config, split, seed)
    fonts = fitting(text, UNSEEN if split == "test-font" else SEEN)
    return DrawnLine(text, fonts, config.width, (seed, SPLITS.index(split), number)), text


def manner(random: np.random.Generator, fonts: tuple[str, ...]) -> Manner:
    """How one line is drawn, at random; about half are upright, sharp, and dark on light."""
    dice, often = random.random(11).tolist(), random.random(4).tolist()
    low, high = SIZES
    size = low + int(dice[1] * (high - low + 1))
    paper = 150 + 105 * dice[4]
    ink = (paper - 90) * dice[5]
    return Manner(
        font=fonts[int(dice[0] * len(fonts))],
        size=size,
        place=(dice[2], dice[3]),
        slant=(0.6 * dice[6] - 0.3) * (often[0] < 0.5),
        tilt=(0.08 * dice[7] - 0.04) * (often[1] < 0.5),
        blur=(0.01 + 0.022 * dice[8]) * size * (often[2] < 0.5),
        ink=255 - ink if often[3] < 0.3 else ink,
        paper=255 - paper if often[3] < 0.3 else paper,
        fade=60 * dice[9] - 30,
        noise=2 + 14 * dice[10],
    )


def draw(text: str, how: Manner, width: int, random: np.random.Generator) -> np.ndarray:
    """The picture (32, width) of a text, as bytes. random: of its noise. A text too long for the width is smaller."""
    image = _pillow().Image
    letters = _letters(text, how, width)
    wide, tall = letters.size
    lean = abs(how.slant) * tall  # pixels that the slant takes
    x = 1 + lean / 2 + how.place[0] * max(0.0, width - 2 - lean - wide)
    y = 1 + how.place[1] * max(0.0, HEIGHT - 2 - tall)
    mask = image.new("L", (width, HEIGHT), 0)
    mask.im.paste(letters, (round(x), round(y), round(x) + wide, round(y) + tall))
    if how.slant or how.tilt:  # where each pixel comes from: around the middle of the text
        middle_x, middle_y = x + wide / 2, y + tall / 2
        back = (1, how.slant, -how.slant * middle_y, how.tilt, 1, -how.tilt * middle_x)
        mask = mask.transform(mask.size, image.Transform.AFFINE, back, image.Resampling.BILINEAR)
    if how.blur:
        mask = mask.filter(_pillow().ImageFilter.GaussianBlur(how.blur))
    pixels = np.asarray(mask).astype(np.float32)
    pixels *= (how.ink - how.paper) / 255
    pixels += np.linspace(how.paper - how.fade / 2, how.paper + how.fade / 2, width, dtype=np.float32)
    pixels += np.float32(how.noise) * random.standard_normal(pixels.shape, np.float32)
    return np.rint(pixels, out=pixels).clip(0, 255, out=pixels).astype(np.uint8)


@lru_cache(maxsize=1 << 16)
def fitting(text: str, fonts: tuple[str, ...]) -> tuple[str, ...]:
    """The fonts that have every character of a text; refuses a text for which there is none."""
    if PLAIN.issuperset(text):
        return fonts
    found = tuple(font for font in fonts if all(map(_has(font), text)))
    if not found:
        lacking = next((each for each in text if not any(_has(font)(each) for font in fonts)), text)
        raise SaccadeError(
            f"lines: no font here can draw {lacking!r} of {text!r}: leave such texts out of data.lines.words "
            f"(fonts: {', '.join(each.removesuffix('.ttf') for each in fonts)})"
        )
    return found


def _text_of(number: int, config: LinesConfig, split: str, seed: int) -> str:
    """The text of a number: of those that are drawn one after another the first that belongs to the split."""
    side = "test" if split == "test-font" else split
    for attempt in range(TRIES):
        dice = _Dice(f"{seed} {side} {number} {attempt}")
        text = config.words[dice(len(config.words))] if config.words else _made_up(config, dice)
        if text and _side(text) == side:
            return text
    raise SaccadeError(f"lines: none of the {len(config.words)} texts of data.lines.words falls to {side}: give more")


def _made_up(config: LinesConfig, dice: _Dice) -> str:
    length = config.shortest + dice(config.longest - config.shortest + 1)
    return TEXTS[config.texts[dice(len(config.texts))]](length, dice)


def _word(length: int, dice: _Dice) -> str:
    """Vowels and consonants, no more than two of either in a row; empty where its case could not be told."""
    letters, kinds = "", ""
    for _ in range(length):
        kind = "cv"[dice(2)] if kinds[-2:] not in ("vv", "cc") else {"v": "c", "c": "v"}[kinds[-1]]
        found = VOWELS if kind == "v" else CONSONANTS
        letters, kinds = letters + found[dice(len(found))], kinds + kind
    cased = (letters, letters.title(), letters.upper())[dice(3)]
    return "" if SCALED.issuperset(letters) else cased


def _number(length: int, dice: _Dice) -> str:
    """Digits, of half of the numbers with a sign between two of them."""
    digits = [DIGITS[dice(10)] for _ in range(length)]
    if dice(2) and length > 2:
        digits[1 + dice(length - 2)] = SIGNS[dice(len(SIGNS))]
    return "".join(digits)


def _mixed(length: int, dice: _Dice) -> str:
    """Letters of one case and digits, one digit at least, which tells the case."""
    signs = (UPPER, LOWER)[dice(2)]
    found = [signs[dice(len(signs))] if dice(3) else DIGITS[dice(10)] for _ in range(length)]
    found[dice(length)] = DIGITS[dice(10)]
    return "".join(found)


class _Dice:
    """Numbers that follow from a text."""

    def __init__(self, text: str) -> None:
        self.state = int.from_bytes(blake2b(text.encode(), digest_size=64).digest(), "big")

    def __call__(self, sides: int) -> int:
        self.state, found = divmod(self.state, sides)
        return found


def _side(text: str) -> str:
    """The split of a text, however it is cased: 5 and 5 in a hundred are held out. The seed has no part in it."""
    number = int.from_bytes(blake2b(text.casefold().encode(), digest_size=8).digest(), "big")
    return {0: "val", 1: "test"}.get(number % 20, "train")


def check(config: LinesConfig) -> None:
    """Refuses texts that no font can draw, and a machine without the fonts, before anything is drawn."""
    _font(SEEN[0], SIZES[0])
    for text in config.words:
        fitting(text, SEEN)


def _letters(text: str, how: Manner, width: int) -> Any:
    """The mask of a text: at the size that is asked for, or the largest that fits."""
    found, size = _mask(text, how.font, how.size), how.size
    room = width - 4 - abs(how.slant) * HEIGHT / 2
    while size > 6 and (found.size[0] > room or found.size[1] > HEIGHT - 2):
        share = min(room / found.size[0], (HEIGHT - 2) / found.size[1])
        size = max(6, min(size - 1, int(size * share)))
        found = _mask(text, how.font, size)
    return found


def _mask(text: str, font: str, size: int) -> Any:
    return _font(font, size).getmask(text, "L")


@cache
def _font(name: str, size: int) -> Any:
    """A font of Pillow at a size in pixels."""
    fonts = _pillow().ImageFont
    basic = fonts.Layout.BASIC  # the layout that every Pillow has
    if name == PILLOW:
        return fonts.load_default(size)
    return fonts.truetype(str(_folder() / name), size, layout_engine=basic)


@cache
def _has(font: str) -> Any:
    """Whether a font has a character; those of TeX stand in the place of some signs."""
    made = _font(font, 20)
    missing = bytes(made.getmask("\U0010fffe"))

    @cache
    def has(character: str) -> bool:
        if font.startswith("cm"):
            return character in PLAIN
        return character in PLAIN or bytes(made.getmask(character)) not in (missing, b"")

    return has


@cache
def _folder() -> Path:
    """Where matplotlib keeps its fonts."""
    found = find_spec("matplotlib")
    folder = Path(str(found.origin)).parent / "mpl-data" / "fonts" / "ttf" if found is not None else None
    if folder is None or not folder.is_dir():
        raise SaccadeError("lines are drawn in the fonts that come with matplotlib: pip install 'saccade[lines]'")
    return folder


@cache
def _pillow() -> Any:
    try:
        for name in ("Image", "ImageDraw", "ImageFilter", "ImageFont"):
            import_module(f"PIL.{name}")
        return import_module("PIL")
    except ImportError:
        raise SaccadeError("lines are drawn by pillow: pip install 'saccade[lines]'") from None


TEXTS = {"words": _word, "numbers": _number, "mixed": _mixed}
