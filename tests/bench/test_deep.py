"""The experiment of depth: its text is what it says it is, and a short run gives the promised lines."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.bench import deep


def test_the_chains_entropies():
    tokens = deep.text(499, 101, torch.Generator().manual_seed(0))
    assert torch.equal(tokens, deep.text(499, 101, torch.Generator().manual_seed(0)))
    share = tokens.flatten().bincount(minlength=deep.VOCAB) / tokens.numel()
    assert float(-(share * share.log()).sum()) == pytest.approx(math.log(deep.VOCAB), abs=1e-3)
    pairs = torch.zeros(deep.VOCAB, deep.VOCAB)
    pairs.index_put_((tokens[:, : -deep.LAG].flatten(), tokens[:, deep.LAG :].flatten()), torch.tensor(1.0), True)
    given = pairs / pairs.sum(1, keepdim=True)
    entropy = float(-(pairs / pairs.sum() * given.log()).sum())
    assert entropy == pytest.approx(deep.floor(), abs=0.01)
    before = tokens[:, :-1] * deep.VOCAB + tokens[:, 1:]  # the token just before says nothing
    share = before.flatten().bincount(minlength=deep.VOCAB**2) / before.numel()
    assert float(-(share * share.log()).sum()) == pytest.approx(2 * math.log(deep.VOCAB), abs=0.01)


def test_curves_are_the_same_again_and_rows_fit_them():
    curves = deep.curves(depth=2, steps=11)
    assert curves == deep.curves(depth=2, steps=11)
    assert {len(curve) for curve in curves.values()} == {11}
    assert len({curve[-1] for curve in curves.values()}) == 3, "the orders differ"
    lines = list(deep.rows(depth=2, steps=11))
    assert [line["theirs"] for line in lines] == pytest.approx(
        [math.log(deep.VOCAB), deep.ending(curves["post"]), deep.ending(curves["pre"])], abs=1e-4
    )
    for line in lines:
        assert set(line) == {"case", "peer", "ours", "theirs", "unit", "ratio"}
        assert line["unit"] == "nats"
        assert line["ours"] == pytest.approx(deep.ending(curves["deep"]), abs=1e-4)
        assert line["ratio"] == pytest.approx(line["theirs"] / line["ours"], abs=1e-3)
    assert deep.ending([9.0] * 18 + [1.0, 3.0]) == 2.0


@pytest.mark.proof
def test_few_layers_learn_in_any_order():
    """The task is fair: what two hundred layers cannot learn in the order post, two can."""
    curves = deep.curves(("post", "deep"), depth=2, steps=300, rate=5e-3)
    assert all(deep.ending(curve) < 0.7 * math.log(deep.VOCAB) for curve in curves.values())
