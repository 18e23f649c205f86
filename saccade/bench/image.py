"""`saccade bench image`: models of pictures beside `transformers` (and timm, where it can be imported), random weights.

Forward in inference and a training step (forward, cross-entropy, backward) at 224 x 224; beside each what equal calls
differ by, ours against ours. Then how time grows with the number of patches: all of them look at all in a ViT, and at
those of their window in a Swin. Last, which share of a training step goes into reading its pictures: bytes from the
disk, normalised and augmented.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.bench.growth import exponent
from saccade.bench.race import race, row, spent
from saccade.config import read
from saccade.field.image import Image, ImageConfig, Measured
from saccade.model.input import Input
from saccade.recipes import read as recipes

PIXELS, CLASSES = 224, 1000
READ, KEPT, ROUNDS = "fashion-mnist-vit", 20_000, 21  # whose pictures are read, of how many, how often
BATCHES = {"vit-tiny": 8, "vit-base": 2, "swin-tiny": 4}  # pictures of a step
TINY: dict[str, Any] = {"width": 192, "heads": 3}  # what differs from the base
SIDES = {
    "vit": (224, 320, 448, 640),
    "swin": (224, 448, 672, 896),
}  # of pictures: the number of patches grows as their square


def rows(seconds: float = 20.0) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds."""
    for name, batch in BATCHES.items():
        torch.manual_seed(0)
        ours, x = _ours(name), torch.randn(batch, 3, PIXELS, PIXELS)
        for peer, make in PEERS.items():
            theirs = make(name)
            if theirs is not None:
                yield from _compared(name, ours, peer, theirs, x, seconds)
        yield from _compared(name, ours, "saccade", ours, x, seconds / 2)
    for name, sides in SIDES.items():
        yield _growth(name, sides)
    yield _reading()


def _compared(
    name: str, ours: nn.Module, peer: str, theirs: nn.Module, x: Tensor, seconds: float
) -> Iterator[dict[str, Any]]:
    """Forward and training step of two models."""
    with torch.no_grad():
        found = race(_forward(ours.eval(), x), _forward(theirs.eval(), x), seconds=seconds)
    yield row(f"{name} {len(x)} x {PIXELS} x {PIXELS}, forward", peer, *found)
    found = race(_step(ours.train(), x), _step(theirs.train(), x), seconds=seconds)
    yield row(f"{name} {len(x)} x {PIXELS} x {PIXELS}, training step", peer, *found)


def _growth(name: str, sides: tuple[int, ...]) -> dict[str, Any]:
    """By which power of the number of patches the time of attention's layers grows, forward and backward."""
    counts, times = [], []
    for side in sides:
        patches = (side // PATCH[name]) ** 2
        run = _step(GROWING[name](), torch.randn(1, 3, side, side))
        run()
        counts.append(patches)
        times.append(sorted(spent(run) for _ in range(3))[1])
    about = f"{name}, {counts[0]:,} to {counts[-1]:,} patches: time grows as patches to the"
    return row(about, "none", exponent(counts, times), None, unit="power")


def _reading() -> dict[str, Any]:
    """The share of a step of `READ` that its batch takes before the model has it: rows picked at random from a file."""
    made = recipes.recipe(READ)
    assert made.model is not None
    field = Image(Measured(28, 28, [0.3], [0.35]), read(ImageConfig, made.x["source"]))
    config = made.model.model_copy(update={**field.model, "pool": made.model.pool, "head": f"label({CLASSES})"})
    model, draw, count = saccade.Model(config).train(), np.random.default_rng(0), made.train.batch
    with tempfile.TemporaryFile() as file:
        pixels = np.memmap(file, np.uint8, "w+", shape=(KEPT, 1, 28, 28))
        pixels[:] = draw.integers(0, 256, pixels.shape, np.uint8)

        def batch() -> Input:
            return field.collate({"pixels": pixels[np.sort(draw.choice(KEPT, count, replace=False))]}, draw)

        reading, step = batch, _step(model, batch().values["pixels"])
        (reading(), step())
        times = [(spent(reading), spent(step)) for _ in range(ROUNDS)]
    share = median(100 * a / (a + b) for a, b in times)
    return row(f"{READ}, {count} pictures: reading and augmenting, of a step", "none", share, None, unit="%")


def _ours(name: str) -> nn.Module:
    base = "vit-base" if name == "vit-tiny" else name
    changes: dict[str, Any] = TINY if name == "vit-tiny" else {}
    return saccade.build(base, head=f"label({CLASSES})", **changes)


def _transformers(name: str) -> nn.Module | None:
    try:
        import transformers
    except ImportError:
        return None
    labels: dict[str, Any] = {"num_labels": CLASSES}
    if name == "swin-tiny":
        return transformers.SwinForImageClassification(transformers.SwinConfig(drop_path_rate=0.0, **labels))
    sizes: dict[str, Any] = (
        {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768} if name == "vit-tiny" else {}
    )
    return transformers.ViTForImageClassification(transformers.ViTConfig(**sizes, **labels))


def _timm(name: str) -> nn.Module | None:
    """timm's model; None where it cannot be imported, as without torchvision."""
    try:
        import timm
    except Exception:  # a broken torchvision raises more than ImportError
        return None
    known = {"vit-tiny": "vit_tiny_patch16_224", "vit-base": "vit_base_patch16_224"}
    known["swin-tiny"] = "swin_tiny_patch4_window7_224"
    made: nn.Module = timm.create_model(known[name], num_classes=CLASSES)
    return made


def _forward(model: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    return lambda: _scores(model, x)


def _step(model: nn.Module, x: Tensor) -> Callable[[], None]:
    labels = torch.arange(len(x)) % CLASSES

    def step() -> None:
        model.zero_grad(set_to_none=True)
        F.cross_entropy(_scores(model, x), labels).backward()

    return step


def _scores(model: nn.Module, x: Tensor) -> Tensor:
    output = model(Input({"pixels": x}) if isinstance(model, saccade.Model) else x)
    return output if isinstance(output, Tensor) else output.logits


# Small enough that attention is most of the work, with a head of as many classes as `_step` has.
PATCH = {"vit": 16, "swin": 4}
GROWING: dict[str, Callable[[], nn.Module]] = {
    "vit": partial(saccade.build, "vit-base", head=f"label({CLASSES})", width=64, heads=8, encoder=2),
    "swin": partial(saccade.build, "swin-tiny", head=f"label({CLASSES})", width=24, encoder=[2]),
}
PEERS: dict[str, Callable[[str], nn.Module | None]] = {"transformers": _transformers, "timm": _timm}
