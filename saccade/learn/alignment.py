"""How often a translator of dates looks where it should: the generator knows which letters stand for the year."""

from __future__ import annotations

import numpy as np

from saccade.data import dates
from saccade.field.tally import Tally, ratio
from saccade.look.map import Map
from saccade.model.cross import WITHOUT
from saccade.model.model import Model
from saccade.recipe import Recipe
from saccade.store.run import Run

DIGITS = (range(4), range(5, 7), range(8, 10))  # of the year, the month and the day in 1979-05-03
MEASURED = 200  # dates whose alignment is measured


def alignment(run: Run, recipe: Recipe, split: str) -> dict[str, Tally]:
    """The metric `aligned` of a run on dates; none where it does not read letter by letter, does not attend, or gets no
    date right.
    """
    if not attends(run.model) or recipe.x["source"]["tokenizer"] != "characters":
        return {}
    there = recipe.data.examples if split == "train" else recipe.data.held
    found = aligned(run, min(MEASURED, there), split)
    return {"aligned": found} if found.counts.any() else {}


def attends(model: Model) -> bool:
    """Whether the decoder of a model looks at its source."""
    return model.encoder is not None and model.decoder is not None and model.config.cross not in WITHOUT


def looked_at(run: Run, source: str) -> tuple[str, Map]:
    """What a run writes for a date, and where each letter of it looked: the last cross-attention, its heads together.

    The last column is the end of the source, at which a letter may look too.
    """
    seen = run.look(source)
    last = [layer.name for layer in seen.layers if layer.kind == "cross"][-1]
    return seen.output, seen.map(last)


def aligned(run: Run, count: int = MEASURED, split: str = "test") -> Tally:
    """The share of digits that look most at the part of the source they come from, over dates that came out right.

    A digit that looks most at the end of the source is a miss. Sources that are too long for the run are left out, as
    in training, and so are separators, which come from no part of the source. NaN: no date came out right. A date is an
    example of the tally, with its hits and its digits.
    """
    counts = []
    for each in dates.examples(count, split=split, seed=0 if run.recipe is None else run.recipe.seed):
        if run.limit is not None and len(each.source) > run.limit:
            continue
        result, seen = looked_at(run, each.source)
        counts.append(_hits(each, seen) if result == each.target else (0, 0))
    return Tally(np.array(counts, np.float64).reshape(-1, 2), ratio)


def _hits(date: dates.DateExample, seen: Map) -> tuple[int, int]:
    """How many digits of a date look most at their own part of the source, and how many there are."""
    looked = seen.values.argmax(1).tolist()
    spans = zip(date.parts, DIGITS, strict=True)
    return sum(span[0] <= looked[place] < span[1] for span, digits in spans for place in digits), sum(map(len, DIGITS))
