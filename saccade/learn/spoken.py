"""Where a transcriber of joined digits listens for each word, in milliseconds from where the word is: the cuts between
the clips are known.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saccade.data import fsdd, named
from saccade.field.tally import Counts, Tally
from saccade.learn.alignment import attends
from saccade.look.look import Look
from saccade.recipe import Recipe
from saccade.store.run import Run

UNIFORM = "for alignment_ms, a map that looks at all of a sound alike"
MEASURED = 200  # strings whose alignment is measured
MOST = 4000  # milliseconds that are told apart; what is further away counts as this


class Away(NamedTuple):
    """How far the attention to each word of a string lies from the middle of its clip, and how far the middle of the
    whole sound does, (words,), in milliseconds.
    """

    own: np.ndarray
    uniform: np.ndarray


def alignment_ms(run: Run, recipe: Recipe, split: str) -> tuple[dict[str, Tally], dict[str, Any]]:
    """The metric `alignment_ms` of a run on fsdd-strings, the median over words, and beside it that of a map that looks
    at all of a sound alike. None where the run does not attend, or gets no string right.
    """
    if not attends(run.model):
        return {}, {}
    there = recipe.data.examples if split == "train" else recipe.data.held
    archive = named.files("fsdd", split)[0]
    count, data = min(MEASURED, there), recipe.data
    strings = (fsdd.string(archive, number, split, recipe.seed, data.speaker) for number in range(count))
    found = [away(run, each) for each in strings]
    if not any(len(each.own) for each in found):
        return {}, {}
    own, uniform = (Tally(_histograms([each[way] for each in found]), median, -1) for way in (0, 1))
    return {"alignment_ms": own}, {"alignment_ms": uniform.value, "what": UNIFORM}


def away(run: Run, spoken: fsdd.Spoken) -> Away:
    """Of one string, as the run's own search writes it; of no word, where it does not come out right."""
    if run.limit is not None and spoken.recording.seconds > run.task.x["source"].config.limit:
        return Away(np.empty(0), np.empty(0))
    seen = run.look(spoken.recording)
    if seen.output != spoken.text:
        return Away(np.empty(0), np.empty(0))
    middles = np.array([(begin + end) / 2 for begin, end in spoken.cuts])
    heard, seconds = times(seen, spoken.text)
    return Away(1000 * np.abs(heard - middles), 1000 * np.abs(seconds / 2 - middles))


def times(seen: Look, text: str) -> tuple[np.ndarray, float]:
    """For each word of a text that was written letter by letter, the mean time that its letters look at, weighted by
    how much; and how long the sound is.
    """
    (side,) = (each for each in seen.sides.values() if "seconds" in each.shown)
    weights = seen.map("alignment").values.double().numpy()[:, : len(side)]
    seconds = side.shown["seconds"]
    centres = np.array([each.place[0] + each.place[2] / 2 for each in side.tokens if each.place is not None]) * seconds
    each_letter = weights @ centres / np.maximum(weights.sum(1), 1e-12)
    begins = np.cumsum([0, *(len(word) + 1 for word in text.split(" "))])
    words = [each_letter[begin : end - 1].mean() for begin, end in pairwise(begins)]
    return np.array(words), seconds


def median(total: Counts) -> float:
    """The median of a histogram of whole milliseconds."""
    below = np.cumsum(total)
    return float(np.searchsorted(below, below[-1] / 2)) if below[-1] else float("nan")


def _histograms(examples: list[np.ndarray]) -> Counts:
    """How many words of each example are so many milliseconds away, (N,MOST + 1): they add up, as a median does not."""
    rounded = [np.minimum(np.rint(each), MOST).astype(np.int64) for each in examples]
    return np.stack([np.bincount(each, minlength=MOST + 1) for each in rounded]).astype(np.float64)
