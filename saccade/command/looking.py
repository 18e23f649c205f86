"""`saccade look` and `saccade compare`: inside a run, and several side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from saccade.command.option import Json, options_of
from saccade.command.sheet import sheet, show
from saccade.command.waiting import waiting
from saccade.error import SaccadeError

if TYPE_CHECKING:
    from saccade.look.look import Look
    from saccade.look.view import View


def look(
    what: Annotated[str, typer.Argument(help="A run, or a mask or position: 'causal & window(4)', 'sinusoid'.")],
    text: Annotated[str | None, typer.Argument(metavar="INPUT", help="What a run reads.")] = None,
    out: Annotated[
        str | None,
        typer.Option(help="A .svg, .png, .html, .gif (a picture, word by word), .csv or .npz; else it is drawn here."),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(help="A layer, alignment, rollout:encoder, rollout:decoder, pairs, or atlas: all heads."),
    ] = None,
    head: Annotated[str, typer.Option(help="A number, mean or max.")] = "mean",
    words: Annotated[bool, typer.Option("--words", help="Words instead of tokens.")] = False,
    row: Annotated[str | None, typer.Option(help="One row alone: class, 3,4 (a patch), a token, or a number.")] = None,
    hide: Annotated[str, typer.Option(help="special, sink, or both with a comma.")] = "",
    target: Annotated[str | None, typer.Option(help="What was written, if not what the run writes.")] = None,
    max_tokens: Annotated[int, typer.Option(min=0, help="How many tokens a language model adds.")] = 0,
    step: Annotated[int | None, typer.Option(help="A snapshot of the run.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Cells a side, at most.")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Tokens of a mask or position.")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Numbers of a position on the input.")] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Print what kind of head each head is.")] = False,
    ablate: Annotated[bool, typer.Option("--ablate", help="Print what changes when each head is silenced.")] = False,
    as_json: Json = False,
) -> None:
    """What a run looks at while it reads a text; or what a mask or a position looks like."""
    from pathlib import Path

    from saccade.disk import writable
    from saccade.look.picture import KINDS, MOVING, file_for

    if out is not None:
        writable(file_for(out, (*KINDS, *MOVING)))  # refused before the long work begins
    drawing = {"--layer": layer, "--words": words or None, "--hide": hide or None, "--size": size, "--row": row}
    drawing["--head"] = None if head == "mean" else head
    if not Path(what).is_dir():
        asked = {"INPUT": text, "--target": target, "--step": step, "--max-tokens": max_tokens or None, **drawing}
        asked |= {"--statistics": statistics or None, "--ablate": ablate or None}
        _look_at_scheme(what, length, width, out, as_json, _names_given(asked))
        return
    if text is None:
        raise SaccadeError(f"the input is missing: write what {what} should read after it")
    if length is not None or width is not None:
        raise SaccadeError("--length and --width are for masks and positions: a run's text has a length of its own")
    if out is None and (as_json or statistics or ablate) and (unused := _names_given(drawing)):
        raise SaccadeError(f"{unused[0]} changes a picture, and this command draws none: leave it out, or give --out")
    if target is not None and max_tokens:
        raise SaccadeError("--target says what was written, --max-tokens how much is to be: give one of the two")
    from saccade.look.view import View
    from saccade.store.load import load

    view, made = View(layer, head, words, hide, size, row), load(what)
    if max_tokens and not made.task.answer.writes:
        raise SaccadeError(f"{what} writes no text: leave out --max-tokens")
    raw = made.task.line(text)
    with waiting("reading"):
        seen = (made if step is None else made.at(step)).look(raw, target, max_tokens=max_tokens)
    _show_look(seen, view, out, statistics, ablate, as_json)


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Runs, the one to compare with first; Hugging Face folders, or files of answers."),
    ],
    out: Annotated[str | None, typer.Option(help="A .html, .csv, .json, .svg or .png to write.")] = None,
    split: Annotated[str | None, typer.Option(help="train, val or test; the last there is by default.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many texts or windows alone.")] = None,
    buckets: Annotated[str | None, typer.Option(help="Lengths at which a bucket begins: 10,20,30,40")] = None,
    metric: Annotated[str | None, typer.Option(help="The metric to tell by bucket.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="beam=5, max_tokens=80")] = None,
    as_json: Json = False,
) -> None:
    """Runs side by side on the same test data: how good, for which lengths, at what cost, and what is but chance."""
    from saccade.disk import writable
    from saccade.learn.bucket import edges_of
    from saccade.learn.compare import compare as measure
    from saccade.learn.comparison import KINDS as FILES
    from saccade.look.picture import file_for

    if out is not None:
        writable(file_for(out, FILES))  # refused before the long work begins
    edges = None if buckets is None else edges_of(buckets)
    with waiting("opening the runs") as say:
        found = measure(runs, split, limit=limit, buckets=edges, metric=metric, say=say, **options_of(options))
    written = None if out is None else str(found.save(out))
    if as_json:
        typer.echo(json.dumps(found.described() | ({} if written is None else {"out": written}), ensure_ascii=False))
        return
    for table in found.tables(sheet().width if sys.stdout.isatty() else None):
        show(table)
    if written is not None:
        typer.echo(written)


def _names_given(options: Mapping[str, object]) -> list[str]:
    """The names of the options that were given."""
    return [name for name, each in options.items() if each is not None]


def _show_look(seen: Look, view: View, out: str | None, statistics: bool, ablate: bool, as_json: bool) -> None:
    """Writes the file first, so that an error of it comes before anything is printed."""
    from rich.console import Console
    from rich.progress import track

    from saccade.look.renderer import names_few
    from saccade.look.report import described, drawn, named, table

    console = Console()
    written = None if out is None else view.write(seen, out)
    aside = Console(stderr=True)
    layers = track(seen.layers, "silencing heads", console=aside, transient=True, disable=not aside.is_terminal)
    ablations = {each.name: seen.ablation(each.name) for each in layers} if ablate else None
    if as_json:
        found = described(seen, ablations) | ({} if written is None else {"out": str(written)})
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    if statistics or ablate:
        show(table(seen, ablations))
        if ablate:
            typer.echo(f"silenced: what is added to {seen.matters}")
    elif written is None:
        shown = named if names_few(seen, view.excerpt) else drawn
        console.print(shown(view.map(seen), console.width), soft_wrap=True)
    if written is not None:
        typer.echo(written)


def _look_at_scheme(
    what: str, length: int | None, width: int | None, out: str | None, as_json: bool, unused: list[str]
) -> None:
    """A mask or a position, drawn from its spec."""
    from rich.console import Console

    from saccade.look.picture import save
    from saccade.look.report import drawn, roomy
    from saccade.look.scheme import scheme_of

    console = Console()
    here = {"most": roomy(console.width)} if out is None and not as_json else {}
    made = scheme_of(what, length, width, **here)
    if unused:
        raise SaccadeError(f"{unused[0]} needs a run, and {what!r} is no folder")
    if out is not None:
        save(out, made)
    if as_json:
        typer.echo(json.dumps({"title": made.title, "shape": [*made.values.shape], "values": made.values.tolist()}))
    elif out is None:
        console.print(drawn(made, console.width), soft_wrap=True)
    else:
        typer.echo(out)
