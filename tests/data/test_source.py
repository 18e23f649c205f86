"""Files: streams of lines and rows, whole or told what is wrong with file and line."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re

import pytest

from saccade.data import source
from saccade.data.skipped import Skipped
from saccade.data.source import digest, lines, rows, text
from saccade.error import SaccadeError


@pytest.fixture
def put(tmp_path):
    """Writes a file of bytes or text and gives its path."""

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_only_a_newline_ends_a_line(put, name):
    path = put(name, "\ufeffone\r\ntwo\u2028still\x0btwo\x85\x0c\x1c\rtwo\n\nlast")
    assert list(lines(path)) == ["one", "two\u2028still\x0btwo\x85\x0c\x1c\rtwo", "", "last"]


def test_what_is_no_utf8_is_told_with_its_line(put):
    path = put("latin.txt", b"fine\nfine\n" + "naïve".encode("latin-1"))
    for read in (lines, text):
        with pytest.raises(SaccadeError, match=r"latin\.txt, line 3: byte 0xef is not UTF-8"):
            list(read(path))
    with pytest.raises(SaccadeError, match="line 1"):
        list(text(put("cut.txt", "é".encode()[:1])))


@pytest.mark.parametrize("read", [lines, text, rows])
@pytest.mark.parametrize("name", ["none.txt", "none.txt.gz"])
def test_an_empty_file_is_told(put, read, name):
    with pytest.raises(SaccadeError, match=r"none\.txt(\.gz)? is empty"):
        list(read(put(name, "")))


@pytest.mark.parametrize("read", [lines, text, rows, digest])
def test_what_is_no_file_is_told_at_once(tmp_path, read):
    with pytest.raises(SaccadeError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(SaccadeError, match="gone is not there"):
        read(tmp_path / "gone")


def test_what_cannot_be_read_is_told(put, tmp_path):
    whole = put("whole.gz", "word\n" * 9973)
    (tmp_path / "cut.gz").write_bytes(whole.read_bytes()[:-31])
    (tmp_path / "no.gz").write_bytes(b"no gzip at all")
    for name in ("cut.gz", "no.gz"):
        with pytest.raises(SaccadeError, match=f"{name} is no whole gzip file"):
            list(lines(tmp_path / name))
    with pytest.raises(SaccadeError, match="cannot be read: File name too long"):
        lines(tmp_path / ("x" * 997))


@pytest.mark.parametrize("read", [lines, text, rows])
def test_a_file_closed_to_us_is_told(put, monkeypatch, read):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path = put("secret.txt", "words")
    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(SaccadeError, match=r"secret\.txt cannot be read: Permission denied"):
        list(read(path))


@pytest.mark.parametrize("size", [5, 7, 64, 1 << 16])
@pytest.mark.parametrize("name", ["b.txt", "b.txt.gz"])
def test_text_keeps_every_character(put, name, size):
    content = "One\r\n\n\ntwo é𝄞\u2028 three " + "long" * 41 + "\rend\n"
    path = put(name, content)
    chunks = list(text(path, size=size))
    assert "".join(chunks) == content
    assert max(map(len, chunks)) <= size
    for start, stop in [(0, 11), (11, None), (4, 5), (13, 97), (0, 9973), (9973, None)]:
        assert "".join(text(path, start=start, stop=stop, size=size)) == content[start:stop]


def test_chunks_end_with_lines(put):
    chunks = list(text(put("c.txt", "a line of words\n" * 101), size=100))
    assert len(chunks) > 10
    assert all(chunk.endswith("\n") for chunk in chunks)


def test_parallel_files(put):
    skipped = Skipped()
    files = [put("a.en", "one\n \nthree\nfour\n"), put("a.de.gz", "eins\nzwei\n\u2028\nvier")]
    assert list(rows(files, skipped=skipped)) == [("one", "eins"), ("four", "vier")]
    assert skipped == {"blank line": 2}
    with pytest.raises(SaccadeError, match=r"a\.en, line 2: a side is blank"):
        list(rows(files, strict=True))


def test_parallel_files_of_unequal_length(put):
    files = [put("long.en", "one\ntwo\nthree\nfour\n"), put("short.de", "eins\nzwei\n")]
    for order in (files, files[::-1]):
        with pytest.raises(SaccadeError, match=r"short\.de ends after line 2 but .*long\.en goes on"):
            list(rows(order))


def test_plain_text_is_one_column(put):
    path = put("a.txt", "one, a\n\ntwo\tb\n")
    assert list(rows(path)) == [("one, a",), ("two\tb",)]
    with pytest.raises(SaccadeError, match="no named columns"):
        rows(path, columns=["a"])


def test_csv(put):
    path = put("t.csv", 'nr,"to, x",from\n1,"a ""b""\nc",d\n\n2,,e\n3,f\u2028g,h\n')
    skipped = Skipped()
    found = list(rows(path, columns=["from", "to, x"], skipped=skipped))
    assert found == [("d", 'a "b"\nc'), ("h", "f\u2028g")]
    assert skipped == {"blank line": 1, "blank field": 1}
    assert list(rows(path, columns=[1, 2]))[:2] == [("nr", "to, x"), ("1", 'a "b"\nc')]
    with pytest.raises(SaccadeError, match=r"no column 'form' .* did you mean 'from'"):
        list(rows(path, columns=["form"]))
    for surplus in ("a,b\nc\n", "a,b\nc, d,e\n"):
        with pytest.raises(SaccadeError, match=r"u\.csv, line 2: \d columns, where line 1 has 2 \(a comma inside"):
            list(rows(put("u.csv", surplus)))
    with pytest.raises(SaccadeError, match=r"v\.csv, line 2: this is not CSV"):  # where the row begins
        list(rows(put("v.csv", 'a,b\n"c,d\ne,f\n')))


def test_tsv_knows_no_quotes(put):
    path = put("t.tsv.gz", 'he said "\tno\n"open\tquote\n  \n')
    assert list(rows(path)) == [('he said "', "no"), ('"open', "quote")]
    assert list(rows(path.rename(path.with_name("T.TSV.GZ")))) == [('he said "', "no"), ('"open', "quote")]
    with pytest.raises(SaccadeError, match=r"u\.tsv, line 2"):
        list(rows(put("u.tsv", "x\ty\nonly\n"), columns=["y"]))


def test_which_columns_of_a_table_are_read_is_never_guessed(put):
    wide = put("w.csv", "1,good day,pos\n2,bad day,neg\n")
    with pytest.raises(SaccadeError, match=r"w\.csv has 3 columns: say which are read"):
        list(rows(wide))
    assert list(rows(wide, columns=[2, 3])) == [("good day", "pos"), ("bad day", "neg")]
    with pytest.raises(SaccadeError, match=r"has 3 columns and no column 4"):
        list(rows(wide, columns=[2, 4]))
    headers = {
        "id,text,label": "['text', 'label']",
        "Label,Text": "['Text', 'Label']",
        "text,stars,label": "['text', 'label']",
        "id,phrase,class": "['phrase', 'class']",
        "text,stars": "['text', 'stars']",
    }
    for titles, named in headers.items():
        path = put("h.csv", f"{titles}\n" + ",".join("abc"[: titles.count(",") + 1]) + "\n")
        with pytest.raises(SaccadeError, match=re.escape(f"looks like a header; say so with data.columns = {named}")):
            list(rows(path))
    assert list(rows(put("k.tsv", "class\tKlasse\n"), columns=[1, 2])) == [("class", "Klasse")]
    with pytest.raises(SaccadeError, match="has two columns 'text' in its first line: rename one"):
        list(rows(put("d.csv", "text,label,text\na,b,c\n"), columns=["text", "label"]))


def test_a_cell_may_be_long(put):
    assert list(rows(put("l.csv", f"{'a' * 200_000},b\n"))) == [("a" * 200_000, "b")]


def test_what_can_be_read_once_is_not_trained_on(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SaccadeError, match="several times: save it first"):
        source.lasting(tmp_path / "pipe")


def test_jsonl(put):
    entries = [{"text": "a\nb", "label": 3}, {"label": True, "text": "c"}, {"text": None, "label": "d"}]
    path = put("t.jsonl", "\n".join(json.dumps(each) for each in entries) + "\n\n")
    skipped = Skipped()
    assert list(rows(path, columns=["text", "label"], skipped=skipped)) == [("a\nb", "3"), ("c", "true")]
    assert skipped == {"blank field": 1, "blank line": 1}
    with pytest.raises(SaccadeError, match=r"name the keys .* \(text, label\)"):
        list(rows(path))
    with pytest.raises(SaccadeError, match=r"columns have keys and no numbers: name the keys .* \(text, label\)"):
        list(rows(path, columns=[1, 2]))
    with pytest.raises(SaccadeError, match=r"line 1: there is no 'txt'; did you mean 'text'"):
        list(rows(path, columns=["txt"]))


@pytest.mark.parametrize("line", ["{", "[1]", '{"a": [1]}', '{"a": "\\ud800"}', "{}", "[" * 99991])
def test_what_is_no_row_of_json_is_told(put, line):
    path = put("w.jsonl", '{"a": "fine"}\n' + line + "\n")
    with pytest.raises(SaccadeError, match=r"w\.jsonl, line 2: "):
        list(rows(path, columns=["a"]))


def test_tables_stand_alone(put):
    with pytest.raises(SaccadeError, match=r"b\.tsv is a table"):
        rows([put("a.txt", "a\n"), put("b.tsv", "b\tc\n")])
    with pytest.raises(SaccadeError, match="no file was given"):
        rows([])


def test_rows_are_a_stream(put):
    path = put("broken.txt", b"one\ntwo\n\xff\n")
    stream = rows(path)
    assert next(stream) == ("one",)


def test_digest(put):
    assert digest(put("a.bin", b"\x00\xff" * 37)) == hashlib.sha256(b"\x00\xff" * 37).hexdigest()
