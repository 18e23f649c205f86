"""`serve`: opens runs, checks the key and the address, and listens until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from saccade.error import SaccadeError
from saccade.serve.host import LOOPBACK
from saccade.serve.limit import Limits
from saccade.store.load import load
from saccade.store.run import Run

NEEDED = ("fastapi", "uvicorn", "jinja2")
BACKLOG = 1024  # connections that wait to be taken
VARIABLE = "SACCADE_API_KEY"


def serve(
    folders: Iterable[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8017,
    key: str | None = None,
    key_file: str | None = None,
    auth: bool = True,
    limits: Limits | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serves runs (`FOLDER` or `NAME=FOLDER`) until SIGINT or SIGTERM."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SaccadeError(f"the server needs {' and '.join(missing)}: pip install 'saccade[serve]'")
    shown = key_of(key, key_file)
    permit(host, shown, auth)
    from saccade.serve.worker import short_thread

    runs, bounds = short_thread(lambda: open_runs(folders), "saccade-opening"), limits or Limits()
    from saccade.serve.app import application
    from saccade.serve.listen import Listener

    asked = shown if auth else None
    guard, server = short_thread(lambda: application(runs, host=host, key=asked, limits=bounds), "saccade-opening")
    listener = Listener(guard, server, bounds)
    with bound(host, port) as listening:
        # uvicorn handles these signals while it runs. Before that, and when it raises them again at its end, we do.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(listener, "should_exit", True))
        name, number = listening.getsockname()[:2]
        say(f"serving {', '.join(runs)} at http://{f'[{name}]' if ':' in name else name}:{number}")
        listener.run([listening])


def open_runs(folders: Iterable[str]) -> dict[str, Run]:
    """The runs by their names: the folder's, or the one before `=`."""
    found: dict[str, Run] = {}
    for each in folders:
        name, equals, folder = each.partition("=")
        if not equals or Path(each).is_dir():
            name, folder = Path(each).resolve().name, each
        if not name or len(name) > 256 or not name.isprintable():
            raise SaccadeError(f"a run is served as NAME=FOLDER; {each!r} has no name to call it by")
        if name in found:
            raise SaccadeError(f"two runs are called {name!r}: name one of them, as in other={folder}")
        found[name] = load(folder)
    return found


def key_of(key: str | None, file: str | None) -> str | None:
    """The key that clients must show: the one given, the one in a file, or the one in the environment."""
    if key is not None and file is not None:
        raise SaccadeError("give --api-key or --api-key-file, not both")
    if file is not None:
        try:
            key = Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise SaccadeError(f"the key in {file} cannot be read: {problem}") from None
    key = os.environ.get(VARIABLE) if key is None else key
    if key is not None and (not key.isascii() or not key.isprintable() or not key.strip() or " " in key):
        raise SaccadeError("a key has printable ASCII letters and no spaces, and is not empty")
    return key


def permit(host: str, key: str | None, auth: bool) -> None:
    """Refuses to listen where strangers are, unless there is a key or the operator said so."""
    if auth and key is None and host.strip("[]") not in LOOPBACK:
        raise SaccadeError(
            f"{host} can be reached from elsewhere: give a key (--api-key-file, {VARIABLE}), or --no-auth"
        )


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at an address."""
    name = host.strip("[]")
    family: Any = socket.AF_INET6 if ":" in name else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((name, port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as problem:
        made.close()
        raise SaccadeError(f"cannot listen at {host}:{port}: {problem}") from None
    return made
