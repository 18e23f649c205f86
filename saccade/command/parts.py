"""`--parts MODULE:NAME`: a user's own scores, masks and mixers on the command line, for every command that opens a run.

Only what the user names is imported, from the working folder first; nothing that a run folder says ever is.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

from saccade import spec
from saccade.command.option import Parts
from saccade.error import SaccadeError, nearest


def bringing_parts(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the option `--parts` beside its own: while it runs, every table knows these parts."""

    @functools.wraps(command)
    def run(*, parts: list[str] | None = None, **given: Any) -> None:
        with spec.knowing(parts_of(parts or [])):
            command(**given)

    # The option parser reads the signature: that of the command, and one parameter more.
    own = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("parts", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Parts)
    made: Any = run
    made.__signature__ = own.replace(parameters=[*own.parameters.values(), option])
    made.__annotations__ = {name: each.annotation for name, each in made.__signature__.parameters.items()}
    return run


def parts_of(given: Sequence[str]) -> dict[str, Any]:
    """The parts by name: `module:score` is called score, `mine=module:score` mine; of a dictionary, all its entries."""
    found: dict[str, Any] = {}
    for each in given:
        for name, part in _imported(each).items():
            if name in found and found[name] is not part:
                raise SaccadeError(f"two parts are called {name!r}: give one another name, as in other={each}")
            found[name] = part
    return found


def _imported(written: str) -> dict[str, Any]:
    called, equals, place = written.rpartition("=")
    module, colon, name = place.partition(":")
    if not colon or not name.isidentifier() or (equals and not called.isidentifier()):
        raise SaccadeError(f"--parts takes MODULE:NAME, or CALLED=MODULE:NAME for another name; got {written!r}")
    if not all(word.isidentifier() for word in module.split(".")):
        raise SaccadeError(f"--parts takes a module's name as Python imports it (mine, folder.mine); got {module!r}")
    made = _module(module)
    if not hasattr(made, name):
        public = [each for each in vars(made) if not each.startswith("_")]
        raise SaccadeError(f"the module {module} has no {name!r}; {nearest(name, public)}")
    part = getattr(made, name)
    if isinstance(part, Mapping) and not equals:
        return {str(key): value for key, value in part.items()}
    return {called or name: part}


def _module(name: str) -> Any:
    with _from_here():
        try:
            return import_module(name)
        except ModuleNotFoundError as problem:
            if problem.name != name and not name.startswith(f"{problem.name}."):
                raise SaccadeError(f"importing {name} failed: {problem}") from None
            raise SaccadeError(f"there is no module {name} in {Path.cwd()}, nor among those installed") from None
        except Exception as problem:  # whatever the user's own code raises
            raise SaccadeError(f"importing {name} failed{_line(problem, name)}: {_told(problem)}") from None


@contextmanager
def _from_here() -> Iterator[None]:
    """Inside, modules are looked for in the working folder first."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)


def _told(problem: Exception) -> str:
    """The type and the first line of an error."""
    return " ".join([f"{type(problem).__name__}:", *str(problem).splitlines()[:1]])


def _line(problem: Exception, name: str) -> str:
    """Where in the user's module an error was raised, where that is known."""
    if isinstance(problem, SyntaxError):
        return f" in line {problem.lineno}"
    trace, lines = problem.__traceback__, []
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == name:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f" in line {lines[-1]}" if lines else ""
