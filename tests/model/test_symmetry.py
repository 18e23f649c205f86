"""What the parts of a model promise is what they keep, what they do not promise they lose, and a promise that a part
does not keep is told, of the part and of the model.
"""

from __future__ import annotations

import json

import pytest
import torch
from architectures import ARCHITECTURES, architecture
from torch import nn
from typer.testing import CliRunner

import saccade
from saccade import spec
from saccade.attend.edges import Edges
from saccade.attend.mask import as_mask
from saccade.cli import app
from saccade.config import read
from saccade.field.field import Motion
from saccade.field.text.source import SourceText
from saccade.learn.symmetry import symmetries_of, words_of
from saccade.model.model import Model
from saccade.model.move import TOLERANCE, Applied, drawn, permutation
from saccade.model.symmetry import largest, moves_of, symmetries
from saccade.zoo.names import ZOO, named
from saccade.zoo.narrow import narrow

LOST = 1e-6  # what is not kept is farther off than this

MODELS = {
    "a set": {"vocab": 31, "encoder": 2, "pool": "mean", "head": "label(5)"},
    "a weighted set": {"vocab": 31, "encoder": 2, "pool": "attention", "head": "label(5)"},
    "a text": {"vocab": 31, "encoder": 2, "position": "learned(64)", "head": "label(5)"},
    "experts": {"vocab": 31, "encoder": 2, "experts": 3, "chosen": 2, "head": "tags(5)"},
    "windows of text": {"vocab": 31, "encoder": 2, "mask": "window(3)", "head": "tags(5)"},
    "distances": {"vocab": 31, "encoder": 2, "position": "relative(4)", "head": "tags(5)"},
    "both ways": {"vocab": 31, "encoder": 2, "mixer": "lstm(both=True)", "head": "tags(5)"},
    "a summary": {"vocab": 31, "encoder": 1, "summary": "linformer(5, 40)", "head": "tags(5)"},
    "graph": {"embed": "nodes(7)", "encoder": 2, "mixer": "graph", "head": "tags(5)"},
    "graph, mean": {"embed": "nodes(7)", "encoder": 2, "mixer": "graph(mean)", "head": "label(5)", "pool": "mean"},
    "graph, symmetric": {"embed": "nodes(7)", "encoder": 2, "mixer": "graph(symmetric)", "head": "tags(5)"},
    "gat": {"embed": "nodes(7)", "encoder": 2, "mixer": "gat(3)", "head": "tags(5)"},
    "graph transformer": {"embed": "nodes(7)", "encoder": 2, "mask": "neighbours(loops=True)", "head": "tags(5)"},
    "not the neighbours": {"embed": "nodes(7)", "encoder": 2, "mask": "~neighbours", "head": "tags(5)"},
    "numbered nodes": {"embed": "nodes(7)", "encoder": 2, "position": "sinusoid", "head": "tags(5)"},
    "patches": {"embed": "patches(4, channels=3)", "encoder": 2, "pool": "mean", "head": "label(5)"},
    "vit": {"embed": "patches(4)", "encoder": 2, "position": "learned((5, 7))", "class_tokens": 1, "head": "label(5)"},
    "turned patches": {"embed": "patches(4)", "encoder": 2, "position": "rotary", "head": "label(5)"},
    "offsets": {"embed": "patches(4)", "encoder": 2, "position": "offsets((5, 7))", "head": "label(5)"},
    "convolutions": {"embed": "convolutions((5,), channels=3)", "encoder": 2, "mixer": "convolution2d(3)"},
    "normed": {"embed": "convolutions((5,), norm=True)", "encoder": 1, "head": "label(5)", "pool": "mean"},
    "windows": {"embed": "patches(4)", "encoder": [1, 1], "window": 2, "head": "label(5)", "pool": "mean"},
    "frames": {"embed": "frames(6, stack=2)", "encoder": 1, "mixer": "convolution(3)", "head": "label(5)"},
    "sound": {"embed": "frames(6, steps=(2, 2))", "encoder": 1, "head": "label(5)"},
    "pyramid": {"embed": "pyramid(2, bands=6)", "encoder": 1, "head": "label(5)"},
    "two inputs": {"vocab": 31, "embed": {"a": "tokens", "b": "patches(4)"}, "encoder": 1, "pool": "mean"},
    "context": {
        "vocab": 31,
        "embed": {"a": "patches(4)", "b": "tokens"},
        "encoder": 2,
        "join": "context",
        "context": 1,
        "head": "tags(5)",
    },
}


def built(**keys):
    torch.manual_seed(5)
    return Model(read(saccade.ModelConfig, {"width": 12, "heads": 3, "hidden": 17, **keys}))


def holds(found):
    """Promised is kept, and what a part says that it loses it loses; of the model it may be lost, too."""
    assert found
    wrong = [each for each in found if each.broken]
    assert wrong == []
    parts = [each for each in found if each.where != "model" and each.error is not None]
    assert [each for each in parts if not each.promised and each.error < LOST] == []


@pytest.mark.parametrize("name", [*ARCHITECTURES])
def test_architectures_keep_their_promises(name):
    holds(symmetries(architecture(name, encoder=2)))


@pytest.mark.parametrize("name", [*MODELS])
def test_models_keep_their_promises(name):
    holds(symmetries(built(**MODELS[name])))


@pytest.mark.parametrize("name", ["bert-base", "gpt2", "t5-small", "llama-7b", "vit-base", "swin-tiny"])
def test_the_zoo_keeps_its_promises(name):
    holds(symmetries(Model(narrow(named(name)))))


@pytest.mark.parametrize("name", [*ZOO])
def test_a_narrow_model_has_the_same_parts(name):
    whole, small = named(name), narrow(named(name))
    assert small.width <= 512
    assert (small.encoder > 0, small.decoder > 0) == (whole.encoder > 0, whole.decoder > 0)
    for key in ("order", "feed", "position", "mask", "embed", "score", "norm", "pool", "window", "class_tokens"):
        assert getattr(small, key) == getattr(whole, key)


def test_a_table_like_the_lecture_s():
    """Sets and graphs have the permutation, convolutions the shift, decoders the arrow of time."""

    def kept(name, symmetry):
        rows = [each for each in symmetries(built(**MODELS[name])) if each.symmetry == symmetry]
        return all(each.promised for each in rows if each.where == "model")

    assert kept("a set", "permutation")
    assert kept("graph", "permutation")
    assert kept("gat", "permutation")
    assert kept("graph transformer", "permutation")
    assert not kept("numbered nodes", "permutation")
    assert not kept("a text", "permutation")
    assert kept("convolutions", "shift")
    assert not kept("convolutions", "permutation")
    assert not kept("vit", "shift")
    decoder = symmetries(built(vocab=31, decoder=2, head="vocabulary", position="rotary"))
    assert {each.symmetry for each in decoder if each.promised and each.where == "model"} == {"shift", "causality"}


def test_why_is_told():
    rows = symmetries(built(**MODELS["a text"]))
    (whole,) = (
        each for each in rows if (each.where, each.symmetry) == ("model", "permutation") and "states" in each.part
    )
    assert whole.because == "the position learned tells places apart"
    (attention,) = (each for each in rows if each.part == "attention" and each.symmetry == "permutation")
    assert attention.promised
    assert attention.error < TOLERANCE
    assert attention.layers == 2


@pytest.mark.parametrize("position", ["rotary", "sinusoid", "offsets((9, 9))"])
def test_places_that_come_along_are_no_order(position):
    model = built(vocab=31, encoder=2, position=position, pool="mean", head="label(5)")
    places = torch.randint(9, (1, 11, 2), generator=torch.Generator().manual_seed(3))
    tokens = torch.arange(11).view(1, -1)
    rows = [
        each
        for each in symmetries(model, saccade.Input({"tokens": tokens}, places=places))
        if each.symmetry == "permutation"
    ]
    holds(rows)
    assert all(each.promised for each in rows if each.where == "model")
    if position == "rotary":  # counted along one axis, places are those of the order
        alone = [each for each in symmetries(model, tokens) if each.symmetry == "permutation" and each.where == "model"]
        assert not any(each.promised for each in alone)


class Distances(nn.Module):
    """Points in space (B,N,3), each by its mean distance from the others, which no turning changes."""

    moves = {"permutation": "the points in another order", "rotation": "turned, mirrored and moved"}  # noqa: RUF012
    breaks = {}  # noqa: RUF012

    def __init__(self, *, config):
        super().__init__()
        self.out = nn.Linear(1, config.width)

    def forward(self, values):
        return self.out(self.seen(values["points"].to(self.out.weight.dtype)))

    def seen(self, points):
        return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").mean(2, keepdim=True)

    def counted(self, lengths):
        return lengths

    def sample(self, rows, length, device=None, generator=None):
        return {"points": torch.randn(rows, length, 3, generator=generator, dtype=torch.float64)}

    def turned(self, values, random):
        turn = torch.linalg.qr(torch.randn(3, 3, generator=random, dtype=torch.float64))[0]
        points = values["points"].double()
        return values, {"points": points @ (turn * torch.tensor([1.0, 1.0, -1.0])) + 5.0}


class Coordinates(Distances):
    """Points by where they are along an axis, though it promises not to look at that."""

    def seen(self, points):
        return points[..., :1]


class Told(Coordinates):
    """The same, which says so."""

    breaks = {"rotation": "coordinates are read as they are"}  # noqa: RUF012


@pytest.mark.parametrize(
    ("embed", "promised", "broken"), [(Distances, True, False), (Coordinates, True, True), (Told, False, False)]
)
def test_points_in_space_are_turned(embed, promised, broken):
    with spec.knowing({"mine": embed}):
        rows = symmetries(built(embed="mine", encoder=2, pool="mean", head="label(5)"))
    turned = {each.part: each for each in rows if each.symmetry == "rotation"}
    assert turned.keys() == {"mine", "points to encoder states", "points to label(5)"}
    assert all(each.promised == promised for each in turned.values())
    assert all(each.broken == broken for each in turned.values())
    assert all((each.error < TOLERANCE) == (embed is Distances) for each in turned.values())
    assert not [each for each in rows if each.symmetry == "permutation" and (each.broken or not each.promised)]


@torch.no_grad()
def test_a_bias_of_pairs_moves_with_them():
    """Attention among 3 vectors with 3 heads, whose bias differs for every pair."""
    layer = saccade.Attention(12, 3).double()
    x, bias = torch.randn(1, 3, 12).double(), torch.randn(1, 3, 3, 3).double()
    call = Applied(lambda **given: layer(**given), {"x": x, "bias": bias}, layer(x, bias=bias))
    assert permutation(call, torch.Generator().manual_seed(1)) < TOLERANCE
    order = drawn(0, 3, torch.Generator().manual_seed(1))
    assert (layer(x[:, order], bias=bias) - layer(x, bias=bias)[:, order]).abs().max() > LOST


class Numbered(nn.Module):
    """A layer that promises everything and weighs its vectors by their numbers."""

    window = None
    breaks = {}  # noqa: RUF012

    def __init__(self, *, width):
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(self, x, *, mask=None, cache=None):
        return self.out(x) * torch.arange(1, x.shape[1] + 1, dtype=x.dtype).view(1, -1, 1)


class Silent(Numbered):
    """The same, without a promise."""

    def __getattribute__(self, name):
        if name == "breaks":
            raise AttributeError(name)
        return super().__getattribute__(name)


class Foretelling(Numbered):
    """A layer that promises everything and sees what comes."""

    def forward(self, x, *, mask=None, cache=None):
        return self.out(x) + x.mean(1, keepdim=True)


def with_mixer(mixer, **keys):
    with spec.knowing({"mine": mixer}):
        return built(mixer="mine", **keys)


@pytest.mark.parametrize(
    ("mixer", "keys", "lost"),
    [
        (Numbered, {"vocab": 31, "encoder": 2, "head": "tags(5)"}, {"permutation", "shift"}),
        (Numbered, {"embed": "nodes(7)", "encoder": 1, "head": "label(5)", "pool": "mean"}, {"permutation"}),
        (Numbered, {"embed": "patches(4)", "encoder": 1, "head": "label(5)", "pool": "mean"}, {"permutation", "shift"}),
        (Foretelling, {"vocab": 31, "decoder": 2, "head": "vocabulary"}, {"causality", "shift"}),
    ],
)
def test_a_broken_promise_is_told_of_the_part_and_of_the_model(mixer, keys, lost):
    rows = symmetries(with_mixer(mixer, **keys))
    broken = [each for each in rows if each.broken]
    assert {each.symmetry for each in broken if each.part == "mine"} == lost
    assert {each.symmetry for each in broken if each.where == "model"} >= lost - {"shift"}
    assert {each.part for each in broken if each.where != "model"} == {"mine"}


def test_a_part_that_says_nothing_promises_nothing():
    rows = symmetries(with_mixer(Silent, vocab=31, encoder=2, head="tags(5)"))
    assert not [each for each in rows if each.broken]
    own = [each for each in rows if each.part == "mine"]
    assert own
    assert all(each.because == "mine does not say whether it keeps it" for each in own)


def test_nan_is_not_kept():
    model = built(vocab=31, encoder=1, head="tags(5)")
    with torch.no_grad():
        model.head.out.weight.fill_(float("nan"))
    assert any(each.broken for each in symmetries(model))


def test_the_largest_of_several_examples():
    one, other = (symmetries(built(**MODELS["a set"]), seed=seed) for seed in (0, 1))
    for a, b, both in zip(one, other, largest([one, other]), strict=True):
        assert both[:4] == a[:4] == b[:4]
        assert both.layers == a.layers
        assert both.error is None or both.error == max(a.error, b.error)


def test_the_model_and_the_inputs_stay_as_they_are():
    model = built(**MODELS["graph"])
    x = model.embed.sample(1, 11, generator=torch.Generator().manual_seed(1))
    before = {name: each.clone() for name, each in (*model.state_dict().items(), *x.values.items())}
    symmetries(model, x)
    assert model.dtype == torch.float32
    assert not any(each._forward_hooks for each in model.modules())
    for name, each in (*model.state_dict().items(), *x.values.items()):
        assert torch.equal(each, before[name])


@pytest.mark.parametrize("mask", ["causal & window(3)", "window(3)", "neighbours | window(2)", "~causal", "prefix(3)"])
def test_masks_tell_what_they_break(mask):
    """By what is drawn: who may look at whom, when all are renumbered, moved, or what comes is left out."""
    made = as_mask(mask)
    edges = Edges.of(torch.tensor([[0, 3], [5, 1], [6, 2], [2, 6], [4, 4]]), 7)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(2))
    one, other = made.bind(edges=edges)(7), made.bind(edges=edges.permuted(order))(7)
    assert torch.equal(one[order][:, order], other) == ("permutation" not in made.breaks)
    assert bool(one.triu(1).any()) == ("causality" in made.breaks)


def test_edges_are_permuted_with_their_nodes():
    edges = Edges.of(torch.tensor([[0, 3], [5, 1], [6, 2], [2, 6], [4, 4]]), 7).weighing(torch.arange(5.0))
    order = torch.randperm(7, generator=torch.Generator().manual_seed(2))
    moved = edges.permuted(order)
    assert torch.equal(moved.dense()[0], edges.dense()[0][order][:, order])
    before = {(int(q), int(k)): float(w) for q, k, w in zip(edges.query, edges.key, edges.weights, strict=True)}
    after = {
        (int(order[q]), int(order[k])): float(w) for q, k, w in zip(moved.query, moved.key, moved.weights, strict=True)
    }
    assert before == after


def command(*words):
    return CliRunner().invoke(app, ["check", "symmetry", *map(str, words)])


def test_command():
    found = command("bert-base", "--json")
    assert found.exit_code == 0
    told = json.loads(found.stdout)
    assert told["kept"] is True
    assert told["moves"] == moves_of(Model(narrow(named("bert-base"))))
    (row,) = (each for each in told["rows"] if (each["part"], each["symmetry"]) == ("attention", "permutation"))
    assert row["promised"]
    assert row["kept"]
    assert row["error"] < row["tolerance"] == TOLERANCE
    shown = command("bert-base").stdout
    assert "not promised, because the position learned tells places apart" in shown
    assert "float64" in shown
    assert "BROKEN" not in shown


def test_command_on_a_run_with_a_broken_part(tmp_path, monkeypatch):
    """A user's own mixer that promises too much: the command ends with 1, and says which part it is."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "texts.tsv").write_text("".join(f"{'ab' * (n % 7)}\t{'xy'[n % 2]}\n" for n in range(1, 60)))
    monkeypatch.chdir(tmp_path)
    options = ["model.width=12", "model.heads=2", "model.encoder=1", "train.steps=2", "train.every=1", "size=full"]
    trained = ["classify", "--files", "texts.tsv", "--run", "run", "--parts", "mine:numbered"]
    given = [word for each in [*options, "model.mixer=numbered", "model.position="] for word in ("-o", each)]
    assert CliRunner().invoke(app, ["train", *trained, *given]).exit_code == 0
    found = command("run", "--parts", "mine:numbered", "--json")
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert told["kept"] is False
    assert told["tried"] == "3 held-out examples"
    assert ("numbered", "permutation") in {(each["part"], each["symmetry"]) for each in told["rows"] if each["broken"]}
    shown = command("run", "--parts", "mine:numbered")
    assert shown.exit_code == 1
    assert "BROKEN: encoder numbered promises permutation" in shown.stdout
    _motions(tmp_path, monkeypatch)


def _motions(folder, monkeypatch):
    """What a field can do with a raw thing: some of it leaves the answer as it is."""
    motions = {
        "sameness": Motion("the same", lambda raw, random: raw),
        "mirror": Motion("spelled backwards", lambda raw, random: f"x{raw[::-1]}"),
        "mirror again": Motion("spelled backwards", lambda raw, random: f"x{raw[::-1]}", "letters have places"),
    }
    monkeypatch.setattr(SourceText, "motions", motions)
    rows, count = symmetries_of(saccade.load(folder / "run", parts={"numbered": Numbered}), count=2)
    found = {each.symmetry: each for each in rows if each.symmetry in motions}
    assert count == 2
    assert found["sameness"].error == 0
    assert found["mirror"].broken
    assert not found["mirror again"].broken
    assert found["mirror again"].error > found["mirror again"].tolerance
    assert words_of(saccade.load(folder / "run", parts={"numbered": Numbered}))["mirror"] == "spelled backwards"


@pytest.mark.parametrize(
    ("words", "told"),
    [(["gpt3"], "no model is called 'gpt3'"), (["."], "is neither a run")],
)
def test_command_refuses(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in str(command(*words).exception)


def test_another_law_is_refused():
    found = CliRunner().invoke(app, ["check", "symetry", "gpt2"])
    assert "no check is called 'symetry'; did you mean 'symmetry'" in str(found.exception)


MINE = """
import torch
from torch import nn


class numbered(nn.Module):
    window = None
    breaks = {}

    def __init__(self, *, width):
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(self, x, *, mask=None, cache=None):
        return self.out(x) * torch.arange(1, x.shape[1] + 1, dtype=x.dtype).view(1, -1, 1)

"""
