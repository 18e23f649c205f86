"""Corpora: arrays on the disk, there whole or not at all; the report; the split."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from saccade.data import corpus
from saccade.data.leakage import leak
from saccade.data.report import counted, report
from saccade.data.skipped import Skipped
from saccade.data.split import split
from saccade.error import SaccadeError
from saccade.field.image import Image, ImageConfig
from saccade.field.label import Label
from saccade.field.text.config import SourceTextConfig, StreamedTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.text import Text
from saccade.field.text.text_field import TextField

ROWS = [(f"the eye {n} jumps" + " on" * (n % 7), "yes" if n % 3 else "no") for n in range(2003)]
TEXT = Text.train((row[0] for row in ROWS), "words")
FIELDS = {"source": SourceText(TEXT, SourceTextConfig(), needs="pooled"), "label": Label(["no", "yes"])}


def unread():
    """Rows that nobody may read."""
    raise AssertionError("the rows were read")
    yield


def test_every_token_comes_back(tmp_path):
    seen: list[int] = []
    made = corpus.build(tmp_path / "c", iter(ROWS), FIELDS, key="k", progress=seen.append)
    ids = TEXT.encode([row[0] for row in ROWS])
    assert len(made) == 2003
    assert list(made.columns) == ["source", "label"]
    source, label = made.column("source"), made.column("label")
    assert [each.tolist() for each in source.take(range(2003))["tokens"]] == ids
    assert label.take([1, 0, 3])["number"].tolist() == [1, 0, 0]
    assert source.take(np.array([], int)) == {"tokens": []}
    assert source.lengths().tolist() == [len(each) for each in ids]
    assert label.lengths().tolist() == [1] * 2003
    assert source.array("tokens").tolist() == [token for each in ids for token in each]
    assert source.array("tokens").dtype == np.uint16
    assert seen == [1000, 2000, 2003]


def test_a_large_vocabulary_takes_four_bytes(tmp_path):
    class Large(TextField):
        def __init__(self, vocab):
            self.text = SimpleNamespace(vocab=vocab)

        def encode(self, texts):
            return {"tokens": [[self.text.vocab - 1, int(each)] for each in texts]}

        collate = None

    for vocab, kind in ((65536, np.uint16), (65537, np.uint32)):
        made = corpus.build(tmp_path / str(vocab), [("37",), ("41",)], {"x": Large(vocab)}, key="k")
        assert made.column("x").array("tokens").dtype == kind
        assert made.column("x").array("tokens").tolist() == [vocab - 1, 37, vocab - 1, 41]


def test_it_is_made_once(tmp_path):
    made = corpus.build(tmp_path / "c", ROWS, FIELDS, key="k")
    again = corpus.build(tmp_path / "c", unread(), FIELDS, key="k")
    assert again.fingerprint == made.fingerprint
    opened = corpus.open(tmp_path / "c", "k").column("source").array("tokens")
    assert opened.tolist() == made.column("source").array("tokens").tolist()
    with pytest.raises(SaccadeError, match="made of other files"):
        corpus.open(tmp_path / "c", "other")
    other = corpus.build(tmp_path / "c", ROWS[:31], FIELDS, key="other")
    assert len(other) == 31
    assert other.fingerprint != made.fingerprint
    assert corpus.build(tmp_path / "d", ROWS, FIELDS, key="different").fingerprint == made.fingerprint
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c", "d"]


@pytest.mark.parametrize("harm", ["cut", "flip", "gone", "meta", "half"])
def test_damage_is_told_and_mended(tmp_path, harm):
    made = corpus.build(tmp_path / "c", ROWS, FIELDS, key="k")
    before, file, meta = made.fingerprint, tmp_path / "c" / "source.tokens", tmp_path / "c" / "meta.json"
    del made
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    elif harm == "meta":
        meta.write_text(meta.read_text()[:-37])
    elif harm == "half":
        meta.write_text("{}")
    else:
        file.write_bytes(content[:-2] if harm == "cut" else content[:5] + bytes([content[5] ^ 1]) + content[6:])
    with pytest.raises(SaccadeError, match="damaged"):
        corpus.open(tmp_path / "c", "k")
    assert corpus.build(tmp_path / "c", ROWS, FIELDS, key="k").fingerprint == before


def test_a_crash_leaves_nothing_that_looks_whole(tmp_path):
    code = f"""
import os, sys
from pathlib import Path
from saccade.data import corpus
from saccade.field.text.config import SourceTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.text import Text
def rows():
    for n in range(5003):
        yield (f"eye {{n}}",)
    os._exit(9)
field = SourceText(Text.train(["eye", "1"]), SourceTextConfig(), needs="decoder")
corpus.build(Path({str(tmp_path)!r}) / "c", rows(), {{"x": field}}, key="k")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 9, done.stderr
    assert not (tmp_path / "c").exists()
    with pytest.raises(SaccadeError, match="holds no corpus"):
        corpus.open(tmp_path / "c", "k")


def test_an_error_leaves_the_old_corpus(tmp_path):
    before = corpus.build(tmp_path / "c", ROWS, FIELDS, key="k").fingerprint

    def broken():
        yield from ROWS[:1501]
        raise SaccadeError("a broken line")

    with pytest.raises(SaccadeError, match="a broken line"):
        corpus.build(tmp_path / "c", broken(), FIELDS, key="new")
    assert [each.name for each in tmp_path.iterdir()] == ["c"]
    assert corpus.open(tmp_path / "c", "k").fingerprint == before


@pytest.mark.proof
def test_who_comes_second_leaves_what_is_there(tmp_path):
    """Two trainings make the same corpus at once: the files that the first reads are not taken from under it."""

    def rows():
        yield from ROWS[:1000]
        other = "import sys; from test_corpus import *; corpus.build(sys.argv[1], iter(ROWS), FIELDS, key='k')"
        subprocess.run([sys.executable, "-c", other, tmp_path / "c"], cwd=Path(__file__).parent, check=True)
        first.append((tmp_path / "c" / "meta.json").stat().st_ino)
        yield from ROWS[1000:]

    first: list[int] = []
    made = corpus.build(tmp_path / "c", rows(), FIELDS, key="k")
    assert len(made) == len(ROWS)
    assert first == [(tmp_path / "c" / "meta.json").stat().st_ino]
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.tex").write_text("years of work")
    with pytest.raises(SaccadeError, match="is no corpus"):
        corpus.build(tmp_path / "c", unread(), FIELDS, key="k")
    assert (tmp_path / "c" / "thesis.tex").read_text() == "years of work"


def test_what_does_not_fit_is_counted(tmp_path):
    skipped = Skipped({"blank line": 3})
    rows = [("eye", "yes"), ("eye jumps on", "no"), (" ", "no"), ("on on on on", "no")]
    made = corpus.build(tmp_path / "c", rows, FIELDS, key="k", limits={"source": 3}, skipped=skipped)
    assert len(made) == 2
    expected = {"blank line": 3, "no tokens": 1, "longer than 3 tokens": 1}
    assert made.skipped == skipped == expected
    assert corpus.open(tmp_path / "c").skipped == expected
    with pytest.raises(SaccadeError, match="no example is left: 2 longer than 2 tokens"):
        corpus.build(tmp_path / "d", [rows[1], rows[3]], FIELDS, key="k", limits={"source": 2})
    assert not (tmp_path / "d").exists()


def test_texts_can_be_closed(tmp_path):
    field = StreamedText(TEXT, StreamedTextConfig(), closed=True)
    made = corpus.build(tmp_path / "c", [("eye",), ("",), ("on on",)], {"x": field}, key="k")
    eye, on = TEXT.encode(["eye on"])[0]
    assert made.column("x").array("tokens").tolist() == [eye, 2, 2, on, on, 2]
    endless = Text(Tokenizer(models.WordLevel({"eye": 0, "on": 1}, unk_token="on")))
    assert StreamedText(endless, StreamedTextConfig()).encode(["eye"]) == {"tokens": [[0]]}
    with pytest.raises(SaccadeError, match="no token for the end, so its texts cannot be closed"):
        StreamedText(endless, StreamedTextConfig(), closed=True)


def test_what_is_wrong_is_told(tmp_path):
    made = corpus.build(tmp_path / "c", ROWS, FIELDS, key="k")
    with pytest.raises(SaccadeError, match="no column 'sauce'; did you mean 'source'"):
        made.column("sauce")
    with pytest.raises(SaccadeError, match="'label' has no array 'tokens'; there are: number"):
        made.column("label").array("tokens")
    for index in (2003, -1):
        with pytest.raises(SaccadeError, match="there is no example"):
            made.column("source").take([0, index])
    with pytest.raises(SaccadeError, match="1 columns, but there are 2 fields"):
        corpus.build(tmp_path / "d", [("eye",)], FIELDS, key="k")


def test_the_key_knows_fields_and_options():
    first = corpus.key(fields={"tokenizer.json": "37"}, limits={"source": 37}, made_of=["one"])
    assert corpus.key(made_of=["one"], limits={"source": 37}, fields={"tokenizer.json": "37"}) == first
    others = [
        corpus.key(fields={"tokenizer.json": "37"}, limits={"source": 41}, made_of=["one"]),
        corpus.key(fields={"tokenizer.json": "41"}, limits={"source": 37}, made_of=["one"]),
        corpus.key(fields={"tokenizer.json": "37"}, limits={"source": 37}, made_of=["two"]),
    ]
    assert len({first, *others}) == 4


@pytest.mark.proof
def test_memory_stays_constant(tmp_path):
    line = " ".join(f"{word:x}" * 5 for word in range(3001, 3053))  # about 800 characters
    field, size = SourceText(Text.train([line], "split"), SourceTextConfig(), needs="pooled"), 15_000_000 // len(line)

    def rows():
        yield from ((f"{number} {line}",) for number in range(size))
        yield from ((f"{number} {line * 83}",) for number in range(size // 83))

    tracemalloc.start()
    made = corpus.build(tmp_path / "c", rows(), {"x": field}, key="k")
    column = made.column("x")
    read = sum(len(column.take([each])["tokens"][0]) for each in range(0, size, 997))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == 53 * len(range(0, size, 997))
    assert column.array("tokens").nbytes > 3_500_000
    assert peak < 3_000_000


def test_report(tmp_path):
    rows = [("eye " * (n + 1), "yes") for n in range(100)] + [("zebra", "no")]
    skipped = Skipped({"blank line": 1234})
    made = corpus.build(tmp_path / "c", rows, FIELDS, key="k", limits={"source": 100}, skipped=skipped)
    told = report(made, FIELDS)
    assert told.examples == 101
    assert told.lines() == [
        "101 examples",
        "  source: 5,051 tokens, length 50 (median) 95 (95 %) 100 (longest), "
        f"vocabulary {TEXT.vocab:,}, unknown 0.02%",  # 1 of 5,051
        "  label: 2 labels: 'no' 1, 'yes' 100",
        "  skipped 1,234: blank line",
    ]
    json.dumps(told.skipped)
    assert report(made, FIELDS, whole=True).lines()[:2] == [
        "one text",
        f"  source: 5,051 tokens, vocabulary {TEXT.vocab:,}, unknown 0.02%",
    ]
    assert (counted(1, "text"), counted(2003, "text")) == ("1 text", "2,003 texts")


def told(row):
    return SourceText.identity(row[0])


def parted(rows, side, **options):
    return split(rows, side, told, **options)


def test_a_split_keeps_sources_together():
    rows = [(f"source {n % 1009}", f"target {n}") for n in range(5003)]
    train, val = (list(parted(rows, each, share=0.1, seed=7)) for each in ("train", "val"))
    assert sorted(train + val) == sorted(rows)
    assert not {row[0] for row in train} & {row[0] for row in val}
    assert 350 < len(val) < 650
    assert leak((told(row) for row in train), (told(row) for row in val)) == 0
    assert list(parted(rows[::-1], "val", share=0.1, seed=7)) == val[::-1]
    assert list(parted(rows, "val", share=0.1, seed=8)) != val
    assert set(val) <= set(parted(rows, "val", share=0.2, seed=7))


def test_leaks_are_counted():
    train = (told((f"s{n}",)) for n in range(100_003))
    assert leak(train, [told((each,)) for each in ("s1", " s99991 ", "s1", "t", "s100003", "u")]) == 2
    assert leak(iter([b"a", b"b"]), iter([])) == 0


@pytest.mark.parametrize(("side", "share"), [("train", 0.0), ("val", 1.0), ("valid", 0.1)])
def test_a_split_without_sense_is_refused(side, share):
    with pytest.raises(SaccadeError, match=r"of a split|leaves a side empty"):
        parted([], side, share=share)


def test_equal_pictures_are_kept_once(tmp_path):
    draw = np.random.default_rng(0)
    pictures = [draw.integers(0, 256, (8, 8, 3)).astype(np.uint8) for _ in range(5)]
    order = [0, 1, 0, 0, 2, 1, 4, 4, 3, 0, 2]
    raws = [pictures[each].copy() for each in order]
    config = ImageConfig(size=8)
    field = Image.load(config, {"c.image.json": Image.made(config, raws)}, "c", None)
    rows = [(raw, str(number)) for number, raw in enumerate(raws)]
    fields = {"c": field, "y": Label([str(number) for number in range(20)])}
    made = corpus.build(tmp_path / "corpus", rows, fields, key="k")
    assert len(made) == len(order)
    assert (tmp_path / "corpus" / "c.pixels").stat().st_size == 5 * 8 * 8 * 3
    for column in (made.column("c"), corpus.open(tmp_path / "corpus", "k").column("c")):
        assert column.lengths().tolist() == [1] * len(order)
        taken = column.take(np.array([3, 10, 7]))["pixels"]
        np.testing.assert_array_equal(taken, np.array(field.encode([raws[3], raws[10], raws[7]])["pixels"]))
        everything = column.take(np.arange(len(order)))["pixels"]
        np.testing.assert_array_equal(everything, np.array(field.encode(raws)["pixels"]))
    assert made.column("y").take([3])["number"].tolist() == [3]


def test_what_is_left_out_leaves_no_picture_behind(tmp_path, monkeypatch):
    """An example that another column leaves out: its picture is written only where a kept row has it too."""
    monkeypatch.setattr(corpus, "ROWS", 2)
    pictures = [np.full((8, 8), shade, np.uint8) for shade in (10, 90, 200)]
    config = ImageConfig(size=8)
    image = Image.load(config, {"c.image.json": Image.made(config, pictures)}, "c", None)
    text = SourceText(Text.train(["a b c d e f g"], "words", vocab=20), SourceTextConfig(), needs="pooled")
    rows = [
        (pictures[0], "a b c d"),
        (pictures[1], "a"),
        (pictures[1], "b"),
        (pictures[0], "c"),
        (pictures[2], "a b c"),
    ]
    made = corpus.build(tmp_path / "corpus", rows, {"c": image, "q": text}, key="k", limits={"q": 2})
    assert len(made) == 3
    assert (tmp_path / "corpus" / "c.pixels").stat().st_size == 2 * 64
    found = made.column("c").take(np.arange(3))["pixels"][:, 0, 0, 0]
    assert found.tolist() == [90, 90, 10]
