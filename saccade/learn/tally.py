"""`Tally`: what was counted in every sentence, text or window that a run answered, whose sum gives a score.

Translations count what their metrics count (n-grams, lengths, hits), classes count hits, and a language model adds up
the nats of its windows. So the score of any part, or of sentences drawn again, follows without asking the model again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from saccade.data.corpus import Corpus
from saccade.learn.bucket import Bucket
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import TrainConfig
from saccade.task import metric
from saccade.task.batch import Batch
from saccade.task.carry import Carry
from saccade.task.classify import Classify
from saccade.task.loss import SLICE
from saccade.task.translate import Translate
from saccade.task.write import Write

Counts = NDArray[np.float64]


class Tally(NamedTuple):
    """counts (N, K), the score of a sum of them (K,), and which is better: more (1), less (-1) or neither (0)."""

    counts: Counts
    score: Callable[[Counts], float]
    better: int = 1

    @property
    def value(self) -> float:
        """The score of everything."""
        return self.score(self.counts.sum(0)) if len(self.counts) else float("nan")

    def of(self, chosen: NDArray[np.bool_]) -> Tally:
        """The same of some alone."""
        return self._replace(counts=self.counts[chosen])


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
    task: Translate | Classify, answers: list[str], rows: Sequence[Sequence[str]], buckets: Sequence[Bucket]
) -> Judged:
    """Of answers to rows (source, reference); the buckets are lengths of the source in words."""
    references = [row[1] for row in rows]
    language, whole = task.language if isinstance(task, Translate) else "en", {}
    for name, key in metrics_of(task).items():
        kind, pair = metric.METRICS[key], (answers, references)
        if isinstance(task, Translate):
            pair = task.asked(name, answers), task.asked(name, references)  # answers of others may have capitals
        whole[name] = Tally(kind.counts(*pair, language), kind.score, kind.better)
    lengths = np.array([len(row[0].split()) for row in rows])
    held = [bucket.holds(lengths) for bucket in buckets]
    parts = [{name: each.of(chosen) for name, each in whole.items()} for chosen in held]
    return Judged(whole, parts, [int(chosen.sum()) for chosen in held])


def metrics_of(task: Translate | Classify) -> dict[str, str]:
    """The names of a task's metrics, and what `task.metric` calls them."""
    if isinstance(task, Classify):
        return {"accuracy": "exact_match"}
    return {name: name for name in (task.metrics if metric.installed() else task.metrics[:1])}


def of_windows(losses: Counts, buckets: Sequence[Bucket]) -> Judged:
    """Of the losses (windows, places) of a language model; the buckets are how many tokens of the window came before.

    At the first place one has: the window's first token is read, not asked for.
    """
    edges = [(max(bucket.low - 1, 0), None if bucket.high is None else bucket.high - 1) for bucket in buckets]
    whole, parts = _nats(losses), [_nats(losses[:, low:high]) for low, high in edges]
    return Judged({"loss": whole}, [{"loss": each} for each in parts], [int(each.counts[:, 1].sum()) for each in parts])


def window_losses(task: Write, model: Model, corpus: Corpus, config: TrainConfig, limit: int | None = None) -> Counts:
    """The nats of every token in the windows of a text, (windows, places); NaN behind the end of the last."""
    found: list[Counts] = []
    carry, alone = Carry(model), {"batch": config.length} if task.remembers else {}  # in the order of the text
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
    states, rows = model.states(batch.source, memory=batch.memory).flatten(0, 1), max(1, SLICE // model.config.vocab)
    pairs = zip(states.split(rows), batch.wanted.split(rows), strict=True)
    parts = [F.cross_entropy(model.answer(x[None])[0].float(), y, reduction="none") for x, y in pairs]
    return torch.cat(parts).view(batch.source.shape)
