"""`saccade words`: training on files, asking a folder, and one sentence for what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from saccade import SaccadeError, load
from saccade.cli import app
from saccade.config import read
from saccade.words import Vectors
from saccade.words.setting import Settings

TEXT = "the king rules the land\nthe queen rules the land\n" * 30


def run(*words: object) -> str:
    found = CliRunner().invoke(app, ["words", *map(str, words)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def refused(*words: object) -> str:
    found = CliRunner().invoke(app, ["words", *map(str, words)])
    assert isinstance(found.exception, Exception)
    return str(found.exception)


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    return file


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "glove"])
def test_train_and_ask(text, tmp_path, kind):
    told = json.loads(run(text, text, "--out", tmp_path / "v", "--kind", kind, "-o", "width=7", "--json"))
    assert told == {"folder": str(tmp_path / "v"), "vocab": 5, "width": 7, "words": 600}
    found = json.loads(run(tmp_path / "v", "--nearest", "king", "-n", 3, "--json"))
    assert len(found) == 3
    assert {each["word"] for each in found} <= {"the", "rules", "land", "queen"}
    assert len(run(tmp_path / "v", "--analogy", "king", "queen", "rules").splitlines()) == 2


def test_plain_words_are_told(text, tmp_path):
    assert "5 words, width 3, of a text of 300 words" in run(text, "--out", tmp_path / "v", "-o", "width=3")
    Vectors(["a", "b"], np.eye(2, dtype=np.float32)).save(tmp_path / "two")
    assert run(tmp_path / "two", "--nearest", "a") == " 0.0000  b\n"


def test_vectors_are_no_run(text, tmp_path):
    run(text, "--out", tmp_path / "v", "-o", "width=3")
    with pytest.raises(SaccadeError, match="v is no run: it holds word vectors, and no model"):
        load(tmp_path / "v")


def test_what_is_wrong_is_told(text, tmp_path):
    assert "width" in refused(text, "--out", tmp_path / "v", "-o", "width=100000000000")
    assert "--out is missing" in refused(text)
    assert "not empty" in refused(text, "--out", tmp_path)
    assert "did you mean 'width'" in refused(text, "--out", tmp_path / "v", "-o", "widht=3")
    assert "kind" in refused(text, "--out", tmp_path / "v", "--kind", "bag")
    assert "is not there" in refused(tmp_path / "no.txt", "--out", tmp_path / "v")
    assert "--nearest asks a folder" in refused(text, "--nearest", "king")
    assert "--out, --kind and -o are for training" in refused(tmp_path, "--out", tmp_path / "v")
    assert "ask one thing" in refused(tmp_path)
    assert "no folder of word vectors" in refused(tmp_path, "--nearest", "king")
    assert not (tmp_path / "v").exists(), "nothing half made is left"


@pytest.mark.parametrize(("kind", "option"), [("skipgram", "enough=5"), ("cbow", "enough=5"), ("glove", "negative=3")])
def test_a_setting_of_another_kind_is_refused(kind, option):
    with pytest.raises(SaccadeError, match=f"{option.split('=')[0]} does nothing for {kind}"):
        read(Settings, {"kind": kind, option.split("=")[0]: int(option.split("=")[1])})
