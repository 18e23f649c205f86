"""`Evaluation`: the metrics of a run on some examples, and what it answered, to be written to a file: the answers as a
table, or what belongs to the metrics as a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade import disk
from saccade.data.table import KINDS as TABLES
from saccade.data.table import Table
from saccade.error import SaccadeError
from saccade.field.result import Result
from saccade.look.confusion import confusion
from saccade.look.drawing import Drawing
from saccade.look.picture import file_for, filed
from saccade.task.task import Task

DRAWN = ("svg", "png")  # the endings of pictures
ANSWERED = ("answer", "reference")  # the columns behind those of the inputs


class Evaluation(NamedTuple):
    """metrics: by name; beside: what belongs to them; rows and results: what was answered, where anything was."""

    split: str
    examples: int
    metrics: dict[str, Any]
    beside: dict[str, Any]
    rows: Sequence[Sequence[Any]] = ()
    results: Sequence[Result] = ()

    def save(self, task: Task, path: Path, name: str) -> None:
        """Writes what the ending of the path asks for; name: of the run, for the title of a picture."""
        if path.suffix[1:].lower() in TABLES:
            table = self.table(task)
            (table.on_lines() if path.suffix.lower() == ".tsv" else table).save(path)
            return
        if path.suffix[1:].lower() in task.target.endings_out:
            disk.write(path, task.target.filed(self.results, self.rows))
            return
        assert task.target.drawn is not None  # `out_file` has refused it
        drawing = PICTURES[task.target.drawn](self.beside[task.target.drawn], f"{name}, {self.split}")
        disk.write(path, filed(drawing, path.suffix[1:].lower()))

    def table(self, task: Task) -> Table:
        """Inputs, answers and references, in the order of the split."""
        fields = [*task.x.values(), task.target]
        head = [name if name not in ANSWERED else f"x.{name}" for name in task.x]
        rows = []
        for row, result in zip(self.rows, self.results, strict=True):
            *inputs, reference = (field.show(raw) for field, raw in zip(fields, row, strict=True))
            rows.append([*inputs, result.text, reference])
        return Table([*head, *ANSWERED], rows)


def out_file(task: Task, path: str | Path) -> Path:
    """The file that an evaluation is written to; refuses, before any work, what this task cannot give."""
    target = disk.writable(file_for(path, (*TABLES, *task.target.endings_out, *DRAWN)))
    kind = target.suffix[1:].lower()
    if kind in TABLES and task.answer.compared != "answers":
        raise SaccadeError("only the loss of this run is measured, so it has no answers to write: leave out --out")
    if kind in DRAWN and task.target.drawn is None:
        raise SaccadeError(
            f"a picture is drawn of a confusion matrix, and {task.verb} gives no labels: write the answers "
            f"({', '.join(f'.{each}' for each in TABLES)})"
        )
    return target


PICTURES: dict[str, Callable[[dict[str, Any], str], Drawing]] = {"confusion": confusion}
