"""The house's own laws: imports go one way, light things stay light, every file says what lives there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1] / "saccade"
FILES = sorted(HOUSE.rglob("*.py"))

# From the ground up: a room imports what stands before it, and files of its own.
ROOMS = [
    "error",
    "disk",
    "heap",
    "number",
    "png",
    "spec",
    "attend",
    "table",
    "config",
    "model",
    "zoo",
    "recipe",
    "recipes",
    "field",
    "data",
    "words",
    "decode",
    "task",
    "look",
    "store",
    "learn",
    "serve",
    "bench",
    "demo",
    "command",
    "cli",
    "__main__",
]


def room(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def test_every_room_has_its_place():
    assert {room(path) for path in FILES} - {"__init__"} == set(ROOMS), "give each room its place in ROOMS"


def test_imports_go_one_way():
    wrong = []
    for path in FILES:
        here = room(path)
        for name in imports(path) if here != "__init__" else ():
            house, _, rest = name.partition(".")
            there = rest.partition(".")[0]
            if house == "saccade" and there in ROOMS[ROOMS.index(here) + 1 :]:
                wrong.append(f"{path.relative_to(HOUSE)} must not import {name}")
    assert wrong == []


def test_attention_needs_torch_alone():
    allowed = {"torch", "saccade", *sys.stdlib_module_names}
    for path in (HOUSE / "attend").glob("*.py"):
        assert {name.split(".")[0] for name in imports(path)} <= allowed


def test_inside_a_room_imports_have_no_circles():
    graph = {f"saccade.{p.relative_to(HOUSE).with_suffix('').as_posix().replace('/', '.')}": imports(p) for p in FILES}
    edges = {
        name: {t for each in found for t in (each, each.rpartition(".")[0]) if t in graph and t != name}
        for name, found in graph.items()
        if name != "saccade.__init__"
    }
    edges.pop("saccade.__init__", None)
    while ready := [name for name, needs in edges.items() if not (needs & edges.keys())]:
        for name in ready:
            del edges[name]
    assert not edges, f"these import each other: {sorted(edges)}"


def test_every_file_opens_with_what_lives_there():
    assert [str(path) for path in FILES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_one_name_is_one_class():
    """A reader who meets a class in two files should be right in thinking that it is the same."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(HOUSE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_walks_of_the_map_pass_files_that_are_there():
    text = (HOUSE.parent / "docs" / "house.md").read_text()
    walks = text[text.index("## Three walks") : text.index("## The laws")]
    named = re.findall(r"[a-z_]+/[a-z_/]+(?:\.py)?", walks)
    assert len(named) > 30
    assert [each for each in named if not (HOUSE / each).exists()] == []


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.proof
def test_import_stays_light():
    heavy = ["torch._dynamo", "torch._inductor", "fastapi", "matplotlib", "transformers", "x_transformers"]
    code = "import sys, saccade; print('torch' in sys.modules)\n"
    code += "for name in saccade.__all__: getattr(saccade, name)\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    assert python(code).split("\n")[:2] == ["False", "[]"]


def test_help_needs_no_torch():
    code = "import sys; sys.argv = ['saccade', '--help']\nfrom saccade.cli import main\n"
    code += "try: main()\nfinally: print('torch' in sys.modules)"
    out = python(code)
    assert "attention models" in out
    assert out.strip().endswith("False")


def test_public_names_are_there():
    import saccade

    for name in saccade.__all__:
        assert name in dir(saccade)
        assert getattr(saccade, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'atention'"):
        _ = saccade.atention
