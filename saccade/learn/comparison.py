"""`Comparison`: what was found of runs side by side, as a table and as a picture, in a terminal or in a file."""

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
from saccade.look.vector import told
from saccade.number import finite

COSTS = {
    "parameters": "parameters",
    "training_flops": "training FLOPs",
    "training_tokens": "training tokens",
    "training_tokens_per_second": "training tokens/s",
    "decode_tokens_per_second": "decode tokens/s",
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
class Entry:
    """A run, or a file of answers: its metrics, the same in each bucket, its costs (None: not known), and how it was
    searched (of a file nothing is known).
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
    """A metric of a run minus that of the first, of a bucket or (None) of all; see `Difference`."""

    run: str
    against: str
    metric: str
    bucket: str | None
    difference: float
    low: float
    high: float
    first_better: float


class Line(NamedTuple):
    """A line of the table: what it is called, and a text for each run."""

    name: str
    cells: list[str]


@dataclass(frozen=True)
class Comparison:
    """Runs on one split: `examples` of what `noun` says; `metric` is told by bucket (name, size) of a `unit`."""

    task: str
    split: str
    examples: int
    metric: str
    unit: str
    buckets: list[tuple[str, int]]
    runs: list[Entry]
    differences: list[Against]
    noun: str = "text"

    @property
    def names(self) -> list[str]:
        """The runs by the last word of their folders, where that tells them apart."""
        short = [Path(each.run).name for each in self.runs]
        return short if len(set(short)) == len(short) else [each.run for each in self.runs]

    @property
    def title(self) -> str:
        """What was compared on what."""
        return f"{self.metric} on {self.split}, {counted(self.examples, self.noun)}"

    def described(self) -> dict[str, Any]:
        """All of it for a program; what is no number is null."""
        own = {"task": self.task, "split": self.split, "examples": self.examples, "metric": self.metric}
        buckets = [{"name": name, "size": size} for name, size in self.buckets]
        runs = [asdict(each) for each in self.runs]
        found = {**own, "unit": self.unit, "buckets": buckets, "runs": runs}
        return finite({**found, "differences": [each._asdict() for each in self.differences]})

    def lines(self) -> Iterator[Line]:
        """The table from top to bottom: metrics, the main one with its differences and by bucket, what got no answer,
        costs, and how the runs were searched, where that differs.
        """
        for name in self.runs[0].metrics:
            yield Line(name, [_score(name, each.metrics[name]) for each in self.runs])
            if name == self.metric:
                yield from self._difference(name, None)
        for number, (bucket, size) in enumerate(self.buckets):
            if size:
                scores = [each.buckets[self.metric][number] for each in self.runs]
                yield Line(f"{bucket} {self.unit} ({size:,})", [_score(self.metric, each) for each in scores])
                yield from self._difference(self.metric, bucket)
        for key, name in MISSING.items():
            if any(getattr(each, key) for each in self.runs):
                yield Line(name, [_count(getattr(each, key)) for each in self.runs])
        for key, name in COSTS.items():
            digits = ".3g" if key == "training_flops" else ",.0f"  # lengths of test data stand for those of training
            yield Line(name, [_count(getattr(each, key), digits) for each in self.runs])
        searched = [each.decode for each in self.runs if each.decode]
        for key in searched[0] if searched else ():
            if len({str(each[key]) for each in searched}) > 1:
                yield Line(f"decode.{key}", [str(each.decode.get(key, "-")) for each in self.runs])

    def drawn(self) -> Drawing:
        """The main metric by bucket, a line for each run; buckets without anything in them are left out."""
        filled = [number for number, (_, size) in enumerate(self.buckets) if size]
        names = [self.buckets[number][0] for number in filled]
        series = {
            name: [each.buckets[self.metric][number] for number in filled]
            for name, each in zip(self.names, self.runs, strict=True)
        }
        return lines(series, names, title=f"{self.title}, by {self.unit}")

    def tables(self, width: int) -> Iterator[Table]:
        """For a terminal so wide: as many runs side by side as fit, the others below."""
        lines = list(self.lines())
        columns = zip(self.names, *(line.cells for line in lines), strict=True)
        needs = [GAP + max(map(cell_len, column)) for column in columns]
        room, number = width - GAP - max(cell_len(line.name) for line in lines), 0
        while number < len(needs):
            count = max(1, sum(total <= room for total in accumulate(needs[number:])))
            yield self._table(lines, range(number, number + count))
            number += count

    def _table(self, lines: list[Line], runs: range) -> Table:
        made = Table(box=None, title=Text(self.title), title_justify="left")
        made.add_column("")
        for number in runs:
            made.add_column(Text(self.names[number]), justify="right")
        for line in lines:
            made.add_row(Text(line.name), *(Text(line.cells[number]) for number in runs))
        return made

    def save(self, path: str | Path) -> Path:
        """Writes a file, whole or not at all; its ending tells the kind."""
        target = file_for(path, KINDS)
        disk.write(target, KINDS[target.suffix[1:].lower()](self))
        return target

    def _difference(self, metric: str, bucket: str | None) -> Iterator[Line]:
        """The paired bootstrap, where there is one: nothing for the first run, which the others are compared with."""
        found = {each.run: each for each in self.differences if (each.metric, each.bucket) == (metric, bucket)}
        if not found:
            return
        rest = [found.get(each.run) for each in self.runs[1:]]
        digits = _digits(metric)
        yield Line("  difference", ["", *("-" if each is None else f"{each.difference:+.{digits}f}" for each in rest)])
        spans = ("-" if each is None else f"{each.low:+.{digits}f} to {each.high:+.{digits}f}" for each in rest)
        yield Line("  95 % of draws", ["", *spans])
        shares = ("-" if each is None else f"{each.first_better:.1%}" for each in rest)
        yield Line("  the first is better in", ["", *shares])


def to_csv(comparison: Comparison) -> bytes:
    """A line for each run, whole numbers and all digits; differences are those of the whole."""
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
        name = "'" + run.run if run.run.startswith(FORMULA) else run.run
        writer.writerow([name, *("" if each is None or math.isnan(each) else each for each in numbers)])
    return text.getvalue().encode(errors="backslashreplace")


def to_html(comparison: Comparison) -> bytes:
    """A page with the picture and the table, which needs nothing else."""
    head = "".join(f"<th>{told(each)}</th>" for each in ("", *comparison.names))
    body = "".join(map(_row, comparison.lines()))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    picture = comparison.drawn().to_svg(ink="currentColor", paper=None)
    note = "<p>Differences: a run minus the first, on the same texts drawn again 1,000 times (paired bootstrap).</p>"
    return document(comparison.title, f'{SHEET}\n<div class="saccade-runs">{picture}\n{table}\n{note}</div>').encode()


def _row(line: Line) -> str:
    inner = ' class="inner"' if line.name.startswith(" ") else ""
    cells = "".join(f"<td>{told(each)}</td>" for each in line.cells)
    return f"<tr><th{inner}>{told(line.name.strip())}</th>{cells}</tr>"


def to_json(comparison: Comparison) -> bytes:
    """`described`, to be read by people too."""
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
