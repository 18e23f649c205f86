"""A look: what is shown is what the model computed, whatever is merged, hidden, cut or made smaller."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tasks import look
from tokenizers import Tokenizer, decoders, models

import saccade
from saccade.field.text.text import Text
from saccade.look import map as maps
from saccade.look.look import Look
from saccade.look.watch import twin as twin_of

SENTENCE = "the cat that chased the dogs sleeps"
TEXT = Text.train([SENTENCE, "ein Hund schläft, der die Katze jagt."], "bpe", vocab=271)


def model_of(**changes):
    torch.manual_seed(0)
    values = {"vocab": TEXT.vocab, "width": 12, "heads": 3, "hidden": 17, "head": "vocabulary"} | changes
    return saccade.build(saccade.ModelConfig(**values)).double().eval()


def translator(**changes):
    return model_of(**{"encoder": 2, "decoder": 2, "position": "sinusoid"} | changes)


def tokens(text: str = SENTENCE) -> list[int]:
    return TEXT.encode([text])[0]


@pytest.fixture(scope="module")
def translated() -> Look:
    return look(translator(), TEXT, [*tokens(), TEXT.end], tokens("ein Hund"), ended=True)


@pytest.fixture(scope="module")
def written() -> Look:
    return look(model_of(decoder=3), TEXT, tokens()[:5], tokens()[5:])


def test_summaries_are_not_looked_at():
    """A slot mixes all tokens: the layers that look at slots have no map, those that look at tokens have."""
    both = look(translator(summary="linformer(3, 99)"), TEXT, tokens(), tokens("ein Hund"), ended=True)
    assert {each.stack for each in both.layers} == {"decoder"}
    assert len(both.map("alignment").values)
    sentence = "'encoder.blocks.0.attention' attends to summaries of the whole text"
    with pytest.raises(saccade.SaccadeError, match=f"^{sentence}"):
        both.map("encoder.blocks.0.attention")
    assert both.watched.weights("encoder.blocks.0.attention").shape[-1] == 3
    with pytest.raises(saccade.SaccadeError, match=f"^{sentence}"):
        look(model_of(encoder=1, head="masked", summary="linformer(3, 99)"), TEXT, tokens())


def test_sides_and_layers_of_a_translation(translated):
    assert list(translated.sides) == ["source", "target", "written"]
    source, target, said = translated.sides.values()
    assert source.words == [*SENTENCE.split(), "<end>"]
    assert (target.words, said.words) == (["<begin>", "ein", "Hund"], ["ein", "Hund", "<end>"])
    assert [token.id for token in target.tokens[1:]] == [token.id for token in said.tokens[:-1]]
    assert [
        (each.stack, each.number, each.kind, each.rows, each.columns, each.heads) for each in translated.layers
    ] == [
        ("encoder", 0, "self", "source", "source", 3),
        ("encoder", 1, "self", "source", "source", 3),
        ("decoder", 0, "self", "target", "target", 3),
        ("decoder", 0, "cross", "written", "source", 3),
        ("decoder", 1, "self", "target", "target", 3),
        ("decoder", 1, "cross", "written", "source", 3),
    ]
    assert translated.output == "ein Hund"
    assert translated.usual == "alignment"


def test_how_likely_each_token_was(translated, written):
    source, said = [*tokens(), TEXT.end], [*tokens("ein Hund"), TEXT.end]
    found = translated.model(torch.tensor([source]), torch.tensor([[TEXT.begin, *said[:-1]]]))[0].log_softmax(-1)
    assert translated.logprobs == pytest.approx(found[range(len(said)), said].tolist(), abs=1e-6)
    assert [[token for token, _ in each] for each in translated.top] == found.topk(5).indices.tolist()
    ids = tokens()
    found = written.model(torch.tensor([ids]))[0].log_softmax(-1)
    assert written.logprobs[0] is None
    assert written.top[0] == []
    assert written.logprobs[1:] == pytest.approx(found[range(len(ids) - 1), ids[1:]].tolist(), abs=1e-6)
    assert (written.begun, written.output) == (5, TEXT.decode(ids[5:]))


def test_what_was_generated_is_as_likely_as_the_search_said():
    model = model_of(decoder=2)
    (sequence,) = saccade.generate(model, [tokens()], max_tokens=7)
    seen = look(model, TEXT, tokens(), sequence.tokens)
    assert seen.logprobs[-7:] == pytest.approx(sequence.logprobs, abs=1e-6)


def whole(seen: Look, layer: str) -> torch.Tensor:
    return seen.watched.weights(layer)[0].float()


@pytest.mark.parametrize(
    "layer", ["encoder.blocks.1.attention", "decoder.blocks.0.attention", "decoder.blocks.1.cross"]
)
def test_maps_are_the_weights(translated, layer):
    weights = whole(translated, layer)
    assert torch.allclose(translated.map(layer).values, weights.mean(0))
    assert torch.allclose(translated.map(layer, "max").values, weights.amax(0))
    for head in range(3):
        assert torch.allclose(translated.map(layer, head).values, weights[head])
    side = translated.sides[translated.layer(layer).columns]
    assert translated.map(layer).columns == [token.text for token in side.tokens]


def test_alignment_and_rollout_are_made_of_all_layers(translated, written):
    across = torch.stack([whole(translated, f"decoder.blocks.{number}.cross") for number in (0, 1)])
    assert torch.allclose(translated.map("alignment").values, across.mean((0, 1)))
    assert torch.allclose(translated.map("alignment", "max").values, across.amax((0, 1)))
    eye = torch.eye(len(tokens()))
    rolled = eye
    for number in range(3):
        rolled = 0.5 * (whole(written, f"decoder.blocks.{number}.attention").mean(0) + eye) @ rolled
    found = written.map("rollout:decoder").values
    assert torch.allclose(found, rolled, atol=1e-6)
    assert torch.allclose(found.sum(1), torch.ones(len(eye)))
    assert not found.triu(1).any()


def test_sub_words_become_words(translated):
    layer = "decoder.blocks.0.cross"
    weights, merged = whole(translated, layer)[1], translated.map(layer, 1, words=True)
    source, said = translated.sides["source"], translated.sides["written"]
    assert (merged.rows, merged.columns) == (said.words, source.words)
    for row, _ in enumerate(said.words):
        rows = [number for number, token in enumerate(said.tokens) if token.word == row]
        for column, _ in enumerate(source.words):
            columns = [number for number, token in enumerate(source.tokens) if token.word == column]
            wanted = weights[rows][:, columns].sum(1).mean()
            assert merged.values[row, column] == pytest.approx(float(wanted), abs=1e-6)
    assert torch.allclose(merged.values.sum(1), torch.ones(len(said.words)))


def test_what_is_hidden_leaves_the_others_as_they_are(translated):
    full, shown = (translated.map("decoder.blocks.1.cross", 2, hide=hide) for hide in ((), "special"))
    assert "<end>" not in [*shown.rows, *shown.columns]
    assert torch.equal(shown.values, full.values[:-1, :-1])


def test_sinks_are_found_and_hidden():
    model = model_of(decoder=1, score="scaled_dot(scale=0)", mask="prefix(1) | causal")
    seen = look(model, TEXT, tokens())
    layer = "decoder.blocks.0.attention"
    assert seen.map(layer, hide="sink").columns == seen.map(layer).columns  # even looks have no sink
    seen.watched.call(layer).k.zero_()
    weights = torch.zeros(1, 3, len(tokens()), len(tokens()))
    weights[..., 2], weights[..., 1] = 0.8, 0.2
    seen.watched.weights = lambda name, head=None, rows=None: weights if rows is None else weights[:, :, rows]
    names = seen.map(layer).columns
    assert seen.map(layer, hide="sink").columns == names[:2] + names[3:]
    assert seen.map(layer, hide=["sink", "special"]).rows == names[:2] + names[3:]


@examples(30)
@given(
    size=st.integers(1, 40),
    words=st.booleans(),
    head=st.sampled_from([0, 2, "mean", "max"]),
    slice_=st.integers(1, 500),
)
def test_a_smaller_map_is_the_maximum_of_what_its_cells_cover(written, size, words, head, slice_):
    before, maps.SLICE = maps.SLICE, slice_  # however few rows are computed at a time
    try:
        layer = "decoder.blocks.1.attention"
        full, small = written.map(layer, head, words=words), written.map(layer, head, words=words, size=size)
    finally:
        maps.SLICE = before
    count = len(full.rows)
    step = math.ceil(count / size)
    assert len(small.rows) == math.ceil(count / step) <= size
    assert small.row_places == full.row_places[::step]
    for row in range(len(small.rows)):
        for column in range(len(small.columns)):
            cell = full.values[row * step : (row + 1) * step, column * step : (column + 1) * step]
            assert small.values[row, column] == pytest.approx(float(cell.max()), abs=1e-6)


def test_a_part_of_a_map(written):
    layer = "decoder.blocks.0.attention"
    part, full = written.map(layer, rows=(3, 7), columns=(2, 4)), written.map(layer)
    assert torch.equal(part.values, full.values[3:7, 2:4])
    assert (part.row_places, part.column_places) == ([3, 4, 5, 6], [2, 3])
    assert written.map(layer, rows=(500, 600)).values.shape == (0, len(full.columns))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"layer": "decoder.blocks.9.attention"}, "no layer that looked is called"),
        ({"layer": "alignment"}, "made of cross-attention, and this model has none"),
        ({"layer": "rollout:decoder", "head": 1}, "a rollout is of all heads"),
        ({"head": -1}, "a number from 0"),
        ({"size": 1.5}, "size is a whole number from 1"),
        ({"rows": (1,)}, "rows go from a number"),
        ({"layer": "rollout:encoder"}, "no stack 'encoder'"),
        ({"head": 3}, "head 3 does not exist: .* has 3"),
        ({"head": "median"}, "'mean' or 'max'"),
        ({"hide": ["specials"]}, "nothing called 'specials' to hide; .*special"),
        ({"size": 0}, "size is a whole number from 1"),
        ({"rows": (4, 4)}, "from a number to a larger one; got \\(4, 4\\)"),
        ({"columns": (-1, 4)}, "from a number to a larger one; got \\(-1, 4\\)"),
    ],
)
def test_what_cannot_be_asked_for(written, options, why):
    with pytest.raises(saccade.SaccadeError, match=why):
        written.map(**{"layer": "decoder.blocks.0.attention"} | options)


def test_what_cannot_be_looked_at():
    with pytest.raises(saccade.SaccadeError, match="has no tokens"):
        look(model_of(decoder=1), TEXT, [])
    with pytest.raises(saccade.SaccadeError, match="wrote nothing"):
        look(translator(), TEXT, tokens())
    with pytest.raises(saccade.SaccadeError, match="an encoder alone writes nothing"):
        look(model_of(encoder=1, head=None), TEXT, tokens(), tokens())
    with pytest.raises(saccade.SaccadeError, match="too long: the model has 5 positions"):
        look(model_of(decoder=1, position="learned(5)"), TEXT, tokens())
    with pytest.raises(saccade.SaccadeError, match="no token 271: the model knows 271"):
        look(model_of(decoder=1), TEXT, [3, 271])


def test_the_same_tokens_again_through_other_weights(translated):
    torch.manual_seed(1)
    other = saccade.build(translated.model.config).double().eval()
    again = translated.again(other)
    assert again.sides == translated.sides
    assert torch.equal(
        again.map().values, look(other, TEXT, [*tokens(), TEXT.end], tokens("ein Hund"), ended=True).map().values
    )
    assert not torch.equal(again.map().values, translated.map().values)
    with pytest.raises(saccade.SaccadeError, match="that model has another vocabulary"):
        translated.again(model_of(decoder=1))


@pytest.mark.parametrize(
    "layer", ["encoder.blocks.0.attention", "decoder.blocks.1.attention", "decoder.blocks.1.cross"]
)
def test_ablation_is_the_loss_without_the_head(translated, layer):
    found = translated.ablation(layer)
    assert found.before == pytest.approx(sum(translated.logprobs), abs=1e-6)
    width = 12 // 3
    for head in range(3):
        model = translator()
        with torch.no_grad():  # a head whose columns of the output projection are zero says nothing
            model.get_submodule(layer).out.weight[:, head * width : (head + 1) * width] = 0
        without = sum(translated.again(model).logprobs)
        assert found.heads[head] == pytest.approx(without - found.before, abs=1e-6)


def test_ablation_counts_what_the_model_wrote_and_leaves_nothing_behind(written, monkeypatch):
    monkeypatch.setattr("saccade.look.ablation.TOGETHER", 1)  # one head after another
    layer = "decoder.blocks.2.attention"
    before = written.model(torch.tensor([tokens()]))
    found = written.ablation(layer)
    assert written.matters == f"the log-probability of the {len(tokens()) - 5} tokens written"
    assert found.before == pytest.approx(sum(written.logprobs[5:]), abs=1e-6)
    assert torch.equal(before, written.model(torch.tensor([tokens()])))
    given = look(written.model, TEXT, tokens())
    assert given.matters == f"the log-probability of the {len(tokens()) - 1} tokens of the text after its first"
    assert given.ablation(layer).before == pytest.approx(sum(given.logprobs[1:]), abs=1e-6)


def test_a_label_is_looked_at_too():
    model = model_of(encoder=2, pooler=True, head="label(5)")
    labels = ["ape", "bee", "cat", "dog", "eel"]
    seen = look(model, TEXT, [TEXT.begin, *tokens()], labels=labels)
    with torch.no_grad():
        scores = model(torch.tensor([[TEXT.begin, *tokens()]])).log_softmax(-1)[0]
    assert seen.output == labels[int(scores.argmax())]
    assert seen.matters == f"the log-probability of the label {seen.output!r}"
    assert seen.ablation("encoder.blocks.1.attention").before == pytest.approx(float(scores.max()), abs=1e-9)
    assert (list(seen.sides), seen.logprobs) == (["text"], [])


def test_a_body_without_a_head_has_maps_and_nothing_to_measure():
    seen = look(model_of(encoder=2, head=None), TEXT, tokens())
    assert seen.map("rollout:encoder").values.shape == (len(tokens()), len(tokens()))
    assert (seen.matters, seen.output) == (None, "")
    with pytest.raises(saccade.SaccadeError, match="nothing to measure"):
        seen.ablation(seen.layers[0].name)


MEANINGS = [
    {"score": "dot"},
    {"score": "scaled_dot", "position": "rotary"},
    {"score": "cosine"},
    {"score": "bilinear"},
    {"score": "additive"},
    {"position": "alibi"},
    {"position": "relative(3)"},
    {"normaliser": "sparsemax", "mask": "window(4)"},
    {"width": 16, "heads": 4, "kv_heads": 2},
]


@pytest.mark.parametrize("changes", MEANINGS, ids=str)
def test_a_pair_tells_how_its_weight_comes_about(changes):
    seen = look(model_of(decoder=2, **changes), TEXT, tokens())
    layer, heads = "decoder.blocks.1.attention", seen.layers[0].heads
    weights = seen.watched.weights(layer)[0]
    for head, row, column in ((0, 5, 5), (heads - 1, 6, 2), (1, 3, 7)):
        pair = seen.pair(layer, head, row, column)
        assert pair.weight == pytest.approx(float(weights[head, row, column]), abs=1e-12)
        assert pair.may == (column <= row and (changes.get("mask") is None or row - column < 4))
        if changes.get("score") == "additive":
            assert (pair.products, pair.dot, pair.scale) == ([], None, None)
            continue
        assert pair.products == pytest.approx([a * b for a, b in zip(pair.query, pair.key, strict=True)])
        assert pair.score == pytest.approx(pair.scale * sum(pair.products), abs=1e-9)
        assert pair.dot == pytest.approx(sum(pair.products), abs=1e-9)
        assert bool(pair.bias) == (
            changes.get("position") in ("alibi", "relative(3)")
            and (row != column or "alibi" not in changes["position"])
        )
    scores = torch.tensor([seen.pair(layer, 1, 6, each).score + seen.pair(layer, 1, 6, each).bias for each in range(7)])
    if "normaliser" not in changes:
        assert torch.allclose(F.softmax(scores.double(), 0), weights[1, 6, :7], atol=1e-6)


@pytest.mark.parametrize("place", [(3, 0, 0), (0, 99, 0), (0, 0, -1)])
def test_a_pair_that_is_not_there(written, place):
    with pytest.raises(saccade.SaccadeError, match="does not exist"):
        written.pair("decoder.blocks.0.attention", *place)


def test_looking_does_not_change_the_model_and_a_twin_is_apart(written):
    model = written.model
    twin = twin_of(model)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    with saccade.watch(twin) as seen:
        model(torch.tensor([tokens()]))
    assert seen.calls("decoder.blocks.0.attention") == 0
    ids = torch.tensor([tokens()])
    assert torch.equal(model(ids), twin(ids))


def test_a_tokenizer_that_alone_knows_how_it_writes_shows_its_names():
    own = Tokenizer(models.WordLevel({"a": 0, "b_": 1, "[UNK]": 2}, unk_token="[UNK]"))
    own.decoder = decoders.CTC()
    text = Text(own)
    assert text.manner is None
    seen = look(model_of(decoder=1, vocab=3), text, [0, 1, 0, 2])
    assert [token.text for token in seen.sides["text"].tokens] == ["a", "b_", "a", "[UNK]"]


def test_two_thousand_tokens():
    ids = (tokens() * 200)[:2003]
    seen = look(model_of(decoder=1, position="rotary", mask="window(700)").float(), TEXT, ids)
    found = seen.map(size=128)
    assert found.values.shape == (126, 126)
    assert len(seen.statistics(seen.layers[0].name)) == 3


@pytest.mark.parametrize("cross", ["feeding", "attention"])
def test_recurrent_architectures_are_looked_into_as_any_other(cross):
    model = model_of(encoder=1, decoder=1, mixer="gru", cross=cross, order="plain", feed="none", score="additive")
    seen = look(model, TEXT, [*tokens(), TEXT.end], tokens("ein Hund"), ended=True)
    (layer,) = seen.layers
    assert (layer.kind, layer.rows, layer.columns) == ("cross", "written", "source")
    found = seen.map("alignment").values
    assert found.shape == (len(seen.sides["written"]), len(seen.sides["source"]))
    assert torch.allclose(found.sum(1), torch.ones(len(found)))
    (module,) = (each for each in model.modules() if isinstance(each, saccade.Attention))
    kept = []
    hook = module.register_forward_hook(lambda layer, given, output: kept.append((given[0], given[1])))
    target = torch.tensor([seen.shown.target])
    model(torch.tensor([[*tokens(), TEXT.end]]), target)
    hook.remove()
    states = torch.cat([asked for asked, _ in kept], 1)  # one call of all rows, or one call a row
    with saccade.watch(module) as again:
        module(states, kept[0][1])
    assert torch.allclose(again.weights("attention")[0].mean(0).float(), found, atol=1e-6)
    assert len(seen.ablation(layer.name).heads) == 3


def test_a_look_saves_and_shows_itself(translated, tmp_path):
    for name in ("a.svg", "a.png", "a.html", "a.csv", "a.npz"):
        assert translated.save(tmp_path / name, words=True).stat().st_size > 100
    translated.save(tmp_path / "all.svg", "atlas")
    assert "<svg" in translated._repr_html_()
    assert "<script" not in translated._repr_html_()
    with pytest.raises(saccade.SaccadeError, match="is no kind of file that is written here"):
        translated.save(tmp_path / "a.bmp")


def test_a_compiled_model_is_silenced_too(written):
    plain = written.ablation("decoder.blocks.1.attention")
    model = twin_of(written.model)
    for block in model.decoder.blocks:
        block.compile(backend="eager")
    seen = look(model, TEXT, tokens()[:5], tokens()[5:])
    assert seen.ablation("decoder.blocks.1.attention").heads == pytest.approx(plain.heads, abs=1e-9)


def test_integers_are_looked_into_as_numbers_are(written):
    seen = look(saccade.quantise(written.model.float()), TEXT, tokens()[:5], tokens()[5:])
    layer = "decoder.blocks.1.attention"
    assert torch.allclose(seen.map(layer).values, written.map(layer).values, atol=0.05)
    assert seen.ablation(layer).heads == pytest.approx(written.ablation(layer).heads, abs=0.1)
    written.model.double()
