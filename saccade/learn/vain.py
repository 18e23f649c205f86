"""What a recipe says in vain: refused where somebody asks for it, and not ignored.

Not so in the recipes of runs: they were made already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from saccade.data.supply import check_task
from saccade.error import SaccadeError
from saccade.recipe import MADE, DecodeConfig, Recipe, idle, option_of

Rule = tuple[str, str, bool]  # a path, why it may do nothing, and whether it does something
ALONG = ("data.tokenizer", "data.vocab", "data.lower")  # what weights to begin with bring along


def refuse(recipe: Recipe, options: Iterable[str] = ()) -> None:
    """Refuses a recipe in which something does nothing; of what `start` brings along, only if an option says it."""
    check_task(recipe)  # before what belongs to another task
    for path, value in map(option_of, options):
        if recipe.start is not None and path in ALONG and value is not None:
            raise SaccadeError(f"{path} comes along with the weights of start: leave it out")
    for path, why in _vain(recipe):
        raise SaccadeError(f"{path} {why}: take it away (-o {path}=)")
    if recipe.model is not None and recipe.model.score.startswith("feature") and recipe.model.normaliser != "sum":
        raise SaccadeError(
            "model.score = 'feature(...)' are weights before they are summed, and no softmax follows: "
            "write model.normaliser = 'sum'"
        )


def _vain(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """What was changed in a recipe and does nothing in it, with the reason."""
    for path, why, serves in (*_of_tasks(recipe), *_of_others(recipe)):
        table, key = path.split(".")
        part = getattr(recipe, table)
        if part is None or serves:
            continue
        if getattr(part, key) != type(part).model_fields[key].get_default(call_default_factory=True):
            yield path, why


def _of_tasks(recipe: Recipe) -> Iterator[Rule]:
    """What tasks and data make use of."""
    task, generated = recipe.task, recipe.data.name in MADE
    yield "model.memory", f"goes from segment to segment of a text, and {task} has none", task == "write"
    yield "model.pool", f"belongs to task = 'classify', and the task is {task}", task == "classify"
    yield "data.both", f"turns pairs of texts round, and the task is {task}", task == "translate"
    yield "data.ask", f"is of texts that are gone on with, and the task is {task}", task == "write"
    yield "data.pair", "names languages, and here there are none", task == "translate" and not generated
    yield "data.share", f"splits files, and {recipe.data.name} is made here, split by split", not generated
    for key in ("examples", "held"):
        yield f"data.{key}", f"belongs to data that are made here ({', '.join(MADE)}) and does nothing here", generated
    yield "data.limit", "is that of examples, and write reads windows of one text (train.length)", task != "write"
    yield "train.length", f"is that of a window of one text, and the task is {task}", task == "write"
    yield "train.reward", f"scores translations, and the task is {task}", task == "translate"
    yield "train.unmerge", "spells whole examples, and write reads windows of one text", task != "write"
    for key in DecodeConfig.model_fields:
        yield f"decode.{key}", "says how to write, and a classifier writes nothing", task != "classify"
    for key in ("ratio", "replace_unknown"):
        yield f"decode.{key}", f"belongs to task = 'translate', and the task is {task}", task == "translate"


def _of_others(recipe: Recipe) -> Iterator[Rule]:
    """What belongs to another value."""
    train, experts = recipe.train, recipe.model is not None and recipe.model.experts > 0
    owners = {
        "train.matrix_rate": ("train.optimiser = 'muon'", train.optimiser == "muon"),
        "train.momentum": ("train.optimiser = 'sgd' or 'muon'", train.optimiser in ("sgd", "muon")),
        "train.betas": ("train.optimiser = 'adam', 'adamw' or 'muon'", train.optimiser != "sgd"),
        "train.final": ("train.schedule = 'linear' or 'cosine'", train.schedule in ("linear", "cosine")),
        "train.unmerge_side": ("train.unmerge", train.unmerge > 0),
        "train.samples": ("train.reward", train.reward > 0),
        "model.chosen": ("model.experts", experts),
        "model.capacity": ("model.experts", experts),
        "train.balance": ("model.experts", experts or recipe.start is not None),
        **{f"decode.{name}": (f"decode.{whose}", False) for name, whose in idle(recipe.decode).items()},
    }
    return ((path, f"belongs to {whose} and does nothing here", there) for path, (whose, there) in owners.items())
