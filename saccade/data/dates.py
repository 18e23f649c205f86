"""Dates as people write them in fourteen languages, with the same date in ISO 8601: data that need no download.

`fr: jeudi 3 mai 1979` -> `1979-05-03`. The source begins with its locale, which settles what 3/5/79 means; two digits
of a year mean 1950 to 2049, the range of all dates here. Babel writes the words: a pattern is Unicode's (UTS 35: `EEEE`
the weekday, `MMMM` the month, ...), with `o` besides for the day as an ordinal. The same number gives the same example,
wherever babel is the same; the three splits share no day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

from babel import Locale
from babel.dates import format_date

from saccade.error import SaccadeError, nearest

VERSION = 1  # of the generator: raise it when the same number gives another example
FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
SPLITS = ("train", "val", "test")
CASES = ("written", "written", "lower", "upper")  # drawn evenly: half of the dates stay as they are written

# What a piece of a pattern stands for. Each is written as a table of all its values; a literal has only one.
LITERAL, YEAR, MONTH, DAY, WEEKDAY = range(5)
KINDS = {"y": YEAR, "M": MONTH, "d": DAY, "o": DAY, "E": WEEKDAY, "c": WEEKDAY}
FIELD = re.compile(r"''|'[^']+'|y+|M+|d+|o|E+|c+|[^'yMdoEc]+")
SAMPLES = {
    YEAR: [date(year, 1, 1) for year in range(FIRST.year, LAST.year + 1)],
    MONTH: [date(2001, month, 1) for month in range(1, 13)],
    DAY: [date(2001, 1, day) for day in range(1, 32)],
    WEEKDAY: [date(2001, 1, day) for day in range(1, 8)],  # the first of them was a Monday
}

Span = tuple[int, int]


class DateSpans(NamedTuple):
    """Where each part of the target comes from: source[begin:end]."""

    year: Span
    month: Span
    day: Span


class DateExample(NamedTuple):
    """A date as people write it, the same date in ISO 8601, and which characters say what."""

    source: str
    target: str
    parts: DateSpans


def example(number: int, *, split: str = "train", seed: int = 0) -> DateExample:
    """The example of this number: the same whenever and in whatever order it is asked for."""
    if number < 0:
        raise SaccadeError(f"examples are numbered from 0; got {number}")
    rest = _hash(f"{seed} {split} {number}")
    rest, day = divmod(rest, len(days(split)))
    rest, case = divmod(rest, len(CASES))
    rest, locale = divmod(rest, len(LOCALES))
    forms = patterns(LOCALES[locale])
    return write(days(split)[day], LOCALES[locale], forms[rest % len(forms)], case=CASES[case])


def examples(count: int, *, split: str = "train", seed: int = 0) -> Iterator[DateExample]:
    """The first `count` examples of a split."""
    days(split)  # refuses a wrong name now, not when the first example is asked for
    return (example(number, split=split, seed=seed) for number in range(count))


def write(day: date, locale: str, pattern: str, *, case: str = "written") -> DateExample:
    """One date in one form: `write(date(1979, 5, 3), "fr", "EEEE d MMMM y")`."""
    if not FIRST <= day <= LAST:
        raise SaccadeError(f"dates lie between {FIRST} and {LAST}; got {day}")
    values = (0, day.year - FIRST.year, day.month - 1, day.day - 1, day.weekday())
    texts, spans, end = [], [(0, 0)] * len(values), 0
    for kind, table in _pieces(locale, pattern, case):
        text = table[values[kind]]
        spans[kind] = (end, end + len(text))
        end += len(text)
        texts.append(text)
    return DateExample("".join(texts), day.isoformat(), DateSpans(*spans[YEAR : DAY + 1]))


@cache
def days(split: str) -> tuple[date, ...]:
    """The days of a split: about 90, 5 and 5 in a hundred. A hash of the day decides, whatever the seed."""
    if split not in SPLITS:
        raise SaccadeError(f"dates: the split {split!r} is unknown; {nearest(split, SPLITS)}")
    every = map(date.fromordinal, range(FIRST.toordinal(), LAST.toordinal() + 1))
    return tuple(day for day in every if _split(day) == split)


@cache
def patterns(locale: str) -> tuple[str, ...]:
    """The forms a date takes in a locale: the four that Unicode gives it, and those people use besides."""
    if locale not in PATTERNS:
        raise SaccadeError(f"dates: the locale {locale!r} is unknown; {nearest(locale, LOCALES)}")
    formats = Locale.parse(locale).date_formats
    given = [formats[name].pattern for name in ("full", "long", "medium", "short")]
    return tuple(dict.fromkeys([*given, *PATTERNS[locale].split(" | ")]))  # some locales give one pattern two names


def _split(day: date) -> str:
    return {0: "val", 1: "test"}.get(_hash(day.isoformat()) % 20, "train")


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


@cache
def _pieces(locale: str, pattern: str, case: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """A pattern as tables to look up, since babel writes only some thousand dates a second."""
    pieces: list[tuple[int, tuple[str, ...]]] = [(LITERAL, (f"{locale}: ",))]
    for field in FIELD.findall(pattern):
        kind = KINDS.get(field[0], LITERAL)
        table = (_literal(field),) if kind == LITERAL else _values(locale, field)
        pieces.append((kind, tuple(_cased(text, locale, case) for text in table)))
    if sorted(kind for kind, _ in pieces if kind in (YEAR, MONTH, DAY)) != [YEAR, MONTH, DAY]:
        raise SaccadeError(f"dates: the pattern {pattern!r} should name year, month and day, each once")
    return tuple(pieces)


def _literal(field: str) -> str:
    return "'" if field == "''" else field.strip("'")


@cache
def _values(locale: str, field: str) -> tuple[str, ...]:
    """Every value of a field, as babel writes it."""
    if field == "o":
        if locale not in ORDINALS:
            raise SaccadeError(f"dates: {locale} writes days without ordinals: use d; {', '.join(ORDINALS)} have them")
        return ORDINALS[locale]
    return tuple(format_date(day, field, locale) for day in SAMPLES[KINDS[field[0]]])


def _cased(text: str, locale: str, case: str) -> str:
    """Upper or lower case; Turkish has two letters i, one with a dot and one without."""
    if case not in CASES:
        raise SaccadeError(f"dates: the case {case!r} is unknown; {nearest(case, set(CASES))}")
    turkish = locale == "tr"
    if case == "upper":
        return (text.replace("i", "İ") if turkish else text).upper()
    if case == "lower":
        return (text.replace("İ", "i").replace("I", "ı") if turkish else text).lower()  # noqa: RUF001
    return text


ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
ENGLISH = tuple(f"{day}{ENDINGS.get(day, 'th')}" for day in range(1, 32))
CARDINALS = tuple(str(day) for day in range(2, 32))  # elsewhere the first of a month alone is an ordinal
ORDINALS = {
    "en_US": ENGLISH,
    "en_GB": ENGLISH,
    "fr": ("1er", *CARDINALS),
    "es": ("1.º", *CARDINALS),
    "it": ("1º", *CARDINALS),
    "pt": ("1º", *CARDINALS),
}

# Separated by bars. Within a locale numbers keep one order, so that no text means two dates.
PATTERNS = {
    "en_US": (
        "EEE, MMM d, y | MMMM o, y | EEEE, MMMM o, y | 'the' o 'of' MMMM, y | MMM d ''yy | d MMM y | M/d/y | "
        "MM/dd/yy | MM-dd-y | M.d.yy | EEE M/d/yy | y-MM-dd"
    ),
    "en_GB": (
        "EEE d MMM y | o MMMM y | EEEE o MMMM y | EEEE, 'the' o 'of' MMMM, y | d MMM yy | o MMM ''yy | d/M/y | "
        "d/M/yy | dd.MM.yy | dd-MM-y | EEE d/M/yy | y-MM-dd"
    ),
    "fr": (
        "EEE d MMM y | o MMMM y | EEEE o MMMM y | 'le' o MMMM y | 'le' EEEE o MMMM y | d MMM yy | dd/MM/yy | "
        "d/M/yy | dd.MM.y | dd-MM-yy | EEE dd/MM/y | y-MM-dd"
    ),
    "de": (
        "EEE, d. MMM y | EEEE, 'den' d. MMMM y | 'am' d. MMMM y | d. MMM y | d. MMM yy | d MMMM y | d.M.y | "
        "d.M.yy | EEE dd.MM.yy | dd/MM/y | dd-MM-yy | y-MM-dd"
    ),
    "es": (
        "EEE, d MMM y | 'el' d 'de' MMMM 'de' y | o 'de' MMMM 'de' y | EEEE d 'de' MMMM 'de' y | d MMMM y | "
        "d-MMM-yy | dd/MM/y | d-M-y | dd.MM.yy | dd-MM-yy | EEE d/M/yy | y-MM-dd"
    ),
    "it": (
        "EEE d MMM y | o MMMM y | EEEE o MMMM y | EEEE, d MMMM y | d MMM yy | d-MMM-y | dd/MM/y | d/M/yy | "
        "dd.MM.yy | dd-MM-y | EEE dd/MM/yy | y-MM-dd"
    ),
    "pt": (
        "EEE, d 'de' MMM 'de' y | o 'de' MMMM 'de' y | EEEE, o 'de' MMMM 'de' y | 'em' d 'de' MMMM 'de' y | "
        "d MMM y | d/MMM/yy | dd/MM/yy | d/M/yy | dd-MM-y | dd.MM.yy | EEEE, dd/MM/y | y-MM-dd"
    ),
    "nl": (
        "EEE d MMM y | 'op' d MMMM y | EEEE, d MMMM y | EEE d MMM yy | d MMM yy | d MMMM ''yy | d-M-y | "
        "dd-MM-yy | d/M/y | d/MM/yy | EEE dd-MM-yy | y-MM-dd"
    ),
    "sv": (
        "EEE d MMM y | 'den' d MMMM y | EEEE 'den' d MMMM y | EEEE 'den' d MMM y | d MMM yy | d MMM -yy | "
        "d/M y | d/M yy | d/M -yy | EEE d/M y | yy-MM-dd | yyMMdd"
    ),
    "da": (
        "EEE d. MMM y | 'den' d. MMMM y | EEEE d. MMMM y | EEE 'den' d. MMM y | d. MMM yy | d MMMM y | d/M y | "
        "d/M-yy | dd-MM-y | dd.MM.yy | dd/MM/y | y-MM-dd"
    ),
    "fi": (
        "EEEE d. MMMM y | ccc d. MMMM y | d. MMMM yy | d MMMM y | EEEE d.M.y | ccc d.M.y | d. M. y | dd.MM.y | "
        "d.M.yy | dd.MM.yy | ccc d.M.yy | y-MM-dd"
    ),
    "pl": (
        "EEE, d MMM y | d MMMM y 'r.' | EEEE, d MMMM y 'r.' | 'dnia' d MMMM y | d MMM yy | EEE d MMM yy | "
        "dd.MM.y | d.MM.yy | dd-MM-y | dd/MM/yy | EEE d.MM.y | y-MM-dd"
    ),
    "ru": (
        "EEE, d MMM y | d MMMM y 'г.' | d MMMM y 'года' | EEEE, d MMMM y 'года' | d MMMM y | d MMM yy | "  # noqa: RUF001
        "d.MM.y | dd.MM.yy | d.M.yy | dd/MM/y | EEE, dd.MM.yy | y-MM-dd"
    ),
    "tr": (
        "d MMM y EEE | d MMMM y, EEEE | EEEE, d MMMM y | d MMM yy | d MMMM ''yy | dd.MM.y | d.M.yy | dd/MM/y | "
        "d/M/yy | dd-MM-y | dd.MM.y EEE | y-MM-dd"
    ),
    "ja": (
        "y年M月d日(EEE) | y年M月d日 EEEE | yy年M月d日 | y年MM月dd日 | yy年M月d日(EEE) | y.M.d | yy.MM.dd | "
        "y/M/d | yy/M/d | y/M/d(EEE) | yy/MM/dd | y-MM-dd"
    ),
}
LOCALES = tuple(PATTERNS)
