"""`Pair`: what is made of what, as a recipe says it, before anything was read: the kinds of X and Y and their keys.

A verb names the usual pair; a recipe's own [x.NAME] and [y] tables may change the kinds, or write a pair that has no
verb.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from saccade.config import Config, Key, ModelConfig, read
from saccade.config import keys as config_keys
from saccade.data.supply import Supply, check_data, language_of
from saccade.error import SaccadeError, nearest
from saccade.field.kinds import ALONE, SOURCES, TARGETS
from saccade.field.text.config import TextConfig
from saccade.recipe import Recipe
from saccade.recipe import keys as recipe_keys

SHARED = SOURCES["text"].inherited  # of all texts of a run, which have one vocabulary
COMES_ALONG = {key for kind in {*SOURCES.values(), *TARGETS.values()} for key in kind.inherited}


class Verb(NamedTuple):
    """x: the kinds of the inputs by name; y: the name of the output's column, and its kind; what: the same in words;
    asks: what is done with an input.
    """

    x: dict[str, str]
    y: tuple[str, str]
    what: str
    asks: str


class Part(NamedTuple):
    """A column: its kind, and its keys."""

    kind: Any
    config: Config


class Pair(NamedTuple):
    """The inputs by name, and the output by its own."""

    verb: str
    x: dict[str, Part]
    name: str
    y: Part

    @property
    def parts(self) -> dict[str, Part]:
        """All columns in the order of a row."""
        return {**self.x, self.name: self.y}

    @property
    def asks(self) -> str:
        """What is done with an input."""
        return VERBS[self.verb].asks if self.verb in VERBS else "answer"

    @property
    def writes(self) -> bool:
        """Whether Y is written token by token."""
        return bool(self.y.kind.needs == "decoder")

    def supply(self, recipe: Recipe) -> Supply:
        """The rows of a recipe's data."""
        return Supply(recipe, {name: part.kind for name, part in self.parts.items()})

    def check(self, model: ModelConfig) -> None:
        """Refuses a model that has not the stacks that this pair needs."""
        encoder, decoder = bool(self.x), self.writes
        if (bool(model.encoder), bool(model.decoder)) != (encoder, decoder):
            raise SaccadeError(f"{self.verb} needs {STACKS[encoder, decoder]}")


def pair_of(recipe: Recipe) -> Pair:
    """The pair of a recipe, with all keys of its fields; refuses kinds that cannot be paired."""
    try:
        return _paired(recipe)
    except SaccadeError:
        if recipe.task in VERBS:  # data that are for another task explain keys that are
            verb = VERBS[recipe.task]
            kinds = {name: recipe.x.get(name, {}).get("kind", kind) for name, kind in verb.x.items()}
            x = {name: SOURCES[kind] for name, kind in kinds.items() if kind in SOURCES}
            check_data(recipe, {**x, verb.y[0]: (TARGETS if x else ALONE)[verb.y[1]]})
        raise


def _paired(recipe: Recipe) -> Pair:
    verb = VERBS.get(recipe.task)
    if verb is None and not recipe.y:
        raise recipe.wrong("task", f"no task is called {recipe.task!r}; {nearest(recipe.task, VERBS)}")
    usual, (name, kind) = ({}, ("target", "")) if verb is None else (verb.x, verb.y)
    tables = recipe.x or {each: {} for each in usual}
    kinds = {each: str(table.get("kind", usual.get(each, "text"))) for each, table in tables.items()}
    x = {each: _part(recipe, f"x.{each}", table, kinds[each], SOURCES) for each, table in tables.items()}
    if name in x:
        raise recipe.wrong(f"x.{name}", f"[x.{name}] has the name that the output has: give it another")
    y_kind = str(recipe.y.get("kind", kind or "text"))
    if verb is not None and kind != y_kind:
        fitting = [each for each, other in VERBS.items() if other.y[1] == y_kind]
        raise recipe.wrong("y.kind", f"{recipe.task} makes a {kind}, not {y_kind}: {_verbs(fitting)}")
    if bool(usual) != bool(x) and verb is not None:
        check_data(recipe, {**{each: part.kind for each, part in x.items()}, name: TARGETS[kind]})
        raise recipe.wrong("x", f"{recipe.task} makes {verb.what}: leave out [x.{next(iter(x), 'NAME')}]")
    table = {**_inherited(recipe, x, y_kind), **recipe.y}
    y = _part(recipe, "y", table, y_kind, TARGETS if x else ALONE)
    parts = {**{f"x.{each}": part for each, part in x.items()}, "y": y}
    _share(recipe, parts)
    _come_apart(recipe, parts)
    return Pair(recipe.task, x, name, y)


def resolved(recipe: Recipe) -> Recipe:
    """The recipe with all keys of its fields."""
    pair = pair_of(recipe)
    told = {name: part.config.model_dump(exclude_none=True) for name, part in pair.x.items()}
    made = recipe.model_copy(update={"x": told, "y": pair.y.config.model_dump(exclude_none=True)})
    made._origin = recipe._origin
    return made


def along_with(recipe: Recipe, before: Recipe) -> Recipe:
    """The recipe, with what came along with its start told as it was before: the tokenizer of texts, the size of
    pictures.
    """
    known = {str(each.get("kind")): each for each in (before.y, *before.x.values())}

    def told(table: dict[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
        kind = str(table.get("kind"))
        keys = kinds[kind].inherited if kind in known and kind in kinds else ()
        return {**table, **{key: known[kind][key] for key in keys if key in known[kind]}}

    x = {name: told(table, SOURCES) for name, table in recipe.x.items()}
    return recipe.model_copy(update={"x": x, "y": told(recipe.y, TARGETS)})


def keys() -> Iterator[Key]:
    """Every key of a recipe, with those of the fields by the kind they belong to."""
    tables = {"x": {"x.NAME": SOURCES}, "y": {"y": TARGETS, "y (without x)": ALONE}}
    for each in recipe_keys():
        if each.path not in tables:
            yield each
            continue
        for path, kinds in tables[each.path].items():
            for kind, field in kinds.items():
                own = (key for key in config_keys(field.keys) if key.path != "kind")
                yield Key(f"{path}.kind", "text", kind, False, f"{kind}: then these keys")
                yield from (key._replace(path=f"{path}.{key.path}", meaning=f"{kind}: {key.meaning}") for key in own)


def pair_of_model(config: ModelConfig, labelled: bool) -> Pair | None:
    """The pair of a model from elsewhere, by its stacks; None: it names labels and nobody told what they are called."""
    if config.decoder:
        verb = "translate" if config.encoder else "write"
    elif labelled:
        verb = "classify"
    else:
        return None
    known = VERBS[verb]
    unlimited: dict[str, Any] = {"limit": None}
    x = {name: Part(SOURCES[kind], read(SOURCES[kind].keys, unlimited)) for name, kind in known.x.items()}
    target = (TARGETS if x else ALONE)[known.y[1]]
    return Pair(verb, x, known.y[0], Part(target, read(target.keys, {})))


def _part(recipe: Recipe, path: str, table: Mapping[str, Any], kind: str, kinds: Mapping[str, Any]) -> Part:
    """A column by its table; what is wrong with it is told with its path and line."""
    if kind not in kinds:
        role = "X" if kinds is SOURCES else "Y" if kinds is TARGETS else "Y without an X"
        known = nearest(kind, kinds) if kind not in {**SOURCES, **TARGETS} else f"it may be {', '.join(kinds)}"
        raise recipe.wrong(f"{path}.kind", f"{path}.kind = {kind!r} cannot be {role}; {known}")
    keys = kinds[kind].keys
    try:
        return Part(kinds[kind], read(keys, {**table, "kind": kind}))
    except SaccadeError as problem:
        told = str(problem).removeprefix(f"{keys.__name__}: ")
        name = told.split(":")[0].split(" ")[0]
        raise recipe.wrong(f"{path}.{name}", f"{path}.{told}") from None


def _inherited(recipe: Recipe, x: Mapping[str, Part], kind: str) -> dict[str, Any]:
    """What a text as Y has from the texts of X, and the language from the data, unless it says otherwise."""
    if kind != "text":
        return {}
    read_by = next((each.config for each in x.values() if each.kind.kind == kind), None)
    shared = {} if read_by is None else {key: getattr(read_by, key) for key in (*SHARED, "limit")}
    return {**shared, **({"language": language_of(recipe.data)} if x else {})}


def _share(recipe: Recipe, parts: Mapping[str, Part]) -> None:
    """Refuses texts that would need two vocabularies."""
    texts = {path: part.config for path, part in parts.items() if isinstance(part.config, TextConfig)}
    for path, config in texts.items():
        first, one = next(iter(texts.items()))
        for key in SHARED:
            if getattr(config, key) != getattr(one, key):
                told = f"{path}.{key} differs from {first}.{key}: the texts of a run share one vocabulary"
                raise recipe.wrong(f"{path}.{key}", told)


def _come_apart(recipe: Recipe, parts: Mapping[str, Part]) -> None:
    """Refuses to take tokens apart that were never merged; weights to start from bring their own."""
    for path, part in parts.items():
        config: Any = part.config
        if getattr(config, "unmerge", 0) and config.tokenizer != "bpe" and recipe.start is None:
            raise recipe.wrong(
                f"{path}.unmerge",
                f"{path}.unmerge takes sub-words apart: write tokenizer = 'bpe', not {config.tokenizer!r}",
            )


def _verbs(names: list[str]) -> str:
    return f"its task is {' or '.join(names)}" if names else "no task makes that"


STACKS = {
    (True, True): "an encoder and a decoder: give model.encoder and model.decoder a depth",
    (False, True): "a decoder alone: give model.decoder a depth, and no encoder",
    (True, False): "an encoder alone: give model.encoder a depth, and no decoder",
}
VERBS = {
    "translate": Verb({"source": "text"}, ("target", "text"), "a text of a text", "translate"),
    "write": Verb({}, ("text", "text"), "a text of nothing but what was written before", "go on from"),
    "classify": Verb({"source": "text"}, ("label", "label"), "a label of something", "classify"),
    "regress": Verb({"source": "text"}, ("numbers", "numbers"), "numbers of something", "measure"),
}
