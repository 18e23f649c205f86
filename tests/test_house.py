"""The house's own laws: imports go one way, light things stay light, every file says what lives there."""

from __future__ import annotations

import ast
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
    "memory",
    "number",
    "png",
    "spec",
    "attend",
    "table",
    "config",
    "model",
    "zoo",
    "recipes",
    "recipe",
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


@pytest.mark.parametrize("path", [p for p in FILES if p.parent != HOUSE or p.name != "__init__.py"], ids=str)
def test_imports_go_one_way(path):
    here = room(path)
    assert here in ROOMS, f"give the room {here} its place in ROOMS"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "saccade" and len(parts) > 1 and parts[1] in ROOMS:
            assert ROOMS.index(parts[1]) <= ROOMS.index(here), f"{here} must not import {name}"


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


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_says_what_lives_there(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a file opens with what lives there"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} says nothing of itself"


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


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
