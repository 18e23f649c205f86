"""The agents of a scene as vectors: nothing depends on where a scene lies, how it is turned, or who comes first."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade import SaccadeError
from saccade.model.futures import parted
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.symmetry import symmetries
from saccade.model.tracks import stance, tracks

KEYS = {"width": 12, "heads": 3, "hidden": 17, "encoder": 2, "pair": 7, "pair_updates": "none"}


def built(embed="tracks(5)", **keys):
    torch.manual_seed(5)
    return Model(saccade.ModelConfig(**{**KEYS, "embed": embed, "head": "futures(3, 4)", **keys})).double().eval()


@pytest.mark.parametrize(
    "embed", ["tracks(5)", "tracks(5, depth=0)", "tracks(5, 3, unit=0.4)", "tracks(5, heading=False)"]
)
def test_promises_are_kept(embed):
    axes = ", axes=3" if ", 3" in embed else ""
    rows = symmetries(built(embed, head=f"futures(3, 4{axes})"))
    assert not [each for each in rows if each.broken]
    told = {each.symmetry: each.promised for each in rows if each.where == "model"}
    assert told == {"permutation": True, "rotation": "heading" not in embed}
    turned = max(each.error for each in rows if each.symmetry == "rotation")
    assert (turned > 1e-3) == ("heading" in embed), "what is not promised is lost"


def values(count=4, steps=5, seed=0):
    random = torch.Generator().manual_seed(seed)
    return tracks(steps, config=saccade.ModelConfig(**KEYS)).double().sample(2, count, generator=random)


def test_a_stance_by_hand():
    places = torch.tensor([[[[0.0, 0], [3, 4], [3, 9]], [[1, 1], [9, 9], [2, 1]], [[5, 5], [0, 0], [0, 0]]]])
    seen = torch.tensor([[[True, True, True], [True, False, True], [True, False, False]]])
    found = stance(places, seen, True)
    assert found.here.tolist() == [[[3, 9], [2, 1], [5, 5]]]
    assert found.velocity.tolist() == [[[0, 5], [0.5, 0], [0, 0]]]
    assert found.now.tolist() == [[True, True, False]]
    assert found.since.tolist() == [[0, 0, 2]]
    ways = torch.tensor([[3.0, 9.0], [1.0, 0.0], [4 / 3, 3.0]])  # who never moved goes as the others do, in the mean
    assert torch.allclose(found.ahead[0], ways / ways.norm(dim=1, keepdim=True))
    assert torch.allclose(found.inwards(found.ahead)[0], torch.tensor([[1.0, 0.0]] * 3), atol=1e-6)
    assert torch.allclose(found.outwards(found.inwards(found.here)), found.here)


def test_what_is_not_seen_is_not_read():
    """Whatever stands in the place of who was not there, and of padding, changes nothing, and nothing becomes NaN."""
    held, model = values(), built()
    held["seen"][0, 1, :2] = held["seen"][0, 2, 4] = held["seen"][1, 3, 1:3] = False
    lengths = torch.tensor([4, 3])
    one = model(Input(dict(held), lengths))
    other = held["places"].clone()
    other[~held["seen"]] = 55.0
    held["seen"][1, 3], other[1, 3] = False, 0.0
    again = model(Input({"places": other, "seen": held["seen"]}, lengths))
    assert one.isfinite().all()
    assert torch.allclose(one[0], again[0])
    assert torch.allclose(one[1, :3], again[1, :3])


def test_company_of_another_scene_does_not_matter():
    held, model = values(), built()
    both = model(Input(held, torch.tensor([4, 3])))
    alone = model(Input({name: each[1:, :3] for name, each in held.items()}))
    assert torch.allclose(both[1:, :3], alone)


def test_the_others_are_seen_and_a_mask_hides_them():
    held = values()
    moved = {**held, "places": held["places"].clone()}
    moved["places"][:, 3] += 2.0
    for mask, differs in ((None, True), ("window(1)", False)):
        model = built(mask=mask)
        one, other = (model(Input(each))[:, :3] for each in (held, moved))
        assert bool((one - other).abs().max() > 1e-4) == differs


def test_attention_over_time_is_watched():
    model = built("tracks(5, depth=2)")
    with saccade.watch(model) as seen:
        model(Input(values()))
    assert [each for each in seen.layers if each.startswith("embed")] == [
        f"embed.tracks.time.blocks.{number}.attention" for number in (0, 1)
    ]
    assert seen.weights("embed.tracks.time.blocks.1.attention").shape == (8, 3, 5, 5)


def test_gradients_reach_every_weight():
    model = built()
    model(Input(values())).square().sum().backward()
    unused = [name for name, each in model.named_parameters() if each.grad is None]
    assert all(name.startswith(("encoder.pairs.last",)) for name in unused)


def test_what_the_head_says_comes_apart():
    said = torch.randn(2, 3, 3 * (1 + 4 * 2))
    logs, places = parted(said, 3, 2)
    assert logs.shape == (2, 3, 3)
    assert places.shape == (2, 3, 3, 4, 2)
    assert torch.allclose(logs.exp().sum(2), torch.ones(2, 3))


@pytest.mark.parametrize(
    ("embed", "why"),
    [
        ("tracks(0)", "steps is a whole number"),
        ("tracks(5, axes=4)", "axes 2 or 3"),
        ("tracks(5, unit=0)", "unit above"),
    ],
)
def test_sizes_that_mean_nothing(embed, why):
    with pytest.raises(SaccadeError, match=why):
        built(embed)


def test_other_scenes_are_refused():
    with pytest.raises(SaccadeError, match=r"tracks are \(batch, agents, 5, 2\); got \(2, 4, 6, 2\)"):
        built()(Input(values(steps=6)))
    with pytest.raises(SaccadeError, match="whole numbers from 1"):
        built(head="futures(0, 4)")
