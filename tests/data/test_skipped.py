"""Rows that were left out are told with their lines: the first few, and how many more."""

from __future__ import annotations

import pytest

from saccade.data import corpus
from saccade.data.skipped import Skipped, line_of
from saccade.data.source import rows
from saccade.field.text.config import SourceTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.text import Text


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([4], "1: blank line (line 4)"),
        ([4, 1700], "2: blank line (lines 4 and 1,700)"),
        ([1, 2, 3, 4, 5], "5: blank line (lines 1, 2, 3, 4 and 5)"),
        (range(1, 1300), "1,299: blank line (lines 1, 2, 3, 4, 5 and 1,294 more)"),
        ([None, None], "2: blank line"),
    ],
)
def test_the_first_lines_and_how_many_more(lines, told):
    skipped = Skipped()
    for line in lines:
        skipped.add("blank line", line)
    assert skipped.described() == [told]


def test_a_row_knows_its_line(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n\n"c\nd",e\n ,f\n')
    skipped = Skipped()
    found = list(rows(tmp_path / "a.csv", skipped=skipped))
    assert found == [("a", "b"), ("c\nd", "e")]
    assert list(map(line_of, found)) == [1, 4]  # where it ends
    assert skipped.described() == ["1: blank field (line 5)", "1: blank line (line 2)"]
    assert line_of(("a", "b")) is None


def test_a_corpus_keeps_the_lines_of_what_is_too_long(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{'eye ' * (n % 3 + 1)}\n\n" for n in range(9)))
    field = SourceText(Text.train(["the eye"], "words"), SourceTextConfig(), needs="pooled")
    for _ in range(2):  # made, and found again
        skipped = Skipped()
        made = corpus.build(
            tmp_path / "c",
            rows(tmp_path / "a.txt", skipped=skipped),
            {"source": field},
            key="k",
            limits={"source": 2},
            skipped=skipped,
        )
        assert made.skipped.described() == [
            "9: blank line (lines 2, 4, 6, 8, 10 and 4 more)",
            "3: longer than 2 tokens (lines 5, 11 and 17)",
        ]
