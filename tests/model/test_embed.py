"""Other inputs than tokens, several of them, and heads that read other states than the last."""

from __future__ import annotations

import pytest
import torch
from texts import texts
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

import saccade
from saccade import Input, ModelConfig, SaccadeError
from saccade.model import embed, head
from saccade.model.input import value_of

SMALL = {"vocab": 29, "width": 12, "heads": 3, "hidden": 17}


class spots(nn.Module):
    """Somebody's own embedding, as a file beside the others would add it: pairs of numbers become one vector each."""

    def __init__(self, features: int = 5, *, config: ModelConfig) -> None:
        super().__init__()
        self.features = features
        self.product = nn.Linear(2 * features, config.width)

    def forward(self, values) -> Tensor:
        return self.product(value_of(values, "spots").unflatten(1, (-1, 2)).flatten(2))

    def counted(self, lengths: Tensor) -> Tensor:
        return (lengths + 1) // 2

    def sample(self, rows, length, device=None, generator=None):
        return {"spots": torch.randn(rows, 2 * length, self.features, device=device, generator=generator)}


class every(nn.Module):
    """A head of all layers."""

    reads, pooled = "layers", False

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.out = nn.Linear(config.width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x)


class heard(nn.Module):
    """A head of the encoder."""

    reads, pooled = "encoder", False

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.out = nn.Linear(config.width, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(embed.EMBEDS, "spots", spots)
    monkeypatch.setitem(head.HEADS, "every", every)
    monkeypatch.setitem(head.HEADS, "heard", heard)


def model(**values) -> saccade.Model:
    torch.manual_seed(0)
    return saccade.build(ModelConfig(**(SMALL | values))).double().eval()


def spotted(lengths: list[int], seed: int = 1) -> Input:
    x = torch.randn(len(lengths), max(lengths), 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Input({"spots": x}, lengths)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mixer", ["attention", "gru(both=True)", "convolution(3)"])
@pytest.mark.parametrize("position", [None, "sinusoid", "learned(9)"])
def test_an_input_that_is_no_text(mixer, position):
    ours = model(vocab=0, encoder=2, embed="spots(5)", position=position, mixer=mixer, pooler=True, head="label(3)")
    assert "embed.spots.product.weight" in ours.state_dict()
    x = spotted([8, 4, 6])
    said = ours(x)
    for b, length in enumerate([8, 4, 6]):
        close(said[b : b + 1], ours(Input({"spots": x.values["spots"][b : b + 1, :length]})))
    assert (ours.device.type, ours.dtype, ours.table) == ("cpu", torch.float64, None)
    assert ours.room == (9 if position == "learned(9)" else None)


def test_lengths_are_counted_in_vectors():
    ours = model(vocab=0, encoder=2, embed="spots")
    found = ours.states(spotted([8, 4]))
    assert found.padding.lengths.tolist() == [4, 2]
    assert found.encoder.shape == (2, 4, 12)


def test_size_of_an_input_that_is_no_text():
    from saccade.zoo.size import size

    assert size(ModelConfig(**SMALL | {"vocab": 0}, encoder=2, embed="spots"), length=6)["flops_forward"] > 0


@pytest.mark.parametrize(
    ("values", "call", "why"),
    [
        ({"vocab": 0}, None, "a model needs its vocab"),
        ({"vocab": 0, "embed": "spots", "head": "vocabulary"}, None, "a model needs its vocab"),
        ({"embed": "spot"}, None, "no embed is called 'spot'; did you mean 'spots'?"),
        ({"embed": "spots"}, torch.tensor([[1, 2]]), "this model reads 'spots', and its input has 'tokens' alone"),
        ({}, Input({"spots": torch.zeros(1, 2, 5)}), "this model reads 'tokens', and its input has 'spots' alone"),
        (
            {"embed": {"a": "tokens", "b": "spots"}},
            torch.tensor([[1, 2]]),
            "several inputs: give a table of them, a, b",
        ),
        ({"embed": {"a": "tokens", "b": "spots"}}, {"a": torch.tensor([[1, 2]])}, "the input 'b' is missing"),
        ({"embed": {"ab": "tokens"}}, {"abc": torch.tensor([[1, 2]])}, "reads no input 'abc'; did you mean 'ab'"),
        (
            {"embed": {"a": "tokens", "b": "tokens"}},
            {"a": torch.tensor([[1, 2]]), "b": torch.tensor([[1], [2]])},
            "have as many rows each; got a 1, b 2",
        ),
    ],
)
def test_what_does_not_fit_is_told(values, call, why):
    with pytest.raises(SaccadeError, match=why):
        model(encoder=1, **values)(call)


BOTH = {"embed": {"text": "tokens", "marks": "spots"}}


ANY = [(mixer, place) for mixer in ("attention", "gru(both=True)", "convolution(3)") for place in (None, "learned(9)")]


@pytest.mark.parametrize(
    ("mixer", "position"), [*ANY, *(("attention", each) for each in ("sinusoid", "rotary", "alibi"))]
)
@pytest.mark.parametrize("side", ["right", "left"])
def test_several_inputs_are_one_sequence(mixer, position, side):
    """A row beside longer ones is the row alone: what is padding of one input does not part it from the other."""
    ours = model(encoder=2, **BOTH, mixer=mixer, position=position)
    ids, marks = torch.randint(29, (2, 5)), spotted([4, 6])
    shown = ids if side == "right" else torch.stack((ids[0].roll(2), ids[1]))
    both = ours.states({"text": texts(shown, [3, 5], side), "marks": marks})
    assert both.padding.lengths.tolist() == [5, 8]
    for b, (first, second) in enumerate(((3, 4), (5, 6))):
        alone = {"text": ids[b : b + 1, :first], "marks": Input({"spots": marks.values["spots"][b : b + 1, :second]})}
        close(both.last[b : b + 1, : first + second // 2], ours.states(alone).last)


def test_several_inputs_by_their_formula():
    ours = model(encoder=1, **BOTH, position="learned(9)")
    ids, marks = torch.randint(29, (2, 5)), spotted([6, 6])
    text, spot = ours.embed.parts["text"], ours.embed.parts["marks"]
    first = text.tokens.weight[ids] + text.position.weight[:5] + ours.embed.kinds[0]
    second = spot.spots(marks.values) + spot.position.weight[:3] + ours.embed.kinds[1]
    close(ours.encode({"text": ids, "marks": marks}), ours.encoder(torch.cat((first, second), 1)))
    assert ours.room == 18


def test_heads_by_name_read_their_states():
    ours = model(encoder=2, decoder=3, head="vocabulary", named_heads={"all": "every", "source": "heard"})
    x, y = torch.randint(29, (2, 5)), torch.randint(29, (2, 4))
    states = ours.states(x, y)
    assert [each.shape for each in states.layers] == [(2, 4, 12)] * 3
    close(states.layers[-1], states.last)
    assert ours.say(states, "all").shape == (3, 2, 4, 2)
    assert ours.say(states, "source").shape == (2, 5, 7)
    close(ours.say(states), ours(x, y))
    close(ours.say(states), ours.answer(states.last))
    close(ours.say(states, "source"), ours.heads["source"].out(ours.encode(x)))
    with pytest.raises(SaccadeError, match="no head called 'sorce'; did you mean 'source'"):
        ours.say(states, "sorce")


def test_layers_are_kept_for_who_reads_them_alone():
    assert model(encoder=2).states(torch.randint(29, (2, 5))).layers == ()
    alone = model(encoder=2, head="every")
    assert alone(torch.randint(29, (2, 5))).shape == (2, 2, 5, 2)
    with pytest.raises(SaccadeError, match="states of the encoder, and this model has none"):
        model(decoder=1, head="heard")(torch.randint(29, (2, 5)))


def test_a_search_takes_inputs_as_sources():
    ours = model(encoder=2, decoder=2, head="vocabulary")
    sources = [[3, 4, 5], [6, 7]]
    found = saccade.generate(ours, sources=sources, begin=1, max_tokens=5)
    again = saccade.generate(ours, sources=[texts(torch.tensor([each])) for each in sources], begin=1, max_tokens=5)
    assert [each.tokens for each in found] == [each.tokens for each in again]


@pytest.mark.parametrize("lengths", [None, [3, 5]])
@pytest.mark.proof
def test_inputs_go_through_a_compiler(lengths):
    ours = model(encoder=1, decoder=1)
    counter = CompileCounter()
    torch._dynamo.reset()
    states = torch.compile(ours.states, backend=counter, dynamic=True, fullgraph=True)
    for more in (0, 1, 2):
        x = texts(torch.randint(29, (2, 5 + more)), lengths)
        y = texts(torch.randint(29, (2, 7 + more)), lengths)
        close(states(x, y).last, ours.states(x, y).last)
    assert counter.frame_count == 1


class codes(nn.Module):
    """An embedding with state that no gradient changes: a codebook, how often each code was used, and a scratch pad."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.register_buffer("book", torch.randn(5, config.width))
        self.register_buffer("used", torch.zeros(5, dtype=torch.long))
        self.register_buffer("sums", torch.zeros(5), persistent=False)

    def forward(self, values) -> Tensor:
        return self.book[value_of(values, "codes")]

    def counted(self, lengths: Tensor) -> Tensor:
        return lengths

    def sample(self, rows, length, device=None, generator=None):
        return {"codes": torch.randint(5, (rows, length), device=device, generator=generator)}


def test_state_without_gradient_is_kept(monkeypatch):
    monkeypatch.setitem(embed.EMBEDS, "codes", codes)
    ours = model(vocab=0, encoder=1, embed="codes")
    assert {"embed.codes.book", "embed.codes.used"} <= ours.tensors().keys()
    assert "embed.codes.sums" not in ours.tensors()
    assert ours.tensors().keys() - dict(ours.named_parameters()).keys() == {"embed.codes.book", "embed.codes.used"}
    assert ours.tensors()["embed.codes.used"].dtype is torch.int64
    tied = model(decoder=1, head="vocabulary")
    assert tied.tensors().keys() == dict(tied.named_parameters()).keys()
    assert all(each is tied.tensors()[name] for name, each in tied.named_parameters())
