"""What a machine may lack: tests skip and say so, except in CI, where nothing may be missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from saccade.data.named import DATA, folders

# The named data sets that data are read from, or made of, by name.
NEEDED: dict[str | None, tuple[str, ...]] = {
    **{name: (name,) for name in DATA},
    "fsdd-strings": ("fsdd",),
    "spoken-events": ("fsdd",),
}


def absent(what: str) -> NoReturn:
    """Skips the test, or fails it where SACCADE_CI is set."""
    (pytest.fail if os.environ.get("SACCADE_CI") else pytest.skip)(f"{what} is not on this machine")


def data_set(name: str) -> Path:
    """The folder of a data set, one that is read by name or another beside them; a test without it ends here."""
    folder = (DATA[name].folder if name in DATA else None) or name
    found = next((each / folder for each in folders() if (each / folder).is_dir()), None)
    return found if found is not None else absent(f"the data set {name}")
