"""How often a translator of dates looks where it should: the generator knows which letters say the year."""

from __future__ import annotations

from saccade.data import dates
from saccade.look.map import Map
from saccade.model.cross import WITHOUT
from saccade.model.model import Model
from saccade.store.run import Run

DIGITS = (range(4), range(5, 7), range(8, 10))  # of the year, the month and the day in 1979-05-03


LOOKED = 200  # dates whose alignment is measured


def looked(run: Run, split: str) -> dict[str, float]:
    """Of a run on dates by letter whose decoder looks at its source, how often it looks where it should."""
    recipe = run.recipe
    if recipe is None or recipe.data.name != "dates" or not attends(run.model):
        return {}
    if recipe.x["source"]["tokenizer"] != "characters":
        return {}
    found = aligned(run, min(LOOKED, recipe.data.held if split != "train" else recipe.data.examples), split)
    return {} if found is None else {"aligned": found}


def attends(model: Model) -> bool:
    """Whether the decoder of a model looks at its source."""
    return model.encoder is not None and model.decoder is not None and model.config.cross not in WITHOUT


def looked_at(run: Run, source: str) -> tuple[str, Map]:
    """What a run makes of a date, and where each letter of it looked: the last cross-attention, over its heads.

    Behind the letters of the source stands its end, at which a letter may look too.
    """
    seen = run.look(source)
    last = [layer.name for layer in seen.layers if layer.kind == "cross"][-1]
    return seen.output, seen.map(last)


def aligned(run: Run, count: int = 200, split: str = "test") -> float | None:
    """The share of digits that look most at the part of the source that they come from, over dates that came out right.

    A digit that looks most at the end of the source looks elsewhere. What is too long for the run is left out, as it is
    in training, and so are separators: nothing in the source says them. None: no date came out right.
    """
    hits = total = 0
    for each in dates.examples(count, split=split, seed=0 if run.recipe is None else run.recipe.seed):
        if run.limit is not None and len(each.source) > run.limit:
            continue
        result, seen = looked_at(run, each.source)
        if result != each.target:
            continue
        looked = seen.values.argmax(1).tolist()
        for span, digits in zip(each.parts, DIGITS, strict=True):
            hits += sum(span[0] <= looked[place] < span[1] for place in digits)
            total += len(digits)
    return hits / total if total else None
