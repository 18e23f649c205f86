"""Dates: babel is the oracle of what is written, the calendar of what it means; the generator's own promises."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import date, timedelta

import pytest
from babel import Locale
from babel.dates import format_date
from examples import proofs

from saccade import SaccadeError
from saccade.data import dates

COUNT = 20011
FORMATS = ("full", "long", "medium", "short")
DRAWN = list(dates.examples(COUNT))


def some_days(count: int) -> list[date]:
    drawn = random.Random(7)
    return [dates.FIRST + timedelta(drawn.randrange((dates.LAST - dates.FIRST).days + 1)) for _ in range(count)]


def text(example: dates.DateExample) -> str:
    """The source without its locale."""
    return example.source.partition(": ")[2]


def test_the_same_number_gives_the_same_example_for_ever():
    assert dates.VERSION == 1, "a new version: write the examples below anew"
    told = {
        ("train", 0, 0): "es: 04.12.07 -> 2007-12-04",
        ("train", 0, 7919): "ru: 04.02.1951 -> 1951-02-04",
        ("train", 3, 1): "pt: 5/7/56 -> 1956-07-05",
        ("train", 3, 10): "ja: 1994年9月14日 -> 1994-09-14",
        ("val", 0, 1): "es: el 21 de abril de 1968 -> 1968-04-21",
        ("test", 0, 3): "pt: 12 jan. 2049 -> 2049-01-12",
    }
    for (split, seed, number), line in told.items():
        made = dates.example(number, split=split, seed=seed)
        assert f"{made.source} -> {made.target}" == line


def test_random_access_is_the_sequence_and_needs_no_order():
    for number in (COUNT - 1, 0, 101):
        assert dates.example(number) == DRAWN[number]
    assert list(dates.examples(5, split="val", seed=3)) == [
        dates.example(n, split="val", seed=3) for n in (0, 1, 2, 3, 4)
    ]


def test_another_process_draws_the_same():
    code = "from saccade.data.dates import examples; print(ascii([e.source for e in examples(97, seed=5)]))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == ascii([each.source for each in dates.examples(97, seed=5)])


def test_seeds_and_splits_draw_differently():
    streams = [[e.source for e in dates.examples(53, split=s, seed=n)] for s in dates.SPLITS for n in (0, 1)]
    assert len({tuple(each) for each in streams}) == 6


def test_splits_share_no_day_and_leave_none_out():
    days = {split: set(dates.days(split)) for split in dates.SPLITS}
    assert sum(map(len, days.values())) == len(set.union(*days.values())) == 36525
    assert 0.045 < len(days["val"]) / 36525 < 0.055
    assert 0.045 < len(days["test"]) / 36525 < 0.055
    for split in dates.SPLITS:
        assert {date.fromisoformat(e.target) for e in dates.examples(997, split=split)} <= days[split]


def test_no_text_of_the_sample_means_two_dates():
    meant = defaultdict(set)
    for each in DRAWN:
        meant[each.source].add(each.target)
    assert max(map(len, meant.values())) == 1


@pytest.mark.parametrize("locale", proofs(dates.LOCALES, but=["en_US", "de", "fr"]))
def test_no_form_can_be_taken_for_another(locale):
    """Every day of the years whose two digits could also be a day or a month, and whose months could be days."""
    meant: dict[str, str] = {}
    for year in (1950, 1979, 2001, 2002, 2010, 2012, 2031, 2049):
        for number in range(365):
            day = date(year, 1, 1) + timedelta(number)
            for pattern in dates.patterns(locale):
                for case in ("lower", "upper"):
                    made = dates.write(day, locale, pattern, case=case)
                    assert meant.setdefault(made.source, made.target) == made.target


@pytest.mark.parametrize("locale", dates.LOCALES)
def test_babel_writes_the_same(locale):
    standard = [Locale.parse(locale).date_formats[name].pattern for name in FORMATS]
    assert set(standard) <= set(dates.patterns(locale))
    for day in some_days(29):
        for name, pattern in zip(FORMATS, standard, strict=True):
            assert text(dates.write(day, locale, pattern)) == format_date(day, name, locale)
        for pattern in dates.patterns(locale):
            if "o" not in re.sub("'[^']*'", "", pattern):
                assert text(dates.write(day, locale, pattern)) == format_date(day, pattern, locale)


@pytest.mark.parametrize("locale", dates.LOCALES)
def test_spans_hold_what_they_say(locale):
    """Year and day are read back as numbers; the month as a number, or as a word that only this month has."""
    words = defaultdict(set)
    for day in some_days(211):
        for pattern in dates.patterns(locale):
            made = dates.write(day, locale, pattern)
            year, month, number = (made.source[begin:end] for begin, end in made.parts)
            assert int(year) in (day.year, day.year % 100)
            assert int(re.match(r"\d+", number)[0]) == day.day
            words[month].add(day.month)
            assert not month.isdigit() or int(month) == day.month
    assert all(len(months) == 1 for months in words.values())


def test_spans_of_one_example_by_hand():
    made = dates.write(date(1979, 5, 1), "fr", "'le' EEEE o MMMM y")
    assert made == ("fr: le mardi 1er mai 1979", "1979-05-01", ((21, 25), (17, 20), (13, 16)))
    assert made.parts.month == (17, 20)


def test_the_locale_settles_what_is_ambiguous():
    american, british = (
        dates.write(date(1979, 5, 3), "en_US", "M/d/yy"),
        dates.write(date(1979, 3, 5), "en_GB", "d/M/yy"),
    )
    assert text(american) == text(british) == "5/3/79"
    for pattern in ("M/d/yy", "MM/dd/yy"):
        assert pattern in dates.patterns("en_US")
        assert pattern not in dates.patterns("en_GB")


def test_two_digits_mean_1950_to_2049():
    for day, last in ((date(1950, 1, 2), "50"), (date(1999, 1, 2), "99"), (date(2000, 1, 2), "00")):
        assert text(dates.write(day, "de", "d.M.yy")) == f"2.1.{last}"
    assert text(dates.write(dates.LAST, "de", "d.M.yy")) == "31.12.49"


def test_case_knows_the_two_turkish_letters():
    tuesday = date(1979, 1, 2)
    assert text(dates.write(tuesday, "tr", "MMMM y d EEEE", case="upper")) == "OCAK 1979 2 SALI"
    april = date(1979, 4, 2)
    assert text(dates.write(april, "tr", "d MMMM y EEEE", case="upper")) == "2 NİSAN 1979 PAZARTESİ"
    for month in range(1, 13):
        day = date(1979, month, 2)
        made = dates.write(day, "tr", "d MMMM y", case="lower")
        assert len(made.source) == len(dates.write(day, "tr", "d MMMM y").source)


def test_ordinals():
    days = [
        text(dates.write(date(1979, 5, day), "en_US", "MMMM o, y")) for day in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31)
    ]
    assert [each.split()[1] for each in days] == [
        "1st,", "2nd,", "3rd,", "4th,", "11th,", "12th,", "13th,", "21st,", "22nd,", "23rd,", "31st,"
    ]  # fmt: skip
    assert [text(dates.write(date(1979, 5, day), "fr", "o MMMM y")) for day in (1, 2)] == ["1er mai 1979", "2 mai 1979"]


def test_many_languages_and_all_of_them_alike():
    assert len({locale.partition("_")[0] for locale in dates.LOCALES}) >= 14
    drawn = Counter(each.source.partition(":")[0] for each in DRAWN)
    assert set(drawn) == set(dates.LOCALES)
    assert min(drawn.values()) > 0.85 * COUNT / len(dates.LOCALES)
    assert all(len(dates.patterns(locale)) >= 15 for locale in dates.LOCALES)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: dates.example(-1), "numbered from 0"),
        (lambda: dates.example(1, split="tset"), "did you mean 'test'"),
        (lambda: dates.examples(1, split="valid"), "did you mean 'val'"),
        (lambda: dates.write(date(1949, 12, 31), "fr", "d/M/y"), "between 1950-01-01 and 2049-12-31"),
        (lambda: dates.write(dates.LAST, "de", "o MMMM y"), "without ordinals"),
        (lambda: dates.write(dates.LAST, "de", "MMMM y"), "year, month and day"),
        (lambda: dates.write(dates.LAST, "de", "d.M.y", case="uper"), "did you mean 'upper'"),
        (lambda: dates.patterns("en_UK"), "did you mean 'en_US'"),
    ],
)
def test_what_is_refused(wrong, sentence):
    with pytest.raises(SaccadeError, match=sentence):
        wrong()


def test_saccade_does_not_import_babel():
    code = "import sys, saccade, saccade.data; print('babel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
