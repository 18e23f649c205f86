"""Pictures as arrays: read from a file, from bytes, from PIL or from an array, as a person would see them.

A picture is turned as its EXIF data say, transparency lies on white, 16 bits become 8, and of an animation the first
frame is taken.
"""

from __future__ import annotations

import base64
import binascii
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from saccade import png
from saccade.error import SaccadeError

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # as pillow calls them; some others run programs
MOST = 1 << 26  # pixels of one picture, so that a small file cannot fill the memory
SENT = 1 << 24  # of one that comes over the network


def pixels_of(raw: Any, most: int = MOST) -> np.ndarray:
    """A picture as (3,H,W) uint8; refuses one of more than `most` pixels."""
    if isinstance(raw, str | Path):
        return _opened(_content(Path(raw)), str(raw), most)
    if isinstance(raw, bytes):
        return _opened(raw, "this picture", most)
    if isinstance(raw, np.ndarray):
        return _from_array(raw)
    if isinstance(raw, torch.Tensor):
        return _from_array((raw.float() if raw.is_floating_point() else raw).detach().cpu().numpy())
    if hasattr(raw, "mode") and hasattr(raw, "convert"):
        return _read(raw, "this picture", most)
    raise SaccadeError(f"a picture was expected (a path, a PIL image, an array), not {raw!r:.40}")


def fitted(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """A picture (3,H,W) at another size: the largest part in its middle that has those proportions, made smaller or
    larger.
    """
    H, W = pixels.shape[1:]
    if (height, width) == (H, W):
        return pixels
    scale = max(height / H, width / W)
    tall, wide = (min(max(1, round(each / scale)), own) for each, own in ((height, H), (width, W)))
    top, left = (H - tall) // 2, (W - wide) // 2
    cut = torch.from_numpy(np.ascontiguousarray(pixels[:, top : top + tall, left : left + wide]))
    made = F.interpolate(cut[None].float(), size=(height, width), mode="bilinear", antialias=True)[0]
    return made.round().clamp(0, 255).byte().numpy()


def received(value: Any) -> bytes:
    """A picture that came over the network: base64, perhaps as a data: URL. A path or an address is never opened."""
    if not isinstance(value, str):
        raise SaccadeError("this run reads pictures: give one as base64 or as a data: URL")
    head, comma, body = value.partition(",") if value.startswith("data:") else ("", "", value)
    if value.startswith("data:") and not (comma and head.startswith("data:image/") and head.endswith(";base64")):
        raise SaccadeError("a picture's data: URL begins with data:image/png;base64, (or another kind of picture)")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise SaccadeError("this run reads pictures: give one as base64 or as a data: URL") from None


def as_url(pixels: np.ndarray) -> str:
    """A picture (3,H,W) or (1,H,W) as a data: URL."""
    return f"data:image/png;base64,{base64.b64encode(png.encode(pixels.transpose(1, 2, 0))).decode()}"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read as a picture: {problem.strerror or problem}") from None


def _opened(content: bytes, name: str, most: int) -> np.ndarray:
    """The picture in a file; what pillow raises of broken ones is of many kinds."""
    kinds = _pillow()
    try:
        picture = kinds.open(io.BytesIO(content), formats=FORMATS)
    except Exception:
        raise SaccadeError(f"{name} is no picture that can be read ({', '.join(FORMATS)})") from None
    with picture:
        return _read(picture, name, most)


def _read(picture: Any, name: str, most: int) -> np.ndarray:
    if picture.width * picture.height > most:
        raise SaccadeError(f"{name} has {picture.width} x {picture.height} pixels, and {most:,} are read at most")
    try:
        return _from_pil(picture)
    except SaccadeError:
        raise
    except Exception as problem:  # cut off, or damaged: pillow raises what it met
        raise SaccadeError(f"{name} is no whole picture: {problem}") from None


def _from_pil(picture: Any) -> np.ndarray:
    from PIL import ImageOps

    seen = ImageOps.exif_transpose(picture)
    if seen.mode.startswith("I"):  # 16 bits, or 32 that hold 16 or 8
        deep = np.asarray(seen).astype(np.int64)
        bytes_alone = seen.mode == "I" and deep.max(initial=0) < 256
        return _coloured((deep if bytes_alone else deep >> 8).clip(0, 255).astype(np.uint8))
    if seen.mode == "F":
        return _from_array(np.asarray(seen))
    if seen.mode in ("RGBA", "LA", "PA") or "transparency" in seen.info:
        seen = seen.convert("RGBA")
        white = _pillow().new("RGBA", seen.size, "white")
        seen = _pillow().alpha_composite(white, seen)
    return np.ascontiguousarray(np.asarray(seen.convert("RGB")).transpose(2, 0, 1))


def _from_array(array: np.ndarray) -> np.ndarray:
    """(H,W), (H,W,1), (H,W,3) or (H,W,4): whole numbers from 0 to 255, or floats from 0 to 1."""
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or array.min(initial=0) < 0 or array.max(initial=0) > 1:
            raise SaccadeError("a picture of floats has numbers from 0 to 1")
        array = np.rint(array * 255).astype(np.uint8)
    if array.dtype == bool:
        array = array.astype(np.uint8) * 255
    if array.dtype.kind not in "ui" or array.min(initial=0) < 0 or array.max(initial=0) > 255:
        raise SaccadeError(f"a picture's numbers are whole, from 0 to 255, or floats from 0 to 1; got {array.dtype}")
    array = array.astype(np.uint8)
    if array.ndim == 2:
        return _coloured(array)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or not array.size:
        raise SaccadeError(f"a picture is an array (height, width) or (height, width, colours); got {array.shape}")
    if array.shape[2] == 1:
        return _coloured(array[:, :, 0])
    if array.shape[2] == 4:
        share = array[:, :, 3:].astype(np.float64) / 255
        array = np.rint(array[:, :, :3] * share + 255 * (1 - share)).astype(np.uint8)
    return np.ascontiguousarray(array.transpose(2, 0, 1))


def _coloured(grey: np.ndarray) -> np.ndarray:
    """(H,W) as (3,H,W)."""
    if not grey.size:
        raise SaccadeError("a picture without pixels cannot be read")
    return np.broadcast_to(grey, (3, *grey.shape)).copy()


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError:
        raise SaccadeError("pictures in files need pillow: pip install 'saccade[image]'") from None
    return PIL.Image
