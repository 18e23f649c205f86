"""How large a model the data allow: the amount of training data chooses one of a recipe's `sizes`.

Amounts are counted in what the first column's field says: characters of texts, otherwise examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saccade.data.supply import Supply
from saccade.recipe import Recipe, SizeConfig
from saccade.task.pair import Pair, pair_of

Say = Callable[[str], None]
FULL = "full"  # the recipe's own values


class Amount(NamedTuple):
    """So much training data; more: counting ended here, since no size is for so much."""

    total: int
    unit: str
    more: bool

    def __str__(self) -> str:
        return f"{'more than ' if self.more else ''}{self.total:,} {self.unit}"


def by_data(recipe: Recipe, say: Say) -> list[str]:
    """The name of the size for the recipe's training data, then those of the smaller ones; a size that `recipe.size`
    names has no smaller ones beside it. `recipe.at_size` makes a recipe of each.
    """
    if not recipe.sizes:
        return [FULL]
    if recipe.size != "auto":
        say(f"size: {recipe.size}, as asked: {values_of(recipe, recipe.size)}")
        return [recipe.size]
    pair = pair_of(recipe)
    amount = amount_of(pair, pair.supply(recipe), recipe.sizes[-1].up_to)
    every = [*(each.name for each in recipe.sizes), FULL]
    fitting = sum(each.up_to < amount.total or amount.more for each in recipe.sizes)
    others = ", ".join(f"-o size={each}" for each in every if each != every[fitting])
    say(f"size: {every[fitting]}, for {amount}: {values_of(recipe, every[fitting])} (others: {others})")
    return every[fitting::-1]


def amount_of(pair: Pair, supply: Supply, most: int) -> Amount:
    """How much there is to learn from; counting ends once it is more than `most`."""
    kinds = [part.kind for part in pair.parts.values()]
    unit = kinds[0].amount_unit
    counted = [(number, kind) for number, kind in enumerate(kinds) if unit is not None and kind.amount_unit == unit]
    count = 0
    for row in supply.once():
        count += sum(kind.amount(row[number]) for number, kind in counted) if counted else 1
        if count > most:
            return Amount(most, unit or "examples", more=True)
    return Amount(count, unit or "examples", more=False)


def values_of(recipe: Recipe, name: str) -> str:
    """The values that a size has in place of the recipe's own, in words."""
    size = next((each for each in recipe.sizes if each.name == name), None)
    return "the recipe as it stands" if size is None else ", ".join(_values_in(recipe, size))


def _values_in(recipe: Recipe, size: SizeConfig) -> list[str]:
    tables = (
        {"train": size.train} if recipe.start else {**size.x, "y": size.y, "model": size.model, "train": size.train}
    )
    found: dict[str, Any] = {key: value for table in tables.values() for key, value in table.items()}
    return [f"{key} {value}" for key, value in found.items()] or ["the recipe as it stands"]
