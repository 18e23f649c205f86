"""Sounds as a model sees them: log-mels against transformers, reading of files of every kind, what is refused, and
augmentation that depends on the draw alone.
"""

from __future__ import annotations

import base64
import io
import sys
import wave

import numpy as np
import pytest
import soundfile
import torch
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

import saccade
from saccade.field.perturb import perturbations
from saccade.field.recording import Recording, recording_of
from saccade.field.sound import Sound, SoundConfig
from saccade.field.spectrum import fft_width, log_mels, mel_bands

DRAW = np.random.default_rng(11)
TONE = (np.sin(np.arange(4003) / 7) * 9000 + DRAW.normal(0, 200, 4003)).astype(np.int16)


SOUND = Recording(TONE, 8000)


def field(raws=(SOUND,), **keys):
    config = SoundConfig(**{"bands": 23, "embed": "frames(stack=2)", **keys})
    return Sound.load(config, {"c.sound.json": Sound.made(config, iter(raws))}, "c", "decoder")


@pytest.mark.parametrize(
    ("rate", "window", "hop", "bands"), [(8000, 200, 80, 40), (16000, 400, 160, 80), (22050, 552, 221, 61)]
)
def test_log_mels_are_those_of_transformers(rate, window, hop, bands):
    samples = (TONE / 32768).astype(np.float32)
    filters = mel_filter_bank(fft_width(window) // 2 + 1, bands, 0.0, rate / 2, rate, norm="slaney", mel_scale="slaney")
    np.testing.assert_allclose(mel_bands(rate, bands, fft_width(window)).numpy(), filters, atol=1e-12)
    theirs = spectrogram(
        samples,
        window_function(window, "hann"),
        window,
        hop,
        fft_width(window),
        power=2.0,
        mel_filters=filters,
        log_mel="log",
    ).T
    ours = log_mels(torch.from_numpy(samples), rate, bands, window, hop)
    assert ours.shape == (len(samples) // hop, bands)
    np.testing.assert_allclose(ours.numpy(), theirs[: len(ours)], atol=1e-5)


def test_silence_is_the_floor():
    assert torch.allclose(log_mels(torch.zeros(400), 8000, 7, 200, 80), torch.tensor(np.log(1e-10)))


def written(samples, rate, format="WAV", subtype=None):
    content = io.BytesIO()
    soundfile.write(content, samples, rate, format=format, subtype=subtype)
    return content.getvalue()


@pytest.mark.parametrize(
    ("format", "subtype", "off"),
    [
        ("WAV", "PCM_16", 0),
        ("WAV", "PCM_U8", 256),
        ("WAV", "PCM_24", 1),
        ("WAV", "FLOAT", 1),
        ("FLAC", "PCM_16", 0),
        ("AIFF", "PCM_16", 0),
    ],
)
def test_files_of_every_kind_hold_the_same_sound(format, subtype, off, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(written(TONE / 32768, 8000, format, subtype))
    for raw in (path, str(path), path.read_bytes()):
        found = recording_of(raw)
        assert found.rate == 8000
        assert np.abs(found.samples.astype(int) - TONE).max() <= off


def test_channels_are_averaged():
    sides = np.stack([TONE, np.zeros_like(TONE), TONE // 2], 1)
    for raw in (written(sides, 8000), (sides, 8000), (sides / 32768, 8000)):
        assert np.abs(recording_of(raw).samples - np.rint(sides.mean(1))).max() <= 1


def test_another_rate_is_resampled():
    """A tone keeps its frequency; what is above half of the new rate is gone."""
    time = np.arange(32000) / 16000
    found = Recording((8000 * np.sin(2 * np.pi * 440 * time)).astype(np.int16), 16000).at(8000)
    assert len(found.samples) == 16000
    assert np.abs(np.fft.rfft(found.samples)).argmax() == 880
    high = Recording((8000 * np.sin(2 * np.pi * 7000 * time)).astype(np.int16), 16000).at(8000)
    assert np.abs(high.samples[100:-100]).max() < 80
    assert found.at(8000) is found


# Named, because soundfile writes the time of day into some of them.
@pytest.mark.parametrize(
    ("raw", "told"),
    [
        pytest.param(written(np.zeros(0), 8000), "has no samples", id="no samples"),
        pytest.param(written(np.array([0.1, np.nan]), 8000, subtype="FLOAT"), "not finite", id="not a number"),
        pytest.param((np.array([0.1, np.inf]), 8000), "not finite", id="infinite"),
        pytest.param(
            (np.zeros(8000 * 3600, np.int16), 8000), "lasts 3,600 seconds, and 600 are read at most", id="an hour"
        ),
        pytest.param(written(np.zeros(8000 * 601), 8000, "FLAC"), "lasts 601 seconds", id="601 seconds"),
        pytest.param((np.array([0.0, 9000.0]), 8000), "floats are from -1 to 1", id="beyond 1"),
        pytest.param((np.zeros((3, 4, 5)), 8000), r"\(samples,\) or \(samples, channels\)", id="three axes"),
        pytest.param((np.zeros(7, np.int64), 8000), "int64: give int16", id="int64"),
        pytest.param((TONE, 100), "has 100 samples a second", id="slow"),
        pytest.param(b"RIFF....WAVE", "no sound that can be read", id="cut short"),
        pytest.param(b"plain words", r"no sound that can be read: wav and flac are \([^<]*\)$", id="words"),
        pytest.param(TONE, "does not tell its rate", id="no rate"),
        pytest.param(7, "a sound was expected", id="a number"),
    ],
)
def test_what_is_no_sound_is_refused_in_one_sentence(raw, told):
    with pytest.raises(saccade.SaccadeError, match=told) as problem:
        recording_of(raw)
    assert "\n" not in str(problem.value)


def test_clipping_is_allowed_and_told():
    loud = Recording(np.where(np.arange(4000) % 4 < 1, 32767, 5).astype(np.int16), 8000)
    made = field([loud])
    column = type(
        "Column", (), {"array": lambda _, __: made.encode([loud])["samples"][0], "lengths": lambda _: np.array([50])}
    )()
    assert "25.000% of the samples clipped" in made.report(column)


def test_without_soundfile_only_plain_wav_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    assert np.array_equal(recording_of(Recording(TONE, 8000).wav()).samples, TONE)
    for content in (b"fLaC....", Recording(TONE, 8000).wav()[:30]):
        with pytest.raises(saccade.SaccadeError, match=r"pip install 'saccade\[sound\]'"):
            recording_of(content)


def test_over_the_network():
    made = field()
    url = Recording(TONE, 8000).url()
    for value in (url, url.partition(",")[2]):
        assert np.array_equal(made.received(value).samples, TONE)
    for value in ("a.wav", "/etc/passwd", 7, "data:image/png;base64,AAAA", "http://127.0.0.1/a.wav"):
        with pytest.raises(saccade.SaccadeError):
            made.received(value)
    long = base64.b64encode(Recording(np.zeros(8000 * 61, np.int16), 8000).wav()).decode()
    with pytest.raises(saccade.SaccadeError, match="60 are read at most"):
        made.received(long)
    assert recording_of(base64.b64decode(made.sample(Recording(TONE, 8000)).partition(",")[2])).rate == 8000


@pytest.mark.parametrize("normalise", ["sound", "bands", "training"])
def test_frames_are_normalised(normalise):
    made = field(normalise=normalise)
    frames = made.collate(made.encode([Recording(TONE, 8000)])).values["frames"][0]
    assert frames.shape == (51, 23)
    assert frames.mean().abs() < 1e-4
    assert abs(frames.std(unbiased=False) - 1) < 1e-3
    if normalise != "sound":
        assert frames.mean(0).abs().max() < 1e-4


AUGMENTED = "speed(0.8, 1.2) loud(-6, 6) noise(10, 30) mask_time(9, 2) mask_frequency(5)"


def test_augmentation_follows_from_the_draw():
    made = field(augment=AUGMENTED)
    taken = made.encode([Recording(TONE, 8000)] * 3)
    one, again, other = (made.collate(taken, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert torch.equal(one.values["frames"], again.values["frames"])
    assert torch.equal(one.lengths[0], again.lengths[0])
    assert len(set(one.lengths[0].tolist())) == 3, "each sound has a speed of its own"
    assert one.values["frames"].shape != other.values["frames"].shape or not torch.equal(
        *(each.values["frames"] for each in (one, other))
    )
    plain = made.collate(taken)
    assert plain.lengths[0].tolist() == [51] * 3, "nothing is changed where there is no draw"


def test_speed_moves_a_tone_and_shortens_it():
    tone = torch.sin(2 * torch.pi * 500 * torch.arange(8000) / 8000)
    (fast,) = perturbations("speed(1.25, 1.25)")
    found = fast.change(tone, np.random.default_rng(0))
    assert len(found) == 6400
    assert torch.fft.rfft(found).abs().argmax() == 500  # in 0.8 seconds: 625 Hz
    assert found.abs().max() == pytest.approx(1.0, abs=1e-3)


def test_masks_hide_what_they_say():
    (times,) = perturbations("mask_time(7, 2)")
    (bands,) = perturbations("mask_frequency(5)")
    for seed in range(20):
        hidden = (times.change(torch.ones(101, 23), np.random.default_rng(seed)) == 0).all(1)
        assert hidden.sum() <= 14
        hidden = (bands.change(torch.ones(101, 23), np.random.default_rng(seed)) == 0).all(0)
        assert hidden.sum() <= 5
    assert any((bands.change(torch.ones(101, 23), np.random.default_rng(seed)) == 0).any() for seed in range(20))


@pytest.mark.parametrize(
    "text", ["speed(1.2, 0.8)", "speed(0.1, 1)", "noise(1)", "mask_time(0)", "mask_frequency(2.5)", "crop(2)"]
)
def test_augmentation_that_means_nothing(text):
    with pytest.raises(saccade.SaccadeError):
        perturbations(text)


def test_units_lie_along_the_time():
    made = field(embed="frames(steps=(2, 2))")
    x = made.collate(made.encode([Recording(TONE, 8000)]))
    side = made.side(x)
    assert len(side) == 13
    assert side.shown["grid"] == [1, 13]
    assert side.shown["seconds"] == pytest.approx(0.51)
    assert [each.place[0] for each in side.tokens] == [n / 13 for n in range(13)]
    assert side.tokens[0].text == "0.02s"
    assert side.kind == "frames"


def test_a_wav_of_eight_bits_by_hand(tmp_path):
    """As another program writes it."""
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes([128, 255, 0, 128]))
    assert recording_of(path).samples.tolist() == [0, 32512, -32768, 0]
