"""Names beside a picture: every token made visible, measured without a font, and cut where there is no room."""

from __future__ import annotations

import unicodedata

SPACE = "\u00b7"  # the same signs as on the server's page
ARROWS = {"\n": "\u23ce", "\t": "\u21e5"}
BROKEN, CIRCLE, CUT = "\ufffd", "\u25cc", "\u2026"
JOINERS = "\u200c\u200d"  # invisible, but letters of Arabic and India and many emoji need them
# How wide letters are, in sizes of the font: a little more than most fonts need.
THIN, MIDDLE, BROAD, FULL = 0.42, 0.64, 0.92, 1.05
BOLDER = 1.15  # times as wide
NARROW_LETTERS, BROAD_LETTERS = frozenset("iIjl.,:;'|!()[]{}`\"tfr-/ "), frozenset("mwMW@%&QOGD\u2014\u2026")


def visible(text: str) -> str:
    """A token as a name that can be seen: a lone space, accent or invisible letter too."""
    if text and not text.strip(" "):
        return SPACE * len(text)
    shown = plain(text.strip(" "))
    if all(unicodedata.category(each) in ("Cf", "Zs") for each in shown):
        return " ".join(f"U+{ord(each):04X}" for each in shown)
    return CIRCLE + shown if unicodedata.combining(shown[0]) else shown


def plain(text: str) -> str:
    """The text on one line and without what XML forbids: control characters become \\x00 or an arrow; marks that
    change the direction of writing become the sign of a broken letter.
    """
    return "".join(map(_visible_letter, text))


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is in a font of this size: rather too wide than too narrow."""
    return size * (BOLDER if bold else 1.0) * sum(map(_letter_width, text))


def shorten(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text if there is room for it, else as much of its beginning as there is, and an ellipsis."""
    size = size * (BOLDER if bold else 1.0)
    if width_of(text, size) <= room:
        return text
    left = room - width_of(CUT, size)
    for number, each in enumerate(text):
        left -= size * _letter_width(each)
        if left < 0:
            return text[:number] + CUT
    return text


def stride_of(count: int, step: float, least: float) -> int:
    """Which of `count` names, `step` apart, are shown so that they stand `least` apart: all, every 2nd, 5th, 10th..."""
    strides = (each * 10**power for power in range(9) for each in (1, 2, 5))
    return next(each for each in strides if each * step >= least or each >= count)


def _visible_letter(letter: str) -> str:
    code, kind = ord(letter), unicodedata.category(letter)
    if kind == "Cc":
        return ARROWS.get(letter, f"\\x{code:02x}")
    hidden = kind in ("Cs", "Zl", "Zp") or (kind == "Cf" and code >= 0x2000 and letter not in JOINERS)
    return BROKEN if hidden or code & 0xFFFE == 0xFFFE else letter


def _letter_width(letter: str) -> float:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return FULL
    if letter in NARROW_LETTERS:
        return THIN
    return BROAD if letter in BROAD_LETTERS else MIDDLE
