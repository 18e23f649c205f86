"""From where a training begins or goes on: runs, their copies, Hugging Face folders, and what was left torn."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
import torch
import transformers as hf
from rich.console import Console
from tiny import TRAIN, translate, write
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import saccade
from saccade import SaccadeError
from saccade.learn.cost import trained
from saccade.learn.loop import Loop
from saccade.learn.progress import MetricsLog
from saccade.recipes.read import from_values, recipe
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


def test_a_start_without_the_stacks_that_are_needed_is_named(tmp_path):
    """Its depths cannot be changed, so this is not what the refusal advises."""
    saccade.train(translate(tmp_path, train={"steps": 1, "every": 1}), run=tmp_path / "first")
    values = write(tmp_path).model_dump(exclude_none=True)
    del values["model"]
    with pytest.raises(
        SaccadeError, match=r"write needs a decoder alone, and .*first holds an encoder and a decoder: start"
    ):
        saccade.train(from_values({**values, "start": str(tmp_path / "first")}), run=tmp_path / "second")


def test_a_copy_of_a_run_does_not_go_on(tmp_path):
    """It has weights alone: no optimiser, no average, nothing that is random."""
    saccade.train(translate(tmp_path, train={"steps": 1, "every": 1}), run=tmp_path / "run").save(tmp_path / "copy")
    assert saccade.load(tmp_path / "copy").predict("abc")[0].text
    with pytest.raises(SaccadeError, match="was not made by training: to begin from its weights, set start"):
        saccade.train(tmp_path / "copy")


def folder_of(path: Path, made: hf.PreTrainedModel) -> Path:
    """A Hugging Face folder with a tokenizer of seven words, beside a text of them."""
    made.save_pretrained(path)
    known = {word: number for number, word in enumerate(["[UNK]", "the", "eye", "jumps", "to", "what", "matters"])}
    tokenizer = Tokenizer(WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(path / "tokenizer.json"))
    (path.parent / "text.txt").write_text("the eye jumps to what matters\n" * 60)
    return path


def fine_tuning(folder: Path, **more):
    values = {
        "task": "write",
        "start": str(folder),
        "data": {"files": [str(folder.parent / "text.txt")], "share": 0.2},
        "train": {**TRAIN, "length": 11},
    }
    return from_values({**values, **more})


def test_fine_tuning_drops_what_the_folder_says(tmp_path):
    """As `transformers` trains it: GPT-2 drops weights, embeddings and outputs, and nothing inside its feed-forward."""
    sizes = {"vocab_size": 7, "n_positions": 37, "n_embd": 12, "n_layer": 1, "n_head": 2}
    config = hf.GPT2Config(**sizes, resid_pdrop=0.3, embd_pdrop=0.4, attn_pdrop=0.2)
    folder = folder_of(tmp_path / "hf", hf.GPT2LMHeadModel(config))
    assert saccade.load(folder).model.config.dropout == 0
    said = Console(record=True, width=200, quiet=False, file=StringIO())
    run = saccade.train(fine_tuning(folder), run=tmp_path / "run", console=said)
    told = said.export_text()
    assert "dropout = 0.3, attention_dropout = 0.2, feed_dropout = 0: as config.json says" in told
    assert "embd_pdrop = 0.4 of config.json has no key of its own here: dropout = 0.3 is used" in told
    block = run.model.decoder.blocks[0]
    dropped = run.model.embed.dropout, block.dropout, block.attention.dropout, block.feed.dropout
    assert dropped == (0.3, 0.3, 0.2, 0)
    assert run.recipe.model.feed_dropout == 0
    saccade.load(folder).save(tmp_path / "imported")
    again = saccade.train(fine_tuning(tmp_path / "imported"), run=tmp_path / "again", options=["model.dropout=0.1"])
    assert (again.recipe.model.dropout, again.recipe.model.attention_dropout) == (0.1, 0.2)
    for key, value in again.model.tensors().items():
        assert value.shape == run.model.tensors()[key].shape
    further = saccade.train(fine_tuning(tmp_path / "again"), run=tmp_path / "further")
    assert further.recipe.model == again.recipe.model, "what was trained here keeps its own"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "resid_pdrop": 1.5}))
    with pytest.raises(SaccadeError, match=r"config.json: resid_pdrop = 1.5 is no share to drop"):
        saccade.train(fine_tuning(folder), run=tmp_path / "wrong")


@pytest.mark.parametrize("table", [7, 11])
def test_fine_tuning_from_a_hugging_face_folder(tmp_path, table, monkeypatch):
    """The table of vectors may be longer than the tokenizer, and stays so when the run goes on."""
    config = hf.GPT2Config(vocab_size=table, n_positions=37, n_embd=12, n_layer=1, n_head=2)
    folder = folder_of(tmp_path / "hf", hf.GPT2LMHeadModel(config))
    made = fine_tuning(folder, train={**TRAIN, "steps": 40, "every": 20, "length": 11})
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 20)
        assert saccade.train(made, run=tmp_path / "run").step == 20
    run = saccade.train(made, run=tmp_path / "run")
    assert (run.step, run.model.config.vocab) == (40, table)
    assert run.model.config.position == "learned(37)"
    assert run.predict("the eye", max_tokens=2)[0].text.split() == ["jumps", "to"]
    long = fine_tuning(folder, train={**TRAIN, "length": 64})
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


def test_what_may_change_beside_a_start(tmp_path, monkeypatch):
    """Values that leave every weight its name, shape and meaning; the run's own recipe then has them, and goes on."""
    monkeypatch.chdir(tmp_path)
    first = saccade.train(translate(tmp_path, train={"steps": 1}), run="first")
    usual = ["start=first", 'data.files=["a.txt", "b.txt"]', "train.steps=4", "train.every=2", "train.batch=90"]
    changes = ["model.dropout=0.2", "model.attention_dropout=0.1", "model.decoder.mask=window(3)", "model.width=12"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 2)
        assert saccade.train("translate", run="then", options=[*usual, *changes]).step == 2
    then = saccade.train("translate", run="then", options=[*usual, *changes])
    own = then.recipe.model
    assert (then.step, own.dropout, own.attention_dropout, own.decoder_keys) == (4, 0.2, 0.1, {"mask": "window(3)"})
    assert then.recipe.changes is None
    assert own.model_copy(update={"dropout": 0.0, "attention_dropout": None, "decoder_keys": {}}) == first.recipe.model
    block = then.model.decoder.blocks[0]
    assert (block.dropout, block.attention.dropout, block.feed.dropout) == (0.2, 0.1, 0.2)
    saccade.train(translate(tmp_path), run="whole", options=["start=first", *changes, "train.steps=4"])
    with pytest.raises(SaccadeError, match=r"then was begun with another recipe; model\.dropout differs"):
        saccade.train("translate", run="then", options=[*usual, *changes, "model.dropout=0.3"])


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("model.width=24", r"model.width = 24 does not fit the weights of first, which have 12: .*dropout, .*mask"),
        ("model.encoder=2", "model.encoder = 2 does not fit"),
        ("model.decoder.heads=3", "model.decoder.heads = 3 does not fit the weights of first, which have 2"),
        ("model.position=alibi", "model.position = 'alibi' does not fit"),
        ("model.name=gpt2", "model.name is unknown"),
        ("model.dropuot=0.1", "model.dropuot is unknown; did you mean 'dropout'"),
        ("model.dropout=2", "model.dropout should be a number .*got 2"),
        ("model.mask=widnow(3)", "no mask is called 'widnow'"),
        ("model.pattern=s", "model: the pattern's letter 's' is not in masks"),
    ],
)
def test_what_may_not_change_beside_a_start(option, why, shared, monkeypatch, tmp_path):
    folder = shared("start", lambda made: saccade.train(translate(made, train={"steps": 1}), run=made / "first"))
    monkeypatch.chdir(folder)
    options = ["start=first", 'data.files=["a.txt", "b.txt"]', "train.steps=2", option]
    with pytest.raises(SaccadeError, match=why) as problem:
        saccade.train("translate", run=tmp_path / "then", options=options)
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "then").exists()


def test_a_recipe_file_may_change_what_it_starts_from(tmp_path, monkeypatch):
    """[model] beside start holds the changes, and an option goes over it."""
    monkeypatch.chdir(tmp_path)
    saccade.train(translate(tmp_path, train={"steps": 1}), run="first")
    text = 'task = "translate"\nstart = "first"\n[data]\nfiles = ["a.txt", "b.txt"]\n[train]\nsteps = 1\nbatch = 90\n'
    Path("mine.toml").write_text(f"{text}[model]\ndropout = 0.3\nmask = 'window(4)'\nnormaliser = 'sparsemax'\n")
    made = saccade.train("mine.toml", options=["model.dropout=0.4"]).recipe.model
    assert (made.dropout, made.mask, made.normaliser) == (0.4, "window(4)", "sparsemax")
    assert recipe(recipe("mine.toml"), ["model.dropout="]).changes == {"mask": "window(4)", "normaliser": "sparsemax"}
    Path("mine.toml").write_text(f"{text}[model]\nheads = 2\ndropuot = 0.3\n")
    with pytest.raises(SaccadeError, match=r"mine.toml, line 10: model.dropuot is unknown; did you mean 'dropout'"):
        recipe("mine.toml")
    with pytest.raises(SaccadeError, match="changes are those of the model found at start"):
        recipe(translate(tmp_path), ["changes={dropout = 0.1}"])


def test_a_line_torn_inside_a_letter_is_cut_off(tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / "run")
    whole, samples = (tmp_path / "run" / "metrics.jsonl").read_bytes(), saccade.load(tmp_path / "run").samples
    (tmp_path / "run" / "metrics.jsonl").write_bytes(whole + '{"step": 6, "samples": [["é'.encode()[:-1])
    assert saccade.load(tmp_path / "run").samples == samples != [], "those of the last whole line"
    MetricsLog(tmp_path / "run", 6).close()
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == whole


def test_a_disk_that_is_full_is_told_once(tmp_path):
    metrics = MetricsLog(tmp_path, -1)
    metrics.file.close()
    with Path("/dev/full").open("w") as metrics.file:
        with pytest.raises(SaccadeError, match="the disk is full"):
            metrics.write(1, loss=1.0)
        metrics.close()
