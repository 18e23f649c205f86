"""Named data sets: found, checked, or told what to put where."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from absent import data_set

from saccade.data import named
from saccade.data.generated import GENERATED
from saccade.data.source import lines
from saccade.error import SaccadeError


@pytest.mark.parametrize(("split", "count"), [("train", 29_000), ("val", 1014), ("test", 1000)])
def test_multi30k(split, count):
    data_set("multi30k")
    for pair in ("en-de", "fr-en"):
        found = list(named.rows("multi30k", split, pair))
        assert len(found) == count
    assert found[0][1].split()[0] in ("Two", "A")
    turned = list(named.rows("multi30k", split, "en-fr"))
    assert turned == [(english, french) for french, english in found]


def test_tinyshakespeare_is_cut_as_nanogpt_cuts_it():
    data_set("tinyshakespeare")
    train, val = "".join(named.text("tinyshakespeare", "train")), "".join(named.text("tinyshakespeare", "val"))
    whole = named.files("tinyshakespeare")[0].read_bytes().decode()
    assert (train, val) == (whole[: int(0.9 * len(whole))], whole[int(0.9 * len(whole)) :])
    assert (len(train), len(val)) == (1_003_854, 111_540)
    with pytest.raises(SaccadeError, match="read with `text`"):
        named.rows("tinyshakespeare", "val")


@pytest.mark.parametrize(("split", "words"), [("val", 217_646), ("test", 245_569)])
def test_wikitext_has_its_published_count_of_words(split, words):
    data_set("wikitext-2")
    (path,) = named.files("wikitext-2", split)
    assert sum(len(line.split()) + 1 for line in lines(path)) == words
    assert "".join(named.text("wikitext-2", split)).count("\n") == sum(1 for _ in lines(path))


def test_a_wrong_file_is_told(tmp_path, monkeypatch):
    data_set("tinyshakespeare")
    folder = tmp_path / "tinyshakespeare"
    folder.mkdir()
    shutil.copy(named.files("tinyshakespeare")[0], folder / "input.txt")
    (folder / "input.txt").chmod(0o644)
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    assert named.files("tinyshakespeare") == [folder / "input.txt"]
    with (folder / "input.txt").open("a") as file:
        file.write("!")
    with pytest.raises(SaccadeError, match="its sha256 should be 86c4e6aa"):
        named.files("tinyshakespeare")


@pytest.mark.parametrize("variable", ["SACCADE_DATA", "XDG_CACHE_HOME"])
def test_a_missing_file_is_told_with_its_place_and_hash(tmp_path, monkeypatch, variable):
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(variable, str(tmp_path))
    place = tmp_path / "multi30k" if variable == "SACCADE_DATA" else tmp_path / "saccade" / "multi30k"
    with pytest.raises(SaccadeError) as told:
        named.files("multi30k", "val", "de-en")
    assert f"{place / 'val.de.gz'} (sha256 f0cba2f9" in str(told.value)
    assert "github.com/multi30k/dataset" in str(told.value)


def test_a_wrong_name_is_told():
    with pytest.raises(SaccadeError, match="no data set 'multi30'; did you mean 'multi30k'"):
        named.files("multi30")
    with pytest.raises(SaccadeError, match="no split 'valid'; did you mean 'val'"):
        named.files("wikitext-2", "valid")
    with pytest.raises(SaccadeError, match="no pair 'en-it'"):
        named.files("multi30k", "train", "en-it")
    with pytest.raises(SaccadeError, match="it is plain text"):
        named.files("wikitext-2", "train", "en-de")
    with pytest.raises(SaccadeError, match="read with `rows`"):
        named.text("multi30k")


def test_every_split_names_files_with_a_hash():
    for known in named.DATA.values():
        sides = {side for pair in known.pairs for side in pair.split("-")} or {""}
        split = [each for files in known.splits.values() for each in files.split()]
        named_files = {file.format(side) for file in split for side in sides}
        assert named_files == set(known.files)
        assert all(len(each) == 64 for each in known.files.values())


def test_what_is_there_and_what_is_missing(tmp_path, monkeypatch, command):
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    (tmp_path / "wikitext-2").mkdir()
    (tmp_path / "wikitext-2" / "test.txt.gz").write_bytes(b"another")
    monkeypatch.setitem(named.DATA["wikitext-2"].files, "valid.txt.gz", hashlib.sha256(b"this").hexdigest())
    cached = tmp_path / "cache" / "saccade" / "wikitext-2"
    cached.mkdir(parents=True)
    (cached / "valid.txt.gz").write_bytes(b"this")
    found = {each.file: (each.state, each.path) for each in named.states("wikitext-2")}
    assert found == {
        "train.txt.gz": ("missing", str(tmp_path / "wikitext-2" / "train.txt.gz")),
        "valid.txt.gz": ("there", str(cached / "valid.txt.gz")),
        "test.txt.gz": ("another", str(tmp_path / "wikitext-2" / "test.txt.gz")),
    }
    told = command("list", "data").stdout
    assert f"looked for in {tmp_path} and then in {cached.parent}" in told
    assert "data.name=wikitext-2: 1 of 3 files are there" in told
    assert "source: github.com/multi30k/dataset" in told
    assert "licence: CC BY-SA 3.0" in told
    (line,) = [each for each in told.splitlines() if "train.txt.gz" in each]
    assert line.split()[0] == "missing"
    assert line.endswith("sha256 0ab79876cf89ff5fea1f44c00e00acba49493ec16ea7b0729eddb61162c62644")
    entries = {each["name"]: each for each in json.loads(command("list", "data", "--json").stdout)["data"]}
    assert entries.keys() == {*named.DATA, *GENERATED}
    assert [each["state"] for each in entries["wikitext-2"]["files"]] == ["missing", "there", "another"]
    assert entries["wikitext-2"]["looked_in"] == [str(tmp_path / "wikitext-2"), str(cached)]
    assert entries["dates"]["files"] == []


def test_easy_vqa_holds_out_pictures_not_questions():
    data_set("easy-vqa")
    rows = {split: list(named.rows_of("easy-vqa", split, None, None)) for split in ("train", "val", "test")}
    assert sum(map(len, rows.values())) == 38_575 + 9673
    assert len(rows["test"]) == 9673
    pictures = {split: {row[0].ctypes.data for row in each} for split, each in rows.items()}
    assert [len(each) for each in pictures.values()] == [3600, 400, 1000]
    assert {row[2] for row in rows["val"]} == {row[2] for row in rows["train"]}
    assert rows["train"][0][0].shape == (64, 64, 3)
    assert rows["train"][0][1:] == ("what is the blue shape?", "rectangle")
    group = named.data("easy-vqa").group
    assert {group(row) for row in rows["test"]} == {"yes or no", "colour or shape"}
