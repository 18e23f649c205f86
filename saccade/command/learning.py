"""`saccade train`, `evaluate` and `predict`: from files to a model, and what it is good for."""

from __future__ import annotations

import json
import sys
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saccade.command.option import Json, options_of
from saccade.command.waiting import waiting
from saccade.error import SaccadeError
from saccade.number import finite

if TYPE_CHECKING:
    from saccade.field.result import Result
    from saccade.store.run import Run

PORTION = 1000  # texts that are answered before they are printed
WITHOUT = {
    "unfit": "of the examples without an answer: too long, or nothing to read",
    "without_loss": "of the examples without a loss: a side is too long, or has no tokens",
    "cut": "of the answers cut before they had ended: see max_tokens and ratio",
}


def train(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, a TOML file, or a run folder to go on with.")],
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="A value over the recipe's: train.steps=500")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--files", help="Own files: two of parallel text, a text, a table, a folder. Takes several."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="The run folder; runs/NAME by default. One that is there goes on.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(help="Further files after --files A.", show_default=False)] = None,
) -> None:
    """Train a recipe. The same command again goes on where it stopped, exactly as if it had not."""

    from rich.console import Console

    from saccade.learn.loop import Stopped
    from saccade.learn.train import train as learn
    from saccade.recipe import as_value

    given = [*(files or []), *(more or [])]
    if more and files and more[0] in takewhile(lambda word: not word.startswith("--files"), sys.argv):
        raise SaccadeError(f"{more[0]!r} stands before --files: write all files behind it, in their order")
    if more and not files:
        raise SaccadeError(f"train takes one recipe; {more[0]!r} is one word too many (files come after --files)")
    own = [f"data.files={as_value(given)}"] if given else []
    folder = run or _folder(recipe, given)
    try:
        done = learn(recipe, run=folder, options=[*(options or []), *own], console=Console())
    except Stopped as stopped:
        number, step = stopped.args
        typer.echo(f"stopped at step {step}, saved: the same command goes on from there", err=True)
        raise typer.Exit(128 + int(number)) from None
    typer.echo(f"done: step {done.step}; saccade evaluate {folder} tells how good it is")


def evaluate(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    split: Annotated[str | None, typer.Option(help="train, val or test; the last there is by default.")] = None,
    file: Annotated[str | None, typer.Option(help="A file of inputs of your own, one a line.")] = None,
    against: Annotated[str | None, typer.Option(help="The references to that file.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="beam=5, max_tokens=80")] = None,
    by_context: Annotated[
        bool, typer.Option("--context", help="Also the loss by tokens of context, and how many the model makes use of.")
    ] = False,
    as_json: Json = False,
) -> None:
    """How good a run is: the loss and the task's metrics over a whole split, or over a pair of files."""
    from saccade.data.report import counted
    from saccade.learn.validate import evaluate as measure
    from saccade.store.run import load

    made = load(run)
    decode = made.decode(**options_of(options))
    if by_context:
        from saccade.learn.context import context, reads

        if file is not None:
            raise SaccadeError("--context is measured on a split of the recipe's data: leave out --file and --against")
        reads(made)  # before minutes of measuring
    found = {"run": run, **measure(made, split, file=file, against=against, decode=decode)}
    if by_context:
        found["context"] = context(made, split)._asdict()
    if as_json:
        typer.echo(json.dumps(finite(found)))
        return
    count = counted(found["examples"], "text" if "tokens" in found else "example")
    tokens = f", {counted(found['tokens'], 'token')}" if "tokens" in found else ""
    typer.echo(f"{run}, step {found['step']}, {found['split']}, {count}{tokens}")
    for name, value in found["metrics"].items():
        low, high = found.get("interval", {}).get(name, (None, None))
        typer.echo(f"  {name:<22} {value:.4f}{'' if low is None else f'   (95 %: {low:.2f} to {high:.2f})'}")
    baseline = dict(found.get("baseline", {}))
    what = baseline.pop("what", "")
    for name, value in baseline.items():
        typer.echo(f"  {name:<22} {value:.4f}   (baseline: {what})")
    if found.get("lower"):
        typer.echo("  the model writes no capitals, which bleu_13a and chrf count as faults")
    for key, told in WITHOUT.items():
        if found.get(key):
            typer.echo(f"  {found[key]:,} {told}")
    for length, loss in found.get("context", {}).get("losses", {}).items():
        typer.echo(f"  from {length:>5} tokens       {loss:.4f}")
    if by_context:
        typer.echo(f"  effective context      {found['context']['effective']}")


def predict(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Inputs: texts, or names of files, as the run reads; without any, and without --file, stdin."
        ),
    ] = None,
    file: Annotated[str | None, typer.Option(help="A file of inputs, one a line.")] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="beam=5, temperature=0.8, max_tokens=80, ...")
    ] = None,
    piecewise: Annotated[bool, typer.Option("--stream", help="Print each result while it is written.")] = False,
    as_json: Json = False,
) -> None:
    """The results for inputs, one a line, in their order; of several, line breaks inside a result are shown as \\n."""
    from pathlib import Path

    from saccade.data.source import decoded, lines
    from saccade.store.run import load

    if texts and file is not None:
        raise SaccadeError("give texts or --file, not both")
    if file is not None:
        texts = [*lines(file)]
    elif not texts:
        texts = [line for _, line in decoded(sys.stdin.buffer, Path("stdin"))]
        if not texts:
            raise SaccadeError("stdin is empty: give texts, or --file")
    made = load(run)
    made.task.target  # noqa: B018  refuses a run that says nothing
    if piecewise:
        if as_json:
            raise SaccadeError("--stream prints pieces of text, --json whole results: give one of the two")
        _stream(made, texts, options_of(options))
        return
    for done in range(0, len(texts), PORTION):
        some = texts[done : done + PORTION]
        with waiting(f"{done:,} of {len(texts):,} inputs"):
            results = made.predict([made.task.line(each) for each in some], **options_of(options))
        for text, result in zip(some, results, strict=True):
            _say(text, result, as_json, len(texts) > 1)


def _stream(made: Run, texts: list[str], options: dict[str, Any]) -> None:
    """Each result while it is written; what is wrong with all is told once, before the first."""
    from saccade.task.search import piecewise

    whole = made.decode(**options)
    if lost := [name for name in options if getattr(whole, name) != getattr(piecewise(whole), name)]:
        raise SaccadeError(f"{lost[0]} is of a beam search, whose best is known at the end: leave it out, or --stream")
    for text in texts:
        try:
            for piece in made.stream(made.task.line(text), **options):
                typer.echo(piece, nl=False)
        except SaccadeError as problem:
            if len(texts) == 1:
                raise
            typer.echo(f"{text[:40]!r}: {problem}", err=True)  # one text is wrong: the others are answered
        typer.echo()


def _say(text: str, result: Result, as_json: bool, several: bool) -> None:
    """One result, on one line where there are several: its own line breaks are shown as \\n."""
    if as_json:
        told = {} if result.value in (result.text, None) else {"value": result.value}
        found = {"input": text, "text": result.text, **told, "score": result.score}
        typer.echo(json.dumps(found | ({"note": result.note} if result.note else {}), ensure_ascii=False))
        return
    typer.echo(result.text.replace("\n", "\\n") if several else result.text)
    if result.note:
        typer.echo(f"{text[:40]!r}: {result.note}", err=True)


def _folder(recipe: str, files: list[str]) -> str:
    """Where a run goes unless told: runs/NAME, with the name of own files; a run stays where it is."""
    from pathlib import Path

    from saccade.disk import MANIFEST

    if (Path(recipe) / MANIFEST).is_file():
        return recipe
    names = [Path(recipe).stem, *(Path(each).name.split(".")[0] for each in files[:1])]
    return str(Path("runs", "-".join(names)))
