"""The bench of writing: all sides write the same, its lines have the promised fields, and a peer's absence is said."""

from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

from saccade.bench import decode
from saccade.bench import work as works
from saccade.bench.race import BenchProcess, row
from saccade.cli import app

SMALL = {"vocab": 211, "width": 32, "heads": 2, "decoder": 2}
GPT = works.Work("gpt2", {**works.GPT2, **SMALL}, sequences=1, given=5, tokens=11)
MARIAN = works.Work("marian", {**works.OPUS, **SMALL, "hidden": 64, "encoder": 2}, 7, given=5, tokens=9, beam=3)
FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio"}


@pytest.mark.parametrize("work", [GPT, GPT._replace(sequences=3), MARIAN], ids=["one", "three", "beam"])
@pytest.mark.proof
def test_all_sides_write_the_same(work, tmp_path):
    works.make(work, tmp_path)
    ours = works.SIDES["saccade"](work, tmp_path, "float32")((1, 1))(work.tokens)
    assert [len(each) for each in ours] == [work.tokens] * work.sequences
    assert not {work.end, *([work.begin] if work.family == "marian" else [])} & {t for each in ours for t in each}
    assert len({t for each in ours for t in each}) > 3, "a model that repeats itself shows little"
    for peer in ("transformers", "CTranslate2"):
        assert works.SIDES[peer](work, tmp_path, "float32")((1, 1))(work.tokens) == ours, peer
    for who in ("saccade", "CTranslate2"):
        made = works.SIDES[who](work, tmp_path, "int8")((1, 1))(work.tokens)
        assert [len(each) for each in made] == [work.tokens] * work.sequences, who


@pytest.mark.proof
def test_the_lines_of_a_race_and_of_an_absent_peer(monkeypatch):
    peers = ("CTranslate2 float32", "transformers float32")
    monkeypatch.setattr(decode, "PAIRS", tuple(("float32", peer) for peer in peers))
    monkeypatch.setattr(decode, "installed", lambda who: who != "transformers")
    monkeypatch.setattr(decode, "READ", 1 << 20)
    before = torch.get_num_threads()
    growth = {"small": ({**works.GPT2, **SMALL, "position": "rotary"}, (40, 600))}
    lines = list(decode.rows(0.0, {"gpt, small": GPT}, growth))
    assert torch.get_num_threads() == before
    assert all(set(line) == FIELDS for line in lines)
    assert all(line["ours"] > 0 for line in lines)
    found = {(line["case"], line["peer"]): line for line in lines}
    assert len(found) == len(lines)
    race = found["gpt, small, float32", "CTranslate2 float32"]
    assert race["unit"] == "ms"
    assert race["ratio"] > 0
    assert found["gpt, small, float32, tokens that agree", "CTranslate2 float32"]["ratio"] == 1.0
    assert found["gpt, small, float32, memory", "CTranslate2 float32"]["unit"] == "GB"
    assert found["gpt, small, float32, threads that suit", "CTranslate2 float32"]["theirs"] >= 1
    absent = found["gpt, small, float32", "transformers float32"]
    assert (absent["ours"], absent["theirs"], absent["ratio"]) == (race["ours"], None, None)
    assert found["gpt, a token, float32", "its products alone"]["ratio"] < 1
    assert found["gpt, a token, float32", "reading its weights"]["ratio"] < 1
    assert found["small, a token at context 600", "at context 40"]["theirs"] > 0


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_products_are_those_of_a_step(precision, tmp_path, monkeypatch):
    """Every matrix of the decoder once, and the vocabulary."""
    monkeypatch.setattr(works, "installed", lambda who: False)
    works.make(GPT, tmp_path)
    model = works.opened(tmp_path, precision)
    write = works.writer(model, GPT._replace(given=1))
    with torch.inference_mode():
        modules, products = decode._products(model, lambda: write(1))
        made = [product() for product in products]
    assert len(modules) == len(set(modules)) == 2 * 6 + 1
    assert sum(each.weight.numel() for each in modules) == 2 * 12 * 32 * 32 + 211 * 32
    assert not any(each._forward_hooks for each in model.modules())
    assert [each.shape for each in made] == [(1, each.weight.shape[0]) for each in modules]


def test_agreement_counts_places():
    assert decode.agreement([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 9, 9]]) == 4 / 6


def test_ways_use_no_more_than_the_cores(monkeypatch):
    monkeypatch.setattr(works.os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert works.ways("saccade", MARIAN) == [(1, 1), (1, 2), (1, 4), (1, 6)]
    assert works.ways("CTranslate2", GPT) == [(1, 1), (1, 2), (1, 4), (1, 6)]
    assert works.ways("CTranslate2", MARIAN)[4:] == [(2, 1), (2, 2), (4, 1), (6, 1)]


def test_a_side_answers_every_line_and_says_when_it_ends():
    side = BenchProcess("saccade.bench.race", "tell('ready')\nfor number, _ in enumerate(sys.stdin): tell(number)")
    assert (side.first, side.turn(), side.turn()) == ("ready", 0, 1)
    side.close()
    with pytest.raises(AssertionError, match="ended before"):
        BenchProcess("saccade.bench.race", "print('saccade is not ready')")


def test_the_table_says_who_is_not_installed(monkeypatch):
    lines = [row("a work", "a peer", 0.002, None), row("a work", "another", 0.002, 0.004)]
    monkeypatch.setattr(decode, "rows", lambda: iter(lines))
    shown = CliRunner().invoke(app, ["bench", "decode"]).output.splitlines()
    assert shown[0].split() == ["a", "work", "a", "peer", "2.000", "-", "ms", "not", "installed"]
    assert shown[1].split() == ["a", "work", "another", "2.000", "4.000", "ms", "2.00x"]
    told = json.loads(CliRunner().invoke(app, ["bench", "decode", "--json"]).output)
    assert told == {"rows": lines}
    assert told["rows"][0]["theirs"] is None
