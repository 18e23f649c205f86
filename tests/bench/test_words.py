"""The bench of word vectors: its lines, with gensim and without."""

from __future__ import annotations

import pytest

from saccade.bench import words


@pytest.fixture(autouse=True)
def small(monkeypatch):
    texts = [["the", "king", "rules", "the", "land"], ["the", "queen", "rules", "a", "land"]] * 20
    scored = [("king", "queen", 9.0), ("king", "land", 3.0), ("rules", "the", 1.0)]
    monkeypatch.setattr(words, "wikitext", lambda: texts)
    monkeypatch.setattr(words, "found", lambda *file: file)
    monkeypatch.setattr(words, "pairs", lambda file: scored)


def test_without_the_peer_its_column_is_empty(monkeypatch):
    monkeypatch.setattr(words, "find_spec", lambda name: None)
    lines = list(words.rows(seeds=(0, 1), epochs=1))
    assert [line["unit"] for line in lines] == ["words/s", "rho", "rho"] * 2
    assert all(line["theirs"] is None and line["ratio"] is None for line in lines)
    assert [line["case"].split(",")[0] for line in lines] == ["skipgram"] * 3 + ["cbow"] * 3
    assert all(-1 <= line["ours"] <= 1 for line in lines if line["unit"] == "rho")


def test_beside_the_peer_more_is_better():
    for line in words.rows(seeds=(0,), epochs=1):
        assert line["peer"] == "gensim"
        if line["unit"] == "words/s":
            assert line["ratio"] == pytest.approx(line["ours"] / line["theirs"], abs=1e-3)
            assert line["ours"] > 0
