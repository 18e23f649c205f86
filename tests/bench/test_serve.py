"""The bench of serving: both servers write what they are asked for, and its lines have the promised fields."""

from __future__ import annotations

import pytest

from saccade.bench import serve
from saccade.bench.work import GPT2
from saccade.error import SaccadeError

SMALL = {**GPT2, "vocab": 307, "width": 32, "heads": 2, "decoder": 2}
FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio"}


def test_a_ratio_is_the_median_of_the_rounds():
    ours = [serve.Turn(rate=rate, first=first) for rate, first in ((6, 2.0), (5, 1.0), (9, 1.0))]
    theirs = [serve.Turn(rate=rate, first=first) for rate, first in ((2, 4.0), (5, 6.0), (3, 3.0))]
    rate, first = serve.compared("case", "peer", ours, theirs)
    assert (rate["ours"], rate["theirs"], rate["ratio"], rate["unit"]) == (6, 3, 3, "tokens/s")
    assert (first["ours"], first["theirs"], first["ratio"], first["unit"]) == (1000, 4000, 3, "ms")


@pytest.mark.proof
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
    assert min(race["ours"], race["theirs"], race["ratio"]) > 0
    first = found["gpt2, smaller, 1 client x 7 tokens, first token", peer]
    assert first["unit"] == "ms"
    assert first["ours"] > 0
    absent = found["gpt2, smaller, 3 clients x 7 tokens", "nobody"]
    assert (absent["ours"], absent["theirs"], absent["ratio"]) == (race["ours"], None, None)


@pytest.mark.proof
def test_a_server_that_does_not_start_is_told(tmp_path):
    with pytest.raises(SaccadeError, match="did not start"):
        serve.Ours(tmp_path / "nothing")
