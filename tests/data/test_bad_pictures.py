"""Pictures that cannot be read: training counts, names and leaves them out, or refuses them; `predict` refuses them."""

from __future__ import annotations

import io
import shutil
import struct
import zlib

import numpy as np
import photos
import pytest
from PIL import Image as Pillow
from rich.console import Console

import saccade
from saccade import SaccadeError, png
from saccade.data.skipped import Skipped
from saccade.learn.validate import evaluate
from saccade.task.pair import pair_of

NOISE = np.random.default_rng(1).integers(0, 256, (40, 40, 3)).astype(np.uint8)


def jpeg(mode):
    made = io.BytesIO()
    Pillow.fromarray(NOISE).convert(mode).save(made, "jpeg")
    return made.getvalue()


def bomb(side):
    """The head of a PNG file that promises so many pixels."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


BROKEN = {
    "truncated.png": (png.encode(NOISE)[:2000], "a damaged picture"),
    "truncated.jpg": (jpeg("RGB")[:700], "a damaged picture"),
    "empty.png": (b"", "an empty file"),
    "words.png": (b"these are plain words", "no picture"),
    "page.jpg": (b"<html><body>404</body></html>", "no picture"),
    "bomb.png": (bomb(9000), "a picture of more than 67,108,864 pixels"),
    "warned.png": (bomb(11000), "a picture of more than 67,108,864 pixels"),  # pillow itself warns of this one
    "refused.png": (bomb(50000), "a picture of more than 67,108,864 pixels"),  # and refuses this one
    "dot.png": (png.encode(np.full((1, 1, 3), 7, np.uint8)), "a picture of one pixel"),
}
SOUND = {
    "cmyk.jpg": jpeg("CMYK"),
    "thin.png": png.encode(NOISE[:1]),
    "large.png": png.encode(np.tile(NOISE, (9, 5, 1))),
    "twin.png": png.encode(NOISE[:9, :9]),
}


@pytest.fixture
def folder(tmp_path):
    return photos.photos(tmp_path)


def supply(made):
    return pair_of(made).supply(made)


def rows(made, skipped=None):
    return [path.name for path, _ in supply(made).origin.read(made.data.files, skipped)]


@pytest.mark.parametrize("name", BROKEN)
def test_each_is_counted_and_named_or_refused_in_one_sentence(folder, name):
    content, reason = BROKEN[name]
    before = rows(photos.recipe(folder))
    (folder / "left" / name).write_bytes(content)
    skipped = Skipped()
    assert rows(photos.recipe(folder), skipped) == before
    assert skipped.described() == [f"1: {reason} ({folder / 'left' / name})"]
    with pytest.raises(SaccadeError, match=rf"{name}.*; mend it or take it away, .* data.skip = true"):
        rows(photos.recipe(folder, data={"skip": False, "files": [str(folder)]}))


@pytest.mark.parametrize("name", SOUND)
def test_each_of_these_is_a_picture(folder, name):
    (folder / "left" / name).write_bytes(SOUND[name])
    skipped = Skipped()
    assert name in rows(photos.recipe(folder), skipped)
    assert not skipped


def test_a_file_that_changes_is_looked_at_again(folder):
    path = folder / "left" / "a.png"
    path.write_bytes(b"")
    assert "a.png" not in rows(photos.recipe(folder))
    path.write_bytes(png.encode(NOISE))
    assert "a.png" in rows(photos.recipe(folder))


def test_what_is_no_class_is_told(folder):
    (folder / "empty").mkdir()
    (folder / "stray.png").write_bytes(png.encode(NOISE))
    (folder / "left" / "from a telephone.heic").write_bytes(b"....ftypheic")
    (folder / "left" / "moved.png").symlink_to(folder / "gone.png")
    skipped = Skipped()
    rows(photos.recipe(folder), skipped)
    assert skipped.described() == [
        f"1: a class folder without pictures ({folder / 'empty'})",
        f"1: a link to nothing ({folder / 'left' / 'moved.png'})",
        f"1: a picture in no class folder ({folder / 'stray.png'})",
        f"1: another kind of file ({folder / 'left' / 'from a telephone.heic'})",
    ]
    with pytest.raises(SaccadeError, match="empty is a class folder without pictures"):
        rows(photos.recipe(folder, data={"skip": False}))


def test_where_nothing_can_be_read_the_first_problem_is_told(tmp_path):
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"")
    with pytest.raises(SaccadeError, match=r"nothing of .* can be read; the first problem: .*left/a\.png is empty"):
        rows(photos.recipe(tmp_path))


def test_two_pictures_with_one_name_are_two(folder):
    (folder / "left" / "more").mkdir()
    for path in (folder / "left" / "more" / "0.png", folder / "left" / "0.jpg"):
        Pillow.fromarray(NOISE[: 20 + len(path.name)]).save(path)
    assert len(rows(photos.recipe(folder))) == 42


def test_a_table_that_names_broken_and_missing_pictures(folder):
    names = sorted(path.relative_to(folder) for path in folder.rglob("*.png"))
    lines = [f"{name},{name.parent}" for name in names]
    (folder / "left" / "broken.png").write_bytes(b"")
    lines[3:3] = ["left/broken.png,left", "left/gone.png,left"]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    made = photos.recipe(folder / "table.csv")
    skipped = Skipped()
    assert len(rows(made, skipped)) == 40
    assert skipped.described() == ["1: an empty file (line 4)", "1: the name of no file (line 5)"]
    with pytest.raises(SaccadeError, match=r"row 5: 'left/gone\.png' is no file|broken\.png is empty"):
        rows(photos.recipe(folder / "table.csv", data={"files": [str(folder / "table.csv")], "skip": False}))


def test_a_training_among_broken_pictures(tmp_path):
    """It learns exactly what it would without them; the report names them, `evaluate` passes them by."""
    folder = photos.photos(tmp_path)
    shutil.copytree(folder, tmp_path / "clean")
    for name, (content, _) in BROKEN.items():
        (folder / "left" / name).write_bytes(content)
    (folder / "rare").mkdir()
    shutil.copy(folder / "left" / "0.png", folder / "rare" / "one.png")
    (tmp_path / "clean" / "rare").mkdir()
    shutil.copy(folder / "left" / "0.png", tmp_path / "clean" / "rare" / "one.png")
    said = io.StringIO()
    console = Console(file=said, width=400)
    found = saccade.train(photos.recipe(folder), run=tmp_path / "run", console=console)
    told = said.getvalue()
    for name, (_, reason) in BROKEN.items():
        assert reason in told
        assert str(folder / "left" / name) in told
    assert "'rare' 1" in told or "'rare' 0" in told, "a class of one picture is named in the report"
    clean = saccade.train(photos.recipe(tmp_path / "clean"), run=tmp_path / "other")
    for a, b in zip(found.model.parameters(), clean.model.parameters(), strict=True):
        assert np.array_equal(a.detach(), b.detach())
    assert evaluate(found, "val")["examples"] == evaluate(clean, "val")["examples"]
    for name in BROKEN:
        with pytest.raises(SaccadeError, match=name.replace(".", r"\.")):
            found.predict([folder / "left" / name])


def test_a_label_that_only_the_validation_split_has(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "val")
    (tmp_path / "val" / "left").rename(tmp_path / "val" / "middle")
    made = photos.recipe(folder, data={"files": [str(folder)], "validation": [str(tmp_path / "val")]})
    with pytest.raises(SaccadeError, match="val, example 1: no training row has this; there is no label 'middle'"):
        saccade.train(made, run=tmp_path / "run")


def test_pictures_of_several_sizes_are_fitted_to_one(tmp_path):
    folder = photos.photos(tmp_path, count=20)
    photos.photos(tmp_path / "others", count=20, size=(31, 17))
    for name in ("left", "right"):
        for path in (tmp_path / "others" / "photos" / name).iterdir():
            path.rename(folder / name / f"more-{path.name}")
    run = saccade.train(photos.recipe(folder), run=tmp_path / "run")
    assert run.task.x["source"].height == 8
    assert run.task.x["source"].width == 12
