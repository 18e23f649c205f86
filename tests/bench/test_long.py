"""The bench of long sequences: what it measures is what it says, and every method is the attention it names."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade.bench import features, long
from saccade.command import showing
from saccade.look.part import Lettering

FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio"}


@pytest.fixture
def small(monkeypatch):
    for name, value in (("HEADS", 2), ("WIDTH", 8), ("GROWTH", (8, 16)), ("HEAVY", (8, 16)), ("EXACT", 16)):
        monkeypatch.setattr(long, name, value)
    monkeypatch.setattr(long, "_alone", lambda name, side, lengths, backward: [1e-6 * T**2 for T in lengths])
    monkeypatch.setattr(long, "spent", lambda run: run() is None or 0.25)
    times = iter([(2.0, 3.0, 1.5), (2.0, 1.0, 0.5)] * 1000)
    stand_in = {name: peer._replace(theirs=peer.ours) for name, peer in long.PEERS.items()}
    monkeypatch.setattr(long, "PEERS", stand_in)  # the packages are extras of the bench alone
    monkeypatch.setattr(long, "race", lambda ours, theirs, seconds: (ours(), theirs(), next(times))[2])


@pytest.mark.parametrize("name", [name for name in long.METHODS if name != "linformer"])
def test_a_method_is_the_attention_it_names(name):
    """The same as `plain` computes of its parts; and whoever is called causal sees no future."""
    method, (q, k, v) = long.METHODS[name], [x.double() for x in long._inputs(700, False)]
    call = method.make(700)
    options = {key: value for key, value in call.keywords.items() if key != "kernel"}
    found = call(q, k, v)
    torch.testing.assert_close(found, saccade.attention(q, k, v, **options, kernel="plain"), rtol=1e-8, atol=1e-8)
    assert method.causal == ("causal" in name)
    late = v.clone()
    late[:, :, -1] += 1.0
    assert torch.equal(call(q, k, late)[:, :, :-1], found[:, :, :-1]) == method.causal


def test_the_lines(small):
    found = {each["case"]: each for each in long.rows(0.0, (8, 16, 32))}
    assert all(set(each) == FIELDS for each in found.values())
    assert found["window T=16, forward"]["ratio"] == 1.5
    assert found["window T=16, forward+backward"]["ratio"] == 0.5
    assert found["window T=32, forward"]["ratio"] is None
    assert found["bigbird, forward, overtakes exact from T"]["ours"] == 8
    assert "bigbird, forward+backward, overtakes exact from T" not in found
    assert "exact, forward, overtakes exact from T" not in found
    for what in ("forward", "forward+backward"):
        assert found[f"favor, {what}, peak memory, exponent of T"]["ours"] == pytest.approx(2.0)
    assert found["favor, forward, exponent of T"]["ours"] == pytest.approx(0.0)


def test_a_peer_that_is_not_installed_has_no_ratio(small, monkeypatch):
    def missing(T):
        raise ImportError("no such package")

    peers = {name: peer._replace(theirs=missing) for name, peer in long.PEERS.items()}
    monkeypatch.setattr(long, "PEERS", peers)
    found = {each["case"]: each for each in long.rows(0.0, (8, 16))}
    assert found["favor, beside T=16, forward"]["theirs"] is None
    assert found["linformer layer T=16, forward"]["ours"] == 250.0
    assert not [case for case in found if case.startswith("favor, beside T=16, forward+backward")]


@pytest.mark.proof
def test_memory_is_measured_in_a_process_of_its_own():
    short, longer = long._alone("favor, causal", 0, [512, 4096], True)
    assert 0.0 <= short < longer < 16 * short + 0.1


def test_the_pictures(small):
    found = long.drawn(list(long.rows(0.0, (8, 16, 32))))
    assert list(found) == ["time", "memory"]
    texts = [part.text for part in found["time"].parts if isinstance(part, Lettering)]
    assert {"8", "16", "32", *long.SHOWN} <= set(texts)


def test_errors_of_features_fall():
    found = list(features.rows(sizes=(16, 64, 256), seeds=5))
    assert all(set(each) == FIELDS for each in found)
    grown = {each["case"]: each["ours"] for each in found if "exponent" in each["case"]}
    for name in features.KINDS:
        assert -0.65 < grown[f"{name}, spread 0.25, exponent of features"] < -0.35
    means = [each["ours"] for each in found if each["case"].startswith("favor, spread 0.25") and "mean" in each["case"]]
    assert means[0] > means[1] > means[2]
    assert list(features.drawn(found)) == ["error"]


def test_the_command_draws_what_it_measured(tmp_path, monkeypatch, capsys):
    found = list(features.rows(sizes=(16, 64), seeds=2))
    monkeypatch.setattr(features, "rows", lambda *_: iter(found))
    showing.bench("features", out=str(tmp_path / "error.svg"))
    assert (tmp_path / "error-error.svg").read_text().startswith("<svg")
    assert "error-error.svg" in capsys.readouterr().out
    for name, out, told in (("features", "error.pdf", "no kind of file"), ("ways", "error.svg", "draws no picture")):
        with pytest.raises(saccade.SaccadeError, match=told):
            showing.bench(name, out=str(tmp_path / out))
