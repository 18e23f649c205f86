"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from saccade import __version__
from saccade.command import checking, data, folder, learning, listing, looking, showing, words
from saccade.command.parts import bringing_parts
from saccade.error import SaccadeError, SaccadeWarning

app = typer.Typer(
    name="saccade",
    help="Train, run and look inside attention models: any X to any Y.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # of every command: click hands them down
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
    "data": data.data,
    "look": looking.look,
    "compare": looking.compare,
    "serve": showing.serve,
    "words": words.words_,
    "import": folder.import_,
    "export": folder.export,
    "size": listing.size,
    "check": checking.check,
    "bench": showing.bench,
}
OPENING = (
    "train",
    "evaluate",
    "predict",
    "look",
    "compare",
    "serve",
    "import",
    "export",
    "data",
    "size",
    "check",
)  # runs
for name, command in COMMANDS.items():
    app.command(name)(bringing_parts(command) if name in OPENING else command)


def main() -> None:
    """The entry point: an error that the caller can mend is one sentence on stderr, with exit code 2."""
    codecs.register_error("saccade", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="saccade")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", SaccadeWarning)
            warnings.showwarning = _print_warning
            app()
    except SaccadeError as problem:
        sys.stderr.write(f"saccade: {problem}\n")
        sys.exit(2)
    except (MemoryError, RuntimeError) as problem:
        from saccade.zoo.capacity import out_of_memory

        if not out_of_memory(problem):
            raise
        asked = re.search(r"allocate (\d+) bytes", str(problem))
        reason = f"{int(asked[1]) / 1e9:,.1f} GB at once" if asked else " ".join(str(problem).split()) or "MemoryError"
        sys.stderr.write(f"saccade: there is not enough memory ({reason}): make the model, batch or input smaller\n")
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as problem:  # such as a file that may not be read, or a full disk behind stdout
        name = "" if problem.filename is None else f"{problem.filename}: "
        with suppress(OSError):
            # Otherwise Python would try to flush stdout once more at its exit, and fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"saccade: {name}{problem.strerror or problem}\n")
        sys.exit(2)


def _print_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A warning of our own is one sentence on stderr, as an error is; others are shown as Python shows them."""
    if issubclass(category, SaccadeWarning):
        sys.stderr.write(f"saccade: {message}\n")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def _escaped(problem: UnicodeError) -> tuple[str, int]:
    """Letters that an output cannot hold, as JSON writes them: what is JSON stays JSON."""
    assert isinstance(problem, UnicodeEncodeError)
    return json.dumps(problem.object[problem.start : problem.end])[1:-1], problem.end
