"""What was counted in every example or window that a run answered (`Tally`), whole and by bucket.

Fields count what their metrics count (n-grams, lengths, hits); a language model adds up the nats of its windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data.corpus import Corpus
from saccade.field.loss import SLICE
from saccade.field.result import Result
from saccade.field.tally import Counts, Tally
from saccade.learn.bucket import Bucket
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import TrainConfig
from saccade.task.batch import Batch, states_of
from saccade.task.carry import Carry
from saccade.task.task import Task


class Judged(NamedTuple):
    """What a run's answers count: by metric, and the same in each bucket; `sizes`: what each bucket holds; how many
    inputs have no answer (`unfit`), and how many answers were cut.
    """

    whole: dict[str, Tally]
    parts: list[dict[str, Tally]]
    sizes: list[int]
    unfit: int = 0
    cut: int = 0


def of_answers(
    task: Task, results: Sequence[Result], rows: Sequence[Sequence[Any]], buckets: Sequence[Bucket]
) -> Judged:
    """Of answers to rows; the buckets are lengths of the first input as its field counts them."""
    whole = task.target.tallies(results, [row[-1] for row in rows])
    first = next(iter(task.x.values()))
    lengths = np.array([first.bucket(row[0]) for row in rows])
    held = [bucket.holds(lengths) for bucket in buckets]
    parts = [{name: each.of(chosen) for name, each in whole.items()} for chosen in held]
    return Judged(whole, parts, [int(chosen.sum()) for chosen in held])


def of_windows(losses: Counts, buckets: Sequence[Bucket]) -> Judged:
    """Of the losses (windows, places) of a language model; the buckets are how many tokens of the window came before.

    At the first place one has: the window's first token is read, not asked for.
    """
    edges = [(max(bucket.low - 1, 0), None if bucket.high is None else bucket.high - 1) for bucket in buckets]
    whole, parts = _nats(losses), [_nats(losses[:, low:high]) for low, high in edges]
    return Judged({"loss": whole}, [{"loss": each} for each in parts], [int(each.counts[:, 1].sum()) for each in parts])


def window_losses(task: Task, model: Model, corpus: Corpus, config: TrainConfig, limit: int | None = None) -> Counts:
    """The nats of every token in the windows of a text, (windows, places); NaN behind the end of the last."""
    found: list[Counts] = []
    carry, alone = Carry(model), {} if model.config.memory == 0 else {"batch": 1}  # in the order of the text
    with torch.no_grad(), at_rest(model):
        for batch in task.whole(corpus, config.model_copy(update=alone)):
            found.extend(_token_losses(model, carry.along(batch)).double().numpy())
            if limit is not None and len(found) >= limit:
                break
    found, longest = found[:limit], max(map(len, found))
    return np.array([np.pad(each, (0, longest - len(each)), constant_values=np.nan) for each in found])


def _nats(losses: Counts) -> Tally:
    counts = np.stack([np.nansum(losses, 1), np.isfinite(losses).sum(1)], 1).astype(np.float64)
    return Tally(counts, lambda total: float(total[0] / total[1]) if total[1] else float("nan"), -1)


def _token_losses(model: Model, batch: Batch) -> Tensor:
    """(B,T); the scores of a large vocabulary live for a slice of rows at a time."""
    states, rows = states_of(model, batch).last.flatten(0, 1), max(1, SLICE // model.config.vocab)
    wanted = batch.y.values["wanted"]
    pairs = zip(states.split(rows), wanted.flatten().split(rows), strict=True)
    parts = [F.cross_entropy(model.answer(x[None])[0].float(), y, reduction="none") for x, y in pairs]
    return torch.cat(parts).view(wanted.shape)
