"""The memory that a training takes: weights, gradients and what the optimiser remembers, and the states of a batch that
its backward pass needs. It is estimated from below before anything is allocated.
"""

from __future__ import annotations

from saccade.config import ModelConfig
from saccade.data.fresh import Examples
from saccade.error import SaccadeError
from saccade.learn.device import device_of
from saccade.model.model import Model
from saccade.recipe import Recipe, TrainConfig
from saccade.task.task import Task
from saccade.zoo.capacity import available, gigabytes, refuse_larger
from saccade.zoo.size import activations

REMEMBERED = {"adamw": 2, "adam": 2, "sgd": 1, "muon": 1}  # numbers for each parameter, at least


def refuse_model(recipe: Recipe, config: ModelConfig) -> None:
    """Refuses a model of which training keeps more than the device has."""
    train = recipe.train
    *held, last = _kept(train)
    refuse_larger(config, sum(_kept(train).values()), f"{', '.join(held)} and {last}", device_of(train.device))


def _kept(train: TrainConfig) -> dict[str, int]:
    """What training keeps of each parameter, in bytes."""
    size = 8 if train.precision == "float64" else 4
    mean = {"a mean of the weights": size} if train.average.startswith("ema") else {}
    return {"weights": size, "gradients": size, train.optimiser: size * REMEMBERED[train.optimiser], **mean}


def refuse_batch(recipe: Recipe, task: Task, model: Model, corpus: Examples) -> None:
    """Refuses a batch whose states do not fit beside what training keeps of the model."""
    train, config = recipe.train, model.config
    assert task.rows is not None
    held = sum(each.numel() for each in model.parameters()) * sum(_kept(train).values())
    size = task.rows.most(corpus.columns, train.batch)
    stacks = bool(config.encoder) + bool(config.decoder)  # a batch counts the longer side: the other may be short
    needed = size * activations(model, 1) // stacks // (1 if train.precision.startswith("float") else 2)
    there = available(device_of(train.device))
    if held + needed > there:
        raise SaccadeError(
            f"a batch of {size:,} {task.unit} takes {gigabytes(needed)} beside the {gigabytes(held)} of the model, and "
            f"there are {gigabytes(there)}: lower train.batch ({train.batch:,}); train.accumulate makes steps as large"
        )
