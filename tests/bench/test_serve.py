"""The bench of serving: both servers write what they are asked for, and its lines have the promised fields."""

from __future__ import annotations

import pytest

from saccade.bench import serve
from saccade.bench.work import GPT2
from saccade.error import SaccadeError

SMALL = {**GPT2, "vocab": 307, "width": 32, "heads": 2, "decoder": 2}
FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio"}


def test_the_lines_of_a_race_and_of_an_absent_peer(monkeypatch):
    peer = "transformers serve"
    monkeypatch.setattr(serve, "PEERS", {peer: serve.PEERS[peer], "nobody": ()})
    monkeypatch.setattr(serve, "present", lambda: {peer: serve.PEERS[peer]})
    lines = list(serve.rows(0.0, SMALL, clients=(1, 3), tokens=7))
    assert all(set(line) == FIELDS for line in lines)
    found = {(line["case"], line["peer"]): line for line in lines}
    assert len(found) == len(lines) == 8
    race = found["gpt2, smaller, 3 clients x 7 tokens", peer]
    assert race["unit"] == "tokens/s"
    assert race["ratio"] == pytest.approx(race["ours"] / race["theirs"], rel=0.9)
    first = found["gpt2, smaller, 1 client x 7 tokens, first token", peer]
    assert first["unit"] == "ms"
    assert first["ours"] > 0
    absent = found["gpt2, smaller, 3 clients x 7 tokens", "nobody"]
    assert (absent["ours"], absent["theirs"], absent["ratio"]) == (race["ours"], None, None)


def test_a_server_that_does_not_start_is_told(tmp_path):
    with pytest.raises(SaccadeError, match="did not start"):
        serve.Ours(tmp_path / "nothing")
