"""Sounds with events: each is heard where it is said to be, they lie apart or overlap, and a number is one sound."""

from __future__ import annotations

import numpy as np
import pytest
from absent import data_set

from saccade.config import read
from saccade.data import spoken_events, tones
from saccade.data.generated import GENERATED
from saccade.data.soundscape import Piece, soundscape
from saccade.error import SaccadeError
from saccade.field.events import Events, EventsConfig
from saccade.recipe import DataConfig, SoundscapeConfig

CONFIG = SoundscapeConfig()


def generator(name, **keys):
    return GENERATED[name](read(DataConfig, {"name": name, **keys}))


def heights(samples, rate):
    """The loudest frequency in each tenth of a second, in Hz."""
    blocks = samples[: len(samples) // (rate // 10) * (rate // 10)].reshape(-1, rate // 10) * np.hanning(rate // 10)
    return np.abs(np.fft.rfft(blocks)).argmax(1) * 10.0


def overlapping(found):
    places = found.corners.tolist()
    return [(a, b) for n, a in enumerate(places) for b in places[n + 1 :] if a[0] < b[1] and b[0] < a[1]]


def alone(kind):
    """A tone of a kind, much louder than the noise around it, as the generator lays it."""
    for number in range(1000):
        recording, found = tones.example(number, SoundscapeConfig(most=1))
        if found.labels == (kind,):
            samples = recording.samples.astype(np.float64)
            begin, end = (int(each * recording.rate) for each in found.corners[0])
            outside = np.concatenate([samples[:begin], samples[end:]]).std()
            if samples[begin:end].std() > 5 * outside:
                return samples[begin:end], recording.rate
    raise AssertionError(kind)


def test_each_kind_of_tone_sounds_as_it_is_called():
    steady = {kind: heights(*alone(kind)) for kind in ("low", "middle", "high")}
    assert all(np.ptp(each) <= 10 for each in steady.values())
    assert steady["low"][0] < 400 < steady["middle"][0] < 1100 < steady["high"][0]
    assert (np.diff(heights(*alone("rising"))) >= 0).all()
    assert (np.diff(heights(*alone("falling"))) <= 0).all()
    trill, rate = alone("trill")
    fine = np.sign(np.diff(np.sign(trill)))
    crossings = np.convolve(np.abs(fine), np.ones(rate // 25), "valid")  # of every 40 ms
    assert crossings.max() > 1.2 * crossings.min()


@pytest.mark.parametrize("split", ["train", "val", "test", "test-overlap"])
def test_tones_are_where_they_are_said_to_be(split):
    louder = []
    for number in range(60):
        recording, found = tones.example(number, CONFIG, split=split)
        assert 3 <= recording.seconds <= 5
        assert found.frame.tolist() == [0, recording.seconds]
        assert (found.corners[:, 0] >= 0).all()
        assert (found.corners[:, 1] <= recording.seconds).all()
        assert (np.diff(found.corners[:, 0]) >= 0).all(), "in the order in which they begin"
        inside = np.zeros(len(recording.samples), bool)
        for begin, end in (found.corners * recording.rate).round().astype(int).tolist():
            inside[begin:end] = True
        if inside.any() and not inside.all():
            samples = recording.samples.astype(np.float64)
            louder.append(samples[inside].std() / samples[~inside].std())
    assert min(louder) > 1.2, "the noise alone is quieter than with a tone in it"


def test_splits_say_whether_events_overlap():
    made = {split: [tones.example(n, CONFIG, split=split)[1] for n in range(120)] for split in ("train", "test")}
    made["test-overlap"] = [tones.example(n, CONFIG, split="test-overlap")[1] for n in range(120)]
    apart = [tones.example(n, SoundscapeConfig(overlap=False))[1] for n in range(120)]
    shares = {split: np.mean([bool(overlapping(each)) for each in found]) for split, found in made.items()}
    assert shares["test"] == 0
    assert 0.2 < shares["train"] < 0.5
    assert shares["test-overlap"] > 0.85
    assert not any(map(overlapping, apart))
    assert {len(each.labels) for each in made["test"]} >= {0, 1, 2, 3, 4, 5}
    assert min(len(each.labels) for each in made["test-overlap"]) >= 1
    assert any(not each.labels for each in made["train"])


def test_two_of_one_label_never_overlap():
    for number in range(300):
        found = tones.example(number, SoundscapeConfig(most=11), split="test-overlap")[1]
        for label in set(found.labels):
            own = found.corners[[each == label for each in found.labels]]
            assert (own[1:, 0] > own[:-1, 1]).all()


def test_a_sound_of_silence_has_exactly_its_pieces():
    """With noise that is far below them, what is heard are the pieces, sample by sample."""
    pieces = [Piece("a", np.full(800, 1.0, np.float32), 60.0), Piece("b", np.full(1600, -1.0, np.float32), 60.0)]
    recording, found = soundscape(pieces, 8000, "test", CONFIG, np.random.default_rng(3))
    assert found.labels == ("a", "b")
    high = np.abs(recording.samples.astype(float)) > np.abs(recording.samples).max() / 2
    expected = np.zeros(len(high), bool)
    for begin, end in (found.corners * 8000).round().astype(int).tolist():
        expected[begin:end] = True
    assert (high == expected).all()


@pytest.mark.parametrize("name", ["tones", "spoken-events"])
def test_a_number_is_one_sound(name):
    if name == "spoken-events":
        data_set("fsdd")
    made = generator(name)
    rows = [made.row(*each) for each in ((0, "train", 0), (1, "train", 0), (0, "val", 0), (0, "train", 1))]
    assert len({recording.samples.tobytes() for recording, _ in rows}) == 4
    assert made.row(0, "train", 0)[0].samples.tobytes() == rows[0][0].samples.tobytes()
    assert made.splits == ("train", "val", "test-overlap", "test")
    assert made.kinds == ("sound", "events")
    assert generator(name, soundscape={"most": 3}).made_of() != made.made_of()


def test_digits_are_heard_where_they_are_said_to_be():
    archive = data_set("fsdd") / "fsdd.tar.xz"
    labels = set()
    for number in range(40):
        recording, found = spoken_events.example(archive, number, CONFIG, split="test")
        assert not overlapping(found)
        labels |= set(found.labels)
        samples = recording.samples.astype(np.float64)
        heard = np.zeros(len(samples), bool)
        for begin, end in (found.corners * recording.rate).round().astype(int).tolist():
            heard[begin:end] = True
        if found.labels:
            assert samples[heard].std() > 2 * samples[~heard].std()
    assert labels == {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}


def test_a_speaker_is_held_out():
    archive = data_set("fsdd") / "fsdd.tar.xz"
    own = generator("spoken-events", speaker="theo")
    assert own.made_of() != generator("spoken-events").made_of()
    changed = archive.stat().st_mtime_ns
    test, train, every = (
        {samples.tobytes() for _, samples in spoken_events.pieces(archive, changed, split, speaker)}
        for split, speaker in (("test", "theo"), ("train", "theo"), ("train", None))
    )
    assert len(test) == 500
    assert not test & train
    assert train < every


def test_without_fsdd_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SaccadeError, match="fsdd"):
        generator("spoken-events").row(0, "train", 0)


def test_the_key_belongs_to_these_data():
    with pytest.raises(SaccadeError, match="write name = 'tones' or 'spoken-events' too"):
        read(DataConfig, {"name": "dates", "soundscape": {"overlap": False}})


def test_its_rows_are_events():
    """The field that learns them reads all of a sound's events as parts of it, and gives them back."""
    wanted = [tones.example(number, CONFIG)[1] for number in range(40)]
    config = EventsConfig()
    field = Events.load(config, {Events.stored("c"): Events.made(config, iter(wanted))}, "c")
    assert field.names == sorted(tones.TONES)
    assert field.most <= CONFIG.most
    spans = np.concatenate(field.encode(wanted)["spans"])
    assert (spans[:, 0] - spans[:, 1] / 2 > -1e-6).all()
    assert (spans[:, 0] + spans[:, 1] / 2 < 1 + 1e-6).all()
    scores = field.tallies([field.result(each) for each in wanted], wanted)
    assert {name: each.value for name, each in scores.items()} == dict.fromkeys(field.known, 1.0)
