"""Named data sets: found, checked, or told what to put where."""

from __future__ import annotations

import os
import shutil

import pytest

from saccade.data import named
from saccade.data.source import lines
from saccade.error import SaccadeError

here = pytest.mark.skipif("SACCADE_DATA" not in os.environ, reason="SACCADE_DATA names no folder of data sets")


@here
@pytest.mark.parametrize(("split", "count"), [("train", 29_000), ("val", 1014), ("test", 1000)])
def test_multi30k(split, count):
    for pair in ("en-de", "fr-en"):
        found = list(named.rows("multi30k", split, pair))
        assert len(found) == count
    assert found[0][1].split()[0] in ("Two", "A")
    turned = list(named.rows("multi30k", split, "en-fr"))
    assert turned == [(english, french) for french, english in found]


@here
def test_tinyshakespeare_is_cut_as_nanogpt_cuts_it():
    train, val = "".join(named.text("tinyshakespeare", "train")), "".join(named.text("tinyshakespeare", "val"))
    whole = named.files("tinyshakespeare")[0].read_bytes().decode()
    assert (train, val) == (whole[: int(0.9 * len(whole))], whole[int(0.9 * len(whole)) :])
    assert (len(train), len(val)) == (1_003_854, 111_540)
    with pytest.raises(SaccadeError, match="read with `text`"):
        named.rows("tinyshakespeare", "val")


@here
@pytest.mark.parametrize(("split", "words"), [("val", 217_646), ("test", 245_569)])
def test_wikitext_has_its_published_count_of_words(split, words):
    (path,) = named.files("wikitext-2", split)
    assert sum(len(line.split()) + 1 for line in lines(path)) == words
    assert "".join(named.text("wikitext-2", split)).count("\n") == sum(1 for _ in lines(path))


@here
def test_a_wrong_file_is_told(tmp_path, monkeypatch):
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
