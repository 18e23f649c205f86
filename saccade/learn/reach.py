"""How much context a language model makes use of: its loss by the tokens it is given (Khandelwal et al. 2018).

The same tokens are predicted from the c tokens before each, c = 16, 32, 64, ...; the effective context is the longest
up to which more of it led to a gain above a threshold, as Dai et al. 2019 define it. A model that remembers is given
the c tokens in segments, as in training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.field import StreamTarget
from saccade.field.loss import token_loss
from saccade.learn.corpora import corpus_of, supply_of
from saccade.model.dropout import evaluating
from saccade.model.model import Model
from saccade.recipe import Recipe
from saccade.store.run import Run

FIRST, LONGEST = 16, 1024  # tokens of context, doubled from one to the other
PLACES = 500  # tokens that are predicted
GAIN = 0.01  # the share by which a doubling must lower the loss to count
TOGETHER = 8192  # tokens that are read at a time


class Reach(NamedTuple):
    """The mean loss in nats by the tokens of context, and how many of them the model makes use of."""

    losses: dict[int, float]
    effective: int


def reach(
    run: Run,
    split: str | None = None,
    *,
    lengths: Sequence[int] | None = None,
    places: int = PLACES,
    gain: float = GAIN,
    say: Callable[[str], None] = lambda _: None,
) -> Reach:
    """How much context a run that writes makes use of, on `places` tokens that lie evenly in a split, the last by
    default.

    lengths: how many tokens to give; by default 16, 32, ... up to 1,024, as far as positions and text suffice.
    """
    recipe = reads(run)
    supply = supply_of(run, recipe)
    corpus = corpus_of(recipe, supply, run, split or supply.splits[-1], say)
    stream = corpus.column(run.task.name).array("tokens")
    segment = cast(StreamTarget, run.task.target).config.window if run.model.config.memory else None
    lengths = doubled(min(len(stream) - 1, run.model.room or LONGEST)) if lengths is None else sorted(set(lengths))
    losses = {}
    for each in lengths:
        losses[each] = loss_given(run.model, stream, each, ends(len(stream), max(lengths), places), segment)
        say(f"context {each}: loss {losses[each]:.4f}")
    return Reach(losses, effective(losses, gain))


def reads(run: Run) -> Recipe:
    """The recipe of a run whose context can be measured; refuses any other."""
    if run.recipe is None or run.task.answer.compared != "losses":
        raise SaccadeError(
            "context is measured on a text of a run's own recipe: give a run whose task is write, without y.ask"
        )
    return run.recipe


def loss_given(model: Model, stream: np.ndarray, given: int, ends: np.ndarray, segment: int | None = None) -> float:
    """The mean loss in nats of the tokens at `ends`, each from the `given` tokens before it.

    segment: how many of them are shown at a time to a model that remembers; the first segment may be shorter.
    """
    device, total = model.device, 0.0
    with torch.inference_mode(), evaluating(model):
        for some in np.array_split(ends, -(-len(ends) * given // TOGETHER)):
            shown = torch.from_numpy(stream[some[:, None] - given + np.arange(given)].astype(np.int64)).to(device)
            wanted = torch.from_numpy(stream[some].astype(np.int64)).to(device)
            total += float(token_loss(model, _last_state(model, shown, segment), wanted))
    return total / len(ends)


def effective(losses: dict[int, float], gain: float = GAIN) -> int:
    """The longest context up to which each longer one lowered the loss by more than the share `gain`."""
    found, *longer = sorted(losses)
    for each in longer:
        if losses[each] > (1 - gain) * losses[found]:
            break
        found = each
    return found


def doubled(longest: int) -> list[int]:
    """16, 32, ... up to the longest; that alone where it is shorter."""
    found = [FIRST << each for each in range(LONGEST.bit_length()) if FIRST << each <= min(longest, LONGEST)]
    return found or [longest]


def ends(total: int, longest: int, places: int) -> np.ndarray:
    """The places of tokens that lie evenly where the longest context fits before them, (N,)."""
    if longest < 1 or longest >= total:
        raise SaccadeError(f"a context of {longest} does not fit into a text of {total} tokens: give shorter ones")
    return np.unique(np.linspace(longest, total - 1, min(places, total - longest)).astype(np.int64))


def _last_state(model: Model, shown: Tensor, segment: int | None) -> Tensor:
    """The state (B,C) after all of the tokens (B,T)."""
    if segment is None:
        return model.states(shown).last[:, -1]
    memory = model.memory()
    return [model.states(each, memory=memory).last[:, -1] for each in _segments(shown, segment)][-1]


def _segments(shown: Tensor, length: int) -> Iterator[Tensor]:
    """The tokens in segments, the first of which may be shorter: the last one, which is measured, is whole."""
    first = shown.shape[1] % length
    if first:
        yield shown[:, :first]
    yield from shown[:, first:].split(length, 1) if first < shown.shape[1] else ()
