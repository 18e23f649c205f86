"""Folders of picture models: read with the size, mean and spread of their image processor, fine-tuned to own classes,
and written with one.
"""

from __future__ import annotations

import json

import numpy as np
import photos
import pytest
import torch
import transformers as hf
from PIL import Image as Pillow
from torch import nn

import saccade
from saccade import SaccadeError
from saccade.store.export import export
from saccade.zoo.processor import IMAGENET

VIT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 47, "image_size": 24}
NAMES = {"id2label": dict(enumerate("abc")), "label2id": {name: n for n, name in enumerate("abc")}}
SWIN = {"embed_dim": 12, "depths": [2, 1], "num_heads": [3, 6], "window_size": 3, "image_size": 24, "patch_size": 2}
DINOV2 = {key: value for key, value in VIT.items() if key != "intermediate_size"} | {"patch_size": 6, "mlp_ratio": 2}
MODELS = {
    "vit": lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT, patch_size=6, **NAMES)),
    "deit": lambda: hf.DeiTForImageClassification(hf.DeiTConfig(**VIT, patch_size=6, **NAMES)),
    "dinov2": lambda: hf.Dinov2ForImageClassification(hf.Dinov2Config(**DINOV2, **NAMES)),
    "swin": lambda: hf.SwinForImageClassification(hf.SwinConfig(**SWIN, **NAMES)),
}
MEAN, SPREAD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
NOISE = np.random.default_rng(1).integers(0, 256, (24, 24, 3)).astype(np.uint8)


def saved(name: str, folder, **processor) -> nn.Module:
    """A model whose every weight is random, in a folder; processor: what its preprocessor_config.json says."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for key, weight in model.named_parameters():
        nn.init.normal_(weight, std=0.1)
        weight.data += "norm" in key or "lambda" in key
    model.save_pretrained(folder)
    if processor:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return model


def shares(model: nn.Module, mean: list[float], spread: list[float]) -> list[float]:
    """Their probabilities of the picture, normalised by these."""
    pixels = torch.from_numpy(NOISE).permute(2, 0, 1) / 255
    pixels = (pixels - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(spread).view(3, 1, 1)
    with torch.no_grad():
        return model(pixels[None]).logits.softmax(1)[0].tolist()


def found(run: saccade.Run) -> list[float]:
    (result,) = run.predict(NOISE)
    assert result.text == max(result.probabilities, key=result.probabilities.get)
    return [result.probabilities[name] for name in sorted(result.probabilities)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "size",
    [
        {"size": {"height": 24, "width": 24}},
        {"size": 24},
        {"size": {"shortest_edge": 28}, "crop_size": {"height": 24, "width": 24}, "do_center_crop": True},
        {"size": {"shortest_edge": 24}, "crop_size": 20, "do_center_crop": False},
        {"size": 99, "do_resize": False, "rescale_factor": 1 / 255},
    ],
)
def test_pictures_are_read_as_the_image_processor_says(name, size, tmp_path):
    model = saved(name, tmp_path / "hf", **size, image_mean=MEAN, image_std=SPREAD)
    run = saccade.load(tmp_path / "hf")
    assert (run.task.x["source"].height, run.task.x["source"].width) == (24, 24)
    expected = shares(model, MEAN, SPREAD)
    np.testing.assert_allclose(found(run), expected, atol=1e-5)
    assert max(expected) - min(expected) > 0.01
    np.testing.assert_allclose(found(saccade.load(run.save(tmp_path / "run"))), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "mean", "spread", "processor"),
    [
        ("vit", [0.5] * 3, [0.5] * 3, {}),
        ("deit", *IMAGENET, {}),
        ("swin", *IMAGENET, {"do_rescale": True}),
        ("swin", [0.0] * 3, [1.0] * 3, {"do_normalize": False, "image_mean": MEAN}),
        ("dinov2", [0.3] * 3, [0.6] * 3, {"image_mean": 0.3, "image_std": 0.6}),
    ],
)
def test_what_the_folder_does_not_say_is_the_familys(name, mean, spread, processor, tmp_path):
    model = saved(name, tmp_path / "hf", **processor)
    np.testing.assert_allclose(found(saccade.load(tmp_path / "hf")), shares(model, mean, spread), atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_is_fine_tuned_to_own_classes_and_written_again(name, tmp_path, command):
    """In one command; `transformers` then answers as the run does, with the image processor that it finds there."""
    saved(name, tmp_path / "hf", size={"height": 24, "width": 24}, image_mean=MEAN, image_std=SPREAD)
    folder = photos.photos(tmp_path)
    options = [f"start={tmp_path / 'hf'}", "train.steps=3", "train.every=3", "train.batch=8", "train.warmup=1"]
    words = [word for each in options for word in ("-o", each)]
    done = command("train", "classify", "--files", folder, *words, "--run", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    run = saccade.load(tmp_path / "run")
    assert run.task.x["source"].measured == (24, 24, MEAN, SPREAD)
    assert run.task.target.names == ["left", "right"]
    assert run.recipe.x["source"]["size"] == 24
    before, after = (saccade.load(tmp_path / each).model.tensors() for each in ("hf", "run"))
    moved = [(after[key] - before[key]).detach().abs().max() for key in after if not key.startswith("head.")]
    assert 0 < max(moved) < 0.05, "it began with the weights of the folder"
    export(run, tmp_path / "out", name)
    theirs = hf.AutoModelForImageClassification.from_pretrained(tmp_path / "out").eval()
    assert theirs.config.id2label == {0: "left", 1: "right"}
    processor = hf.AutoImageProcessor.from_pretrained(tmp_path / "out")
    with torch.no_grad():
        logits = theirs(**processor(Pillow.fromarray(NOISE), return_tensors="pt")).logits
    np.testing.assert_allclose(found(run), logits.softmax(1)[0].tolist(), atol=1e-4)
    again = saccade.load(tmp_path / "out")
    assert again.task.x["source"].measured == run.task.x["source"].measured
    np.testing.assert_allclose(found(again), found(run), atol=1e-5)


def test_an_image_processor_is_kept_as_it_was(tmp_path):
    saved("vit", tmp_path / "hf", size=24, image_mean=MEAN, image_std=SPREAD, resample=3)
    export(saccade.load(tmp_path / "hf"), tmp_path / "out")
    one, other = ((tmp_path / each / "preprocessor_config.json").read_bytes() for each in ("hf", "out"))
    assert one == other
    assert not (tmp_path / "out" / "source.image.json").exists()


@pytest.mark.parametrize(
    ("processor", "why"),
    [
        ({"rescale_factor": 1.0}, "pixels that are not divided by 255 are not supported"),
        ({"do_rescale": False}, "pixels that are not divided by 255 are not supported"),
        ({"size": {"longest_edge": 24}}, "a size is a number of pixels, or height and width; got {'longest_edge': 24}"),
        ({"size": 0}, "a size is a number of pixels, or height and width; got 0"),
        ({"size": 24, "image_mean": [0.5, 0.5]}, "image_mean and image_std are 3 numbers each"),
        ({"size": 24, "image_std": [0.5, 0.5, 0]}, "image_std is above 0"),
        ({"size": 25}, "pictures of 25 x 25 pixels are not made of squares of 6"),
    ],
)
def test_a_wrong_image_processor_is_told_in_one_sentence(processor, why, tmp_path):
    saved("vit", tmp_path / "hf", **processor)
    with pytest.raises(SaccadeError) as problem:
        saccade.load(tmp_path / "hf").predict(NOISE)
    assert why in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_broken_image_processor_is_told(tmp_path):
    saved("vit", tmp_path / "hf", size=24)
    (tmp_path / "hf" / "preprocessor_config.json").write_text("[1, ")
    with pytest.raises(SaccadeError, match=r"preprocessor_config\.json holds no table of options in JSON"):
        saccade.load(tmp_path / "hf")
