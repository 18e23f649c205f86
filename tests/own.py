"""Files of one's own for every built-in recipe that takes some, as its command names them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from saccade import png
from saccade.data import lines as drawn_lines
from saccade.data import scenes as drawn_scenes
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


def beeps(draw: np.random.Generator) -> tuple[Recording, list[tuple[str, float, float]]]:
    """A second and a half of noise, with up to two beeps in it: their labels, begins and ends."""
    samples, found = 200 * draw.standard_normal(12_000), []
    for slot in range(int(draw.integers(0, 3))):
        label, begin = ("low", "high")[int(draw.integers(2))], 0.7 * slot + draw.uniform(0, 0.3)
        end = begin + draw.uniform(0.2, 0.4)
        time = np.arange(int(8000 * begin), int(8000 * end)) / 8000
        samples[int(8000 * begin) :][: len(time)] += 5000 * np.sin(2 * np.pi * {"low": 300, "high": 1500}[label] * time)
        found.append((label, round(begin, 3), round(end, 3)))
    return Recording(samples.astype(np.int16), 8000), found


def events(folder: Path) -> None:
    """A table of beeps: a row for each, or one for a sound without any."""
    draw, lines = np.random.default_rng(0), ["file,label,begin,end"]
    for number in range(60):
        recording, found = beeps(draw)
        (folder / f"beeps{number}.wav").write_bytes(recording.wav())
        lines += [f"beeps{number}.wav,{label},{begin},{end}" for label, begin, end in found]
        lines += [] if found else [f"beeps{number}.wav,,,"]
    (folder / "events.csv").write_text("\n".join(lines) + "\n")


def spoken(folder: Path) -> None:
    """A folder of beeps with Audacity's labels beside them."""
    draw = np.random.default_rng(0)
    (folder / "spoken").mkdir(parents=True, exist_ok=True)
    for number in range(60):
        recording, found = beeps(draw)
        (folder / "spoken" / f"{number}.wav").write_bytes(recording.wav())
        text = "".join(f"{begin}\t{end}\t{label}\n" for label, begin, end in found)
        (folder / "spoken" / f"{number}.txt").write_text(text)


def scenes(folder: Path) -> None:
    """Points in space with boxes around some, a line for each set."""
    lines = []
    for number in range(60):
        points, found = drawn_scenes.example(number)
        boxes = [
            {"label": label, "corners": [round(each, 3) for each in corners]}
            for label, corners in zip(found.labels, found.corners.tolist(), strict=True)
        ]
        held = {"points": points.round(3).tolist(), "boxes": boxes, "frame": found.frame.tolist()}
        lines.append(json.dumps(held))
    (folder / "scenes.jsonl").write_text("\n".join(lines) + "\n")


def marked(folder: Path) -> list[tuple[str, list[tuple[str, int, int, int, int]]]]:
    """Pictures of 40 x 32 with one or two light rectangles, wide or tall: their names, and label, left, top, right and
    bottom of each. The last has none.
    """
    draw, found = np.random.default_rng(0), []
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(40):
        pixels, boxes = draw.integers(0, 100, (32, 40, 3)).astype(np.uint8), []
        for half in range(int(draw.integers(1, 3)) if number < 39 else 0):
            wide = bool(draw.integers(2))
            width, height = draw.integers((11, 4) if wide else (4, 11), (18, 8) if wide else (8, 18)).tolist()
            left, top = 20 * half + int(draw.integers(20 - width)), int(draw.integers(32 - height))
            pixels[top : top + height, left : left + width] += 150
            boxes.append(("wide" if wide else "tall", left, top, left + width, top + height))
        (folder / f"{number:02}.png").write_bytes(png.encode(pixels))
        found.append((f"{number:02}.png", boxes))
    return found


def box_json(folder: Path) -> None:
    """COCO's form, with the pictures in a folder `images` beside it."""
    images, annotations = [], []
    for number, (name, boxes) in enumerate(marked(folder / "images")):
        images.append({"id": number, "file_name": name, "width": 40, "height": 32})
        for label, left, top, right, bottom in boxes:
            mark = {"id": len(annotations), "image_id": number, "category_id": 1 + (label == "tall")}
            annotations.append({**mark, "bbox": [left, top, right - left, bottom - top], "iscrowd": 0})
    categories = [{"id": 1, "name": "wide"}, {"id": 2, "name": "tall"}]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "boxes.json").write_text(json.dumps(whole))


def voc(folder: Path) -> None:
    """Pascal VOC's form, with lists of the pictures of three splits."""
    root = folder / "voc"
    for name in ("Annotations", "ImageSets/Main"):
        (root / name).mkdir(parents=True, exist_ok=True)
    pictures = marked(root / "JPEGImages")
    for name, boxes in pictures:
        things = "".join(
            f"<object><name>{label}</name><bndbox><xmin>{left + 1}</xmin><ymin>{top + 1}</ymin>"
            f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>\n"
            for label, left, top, right, bottom in boxes
        )
        size = "<size><width>40</width><height>32</height><depth>3</depth></size>"
        whole = f"<annotation>\n<filename>{name}</filename>{size}\n{things}</annotation>\n"
        (root / "Annotations" / f"{Path(name).stem}.xml").write_text(whole)
    stems = [Path(name).stem for name, _ in pictures]
    for split, part in {"train": stems[8:], "val": stems[:4], "test": stems[4:8]}.items():
        (root / "ImageSets" / "Main" / f"{split}.txt").write_text("\n".join(part) + "\n")


def yolo(folder: Path) -> None:
    """YOLO's form, with folders for two splits."""
    root, pictures = folder / "yolo", marked(folder / "yolo" / "images")
    for number, (name, boxes) in enumerate(pictures):
        split = "val" if number < 6 else "train"
        for kind in ("images", "labels"):
            (root / kind / split).mkdir(parents=True, exist_ok=True)
        (root / "images" / name).rename(root / "images" / split / name)
        lines = [
            f"{int(label == 'tall')} {(a + c) / 80:.6f} {(b + d) / 64:.6f} {(c - a) / 40:.6f} {(d - b) / 32:.6f}"
            for label, a, b, c, d in boxes
        ]
        if lines:
            (root / "labels" / split / f"{Path(name).stem}.txt").write_text("\n".join(lines) + "\n")
    (root / "data.yaml").write_text("train: images/train\nval: images/val\nnc: 2\nnames: [wide, tall]\n")


def box_table(folder: Path) -> None:
    """A table with a line for each box, and one without a box for a picture that has none."""
    lines = ["file,label,xmin,ymin,xmax,ymax"]
    for name, boxes in marked(folder / "boxed"):
        lines += [f"boxed/{name},{','.join(map(str, box))}" for box in boxes] or [f"boxed/{name},,,,,"]
    (folder / "boxes.csv").write_text("\n".join(lines) + "\n")


OTHERS = {
    "boxes.csv": box_table,
    "boxes.json": box_json,
    "captions.tsv": captions,
    "events.csv": events,
    "graph.json": graph,
    "graphs": graphs,
    "lines.csv": lines,
    "photos": photos,
    "pictures.csv": pictures,
    "questions.csv": questions,
    "recordings.csv": recordings,
    "scenes.jsonl": scenes,
    "sounds": sounds,
    "spoken": spoken,
    "voc": voc,
    "yolo": yolo,
    "tracks.csv": tracks,
}
