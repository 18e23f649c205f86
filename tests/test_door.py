"""The door: outside `field/` and `task/` nobody asks which task or which field it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from saccade.field.kinds import ALONE, SOURCES, TARGETS
from saccade.task.answers.kinds import ANSWERS
from saccade.task.pair import VERBS

HOUSE = Path(__file__).parents[1] / "saccade"
# Rooms that may know: the fields and tasks themselves, recipes of earlier versions, what is measured, and Hugging Face.
KNOWING = ("field/", "task/", "recipes/earlier.py", "bench/", "zoo/")
NAMES = {*VERBS, *ANSWERS, *SOURCES, *TARGETS, *ALONE}
CLASSES = {each.__name__ for table in (ANSWERS, SOURCES, TARGETS, ALONE) for each in table.values()}
ASKED = {"task", "kind", "name", "verb"}  # attributes and names that say which one it is


def branches(tree: ast.AST) -> Iterator[ast.AST]:
    """Comparisons with the name of a task or field, isinstance of their classes, tables of verbs, and matches."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                if any(map(_asks, sides)) and any(_texts(each) & NAMES for each in sides):
                    yield node
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                if set(re.findall(r"\w+", ast.unparse(kinds))) & CLASSES:
                    yield node
            case ast.Dict():
                if len({text for key in node.keys if key is not None for text in _texts(key)} & set(VERBS)) > 1:
                    yield node
            case ast.MatchValue(value=value):
                if _texts(value) & NAMES:
                    yield node
            case ast.MatchClass(cls=kind):
                if ast.unparse(kind).split(".")[-1] in CLASSES:
                    yield node


def _texts(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    return {text for part in getattr(node, "elts", []) for text in _texts(part)}


def _asks(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in ASKED
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=name), *_]):
            return name in ASKED
        case ast.Subscript(slice=ast.Constant(value=name)):
            return name in ASKED
    return False


def test_the_counter_finds_what_it_should():
    code = (
        "if recipe.task == 'write': pass\nif isinstance(field, Label | int): pass\n{'write': 1, 'translate': 2}\n"
        "match kind:\n    case 'text': pass\n    case Label(): pass\nif kind in ('image', 'label'): pass\n"
        "if table.get('kind') == 'text' or table['kind'] == 'label': pass"
    )
    assert len(list(branches(ast.parse(code)))) == 8
    assert not list(branches(ast.parse("if layer.kind == 'cross' or name == 'x': pass\nisinstance(x, str)")))


def test_nobody_outside_asks_which_task_or_field_it_is():
    found = [
        f"{path.relative_to(HOUSE)}:{node.lineno}: {ast.unparse(node)[:80]}"
        for path in sorted(HOUSE.rglob("*.py"))
        if not path.relative_to(HOUSE).as_posix().startswith(KNOWING)
        for node in branches(ast.parse(path.read_text()))
    ]
    assert found == []


def test_nor_does_the_page():
    asked = re.compile(rf"""(===|!==|case)\s*["']({"|".join(VERBS)})["']""")
    pages = (HOUSE / "serve" / "page").glob("*.js")
    found = [
        f"{path.name}: {line.strip()}" for path in pages for line in path.read_text().splitlines() if asked.search(line)
    ]
    assert found == []
