"""Sounds with events in files: tables and Audacity's labels; what is no event is named, counted and left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import own
import pytest

from saccade.data import events
from saccade.data.own import own_files
from saccade.data.reader import ReadRequest, reader_of
from saccade.data.skipped import Skipped
from saccade.error import SaccadeError
from saccade.field.events import Events
from saccade.field.label import Label
from saccade.field.recording import Recording
from saccade.field.sound import Sound
from saccade.field.text.source import SourceText
from saccade.recipes.read import from_values

KINDS = {"source": Sound, "events": Events}


def sound(path: Path, seconds: float = 2.0) -> None:
    path.write_bytes(Recording(np.ones(int(8000 * seconds), np.int16), 8000).wav())


def read(*files, strict=False, columns=()):
    """The rows of files by the reader that they have, as names and lists, and what was left out."""
    request = ReadRequest([*map(str, files)], KINDS, "detect", [*columns], Skipped(), strict)
    rows = list(reader_of(request.files, request).rows(request))
    found = {path.name: [*zip(e.labels, *e.corners.T.tolist(), strict=True)] for path, e in rows}
    assert all(each.frame.tolist() == [0, 2.0] for _, each in rows)
    return found, request.skipped


TABLES = {
    "events.csv": "file,label,begin,end\na.wav,cat,0.5,1\nb.wav,,,\na.wav,dog,0.25,1.5\n",
    "events.tsv": "onset\toffset\tfilename\tevent_label\n0.5\t1\ta.wav\tcat\n\t\tb.wav\t\n0.25\t1.5\ta.wav\tdog\n",
    "events.jsonl": "\n".join(
        json.dumps(dict(zip(("path", "class", "start", "stop"), row, strict=True)))
        for row in (("a.wav", "cat", 0.5, 1), ("b.wav", None, None, None), ("a.wav", "dog", 0.25, 1.5))
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_a_row_for_each_event(name, tmp_path):
    for each in "ab":
        sound(tmp_path / f"{each}.wav")
    (tmp_path / name).write_text(TABLES[name])
    found, skipped = read(tmp_path / name)
    assert found == {"a.wav": [("dog", 0.25, 1.5), ("cat", 0.5, 1.0)], "b.wav": []}
    assert not skipped


def test_columns_can_be_named(tmp_path):
    sound(tmp_path / "a.wav")
    (tmp_path / "t.csv").write_text("a,b,c,d,e\ncat,0.5,1,a.wav,?\n")
    assert read(tmp_path / "t.csv", columns=["d", "a", "b", "c"])[0] == {"a.wav": [("cat", 0.5, 1.0)]}
    (tmp_path / "u.csv").write_text("cat,0.5,1,a.wav,?\n")
    assert read(tmp_path / "u.csv", columns=[4, 1, 2, 3])[0] == {"a.wav": [("cat", 0.5, 1.0)]}
    with pytest.raises(SaccadeError, match="a first line such as file,label,begin,end; here it is d, a"):
        read(tmp_path / "t.csv", columns=["d", "a"])
    with pytest.raises(SaccadeError, match="a first line such as file,label,begin,end; here it is a, b, c, d, e"):
        read(tmp_path / "t.csv")


BAD = {
    "cat,1,1": "an event of no length",
    "cat,1.5,1": "an event of no length",
    "cat,nan,1": "an event whose begin or end is no number",
    "cat,0,inf": "an event whose begin or end is no number",
    "cat,0,soon": "an event whose begin or end is no number",
    "cat,0,": "an event whose begin or end is no number",
    "cat,2,3": "an event outside its sound",
    "cat,-2,-1": "an event outside its sound",
    ",0,1": "an event without a label",
}


@pytest.mark.parametrize("row", BAD)
def test_what_is_no_event_is_left_out_and_named(row, tmp_path):
    sound(tmp_path / "a.wav")
    (tmp_path / "t.csv").write_text(f"file,label,begin,end\na.wav,dog,0.5,1\na.wav,{row}\n")
    found, skipped = read(tmp_path / "t.csv")
    assert found == {"a.wav": [("dog", 0.5, 1.0)]}
    assert skipped.described() == [f"1: {BAD[row]} (t.csv, line 3)"]
    with pytest.raises(SaccadeError, match=rf"t.csv, line 3: .* a.wav of 2 seconds is {BAD[row]}; mend it"):
        read(tmp_path / "t.csv", strict=True)


def test_what_sticks_out_is_cut_off_and_counted(tmp_path):
    sound(tmp_path / "a.wav")
    (tmp_path / "t.csv").write_text("file,label,begin,end\na.wav,cat,-1,0.5\na.wav,dog,1.5,2.5\na.wav,cow,1,2.004\n")
    found, skipped = read(tmp_path / "t.csv")
    assert found == {"a.wav": [("cat", 0.0, 0.5), ("cow", 1.0, 2.0), ("dog", 1.5, 2.0)]}
    assert skipped.described() == [f"2: {events.STICKS_OUT} (t.csv, line 2 and t.csv, line 3)"]


def test_sounds_that_are_missing_or_none_are_named(tmp_path):
    sound(tmp_path / "a.wav")
    (tmp_path / "bad.wav").write_text("no sound")
    (tmp_path / "t.csv").write_text("file,label,begin,end\nb.wav,cat,0,1\nbad.wav,cat,0,1\na.wav,cat,0,1\n")
    found, skipped = read(tmp_path / "t.csv")
    assert [*found] == ["a.wav"]
    assert {*skipped} == {"a sound that is not there", "a file that is no sound"}
    with pytest.raises(SaccadeError, match=r"b.wav is not there, and it should be a sound; mend it"):
        read(tmp_path / "t.csv", strict=True)
    (tmp_path / "a.wav").unlink()
    (tmp_path / "bad.wav").unlink()
    with pytest.raises(SaccadeError, match=r"nothing of .*t.csv can be read; the first problem: .*b.wav is not there"):
        read(tmp_path / "t.csv")


def test_labels_of_audacity(tmp_path):
    for each in "abcd":
        sound(tmp_path / f"{each}.wav")
    (tmp_path / "a.txt").write_text("0.500000\t1.000000\tcat\n\\\t100.0\t200.0\n0,25\t1,5\tbig dog\n\n1\t1\ta point\n")
    (tmp_path / "b.txt").write_text("")
    (tmp_path / "c.txt").write_bytes("\ufeff0\t1\tcat\r\n".encode())
    (tmp_path / "lost.txt").write_text("0\t1\tcat\n")
    (tmp_path / "README.txt").write_text("These sounds were made on a Monday.\n")
    found, skipped = read(tmp_path)
    assert found == {"a.wav": [("big dog", 0.25, 1.5), ("cat", 0.5, 1.0)], "b.wav": [], "c.wav": [("cat", 0.0, 1.0)]}
    assert sorted(skipped.described()) == [
        "1: a sound without a file of labels (d.wav)",
        "1: an event of no length (a.txt, line 5)",
        "1: labels without a sound (lost.txt)",
    ]


def test_the_hash_of_files_is_that_of_their_sounds_too(tmp_path):
    own.events(tmp_path)
    own.spoken(tmp_path)
    before = events.table_digest(tmp_path / "events.csv"), events.folder_digest(tmp_path / "spoken")
    assert before == (events.table_digest(tmp_path / "events.csv"), events.folder_digest(tmp_path / "spoken"))
    other = tmp_path / "other.csv"
    other.write_text((tmp_path / "events.csv").read_text().replace("file,label", "a,b"))
    titled = events.table_digest(other)
    sound(tmp_path / "beeps7.wav")
    assert events.table_digest(other) != titled, "whatever the columns are called"
    (tmp_path / "spoken" / "3.txt").write_text("0\t1\tlow\n")
    after = events.table_digest(tmp_path / "events.csv"), events.folder_digest(tmp_path / "spoken")
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_both_ways_of_writing_events_say_the_same(tmp_path):
    own.events(tmp_path)
    own.spoken(tmp_path)
    rows = {}
    for file in ("events.csv", "spoken"):
        request = ReadRequest([str(tmp_path / file)], KINDS, "detect", [], Skipped())
        rows[file] = list(reader_of(request.files, request).rows(request))
        assert not request.skipped
    by_name = {path.stem: found for path, found in rows["spoken"]}
    assert len(rows["events.csv"]) == len(by_name) == 60
    for path, found in rows["events.csv"]:
        same = by_name[path.stem.removeprefix("beeps")]
        assert found.labels == same.labels
        assert np.array_equal(found.corners, same.corners)
    assert any(not found.labels for found in by_name.values())


def test_other_recipes_are_told_what_the_files_are(tmp_path):
    own.events(tmp_path)
    own.spoken(tmp_path)
    for file, what in (("events.csv", "a table of sounds with events"), ("spoken", "a folder of sounds with")):
        request = ReadRequest([str(tmp_path / file)], {"source": SourceText, "label": Label}, "classify", [])
        with pytest.raises(SaccadeError, match=f"this is {what}"):
            reader_of(request.files, request)
    request = ReadRequest([str(tmp_path / "events.csv")], {"source": Sound, "label": Label}, "classify", [])
    assert reader_of(request.files, request).what.startswith("a table (")


def test_a_table_of_events_has_the_header_that_it_needs(tmp_path):
    """Nobody takes its first event for a header, as in a table whose columns have no names."""
    own.events(tmp_path)
    model = {"width": 8, "heads": 1, "encoder": 1, "decoder": 1}
    data = {"files": [str(tmp_path / "events.csv")]}
    recipe = from_values({"task": "detect", "data": data, "model": model, "train": {"steps": 1}})
    supply = own_files(recipe, KINDS)
    assert not supply.headed
    sides = {name: list(supply.rows(name)) for name in ("train", "val")}
    assert sum(map(len, sides.values())) == 60
    assert sides["val"]
    assert len({path.name for rows in sides.values() for path, _ in rows}) == 60
    assert "data.files[0]" in supply.made_of()
