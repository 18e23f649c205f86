"""Weights of picture models in and out: every family against `transformers` with random weights at small sizes."""

from __future__ import annotations

import copy
import json

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.zoo.families import FAMILIES, OF_PICTURES
from saccade.zoo.fit import exportable
from saccade.zoo.folder import read_folder, write_folder

SIZE, OTHER = (30, 30), (42, 18)  # pixels of the pictures a model is made for, and of some others
VIT = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 47,
    "image_size": 30,
    "patch_size": 6,
    "num_labels": 5,
}
DINOV2 = {key: value for key, value in VIT.items() if key != "intermediate_size"} | {"mlp_ratio": 2}
SWIN = {
    "embed_dim": 12,
    "depths": [2, 1, 3],
    "num_heads": [3, 6, 12],
    "window_size": 3,
    "image_size": 24,
    "patch_size": 2,
    "mlp_ratio": 2.0,
    "num_labels": 5,
}
YOLOS = VIT | {"image_size": [30, 42], "num_detection_tokens": 7}
MODELS = {
    "vit": lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT)),
    "vit body": lambda: hf.ViTModel(hf.ViTConfig(**VIT | {"hidden_act": "relu", "layer_norm_eps": 1e-3})),
    "vit grey": lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT, num_channels=1)),
    "deit": lambda: hf.DeiTForImageClassification(hf.DeiTConfig(**VIT)),
    "deit teacher": lambda: hf.DeiTForImageClassificationWithTeacher(hf.DeiTConfig(**VIT)),
    "deit body": lambda: hf.DeiTModel(hf.DeiTConfig(**VIT)),
    "dinov2": lambda: hf.Dinov2ForImageClassification(hf.Dinov2Config(**DINOV2)),
    "dinov2 gated": lambda: hf.Dinov2Model(hf.Dinov2Config(**DINOV2, use_swiglu_ffn=True, layerscale_value=0.1)),
    "dinov2 registers": lambda: hf.Dinov2WithRegistersForImageClassification(
        hf.Dinov2WithRegistersConfig(**DINOV2, num_register_tokens=3)
    ),
    "dinov2 registers body": lambda: hf.Dinov2WithRegistersModel(hf.Dinov2WithRegistersConfig(**DINOV2)),
    "swin": lambda: hf.SwinForImageClassification(hf.SwinConfig(**SWIN)),
    "swin body": lambda: hf.SwinModel(
        hf.SwinConfig(**SWIN | {"depths": [2, 2], "num_heads": [2, 4], "window_size": 4})
    ),
    "yolos": lambda: hf.YolosForObjectDetection(hf.YolosConfig(**YOLOS)),
    "yolos once": lambda: hf.YolosForObjectDetection(hf.YolosConfig(**YOLOS, use_mid_position_embeddings=False)),
    "yolos body": lambda: hf.YolosModel(hf.YolosConfig(**YOLOS)),
}
TEACHING = "embeddings.mask_token"  # which only pretraining reads
BICUBIC = 1e-6  # DINOv2 resizes its table in float32, whatever its weights are


def reference(name: str) -> nn.Module:
    """A model of theirs whose every weight is random, norms and biases included."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for key, weight in model.named_parameters():
        nn.init.normal_(weight, std=0.1)
        if "norm" in key or "lambda" in key:
            weight.data += 1
    return model


@pytest.fixture(scope="module", params=list(MODELS))
def pair(request, tmp_path_factory):
    """Their model, the folder it saved, and its name."""
    theirs = reference(request.param)
    path = tmp_path_factory.mktemp("hf") / "model"
    theirs.save_pretrained(path)
    return request.param, theirs, path


def pictures(theirs: nn.Module, size: tuple[int, int], dtype: torch.dtype = torch.float32) -> Tensor:
    shape = 2, theirs.config.num_channels, *size
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def sizes(name: str) -> tuple[tuple[int, int], ...]:
    """Two sizes; of Swin such that every stage is made of whole windows: others are filled up differently there."""
    if name.startswith("swin"):
        return ((24, 24), (48, 72)) if name == "swin" else ((32, 32), (16, 48))
    return SIZE, OTHER


def call(name: str, theirs: nn.Module, x: Tensor) -> Tensor:
    """Their answer; ViT and DeiT are asked to resize their table, which the others do anyway or do not have."""
    asked = {"interpolate_pos_encoding": True} if name.startswith(("vit", "deit")) else {}
    with torch.no_grad():
        output = theirs(x, **asked)
    if "logits" in output:
        return output.logits
    states, last = output.last_hidden_state, getattr(theirs.config, "num_detection_tokens", 0)
    return torch.cat((states[:, :1], states[:, states.shape[1] - last :], states[:, 1 : states.shape[1] - last]), 1)


def ours(model: saccade.Model, x: Tensor) -> Tensor:
    """The answer; of a model that tells of every layer, that of the last."""
    with torch.no_grad():
        found = model(saccade.Input({"pixels": x}))
    return found[-1] if found.dim() == 4 else found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_answers_are_theirs(pair, dtype):
    name, _, path = pair
    model = read_folder(path, dtype=dtype).model
    for size in sizes(name):
        theirs = copy.deepcopy(pair[1]).to(dtype)  # anew: their Swin forgets its shift after a small picture
        resized = name.startswith("dinov2") and size != SIZE
        near = 1e-4 if dtype == torch.float32 else BICUBIC if resized else 1e-9
        x = pictures(theirs, size, dtype)
        expected = call(name, theirs, x)
        torch.testing.assert_close(ours(model, x), expected, rtol=near, atol=near)
        assert (expected[0] - expected[1]).abs().max() > 1e-3  # the answer depends on the picture


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_places_are_theirs(pair, dtype):
    name, theirs, path = pair
    if not name.startswith("yolos") or "body" in name:
        return
    model, theirs = read_folder(path, dtype=dtype).model, copy.deepcopy(theirs).to(dtype)
    for size in SIZE, OTHER, (30, 42):
        x = pictures(theirs, size, dtype)
        with torch.no_grad():
            states = model.states(saccade.Input({"pixels": x}))
            found, expected = model.say(states, "spans"), theirs(x).pred_boxes
        near = 1e-4 if dtype == torch.float32 else 1e-9
        torch.testing.assert_close(found, expected[None], rtol=near, atol=near)


def test_the_pooled_state_is_theirs(pair):
    """What stands for a picture where there is no head: ViT's pooler, DINOv2's class token, Swin's mean."""
    name, theirs, path = pair
    if "body" not in name and "gated" not in name:
        return
    model, x = read_folder(path).model, pictures(theirs, sizes(name)[0])
    with torch.no_grad():
        expected = theirs(x).pooler_output
        found = model.pool(model.encode(saccade.Input({"pixels": x})))[:, : expected.shape[1]]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_round_trip_is_bit_for_bit(pair, tmp_path):
    name, theirs, path = pair
    folder = read_folder(path)
    write_folder(tmp_path / "out", folder.model, folder.family.name, folder.options)
    before, after = load_file(path / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    differing = {key for key in before if key not in after or not torch.equal(before[key], after[key])}
    assert all(key.endswith(TEACHING) for key in differing)
    again, told = type(theirs).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert (list(told["missing_keys"]), list(told["unexpected_keys"])) == ([], [])
    x = pictures(theirs, sizes(name)[0])
    assert torch.equal(call(name, again.eval(), x), call(name, theirs, x))
    write_folder(tmp_path / "alone", folder.model, folder.family.name)
    assert read_folder(tmp_path / "alone").model.config == folder.model.config
    assert exportable(folder.model.config) in (f"as {folder.family.name}", "as vit")


def test_every_family_is_here():
    assert {each().config.model_type for each in MODELS.values()} == {each.name for each in OF_PICTURES}


@pytest.mark.parametrize("pool", ["first", "mean"])
def test_a_model_made_here_is_opened_there(pool, tmp_path):
    """Without biases in its products, which are zeros there; its table belongs to the class tokens."""
    keys = {"width": 24, "heads": 3, "encoder": 2, "bias": False, "pool": pool, "head": "label(4)"}
    config = ModelConfig(**keys, embed="patches(6, 3)", class_tokens=1, position="learned((5, 5), before=1)")
    if pool == "mean":
        assert exportable(config) == "not at Hugging Face: nearest is vit; pool is 'mean' here and 'first' there"
        return
    torch.manual_seed(0)
    model = saccade.build(config).eval()
    write_folder(tmp_path / "out", model, "vit")
    theirs = hf.ViTForImageClassification.from_pretrained(tmp_path / "out").eval()
    x = pictures(theirs, SIZE)
    torch.testing.assert_close(call("vit", theirs, x), ours(model, x), rtol=1e-5, atol=1e-5)


def test_filled_windows_are_looked_at_by_nobody(tmp_path):
    """Where a grid is not made of whole windows, Swin fills it up, and there the real cells look at the filling; here
    they do not, as the mask `windows` says, computed densely.
    """
    theirs = reference("swin")
    theirs.save_pretrained(tmp_path / "in")
    model = read_folder(tmp_path / "in", dtype=torch.float64).model
    x = pictures(theirs, (28, 20), torch.float64)  # 14 x 10 cells in windows of 3
    found = ours(model, x)
    for block in model.encoder.blocks:
        block.attention.kernel = saccade.attend.kernel.as_kernel("plain")
    torch.testing.assert_close(ours(model, x), found, rtol=1e-9, atol=1e-9)
    assert (call("swin", theirs.double(), x) - found).abs().max() > 1e-4


def spoil(path, **changes) -> None:
    options = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(options | changes))


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("vit", {"qkv_bias": False}, "qkv_bias = False of vit is not supported"),
        ("vit", {"patch_size": [6, 5]}, r"patch_size = \[6, 5\] is not supported: patches are squares"),
        ("vit", {"patch_size": "six"}, "patch_size = 'six' should be one number of pixels"),
        ("vit", {"image_size": 31}, "31 x 31 pixels is not made of squares of 6"),
        ("vit", {"image_size": 36}, r"embed.position.weight the shape \(26, 24\); the model has \(37, 24\)"),
        ("vit body", {"pooler_output_size": 7}, "pooler_output_size that is not hidden_size"),
        ("vit", {"head_dim": 5}, "head_dim = 5 is no option of vit"),
        ("vit", {"architectures": ["ViTForMaskedImageModeling"]}, "'ViTForMaskedImageModeling' is not supported"),
        ("vit", {"model_type": "deit", "architectures": ["DeiTModel"]}, "lacks the tensor 'embeddings.patch_emb"),
        ("dinov2", {"model_type": "dinov2_with_registers"}, "'Dinov2ForImageClassification' is not supported"),
        ("yolos", {"qkv_bias": False}, "qkv_bias = False of yolos is not supported"),
        ("yolos", {"use_mid_position_embeddings": False}, "does not: 'vit.encoder.mid_position_embeddings'"),
        ("yolos", {"image_size": [30, 48]}, r"embed.position.weight the shape \(43, 24\); the model has \(48, 24\)"),
        ("yolos", {"num_detection_tokens": 5}, r"gives embed.extras the shape \(8, 24\); the model has \(6, 24\)"),
        ("yolos", {"two_stage": True}, "two_stage = True is no option of yolos"),
        ("yolos", {"id2label": {"0": "cat"}}, r"gives head.out.weight the shape \(6, 24\); the model has \(2, 24\)"),
        ("swin", {"num_heads": [3, 3, 3]}, "heads double from stage to stage"),
        ("swin", {"mlp_ratio": 2.05}, "mlp_ratio = 2.05 does not double"),
        ("swin", {"use_absolute_embeddings": True}, "use_absolute_embeddings = True of swin is not supported"),
        ("swin", {"layer_norm_eps": 1e-3}, "layer_norm_eps = 0.001 of swin is not supported"),
        ("swin", {"depths": None}, "depths = None should be a list of whole numbers, one for each stage"),
        ("swin", {"depths": [2, 4]}, r"num_heads = \[3, 6, 12\] and depths = \[2, 4\]"),
    ],
)
def test_what_is_not_supported_is_told(name, changes, why, tmp_path):
    reference(name).save_pretrained(tmp_path / "in")
    spoil(tmp_path / "in", **changes)
    with pytest.raises(SaccadeError, match=why) as problem:
        read_folder(tmp_path / "in")
    assert "\n" not in str(problem.value)


def test_tensors_that_carry_nothing_are_ignored(tmp_path):
    """Older Swin folders store which row of the table belongs to which pair; a published ViT keeps its pooler."""
    extra = {
        "swin": {"swin.encoder.layers.0.blocks.1.attention.self.relative_position_index": torch.zeros(9, 9)},
        "vit": {"vit.pooler.dense.weight": torch.zeros(24, 24)},
    }
    for name, more in extra.items():
        path = tmp_path / name
        reference(name).save_pretrained(path)
        tensors = load_file(path / "model.safetensors")
        save_file(tensors | more, path / "model.safetensors", metadata={"format": "pt"})
        read_folder(path)
        save_file(tensors | {"vit.more": torch.zeros(1)}, path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(SaccadeError, match=r"has a tensor that this model does not: 'vit\.more'"):
            read_folder(path)


def test_families_of_texts_refuse_pictures():
    config = ModelConfig(width=24, heads=3, encoder=2, embed="patches(6, 3)", position="sinusoid", head="label(4)")
    told = exportable(config)
    assert told.startswith("not at Hugging Face: nearest is vit; ")
    assert "position is 'sinusoid' here and 'learned' there" in told
    with pytest.raises(SaccadeError, match="bert cannot express this model"):
        write_folder("nowhere", saccade.build(config), "bert")
    assert set(FAMILIES) >= {each.name for each in OF_PICTURES}
