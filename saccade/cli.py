"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from saccade import __version__
from saccade.command import folder, learning, listing, looking, showing, words
from saccade.error import SaccadeError

app = typer.Typer(
    name="saccade",
    help="Train, run and look inside attention models: any X to any Y.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": showing.demo,
    "list": listing.list_,
    "train": learning.train,
    "evaluate": learning.evaluate,
    "predict": learning.predict,
    "look": looking.look,
    "compare": looking.compare,
    "serve": showing.serve,
    "words": words.words_,
    "import": folder.import_,
    "export": folder.export,
    "size": listing.size,
    "bench": showing.bench,
}
for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> None:
    """The entry point: what the caller can mend is told in one sentence, with exit code 2."""
    codecs.register_error("saccade", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="saccade")
    try:
        app()
    except SaccadeError as problem:
        sys.stderr.write(f"saccade: {problem}\n")
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as problem:  # the disk's or the system's word: no right to read, no room for what is printed
        name = "" if problem.filename is None else f"{problem.filename}: "
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to print has no place
        sys.stderr.write(f"saccade: {name}{problem.strerror or problem}\n")
        sys.exit(2)


def _escaped(problem: UnicodeError) -> tuple[str, int]:
    """Letters that an output cannot hold, as JSON writes them: what is JSON stays JSON."""
    assert isinstance(problem, UnicodeEncodeError)
    return json.dumps(problem.object[problem.start : problem.end])[1:-1], problem.end
