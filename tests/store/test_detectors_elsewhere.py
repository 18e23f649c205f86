"""Folders of detectors: read with the names and the size of their config, fine-tuned to own boxes, and written again.

The oracle is `transformers`: its model, and what its image processor makes of the model's answer.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers as hf
from PIL import Image as Pillow
from torch import nn

import saccade
from saccade import SaccadeError
from saccade.store.export import export

NAMES = {0: "N/A", 1: "cat", 2: "N/A", 3: "dog"}  # as in the folders published for COCO: a name may come twice
SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 47, "patch_size": 6}
MEAN, SPREAD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
EDGES = {"size": {"shortest_edge": 31, "longest_edge": 61}, "image_mean": MEAN, "image_std": SPREAD}
NOISE = np.random.default_rng(1).integers(0, 256, (30, 42, 3)).astype(np.uint8)


def saved(folder, names=NAMES, **options) -> nn.Module:
    """A detector whose every weight is random, in a folder with an image processor as the published ones have it."""
    torch.manual_seed(0)
    labels = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    made = {"image_size": [31, 45], "num_detection_tokens": 13, "use_mid_position_embeddings": False, **options}
    model = hf.YolosForObjectDetection(hf.YolosConfig(**SIZES, **made, **labels)).eval()
    for key, weight in model.named_parameters():
        nn.init.normal_(weight, std=0.3)
        weight.data += "norm" in key
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps(EDGES | {"image_processor_type": "YolosImageProcessor"})
    )
    return model


def wanted(model: nn.Module, pixels: np.ndarray, size: tuple[int, int], folder, threshold: float = 0.0) -> dict:
    """What their image processor tells of a picture (H,W,3) that has the model's size, in pixels of (height, width)."""
    x = (torch.from_numpy(pixels).permute(2, 0, 1) / 255 - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(
        SPREAD
    ).view(3, 1, 1)
    processor = hf.AutoImageProcessor.from_pretrained(folder)
    with torch.no_grad():
        output = model(x[None])
    (found,) = processor.post_process_object_detection(output, threshold=threshold, target_sizes=[size])
    order = found["scores"].argsort(descending=True, stable=True)
    return {key: each[order].numpy() for key, each in found.items()}


def same(found: list[dict], theirs: dict, names, size: tuple[int, int], near: float = 1e-4) -> None:
    """Labels, scores and boxes in their order; ours end where the picture ends."""
    assert [each["label"] for each in found] == [names[number] for number in theirs["labels"].tolist()]
    np.testing.assert_allclose([each["score"] for each in found], theirs["scores"], atol=near)
    corners = theirs["boxes"].clip(0, np.tile(size[::-1], 2))
    boxes = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
    np.testing.assert_allclose([each["box"] for each in found], boxes, atol=near * max(size))


@pytest.mark.parametrize("mid", [False, True])
def test_boxes_are_theirs(mid, tmp_path):
    """In pixels of the picture, whose size the model's differs from; most are wrong, and all are compared."""
    options = {"image_size": [30, 42]} if mid else {}
    model = saved(tmp_path / "hf", use_mid_position_embeddings=mid, **options)
    run = saccade.load(tmp_path / "hf")
    assert run.task.x["source"].measured == (30, 42, MEAN, SPREAD)  # what makes no whole square is left out there, too
    assert run.task.x["source"].config.fit == "stretch"
    (exact,) = run.predict(NOISE, threshold=0.0)
    same(exact.value, wanted(model, NOISE, (30, 42), tmp_path / "hf"), NAMES, (30, 42))
    assert len(exact.value) == 13
    large = np.repeat(np.repeat(NOISE, 3, 0), 5, 1)  # made smaller again, it is nearly the same
    (result,) = run.predict(large, threshold=0.0)
    scaled = wanted(
        model,
        np.asarray(run.task.x["source"].encode([large])["pixels"][0]).transpose(1, 2, 0),
        (90, 210),
        tmp_path / "hf",
    )
    same(result.value, scaled, NAMES, (90, 210))
    middle = float(np.sort(scaled["scores"])[6])
    (fewer,) = run.predict(large, threshold=middle)
    assert [each["score"] for each in fewer.value] == [
        each["score"] for each in result.value if each["score"] >= middle - 1e-6
    ]


def test_names_that_are_not_there_are_numbers(tmp_path):
    saved(tmp_path / "hf", names={0: "a", 1: "b", 2: "c"})
    path = tmp_path / "hf" / "config.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "id2label": None, "num_labels": 3}))
    assert saccade.load(tmp_path / "hf").task.target.names == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_a_folder_is_written_again_as_it_was(tmp_path):
    saved(tmp_path / "hf")
    export(saccade.load(tmp_path / "hf"), tmp_path / "out")
    one, other = (json.loads((tmp_path / each / "config.json").read_text()) for each in ("hf", "out"))
    assert one["id2label"] == other["id2label"]
    assert other["image_size"] == [30, 42]  # whole squares: the same rows of the table
    kept = [(tmp_path / each / "preprocessor_config.json").read_bytes() for each in ("hf", "out")]
    assert kept[0] == kept[1]
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "config.json",
        "model.safetensors",
        "preprocessor_config.json",
    ]


def drawn(folder) -> None:
    """Pictures of red and green boxes, and a file of where they are."""
    draw = np.random.default_rng(0)
    images, boxes = [], []
    folder.mkdir()
    for number in range(40):
        pixels = np.full((40, 60, 3), 40, np.uint8)
        images.append({"id": number, "file_name": f"{number}.png", "width": 60, "height": 40})
        for _ in range(draw.integers(1, 4)):
            (wide, tall), colour = draw.integers(8, 20, 2).tolist(), int(draw.integers(2))
            left, top = int(draw.integers(0, 60 - wide)), int(draw.integers(0, 40 - tall))
            pixels[top : top + tall, left : left + wide, colour] = 250
            told = {
                "id": len(boxes) + 1,
                "image_id": number,
                "category_id": colour + 1,
                "bbox": [left, top, wide, tall],
            }
            boxes.append(told | {"area": wide * tall, "iscrowd": 0})
        Pillow.fromarray(pixels).save(folder / f"{number}.png")
    kinds = [{"id": 1, "name": "red"}, {"id": 2, "name": "green"}]
    content = {"images": images, "annotations": boxes, "categories": kinds}
    (folder / "boxes.json").write_text(json.dumps(content))


def test_a_folder_is_fine_tuned_to_own_boxes_and_written_again(tmp_path, command):
    """`transformers` then answers as the run does, with the image processor that it finds there."""
    saved(tmp_path / "hf")
    drawn(tmp_path / "own")
    options = [f"start={tmp_path / 'hf'}", "train.steps=3", "train.every=3", "train.batch=8", "train.warmup=1"]
    words = [word for each in options for word in ("-o", each)]
    done = command("train", "detect", "--files", tmp_path / "own" / "boxes.json", *words, "--run", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "new, not taken over: head.out.weight, head.out.bias" in done.stdout + done.stderr
    run = saccade.load(tmp_path / "run")
    kept = {"queries": 13, "anchors": False, "denoise": 0, "criterion": "cross_entropy"}
    assert {key: run.recipe.y[key] for key in kept} == kept
    assert (run.recipe.x["source"]["fit"], run.recipe.x["source"]["size"]) == ("stretch", [30, 42])
    assert run.task.x["source"].measured == (30, 42, MEAN, SPREAD)
    before, after = (saccade.load(tmp_path / each).model.tensors() for each in ("hf", "run"))
    moved = [(after[key] - before[key]).detach().abs().max() for key in after if not key.startswith("head.out")]
    assert 0 < max(moved) < 0.05, "it began with the weights of the folder"
    export(run, tmp_path / "out")
    theirs = hf.AutoModelForObjectDetection.from_pretrained(tmp_path / "out").eval()
    assert theirs.config.id2label == {0: "green", 1: "red"}
    (found,) = run.predict(NOISE, threshold=0.0)
    same(found.value, wanted(theirs, NOISE, (30, 42), tmp_path / "out"), theirs.config.id2label, (30, 42))
    processor = hf.AutoImageProcessor.from_pretrained(tmp_path / "out")
    pixels = processor(Pillow.fromarray(NOISE), return_tensors="pt")["pixel_values"]
    mine = run.task.x["source"].collate({k: np.stack(v) for k, v in run.task.x["source"].encode([NOISE]).items()})
    torch.testing.assert_close(mine.values["pixels"], pixels, rtol=1e-4, atol=1e-4)
    (again,) = saccade.load(tmp_path / "out").predict(NOISE, threshold=0.0)
    assert again.value == found.value


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"image_size": [30]}, "image_size = [30] should be one number of pixels, or height and width"),
        ({"num_labels": 4, "id2label": {}}, None),
    ],
)
def test_odd_folders(options, why, tmp_path):
    saved(tmp_path / "hf")
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **options}))
    if why is None:
        assert saccade.load(tmp_path / "hf").task.target.names[3] == "LABEL_3"
        return
    with pytest.raises(SaccadeError) as problem:
        saccade.load(tmp_path / "hf")
    assert why in str(problem.value)


def test_registers_have_no_places(command, tmp_path):
    """Anchors with an encoder alone are refused in one sentence."""
    options = ["model.decoder=0", "data.examples=20", "data.held=5"]
    words = [word for each in options for word in ("-o", each)]
    done = command("train", "shapes-detr", *words, "--run", tmp_path / "run")
    assert done.returncode != 0
    assert "anchors are the places of a decoder's queries, and this model is an encoder alone" in done.stderr
    assert "Traceback" not in done.stderr
