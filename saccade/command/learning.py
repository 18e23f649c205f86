"""`saccade train`, `evaluate` and `predict`: from files to a model, how good it is, and its answers."""

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
    minutes: Annotated[
        float | None, typer.Option(help="What the training may take: fewer steps, and a smaller model if need be.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="So many runs, each from a seed of its own, and the mean of their scores.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(help="Further files after --files A.", show_default=False)] = None,
) -> None:
    """Train a recipe. The same command again goes on where it stopped, exactly as if it had not."""

    from rich.console import Console

    from saccade.command.evaluation import print_seeds
    from saccade.learn.loop import Stopped
    from saccade.learn.seeds import train_seeds
    from saccade.learn.train import train as learn

    given = [*(files or []), *(more or [])]
    if more and files and more[0] in takewhile(lambda word: not word.startswith("--files"), sys.argv):
        raise SaccadeError(f"{more[0]!r} stands before --files: write all files behind it, in their order")
    if more and not files:
        raise SaccadeError(f"train takes one recipe; {more[0]!r} is one word too many (files come after --files)")
    asked: dict[str, Any] = {"files": given, "run": run, "options": options or [], "minutes": minutes}
    try:
        if seeds is not None:
            print_seeds(train_seeds(recipe, seeds, **asked, console=Console(), say=typer.echo))
            return
        done = learn(recipe, **asked, console=Console())
    except Stopped as stopped:
        typer.echo(f"stopped at step {stopped.step}, saved: the same command goes on from there", err=True)
        raise typer.Exit(128 + stopped.number) from None
    typer.echo(f"done: step {done.step}; saccade evaluate {done.path} tells how good it is")


def evaluate(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    split: Annotated[str | None, typer.Option(help="train, val or test; the last there is by default.")] = None,
    file: Annotated[str | None, typer.Option(help="A file of inputs of your own, one a line.")] = None,
    against: Annotated[str | None, typer.Option(help="The references to that file.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="beam=5, max_tokens=80")] = None,
    mask: Annotated[
        str | None,
        typer.Option(help="A mask beside that of the model's own attention: window(1), everybody sees itself alone."),
    ] = None,
    by_context: Annotated[
        bool, typer.Option("--context", help="Also the loss by tokens of context, and how many the model makes use of.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            help="Write inputs, answers and references (.tsv .csv .jsonl), or a confusion matrix (.svg .png)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """How good a run is: the loss and the task's metrics over a whole split, or over a pair of files."""
    from saccade.command.evaluation import print_evaluation
    from saccade.learn.validate import evaluate as measure
    from saccade.store.load import load

    made = load(run) if mask is None else load(run).masked(mask)
    decode = made.decode(**options_of(options))
    if by_context:
        from saccade.learn.reach import reach, reads

        if file is not None:
            raise SaccadeError("--context is measured on a split of the recipe's data: leave out --file and --against")
        reads(made)  # refuses a run without a context before minutes of measuring
    measured = measure(made, split, file=file, against=against, decode=decode, out=out)
    found = {"run": run, **({} if mask is None else {"mask": mask}), **measured}
    if by_context:
        found["context"] = reach(made, split)._asdict()
    if as_json:
        typer.echo(json.dumps(finite(found)))
    else:
        print_evaluation(found)


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
    streamed: Annotated[bool, typer.Option("--stream", help="Print each result while it is written.")] = False,
    as_json: Json = False,
) -> None:
    """The results for inputs, one a line, in their order; of several, line breaks inside a result are shown as \\n."""
    from pathlib import Path

    from saccade.data.source import decoded, lines
    from saccade.store.load import load
    from saccade.task.answer import refusal

    if texts and file is not None:
        raise SaccadeError("give texts or --file, not both")
    if file is not None:
        texts = [*lines(file)]
    elif not texts:
        texts = [line for _, line in decoded(sys.stdin.buffer, Path("stdin"))]
        if not texts:
            raise SaccadeError("stdin is empty: give texts, or --file")
    made = load(run)
    made.task.target  # noqa: B018  refuses a run without an output
    if streamed:
        if as_json:
            raise SaccadeError("--stream prints pieces of text, --json whole results: give one of the two")
        _stream(made, texts, options_of(options))
        return
    for done in range(0, len(texts), PORTION):
        some = texts[done : done + PORTION]
        with waiting(f"{done:,} of {len(texts):,} inputs"):
            results = made.predict([made.task.line(each) for each in some], **options_of(options))
        if len(texts) == 1 and results[0].value is None and results[0].note:
            raise refusal(made.task, results[0].note)
        for text, result in zip(some, results, strict=True):
            _print_result(text, result, as_json, len(texts) > 1)


def _stream(made: Run, texts: list[str], options: dict[str, Any]) -> None:
    """Each result while it is written; an option that does not apply is refused once, before the first."""
    from saccade.task.decode_options import without_beam

    whole = made.decode(**options)
    if lost := [name for name in options if getattr(whole, name) != getattr(without_beam(whole), name)]:
        raise SaccadeError(
            f"{lost[0]} belongs to a beam search, whose best comes at the end: leave it out, or leave out --stream"
        )
    for text in texts:
        try:
            for piece in made.stream(made.task.line(text), **options):
                typer.echo(piece, nl=False)
        except SaccadeError as problem:
            if len(texts) == 1:
                raise
            typer.echo(f"{text[:40]!r}: {problem}", err=True)  # the other texts are still answered
        typer.echo()


def _print_result(text: str, result: Result, as_json: bool, several: bool) -> None:
    """One result, on one line where there are several: its own line breaks are shown as \\n."""
    if as_json:
        typer.echo(json.dumps({"input": text, "text": result.text, **result.described()}, ensure_ascii=False))
        return
    typer.echo(result.text.replace("\n", "\\n") if several else result.text)
    if not several and isinstance(result.probabilities, list):
        for chances in result.probabilities:  # of each blank
            typer.echo("  " + ", ".join(f"{word.strip()} {chance:.4f}" for word, chance in chances.items()))
    if not several and isinstance(result.value, list):
        for each in (each for each in result.value if isinstance(each, dict)):  # of a set, one by one
            typer.echo("  " + "  ".join(map(_plain, each.values())))
    if result.note:
        typer.echo(f"{text[:40]!r}: {result.note}", err=True)


def _plain(value: Any) -> str:
    """A value of a set's element in a line: numbers rounded, a place without brackets."""
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
