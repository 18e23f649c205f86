"""Tallies of a run: counts of every example or window, over all of them and by bucket.

Fields count what their metrics need (n-grams, lengths, hits); a language model adds up the nats of its windows.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.corpus import Corpus
from saccade.field.loss import place_losses
from saccade.field.result import Result
from saccade.field.tally import Counts, Tally, ratio
from saccade.learn.bucket import Bucket
from saccade.model.dropout import evaluating
from saccade.model.model import Model
from saccade.recipe import TrainConfig
from saccade.task.batch import Batch, states_of
from saccade.task.segment_memory import SegmentMemory
from saccade.task.task import Task


class Judged(NamedTuple):
    """Tallies by metric: over all examples (`whole`) and in each bucket (`parts`). sizes: how many examples a bucket
    holds; unfit: inputs without an answer; cut: answers that were cut.
    """

    whole: dict[str, Tally]
    parts: list[dict[str, Tally]]
    sizes: list[int]
    unfit: int = 0
    cut: int = 0

    def only(self, names: Container[str]) -> Judged:
        """The same with these metrics alone."""
        whole, *parts = ({name: each[name] for name in each if name in names} for each in (self.whole, *self.parts))
        return self._replace(whole=whole, parts=parts)


def of_answers(
    task: Task, results: Sequence[Result], rows: Sequence[Sequence[Any]], buckets: Sequence[Bucket]
) -> Judged:
    """Tallies of answers to rows; buckets are by the length of the first input, as its field counts it."""
    target, first = task.target, next(iter(task.x.values()))
    whole = target.tallies(results, [row[-1] for row in rows])
    lengths = np.repeat([first.bucket(row[0]) for row in rows], [target.counted(row[-1]) for row in rows])
    held = [bucket.holds(lengths) for bucket in buckets]
    parts = [{name: each.of(chosen) for name, each in whole.items()} for chosen in held]
    return Judged(whole, parts, [int(chosen.sum()) for chosen in held])


def of_windows(losses: Counts, buckets: Sequence[Bucket]) -> Judged:
    """Tallies of a language model's losses (windows, places); buckets are by how many tokens of the window came before.

    At the first place that is one: the first token of a window is read, not predicted.
    """
    edges = [(max(bucket.low - 1, 0), None if bucket.high is None else bucket.high - 1) for bucket in buckets]
    whole, parts = _nats(losses), [_nats(losses[:, low:high]) for low, high in edges]
    return Judged({"loss": whole}, [{"loss": each} for each in parts], [int(each.counts[:, 1].sum()) for each in parts])


def window_losses(task: Task, model: Model, corpus: Corpus, config: TrainConfig, limit: int | None = None) -> Counts:
    """The nats of every token in the windows of a text, (windows, places); NaN behind the end of the last."""
    found: list[Counts] = []
    memory = SegmentMemory(model)
    if model.config.memory:  # windows one by one, in their order in the text
        config = config.model_copy(update={"batch": 1})
    with torch.no_grad(), evaluating(model):
        for batch in task.whole(corpus, config):
            found.extend(_token_losses(model, memory.attach(batch)).double().numpy())
            if limit is not None and len(found) >= limit:
                break
    found, longest = found[:limit], max(map(len, found))
    return np.array([np.pad(each, (0, longest - len(each)), constant_values=np.nan) for each in found])


def _nats(losses: Counts) -> Tally:
    counts = np.stack([np.nansum(losses, 1), np.isfinite(losses).sum(1)], 1).astype(np.float64)
    return Tally(counts, ratio, -1)


def _token_losses(model: Model, batch: Batch) -> Tensor:
    """The nats of every wanted token, (B,T)."""
    return place_losses(model, states_of(model, batch).last, batch.y.values["wanted"])
