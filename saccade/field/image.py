"""A picture as X: pixels at one size, normalised by the mean and spread of the training pictures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field, field_validator

from saccade import spec
from saccade.config import Config, ModelConfig
from saccade.error import SaccadeError
from saccade.field.augment import augments, moving
from saccade.field.field import Array, Column, Encoded, Taken
from saccade.field.file import FileSource
from saccade.field.picture import ENDINGS, FITS, MOST, PICTURE, SENT, as_url, pixels_of
from saccade.field.unit import Side, Unit
from saccade.model.embed import EMBEDS, sides_of
from saccade.model.head import spans
from saccade.model.input import Input
from saccade.model.patches import patches
from saccade.zoo.processor import PROCESSOR, Preprocessing, preprocessing, processor

Pixels = Annotated[int, Field(ge=1)]
DRAWN = 64  # pixels a side of what can be drawn by hand, at most


class ImageConfig(Config):
    """The keys of a picture in a recipe."""

    kind: Literal["image"] = Field("image", description="image")
    size: Pixels | list[Pixels] | None = Field(
        None, description="pixels of a side of a square, or [height, width]; as the first picture by default"
    )
    fit: Literal["crop", "pad", "stretch"] = Field(
        "crop",
        description="of other proportions: crop, the middle is taken; pad, all of it, with its edge's light around; "
        "stretch, all of it, height and width each by a factor of its own",
    )
    colours: Literal["auto", "grey", "rgb"] = Field("auto", description="auto: grey where all training pictures are")
    embed: str = Field(
        "patches(4)",
        description="how pixels become a grid of vectors: patches(4), squares; convolutions((32,)), a small stem",
    )
    augment: str = Field("", description='in training alone: "crop(2) flip erase(0.1) turn(10)", in this order')

    @field_validator("size")
    @classmethod
    def _two_sides(cls, size: int | list[int] | None) -> int | list[int] | None:
        if isinstance(size, list) and len(size) != 2:
            raise ValueError(f"size is one number, or two: [height, width]; got {size}")
        return size

    @property
    def sides(self) -> tuple[int, int] | None:
        """Height and width; None: those of the first picture."""
        if self.size is None:
            return None
        height, width = self.size if isinstance(self.size, list) else (self.size, self.size)
        return height, width

    @field_validator("augment")
    @classmethod
    def _known(cls, text: str) -> str:
        augments(text)
        return text


class Measured(NamedTuple):
    """What was learned from the training pictures: their size, and mean and spread of each channel, from 0 to 1."""

    height: int
    width: int
    mean: list[float]
    spread: list[float]


class Shrunk(NamedTuple):
    """A picture that was made smaller, (H,W,channels), and how many pixels it had."""

    pixels: np.ndarray
    height: int
    width: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.pixels.astype(self.pixels.dtype if dtype is None else dtype)


class Image(FileSource):
    """pixels (channels,H,W) as bytes; a model sees (x / 255 - mean) / spread, square by square."""

    kind: ClassVar[str] = "image"
    media, inside = PICTURE, "pixels"
    keys: ClassVar[type[ImageConfig]] = ImageConfig
    held: ClassVar[str | None] = "pictures"
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    blends: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    inherited: ClassVar[tuple[str, ...]] = ("size", "fit", "colours", "embed")
    unit, noun = "pictures", "picture"
    part: ClassVar[str | None] = "image_url"
    compares: ClassVar[bool] = True

    def __init__(self, measured: Measured, config: ImageConfig) -> None:
        self.measured, self.config = measured, config
        self.height, self.width, self.channels = measured.height, measured.width, len(measured.mean)
        square = _square(config.embed)
        if self.height % square or self.width % square:
            raise SaccadeError(
                f"pictures of {self.height} x {self.width} pixels are not made of squares of {square}: "
                "set x.NAME.embed, or x.NAME.size"
            )
        self.grid = sides_of(config.embed, self.height, self.width)
        self.augments = augments(config.augment)

    @staticmethod
    def made(config: ImageConfig, raws: Iterable[Any]) -> bytes:
        """Size, mean and spread of the training pictures."""
        total, squares, count, coloured = np.zeros(3), np.zeros(3), 0, False
        size = config.sides
        for raw in raws:
            found = pixels_of(raw)
            size = _whole_patches(found.shape[1:], _square(config.embed)) if size is None else size
            found = FITS[config.fit](found, *size)
            coloured = coloured or bool((found[0] != found[1]).any() or (found[1] != found[2]).any())
            shares = found.reshape(3, -1).astype(np.float64) / 255
            total, squares, count = total + shares.sum(1), squares + (shares**2).sum(1), count + shares.shape[1]
        if size is None:
            raise SaccadeError("there is no picture to learn from: all are in the validation split, or there is none")
        channels = {"auto": 3 if coloured else 1, "grey": 1, "rgb": 3}[config.colours]
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - mean**2, 1e-4))  # never 0: pixels are divided by it
        measured = Measured(*size, mean[:channels].tolist(), spread[:channels].tolist())
        return json.dumps(measured._asdict()).encode()

    @classmethod
    def load(cls, config: ImageConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Image:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows the size of the pictures")
        return cls(Measured(**json.loads(files[name])), config)

    @classmethod
    def brought(cls, model: ModelConfig, options: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes | None:
        """Size, mean and spread, from preprocessor_config.json."""
        if not isinstance(model.embed, str) or spec.arguments(model.embed, EMBEDS, "embed")[0] != patches.__name__:
            return None
        found = preprocessing(options, files.get(PROCESSOR))
        size = _whole_patches((found.height, found.width), _square(model.embed)) if found.own else found[:2]
        measured = Measured(*size, found.mean, found.spread)
        if min(measured.spread) <= 0:
            raise SaccadeError(f"{PROCESSOR}: image_std is above 0, since pixels are divided by it")
        return json.dumps(measured._asdict()).encode()

    @classmethod
    def keys_of(cls, model: ModelConfig, files: Mapping[str, bytes]) -> dict[str, Any]:
        """Its embed, and size and colours of its pictures; all of a picture, where the model tells places in it."""
        height, width, mean, _ = Measured(**json.loads(files[cls.stored("source")]))
        size = {"size": height if height == width else [height, width]}
        placed = any(each.startswith(spans.__name__) for each in model.named_heads.values())
        fit = {"fit": "stretch"} if placed else {}
        return {"embed": model.embed, "colours": "grey" if len(mean) == 1 else "rgb", **size, **fit}

    @property
    def shipped(self) -> Mapping[str, bytes]:
        """What an image processor of `transformers` reads."""
        return {PROCESSOR: processor(Preprocessing(*self.measured), whole=self.config.fit == "stretch")}

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"pixels": Array("|u1", (self.channels, self.height, self.width))}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """How a picture gets its size, where it is not cropped; size and colours stand in its file."""
        return {} if self.config.fit == "crop" else {"fit": self.config.fit}

    @property
    def model(self) -> Mapping[str, Any]:
        """A grid of vectors. The states are averaged where there is no class token whose state stands for all."""
        embed = spec.completed(self.config.embed, EMBEDS, "embed", channels=self.channels)
        return {"embed": embed, "pool": "mean", "pooler": False}

    def vectors(self, column: Column) -> np.ndarray:
        return np.full(len(column.lengths()), self.grid[1])

    @property
    def asked(self) -> Mapping[str, Any]:
        """Its size and, where a picture is small and grey, that one may be drawn by hand on a ground of this light."""
        size = {"height": self.height, "width": self.width}
        if self.channels > 1 or max(self.height, self.width) > DRAWN:
            return {"size": size}
        return {"size": size, "canvas": {**size, "ground": 0 if self.measured.mean[0] < 0.5 else 255}}

    @property
    def moving(self) -> list[str]:
        return moving(self.config.augment)

    def adds(self) -> list[str]:
        return [f"augmentation ({self.config.augment})"] if self.augments else []

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Bytes at the size of the field, in its colours."""
        return {"pixels": [self._pixels(each) for each in raws]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Floats (B,channels,H,W), augmented where there is a draw."""
        mean, spread = self._mean_and_spread()
        pixels = torch.from_numpy(np.ascontiguousarray(taken["pixels"])).float().mul_(1 / (255 * spread))
        pixels.sub_(mean / spread)  # in place: two passes over the pixels instead of four
        if draw is not None:
            pixels = reduce(lambda each, augment: augment(each, draw), self.augments, pixels)
        return Input({"pixels": pixels})

    def blended(self, given: Input, other: torch.Tensor, share: torch.Tensor) -> Input:
        """Both pictures laid over each other."""
        pixels = given.values["pixels"]
        return replace(given, values={"pixels": pixels[other].lerp_(pixels, share.view(-1, 1, 1, 1))})

    def distances(self, some: Taken, others: Taken) -> np.ndarray:
        """The mean squared difference of pixels from 0 to 1, by |a - b|^2 = |a|^2 + |b|^2 - 2 a b."""
        pixels = (np.asarray(each["pixels"], np.float32) / 255 for each in (some, others))
        one, other = (each.reshape(len(each), -1) for each in pixels)
        squares = (one**2).sum(1)[:, None] + (other**2).sum(1) - 2 * one @ other.T
        return np.maximum(squares, 0) / one.shape[1]

    @staticmethod
    def opened(raw: Any) -> np.ndarray:
        return pixels_of(raw)

    @staticmethod
    def digest(raw: Any) -> bytes:
        pixels = pixels_of(raw)
        return hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).digest()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        count, colours = len(column.lengths()), "grey" if self.channels == 1 else "in colours"
        rows, columns = self.grid
        return (
            f"{count:,} picture{'' if count == 1 else 's'} of {self.height} x {self.width} pixels, {colours}, "
            f"{rows} x {columns} vectors by {self.config.embed}"
        )

    def show(self, raw: Any) -> str:
        """The name of its file, or its size."""
        if isinstance(raw, str | Path):
            return str(raw)
        height, width = pixels_of(raw).shape[1:]
        return f"a picture of {height} x {width}"

    def sample(self, raw: Any) -> str:
        """The picture at the field's size, as a data: URL."""
        return as_url(self._pixels(raw))

    def received(self, value: Any) -> Shrunk:
        """Base64, or a data: URL; kept at the field's size, so that many large ones take little room."""
        whole = pixels_of(PICTURE.received(value), SENT)
        return Shrunk(self._pixels(whole.transpose(1, 2, 0)).transpose(1, 2, 0), *whole.shape[1:])

    def bounds(self, raw: Any) -> np.ndarray:
        """Left, top, right and bottom of a picture in pixels, as a person sees it."""
        height, width = (raw.height, raw.width) if isinstance(raw, Shrunk) else pixels_of(raw).shape[1:]
        return np.array([0, 0, width, height], np.float64)

    def side(self, x: Input) -> Side:
        """Squares with their places on the picture."""
        rows, columns = self.grid
        spots = [(row, column) for row in range(rows) for column in range(columns)]
        names = [f"{row + 1},{column + 1}" for row, column in spots]
        units = [
            Unit(n, name, n, False, (column / columns, row / rows, 1 / columns, 1 / rows))
            for n, (name, (row, column)) in enumerate(zip(names, spots, strict=True))
        ]
        shown = {"picture": as_url(self._bytes_of(x)), "grid": [rows, columns]}
        return Side(units, names, f"a picture of {self.height} x {self.width}", "patches", shown)

    def _pixels(self, raw: Any, most: int = MOST) -> np.ndarray:
        """Bytes (channels,H,W); grey is the luma of ITU-R BT.601."""
        found = FITS[self.config.fit](pixels_of(raw, most), self.height, self.width)
        if self.channels == 3:
            return found
        if (found[0] == found[1]).all() and (found[1] == found[2]).all():
            return found[:1]
        grey = np.tensordot(np.array([0.299, 0.587, 0.114]), found.astype(np.float64), 1)
        return np.rint(grey).astype(np.uint8)[None]

    def _bytes_of(self, x: Input) -> np.ndarray:
        """The first example of an input as bytes again: the inverse of `collate`."""
        mean, spread = self._mean_and_spread()
        shares = x.values["pixels"][0].cpu().float() * spread + mean
        return (shares * 255).round().clamp(0, 255).byte().numpy()

    def _mean_and_spread(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Of each channel, (channels,1,1)."""
        mean, spread = (torch.tensor(each).view(-1, 1, 1) for each in (self.measured.mean, self.measured.spread))
        return mean, spread


def _square(embed: str) -> int:
    """The pixels of a side that an embed cannot divide."""
    return int(spec.arguments(embed, EMBEDS, "embed")[1].get("n", 1))


def _whole_patches(size: tuple[int, ...], patch: int) -> tuple[int, int]:
    """Height and width rounded down to whole squares, one square at least."""
    height, width = (max(patch, each // patch * patch) for each in size)
    return height, width
