"""The recipe for a user's own files: the one that was asked for, or the one of the same task that reads such files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from saccade.data.reader import takes, told
from saccade.recipe import Recipe
from saccade.recipes import read as recipes
from saccade.recipes.read import option_of
from saccade.task.pair import pair_of

Say = Callable[[str], None]


def fitting(source: str | Path | Recipe, files: Sequence[str], options: Iterable[str], say: Say) -> str | Path | Recipe:
    """`classify-images` for `classify` and a folder of pictures, and `say` tells so. A recipe that is no built-in one,
    options that name a kind, and files that no other recipe of the task reads leave it as it is.
    """
    options = list(options)
    if not files or source not in recipes.names() or any(option_of(each)[0].endswith(".kind") for each in options):
        return source
    asked = recipes.recipe(source)  # without the options, which may be keys of the other kind
    kinds = {name: part.kind for name, part in pair_of(asked).parts.items()}
    what, held = told(files, kinds)
    if not held or any(takes(kinds, each) for each in held):
        return source
    others = [name for each in held for name in recipes.for_files(each) if recipes.recipe(name).task == asked.task]
    if not others:
        return source
    say(f"{', '.join(files)}: this is {what}, so the recipe is {others[0]}")
    return others[0]
