"""Runs: written whole, read strictly, and through the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import saccade
from saccade.store.run import Run, export, load


@pytest.fixture
def folder(tmp_path):
    """A small GPT-2 of theirs with files of a tokenizer."""
    torch.manual_seed(0)
    path = tmp_path / "hf"
    hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=59, n_positions=37, n_embd=24, n_layer=2, n_head=3)).save_pretrained(
        path
    )
    words = {word: number for number, word in enumerate(["[UNK]", "the", "eye", "jumps"])}
    Tokenizer(WordLevel(words, unk_token="[UNK]")).save(str(path / "tokenizer.json"))
    return path


def command(*args: str) -> subprocess.CompletedProcess[str]:
    code = "from saccade.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=120)


def test_import_and_export_round_trip_bit_for_bit(folder, tmp_path):
    done = command("import", folder, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "gpt2, " in done.stdout
    assert {each.name for each in (tmp_path / "run").iterdir()} == {
        "recipe.toml",
        "fields",
        "checkpoints",
        "manifest.json",
    }
    done = command("export", tmp_path / "run", tmp_path / "out", "--format", "hf")
    assert done.returncode == 0, done.stderr
    before, after = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    assert load(tmp_path / "run").tokenizer.encode("eye").ids == [2]
    x = torch.randint(0, 59, (2, 7))
    theirs = hf.GPT2LMHeadModel.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        torch.testing.assert_close(load(tmp_path / "run").model(x), theirs(x).logits, rtol=1e-4, atol=1e-4)


def test_what_was_built_here_finds_its_family(tmp_path):
    small = {"vocab": 59, "width": 24, "heads": 3}
    for name, depth, family in (
        ("gpt2", "decoder", "GPT2"),
        ("bert-base", "encoder", "Bert"),
        ("llama-7b", "decoder", "Llama"),
    ):
        own = {"kv_heads": 3} if name == "llama-7b" else {}
        run = Run(saccade.build(name, **small, **own, **{depth: 2}))
        run.save(tmp_path / name)
        again = load(tmp_path / name)
        assert again.model.config == run.model.config
        assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), run.model.parameters(), strict=True))
        export(again, tmp_path / f"{name}-hf")
        options = json.loads((tmp_path / f"{name}-hf" / "config.json").read_text())
        assert options["architectures"][0].startswith(family)
    odd = Run(saccade.build("gpt2", **small, decoder=2, position="alibi"))
    with pytest.raises(saccade.SaccadeError, match="no family at Hugging Face can express this model"):
        export(odd, tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


def test_a_tokenizer_that_is_none(folder):
    (folder / "tokenizer.json").write_text("{}")
    run = load(folder)
    with pytest.raises(saccade.SaccadeError, match=r"tokenizer\.json cannot be read"):
        _ = run.tokenizer
    (folder / "tokenizer.json").unlink()
    assert load(folder).tokenizer is None


def test_damage_is_noticed(folder, tmp_path):
    path = load(folder).save(tmp_path / "run")
    weights = path / "checkpoints" / "step-0" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.write_bytes(data)
    with pytest.raises(saccade.SaccadeError, match="is damaged: its hash"):
        load(path)
    weights.unlink()
    with pytest.raises(saccade.SaccadeError, match=r"step-0 lacks model\.safetensors"):
        load(path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(saccade.SaccadeError, match="newer saccade"):
        load(path)
    (path / "manifest.json").write_text("{")
    with pytest.raises(saccade.SaccadeError, match="is damaged"):
        load(path)


def test_nothing_is_overwritten(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for args in (("import", folder, tmp_path / "mine"), ("export", folder, tmp_path / "mine")):
        done = command(*args)
        assert done.returncode == 2
        assert "not empty" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("import", "nowhere", "run"), "nowhere is no folder"),
        (("import", "{empty}", "run"), "neither a run"),
        (("export", "{folder}", "out", "--format", "onxx"), "there is no format 'onxx'"),
        (("export", "{folder}", "out", "--family", "brt"), "did you mean 'bert'"),
        (("size", "gtp2"), "did you mean 'gpt2'"),
    ],
)
def test_bad_input_exits_2(folder, tmp_path, args, why, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = command(*(each.format(folder=folder, empty=tmp_path / "empty") for each in args))
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
