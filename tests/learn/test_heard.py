"""Sounds from files to answers: resuming, beams, what is told of bad ones, alignment of joined digits."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from absent import data_set
from learn.heard import recipe
from own import tone
from typer.testing import CliRunner

import saccade
from saccade import disk
from saccade.cli import app
from saccade.data import fsdd
from saccade.data.skipped import Skipped
from saccade.field.recording import Recording
from saccade.field.unit import Side, Unit
from saccade.learn.spoken import _histograms, median, times
from saccade.look.map import Map
from saccade.recipes.read import recipe as built_in
from saccade.task.pair import pair_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heard")
    return saccade.train(recipe(folder), run=folder / "run")


def hashes(path):
    return {each.name: disk.digest(each) for each in sorted(path.glob("*.safetensors"))}


def test_a_resumed_run_is_an_uninterrupted_one(run, tmp_path):
    """With augmentation, CTC and dropout, bit for bit."""
    shutil.copytree(run.path, tmp_path / "again")
    shutil.rmtree(tmp_path / "again" / "checkpoints" / "step-8")
    again = saccade.train(tmp_path / "again")
    assert again.step == 8
    assert hashes(tmp_path / "again" / "checkpoints" / "step-8") == hashes(run.path / "checkpoints" / "step-8")
    assert "ctc" in (run.path / "metrics.jsonl").read_text()


def test_sounds_are_answered_alone_as_in_company(run, tmp_path):
    draw = np.random.default_rng(3)
    given = [tone(draw, 400) for _ in range(3)]
    (tmp_path / "a.wav").write_bytes(given[0])
    found = run.predict(given, beam=3)
    assert [each.text for each in found] == [run.predict(each, beam=3)[0].text for each in given]
    assert run.predict(str(tmp_path / "a.wav"), beam=3)[0].text == found[0].text
    told = CliRunner().invoke(app, ["predict", str(run.path), str(tmp_path / "a.wav"), "--json"])
    assert json.loads(told.stdout)["text"] == run.predict(given[0])[0].text


def test_it_is_evaluated_beside_the_commonest_text(run):
    found = run.evaluate("val")
    assert {"wer", "cer", "exact_match", "loss"} <= found["metrics"].keys()
    assert found["baseline"]["what"].startswith("always ")
    assert 0 < found["baseline"]["wer"] < 1
    assert found["signatures"]["wer"].startswith("jiwer 4")


def test_a_map_lies_along_the_time(run):
    seen = run.look(tone(np.random.default_rng(0), 300), "low")
    side = seen.sides["source"]
    assert side.kind == "frames"
    assert seen.map("alignment").values.shape == (4, len(side))
    assert all(each.place is not None for each in side.tokens)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (Recording(np.zeros(0, np.int16), 8000).wav(), "has no samples"),
        (
            Recording(np.zeros(8000 * 31, np.int16), 8000).wav(),
            "too long: 3100 frames, and the model was made for 3000",
        ),
        (b"plain words", "no sound that can be read"),
    ],
)
def test_bad_sounds_are_one_sentence_on_the_command_line(run, tmp_path, content, told):
    (tmp_path / "bad.wav").write_bytes(content)
    found = CliRunner().invoke(app, ["predict", str(run.path), str(tmp_path / "bad.wav"), "--json"])
    assert told in (found.stdout + str(found.exception))


def test_bad_sounds_of_a_table_are_left_out_and_counted(tmp_path):
    made = recipe(tmp_path)
    (tmp_path / "0.wav").write_bytes(Recording(np.zeros(0, np.int16), 8000).wav())
    (tmp_path / "1.wav").write_bytes(b"RIFF....WAVE")
    skipped = Skipped()
    rows = list(pair_of(made).supply(made).origin.read(made.data.files, skipped))
    assert len(rows) == 78
    assert skipped.described() == ["1: a file that is no sound (line 2)", "1: a sound without samples (line 1)"]


def clips(rate=100):
    """Two speakers, each with ten digits as ten samples of the digit."""
    names = [(digit, who, index) for who in ("george", "theo") for digit in range(10) for index in range(3)]
    return [fsdd.Clip(d, who, i, Recording(np.full(10, d + 1, np.int16), rate)) for d, who, i in names]


def test_strings_are_made_of_clips_of_one_speaker_whose_cuts_are_known(monkeypatch, tmp_path):
    monkeypatch.setattr(fsdd, "clips", lambda *_: clips())
    archive = tmp_path / "archive"
    archive.touch()
    made, again, others = ([fsdd.string(archive, n, "train", seed) for n in range(50)] for seed in (3, 3, 4))
    assert [each.text for each in made] == [each.text for each in again]
    assert [each.text for each in made] != [each.text for each in others]
    assert {len(each.cuts) for each in made} == {3, 4, 5, 6}
    for each in made:
        for word, (begin, end) in zip(each.text.split(), each.cuts, strict=True):
            inside = each.recording.samples[round(100 * begin) : round(100 * end)]
            assert set(inside.tolist()) == {fsdd.WORDS.index(word) + 1}
        spoken = sum(round(100 * (end - begin)) for begin, end in each.cuts)
        assert (each.recording.samples != 0).sum() == spoken, "all else is silence"


def test_the_splits_of_digits():
    archive = data_set("fsdd") / "fsdd.tar.xz"
    kept = {split: fsdd.clips(archive, split) for split in fsdd.SPLITS}
    assert {split: len(each) for split, each in kept.items()} == {"train": 2400, "val": 300, "test": 300}
    names = [{clip[:3] for clip in each} for each in kept.values()]
    assert len(set.union(*names)) == sum(map(len, names)), "no clip is in two splits"
    assert {clip.number for clip in kept["test"]} == set(range(5)), "as its authors say"
    apart = {split: fsdd.clips(archive, split, "theo") for split in fsdd.SPLITS}
    assert {clip.speaker for clip in apart["test"]} == {"theo"}
    assert len(apart["test"]) == 500
    assert not {"theo"} & {clip.speaker for split in ("train", "val") for clip in apart[split]}
    with pytest.raises(saccade.SaccadeError, match="did you mean 'theo'"):
        fsdd.clips(archive, "test", "teo")


def test_a_speaker_is_held_out_only_where_there_are_some(tmp_path):
    with pytest.raises(saccade.SaccadeError, match=r"data\.speaker holds out a speaker"):
        saccade.train(recipe(tmp_path, data={"speaker": "theo"}), run=tmp_path / "run")


def test_the_rows_of_strings_follow_from_the_seed():
    data_set("fsdd")
    few = ["data.examples=3", "data.held=2"]
    rows = [
        list(pair_of(made).supply(made).rows("test"))
        for made in (built_in("fsdd-strings", [*few, f"seed={n}"]) for n in (0, 0, 1))
    ]
    assert [text for _, text in rows[0]] == [text for _, text in rows[1]] != [text for _, text in rows[2]]


class Seen:
    """A look whose letters listen where they are told to: 5 frames of 0.1 s."""

    def __init__(self, weights):
        units = [Unit(n, "", n, False, (n / 5, 0.0, 0.2, 1.0)) for n in range(5)]
        self.sides = {"source": Side(units, [""] * 5, "", "frames", {"seconds": 0.5}), "target": Side([], [], "")}
        self.weights = weights

    def map(self, layer):
        import torch

        assert layer == "alignment"
        rows = [str(n) for n in range(len(self.weights))]
        return Map(torch.tensor(self.weights), rows, [""] * 5, list(range(len(rows))), list(range(5)), "")


def test_a_word_is_heard_at_the_mean_time_of_its_letters():
    """ "ab c": two letters at 0.05 s and 0.15 s, a space anywhere, a letter between 0.35 and 0.45 s."""
    weights = [[1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0], [0, 0, 0, 0, 1.0], [0, 0, 0, 0.25, 0.75], [1.0, 0, 0, 0, 0]]
    heard, seconds = times(Seen(weights), "ab c")
    assert seconds == 0.5
    assert heard.tolist() == pytest.approx([0.1, 0.425])


def test_the_median_of_a_sum_of_histograms_is_that_of_all_words():
    draw = np.random.default_rng(0)
    examples = [draw.integers(0, 300, size).astype(float) for size in (3, 5, 4, 1)]
    found = median(_histograms(examples).sum(0))
    assert found == pytest.approx(np.quantile(np.concatenate(examples), 0.5, method="inverted_cdf"))
    assert np.isnan(median(np.zeros(7)))
