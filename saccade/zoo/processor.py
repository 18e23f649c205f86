"""preprocessor_config.json: how the pictures of a Hugging Face folder become numbers: their size, and the mean and the
spread of each channel.

Without this file, what `transformers` has for the family is taken, at the size the model was made for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from saccade.error import SaccadeError
from saccade.zoo.families.picture import sides

PROCESSOR = "preprocessor_config.json"
IMAGENET = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
USUAL = {"vit": ([0.5] * 3, [0.5] * 3)}  # mean and spread by family; of the others, those of ImageNet
SIZES = {"yolos": (512, 864)}  # height and width that `transformers` has where config.json says none; else 224
DETECTORS = {"yolos": "YolosImageProcessor"}  # the processor of families that find boxes, which knows how to tell them
EDGES = {"shortest_edge", "longest_edge"}
BILINEAR = 2  # as pillow counts the ways of resizing


class Preprocessing(NamedTuple):
    """The size of pictures in pixels; mean and spread of each channel, from 0 to 1."""

    height: int
    width: int
    mean: list[float]
    spread: list[float]
    own: bool = False  # whether the size is the model's own, since theirs differs from picture to picture


def preprocessing(options: Mapping[str, Any], content: bytes | None) -> Preprocessing:
    """What a folder says of its pictures. options: of config.json; content: of preprocessor_config.json, if it is
    there.
    """
    found = {} if content is None else _table(content)
    if not found.get("do_rescale", True) or abs(found.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-4:
        raise SaccadeError(f"{PROCESSOR}: pixels that are not divided by 255 are not supported")
    mean, spread = USUAL.get(str(options.get("model_type")), IMAGENET)
    mean, spread = found.get("image_mean", mean), found.get("image_std", spread)
    if not found.get("do_normalize", True):
        mean, spread = [0.0], [1.0]
    count = options.get("num_channels", 3)
    size = _size(found)
    own = sides(dict(options), "image_size", SIZES.get(str(options.get("model_type")), 224)) if size is None else size
    return Preprocessing(*own, _numbers(mean, count), _numbers(spread, count), size is None)


def processor(about: Preprocessing, *, whole: bool = False) -> bytes:
    """The file for pictures that are resized by their shorter side, of which the middle is taken; whole: all of a
    picture is, height and width each by a factor of its own.
    """
    height, width, mean, spread, _ = about
    square = {"size": {"shortest_edge": height}, "crop_size": {"height": height, "width": width}}
    resized: dict[str, Any] = {"size": {"height": height, "width": width}}
    if height == width and not whole:
        resized = {**square, "do_center_crop": True}
    content = {
        "image_processor_type": "BitImageProcessor",
        "do_center_crop": False,
        "do_convert_rgb": len(mean) == 3,
        "do_resize": True,
        "resample": BILINEAR,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": spread,
        **resized,
    }
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def typed(content: bytes, family: str) -> bytes:
    """The file for a family that has an image processor of its own, whose pictures all have one size here."""
    if family not in DETECTORS:
        return content
    found = {key: value for key, value in _table(content).items() if "crop" not in key}
    found |= {"image_processor_type": DETECTORS[family], "do_pad": False}
    return (json.dumps(found, indent=2, sort_keys=True) + "\n").encode()


def _table(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SaccadeError(f"{PROCESSOR} holds no table of options in JSON")
    return found


def _size(found: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width: of the part that is cut out, where one is; else what pictures are resized to. None: nothing
    says that, or only how long the shorter and the longer edge may be, so that each picture keeps its proportions.
    """
    cut, resized = found.get("crop_size"), found.get("size")
    if cut is not None and found.get("do_center_crop", True):
        return _sides(cut)
    if resized is None or not found.get("do_resize", True):
        return None
    return None if isinstance(resized, dict) and resized.keys() >= EDGES else _sides(resized)


def _sides(value: Any) -> tuple[int, int]:
    edge = value.get("shortest_edge") if isinstance(value, dict) else value
    given = isinstance(value, dict) and edge is None
    found = [value.get(name) if given else edge for name in ("height", "width")]
    sizes = [each for each in found if isinstance(each, int) and not isinstance(each, bool) and each > 0]
    if len(sizes) != 2:
        raise SaccadeError(f"{PROCESSOR}: a size is a number of pixels, or height and width; got {value!r}")
    return sizes[0], sizes[1]


def _numbers(value: Any, count: int) -> list[float]:
    """One number for each channel; a single one is that of all."""
    given = value if isinstance(value, list | tuple) else [value]
    given = [given[0]] * count if len(given) == 1 or (given and count == 1) else given
    if len(given) != count or not all(isinstance(each, int | float) for each in given):
        raise SaccadeError(f"{PROCESSOR}: image_mean and image_std are {count} numbers each; got {value!r}")
    return [float(each) for each in given]
