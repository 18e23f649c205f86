"""Runs: written whole, read strictly, and through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

import saccade
from saccade.command.folder import export as export_command
from saccade.command.folder import import_ as import_command
from saccade.decode.quantise import is_quantised, parameters_of
from saccade.learn.validate import evaluate
from saccade.recipes.read import from_values
from saccade.store import checkpoint
from saccade.store.export import export
from saccade.store.load import load
from saccade.store.run import Run


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


def test_import_and_export_round_trip_bit_for_bit(command, folder, tmp_path):
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
    gru = {"mixer": "gru", "position": None}
    for own, told in (({"position": "alibi"}, "nearest is gpt2; position is 'alibi'"), (gru, "meet by 'gru'")):
        odd = Run(saccade.build("gpt2", **small, decoder=2, **own))
        with pytest.raises(saccade.SaccadeError, match=f"no family at Hugging Face can express this model: .*{told}"):
            export(odd, tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


def test_a_tokenizer_that_is_none(folder):
    (folder / "tokenizer.json").write_text("{}")
    run = load(folder)
    with pytest.raises(saccade.SaccadeError, match=r"tokenizer\.json cannot be read"):
        _ = run.tokenizer
    (folder / "tokenizer.json").unlink()
    assert load(folder).tokenizer is None


def refuses_damage(run: Path, file: Path) -> None:
    """One bit of a file of the run is turned."""
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(saccade.SaccadeError, match="is damaged: its hash"):
        load(run)


def test_damage_is_noticed(folder, tmp_path):
    path = load(folder).save(tmp_path / "run")
    weights = path / "checkpoints" / "step-0" / "model.safetensors"
    refuses_damage(path, weights)
    weights.unlink()
    with pytest.raises(saccade.SaccadeError, match=r"step-0 lacks model\.safetensors"):
        load(path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(saccade.SaccadeError, match="newer saccade"):
        load(path)
    outside = {**manifest["sha256"], "fields/../../payload": "00"}
    for wrong in ("{", {"sha256": []}, {"sha256": [["a", "b"]]}, {"format": float("inf")}, {"sha256": outside}):
        text = wrong if isinstance(wrong, str) else json.dumps(manifest | wrong)
        (path / "manifest.json").write_text(text)
        with pytest.raises(saccade.SaccadeError, match="is damaged"):
            load(path)


def test_nothing_is_overwritten(command, folder, tmp_path):
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
        (("import", "{folder}", "run", "--scaling", "ntk(4)"), "the model's position is 'learned(37)'"),
        (("export", "{folder}", "out", "--format", "onxx"), "there is no format 'onxx'"),
        (("export", "{folder}", "out", "--family", "brt"), "did you mean 'bert'"),
        (("size", "gtp2"), "did you mean 'gpt2'"),
    ],
)
def test_bad_input_exits_2(command, folder, tmp_path, args, why, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = command(*(each.format(folder=folder, empty=tmp_path / "empty") for each in args))
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_trained_run_is_opened_with_slower_positions(tmp_path, capsys):
    """Its recipe says so too: what goes on from there, or is loaded later, turns as slowly."""
    model = {"vocab": 59, "width": 12, "heads": 2, "decoder": 1, "position": "rotary(base=500.0)", "head": "vocabulary"}
    values = {"task": "write", "data": {"name": "copy"}, "model": model, "train": {"steps": 1}}
    torch.manual_seed(0)
    before = Run(saccade.build(saccade.ModelConfig(**model)).eval(), recipe=from_values(values))
    before.save(tmp_path / "short")
    import_command(str(tmp_path / "short"), str(tmp_path / "long"), scaling="yarn(2, 64)")
    written = "rotary(half, 500.0, None, yarn=(2, 64, 32.0, 1.0))"
    assert capsys.readouterr().out.endswith(f", {written}\n")
    after = load(tmp_path / "long")
    assert after.model.config.position == after.recipe.model.position == written
    with torch.no_grad():
        tokens = torch.randint(59, (2, 9))
        assert not torch.allclose(after.model(tokens), before.model(tokens), atol=1e-4)
        whole = saccade.build(saccade.ModelConfig(**model | {"position": "rotary(base=500.0, yarn=(2, 64))"})).eval()
        whole.load_state_dict(before.model.state_dict())
        assert torch.equal(after.model(tokens), whole(tokens))


def tensors(path, step=0):
    return load_file(path / "checkpoints" / f"step-{step}" / "model.safetensors")


@pytest.mark.parametrize(
    "changes",
    [
        {"decoder": 2, "tie": True, "output_bias": True},
        {"decoder": 2, "tie": False, "feed": "swiglu", "experts": 3, "chosen": 2},
        {"decoder": 2, "encoder": 1, "tie": True, "position": "sinusoid"},
    ],
)
def test_a_quantised_run_comes_back_bit_for_bit(tmp_path, changes):
    config = saccade.ModelConfig(vocab=59, width=24, heads=3, head="vocabulary", **changes)
    run = Run(saccade.build(config).eval(), step=7)
    path = run.quantise().save(tmp_path / "int8")
    again = load(path)
    assert (again.quantised, again.step, again.recipe) == ("int8", 7, None)
    before, after = run.quantise().model.tensors(), again.model.tensors()
    assert before.keys() == after.keys() == tensors(path, 7).keys()
    assert all(torch.equal(before[key], after[key]) and before[key].dtype == after[key].dtype for key in before)
    assert not any(each.requires_grad for each in again.model.parameters())
    if config.tie:
        assert again.model.head.weight is again.model.embed.tokens.weight
    x = torch.randint(0, 59, (2, 7))
    inputs = (x, x) if config.encoder else (x,)
    assert torch.equal(again.model(*inputs), run.quantise().model(*inputs))
    again.save(tmp_path / "again")
    assert (tmp_path / "again/checkpoints/step-7/model.safetensors").read_bytes() == (
        path / "checkpoints/step-7/model.safetensors"
    ).read_bytes()
    weights = path / "checkpoints" / "step-7" / "model.safetensors"
    refuses_damage(path, weights)


def test_weights_are_quantised_while_they_are_read(folder, tmp_path):
    plain, small = load(folder), load(folder, quantise="int8")
    assert plain.quantised is None
    assert small.quantised == "int8"
    assert (small.family, small.files) == (plain.family, plain.files)
    assert small.model.head.weight.dtype is torch.int8
    assert len(saccade.generate(small.model, [[1], [2, 3]], max_tokens=5)[1].tokens) == 5
    path = plain.save(tmp_path / "run")
    x = torch.randint(0, 59, (2, 7))
    assert torch.equal(load(path, quantise="int8").model(x), small.model(x))


def test_what_quantised_runs_refuse(folder, tmp_path):
    with pytest.raises(saccade.SaccadeError, match="did you mean 'int8'"):
        load(folder, quantise="in8")
    with pytest.raises(saccade.SaccadeError, match="give dtype or quantise, not both"):
        load(folder, quantise="int8", dtype=torch.float64)
    path = load(folder, quantise="int8").save(tmp_path / "int8")
    with pytest.raises(saccade.SaccadeError, match="int8 already"):
        load(path, quantise="int8")
    with pytest.raises(saccade.SaccadeError, match="holds int8 weights"):
        load(path, dtype=torch.float64)
    with pytest.raises(saccade.SaccadeError, match="cannot hold these int8 weights"):
        export(load(path), tmp_path / "hf-again")
    assert not (tmp_path / "hf-again").exists()
    with pytest.raises(saccade.SaccadeError, match="was not made by training"):
        saccade.train(path)


def test_export_quantises_and_tells_what_is_lost(command, folder, tmp_path):
    done = command("export", folder, tmp_path / "int8", "--quantise", "int8")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert (
        ": int8, 0.07 MB -> 0.02 MB, measured on tokens that the model wrote itself, not on data (no recipe" in said[0]
    )
    assert said[1].split()[0] == "kl_divergence"
    assert float(said[1].split()[1]) < 0.01
    assert said[2].split()[0] == "top1_agreement"
    assert is_quantised(load(tmp_path / "int8").model)
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.parametrize("task", ["translate", "write"])
def test_export_measures_on_the_runs_own_data(task, tmp_path, capsys):
    lines = [f"{number * 37 % 1000} {number}" for number in range(150)]
    files = [tmp_path / "a.txt", tmp_path / "b.txt"][: 2 if task == "translate" else 1]
    for file in files:
        file.write_text("".join(f"{line}\n" for line in lines))
    values = {
        "task": task,
        "data": {"files": list(map(str, files)), "tokenizer": "characters", "vocab": 30, "share": 0.2},
        "model": {"width": 12, "heads": 2, "position": "rotary", "decoder": 1, "encoder": int(task == "translate")},
        "train": {"steps": 4, "batch": 90, "every": 4, **({"length": 15} if task == "write" else {})},
        "decode": {"max_tokens": 9},
    }
    saccade.train(from_values(values), run=tmp_path / "run")
    options = {"to": None, "family": None, "as_json": True}
    export_command(str(tmp_path / "run"), str(tmp_path / "int8"), quantise="int8", **options)
    found = json.loads(capsys.readouterr().out)
    assert found["quantised"] == "int8"
    assert found["bytes"]["after"] < 0.6 * found["bytes"]["before"]
    before, after = (load(tmp_path / name).model for name in ("run", "int8"))
    assert parameters_of(after) == parameters_of(before) == sum(each.numel() for each in before.parameters())
    told = evaluate(load(tmp_path / "run"))
    assert ("tokens" in told) == (task == "write")
    assert (told["examples"] == 1) == (task == "write"), "one text is one example"
    assert found["measured_on"].startswith("val, ")
    losses = found["metrics"]["perplexity"]
    assert losses["before"] != losses["after"] == pytest.approx(losses["before"], rel=0.05)
    assert ("exact_match" in found["metrics"]) == (task == "translate")
    run = load(tmp_path / "int8")
    assert run.recipe == load(tmp_path / "run").recipe
    assert checkpoint.steps(tmp_path / "int8") == [4]
    assert evaluate(run)["metrics"]["perplexity"] == losses["after"]
    assert run.predict(["12 3"])[0].text == load(tmp_path / "run", quantise="int8").predict(["12 3"])[0].text
    files[0].unlink()  # without its data there is still something to tell
    export_command(str(tmp_path / "run"), str(tmp_path / "blind"), quantise="int8", **options)
    found = json.loads(capsys.readouterr().out)
    assert f"not on data ({files[0]}" in found["measured_on"]
    assert 0 < found["metrics"]["kl_divergence"] < 0.05


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"quantise": "int4"}, "cannot be quantised to 'int4'; did you mean 'int8'"),
        ({"quantise": "int8", "to": "hf"}, "written as a run folder alone"),
        ({"quantise": "int8", "family": "gpt2"}, "written as a run folder alone"),
    ],
)
def test_export_refuses_what_it_cannot_quantise(folder, tmp_path, args, why):
    with pytest.raises(saccade.SaccadeError, match=why):
        export_command(str(folder), str(tmp_path / "out"), **({"to": None, "family": None} | args))
    assert not (tmp_path / "out").exists()


def test_an_encoder_from_elsewhere_is_looked_into_with_its_own_special_tokens(tmp_path):
    config = hf.BertConfig(
        vocab_size=11, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17
    )
    hf.BertModel(config).save_pretrained(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "eye", "jumps"]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(words[:4])
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    run = load(tmp_path)
    seen = run.look("the eye jumps")
    assert seen.sides["text"].words == ["[CLS]", "the", "eye", "jumps", "[SEP]"]
    assert len(seen.map("rollout:encoder", hide="special").rows) == 3
    with pytest.raises(saccade.SaccadeError, match="writes nothing: give an input without a target"):
        run.look("the eye", target="jumps")
    with pytest.raises(saccade.SaccadeError, match="half a character"):
        run.look("\ud800")
    with pytest.raises(saccade.SaccadeError, match=r"an encoder without a head, .* look into it .*start=FOLDER"):
        run.predict("the eye")


def test_a_search_is_not_asked_for_what_it_does_not_do():
    """Of a run whose recipe has a beam and its penalty, a greedy answer can be asked for all the same."""
    values = {
        "task": "translate",
        "data": {"name": "dates"},
        "train": {"steps": 1},
        "model": {"width": 6, "heads": 3, "decoder": 1},
    }
    searched = {"beam": 3, "length_penalty": 0.6}
    tiny = saccade.ModelConfig(vocab=31, width=6, heads=3, encoder=1, decoder=1, head="vocabulary")
    run = Run(saccade.build(tiny), recipe=from_values({**values, "decode": searched}))
    assert run.decode(beam=1).length_penalty == 0.6
    assert run.decode(beam=1, length_penalty=0.4).length_penalty == 0.4, "who tries all beams may say both"
    assert run.decode(length_reward=0.5).length_reward == 0.5
    plain = Run(saccade.build(tiny))
    for options, whose in (({"length_reward": 0.5}, "beam"), ({"top_p": 0.9}, "temperature"), ({"min_p": 0.1}, "temp")):
        with pytest.raises(saccade.SaccadeError, match=f"{next(iter(options))} belongs to {whose}"):
            plain.decode(**options)
        assert plain.search(**options), "a program that sends all it knows is served"
