"""`saccade bench detect`: detectors beside `transformers`, random weights, in inference and in training.

A training step is forward, matching, loss and backward, of pictures with BOXES boxes each. YOLOS has the same weights
on both sides: ours is their folder, read. DETR is compared above its backbone: encoder and decoder of the same size
look at the same grid of features, and every layer of the decoder learns to answer; theirs adds places to queries and
keys in each layer, ours to the input alone, where one product more stands. Beside each what equal calls differ by, ours
against ours. Last, which share of our training step is matching and loss, forward and backward.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

import saccade
from saccade.bench.race import raced, row, spent
from saccade.config import ModelConfig, read
from saccade.field.boxes import Boxes, BoxesConfig
from saccade.field.image import Image
from saccade.heap import keep_heap
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipes import read as recipes
from saccade.task.pair import pair_of
from saccade.task.task import task_of
from saccade.zoo.families import FAMILIES
from saccade.zoo.folder import write_folder

LABELS, BOXES = 11, 7  # kinds of boxes, and boxes of a picture
SHARES = "shapes-detr"  # a recipe whose share of matching and loss is told, too
SIDE = 96  # pixels of its pictures
ROUNDS = 11
PEER = "transformers"
YOLOS: dict[str, dict[str, Any]] = {  # those of the paper's smallest model, and of half its width
    "YOLOS-tiny": {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "num_hidden_layers": 12},
    "small YOLOS": {"hidden_size": 96, "num_attention_heads": 3, "intermediate_size": 384, "num_hidden_layers": 4},
}
PIXELS: dict[str, tuple[int, int, int]] = {"YOLOS-tiny": (2, 256, 320), "small YOLOS": (4, 128, 160)}  # of a batch
QUERIES = 100
WIDTH, HEADS, HIDDEN, DEPTH, GRID, BATCH = 256, 8, 1024, 3, 16, 4  # of DETR
BACKBONE: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8], "depths": [1], "layer_type": "basic"}  # not used


class Detector(NamedTuple):
    """A model, what it reads, and what its boxes are."""

    model: Any
    x: Any
    field: Boxes
    y: Input


def rows(seconds: float = 10.0) -> Iterator[dict[str, Any]]:
    """All lines, as they are measured, each for about so many seconds."""
    keep_heap()  # as training does; for both sides
    for name in YOLOS:
        yield from _compared(_case(name), *yolos(name), seconds)
    yield from _compared(f"DETR, {BATCH} x {GRID} x {GRID} features", *detr(), seconds)
    for name, detector in _ours_alone().items():
        yield row(f"{name}: matching and loss, of a training step", "", share(detector), None, unit="%")


def yolos(name: str) -> tuple[Detector, Any]:
    """Ours, and theirs with the same weights; None where `transformers` cannot be imported."""
    (batch, height, width), field = PIXELS[name], plain_boxes()
    own = {"architectures": ["YolosForObjectDetection"], "image_size": [height, width], "num_labels": LABELS}
    options = {**YOLOS[name], **own, "num_detection_tokens": QUERIES}
    torch.manual_seed(0)
    ours, theirs, peer = Model(FAMILIES["yolos"].config(options)), None, _peer()
    if peer is not None:
        with tempfile.TemporaryDirectory() as folder:
            write_folder(folder, ours, "yolos", options)
            theirs = peer.YolosForObjectDetection.from_pretrained(folder)
    return Detector(ours, torch.randn(batch, 3, height, width), field, drawn_boxes(field, batch)), theirs


def detr() -> tuple[Detector, Any]:
    """Plain queries that look at a grid of features, and theirs of the same size, if `transformers` can be imported."""
    field, peer = plain_boxes(), _peer()
    stack = {"hidden": HIDDEN, "order": "post", "final_norm": True, "feed": "relu", "position": "sinusoid"}
    decoder = {"depth": DEPTH, "embed": f"queries({QUERIES})"}
    keys = {"width": WIDTH, "heads": HEADS, **stack, "encoder": DEPTH, "decoder": decoder}
    config = read(ModelConfig, {**keys, "embed": f"patches(1, {WIDTH})"})
    asked = {key: value for key, value in field.asked_of(config).items() if key != "embed"}
    torch.manual_seed(0)
    x = torch.randn(BATCH, WIDTH, GRID, GRID)
    ours = Detector(Model(config.model_copy(update=asked)), x, field, drawn_boxes(field, BATCH))
    return ours, None if peer is None else _their_detr(peer)


def _their_detr(peer: Any) -> Any:
    backbone = peer.ResNetConfig(**BACKBONE)
    size = {"d_model": WIDTH, "dropout": 0.0, "num_queries": QUERIES, "auxiliary_loss": True, "num_labels": LABELS}
    for stack in ("encoder", "decoder"):
        size |= {f"{stack}_layers": DEPTH, f"{stack}_attention_heads": HEADS, f"{stack}_ffn_dim": HIDDEN}
    found = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone_config": backbone}
    theirs = peer.DetrForObjectDetection(peer.DetrConfig(**found, **size))
    del theirs.model.backbone  # its features are given
    return theirs


def _peer() -> Any:
    """`transformers`; None where it cannot be imported."""
    try:
        import transformers
    except ImportError:
        return None
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _compared(case: str, ours: Detector, theirs: Any, seconds: float) -> Iterator[dict[str, Any]]:
    """Forward and training step of two models, and of ours beside itself."""
    for what, make in (("forward", _forward), ("training step", _step)):
        run = make(ours)
        if theirs is None:
            yield row(f"{case}, {what}", PEER, spent(run, 3), None)
        else:
            mine, other, ratio, spread = raced(run, make(ours._replace(model=theirs)), seconds=seconds)
            yield row(f"{case}, {what}", PEER, mine, other, ratio, spread=spread)
        mine, other, ratio, spread = raced(run, run, seconds=seconds / 2)
        yield row(f"{case}, {what}", "saccade", mine, other, ratio, spread=spread)


def share(detector: Detector) -> float:
    """The percentage of a training step that matching and loss take: the median of rounds that time both."""
    model, x, field, y = detector
    model.train()
    told = field.told_of(model, model.states(_input(x), field.given(y)))
    alone = cast(Model, Said(*(each.detach().requires_grad_() for each in told)))
    step = _step(detector)

    def loss() -> None:
        _total(field.loss(alone, States(), y, learning=True), field.counts(y)).backward()

    for run in (loss, step):
        run()  # what torch does once
    return median(100 * spent(loss) / spent(step) for _ in range(ROUNDS))


class Said(NamedTuple):
    """What a model has said already, in its place: so its loss is measured alone."""

    scores: Tensor
    spans: Tensor

    def say(self, states: States, name: str | None = None) -> Tensor:
        return self.scores if name is None else self.spans


def _ours_alone() -> dict[str, Detector]:
    """The detectors whose share of matching and loss is told."""
    found = {_case(name): yolos(name)[0] for name in YOLOS}
    found["DETR"] = detr()[0]
    return found | {f"{SHARES}, a batch of its recipe": of_recipe(SHARES)}


def of_recipe(name: str) -> Detector:
    """The model of a recipe of pictures with a batch of random ones."""
    made = recipes.recipe(name)
    assert made.model is not None
    measured = {"height": SIDE, "width": SIDE, "mean": [0.5] * 3, "spread": [0.25] * 3}
    known = {"labels": [str(number) for number in range(LABELS)], "most": BOXES}
    contents = {Image.stored("source"): measured, Boxes.stored(pair_of(made).name): known}
    task = task_of(made, {name: json.dumps(each).encode() for name, each in contents.items()}, made.model)
    torch.manual_seed(0)
    model, field = Model(task.configure(made.model)), cast(Boxes, task.target)
    pixels = torch.randn(made.train.batch, 3, SIDE, SIDE)
    _, y = field.moved({"source": _input(pixels)}, drawn_boxes(field, len(pixels)), np.random.default_rng(0))
    return Detector(model, pixels, field, y)


def plain_boxes() -> Boxes:
    """Boxes as plain DETR and YOLOS learn them."""
    keys = {"queries": QUERIES, "anchors": False, "denoise": 0, "criterion": "cross_entropy", "label": 1.0}
    return Boxes([str(number) for number in range(LABELS)], BOXES, read(BoxesConfig, keys))


def drawn_boxes(field: Boxes, batch: int) -> Input:
    """BOXES boxes of each picture."""
    draw = np.random.default_rng(0)
    labels = [draw.integers(0, LABELS, BOXES).astype(np.uint32) for _ in range(batch)]
    parts = [[draw.uniform(0.3, 0.7, (BOXES, 2)), draw.uniform(0.1, 0.4, (BOXES, 2))] for _ in labels]
    return field.collate({"labels": labels, "spans": [np.concatenate(each, 1) for each in parts]})


def _forward(detector: Detector) -> Callable[[], object]:
    model, x = detector.model, detector.x

    def run() -> object:
        model.eval()
        with torch.no_grad():
            if isinstance(model, saccade.Model):
                states = model.states(_input(x))
                return detector.field.told_of(model, states)
            return model(**_given(x))

    return run


def _step(detector: Detector) -> Callable[[], None]:
    """Forward, matching, loss and backward."""
    model, x, field, y = detector
    labels, spans = y.values["labels"], y.values["spans"].float()
    wanted = [{"class_labels": one, "boxes": other} for one, other in zip(labels, spans, strict=True)]

    def run() -> None:
        model.train()
        model.zero_grad(set_to_none=True)
        if isinstance(model, saccade.Model):
            states = model.states(_input(x), field.given(y))
            _total(field.loss(model, states, y, learning=True), field.counts(y)).backward()
        else:
            model(**_given(x), labels=wanted).loss.backward()

    return run


def _total(terms: Any, counts: dict[str, int]) -> Tensor:
    return torch.stack([each.sum * (each.weight / counts[name]) for name, each in terms.items()]).sum()


def _input(x: Tensor) -> Input:
    return Input({"pixels": x})


def _given(x: Tensor) -> dict[str, Tensor | None]:
    """What theirs reads: pictures, or features as vectors."""
    if x.shape[1] == 3:
        return {"pixel_values": x}
    return {"pixel_values": None, "inputs_embeds": x.flatten(2).mT}


def _case(name: str) -> str:
    batch, height, width = PIXELS[name]
    return f"{name}, {batch} x {height} x {width}"
