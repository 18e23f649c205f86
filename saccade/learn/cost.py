"""What a run cost and costs: FLOPs and tokens of its training, and how fast it writes.

FLOPs are counted while the model runs on tensors without values (the meta device). There a recurrent layer is computed
product by product, so that torch's counter sees every one. Each product has two more in its gradient: training counts
as three passes, and with `y.agree`, which reads a batch twice, as six.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from saccade.config import ModelConfig
from saccade.data.corpus import Corpus
from saccade.field.result import CUT
from saccade.learn.contender import Contender
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.stack import Memory
from saccade.recipe import TrainConfig
from saccade.store import checkpoint
from saccade.store.run import Run
from saccade.task.batch import Batch
from saccade.task.batch import run as states_of
from saccade.task.task import Task
from saccade.zoo.build import build

SHAPES = 4  # batches that stand for all when FLOPs are counted
ROUNDS = 3  # in which runs take turns at writing; the median counts


class Trained(NamedTuple):
    """tokens: predictions made in training (target tokens, or texts); seconds: how long they took."""

    tokens: int
    seconds: float


def trained(run: Run) -> Trained | None:
    """What the checkpoint in use says of its training, and of that of the run it started from; None where either was
    trained elsewhere.
    """
    path = None if run.path is None else checkpoint.path_of(run.path, run.step) / "state.json"
    if path is None or not path.is_file():
        return None
    state, before = json.loads(path.read_text()), run.about.get("trained", [0, 0.0])
    if not state.get("tokens") or before is None:
        return None
    return Trained(state["tokens"] + before[0], state["seconds"] + before[1])


def flops_a_prediction(config: ModelConfig, task: Task, corpus: Corpus, train: TrainConfig) -> float | None:
    """FLOPs of training for each prediction, in batches as training makes them, padding included; None: not known.

    The batches are those of a corpus at hand: its lengths stand for those of the training data.
    """
    if config.mask is not None or config.pattern is not None or not config.normaliser.startswith("softmax"):
        return None  # how many pairs are left out depends on the kernel, and the meta device uses another
    batches = sorted(task.whole(corpus, train), key=lambda batch: batch.shapes[0][1:])
    if any("edges" in each.values for each in batches[0].x.values()):
        return None  # which nodes meet is told by values, and the meta device has none
    step = -(-len(batches) // SHAPES)
    model, seen, total, count = build(config, device="meta").eval(), dict[Any, int](), 0, 0
    for each in batches[step // 2 :: step]:
        shape = each.shapes, each.count
        if shape not in seen:  # windows all have one shape
            seen[shape] = forward_flops(model, each)
        total, count = total + seen[shape], count + each.count
    return 3 * task.target.passes * total / count


def forward_flops(model: Model, batch: Batch) -> int:
    """Two for each multiplication of a matrix product in one pass; the model is on the meta device."""
    x = {name: _shapes_of(each) for name, each in batch.x.items()}
    given = None if batch.given is None else _shapes_of(batch.given)
    memory = None if batch.lane is None or given is None else _full_memory(model, given.values["tokens"])
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        states = states_of(model, x, given, memory).last
        asked = model.head is None or model.head.pooled
        model.answer(states if asked else states.flatten(0, 1)[None, : batch.count])  # the head reads no padding
    return counter.get_total_flops()


def _shapes_of(x: Input) -> Input:
    """The input on the meta device, without lengths: padding is computed as well."""
    values = {name: torch.zeros(each.shape, dtype=each.dtype, device="meta") for name, each in x.values.items()}
    return Input(values, places=x.places)


def _full_memory(model: Model, segment: Tensor) -> Memory:
    """A memory that holds as many positions as it can."""
    memory = model.memory()
    with torch.no_grad():
        for _ in range(-(-memory.length // segment.shape[1])):
            model.states(segment, memory=memory)
    return memory


def writing_speeds(contenders: Sequence[Contender], inputs: Sequence[Any]) -> list[float | None]:
    """Tokens that each run writes a second, with its own [decode]; None for runs that write nothing.

    The runs take turns, so that a slow phase of the machine hits all. Tokens are those of the run's own tokenizer, with
    an end for each text.
    """
    spent: list[list[float]] = [[] for _ in contenders]
    tokens = [0] * len(contenders)
    able = [number for number, each in enumerate(contenders) if each.run.model.decoder is not None]
    for turn in range(ROUNDS):
        for number in able if turn % 2 else reversed(able):
            contender = contenders[number]
            begin = time.perf_counter()
            results = contender.answers(inputs)
            spent[number].append(time.perf_counter() - begin)
            said = [found.text for found in results if found.note is None or found.note.startswith(CUT)]
            text = contender.task.text
            tokens[number] = 0 if text is None else sum(len(each) + 1 for each in text.encode(said))
    rounds = zip(tokens, spent, strict=True)
    return [count / statistics.median(seconds) if seconds else None for count, seconds in rounds]
