"""Tables that are written are read back cell by cell."""

from __future__ import annotations

import pytest

from saccade.data import source
from saccade.data.table import KINDS, Table, save_columns
from saccade.error import SaccadeError

ROWS = [['a "b", c', "1"], ["ein Übel;\\n", "2"], [" spaces ", "3"], ["=1+1", "'4'"]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("titled", [True, False])
def test_what_is_written_is_read_back(kind, titled, tmp_path):
    path = tmp_path / f"t.{kind}"
    Table(["words", "number"], ROWS, titled).save(path)
    columns = ["words", "number"] if titled or kind == "jsonl" else None
    assert [list(row) for row in source.rows(path, columns=columns)] == ROWS
    assert list(source.titles(path)) == (["words", "number"] if columns else ROWS[0])
    if columns:
        assert list(source.column(path, "number")) == [row[1] for row in ROWS]


@pytest.mark.parametrize("kind", KINDS)
def test_line_breaks_are_kept_refused_or_shown(kind, tmp_path):
    path, table = tmp_path / f"t.{kind}", Table(["a"], [["x"], ["one\ntwo\tthree"]])
    if kind == "tsv":
        with pytest.raises(SaccadeError, match=r"row 2 has a tab or a line break, .* write \.csv or \.jsonl"):
            table.save(path)
        assert not path.exists(), "whole or not at all"
        table.on_lines().save(path)
        assert list(source.column(path, "a")) == ["x", "one\\ntwo\\tthree"]
        return
    table.save(path)
    assert list(source.column(path, "a")) == ["x", "one\ntwo\tthree"]


def test_a_file_of_lines_for_each_column(tmp_path):
    paths = [tmp_path / "v.en", tmp_path / "v.de"]
    save_columns(paths, [["a b", "c"], ["d", "e f"]])
    assert list(source.rows(paths)) == [("a b", "c"), ("d", "e f")]
    with pytest.raises(SaccadeError, match="row 1 has a line break"):
        save_columns(paths, [["a\nb", "c"]])
    assert list(source.rows(paths)) == [("a b", "c"), ("d", "e f")], "what was there is untouched"


def test_blank_answers_keep_their_place(tmp_path):
    path = tmp_path / "a.tsv"
    Table(["source", "answer"], [["x", ""], ["y", "b"]]).save(path)
    assert list(source.column(path, "answer")) == ["", "b"]
