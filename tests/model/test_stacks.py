"""Stacks that differ: keys of the encoder or the decoder alone, from the table to the search."""

from __future__ import annotations

import tomllib

import pytest
import torch
from texts import texts
from torch import Tensor

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.config import read
from saccade.recipes.write import to_toml

SMALL = {"vocab": 29, "width": 12, "heads": 3, "hidden": 17, "encoder": 2, "decoder": 3, "head": "vocabulary"}
WIDE = {"encoder": {"depth": 2, "width": 20, "heads": 5, "vocab": 23, "order": "post", "feed": "relu"}}
PLACED = {"position": "learned(31)", "encoder": {"depth": 2, "position": "learned(9)"}}


def model(**values) -> saccade.Model:
    torch.manual_seed(0)
    return saccade.build(read(ModelConfig, SMALL | values)).double().eval()


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("values", [WIDE, PLACED, {"decoder": {"depth": 3, "experts": 2}}, {}], ids=str)
def test_tables_come_back_from_a_file(values):
    config = read(ModelConfig, SMALL | values)
    assert (config.encoder, config.decoder) == (2, 3)
    for written in (
        config.model_dump(),
        tomllib.loads(to_toml({"model": config.model_dump(exclude_none=True)}))["model"],
    ):
        again = read(ModelConfig, written)
        assert again == config
        assert again.stack(decoder=False) == config.stack(decoder=False)
    assert saccade.build(config, dropout=0.5, device="meta").config.encoder_keys == config.encoder_keys


def test_a_stack_has_its_own_keys_over_the_shared_ones():
    config = read(ModelConfig, SMALL | WIDE)
    first, last = config.stack(decoder=False), config.stack(decoder=True)
    assert (first.width, first.heads, first.order, first.hidden) == (20, 5, "post", 17)
    assert (last.width, last.heads, last.order, last.hidden) == (12, 3, "pre", 17)
    plain = read(ModelConfig, SMALL)
    assert plain.stack(decoder=False) is plain
    other = read(ModelConfig, SMALL | {"mixer": "gru", "encoder": {"depth": 2, "mixer": "attention"}})
    assert (other.mixers(decoder=False), other.mixers(decoder=True)) == (["attention"], ["gru"])


CROSS = {
    "attention": {},
    "embedded": {},
    "feeding": {"mixer": "gru"},
    "lowest": {"mixer": "lstm"},
    "fixed": {},
    "into": {"mixer": "rnn"},
    "beside": {},
}


@pytest.mark.parametrize("cross", CROSS)
def test_a_wide_encoder_feeds_a_narrow_decoder(cross):
    ours = model(**WIDE, cross=cross, **CROSS[cross])
    ids, said = torch.randint(23, (2, 5)), torch.randint(29, (2, 7))
    assert (ours.embed.table.shape, ours.decoder_embed.table.shape) == ((23, 20), (29, 12))
    assert ours.head.weight is ours.decoder_embed.tokens.weight
    x = texts(ids, [3, 5])
    whole = ours(x, said)
    close(whole[:1], ours(ids[:1, :3], said[:1]))
    state = ours.start(x)
    close(torch.cat([ours.decode_step(each, state) for each in said.split([3, 1, 1, 2], 1)], 1), whole)
    whole.sum().backward()
    asked = cross in ("fixed", "beside")  # whose question nobody reads
    assert all(each.grad is not None or (asked and "cross_norm" in name) for name, each in ours.named_parameters())


def test_a_search_asks_each_side_for_its_own():
    ours = model(**WIDE)
    sources = [[3, 4, 22], [6, 7]]
    found = saccade.generate(ours, sources=sources, begin=28, max_tokens=6)
    for source, each in zip(sources, found, strict=True):
        (alone,) = saccade.generate(ours, sources=[source], begin=28, max_tokens=6)
        assert each.tokens == alone.tokens
    with pytest.raises(SaccadeError, match=r"source 0 has the token 23, outside the vocabulary"):
        saccade.generate(ours, sources=[[23]], begin=1, max_tokens=3)


def test_rooms_of_both_sides():
    ours = model(**PLACED)
    assert (ours.source_room, ours.room) == (9, 31)
    shared = model(position="learned(31)")
    assert (shared.source_room, shared.room, shared.decoder_embed) == (31, 31, None)
    with pytest.raises(SaccadeError, match="table 9"):
        saccade.generate(ours, sources=[[1] * 10], begin=1, max_tokens=12)
    assert len(saccade.generate(ours, sources=[[1] * 9], begin=1, max_tokens=12)[0].tokens) == 12


def test_one_embedding_where_they_agree():
    assert model(decoder={"depth": 3, "heads": 2, "feed": "relu"}).decoder_embed is None
    assert model(encoder={"depth": 2, "position": "rotary"}, position="alibi").decoder_embed is None
    for own in ({"norm_embedding": True}, {"segments": 2}, {"vocab": 7}, {"position": "sinusoid"}):
        assert model(encoder={"depth": 2, **own}).decoder_embed is not None


def test_a_decoder_of_its_own_embedding_reads_what_is_joined():
    several = {"embed": {"a": "tokens", "b": "tokens"}, "decoder": {"depth": 3, "embed": "tokens"}}
    ours = model(**several)
    x = {"a": torch.randint(29, (2, 4)), "b": torch.randint(29, (2, 3))}
    assert ours(x, torch.randint(29, (2, 5))).shape == (2, 5, 29)


def test_shrunk_where_it_is_deep():
    torch.manual_seed(0)
    deep = model(order="deep")
    torch.manual_seed(0)
    mixed = model(order="deep", decoder={"depth": 3, "order": "pre"})
    assert deep.encoder.blocks[0].alpha == mixed.encoder.blocks[0].alpha != 1
    assert mixed.decoder.blocks[0].alpha == 1


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"encoder": {"depth": 2, "heds": 2}}, "encoder.heds is unknown; did you mean 'heads'"),
        ({"encoder": {"heads": 2}}, "encoder.depth: a table of the encoder gives its depth"),
        ({"decoder": {"depth": 0, "heads": 2}}, "decoder.depth: a table of the decoder gives its depth"),
        ({"encoder": {"depth": 2, "tie": False}}, "encoder.tie: this key is the whole model's: write model.tie"),
        ({"decoder": {"depth": 2, "segments": 2}}, "decoder.segments: this key is the whole model's"),
        ({"encoder": {"depth": 2, "heads": 5}}, "encoder: 5 heads do not divide a width of 12"),
        ({"encoder": {"depth": 2, "width": "a"}}, "encoder.width should be a whole number >= 1; got 'a'"),
        ({"encoder": {"depth": 2, "feed": "swigl"}}, "encoder.feed should be .*did you mean 'swiglu'"),
        ({"encoder": {"depth": 2, "mixer": "gru"}, "encoder_mixer": "lstm"}, "say the same: leave one out"),
        (
            {"encoder": {"depth": 2, "mixer": "gru", "mask": "window(3)"}},
            "masks, memory and streams belong to attention",
        ),
        ({"embed": {"a": "tokens"}}, "a decoder reads one input: give it an embed of its own"),
        ({"embed": {"a b": "tokens"}}, "embed names each input by one word; got 'a b'"),
        ({"embed": {}}, "embed names nothing"),
    ],
)
def test_what_no_stack_has_is_told(values, why):
    with pytest.raises(SaccadeError, match=why) as problem:
        read(ModelConfig, SMALL | values)
    assert "\n" not in str(problem.value)


def test_no_family_takes_stacks_that_differ(tmp_path):
    from saccade.zoo.folder import write_folder

    ours = model(encoder={"depth": 2, "heads": 2}, order="post", position="sinusoid(layout=half)", output_bias=True)
    with pytest.raises(SaccadeError, match="marian cannot express this model"):
        write_folder(tmp_path / "hf", ours, "marian")
