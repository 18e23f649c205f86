"""`saccade look`, as a user meets it."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import saccade
from saccade.cli import main
from saccade.field.text.text import Text
from saccade.store.run import Run

SENTENCE = "the cat that chased the dogs sleeps"


def made(path, **changes):
    """A small run of random weights, with a tokenizer."""
    torch.manual_seed(0)
    text = Text.train([SENTENCE, "ein Hund, der die Katze jagt"], "bpe", vocab=271)
    values = {"vocab": text.vocab, "width": 12, "heads": 3, "hidden": 17, "head": "vocabulary", "position": "sinusoid"}
    run = Run(saccade.build(saccade.ModelConfig(**values | changes)))
    run.files["tokenizer.json"] = text.to_bytes()
    return str(run.save(path))


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs") / "translator", encoder=1, decoder=2)


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs") / "writer", decoder=2)


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command line; gives its exit code, what it printed and what it complained of."""

    def run(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["saccade", "look", *map(str, args)])
        with pytest.raises(SystemExit) as over:
            main()
        told = capsys.readouterr()
        return int(over.value.code or 0), told.out, told.err

    return run


def test_a_mask_and_a_position_in_the_terminal(command):
    code, out, _ = command("causal & window(2)", "--length", 5)
    assert code == 0
    assert out.splitlines()[0] == "causal & window(2)"
    assert [line.split() for line in out.splitlines()[2:7]][4] == ["4", "0.00", "0.00", "0.00", "1.00", "1.00"]
    code, out, _ = command("sinusoid", "--length", 7)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert len(out.splitlines()) >= 9


@pytest.mark.parametrize("kind", ["svg", "png", "html", "csv", "npz"])
def test_pictures_without_a_run(command, tmp_path, kind):
    path = tmp_path / f"picture.{kind}"
    assert command("alibi", "--length", 13, "--out", path) == (0, f"{path}\n", "")
    assert path.stat().st_size > 100
    if kind == "npz":
        assert np.load(path)["values"].shape == (13, 13)
    if kind == "png":
        assert Pillow.open(io.BytesIO(path.read_bytes())).size[0] > 400


def test_a_position_has_a_length_and_a_width(command):
    code, out, _ = command("sinusoid", "--length", 5, "--width", 6, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["shape"] == [5, 6]
    assert found["values"][0] == [0.0, 1.0] * 3


def test_the_alignment_of_a_translator_is_what_it_looked_at(command, translator, tmp_path):
    path = tmp_path / "map.npz"
    code, _, _ = command(translator, SENTENCE, "--target", "ein Hund", "--words", "--out", path)
    assert code == 0
    found = np.load(path)
    assert found["rows"].tolist() == ["ein", "Hund", "<end>"]
    assert found["columns"].tolist()[:7] == SENTENCE.split()
    expected = saccade.load(translator).look(SENTENCE, "ein Hund").map("alignment", words=True)
    assert np.array_equal(found["values"], expected.values.numpy())


def test_layers_heads_and_what_is_hidden(command, translator, tmp_path):
    seen = saccade.load(translator).look(SENTENCE, "ein Hund")
    path, layer = tmp_path / "map.npz", "decoder.blocks.1.cross"
    for head in ("0", "2", "mean", "max"):
        options = ("--layer", layer, "--head", head, "--hide", "special", "--target", "ein Hund")
        assert command(translator, SENTENCE, *options, "--out", path)[0] == 0
        expected = seen.map(layer, int(head) if head.isdigit() else head, hide=["special"])
        assert np.array_equal(np.load(path)["values"], expected.values.numpy())
    assert command(translator, SENTENCE, "--size", 3, "--target", "ein Hund", "--out", path)[0] == 0
    assert max(np.load(path)["values"].shape) <= 3


def test_a_page_of_the_whole_look_and_an_atlas(command, writer, tmp_path):
    page, atlas, one = tmp_path / "page.html", tmp_path / "atlas.svg", tmp_path / "one.html"
    assert command(writer, SENTENCE, "--out", page)[0] == 0
    assert "6 heads in numbers" in page.read_text()
    assert command(writer, SENTENCE, "--layer", "atlas", "--out", atlas)[0] == 0
    assert atlas.read_text().count("entropy") == 6
    assert command(writer, SENTENCE, "--layer", "decoder.blocks.0.attention", "--out", one)[0] == 0
    assert "heads in numbers" not in one.read_text()


def test_a_map_in_the_terminal(command, writer):
    code, out, _ = command(writer, "the cat", "--words")
    assert code == 0
    assert out.splitlines()[0] == "decoder.blocks.1.attention, mean over the heads"
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["the", "cat"]
    code, out, _ = command(writer, "[/] the [b]")  # nobody's text is markup
    assert code == 0
    assert "[/]" in out.splitlines()[1].replace(" ", "")


def test_tables_of_the_heads(command, writer):
    code, out, _ = command(writer, SENTENCE, "--statistics")
    assert code == 0
    assert out.splitlines()[0].split() == ["layer", "head", "entropy", "distance", "badges"]
    assert len(out.splitlines()) == 7
    code, out, _ = command(writer, SENTENCE, "--ablate")
    assert out.splitlines()[0].split()[-1] == "silenced"
    seen = saccade.load(writer).look(SENTENCE)
    changes = [float(line.split()[-1]) for line in out.splitlines()[1:7]]
    expected = [each for layer in seen.layers for each in seen.ablation(layer.name).heads]
    assert changes == pytest.approx(expected, abs=1e-4)
    assert seen.matters in out


def test_json_tells_tokens_layers_and_heads(command, writer):
    code, out, err = command(writer, SENTENCE, "--max-tokens", 3, "--ablate", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    tokens = found["sides"]["text"]["tokens"]
    assert found["begun"] == len(tokens) - 3
    assert "".join(each["text"] for each in tokens).startswith(SENTENCE)
    assert "logprob" not in tokens[0]
    assert all(each["logprob"] < 0 for each in tokens[1:])
    assert [each["name"] for each in found["layers"]] == ["decoder.blocks.0.attention", "decoder.blocks.1.attention"]
    for layer in found["layers"]:
        assert len(layer["heads"]) == len(layer["ablation"]["heads"]) == 3
        assert all(set(each) == {"entropy", "distance", "badges"} for each in layer["heads"])


def test_json_is_json_whatever_the_weights(command, tmp_path):
    signed = made(tmp_path / "signed", decoder=1, normaliser="none")
    broken = Run(saccade.load(signed).model)
    torch.nn.init.constant_(broken.model.decoder.blocks[0].attention.query.weight, torch.nan)
    broken.files["tokenizer.json"] = (tmp_path / "signed" / "fields" / "tokenizer.json").read_bytes()
    for run, known in ((signed, True), (broken.save(tmp_path / "broken"), False)):
        code, out, _ = command(run, SENTENCE, "--json")
        assert code == 0
        (layer,) = json.loads(out, parse_constant=pytest.fail)["layers"]
        assert all((head["entropy"] is not None) == known for head in layer["heads"])


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("causl",), "did you mean 'causal'"),
        (("window(x)",), "window"),
        (("runs/nowhere", "text"), "'runs/nowhere' is no folder"),
        (("causal", "text"), "INPUT needs a run"),
        (("causal", "--ablate"), "--ablate needs a run"),
        (("causal", "--width", "3"), "a mask has no width"),
        (("causal", "--out", "x.sgv"), "did you mean 'svg'"),
        (("causal", "--out", "no/where.svg"), "is no folder: make it first"),
        (("RUN",), "the input is missing"),
        (("RUN", ""), "this text is empty"),
        (("RUN", "the cat", "--length", "3"), "--length and --width are for masks"),
        (("RUN", "the cat", "--layer", "decoder.blocks.7.attention"), "no layer that looked is called"),
        (("RUN", "the cat", "--layer", "alignment"), "made of cross-attention, and this model has none"),
        (("RUN", "the cat", "--head", "most"), "head is a number"),
        (("RUN", "the cat", "--head", "3"), "head 3 does not exist"),
        (("RUN", "the cat", "--hide", "sinks"), "did you mean 'sink'"),
        (("RUN", "the cat", "--layer", "atlas"), "write it to an .svg"),
        (("RUN", "the cat", "--step", "3"), "no snapshot of step 3"),
    ],
)
def test_bad_input_exits_2_with_one_sentence_and_no_file(command, writer, tmp_path, monkeypatch, args, why):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*(writer if each == "RUN" else each for each in args))
    assert code == 2
    assert why in err
    assert err.startswith("saccade: ")
    assert len(err.strip().splitlines()) == 1
    assert out == ""
    assert not list(tmp_path.iterdir())


def test_a_bad_view_leaves_the_old_file_alone(command, writer, tmp_path):
    path = tmp_path / "map.svg"
    path.write_text("before")
    assert command(writer, "the cat", "--head", "9", "--out", path)[0] == 2
    assert path.read_text() == "before"
