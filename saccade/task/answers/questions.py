"""A text with questions, of which only the answers count: the likeliest token at each (Arora et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from saccade.data.rows import texts
from saccade.field.result import Result
from saccade.field.tally import Tally, intervals
from saccade.model.dropout import evaluating
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answer import Ask, Judgement
from saccade.task.answers.continuation import Continuation
from saccade.task.batch import states_of
from saccade.task.example import Example
from saccade.task.inputs import Task
from saccade.task.segment_memory import SegmentMemory

QUESTIONS = 8192  # tokens that are read at a time where answers are scored


class Questions:
    """A prompt is continued as any other; metrics count the answers alone."""

    writes, compared = True, None

    def __init__(self, *, task: Task) -> None:
        self.task, self.y, self.continued = task, task.target, Continuation(task=task)

    def predict(self, model: Model, inputs: Sequence[str], decode: DecodeConfig) -> list[Result]:
        """How each text goes on; one that ends with a question, with its answer."""
        return self.continued.predict(model, inputs, decode)

    def stream(self, model: Model, raw: str, decode: DecodeConfig) -> Iterator[str]:
        return self.continued.stream(model, raw, decode)

    def asks(self, model: Model, inputs: Sequence[str], decode: DecodeConfig) -> list[Ask]:
        return self.continued.asks(model, inputs, decode)

    def example(
        self, model: Model, raw: str, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        return self.continued.example(model, raw, decode, target=target, adds=adds)

    def judge(self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig) -> Judgement:
        """The share of questions to which the likeliest token is the answer. For the interval, rows of batches are
        drawn again: the texts, or their segments.
        """
        read = [np.array(each) for each in self.y.encode([row[0] for row in rows])["tokens"]]
        sizes = np.array([len(each) - 1 for each in read])
        way = self.task.rows
        assert isinstance(way, texts)
        size, segment_memory, counts = way.size(sizes), SegmentMemory(model), []
        with torch.inference_mode(), evaluating(model):
            for picked in way.all(np.concatenate(read), size, max(1, QUESTIONS // way.length)):
                batch = segment_memory.attach(self.task.batch(picked).to(str(model.device)))
                wanted = batch.y.values["wanted"].flatten()
                places = (wanted >= 0).nonzero().squeeze(1)
                states = states_of(model, batch).last.flatten(0, 1)[places]
                right = torch.zeros_like(wanted, dtype=torch.bool)
                right[places] = model.answer(states[None])[0].argmax(-1) == wanted[places]
                shape = batch.y.values["wanted"].shape
                counts.append(torch.stack([right.view(shape).sum(1), (wanted >= 0).view(shape).sum(1)], 1))
        tally = Tally(torch.cat(counts).double().cpu().numpy(), lambda total: float(total[0] / max(total[1], 1)))
        return Judgement({"accuracy": tally.value}, {"interval": intervals({"accuracy": tally})}, [])

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        return self.judge(model, rows, decode).metrics, []
