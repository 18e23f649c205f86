"""A picture as X: pixels at one size, normalised by the mean and spread of the training pictures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field

from saccade import disk
from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, Source, Taken
from saccade.field.picture import ENDINGS, MOST, SENT, as_url, fitted, pixels_of, received
from saccade.field.unit import Side, Unit
from saccade.model.input import Input


class ImageConfig(Config):
    """The keys of a picture in a recipe."""

    kind: Literal["image"] = Field("image", description="image")
    size: int | None = Field(
        None, ge=1, description="pixels of the shorter side, a square; as the first one by default"
    )
    colours: Literal["auto", "grey", "rgb"] = Field("auto", description="auto: grey where all training pictures are")
    patch: int = Field(4, ge=1, description="pixels of the side of a square that becomes one vector")


class Measured(NamedTuple):
    """What was learned from the training pictures: their size, and mean and spread of each channel, from 0 to 1."""

    height: int
    width: int
    mean: list[float]
    spread: list[float]


class Image(Source):
    """pixels (channels,H,W) as bytes; a model sees (x / 255 - mean) / spread, square by square."""

    kind: ClassVar[str] = "image"
    keys: ClassVar[type[ImageConfig]] = ImageConfig
    held: ClassVar[str | None] = "pictures"
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    inherited: ClassVar[tuple[str, ...]] = ("size", "colours", "patch")
    unit, noun = "pictures", "picture"

    def __init__(self, measured: Measured, config: ImageConfig) -> None:
        self.measured, self.config = measured, config
        self.height, self.width, self.channels = measured.height, measured.width, len(measured.mean)
        if self.height % config.patch or self.width % config.patch:
            raise SaccadeError(
                f"pictures of {self.height} x {self.width} pixels are not made of squares of {config.patch}: "
                "set x.NAME.patch, or x.NAME.size"
            )
        self.grid = self.height // config.patch, self.width // config.patch

    @staticmethod
    def made(config: ImageConfig, raws: Iterable[Any]) -> bytes:
        """Size, mean and spread of the training pictures."""
        total, squares, count, coloured = np.zeros(3), np.zeros(3), 0, False
        size: tuple[int, int] | None = None if config.size is None else (config.size, config.size)
        for raw in raws:
            found = pixels_of(raw)
            size = _whole(found.shape[1:], config.patch) if size is None else size
            found = fitted(found, *size)
            coloured = coloured or bool((found[0] != found[1]).any() or (found[1] != found[2]).any())
            shares = found.reshape(3, -1).astype(np.float64) / 255
            total, squares, count = total + shares.sum(1), squares + (shares**2).sum(1), count + shares.shape[1]
        if size is None:
            raise SaccadeError("there is no picture to learn from: all are in the validation split, or there is none")
        channels = {"auto": 3 if coloured else 1, "grey": 1, "rgb": 3}[config.colours]
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - mean**2, 1e-4))
        measured = Measured(*size, mean[:channels].tolist(), spread[:channels].tolist())
        return json.dumps(measured._asdict()).encode()

    @classmethod
    def load(cls, config: ImageConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Image:
        """The field with what a run's files say of its pictures."""
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows the size of the pictures")
        return cls(Measured(**json.loads(files[name])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Bytes."""
        return {"pixels": Array("|u1", (self.channels, self.height, self.width))}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Its file tells size and colours."""
        return {}

    @property
    def model(self) -> Mapping[str, Any]:
        """A product of each square; no state of the squares knows them all, so that all are pooled."""
        return {"embed": f"patches({self.config.patch}, {self.channels})", "pool": "mean"}

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Bytes at the size of the field; grey is the mean of the colours as eyes weigh them."""
        return {"pixels": [self._pixels(each) for each in raws]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Floats (B,channels,H,W), and the place of each square."""
        pixels = torch.from_numpy(np.ascontiguousarray(taken["pixels"])).float() / 255
        mean, spread = (torch.tensor(each).view(-1, 1, 1) for each in (self.measured.mean, self.measured.spread))
        rows, columns = self.grid
        places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).view(1, -1, 2)
        return Input({"pixels": (pixels - mean) / spread}, places=places)

    @staticmethod
    def cell(text: str, folder: Path) -> Path:
        """The name of a file, from the folder of the table."""
        return _file(folder / text.strip(), text)

    @staticmethod
    def identity(raw: Any) -> bytes:
        """Its file, which need not be decoded for that; of an array its pixels."""
        if isinstance(raw, str | Path):
            return disk.known_digest(Path(raw)).encode()
        if isinstance(raw, bytes):
            return hashlib.sha256(raw).digest()
        pixels = pixels_of(raw)
        return hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).digest()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """How many, their size, colours, and squares."""
        count, colours = len(column.array("pixels")), "grey" if self.channels == 1 else "in colours"
        rows, columns = self.grid
        return (
            f"{count:,} picture{'' if count == 1 else 's'} of {self.height} x {self.width} pixels, {colours}, "
            f"{rows} x {columns} squares of {self.config.patch}"
        )

    def show(self, raw: Any) -> str:
        """The name of its file, or its size."""
        if isinstance(raw, str | Path):
            return str(raw)
        height, width = pixels_of(raw).shape[1:]
        return f"a picture of {height} x {width}"

    def sample(self, raw: Any) -> str:
        """A small file inside a text."""
        return as_url(self._pixels(raw))

    def line(self, text: str) -> Path:
        """The name of a file."""
        return _file(Path(text), text)

    def received(self, value: Any) -> np.ndarray:
        """Base64, or a data: URL; kept at the field's size, so that many large ones take little room."""
        return self._pixels(received(value), SENT).transpose(1, 2, 0)

    def side(self, x: Input) -> Side:
        """Squares with their places on the picture."""
        rows, columns = self.grid
        spots = [(row, column) for row in range(rows) for column in range(columns)]
        names = [f"{row + 1},{column + 1}" for row, column in spots]
        units = [
            Unit(n, name, n, False, (column / columns, row / rows, 1 / columns, 1 / rows))
            for n, (name, (row, column)) in enumerate(zip(names, spots, strict=True))
        ]
        shown = {"picture": as_url(self._seen(x)), "grid": [rows, columns]}
        return Side(units, names, f"a picture of {self.height} x {self.width}", "patches", shown)

    def _pixels(self, raw: Any, most: int = MOST) -> np.ndarray:
        found = fitted(pixels_of(raw, most), self.height, self.width)
        if self.channels == 3:
            return found
        if (found[0] == found[1]).all() and (found[1] == found[2]).all():
            return found[:1]
        grey = np.tensordot(np.array([0.299, 0.587, 0.114]), found.astype(np.float64), 1)
        return np.rint(grey).astype(np.uint8)[None]

    def _seen(self, x: Input) -> np.ndarray:
        """The bytes of the first example of an input."""
        mean, spread = (torch.tensor(each).view(-1, 1, 1) for each in (self.measured.mean, self.measured.spread))
        shares = x.values["pixels"][0].cpu().float() * spread + mean
        return (shares * 255).round().clamp(0, 255).byte().numpy()


def _whole(size: tuple[int, ...], patch: int) -> tuple[int, int]:
    """The size of the first picture, as far as it is made of whole squares."""
    height, width = (max(patch, each // patch * patch) for each in size)
    return height, width


def _file(path: Path, text: str) -> Path:
    """The path of a file that is there, told by its name."""
    try:
        there = path.is_file()
    except (OSError, ValueError):  # too long for a name, or not one
        there = False
    if not there:
        told = f"{text!r:.60} is {'a folder' if path.is_dir() else 'no file'}"
        raise SaccadeError(f"{told}, and this reads pictures: give the name of one ({', '.join(ENDINGS[:3])} ...)")
    return path
