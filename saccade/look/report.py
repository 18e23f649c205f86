"""A look in words and numbers: as tables in a terminal, and as JSON for a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from saccade.field.text.units import token_text
from saccade.field.unit import Unit
from saccade.look.ablation import Ablation
from saccade.look.chart import filled, smaller
from saccade.look.label import visible
from saccade.look.look import Look
from saccade.look.map import Map
from saccade.look.terminal import heat, shades, widest
from saccade.number import finite

WIDEST = 16  # places of a name in the margin of a terminal
NARROW = 7  # letters that a column with numbers takes at least
TOLD = 20  # answers that a model might have given, at most
LISTED, SHOWN = 40, 12  # rows, and columns of each, that are named
LEAST = 0.02  # the share of a row's largest weight that is named
NUMBERED = 6  # letters of the margin where rows are numbers


def drawn(map: Map, width: int) -> RenderableType:
    """A map for a terminal of so many letters: with numbers where there is room, else as shades."""
    rows, columns = _visible_names(filled(map).rows), _visible_names(map.columns)
    title = Text(visible(map.title), style="bold")
    signed = bool((map.values < 0).any())
    margin = widest(rows) + 2
    if not signed and margin + sum(max(cell_len(name) + 2, NARROW) for name in columns) <= width:
        return Group(title, heat(map.values.nan_to_num(0, 0, 0), rows, [escape(name) for name in columns]))
    small = smaller(map, max(1, (width - margin) // 2))
    values = small.values.nan_to_num(0, 0, 0)
    values = (values / values.abs().max().clamp(min=1e-9) + 1) / 2 if signed else values
    return Group(title, shades(values, _visible_names(small.rows), _even_numbers(_visible_names(small.columns))))


def named(map: Map, width: int) -> RenderableType:
    """A map for a terminal of so many letters, where each row looks at a few columns: the names of these, the largest
    weight first. Of many rows, the first.
    """
    values, lines = filled(map).values.nan_to_num(0, 0, 0), [Text(visible(map.title), style="bold")]
    names, margin = _visible_names(map.columns), widest(_visible_names(map.rows)) + 1
    for name, weights in zip(_visible_names(map.rows)[:LISTED], values[:LISTED], strict=True):
        line = Text(f"{set_cell_size(name, margin)}\u2192")
        best = weights.abs().topk(min(SHOWN, len(weights))).indices.tolist()
        for each in (n for n in best if abs(float(weights[n])) > LEAST * float(weights.abs().max())):
            told = f"  {names[each]} {float(weights[each]):.2f} {bar(float(weights[each].abs()))}"
            if cell_len(line.plain + told) <= width:
                line.append(told)
        lines.append(line)
    if len(map.rows) > LISTED:
        lines.append(Text(f"and {len(map.rows) - LISTED} more: --row NAME shows one of them", style="dim"))
    return Group(*lines)


def bar(share: float) -> str:
    """A weight from 0 to 1 as a bar of at most eight letters."""
    eighths = min(64, round(64 * share))
    whole, rest = divmod(eighths, 8)
    return "\u2588" * whole + (chr(0x2590 - rest) if rest else "")


def roomy(width: int) -> int:
    """How many cells of a numbered map a terminal of so many letters shows side by side."""
    return max(1, (width - NUMBERED) // 2)


def _visible_names(names: list[str]) -> list[str]:
    shown = map(visible, names)
    return [name if cell_len(name) <= WIDEST else set_cell_size(name, WIDEST) for name in shown]


def _even_numbers(names: list[str]) -> list[str]:
    """A cell has room for two letters: of numbers, the even ones are shown, and none that would lose a digit."""
    if not all(name.isdecimal() for name in names):
        return names
    return [name if len(name) <= 2 and int(name) % 2 == 0 else "" for name in names]


def table(look: Look, ablations: Mapping[str, Ablation] | None = None) -> Table:
    """A line for each head: how widely and how far it looks, its badges and, if measured, what silencing it changes."""
    made = Table(box=None)
    for name in ("layer", "head", "entropy", "distance", "badges", *(["silenced"] if ablations else [])):
        made.add_column(name, justify="left" if name in ("layer", "badges") else "right", no_wrap=name == "layer")
    for layer in look.layers:
        for head, found in enumerate(look.statistics(layer.name)):
            away = "" if found.distance is None else f"{found.distance:.1f}"
            change = [f"{ablations[layer.name].heads[head]:+.4f}"] if ablations else []
            line = [layer.name, str(head), f"{found.entropy:.3f}", away, ", ".join(found.badges), *change]
            made.add_row(*map(Text, line))
    return made


def described(look: Look, ablations: Mapping[str, Ablation] | None = None) -> dict[str, Any]:
    """What was read and written, token by token, and the statistics of each head, in JSON's values."""
    about = {"output": look.output, "begun": look.begun, "matters": look.matters, "likely": _likely(look)}
    about |= {} if look.pairs is None else {"pairs": look.layers[-1].columns}
    sides = {name: _side(look, name) for name in look.sides}
    return about | finite(
        {"sides": sides, "layers": [_layer(look, each.name, ablations or {}) for each in look.layers]}
    )


def _likely(look: Look) -> list[tuple[str, float]]:
    """What the model says at once and what else it might have said, the likeliest first, each with its probability; in
    pairs, since many programs sort names that are numbers.
    """
    said = look.answer.said
    chances = said.probabilities if said is not None and isinstance(said.probabilities, dict) else {}
    return list(chances.items())[:TOLD]


def _side(look: Look, name: str) -> dict[str, Any]:
    """The units of a side, those that were predicted with how likely they were and what else was, and what draws it."""
    side = look.sides[name]
    tokens = [_unit(each) for each in side.tokens]
    if look.logprobs and name == _predicted_side(look):
        for token, logprob, top in zip(tokens, look.logprobs, look.top, strict=True):
            if logprob is not None:
                best = [[each, _token_text(look, each), likely] for each, likely in top]
                token |= {"logprob": logprob, "top": best}
    return {**side.shown, "tokens": tokens, "words": side.words, "text": side.text, "kind": side.kind}


def _unit(unit: Unit) -> dict[str, Any]:
    """A unit, with its place where it has one."""
    return {name: value for name, value in unit._asdict().items() if name != "place" or value is not None}


def _predicted_side(look: Look) -> str:
    """The side whose tokens were predicted: what was written or, of a decoder alone, all it read."""
    return "written" if "written" in look.sides else next(iter(look.sides))


def _token_text(look: Look, token: int) -> str:
    """What a token writes; without a vocabulary, its number."""
    return str(token) if look.text is None else token_text(look.text, token)


def _layer(look: Look, name: str, ablations: Mapping[str, Ablation]) -> dict[str, Any]:
    about = look.layer(name)._asdict() | {"heads": [each._asdict() for each in look.statistics(name)]}
    return about | ({"ablation": ablations[name]._asdict()} if name in ablations else {})
