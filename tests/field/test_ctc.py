"""CTC against the sum over all ways; texts that do not fit; pictures by their columns; a term beside attention."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import saccade
from saccade.attend.mask import padding
from saccade.field.ctc import HEAD, ctc_loss, ctc_losses, needed
from saccade.field.sound import Sound, SoundConfig
from saccade.field.text.config import TargetTextConfig
from saccade.field.text.target import TargetText
from saccade.field.text.text import Text
from saccade.model.hidden import States
from saccade.task.task import Task

BLANK = 0


def by_all_ways(scores, tokens):
    """-log of the summed probabilities of every path (S symbols) that collapses to these tokens."""
    chances, total = scores.double().softmax(-1), 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        collapsed = [each for each, _ in itertools.groupby(path) if each != BLANK]
        if collapsed == list(tokens):
            total += float(torch.stack([chances[t, symbol] for t, symbol in enumerate(path)]).prod())
    return -np.log(total)


@pytest.mark.parametrize("tokens", [[1], [1, 2], [2, 2], [1, 2, 1], [3, 3, 1]])
def test_all_ways_are_summed(tokens):
    scores = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(len(tokens)))
    found = ctc_losses(scores, torch.tensor([5, 4]), torch.tensor([tokens] * 2), torch.tensor([len(tokens)] * 2), BLANK)
    assert found[0].item() == pytest.approx(by_all_ways(scores[0], tokens), rel=1e-5)
    assert found[1].item() == pytest.approx(by_all_ways(scores[1, :4], tokens), rel=1e-5), "padding is not looked at"


def test_a_text_that_does_not_fit_adds_nothing_and_no_gradient():
    scores = torch.randn(3, 4, 5, requires_grad=True)
    tokens = torch.tensor([[1, 2, 3, 4, 1], [1, 1, 2, 0, 0], [3, 3, 3, 0, 0]])
    sizes, lengths = torch.tensor([5, 3, 3]), torch.tensor([4, 4, 4])
    assert needed(tokens, sizes).tolist() == [5, 4, 5]
    losses = ctc_losses(scores, lengths, tokens, sizes, BLANK)
    assert losses[0] == losses[2] == 0 < losses[1]
    losses.sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[[0, 2]] == 0).all()
    assert (scores.grad[1] != 0).any()


WORDS = ["one", "three", "zero"]
RAWS = [(np.sin(np.arange(size) / 5) * 8000).astype(np.int16) for size in (1700, 5003, 3100)]


def task(**y):
    config = SoundConfig(rate=8000, bands=13, embed="frames(steps=(2, 2))")
    sound = Sound.load(config, {"s.sound.json": Sound.made(config, iter(RAWS))}, "s", "decoder")
    return Task(
        "transcribe",
        {"source": sound},
        "target",
        TargetText(Text.train(WORDS, "characters", vocab=40), TargetTextConfig(**y)),
    )


def batch_of(task, numbers):
    from saccade.data.rows import Picked

    picked = {
        "source": task.x["source"].encode([RAWS[n] for n in numbers]),
        "target": task.y.encode([WORDS[n] for n in numbers]),
    }
    return task.batch(Picked(picked))


def test_it_is_a_term_beside_that_of_the_decoder():
    from saccade.task.batch import states_of

    made = task(ctc=0.3)
    torch.manual_seed(2)
    model = saccade.build(
        made.configure(saccade.ModelConfig(width=12, heads=2, encoder=1, decoder=1, position="sinusoid"))
    ).double()
    assert model.heads[HEAD].out.weight.shape == (made.text.vocab, 12)
    whole = batch_of(made, [0, 1, 2])
    terms = made.target.loss(model, states_of(model, whole), whole.y, learning=True)
    assert {name: each.weight for name, each in terms.items()} == {"text": 1.0, "ctc": 0.3}
    alone = [batch_of(made, [n]) for n in range(3)]
    sums = [made.target.loss(model, states_of(model, each), each.y, learning=True)["ctc"].sum for each in alone]
    torch.testing.assert_close(sum(sums), terms["ctc"].sum, rtol=1e-6, atol=0)
    assert list(made.target.loss(model, states_of(model, whole), whole.y, learning=False)) == ["text"]
    assert "CTC (0.3)" in made.target.adds()
    terms["ctc"].sum.backward()
    assert any(each.grad is not None for each in model.encoder.parameters())
    assert all(each.grad is None for each in model.decoder.parameters()), "the decoder is no part of it"


def test_a_picture_is_read_by_its_columns():
    """The mean of each column's rows, whose states lie row by row."""
    made = task(ctc=1.0)
    model = saccade.build(made.configure(saccade.ModelConfig(width=12, heads=2, encoder=1, decoder=1)))
    states = torch.randn(2, 21, 12)
    wanted = torch.tensor([[5, 6, 3, -1], [7, 3, -1, -1]])
    on_grid = ctc_loss(model, States(states, states, encoder_grid=(3, 7)), wanted, BLANK)
    columns = states.view(2, 3, 7, 12).mean(1)
    torch.testing.assert_close(on_grid, ctc_loss(model, States(columns, columns), wanted, BLANK))


def test_two_passes_are_averaged():
    made = task(ctc=1.0)
    model = saccade.build(made.configure(saccade.ModelConfig(width=12, heads=2, encoder=1, decoder=1)))
    states, wanted, held = torch.randn(2, 7, 12), torch.tensor([[5, 6, 3], [7, 3, -1]]), padding(torch.tensor([7, 4]))
    once = ctc_loss(model, States(states, states, encoder_padding=held), wanted, BLANK)
    both = States(torch.cat([states] * 2), None, encoder_padding=padding(torch.tensor([7, 4, 7, 4])))
    torch.testing.assert_close(ctc_loss(model, both, wanted, BLANK), once)


def test_what_has_more_letters_than_states_is_counted():
    made = task(ctc=0.3)
    column = type(
        "Column", (), {"take": lambda _, __: {"tokens": [np.array(each) for each in made.y.encode(WORDS)["tokens"]]}}
    )()
    assert made.target.cramped(column, np.array([3, 5, 9])) == 1, "three needs six: a blank stands between its e's"
    assert task().target.cramped(column, np.array([0, 0, 0])) == 0


def test_class_tokens_are_refused():
    with pytest.raises(saccade.SaccadeError, match=r"y\.ctc reads a state for each place"):
        task(ctc=0.3).target.fits(saccade.ModelConfig(width=12, heads=2, encoder=1, decoder=1, class_tokens=1))
