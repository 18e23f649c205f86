"""The smallest trainings: words that are said backwards, and a text for who remembers."""

from __future__ import annotations

import random

from saccade.recipes.read import from_values

MODEL = {"width": 12, "heads": 2, "hidden": 16, "position": "rotary"}
LINES = ["the eye jumps", "to what matters", "and rests there", "", "a while"]
TRAIN = {"steps": 6, "batch": 90, "every": 3, "rate": 1e-2}


def words(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcdefg", k=draw.randint(2, 7))) for _ in range(count)]


def translate(tmp_path, data=None, model=None, train=None, **more):
    files = tmp_path / "a.txt", tmp_path / "b.txt"
    if not files[0].exists():
        files[0].write_text("".join(f"{each}\n" for each in words(120)))
        files[1].write_text("".join(f"{each[::-1]}\n" for each in words(120)))
    values = {
        "task": "translate",
        "data": {"files": list(map(str, files)), "tokenizer": "characters", "vocab": 30, "share": 0.2, **(data or {})},
        "model": {**MODEL, "encoder": 1, "decoder": 1, **(model or {})},
        "train": {**TRAIN, **(train or {})},
        "decode": {"max_tokens": 12},
    }
    return from_values({**values, **more})


def classify(tmp_path, model=None, train=None, **more):
    path = tmp_path / "texts.tsv"
    if not path.exists():
        path.write_text("".join(f"{each}\t{'early' if each[0] < 'd' else 'late'}\n" for each in words(120)))
    values = {
        "task": "classify",
        "data": {"files": [str(path)], "tokenizer": "characters", "vocab": 30, "share": 0.2},
        "model": {**MODEL, "encoder": 1, **(model or {})},
        "train": {**TRAIN, **(train or {})},
    }
    return from_values({**values, **more})


def write(tmp_path, model=None, train=None, data=None, **more):
    path = tmp_path / "text.txt"
    draw = random.Random(5)
    if not path.exists():
        path.write_text("\n".join(draw.choices(LINES, k=40)))
    values = {
        "task": "write",
        "data": {"files": [str(path)], "tokenizer": "characters", "vocab": 60, "share": 0.2, **(data or {})},
        "model": {**MODEL, "decoder": 2, "position": "xl", "memory": 11, **(model or {})},
        "train": {**TRAIN, "length": 7, "batch": 35, "steps": 23, "every": 4, **(train or {})},
        "decode": {"max_tokens": 5},
    }
    return from_values({**values, **more})
