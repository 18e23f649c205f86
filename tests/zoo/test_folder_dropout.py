"""The dropout of Hugging Face folders, held against the modules that `transformers` makes of the same config.json."""

from __future__ import annotations

import pytest
import transformers as hf
from torch import nn

from saccade import ModelConfig, SaccadeError
from saccade.zoo.dropout import OPTIONS, dropout_of, dropout_options, unexpressed
from saccade.zoo.families import FAMILIES

BERT = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7, "vocab_size": 11}
BART = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 11}
BART |= {
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}


def test_every_family_says_where_its_dropout_stands():
    assert OPTIONS.keys() == FAMILIES.keys()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_what_is_not_named_is_the_familys_own(family):
    """An empty config.json trains as the defaults of its class do."""
    usual = hf.AutoConfig.for_model(family).to_dict()
    assert dropout_of(family, {}) == dropout_of(family, usual)


@pytest.mark.parametrize(
    ("family", "options", "found"),
    [
        ("gpt2", {}, {"dropout": 0.1, "feed_dropout": 0.0}),
        ("gpt2", {"attn_pdrop": 0}, {"dropout": 0.1, "attention_dropout": 0.0, "feed_dropout": 0.0}),
        ("bert", {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}, {"dropout": 0.0}),
        ("llama", {"attention_dropout": 0.2}, {"dropout": 0.0, "attention_dropout": 0.2}),
        ("t5", {"dropout_rate": 0.3}, {"dropout": 0.3}),
        ("marian", {"activation_dropout": 0.1}, {"dropout": 0.1, "attention_dropout": 0.0}),
        ("xlnet", {}, {"dropout": 0.1}),
        ("vit", {}, {"dropout": 0.0}),
        ("vit", {"hidden_dropout_prob": 0.2}, {"dropout": 0.2, "attention_dropout": 0.0, "feed_dropout": 0.0}),
        ("swin", {}, {"dropout": 0.0, "path_dropout": 0.1}),
        ("dinov2", {"drop_path_rate": 0.3}, {"dropout": 0.0, "path_dropout": 0.3}),
    ],
)
def test_in_our_keys(family, options, found):
    assert dropout_of(family, options) == found


def test_the_places_are_those_of_transformers():
    """The values of every nn.Dropout there: BERT has none inside its feed-forward, which has no module of it."""
    own = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}
    model = hf.BertModel(hf.BertConfig(**BERT, **own))
    there = {name.split(".")[-2]: each.p for name, each in model.named_modules() if isinstance(each, nn.Dropout)}
    assert there == {"embeddings": 0.3, "self": 0.2, "output": 0.3}
    assert dropout_of("bert", own) == {"dropout": 0.3, "attention_dropout": 0.2, "feed_dropout": 0.0}
    layer = hf.MarianModel(hf.MarianConfig(**BART, dropout=0.3, attention_dropout=0.2, activation_dropout=0.1))
    block = layer.encoder.layers[0]
    assert (block.dropout, block.self_attn.dropout, block.activation_dropout) == (0.3, 0.2, 0.1)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_what_is_written_is_read_again(family):
    shares = {"dropout": 0.3, "attention_dropout": 0.2, "feed_dropout": 0.0, "path_dropout": 0.4}
    config = ModelConfig(width=6, heads=2, encoder=1, **shares)
    found, names = dropout_of(family, dropout_options(family, config)), OPTIONS[family]
    alike = len({names.main, names.attention}) == 1  # T5 and XLNet have one value for all places
    assert found["dropout"] == (0.0 if names.main is None else 0.3)
    assert found.get("attention_dropout", found["dropout"]) == (0.3 if alike else 0.2)
    assert found.get("path_dropout", 0.0) == (0.0 if names.path is None else 0.4)
    assert unexpressed(family, dropout_options(family, config)) == {}
    assert dropout_options("brt", config) == {}


def test_what_cannot_be_said_is_named():
    assert unexpressed("bert", {"classifier_dropout": 0.5}) == {"classifier_dropout": 0.5}
    assert unexpressed("bert", {"classifier_dropout": None}) == {}
    assert unexpressed("gpt2", {"embd_pdrop": 0.1}) == {}
    with pytest.raises(SaccadeError, match=r"config.json: dropout_rate = 'much' is no share to drop"):
        dropout_of("t5", {"dropout_rate": "much"})
