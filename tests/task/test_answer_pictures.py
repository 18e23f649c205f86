"""A picture and a question to an answer, a label or words: trained, predicted, looked into, evaluated, served."""

from __future__ import annotations

import base64
import json

import httpx
import numpy as np
import pytest
from serve.small import serving
from typer.testing import CliRunner

import saccade
from saccade import png
from saccade.cli import app
from saccade.data import relations
from saccade.learn.validate import evaluate
from saccade.recipes.read import recipe

SMALL = [
    "data.examples=60",
    "data.held=20",
    "model.width=12",
    "model.heads=2",
    "model.hidden=17",
    "model.encoder=2",
    "train.steps=4",
    "train.every=2",
    "train.warmup=1",
    "train.batch=100",
]
WORDS = ["y.kind=text", "model.decoder=1", "decode.max_tokens=4"]
POOLED = ["model.context_pool=mean"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answer")
    options = {"label": [], "words": WORDS, "pooled": POOLED}
    return {
        name: saccade.train("relations-vqa", run=folder / name, options=[*SMALL, *more])
        for name, more in options.items()
    }


INPUTS = [
    {"picture": picture, "question": question}
    for picture, question, _ in relations.examples(7, split="test", seed=3, first=3)
]


@pytest.mark.parametrize("name", ["label", "words", "pooled"])
def test_batched_is_alone_and_watched_is_unwatched(runs, name):
    run = runs[name]
    together = run.predict(INPUTS)
    for given, found in zip(INPUTS, together, strict=True):
        (alone,) = run.predict(given)
        assert alone.text == found.text
        assert alone.score == pytest.approx(found.score, abs=1e-5)
    run.look(INPUTS[0])
    assert run.predict(INPUTS) == together


@pytest.mark.parametrize("options", [{"beam": 3}, {"temperature": 0.7, "seed": 5}])
def test_words_are_searched_for(runs, options):
    together = runs["words"].predict(INPUTS, **options)
    assert [runs["words"].predict(each, **options)[0].text for each in INPUTS] == [each.text for each in together]


def test_each_word_looks_at_the_grid(runs):
    seen = runs["label"].look(INPUTS[0])
    assert list(seen.sides) == ["picture", "question"]
    assert seen.usual == "alignment"
    words = [unit.text for unit in seen.sides["question"].tokens if not unit.special]
    assert "".join(words).replace(" ", "") == INPUTS[0]["question"].replace(" ", "")
    map = seen.map()
    assert map.values.shape == (len(seen.sides["question"]), 36)
    np.testing.assert_allclose(map.values.sum(1), 1, rtol=1e-5)
    kinds = {layer.name: (layer.rows, layer.columns) for layer in seen.layers}
    assert kinds["encoder.blocks.1.cross"] == ("question", "picture")
    assert kinds["encoder.blocks.0.attention"] == ("question", "question")
    assert kinds["context.layers.blocks.0.attention"] == ("picture", "picture")
    assert len(seen.ablation("encoder.blocks.1.cross").heads) == 2
    assert len(seen.ablation("context.layers.blocks.0.attention").heads) == 2
    assert seen.statistics("encoder.blocks.0.cross")
    assert seen.map("rollout:context").values.shape == (36, 36)


def test_with_words_the_written_looks_at_the_question(runs):
    seen = runs["words"].look(INPUTS[0])
    assert list(seen.sides) == ["picture", "question", "target", "written"]
    assert seen.map("alignment").values.shape == (len(seen.sides["written"]), len(seen.sides["question"]))
    assert seen.map("encoder.blocks.1.cross").values.shape == (len(seen.sides["question"]), 36)


def test_pooled_looks_at_the_whole(runs):
    seen = runs["pooled"].look(INPUTS[0])
    layer = seen.layer("encoder.blocks.1.cross")
    assert layer.columns == "picture, pooled"
    map = seen.map(layer.name)
    assert (map.values == 1).all()
    assert map.values.shape[1] == 1


@pytest.mark.parametrize("ending", ["svg", "png", "html", "csv", "npz"])
@pytest.mark.parametrize("name", ["label", "words", "pooled"])
def test_maps_are_drawn(runs, name, ending, tmp_path):
    assert runs[name].look(INPUTS[0]).save(tmp_path / f"map.{ending}").stat().st_size > 80
    assert runs[name].look(INPUTS[0]).save(tmp_path / f"all.{ending}", "encoder.blocks.0.cross", row="the")


def test_kinds_of_questions_are_measured_apart(runs):
    found = evaluate(runs["label"], "test")
    assert set(found["kinds"]) == {relations.ONE, relations.TWO}
    total = sum(each["examples"] for each in found["kinds"].values())
    assert total == found["examples"] == 20
    right = sum(each["examples"] * each["accuracy"] for each in found["kinds"].values())
    assert right / total == pytest.approx(found["metrics"]["accuracy"])
    assert found["baseline"]["what"] == "the commonest answer to each question"
    usual = sum(each["examples"] * each["baseline"]["accuracy"] for each in found["kinds"].values())
    assert usual / total == pytest.approx(found["baseline"]["accuracy"])
    assert "exact_match" in evaluate(runs["words"], "test")["baseline"]


def test_unknown_words_are_answered_with_a_note(runs):
    asked = {**INPUTS[0], "question": "what colour is the zorgle near the quux?"}
    (result,) = runs["label"].predict(asked)
    assert result.value is not None
    assert result.note == "not known: 'zorgle', 'near', 'quux'"
    assert "".join(runs["label"].stream(asked)) == result.text
    assert runs["label"].predict(INPUTS[0])[0].note is None


def test_a_blank_question_gets_a_note(runs):
    (result,) = runs["label"].predict({**INPUTS[0], "question": "  "})
    assert result.value is None
    assert "there is nothing to answer" in result.note


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "shapes.png"
    path.write_bytes(png.encode(INPUTS[0]["picture"]))
    return path


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"picture": "FILE"}, "question is missing"),
        ({"question": "what shape?"}, "picture is missing"),
        ({"picture": "FILE", "question": "x", "answer": "y"}, "reads no 'answer'"),
        ({"picture": ["FILE", "FILE"], "question": "x"}, "one picture was expected, not 2"),
        ({"picture": "nowhere.png", "question": "x"}, "is no file"),
        ("what shape?", "a table of them by name"),
    ],
)
def test_the_command_refuses_in_one_sentence(runs, picture, given, told):
    line = given if isinstance(given, str) else json.dumps(given).replace("FILE", str(picture))
    found = CliRunner().invoke(app, ["predict", str(runs["label"].path), line])
    assert isinstance(found.exception, saccade.SaccadeError)
    assert told in str(found.exception)


def test_the_command_answers(runs, picture):
    line = json.dumps({"picture": str(picture), "question": INPUTS[0]["question"]})
    found = CliRunner().invoke(app, ["predict", str(runs["label"].path), line, "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["text"] == runs["label"].predict(INPUTS[0])[0].text


def test_a_table_of_ones_own(tmp_path):
    lines = ["image,asked,said"]
    for number, (pixels, question, answer) in enumerate(relations.examples(40)):
        (tmp_path / f"{number // 5}.png").write_bytes(png.encode(pixels))
        lines.append(f"{number // 5}.png,{question},{answer}")
    (tmp_path / "table.csv").write_text("\n".join(lines))
    own = ["data.columns=['image', 'asked', 'said']", "data.share=0.3", "size=full", *SMALL[2:]]
    options = [f"data.files=['{tmp_path / 'table.csv'}']", "x.picture.size=16", *own]
    run = saccade.train("answer", run=tmp_path / "run", options=options)
    corpus_rows = evaluate(run, "val")["examples"]
    assert 0 < corpus_rows < 40
    assert corpus_rows % 5 == 0, "all questions of a picture are on the same side"


def as_url(pixels):
    return f"data:image/png;base64,{base64.b64encode(png.encode(pixels)).decode()}"


def part(pixels):
    return {"type": "image_url", "image_url": {"url": as_url(pixels)}}


def test_over_the_network(runs):
    url, question = as_url(INPUTS[0]["picture"]), INPUTS[0]["question"]
    (expected,) = runs["label"].predict(INPUTS[0])
    with serving({"run": runs["label"]}) as house, httpx.Client(base_url=house.url, timeout=60) as client:
        answer = client.post("/v1/predict", json={"input": {"picture": url, "question": question}}).json()
        assert answer["results"][0]["text"] == expected.text
        assert answer["results"][0]["probabilities"].keys() == expected.probabilities.keys()
        look = client.post("/v1/inspect", json={"completion": answer["id"]}).json()
        assert look["sides"]["picture"]["kind"] == "patches"
        assert look["sides"]["question"]["kind"] == "words"
        map = client.get(f"/v1/inspect/{look['id']}/map", params={"layer": "alignment"})
        assert map.headers["X-Shape"].endswith(",36")

        def chat(*content):
            messages = [{"role": "user", "content": list(content)}]
            return client.post("/v1/chat/completions", json={"messages": messages})

        text = {"type": "text", "text": question}
        said = chat(text, part(INPUTS[0]["picture"]))
        assert said.json()["choices"][0]["message"]["content"] == expected.text
        for given, told in (
            ([text], "there is no picture"),
            ([part(INPUTS[0]["picture"])], "no question"),
            ([text, part(INPUTS[0]["picture"]), part(INPUTS[1]["picture"])], "holds 2 pictures"),
        ):
            refused = chat(*given)
            assert refused.status_code == 400
            assert told in refused.json()["error"]["message"]
        missing = client.post("/v1/predict", json={"input": {"picture": url}})
        assert missing.status_code == 400
        assert "question is missing" in missing.json()["error"]["message"]


def test_the_recipe_needs_words_for_a_decoder():
    with pytest.raises(saccade.SaccadeError, match="an encoder alone"):
        saccade.train(recipe("relations-vqa", [*SMALL, "model.decoder=1"]))
