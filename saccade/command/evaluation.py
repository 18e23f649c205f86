"""What `saccade evaluate` prints: metrics with their intervals, a baseline, the scores of each class and what was taken
for what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from saccade.command.sheet import sheet, show

if TYPE_CHECKING:
    from rich.table import Table

    from saccade.learn.seeds import Seeds

WITHOUT = {
    "unfit": "of the examples without an answer: too long, or nothing to read",
    "without_loss": "of the examples without a loss: a side is too long, or has no tokens",
    "cut": "of the answers cut before they had ended: see max_tokens and ratio",
}
SHOWN = 12  # classes, the worst, and confusions, the most frequent, where there is no room for all
CELL = 12  # letters of a class above its column
MISSING = "no answer"
SCORES = {"precision": "precision", "recall": "recall", "f1": "F1"}  # of a class, and what they are called


def print_evaluation(found: dict[str, Any]) -> None:
    """All that was measured, in lines and tables."""
    from saccade.data.report import counted

    count = counted(found["examples"], "text" if "tokens" in found else "example")
    tokens = f", {counted(found['tokens'], 'token')}" if "tokens" in found else ""
    mask = f", looking where {found['mask']} allows it" if "mask" in found else ""
    typer.echo(f"{found['run']}, step {found['step']}, {found['split']}, {count}{tokens}{mask}")
    for name, value in found["metrics"].items():
        low, high = found.get("interval", {}).get(name, (None, None))
        typer.echo(f"  {name:<22} {value:.4f}{'' if low is None else f'   (95 %: {low:.4f} to {high:.4f})'}")
    baseline = dict(found.get("baseline", {}))
    what = baseline.pop("what", "")
    for name, value in baseline.items():
        typer.echo(f"  {name:<22} {value:.4f}   (baseline: {what})")
    true = dict(found.get("true", {}))
    what = true.pop("what", "")
    for name, value in true.items():
        typer.echo(f"  {name:<22} {value:.4f}   ({what})")
    for kind, measured in found.get("kinds", {}).items():
        _print_kind(kind, measured)
    if found.get("lower"):
        typer.echo("  the model writes no capitals, which bleu_13a and chrf count as faults")
    for key, sentence in WITHOUT.items():
        if found.get(key):
            typer.echo(f"  {found[key]:,} {sentence}")
    for length, loss in found.get("context", {}).get("losses", {}).items():
        typer.echo(f"  from {length:>5} tokens       {loss:.4f}")
    if "context" in found:
        typer.echo(f"  effective context      {found['context']['effective']}")
    if "classes" in found:
        _print_classes(found["classes"])
    if "confusion" in found:
        _print_confusion(found["confusion"])
    if "out" in found:
        typer.echo(found["out"])


def print_seeds(found: Seeds) -> None:
    """Each metric over the runs of several seeds: mean, standard deviation, and between which it lies."""
    from saccade.data.report import counted

    runs = f"{len(found.runs)} runs ({found.runs[0]} to {found.runs[-1]})"
    typer.echo(f"{found.folder}, {runs}, {found.split}, {counted(found.examples, 'example')}")
    for name, (mean, deviation, values) in found.metrics.items():
        typer.echo(f"  {name:<22} {mean:.4f} ± {deviation:.4f}   (from {min(values):.4f} to {max(values):.4f})")
    baseline = dict(found.baseline)
    what = baseline.pop("what", "")
    for name, value in baseline.items():
        typer.echo(f"  {name:<22} {value:.4f}   (baseline: {what})")


def _print_kind(kind: str, found: dict[str, Any]) -> None:
    """The metrics of one kind of example, with those of the baseline behind them."""
    typer.echo(f"  {kind}, {found['examples']:,}")
    for name, (low, high) in found["interval"].items():
        beside = found.get("baseline", {}).get(name)
        told = "" if beside is None else f"   (baseline: {beside:.4f})"
        typer.echo(f"    {name:<20} {found[name]:.4f}   (95 %: {low:.4f} to {high:.4f}){told}")


def _print_classes(classes: dict[str, dict[str, Any]]) -> None:
    """A line for each class; of very many, the worst."""
    rows, title = list(classes.items()), "label"
    if len(rows) > 4 * SHOWN:
        rows = sorted(rows, key=lambda each: each[1]["f1"])[:SHOWN]
        title = f"label ({SHOWN} of {len(classes):,}, lowest F1 first; --json has all)"
    table = _table(title, *(head for score in SCORES.values() for head in (score, "95 %")), "examples")
    for name, each in rows:
        cells = (cell for key in SCORES for cell in (f"{each[key]:.4f}", _between(each["interval"].get(key))))
        table.add_row(_plain(name), *cells, f"{each['support']:,}")
    show(table)


def _between(limits: list[float] | None) -> str:
    """An interval in a cell; two digits, so that three of them fit the page."""
    return "" if limits is None else f"{limits[0]:.2f}-{limits[1]:.2f}"


def _print_confusion(found: dict[str, Any]) -> None:
    """The matrix where it fits the page; else the most frequent confusions."""
    labels, counts, missing = found["labels"], found["counts"], found.get("unanswered")
    columns = [*labels, *([] if missing is None else [MISSING])]
    rows = [[*row, *([] if missing is None else [missing[n]])] for n, row in enumerate(counts)]
    heads = [each if len(each) <= CELL else f"{each[: CELL - 1]}…" for each in columns]
    table = _table("wanted \\ answered", *heads)
    for name, row in zip(labels, rows, strict=True):
        table.add_row(_plain(name), *(f"{each:,}" for each in row))
    page = sheet()
    if page.measure(table).minimum <= page.width:
        show(table)
        return
    pairs = [(count, n, m) for n, row in enumerate(rows) for m, count in enumerate(row) if count and n != m]
    worst = _table("wanted", "answered", "examples")
    for count, n, m in sorted(pairs, key=lambda each: -each[0])[:SHOWN]:
        worst.add_row(_plain(labels[n]), _plain(columns[m]), f"{count:,}")
    show(worst)


def _table(first: str, *others: str) -> Table:
    """A table of names and numbers."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None)
    made.add_column(Text(first), no_wrap=True)
    for each in others:
        made.add_column(Text(each), justify="right", no_wrap=True)
    return made


def _plain(name: str) -> Any:
    """A name in which nothing is markup, on one line."""
    from rich.text import Text

    return Text(name.replace("\n", "\\n").replace("\t", "\\t"))
