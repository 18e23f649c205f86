"""Pictures as arrays: read from a file, from bytes, from PIL or from an array, as a person would see them.

A picture is turned as its EXIF data say, transparency lies on white, 16 bits become 8, and of an animation the first
frame is taken.
"""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from saccade import png
from saccade.error import SaccadeError
from saccade.field.field import UnreadableError
from saccade.field.file import Media

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
PICTURE = Media("picture", ENDINGS, "image", "image/png")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # as pillow calls them; some others call programs
MOST = 1 << 26  # pixels of one picture, so that a small file cannot fill the memory
SENT = 1 << 24  # of one that comes over the network
ORIENTATION, ON_ITS_SIDE = 274, (5, 6, 7, 8)  # the tag of EXIF, and its values that exchange height and width


def pixels_of(raw: Any, most: int = MOST) -> np.ndarray:
    """A picture as (3,H,W) uint8; refuses one of more than `most` pixels, or of a single one."""
    found = _pixels_of(raw, most)
    if found.shape[1:] == (1, 1):
        name = str(raw) if isinstance(raw, str | Path) else "this picture"
        raise UnreadableError(f"{name} has a single pixel: there is nothing to see", "a picture of one pixel", name)
    return found


def _pixels_of(raw: Any, most: int) -> np.ndarray:
    if isinstance(raw, str | Path):
        return _from_content(PICTURE.content(Path(raw)), str(raw), most)
    if isinstance(raw, bytes):
        return _from_content(raw, "this picture", most)
    if isinstance(raw, torch.Tensor):
        return _from_array((raw.float() if raw.is_floating_point() else raw).detach().cpu().numpy())
    if hasattr(raw, "mode") and hasattr(raw, "convert"):
        return _decoded(raw, "this picture", most)
    if hasattr(raw, "__array__"):  # an array, or what is drawn when it is asked for one
        return _from_array(np.asarray(raw))
    raise SaccadeError(f"a picture was expected (a path, a PIL image, an array), not {raw!r:.40}")


def fitted(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """A picture (3,H,W) at another size: the largest part in its middle that has those proportions, scaled."""
    H, W = pixels.shape[1:]
    if (height, width) == (H, W):
        return pixels
    scale = max(height / H, width / W)
    tall, wide = (min(max(1, round(each / scale)), own) for each, own in ((height, H), (width, W)))
    top, left = (H - tall) // 2, (W - wide) // 2
    return stretched(pixels[:, top : top + tall, left : left + wide], height, width)


def stretched(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """All of a picture (3,H,W) at another size, each side by a factor of its own: every place stays at the same share
    of both sides.
    """
    if (height, width) == pixels.shape[1:]:
        return pixels
    given = torch.from_numpy(np.ascontiguousarray(pixels))[None].float()
    made = F.interpolate(given, size=(height, width), mode="bilinear", antialias=True)[0]
    return made.round().clamp(0, 255).byte().numpy()


def whole(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """All of a picture (3,H,W) at another size, in the middle, with the light of its edge around it."""
    H, W = pixels.shape[1:]
    scale = min(height / H, width / W)
    tall, wide = (min(max(1, round(each * scale)), most) for each, most in ((H, height), (W, width)))
    edge = np.concatenate([pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1]], 1)
    made = np.empty((len(pixels), height, width), np.uint8)
    made[:] = np.median(edge, 1).astype(np.uint8)[:, None, None]
    top, left = (height - tall) // 2, (width - wide) // 2
    made[:, top : top + tall, left : left + wide] = fitted(pixels, tall, wide)
    return made


def extent_of(path: Path) -> tuple[int, int]:
    """Height and width of a picture in a file as a person would see it; of most formats, by the head of the file."""
    name = str(path)
    if not path.is_file():
        raise UnreadableError(f"{path} is not there, and it should be a picture", "a picture that is not there", name)
    try:
        with path.open("rb") as file, _opened(file, name, MOST) as picture:
            turned = picture.getexif().get(ORIENTATION, 1) in ON_ITS_SIDE
            width, height = picture.size[::-1] if turned else picture.size
    except SaccadeError:
        raise
    except Exception as problem:  # what cannot be opened; or is cut off, where the turning stands behind the pixels
        raise UnreadableError(f"{path} is no whole picture: {problem}", "a damaged picture", name) from None
    return height, width


def as_url(pixels: np.ndarray) -> str:
    """A picture (3,H,W) or (1,H,W) as a data: URL."""
    return f"data:image/png;base64,{base64.b64encode(png.encode(pixels.transpose(1, 2, 0))).decode()}"


def _from_content(content: bytes, name: str, most: int) -> np.ndarray:
    """The picture in the bytes of a file; name: what an error calls it."""
    if not content:
        raise UnreadableError(f"{name} is empty, and a picture was expected", "an empty file", name)
    with _opened(io.BytesIO(content), name, most) as picture:
        return _decoded(picture, name, most)


def _opened(file: Any, name: str, most: int) -> Any:
    """The picture in a file, by its head alone."""
    pillow = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # the size is checked here
            return pillow.open(file, formats=FORMATS)
    except pillow.DecompressionBombError:
        raise _too_large(name, "far too many", most) from None
    except Exception:  # pillow raises errors of many kinds on a broken file
        told = f"{name} is no picture that can be read ({', '.join(FORMATS)})"
        raise UnreadableError(told, "no picture", name) from None


def _decoded(picture: Any, name: str, most: int) -> np.ndarray:
    """The pixels of an opened picture; its size is checked first, since pillow decodes only when asked for pixels."""
    if picture.width * picture.height > most:
        raise _too_large(name, f"{picture.width} x {picture.height}", most)
    try:
        return _from_pil(picture)
    except SaccadeError:
        raise
    except Exception as problem:  # cut off, or damaged
        raise UnreadableError(f"{name} is no whole picture: {problem}", "a damaged picture", name) from None


def _too_large(name: str, size: str, most: int) -> UnreadableError:
    told = f"{name} has {size} pixels, and {most:,} are read at most"
    return UnreadableError(told, f"a picture of more than {most:,} pixels", name)


def _from_pil(picture: Any) -> np.ndarray:
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I"):  # 16 bits, or 32 that hold 16 or 8
        deep = np.asarray(upright).astype(np.int64)
        fits_a_byte = upright.mode == "I" and deep.max(initial=0) < 256
        return _three_channels((deep if fits_a_byte else deep >> 8).clip(0, 255).astype(np.uint8))
    if upright.mode == "F":
        return _from_array(np.asarray(upright))
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        white = _pillow().new("RGBA", upright.size, "white")
        upright = _pillow().alpha_composite(white, upright)
    return np.ascontiguousarray(np.asarray(upright.convert("RGB")).transpose(2, 0, 1))


def _from_array(array: np.ndarray) -> np.ndarray:
    """(H,W), (H,W,1), (H,W,3) or (H,W,4): whole numbers from 0 to 255, or floats from 0 to 1."""
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or array.min(initial=0) < 0 or array.max(initial=0) > 1:
            raise _no_picture("a picture of floats has numbers from 0 to 1")
        array = np.rint(array * 255).astype(np.uint8)
    if array.dtype == bool:
        array = array.astype(np.uint8) * 255
    if array.dtype.kind not in "ui" or array.min(initial=0) < 0 or array.max(initial=0) > 255:
        raise _no_picture(f"a picture's numbers are whole, from 0 to 255, or floats from 0 to 1; got {array.dtype}")
    array = array.astype(np.uint8)
    if array.ndim == 2:
        return _three_channels(array)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or not array.size:
        raise _no_picture(f"a picture is an array (height, width) or (height, width, colours); got {array.shape}")
    if array.shape[2] == 1:
        return _three_channels(array[:, :, 0])
    if array.shape[2] == 4:  # what is transparent lies on white
        share = array[:, :, 3:].astype(np.float64) / 255
        array = np.rint(array[:, :, :3] * share + 255 * (1 - share)).astype(np.uint8)
    return np.ascontiguousarray(array.transpose(2, 0, 1))


def _three_channels(grey: np.ndarray) -> np.ndarray:
    """Grey (H,W) as (3,H,W)."""
    if not grey.size:
        raise _no_picture("a picture without pixels cannot be read")
    return np.broadcast_to(grey, (3, *grey.shape)).copy()


def _no_picture(told: str) -> UnreadableError:
    return UnreadableError(told, "an array that is no picture")


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError:
        raise SaccadeError("pictures in files need pillow: pip install 'saccade[image]'") from None
    return PIL.Image


FITS = {
    "crop": fitted,
    "pad": whole,
    "stretch": stretched,
}  # how a picture of other proportions gets the size of a field
