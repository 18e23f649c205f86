"""Unknown words become the source words that were looked at most."""

from __future__ import annotations

import pytest
import torch
from tasks import translate

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.config import read
from saccade.decode.unknown import looked_at, pieces, replaced
from saccade.field.text.text import Text
from saccade.recipe import DecodeConfig

TEXT = Text.train(["the dog bites the man in paris", "der hund sieht den mann"], "words", vocab=40)


def looking() -> saccade.Model:
    """A model made by hand: writes unknown words only, and target place t looks at source place t."""
    config = {"vocab": TEXT.vocab, "width": 32, "heads": 1, "encoder": 1, "decoder": 1, "hidden": 1}
    made = saccade.build(ModelConfig(**config, order="pre", position="sinusoid", head="vocabulary", tie=False))
    made = made.double().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.zero_()
        for norm in (made.decoder.blocks[0].cross_norm, made.encoder.norm, made.decoder.norm):
            norm.weight.fill_(1.0)
        cross = made.decoder.blocks[0].cross
        cross.query.weight.copy_(torch.eye(32) * 30)
        cross.key.weight.copy_(torch.eye(32))
        made.decoder.norm.bias[0] = 1.0
        made.head.weight[TEXT.unknown, 0] = 50.0
    return made


def test_what_was_looked_at_most_stands_in():
    task, ours = translate(TEXT), looking()
    decode = read(DecodeConfig, {"max_tokens": 3, "replace_unknown": True})
    (result,) = task.predict(ours, ["Zoë bites Wuppertal in Ørsted"], decode)
    assert result.text == "Zoë bites Wuppertal"
    (plain,) = task.predict(ours, ["Zoë bites Wuppertal"], decode.model_copy(update={"replace_unknown": False}))
    assert plain.text == ""


def test_known_words_stay():
    (source,) = TEXT.encode(["Zoë sieht paris"])
    hund, den = (TEXT.encode([word])[0][0] for word in ("hund", "den"))
    looks = torch.tensor([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1], [0.0, 1.0, 0.0]])
    assert source[0] == TEXT.unknown
    assert pieces(TEXT, "Zoë sieht paris") == ["Zoë", "sieht", "paris"]
    words = pieces(TEXT, "Zoë sieht paris")
    assert replaced(TEXT, [hund, TEXT.unknown, den], words, looks) == "hund Zoë den"


def test_rows_are_what_a_watch_sees():
    torch.manual_seed(0)
    config = {"vocab": 30, "width": 12, "heads": 3, "encoder": 1, "decoder": 2, "position": "sinusoid"}
    ours = saccade.build(ModelConfig(**config, head="vocabulary")).double()
    looks = looked_at(ours, [5, 6, 7], [1], [8, 9, 10])
    with saccade.watch(ours.eval()) as seen, torch.no_grad():
        ours(torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8, 9]]))
    layers = [name for name in seen.layers if "cross" in name]
    expected = torch.stack([seen.weights(name)[0].mean(0) for name in layers]).mean(0)
    torch.testing.assert_close(looks, expected)
    with pytest.raises(SaccadeError, match="replace_unknown needs cross-attention"):
        looked_at(saccade.build(ModelConfig(vocab=9, width=8, heads=2, decoder=1, head="vocabulary")), [1], [1], [2])
