"""The usual folder of a run, `runs/NAME`: the recipe's name and, with own files, the names of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from saccade.recipe import Recipe


def usual_folder(source: str | Path | Recipe, files: Sequence[str | Path] = ()) -> Path:
    """runs/translate-a-en-de for the recipe translate and the files a.en and a.de."""
    recipe = "run" if isinstance(source, Recipe) else Path(source).stem
    return Path("runs", "-".join([recipe, *_names([Path(each) for each in files])]))


def next_folder(folder: Path) -> Path:
    """A folder beside this one that is not there yet, numbered: runs/a-2."""
    number = 2
    while (found := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return found


def _names(files: Sequence[Path]) -> list[str]:
    """Of one file its stem; of files that share a stem, that and their endings; of others, their whole names. Files of
    one name in several folders are told apart by the folders.
    """
    stems = [each.name.split(".")[0] for each in files]
    endings = [each.name.removesuffix(".gz").split(".")[1:] for each in files]
    if len(files) < 2:
        return stems
    if len({each.name for each in files}) < len(files):
        return [f"{each.absolute().parent.name}-{stem}" for each, stem in zip(files, stems, strict=True)]
    if len(set(stems)) == 1:
        return [stems[0], *("-".join(each) for each in endings if each)]
    return ["-".join([stem, *each]) for stem, each in zip(stems, endings, strict=True)]
