"""Files of one's own for every built-in recipe that takes some, as its command names them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from saccade import png
from saccade.data import lines as drawn_lines
from saccade.field.recording import Recording
from saccade.recipe import LinesConfig
from saccade.recipes import read as recipes


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


def tone(draw: np.random.Generator, hertz: float) -> bytes:
    """A short tone of about this height, as a wav file."""
    time = np.arange(draw.integers(900, 2400)) / 8000
    return Recording((6000 * np.sin(2 * np.pi * hertz * draw.uniform(0.9, 1.1) * time)).astype(np.int16), 8000).wav()


def sounds(folder: Path) -> None:
    """Sounds by class: low, or high."""
    draw = np.random.default_rng(0)
    for number in range(60):
        name = ("low", "high")[number % 2]
        (folder / "sounds" / name).mkdir(parents=True, exist_ok=True)
        (folder / "sounds" / name / f"{number}.wav").write_bytes(tone(draw, (300, 1500)[number % 2]))


def recordings(folder: Path) -> None:
    """A table that names sounds, each with the word for how high it is."""
    draw = np.random.default_rng(0)
    lines = []
    for number in range(80):
        (folder / f"{number}.wav").write_bytes(tone(draw, (300, 900, 2100)[number % 3]))
        lines.append(f"{number}.wav,{('low', 'middle', 'high')[number % 3]}")
    (folder / "recordings.csv").write_text("\n".join(lines) + "\n")


def lines(folder: Path) -> None:
    """A table that names pictures of lines, each as wide as its text, with what they say."""
    config, rows = LinesConfig(), []
    for number in range(60):
        picture, text = drawn_lines.example(number, config)
        (folder / f"{number}.png").write_bytes(png.encode(np.asarray(picture)[:, : 60 + number, None]))
        rows.append(f"{number}.png,{text}")
    (folder / "lines.csv").write_text("\n".join(rows) + "\n")


def captions(folder: Path) -> None:
    """A table that names pictures, each with a text that says where it is bright."""
    draw = np.random.default_rng(0)
    lines = []
    for number in range(60):
        pixels = draw.integers(0, 128, (16, 16, 3)).astype(np.uint8)
        down, right = draw.integers(2, size=2).tolist()
        pixels[8 * down :, 8 * right :][:8, :8] += 127
        (folder / f"{number}.png").write_bytes(png.encode(pixels))
        lines.append(f"{number}.png\tit is bright {('above', 'below')[down]}, {('left', 'right')[right]}")
    (folder / "captions.tsv").write_text("\n".join(lines) + "\n")


def questions(folder: Path) -> None:
    """A table that names pictures, each with two questions and their answers."""
    draw = np.random.default_rng(0)
    lines = []
    for number in range(40):
        pixels = draw.integers(0, 60, (16, 16, 3)).astype(np.uint8)
        colour, half = int(draw.integers(3)), int(draw.integers(2))
        pixels[8 * half :][:8, :, colour] += 180
        (folder / f"q{number}.png").write_bytes(png.encode(pixels))
        lines.append(f"q{number}.png,what colour is it?,{('red', 'green', 'blue')[colour]}")
        lines.append(f"q{number}.png,where is it?,{('above', 'below')[half]}")
    (folder / "questions.csv").write_text("\n".join(lines) + "\n")


def graph(folder: Path) -> None:
    """A ring of nodes of two classes by turns, nine in ten of them known."""
    draw = np.random.default_rng(0)
    nodes = [[float(draw.normal(number % 2)), float(draw.normal())] for number in range(60)]
    edges = [[number, (number + 2) % 60] for number in range(60)] + draw.integers(0, 60, (10, 2)).tolist()
    labels = [("odd", "even")[number % 2] if number % 10 else None for number in range(60)]
    (folder / "graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges, "labels": labels}))


def tracks(folder: Path) -> None:
    """Agents that walk to and fro past each other for 300 frames, some of them for a while."""
    draw = np.random.default_rng(0)
    rows = ["frame,agent,x,y"]
    for agent in range(9):
        at, speed = draw.normal(0, 3, 2), draw.normal(0, 0.4, 2)
        for frame in range(agent, 300 - 2 * agent):
            speed = speed + draw.normal(0, 0.03, 2) - 0.01 * at
            at = at + speed
            rows.append(f"{10 * frame},{agent},{at[0]:.3f},{at[1]:.3f}")
    (folder / "tracks.csv").write_text("\n".join(rows) + "\n")


def graphs(folder: Path) -> None:
    """Graphs by class: a ring, or a star."""
    draw = np.random.default_rng(0)
    for number in range(60):
        name, count = ("ring", "star")[number % 2], int(draw.integers(4, 9))
        edges = [[each, (each + 1) % count] if name == "ring" else [0, each] for each in range(count)]
        nodes = draw.normal(size=(count, 2)).tolist()
        (folder / "graphs" / name).mkdir(parents=True, exist_ok=True)
        (folder / "graphs" / name / f"{number}.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))


OTHERS = {
    "captions.tsv": captions,
    "graph.json": graph,
    "graphs": graphs,
    "lines.csv": lines,
    "photos": photos,
    "pictures.csv": pictures,
    "questions.csv": questions,
    "recordings.csv": recordings,
    "sounds": sounds,
    "tracks.csv": tracks,
}
