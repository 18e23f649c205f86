"""From where a training begins or goes on: runs, their copies, Hugging Face folders, and what was left torn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers as hf
from rich.console import Console
from tiny import TRAIN, translate
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import saccade
from saccade import SaccadeError
from saccade.learn.cost import trained
from saccade.learn.loop import Loop
from saccade.learn.progress import Metrics
from saccade.recipe import from_values, recipe
from saccade.store import checkpoint


def test_fine_tuning_from_a_run(tmp_path):
    first = saccade.train(translate(tmp_path), run=tmp_path / "first")
    values = translate(tmp_path, train={"steps": 1, "rate": 1e-9}).model_dump(exclude_none=True)
    del values["model"]
    second = saccade.train(from_values({**values, "start": str(tmp_path / "first")}), run=tmp_path / "second")
    assert second.files == first.files
    for (name, a), b in zip(first.model.named_parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6, msg=name)
    assert second.recipe.model == first.recipe.model
    ours, theirs = trained(first), trained(second)
    assert (
        theirs.tokens
        == ours.tokens + json.loads((tmp_path / "second/metrics.jsonl").read_text().splitlines()[0])["tokens"]
    )


def test_a_start_brings_its_tokenizer_and_says_so(tmp_path):
    """The recipe in the run tells how its texts are read, not what was asked for and could not be."""
    saccade.train(translate(tmp_path), run=tmp_path / "first")
    values = translate(tmp_path, {"tokenizer": "bpe", "vocab": 300, "lower": True}).model_dump(exclude_none=True)
    del values["model"]
    made = saccade.train(from_values({**values, "start": str(tmp_path / "first")}), run=tmp_path / "second")
    told = saccade.load(tmp_path / "second").recipe
    for text in (told.x["source"], told.y):
        assert (text["tokenizer"], text["vocab"], text["lower"]) == ("characters", 30, False)
    again = saccade.train(from_values({**values, "start": str(tmp_path / "first")}), run=tmp_path / "second")
    assert again.step == made.step


def test_a_copy_of_a_run_does_not_go_on(tmp_path):
    """It has weights alone: no optimiser, no average, nothing that is random."""
    saccade.train(translate(tmp_path, train={"steps": 1, "every": 1}), run=tmp_path / "run").save(tmp_path / "copy")
    assert saccade.load(tmp_path / "copy").predict("abc")[0].text
    with pytest.raises(SaccadeError, match="was not made by training: to begin from its weights, set start"):
        saccade.train(tmp_path / "copy")


@pytest.mark.parametrize("table", [7, 11])
def test_fine_tuning_from_a_hugging_face_folder(tmp_path, table, monkeypatch):
    """The table of vectors may be longer than the tokenizer, and stays so when the run goes on."""
    folder = tmp_path / "hf"
    config = hf.GPT2Config(vocab_size=table, n_positions=37, n_embd=12, n_layer=1, n_head=2)
    hf.GPT2LMHeadModel(config).save_pretrained(folder)
    known = {word: number for number, word in enumerate(["[UNK]", "the", "eye", "jumps", "to", "what", "matters"])}
    tokenizer = Tokenizer(WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (tmp_path / "text.txt").write_text("the eye jumps to what matters\n" * 60)
    values = {
        "task": "write",
        "start": str(folder),
        "data": {"files": [str(tmp_path / "text.txt")], "share": 0.2},
        "train": {**TRAIN, "steps": 40, "every": 20, "length": 11},
    }
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 20)
        assert saccade.train(from_values(values), run=tmp_path / "run").step == 20
    run = saccade.train(from_values(values), run=tmp_path / "run")
    assert (run.step, run.model.config.vocab) == (40, table)
    assert run.model.config.position == "learned(37)"
    assert run.predict("the eye", max_tokens=2)[0].text.split() == ["jumps", "to"]
    long = from_values({**values, "train": {**TRAIN, "length": 64}})
    with pytest.raises(SaccadeError, match=r"y.window = 64 does not fit the model's 37 positions"):
        saccade.train(long, run=tmp_path / "long")


def test_what_is_put_aside_is_told(tmp_path, capsys):
    made = translate(tmp_path)
    saccade.train(made, run=tmp_path / "run")
    newest = checkpoint.path_of(tmp_path / "run", 6)
    (newest / "state.json").write_text("{}")
    saccade.train(made, run=tmp_path / "run", console=Console(width=1000))
    said = capsys.readouterr().out
    assert f"it was put aside as {newest}.damaged" in said
    assert "going on from step 3 of 6" in said


def test_a_finished_run_stays_as_it_is(tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / "run")
    before = {each: each.stat().st_mtime_ns for each in (tmp_path / "run" / "checkpoints").rglob("*.safetensors")}
    saccade.train(tmp_path / "run")
    assert before == {
        each: each.stat().st_mtime_ns for each in (tmp_path / "run" / "checkpoints").rglob("*.safetensors")
    }
    with pytest.raises(SaccadeError, match=r"train.steps differs"):
        saccade.train(translate(tmp_path, train={"steps": 9}), run=tmp_path / "run")


def test_a_start_given_on_the_command_line_brings_its_model_along(tmp_path, monkeypatch):
    """As docs/train.md says it: the recipe's own [model] gives way."""
    monkeypatch.chdir(tmp_path)
    first = saccade.train(translate(tmp_path), run="first")
    options = ["start=first", 'data.files=["a.txt", "b.txt"]', "train.steps=2", "train.batch=90", "train.rate=1e-9"]
    then = saccade.train("translate", run="then", options=options)
    for a, b in zip(first.model.parameters(), then.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)
    assert Path("then/recipe.toml").read_text().startswith('# Begun from the weights and the tokenizer of "first"')
    with pytest.raises(SaccadeError, match="not both"):
        recipe("translate", ["start=first", "model.dropout=0.3"])


def test_a_line_torn_inside_a_letter_is_cut_off(tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / "run")
    whole = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    (tmp_path / "run" / "metrics.jsonl").write_bytes(whole + '{"step": 6, "samples": [["é'.encode()[:-1])
    assert saccade.load(tmp_path / "run").samples == []  # a hint, no more
    Metrics(tmp_path / "run", 6).close()
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == whole
    assert saccade.load(tmp_path / "run").samples


def test_a_disk_that_is_full_is_told_once(tmp_path):
    metrics = Metrics(tmp_path, -1)
    metrics.file.close()
    with Path("/dev/full").open("w") as metrics.file:
        with pytest.raises(SaccadeError, match="the disk is full"):
            metrics.write(1, loss=1.0)
        metrics.close()
