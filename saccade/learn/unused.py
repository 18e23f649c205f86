"""Options of a recipe that would have no effect in it: they are refused, not ignored.

The recipes in run folders are not checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from saccade.data.generated import GENERATED, HELD_OUT
from saccade.data.named import DATA
from saccade.data.supply import check_data
from saccade.error import SaccadeError
from saccade.recipe import APART, DecodeConfig, Recipe, idle
from saccade.recipes.read import option_of
from saccade.task.pair import COMES_ALONG, Pair, pair_of

Rule = tuple[str, str, bool]  # a path, why it may have no effect, and whether it has one here


def refuse(recipe: Recipe, options: Iterable[str] = ()) -> None:
    """Refuses changed keys that have no effect; those that `start` brings along, only where an option sets them."""
    pair = pair_of(recipe)
    # First: data of another task explain keys that belong to that task.
    check_data(recipe, {name: part.kind for name, part in pair.parts.items()})
    for path, value in map(option_of, options):
        if recipe.start is not None and path.split(".")[-1] in COMES_ALONG and path[0] in "dxy" and value is not None:
            raise SaccadeError(f"{path} comes along with the weights of start: leave it out")
    for path, why in _unused(recipe, pair):
        raise SaccadeError(f"{path} {why}: take it away (-o {path}=)")
    if recipe.model is not None and recipe.model.score.startswith("feature") and recipe.model.normaliser != "sum":
        raise SaccadeError(
            "model.score = 'feature(...)' are weights before they are summed, and no softmax follows: "
            "write model.normaliser = 'sum'"
        )


def _unused(recipe: Recipe, pair: Pair) -> Iterator[tuple[str, str]]:
    """The keys that were changed in a recipe and have no effect in it, with the reason."""
    for path, why, serves in (*_of_pair(recipe, pair), *_of_other_keys(recipe)):
        table, key = path.split(".")
        part = getattr(recipe, table)
        if part is None or serves:
            continue
        if getattr(part, key) != type(part).model_fields[key].get_default(call_default_factory=True):
            yield path, why


def _of_pair(recipe: Recipe, pair: Pair) -> Iterator[Rule]:
    """Keys whose effect depends on X, Y or the data; the keys of [x.NAME] and [y] are checked by their fields."""
    task, generated, y = recipe.task, recipe.data.name in GENERATED, pair.y.kind
    pooled, alike = y.needs == "pooled", [part.kind.kind for part in pair.x.values()] == [y.kind]
    writes = pair.writes
    yield "model.memory", f"goes from segment to segment of a text, and {task} has none", not pair.x
    yield "model.pool", f"is for a task that reads a pooled state, and {task} reads none", pooled
    worded = any(getattr(part.config, "tokenizer", "characters") != "characters" for part in pair.parts.values())
    yield "train.embedding", "brings vectors of words, and nothing here is read by words", worded
    yield "data.both", f"turns pairs of one kind round, and the task is {task}", alike
    yield "data.pair", "names languages, and here there are none", alike and not generated
    yield "data.share", f"splits files, and {recipe.data.name} is made here, split by split", not generated
    apart = HELD_OUT.get(recipe.data.name) or (DATA[recipe.data.name].apart if recipe.data.name in DATA else None)
    for key in APART:
        yield f"data.{key}", f"holds out a {key}, and these data name none", apart == key
    cut = "cuts own tables of tracks into scenes, and here there are none"
    yield "data.windows", cut, y.recorded and recipe.data.name is None
    made = ", ".join(map(str, GENERATED))
    for key in ("examples", "held", "fresh"):
        yield f"data.{key}", f"belongs to data that are made here ({made}) and does nothing here", generated
    for key in DecodeConfig.model_fields:
        yield (
            f"decode.{key}",
            f"{SAYS.get(key, 'says how to write')}, and {task} {LACKS.get(key, 'writes nothing')}",
            key in y.decides,
        )
    for key in ("ratio", "replace_unknown"):
        yield f"decode.{key}", f"belongs to a text that is written of another, and the task is {task}", alike and writes


def _of_other_keys(recipe: Recipe) -> Iterator[Rule]:
    """Keys that have an effect only beside a certain value of another key."""
    train, experts = recipe.train, recipe.model is not None and recipe.model.experts > 0
    owners = {
        "train.matrix_rate": ("train.optimiser = 'muon'", train.optimiser == "muon"),
        "train.momentum": ("train.optimiser = 'sgd' or 'muon'", train.optimiser in ("sgd", "muon")),
        "train.betas": ("train.optimiser = 'adam', 'adamw' or 'muon'", train.optimiser != "sgd"),
        "train.final": ("train.schedule = 'linear' or 'cosine'", train.schedule in ("linear", "cosine")),
        "model.chosen": ("model.experts", experts),
        "model.capacity": ("model.experts", experts),
        "train.balance": ("model.experts", experts or recipe.start is not None),
        **{f"decode.{name}": (f"decode.{whose}", False) for name, whose in idle(recipe.decode).items()},
    }
    return ((path, f"belongs to {whose} and does nothing here", there) for path, (whose, there) in owners.items())


# What a key of [decode] says, where that is not how to write, and what a task lacks that it would change.
SAYS = {"threshold": "says how sure of an element a model must be"}
LACKS = {"threshold": "finds none"}
