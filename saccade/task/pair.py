"""`Pair`: what is made of what, as a recipe says it, before any data is read: the kinds of X and Y and their keys.

A verb names the usual pair; a recipe's own [x.NAME] and [y] tables may change the kinds, or write a pair that has no
verb.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from saccade.config import Config, Key, ModelConfig, read
from saccade.config import keys as config_keys
from saccade.data.supply import Supply, check_data, language_of
from saccade.error import SaccadeError, nearest
from saccade.field.kinds import ALONE, SOURCES, TARGETS
from saccade.field.label import LABELS
from saccade.field.text.blanks import Blanks
from saccade.field.text.config import TextConfig
from saccade.recipe import Origin, Recipe, SizeConfig
from saccade.recipe import keys as recipe_keys

SHARED = SOURCES["text"].inherited  # the same for all texts of a run, which have one vocabulary
COMES_ALONG = {key for kind in {*SOURCES.values(), *TARGETS.values()} for key in kind.inherited}


class Verb(NamedTuple):
    """x: the kinds of the inputs by name; y: the name of the output's column, and its kind; what: the pair in words;
    asks: the verb that errors use for an input ("there is nothing to translate"); others: kinds that the output may
    have too, if a recipe says so.
    """

    x: dict[str, str]
    y: tuple[str, str]
    what: str
    asks: str
    others: tuple[str, ...] = ()


class Part(NamedTuple):
    """A column: its kind (a class of field), and the values of its keys."""

    kind: Any
    config: Config


class Pair(NamedTuple):
    """The inputs by name, and the output with its name."""

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
        """The verb that errors use for an input."""
        return VERBS[self.verb].asks if self.verb in VERBS else OTHER_VERBS.get(self.verb, "answer")

    @property
    def writes(self) -> bool:
        """Whether Y is written token by token."""
        return bool(self.y.kind.needs == "decoder")

    def supply(self, recipe: Recipe) -> Supply:
        return Supply(recipe, {name: part.kind for name, part in self.parts.items()})

    def check(self, model: ModelConfig, start: str | None = None) -> None:
        """Refuses a model without the stacks that this pair needs, or with others. start: where it was found."""
        needed = bool(self.x), self.y.kind.needs in DECODED
        found = bool(model.encoder), bool(model.decoder)
        if found in (needed, ALSO.get(self.y.kind.needs)):
            return
        if start is not None:
            raise SaccadeError(
                f"{self.verb} needs {STACKS[needed]}, and {start} holds {STACKS[found]}: start from another model, or "
                "begin anew (leave out start)"
            )
        raise SaccadeError(f"{self.verb} needs {STACKS[needed]}: {DEPTHS[needed]}")


def pair_of(recipe: Recipe) -> Pair:
    """The pair of a recipe, with all keys of its fields; refuses kinds that cannot be paired."""
    try:
        return _paired(recipe)
    except SaccadeError:
        # Keys of another task often come with data of that task, and an error about the data says more.
        if recipe.task in VERBS:
            verb = VERBS[recipe.task]
            names = (recipe.x or verb.x) if verb.x else ()
            kinds = {name: recipe.x.get(name, {}).get("kind", verb.x.get(name, "text")) for name in names}
            x = {name: SOURCES[kind] for name, kind in kinds.items() if kind in SOURCES}
            y = recipe.y.get("kind")
            y = y if y in verb.others else verb.y[1]
            check_data(recipe, {**x, verb.y[0]: (TARGETS if x else ALONE)[y]})
        raise


def _paired(recipe: Recipe) -> Pair:
    verb = VERBS.get(recipe.task)
    if verb is None and not recipe.y:
        raise recipe.wrong("task", f"no task is called {recipe.task!r}; {nearest(recipe.task, VERBS)}")
    usual, (name, kind) = ({}, ("target", "")) if verb is None else (verb.x, verb.y)
    tables = recipe.x or {each: {} for each in usual}
    kinds = {each: str(table.get("kind", usual.get(each, "text"))) for each, table in tables.items()}
    x = {each: _read_part(recipe, f"x.{each}", table, kinds[each], SOURCES) for each, table in tables.items()}
    if name in x:
        raise recipe.wrong(f"x.{name}", f"[x.{name}] has the name that the output has: give it another")
    y_kind = str(recipe.y.get("kind", kind or "text"))
    if verb is not None and y_kind not in (kind, *verb.others):
        fitting = [each for each, other in VERBS.items() if y_kind in (other.y[1], *other.others)]
        raise recipe.wrong("y.kind", f"{recipe.task} makes a {kind}, not {y_kind}: {_verbs_advice(fitting)}")
    if bool(usual) != bool(x) and verb is not None:
        check_data(recipe, {**{each: part.kind for each, part in x.items()}, name: TARGETS[kind]})
        raise recipe.wrong("x", f"{recipe.task} makes {verb.what}: leave out [x.{next(iter(x), 'NAME')}]")
    table = {**_inherited(recipe, x, y_kind), **recipe.y}
    y = _read_part(recipe, "y", table, y_kind, TARGETS if x else ALONE)
    parts = {**{f"x.{each}": part for each, part in x.items()}, "y": y}
    _check_vocabulary(recipe, parts)
    _check_unmerge(recipe, parts)
    return Pair(recipe.task, x, name, y)


def resolved(recipe: Recipe) -> Recipe:
    """The recipe with all keys of its fields, defaults included; its sizes with all that follows from their keys."""
    pair = pair_of(recipe)
    x = {name: part.config.model_dump(exclude_none=True) for name, part in pair.x.items()}
    made = recipe.model_copy(update={"x": x, "y": pair.y.config.model_dump(exclude_none=True)})
    sizes = [_resolved_size(recipe, made, number) for number in range(len(recipe.sizes))]
    made = made.model_copy(update={"sizes": sizes})
    made._origin, made._refused = recipe._origin, recipe._refused
    return made


def _resolved_size(recipe: Recipe, base: Recipe, number: int) -> SizeConfig:
    """A size whose [x.NAME] and [y] have every key in which the fields differ with it: a vocabulary of X is that of Y,
    too. base: the recipe without it, resolved.
    """
    size, path = recipe.sizes[number], f"sizes.{number}"
    for name in size.x.keys() - base.x.keys():
        raise recipe.wrong(path, f"{path}.x.{name}: no input has this name; {nearest(name, base.x)}")
    x = {name: {**recipe.x.get(name, {}), **size.x.get(name, {})} for name in base.x}
    whole = recipe.model_copy(update={"x": x, "y": {**recipe.y, **size.y}, "sizes": []})
    whole._origin = Origin(f"{recipe.wrong(path, path)}", "")
    whole = resolved(whole)
    differing = {name: _differing(table, base.x[name]) for name, table in whole.x.items()}
    return size.model_copy(update={"x": differing, "y": _differing(whole.y, base.y)})


def _differing(table: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in base or base[key] != value}


def along_with(recipe: Recipe, before: Iterable[Mapping[str, Any]]) -> Recipe:
    """The recipe with the values that came with the weights it starts from, in place of its own: the tokenizer of
    texts, the size of pictures. before: the tables of the fields that those weights belong to.
    """
    earlier = {str(each.get("kind")): each for each in before}

    def inheriting(table: dict[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
        kind = str(table.get("kind"))
        keys = kinds[kind].inherited if kind in earlier and kind in kinds else ()
        return {**table, **{key: earlier[kind][key] for key in keys if key in earlier[kind]}}

    x = {name: inheriting(table, SOURCES) for name, table in recipe.x.items()}
    return recipe.model_copy(update={"x": x, "y": inheriting(recipe.y, TARGETS)})


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


def part_of_model(config: ModelConfig, files: Mapping[str, bytes]) -> Part:
    """What a model from elsewhere reads, by the files that came along: text, where they say nothing else."""
    kinds = [each for each in SOURCES.values() if each.stored("source") in files]
    kind = kinds[0] if kinds else SOURCES["text"]
    return Part(kind, read(kind.keys, kind.keys_of(config, files)))


def tables_of_model(config: ModelConfig, files: Mapping[str, bytes]) -> list[Mapping[str, Any]]:
    """The tables of the fields of a model from elsewhere, as far as it and the files that came along say them."""
    found = [(each.kind, each.keys_of(config, files)) for each in TARGETS.values()]
    source = part_of_model(config, files).kind
    told = [{"kind": kind, **keys} for kind, keys in found if keys]
    return [*told, {"kind": source.kind, **source.keys_of(config, files)}]


def files_of_model(config: ModelConfig, options: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of fields that a Hugging Face folder tells in other words."""
    kinds = [(each.stored("source"), each) for each in SOURCES.values()]
    kinds += [(TARGETS[verb.y[1]].stored(verb.y[0]), TARGETS[verb.y[1]]) for verb in VERBS.values() if verb.x]
    found = {name: each.brought(config, options, files) for name, each in kinds}
    return {name: content for name, content in found.items() if content is not None}


def pair_of_model(config: ModelConfig, files: Mapping[str, bytes], blanks: bool, source: Part) -> Pair | None:
    """The pair of a model from elsewhere that reads `source`, by its files and stacks; None: an encoder alone, whose
    labels have no names. blanks: whether its tokenizer can write a blank, which a head of masked tokens then fills.
    """
    for name, known in VERBS.items():
        kind = TARGETS[known.y[1]]
        keys = kind.keys_of(config, files) if known.x and kind.stored(known.y[0]) in files else {}
        if keys:
            return Pair(name, dict.fromkeys(known.x, source), known.y[0], Part(kind, read(kind.keys, keys)))
    labelled = LABELS in files
    if labelled and (not config.decoder or "label" in (config.head or "")):
        verb = "classify"
    elif config.decoder:
        verb = "translate" if config.encoder else "write"
    elif blanks and config.head in FILLING:
        return _filling()
    else:
        return None
    known = VERBS[verb]
    x = dict.fromkeys(known.x, source)
    target = (TARGETS if x else ALONE)[known.y[1]]
    return Pair(verb, x, known.y[0], Part(target, read(target.keys, {})))


def _filling() -> Pair:
    """A text with blanks to the same text without. No recipe has this pair: such models come from elsewhere."""
    source = SOURCES["text"]
    return Pair(
        "fill",
        {"source": Part(source, read(source.keys, {"limit": None}))},
        "text",
        Part(Blanks, read(Blanks.keys, {})),
    )


def _read_part(recipe: Recipe, path: str, table: Mapping[str, Any], kind: str, kinds: Mapping[str, Any]) -> Part:
    """A column from its table; an error names its path and line. kinds: SOURCES, TARGETS or ALONE."""
    if kind not in kinds:
        role = next(name for name, table_of_role in ROLES if table_of_role is kinds)
        advice = f"it may be {', '.join(kinds)}" if kind in {**SOURCES, **TARGETS} else nearest(kind, kinds)
        raise recipe.wrong(f"{path}.kind", f"{path}.kind = {kind!r} cannot be {role}; {advice}")
    keys = kinds[kind].keys
    try:
        return Part(kinds[kind], read(keys, {**table, "kind": kind}))
    except SaccadeError as problem:
        message = str(problem).removeprefix(f"{keys.__name__}: ")
        name = message.split(":")[0].split(" ")[0]
        raise recipe.wrong(f"{path}.{name}", f"{path}.{message}") from None


def _inherited(recipe: Recipe, x: Mapping[str, Part], kind: str) -> dict[str, Any]:
    """Defaults of a text as Y: vocabulary and limit are those of the first text of X, the language that of the data."""
    if kind != "text":
        return {}
    source = next((each.config for each in x.values() if each.kind.kind == kind), None)
    shared = {} if source is None else {key: getattr(source, key) for key in (*SHARED, "limit")}
    return {**shared, **({"language": language_of(recipe.data)} if x else {})}


def _check_vocabulary(recipe: Recipe, parts: Mapping[str, Part]) -> None:
    """Refuses texts that would need two vocabularies."""
    texts = {path: part.config for path, part in parts.items() if isinstance(part.config, TextConfig)}
    for path, config in texts.items():
        first, one = next(iter(texts.items()))
        for key in SHARED:
            if getattr(config, key) != getattr(one, key):
                problem = f"{path}.{key} differs from {first}.{key}: the texts of a run share one vocabulary"
                raise recipe.wrong(f"{path}.{key}", problem)


def _check_unmerge(recipe: Recipe, parts: Mapping[str, Part]) -> None:
    """Refuses `unmerge` with a tokenizer that merges nothing; with a start, the tokenizer comes from there."""
    for path, part in parts.items():
        config: Any = part.config
        if getattr(config, "unmerge", 0) and config.tokenizer != "bpe" and recipe.start is None:
            raise recipe.wrong(
                f"{path}.unmerge",
                f"{path}.unmerge takes sub-words apart: write tokenizer = 'bpe', not {config.tokenizer!r}",
            )


def _verbs_advice(names: list[str]) -> str:
    return f"its task is {' or '.join(names)}" if names else "no task makes that"


ROLES = (("X", SOURCES), ("Y", TARGETS), ("Y without an X", ALONE))  # how an error names what a column may be
STACKS = {  # by whether there is an encoder, and whether there is a decoder
    (True, True): "an encoder and a decoder",
    (False, True): "a decoder alone",
    (True, False): "an encoder alone",
}
DEPTHS = {  # how to get them
    (True, True): "give model.encoder and model.decoder a depth",
    (False, True): "give model.decoder a depth, and no encoder",
    (True, False): "give model.encoder a depth, and no decoder",
}
DECODED = ("decoder", "queries")  # states that a decoder makes
ALSO = {"queries": (True, False)}  # other stacks that make them: an encoder, whose registers are queries
FILLING = ("masked", "pretraining")  # heads that tell which token is masked
OTHER_VERBS = {"fill": "fill"}  # verbs that no recipe has
VERBS = {
    "translate": Verb({"source": "text"}, ("target", "text"), "a text of a text", "translate"),
    "transcribe": Verb({"source": "sound"}, ("target", "text"), "a text of a sound", "transcribe"),
    "write": Verb({}, ("text", "text"), "a text of nothing but what was written before", "go on from"),
    "caption": Verb({"source": "image"}, ("target", "text"), "a text of a picture", "caption"),
    "classify": Verb({"source": "text"}, ("label", "label"), "a label of something", "classify", ("labels",)),
    "read": Verb({"source": "image"}, ("target", "text"), "the text of a picture", "read"),
    "answer": Verb(
        {"picture": "image", "question": "text"}, ("answer", "label"), "an answer to a question", "answer", ("text",)
    ),
    "detect": Verb({"source": "image"}, ("found", "boxes"), "what is there, and where", "inspect", ("events",)),
    "cluster": Verb({"source": "points"}, ("mixture", "mixture"), "a mixture of points", "cluster"),
    "foretell": Verb({"source": "tracks"}, ("future", "tracks"), "the futures of tracks", "foretell"),
    "regress": Verb({"source": "text"}, ("numbers", "numbers"), "numbers of something", "measure", ("pairs",)),
}
