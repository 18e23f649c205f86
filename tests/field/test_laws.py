"""What holds for every field: alone or in company, saved or fresh, and faults in its own unit. A new kind is a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tasks
import torch

import saccade
from saccade import png
from saccade.config import Config
from saccade.data import corpus
from saccade.data.rows import Picked, cut
from saccade.field.boxes import Boxes, BoxesConfig
from saccade.field.cloud import as_json
from saccade.field.elements.element import elements
from saccade.field.events import Events, EventsConfig
from saccade.field.field import Field
from saccade.field.gaussians import Sample
from saccade.field.graph import Graph, GraphConfig
from saccade.field.image import Image, ImageConfig
from saccade.field.label import Label, LabelConfig
from saccade.field.labels import Labels, LabelsConfig
from saccade.field.mixture import Mixture, MixtureConfig
from saccade.field.network import Network
from saccade.field.numbers import Numbers, NumbersConfig
from saccade.field.pairs import PairNumbers, PairsConfig
from saccade.field.points import Points, PointsConfig
from saccade.field.recording import Recording
from saccade.field.sound import Sound, SoundConfig
from saccade.field.text.config import SourceTextConfig, StreamedTextConfig, TargetTextConfig
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.target import TargetText
from saccade.field.text.text import Text
from saccade.field.tracks.futures import Futures, FuturesConfig
from saccade.field.tracks.scene import Sequel, as_lists
from saccade.field.tracks.tracks import Tracks, TracksConfig
from saccade.recipe import DecodeConfig
from saccade.task.batch import states_of
from saccade.task.task import Task

TEXTS = ["the eye", "jumps", "to what matters and rests there", "a while, then on", "the the the"]


@dataclass(frozen=True)
class Case:
    """raws: things of several sizes; same: what is one and the same thing, however it is written; unlike: what is not;
    faults: by size and limit, what is wrong with it; file: the ending of a file of such a thing, and its content.
    """

    kind: Any
    config: Config
    raws: list[Any]
    same: list[Any]
    unlike: list[Any]
    faults: dict[tuple[int, int | None], str | None]
    args: tuple[Any, ...] = ()
    file: tuple[str, Callable[[Any], bytes]] | None = None

    def files(self) -> dict[str, bytes]:
        """What is learned from the raw things, as a run keeps it."""
        return {self.kind.stored("c"): self.kind.made(self.config, iter(self.raws))}

    def field(self) -> Field:
        made: Field = self.kind.load(self.config, self.files(), "c", *self.args)
        return made


def text(kind, config, *args, limited=True):
    faults = {(0, 7): "no tokens", (7, 7): None, (8, 7): "longer than 7 tokens" if limited else None, (8, None): None}
    return Case(kind, config, TEXTS, ["the eye", " the  eye\t"], ["the eye", "the eyes", "The eye"], faults, args)


WORDS = {"tokenizer": "words", "vocab": 37}
CASES = {
    "a text for a pooled state": text(SourceText, SourceTextConfig(**WORDS), "pooled"),
    "a text for a decoder": text(SourceText, SourceTextConfig(**WORDS), "decoder"),
    "a text that is looked into": text(SourceText, SourceTextConfig(tokenizer="characters", vocab=41), None),
    "a text that is written": text(TargetText, TargetTextConfig(tokenizer="bpe", vocab=270)),
    "a text that goes on": text(StreamedText, StreamedTextConfig(**WORDS), limited=False),
    "a label": Case(
        Label,
        LabelConfig(),
        ["yes", "no", "may be", "no"],
        ["yes"],
        ["yes", "no", "Yes"],
        {(1, None): None, (1, 1): None},
    ),
}
DRAW = np.random.default_rng(5)
PICTURES = [DRAW.integers(0, 256, (height, width, 3)).astype(np.uint8) for height, width in ((8, 8), (5, 7), (19, 11))]
PICTURES += [PICTURES[0][:, :, 0], PICTURES[1][:, ::-1]]
CASES["a picture"] = Case(
    Image,
    ImageConfig(size=8, embed="patches(4)"),
    PICTURES,
    [PICTURES[0], PICTURES[0].copy(), torch.from_numpy(PICTURES[0])],
    [PICTURES[0], 255 - PICTURES[0], PICTURES[1]],
    {(1, None): None, (1, 1): None},
    ("pooled",),
    (".png", lambda raw: png.encode(np.atleast_3d(raw))),
)
SOUNDS = [
    Recording((DRAW.standard_normal(size) * 3000).astype(np.int16), rate)
    for size, rate in ((1601, 8000), (7, 8000), (2400, 8000), (4000, 16000), (803, 8000))
]
CASES["a sound"] = Case(
    Sound,
    SoundConfig(rate=8000, bands=13, embed="frames(steps=(2, 2))"),
    SOUNDS,
    [SOUNDS[0], Recording(SOUNDS[0].samples.copy(), 8000)],
    [SOUNDS[0], SOUNDS[1], Recording(-SOUNDS[0].samples, 8000)],
    {(0, 7): "no frames", (7, 7): None, (8, 7): "longer than 7 frames", (8, None): None},
    ("decoder",),
    (".wav", lambda raw: raw.wav()),
)
CASES["a picture that is padded"] = Case(
    Image,
    ImageConfig(size=[8, 12], fit="pad", embed="patches(4)"),
    PICTURES,
    [PICTURES[0], PICTURES[0].copy(), torch.from_numpy(PICTURES[0])],
    [PICTURES[0], 255 - PICTURES[0], PICTURES[1]],
    {(1, None): None, (1, 1): None},
    ("pooled",),
    (".png", lambda raw: png.encode(np.atleast_3d(raw))),
)
CASES["a picture that is stretched"] = Case(
    Image,
    ImageConfig(size=[8, 12], fit="stretch", embed="patches(4)"),
    PICTURES,
    [PICTURES[0], PICTURES[0].copy(), torch.from_numpy(PICTURES[0])],
    [PICTURES[0], 255 - PICTURES[0], PICTURES[1]],
    {(1, None): None, (1, 1): None},
    ("pooled",),
    (".png", lambda raw: png.encode(np.atleast_3d(raw))),
)
CASES["numbers"] = Case(
    Numbers,
    NumbersConfig(),
    [(1.0, 5.5), (-3.0, 7.0), (2.0, 7.0), (1e9, 0.1)],
    [(1.0, 5.5)],
    [(1.0, 5.5), (5.5, 1.0), (1.0, 5.25)],
    {(1, None): None, (1, 1): None},
)
GRAPHS = [
    Network(DRAW.standard_normal((nodes, 2)).astype(np.float32), np.array(edges, np.int64).reshape(-1, 2))
    for nodes, edges in ((3, [[0, 1], [1, 2]]), (5, [[0, 4], [4, 0], [2, 2]]), (1, []), (4, [[3, 0]]), (2, [[1, 0]]))
]
CASES["a graph"] = Case(
    Graph,
    GraphConfig(positions=2, degrees=True, normalise="spread"),
    GRAPHS,
    [GRAPHS[0], GRAPHS[0]._replace(edges=GRAPHS[0].edges.copy())],
    [GRAPHS[0], GRAPHS[0]._replace(edges=GRAPHS[0].edges[::-1]), GRAPHS[1]],
    {(0, 7): "no nodes", (7, 7): None, (8, 7): "longer than 7 nodes", (8, None): None},
    ("places",),
    (".json", lambda raw: raw.as_json().encode()),
)
CASES["labels of places"] = Case(
    Labels,
    LabelsConfig(),
    [("a", None, "b"), ("b",), (None, None), ("a", "a", "b", None)],
    [("a", None)],
    [("a", None), (None, "a"), ("a", "b")],
    {(0, 7): "no labels", (7, 7): None, (8, 7): "longer than 7 labels", (8, None): None},
)
SETS = [DRAW.normal(0, 3, (size, 3)).astype(np.float32) for size in (5, 1, 8, 3)]
CASES["a set of points"] = Case(
    Points,
    PointsConfig(coordinates=2, embed="points(waves=3)"),
    SETS,
    [SETS[0], SETS[0][::-1].copy(), SETS[0].tolist()],
    [SETS[0], SETS[0] + 1, SETS[0][:4]],
    {(0, 7): "no points", (7, 7): None, (8, 7): "longer than 7 points", (8, None): None},
    ("pooled",),
    (".json", lambda raw: as_json(raw).encode()),
)
CASES["a mixture"] = Case(
    Mixture,
    MixtureConfig(),
    SETS,
    [SETS[0], Sample(SETS[0])],
    [SETS[0], SETS[1]],
    {(0, 7): "no points to explain", (7, 7): None, (8, None): None},
)
TABLES = [DRAW.standard_normal((size, size)).astype(np.float32) for size in (2, 5, 3, 7)]
CASES["numbers of pairs"] = Case(
    PairNumbers,
    PairsConfig(symmetric=False),
    TABLES,
    [TABLES[0], TABLES[0].tolist(), TABLES[0].copy()],
    [TABLES[0], TABLES[0].T, TABLES[2]],
    {(0, 7): "no pairs", (49, 7): None, (64, 7): "pairs of more than 7 places", (64, None): None},
)
FOUND = [
    elements(labels, corners, (0, 0, 64, 48))
    for labels, corners in (
        (["cat", "dog"], [[1, 2, 30, 40], [8, 8, 20.5, 12]]),
        ([], []),
        (["dog"], [[0, 0, 64, 48]]),
        (["cat", "cat", "owl"], [[3, 1, 9, 7], [20, 11, 29, 13], [5, 5, 60, 45]]),
        (["owl"], [[40, 30, 44, 37]]),
    )
]
CASES["boxes"] = Case(
    Boxes,
    BoxesConfig(queries=7),
    FOUND,
    [FOUND[0], elements(FOUND[0].labels[::-1], FOUND[0].corners[::-1], FOUND[0].frame)],
    [FOUND[0], FOUND[1], elements(("dog", "cat"), FOUND[0].corners, FOUND[0].frame)],
    {(0, None): None, (3, 2): None},
)
HEARD = [
    elements(labels, corners, (0, 3.5))
    for labels, corners in (
        (["one"], [[0.5, 1]]),
        ([], []),
        (["two", "one"], [[0, 3.5], [1, 2]]),
        (["two"], [[3, 3.25]]),
    )
]
CASES["events"] = Case(
    Events,
    EventsConfig(queries=7),
    HEARD,
    [HEARD[2], elements(HEARD[2].labels[::-1], HEARD[2].corners[::-1], HEARD[2].frame)],
    [*HEARD],
    {(0, None): None, (3, 2): None},
)
SCENES = [DRAW.normal(0, 3, (agents, 5, 2)).cumsum(1) + 40_000 for agents in (3, 1, 5, 2)]
SCENES[2][1, :2] = SCENES[2][4, 3:] = np.nan
CASES["a scene of tracks"] = Case(
    Tracks,
    TracksConfig(),
    SCENES,
    [SCENES[0], SCENES[0][::-1].copy(), SCENES[0].tolist()],
    [SCENES[0], SCENES[0] + 1, SCENES[0][:2], SCENES[0][:, :4]],
    {(0, 7): "no agents", (7, 7): None, (8, 7): "longer than 7 agents", (8, None): None},
    ("places",),
    (".json", lambda raw: json.dumps(as_lists(raw)).encode()),
)
SEQUELS = [Sequel(each[:, :3], each[:, 3:]) for each in SCENES]
CASES["what comes of tracks"] = Case(
    Futures,
    FuturesConfig(),
    SEQUELS,
    [SEQUELS[0], Sequel(*(each[::-1] for each in SEQUELS[0]))],
    [SEQUELS[0], SEQUELS[1], Sequel(SEQUELS[0].seen, SEQUELS[0].future + 1)],
    {(0, 7): "no agents", (7, 7): None, (8, 7): "longer than 7 agents", (8, None): None},
)
RECORDS = [name for name, each in CASES.items() if each.kind is not StreamedText]  # those that are collated one by one


@pytest.fixture
def case(request):
    return CASES[request.param]


def column_of(field, raws, folder):
    return corpus.build(folder / "corpus", [(each,) for each in raws], {"c": field}, key="k").column("c")


def plain(values):
    return [np.asarray(each).tolist() for each in values]


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_a_thing_is_encoded_as_if_alone(case):
    field = case.field()
    together = field.encode(case.raws)
    assert together.keys() == field.arrays.keys()
    for number, raw in enumerate(case.raws):
        alone = field.encode([raw])
        assert {key: plain(each) for key, each in alone.items()} == {
            key: plain(each[number : number + 1]) for key, each in together.items()
        }


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_what_is_on_the_disk_is_what_was_encoded(case, tmp_path):
    field = case.field()
    column, encoded = column_of(field, case.raws, tmp_path), field.encode(case.raws)
    order = np.array([2, 0, 3])
    for name, array in field.arrays.items():
        assert plain(column.take(order)[name]) == [np.asarray(encoded[name][each]).tolist() for each in order]
        assert column.array(name).dtype == np.dtype(array.dtype)


@pytest.mark.parametrize("case", RECORDS, indirect=True)
def test_a_thing_is_collated_as_if_alone(case, tmp_path):
    """Behind its own end stands the same, whatever it is beside."""
    field = case.field()
    column = column_of(field, case.raws, tmp_path)
    together = field.collate(column.take(np.arange(len(case.raws))))
    assert together.rows == len(case.raws)
    for number in range(len(case.raws)):
        alone = field.collate(column.take(np.array([number])))
        for key, value in alone.values.items():
            row, own = together.values[key][number], value[0]
            inside = tuple(map(slice, own.shape))
            assert torch.equal(row[inside], own)
            filler = torch.ones_like(row, dtype=torch.bool)
            filler[inside] = False
            assert len(row[filler].unique()) <= 1
        if together.lengths:
            size = alone.lengths[0].item() if alone.lengths else next(iter(alone.values.values())).shape[1]
            assert together.lengths[0][number] == size


COMPARING = [name for name, each in CASES.items() if getattr(each.kind, "compares", False)]


@pytest.mark.parametrize("case", COMPARING, indirect=True)
def test_how_far_apart_things_are(case, tmp_path):
    """Nothing from itself, as far there as back, never more than 1; fresh from `encode` or from the disk."""
    field = case.field()
    everything = column_of(field, case.raws, tmp_path).take(np.arange(len(case.raws)))
    apart = field.distances(everything, everything)
    assert apart.shape == (len(case.raws), len(case.raws))
    assert np.allclose(np.diag(apart), 0, atol=1e-5)
    assert np.allclose(apart, apart.T, atol=1e-5)
    assert 0 <= apart.min() < 1e-5 < apart.max() <= 1 + 1e-5
    fresh = field.encode(case.raws)
    assert np.allclose(field.distances(fresh, everything), apart, atol=1e-5)
    assert np.allclose(field.distances(everything, {name: each[1:3] for name, each in fresh.items()}), apart[:, 1:3])


def test_a_window_is_collated_with_what_comes_next(tmp_path):
    field = CASES["a text that goes on"].field()
    stream = column_of(field, TEXTS, tmp_path).array("tokens").astype(np.int64)
    together = field.collate(cut(stream, np.array([0, 5, 3]), 4))
    assert together.values["tokens"].tolist() == [stream[at : at + 4].tolist() for at in (0, 5, 3)]
    assert together.values["wanted"].tolist() == [stream[at + 1 : at + 5].tolist() for at in (0, 5, 3)]
    alone = field.collate(cut(stream, np.array([5]), 4))
    assert all(torch.equal(together.values[key][1:2], value) for key, value in alone.values.items())


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_what_was_saved_is_the_same_field(case, tmp_path):
    files = case.files()
    assert files == case.files(), "the same things give the same files"
    first, again = (case.kind.load(case.config, files, "c", *case.args) for _ in range(2))
    made = [
        corpus.build(tmp_path / name, [(raw,) for raw in case.raws], {"c": each}, key="k")
        for name, each in (("a", first), ("b", again))
    ]
    assert made[0].fingerprint == made[1].fingerprint
    assert first.arrays == again.arrays
    if first.kind == "text":
        assert again.text.to_bytes() == next(iter(files.values()))


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_what_makes_two_things_the_same(case):
    assert len({case.kind.identity(each) for each in case.same}) == 1
    assert len({case.kind.identity(each) for each in case.unlike}) == len(case.unlike)


@pytest.mark.parametrize("case", [name for name in RECORDS if CASES[name].args != (None,)], indirect=True)
def test_a_size_is_what_a_thing_takes_of_a_batch(case, tmp_path):
    field = case.field()
    column = column_of(field, case.raws, tmp_path)
    for number, size in enumerate(field.sizes(column).tolist()):
        values = field.collate(column.take(np.array([number]))).values
        others = {name for name, each in field.arrays.items() if each.axis} | {"edge_counts"}  # sized by another axis
        shapes = {value.shape[1:2] for name, value in values.items() if name not in others}
        ragged = any(array.ragged for array in field.arrays.values())
        counts_inputs = field.kind in (Boxes.kind, Events.kind)  # a batch has so many pictures, whatever is in them
        assert shapes == {(size,)} if ragged and not counts_inputs else size == 1


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_faults_are_told_in_its_own_unit(case):
    field = case.field()
    for (size, limit), why in case.faults.items():
        assert field.fault(size, limit) == why
    assert all(field.unit in why for why in case.faults.values() if why is not None)


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_a_report_counts_its_own_unit(case, tmp_path):
    field = case.field()
    assert field.unit in field.report(column_of(field, case.raws, tmp_path))


WORDED = Text.train(TEXTS, "words")
MODELS = {
    "rotary": {"position": "rotary"},
    "sinusoid": {"position": "sinusoid"},
    "learned": {"position": "learned(53)"},
    "recurrent": {"mixer": "gru", "encoder_mixer": "gru(both=True)", "order": "plain", "feed": "none"},
    "convolution": {"mixer": "convolution(3)", "feed": "none"},
}
PAIRS = {
    "classify": (tasks.classify(WORDED, ["a", "b", "c"]), ["a", "c", "b", "a", "b"], {"encoder": 2}),
    "translate": (tasks.translate(WORDED), TEXTS[::-1], {"encoder": 2, "decoder": 2}),
    "regress": (tasks.regress(WORDED, [5.0, 7.0], [2.0, 3.0]), [(n, n * n) for n in range(5)], {"encoder": 2}),
}


@pytest.mark.parametrize("architecture", MODELS)
@pytest.mark.parametrize("pair", PAIRS)
def test_company_does_not_matter_to_what_a_model_says(pair, architecture):
    """In float64: the scores and the loss of an example are its own, in a batch with longer ones or alone."""
    task, wanted, stacks = PAIRS[pair]
    torch.manual_seed(3)
    config = saccade.ModelConfig(width=12, heads=2, hidden=17, **stacks, **MODELS[architecture])
    model = saccade.build(task.configure(config)).double().eval()
    _holds(task, model, dict(zip(task.fields, (TEXTS, wanted), strict=True)))


@pytest.mark.parametrize("architecture", MODELS)
def test_nor_does_it_to_what_is_said_of_a_picture(architecture):
    torch.manual_seed(3)
    places = {"position": "learned((2, 2))"} if architecture == "learned" else {}
    config = saccade.ModelConfig(width=12, heads=3, hidden=17, encoder=2, **{**MODELS[architecture], **places})
    task = Task("classify", {"source": CASES["a picture"].field()}, "label", Label(["a", "b", "c"]))
    model = saccade.build(task.configure(config)).double().eval()
    _holds(task, model, {"source": PICTURES, "label": ["a", "c", "b", "a", "b"]})


@pytest.mark.parametrize("keys", [{}, {"criterion": "cross_entropy"}, {"anchors": False, "denoise": 0}])
@pytest.mark.parametrize("embed", ["frames(steps=(2, 2))", "pyramid(2)"])
def test_nor_does_it_to_what_is_found_in_a_sound(embed, keys):
    torch.manual_seed(3)
    case, wanted = CASES["a sound"], [*HEARD, HEARD[0]]
    sound = Sound.load(case.config.model_copy(update={"embed": embed}), case.files(), "c", "queries")
    events = Events.load(EventsConfig(queries=7, **keys), CASES["events"].files(), "c")
    task = Task("detect", {"source": sound}, "found", events)
    config = saccade.ModelConfig(width=12, heads=2, hidden=17, encoder=1, decoder=2, position="sinusoid")
    model = saccade.build(task.configure(config)).double().eval()
    _holds(task, model, {"source": SOUNDS, "found": wanted}, row=1)


@pytest.mark.parametrize("embed", ["frames(steps=(2, 2))", "frames(stack=3)", "pyramid(2)"])
@pytest.mark.parametrize("architecture", [name for name in MODELS if name != "learned"])
def test_nor_does_it_to_what_is_written_of_a_sound(architecture, embed):
    torch.manual_seed(3)
    case = CASES["a sound"]
    sound = Sound.load(case.config.model_copy(update={"embed": embed}), case.files(), "c", "decoder")
    task = Task("transcribe", {"source": sound}, "target", TargetText(WORDED, TargetTextConfig(ctc=0.3)))
    config = saccade.ModelConfig(width=12, heads=2, hidden=17, encoder=1, decoder=1, **MODELS[architecture])
    model = saccade.build(task.configure(config)).double().eval()
    _holds(task, model, {"source": SOUNDS, "target": TEXTS})


def _holds(task, model, raws, row=0):
    """Whether what is said of an example, and its loss, is the same in a batch with others as alone. row: the axis of
    what is said that the examples lie along.
    """

    def batch_of(numbers):
        some = {name: [each[number] for number in numbers] for name, each in raws.items()}
        return task.batch(Picked({name: _taken(field, some[name]) for name, field in task.fields.items()}))

    with torch.inference_mode():
        whole = batch_of(range(5))
        said, losses = model.say(states_of(model, whole)), 0.0
        for number in range(5):
            alone = batch_of([number])
            own = model.say(states_of(model, alone)).select(row, 0)
            torch.testing.assert_close(said.select(row, number)[: len(own)], own, rtol=0, atol=1e-12)
            losses += sum(each.sum for each in task.terms(model, alone).values())
        torch.testing.assert_close(sum(each.sum for each in task.terms(model, whole).values()), losses)
    assert whole.count == sum(batch_of([number]).count for number in range(5))


def _taken(field, raws):
    """Raw things as a corpus would give them."""
    encoded = field.encode(raws)
    return {name: each if field.arrays[name].ragged else np.asarray(each) for name, each in encoded.items()}


@pytest.mark.parametrize("pair", PAIRS)
def test_an_input_that_fits_no_model_is_told_in_its_own_unit(pair):
    task, _, stacks = PAIRS[pair]
    config = saccade.ModelConfig(width=12, heads=2, **stacks, position="learned(5)")
    model = saccade.build(task.configure(config))
    field = next(iter(task.x.values()))
    found = task.predict(model, ["", " \t\u2003", "the eye", TEXTS[2]], DecodeConfig(max_tokens=2))
    assert [each.note if each.value is None else None for each in found] == [
        f"empty: there is nothing to {task.asks}",
        f"empty: there is nothing to {task.asks}",
        None,
        f"too long: 6 {field.unit}, and the model was made for {5 - field.around}",
    ]


def test_an_input_is_as_long_as_its_own_stack_has_room_for():
    """Whatever the other stack has."""
    task = tasks.translate(WORDED)
    for own, other in (("learned(5)", "learned(53)"), ("learned(53)", "learned(5)")):
        keys = {"encoder_keys": {"position": own}, "decoder_keys": {"position": other}}
        config = saccade.ModelConfig(width=12, heads=2, encoder=1, decoder=1, **keys)
        model = saccade.build(task.configure(config))
        (found,) = task.predict(model, [TEXTS[2]], DecodeConfig(max_tokens=2))
        assert (found.value is None) == (own == "learned(5)")


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_what_a_table_holds_of_a_thing_is_read_back_as_the_same(case, tmp_path):
    """`cells` is the inverse of `cell`; pixels and samples without a file are refused."""
    for raw in case.raws:
        if case.file is not None:
            with pytest.raises(saccade.SaccadeError, match="without files of their own"):
                case.kind.cells(raw, tmp_path)
            ending, content = case.file
            file = tmp_path / "inside" / f"a{ending}"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content(raw))
            raw = file
        cells = case.kind.cells(raw, tmp_path)
        again = case.kind.cell(cells if case.kind.several else cells[0], tmp_path)
        assert case.kind.identity(again) == case.kind.identity(raw)
