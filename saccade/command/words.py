"""`saccade words`: words as vectors."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from saccade.command.option import Json, options_of
from saccade.command.waiting import waiting
from saccade.error import SaccadeError


def words_(
    sources: Annotated[list[str], typer.Argument(help="Texts to train on, a text a line; or a folder to ask.")],
    out: Annotated[str | None, typer.Option(help="The folder to make of what is trained.")] = None,
    kind: Annotated[str | None, typer.Option(help="skipgram, cbow or glove.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="width=100, window=5, epochs=5")] = None,
    near: Annotated[str | None, typer.Option("--nearest", help="A word, for the words most similar to it.")] = None,
    analogy: Annotated[
        tuple[str, str, str] | None, typer.Option(help="man king woman: what is to woman as king is to man?")
    ] = None,
    judged: Annotated[bool, typer.Option("--evaluate", help="Beside people's judgement, and on analogies.")] = False,
    count: Annotated[int, typer.Option("-n", min=1, help="How many words to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Vectors of words: train them on texts, or ask a folder of trained ones."""
    from pathlib import Path

    asked = [name for name, each in (("--nearest", near), ("--analogy", analogy), ("--evaluate", judged)) if each]
    if len(sources) > 1 or not Path(sources[0]).is_dir():
        if asked:
            raise SaccadeError(f"{asked[0]} asks a folder of trained vectors, and {sources[0]!r} is none")
        _train_words(sources, out, {**options_of(options), **({} if kind is None else {"kind": kind})}, as_json)
        return
    if out is not None or kind is not None or options:
        raise SaccadeError("--out, --kind and -o are for training: give files of text, not a folder")
    if len(asked) != 1:
        raise SaccadeError("ask one thing of the folder: --nearest WORD, --analogy A B C, or --evaluate")
    from saccade.words.judge import judge
    from saccade.words.vectors import load

    vectors = load(sources[0])
    if judged:
        with waiting("judging"):
            found = judge(vectors)
        _show_judgement(found, as_json)
        return
    best = vectors.nearest(near, count) if near else vectors.analogy(*(analogy or ("", "", "")), n=count)
    if as_json:
        typer.echo(json.dumps([{"word": word, "similarity": score} for word, score in best], ensure_ascii=False))
        return
    for word, score in best:
        typer.echo(f"{score:7.4f}  {word}")


def _train_words(sources: list[str], out: str | None, settings: dict[str, Any], as_json: bool) -> None:
    """Trains word vectors on files, with a progress line where stderr is a terminal."""
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress

    from saccade.disk import vacant
    from saccade.words import train
    from saccade.words.word_corpus import lines

    if out is None:
        raise SaccadeError("--out is missing: name the folder that the vectors are written to")
    vacant(Path(out))  # refused before the long work begins
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as moving:
        bar = moving.add_task("training", total=1.0)
        made = train(lines(sources), progress=lambda share: moving.update(bar, completed=share), **settings)
    made.save(out)
    found = {"folder": out, "vocab": len(made), "width": made.width, "words": made.about["words"]}
    shown = f"{out}: {len(made):,} words, width {made.width}, of a text of {found['words']:,} words"
    typer.echo(json.dumps(found) if as_json else shown)


def _show_judgement(found: dict[str, Any], as_json: bool) -> None:
    """Rho of each similarity set, and the analogies."""
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, each in found["similarity"].items():
        typer.echo(f"{name:<12} rho {each['rho']:.4f}   {each['known']} of {each['pairs']} pairs known")
    each = found["analogy"]
    typer.echo(f"{'analogies':<12} {each['accuracy']:8.2%}   {each['known']:,} of {each['asked']:,} known")
