"""`Comparison`: the scores and costs of runs side by side, as a table and a picture, in a terminal or in a file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from saccade import disk
from saccade.data.report import counted
from saccade.look.drawing import Drawing
from saccade.look.lines import lines
from saccade.look.page import document
from saccade.look.picture import FORMULA, file_for
from saccade.look.vector import escaped
from saccade.number import finite

COSTS = {
    "parameters": "parameters",
    "training_flops": "training FLOPs",
    "training_tokens": "training {unit}",  # what Y is made of: tokens, labels, numbers
    "training_tokens_per_second": "training {unit}/s",
    "decode_tokens_per_second": "decode {unit}/s",
}
MISSING = {"unfit": "no answer: too long, or empty", "cut": "answers cut before their end"}
GAP = 2  # columns of a terminal between two of a table
SHEET = """<style>
  .saccade-runs { overflow-x: auto }
  .saccade-runs table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin-bottom: 2rem }
  .saccade-runs th, .saccade-runs td { padding: 0.25em 1.2em 0.25em 0; text-align: right;
    border-bottom: 1px solid rgba(128, 128, 128, 0.3) }
  .saccade-runs th:first-child { text-align: left }
  .saccade-runs th.inner { padding-left: 1.2em; font-weight: normal }
</style>"""


@dataclass(frozen=True)
class RunScores:
    """A run, or a file of answers: its metrics, over all examples and in each bucket; its costs (None: not known); and
    how it was decoded (empty for a file).
    """

    run: str
    metrics: dict[str, float]
    buckets: dict[str, list[float]]
    step: int | None = None
    parameters: int | None = None
    training_flops: float | None = None
    training_tokens: int | None = None
    training_tokens_per_second: float | None = None
    decode_tokens_per_second: float | None = None
    decode: dict[str, Any] = field(default_factory=dict)
    unfit: int = 0  # inputs without an answer
    cut: int = 0  # answers that had not ended


class Against(NamedTuple):
    """A metric of a run minus that of the first run, in a bucket or (None) over all examples; see `Difference`."""

    run: str
    against: str
    metric: str
    bucket: str | None
    difference: float
    low: float
    high: float
    first_better: float


class TableLine(NamedTuple):
    """A line of the table: its name, and a cell for each run."""

    name: str
    cells: list[str]


@dataclass(frozen=True)
class Comparison:
    """Runs on one split. examples: how many, each called a `noun`; metric: the one that is shown by bucket; buckets:
    name and size, in lengths counted in `unit`; predicted: what a prediction is one of (tokens, labels).
    """

    task: str
    split: str
    examples: int
    metric: str
    unit: str
    buckets: list[tuple[str, int]]
    runs: list[RunScores]
    differences: list[Against]
    noun: str = "text"
    predicted: str = "tokens"

    @property
    def names(self) -> list[str]:
        """The runs by the last part of their paths, where that is different for all."""
        short = [Path(each.run).name for each in self.runs]
        return short if len(set(short)) == len(short) else [each.run for each in self.runs]

    @property
    def title(self) -> str:
        return f"{self.metric} on {self.split}, {counted(self.examples, self.noun)}"

    def described(self) -> dict[str, Any]:
        """Everything as plain values for JSON; numbers that are not finite become null."""
        own = {"task": self.task, "split": self.split, "examples": self.examples, "metric": self.metric}
        buckets = [{"name": name, "size": size} for name, size in self.buckets]
        runs = [asdict(each) for each in self.runs]
        found = {**own, "unit": self.unit, "buckets": buckets, "runs": runs}
        return finite({**found, "differences": [each._asdict() for each in self.differences]})

    def lines(self) -> Iterator[TableLine]:
        """The table from top to bottom: metrics, the main one with its differences and by bucket, what got no answer,
        costs, and how the runs were searched, where that differs.
        """
        for name in self.runs[0].metrics:
            yield TableLine(name, [_score(name, each.metrics[name]) for each in self.runs])
            if name == self.metric:
                yield from self._difference(name, None)
        for number, (bucket, size) in enumerate(self.buckets):
            if size:
                scores = [each.buckets[self.metric][number] for each in self.runs]
                yield TableLine(f"{bucket} {self.unit} ({size:,})", [_score(self.metric, each) for each in scores])
                yield from self._difference(self.metric, bucket)
        for key, name in MISSING.items():
            if any(getattr(each, key) for each in self.runs):
                yield TableLine(name, [_count(getattr(each, key)) for each in self.runs])
        for key, name in COSTS.items():
            if all(getattr(each, key) is None for each in self.runs):
                continue  # nothing is written by an encoder
            # FLOPs are an estimate, from lengths of the test data: three digits are enough.
            digits = ".3g" if key == "training_flops" else ",.0f"
            yield TableLine(
                name.format(unit=self.predicted), [_count(getattr(each, key), digits) for each in self.runs]
            )
        searched = [each.decode for each in self.runs if each.decode]
        for key in searched[0] if searched else ():
            if len({str(each[key]) for each in searched}) > 1:
                yield TableLine(f"decode.{key}", [str(each.decode.get(key, "-")) for each in self.runs])

    def drawn(self) -> Drawing:
        """The main metric by bucket, a line for each run; empty buckets are left out. Without buckets, over all."""
        if not self.buckets:
            whole = {name: [each.metrics[self.metric]] for name, each in zip(self.names, self.runs, strict=True)}
            return lines(whole, ["all"], title=self.title)
        filled = [number for number, (_, size) in enumerate(self.buckets) if size]
        names = [self.buckets[number][0] for number in filled]
        series = {
            name: [each.buckets[self.metric][number] for number in filled]
            for name, each in zip(self.names, self.runs, strict=True)
        }
        return lines(series, names, title=f"{self.title}, by {self.unit}")

    def tables(self, width: int | None) -> Iterator[Table]:
        """For a terminal of this width: as many runs side by side as fit, the others below; None: all side by side."""
        lines = list(self.lines())
        if width is None:
            yield self._table_of(lines, range(len(self.runs)))
            return
        columns = zip(self.names, *(line.cells for line in lines), strict=True)
        needs = [GAP + max(map(cell_len, column)) for column in columns]
        room, number = width - GAP - max(cell_len(line.name) for line in lines), 0
        while number < len(needs):
            count = max(1, sum(total <= room for total in accumulate(needs[number:])))
            yield self._table_of(lines, range(number, number + count))
            number += count

    def _table_of(self, lines: list[TableLine], runs: range) -> Table:
        made = Table(box=None, title=Text(self.title), title_justify="left")
        made.add_column("")
        for number in runs:
            made.add_column(Text(self.names[number]), justify="right")
        for line in lines:
            made.add_row(Text(line.name), *(Text(line.cells[number]) for number in runs))
        return made

    def save(self, path: str | Path) -> Path:
        """Writes a file, whole or not at all; its ending says which kind."""
        target = file_for(path, KINDS)
        disk.write(target, KINDS[target.suffix[1:].lower()](self))
        return target

    def _difference(self, metric: str, bucket: str | None) -> Iterator[TableLine]:
        """The lines of the paired bootstrap, where there is one; the first run's cells are blank."""
        found = {each.run: each for each in self.differences if (each.metric, each.bucket) == (metric, bucket)}
        if not found:
            return
        rest = [found.get(each.run) for each in self.runs[1:]]
        digits = _digits(metric)
        yield TableLine(
            "  difference", ["", *("-" if each is None else f"{each.difference:+.{digits}f}" for each in rest)]
        )
        spans = ("-" if each is None else f"{each.low:+.{digits}f} to {each.high:+.{digits}f}" for each in rest)
        yield TableLine("  95 % of draws", ["", *spans])
        shares = ("-" if each is None else f"{each.first_better:.1%}" for each in rest)
        yield TableLine("  the first is better in", ["", *shares])


def to_csv(comparison: Comparison) -> bytes:
    """A line for each run, with all digits; differences are those over all examples."""
    text = io.StringIO(newline="")
    buckets = {f"{comparison.metric}, {name} {comparison.unit}": n for n, (name, _) in enumerate(comparison.buckets)}
    metrics = list(comparison.runs[0].metrics)
    whole = {(each.run, each.metric): each for each in comparison.differences if each.bucket is None}
    kinds = [name for name in metrics if any(metric == name for _, metric in whole)]
    writer, fields = csv.writer(text), ("difference", "low", "high", "first_better")
    writer.writerow(
        ["run", "step", *metrics, *buckets, *COSTS, *(f"{name} {each}" for name in kinds for each in fields)]
    )
    for run in comparison.runs:
        scores = [*run.metrics.values(), *(run.buckets[comparison.metric][n] for n in buckets.values())]
        beside = [getattr(whole.get((run.run, name)), each, None) for name in kinds for each in fields]
        numbers = [run.step, *scores, *(getattr(run, key) for key in COSTS), *beside]
        name = "'" + run.run if run.run.startswith(FORMULA) else run.run  # a spreadsheet must not take it for a formula
        writer.writerow([name, *("" if each is None or math.isnan(each) else each for each in numbers)])
    return text.getvalue().encode(errors="backslashreplace")


def to_html(comparison: Comparison) -> bytes:
    """A page with the picture and the table, which needs nothing else."""
    head = "".join(f"<th>{escaped(each)}</th>" for each in ("", *comparison.names))
    body = "".join(map(_html_row, comparison.lines()))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    picture = comparison.drawn().to_svg(ink="currentColor", paper=None)
    note = "<p>Differences: a run minus the first, on the same texts drawn again 1,000 times (paired bootstrap).</p>"
    return document(comparison.title, f'{SHEET}\n<div class="saccade-runs">{picture}\n{table}\n{note}</div>').encode()


def _html_row(line: TableLine) -> str:
    inner = ' class="inner"' if line.name.startswith(" ") else ""
    cells = "".join(f"<td>{escaped(each)}</td>" for each in line.cells)
    return f"<tr><th{inner}>{escaped(line.name.strip())}</th>{cells}</tr>"


def to_json(comparison: Comparison) -> bytes:
    """`described`, indented for people to read."""
    return (json.dumps(comparison.described(), indent=2, ensure_ascii=False) + "\n").encode()


def _digits(metric: str) -> int:
    """After the point: scores from 0 to 100 have two, shares and nats four."""
    return 2 if metric.startswith(("bleu", "chrf")) else 4


def _score(metric: str, value: float) -> str:
    return f"{value:.{_digits(metric)}f}" if math.isfinite(value) else "-"


def _count(value: float | None, digits: str = ",.0f") -> str:
    return "-" if value is None else f"{value:{digits}}"


KINDS: dict[str, Callable[[Comparison], bytes]] = {
    "html": to_html,
    "csv": to_csv,
    "json": to_json,
    "svg": lambda each: each.drawn().to_svg().encode(),
    "png": lambda each: each.drawn().to_png(),
}
