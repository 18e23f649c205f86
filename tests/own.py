"""Files of one's own for every built-in recipe that takes some, as its command names them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from saccade import png
from saccade import recipe as recipes


def own_files(name: str, folder: Path) -> list[str]:
    """Files of one's own, as the recipe's command names them; none where its data have a name."""
    if recipes.recipe(name).data.name is not None:
        return []
    draw = random.Random(0)
    lines = [
        " ".join(draw.choices(("eyes", "jump", "to", "what", "matters", "most"), k=draw.randint(2, 7)))
        for _ in range(80)
    ]
    written = {
        "a.en": "\n".join(lines),
        "a.de": "\n".join(line[::-1] for line in lines),
        "text.txt": "\n".join(lines * 5),
        "texts.tsv": "\n".join(f"{line}\t{'long' if len(line) > 20 else 'short'}" for line in lines),
        "table.csv": "\n".join(f"{line},{len(line)}" for line in lines),
    }
    wanted = recipes.header(name)["command"].partition("--files ")[2].split()
    for each in wanted:
        if each in written:
            (folder / each).write_text(written[each] + "\n")
        else:
            OTHERS[each](folder)
    return [str(folder / each) for each in wanted]


def photos(folder: Path) -> None:
    """Pictures by class: bright above, or bright below."""
    draw = np.random.default_rng(0)
    for number in range(60):
        pixels = draw.integers(0, 128, (20, 16, 3)).astype(np.uint8)
        name = ("above", "below")[number % 2]
        pixels[10 * (number % 2) :][:10] += 127
        (folder / "photos" / name).mkdir(parents=True, exist_ok=True)
        (folder / "photos" / name / f"{number}.png").write_bytes(png.encode(pixels))


def pictures(folder: Path) -> None:
    """A table that names pictures, each with its mean and how much brighter it is above than below."""
    draw = np.random.default_rng(0)
    lines = []
    for number in range(60):
        pixels = draw.integers(0, 200, (16, 16, 1)).astype(np.uint8)
        pixels[: draw.integers(16)] += 50
        above = pixels[:8].mean() - pixels[8:].mean()
        (folder / f"{number}.png").write_bytes(png.encode(pixels))
        lines.append(f"{number}.png,{pixels.mean():.3f},{above:.3f}")
    (folder / "pictures.csv").write_text("\n".join(lines) + "\n")


OTHERS = {"photos": photos, "pictures.csv": pictures}
