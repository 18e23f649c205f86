"""Models that read pictures: grids, class tokens, stages, windows, convolutions, pools, factors, by their formulas."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import saccade
from saccade import Input, ModelConfig, SaccadeError
from saccade.config import read
from saccade.model.cells import as_map, as_rows, places, squarish
from saccade.model.embed import EMBEDS, sides_of
from saccade.model.merge import PatchMerge
from saccade.model.model import Model

VIT = {
    "width": 24,
    "heads": 3,
    "encoder": 2,
    "embed": "patches(4, 3)",
    "position": "learned((5, 7), before=1)",
    "class_tokens": 1,
    "registers": 2,
    "scale": "channels(0.1)",
    "head": "label(5)",
}
SWIN = {
    "width": 12,
    "heads": 3,
    "encoder": [2, 3],
    "window": 3,
    "embed": "patches(2, 3)",
    "position": "offsets((3, 3))",
    "pool": "mean",
    "head": "label(5)",
}
NET = {
    "width": 12,
    "heads": 3,
    "encoder": [2, 3],
    "merge": "convolution(3)",
    "embed": "convolutions((7,), 3)",
    "encoder_mixer": ["convolution2d(3)", "attention", "convolution2d(3)", "attention", "convolution2d(3)"],
    "order": "residual",
    "feed": "none",
    "scale": "one(0.5)",
    "pool": "attention",
    "head": "label(5)",
}
TURNED = VIT | {"position": "rotary", "head_width": 8, "embed": "convolutions((7,), 3)", "pool": "first+mean"}
TAUGHT = VIT | {"position": "offsets((5, 7), extra=True)", "class_tokens": 2, "head": "taught(5)"}
MODELS = {"vit": VIT, "swin": SWIN, "net": NET, "turned": TURNED, "taught": TAUGHT}


def built(name: str, **changes: object) -> Model:
    torch.manual_seed(0)
    return Model(read(ModelConfig, {**MODELS[name], **changes})).double().eval()


def pixels(rows: int = 3, height: int = 20, width: int = 28) -> Tensor:
    return torch.randn(rows, 3, height, width, dtype=torch.float64, generator=torch.manual_seed(7))


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_batched_is_alone_and_watching_changes_nothing(name):
    model, x = built(name), pixels()
    said = model(Input({"pixels": x}))
    assert said.shape == (3, 5)
    for row in range(3):
        close(model(Input({"pixels": x[row : row + 1]})), said[row : row + 1])
    with saccade.watch(model) as seen:
        assert torch.equal(model(Input({"pixels": x})), said)
    for layer in seen.layers:
        close(seen.weights(layer).sum(-1), torch.ones((), dtype=torch.float64).expand(seen.weights(layer).shape[:3]))
        assert seen.call(layer).grid.places.shape[1] == seen.weights(layer).shape[-1]


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_learns_and_a_configuration_is_written_as_it_was_read(name):
    model = built(name).train()
    model(Input({"pixels": pixels()})).square().sum().backward()
    assert [each for each, weight in model.named_parameters() if weight.grad is None] == []
    assert read(ModelConfig, model.config.model_dump()) == model.config


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [(28, 20), (12, 44)])
def test_pictures_of_another_size_are_read(name, size):
    assert built(name)(Input({"pixels": pixels(2, *size)})).shape == (2, 5)


def test_a_grid_is_what_the_embed_makes():
    for text in (
        "patches(4, 3)",
        "convolutions((5,), 3)",
        "convolutions((5, 6), 3, 3, (1, 2, 2))",
        "convolutions((), 3, 5)",
        "convolutions((5, 6), 3, 3, (2, (2, 1), (1, 2)))",
    ):
        embed = saccade.spec.read(text, EMBEDS, "embed", config=read(ModelConfig, VIT)).double()
        rows, columns = sides_of(text, 20, 28)
        assert embed({"pixels": pixels()}).shape == (3, rows * columns, 24)
        assert embed.sides(20, 28) == (rows, columns)
        assert embed(embed.sample(2, 21)).shape[1] == 21 if "patches" in text else True
    assert squarish(196) == (14, 14)
    assert squarish(13) == (1, 13)


def stem(text):
    return saccade.spec.read(text, EMBEDS, "embed", config=read(ModelConfig, VIT)).double()


def test_a_pool_looks_along_the_side_it_halves_alone():
    """Two convolutions see two columns to each side; pools of the height add none."""
    embed, x = stem("convolutions((5,), 3, 3, ((2, 1), (2, 1)))"), pixels(1, 8, 13)
    changed = x.clone()
    changed[:, :, :, 6] += 5
    moved = (embed({"pixels": x}) - embed({"pixels": changed})).abs().amax(2).view(2, 13).amax(0) > 1e-9
    assert moved.tolist() == [4 <= column <= 8 for column in range(13)]


def test_a_normalised_stem_sees_no_contrast():
    with torch.no_grad():
        plain, normed = (stem(f"convolutions((5,), 3, norm={norm})") for norm in (False, True))
        x = pixels()
        assert torch.allclose(normed({"pixels": 3 * x}), normed({"pixels": x}), atol=1e-3)
        close(normed({"pixels": x[:1]}), normed({"pixels": x})[:1])
        assert not torch.allclose(plain({"pixels": 3 * x}), plain({"pixels": x}), atol=0.1)
    assert {each.shape for each in normed.norms.parameters()} == {(5,), (24,)}


def test_maps_and_rows_are_each_other():
    x = torch.randn(2, 15, 4)
    assert torch.equal(as_rows(as_map(x, (3, 5))), x)
    assert as_map(x, (3, 5))[1, 2, 1, 4] == x[1, 1 * 5 + 4, 2]
    with pytest.raises(SaccadeError, match="got 15 vectors for 4 x 4 cells"):
        as_map(x, (4, 4))


def test_a_stem_by_definition():
    model = built("net")
    x, (first, second) = pixels(), model.embed.part.filters
    y = F.max_pool2d(F.relu(F.conv2d(x, first.weight, first.bias, padding=1)), 3, 2, 1)
    y = F.max_pool2d(F.relu(F.conv2d(y, second.weight, second.bias, padding=1)), 3, 2, 1)
    close(model.embed({"pixels": x}), y.flatten(2).mT)


def test_class_tokens_and_registers_stand_before_the_picture():
    model, x = built("vit"), pixels()
    read = model.embed.read(Input({"pixels": x}))
    assert model.embed.named == ["class", "register 1", "register 2"]
    assert read.places[0, :4].tolist() == [[-1, -1], [-1, -1], [-1, -1], [0, 0]]
    table, extras = model.embed.position.weight, model.embed.extras
    close(read.vectors[:, 0], (extras[0] + table[0]).expand(3, -1))
    close(read.vectors[:, 1], extras[1].expand(3, -1)), "a register has no row in the table"
    close(read.vectors[:, 3], model.embed.part({"pixels": x})[:, 0] + table[1])
    close(model(Input({"pixels": x})), model.head.out(model.encode(Input({"pixels": x}))[:, 0]))


def test_a_class_token_before_a_text_with_padding():
    """What stands behind it is read as without it: padded = alone."""
    config = {"vocab": 11, "width": 12, "heads": 3, "encoder": 2, "position": "learned(9, before=1)", "class_tokens": 1}
    torch.manual_seed(0)
    model = Model(read(ModelConfig, {**config, "head": "label(2)"})).double().eval()
    tokens = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 0, 0, 0]])
    said = model(Input({"tokens": tokens}, [5, 2]))
    close(said[1:], model(Input({"tokens": tokens[1:, :2]})))
    with pytest.raises(SaccadeError, match="put the padding on the right"):
        model(Input({"tokens": tokens}, [5, 2], side="left"))


def test_a_table_is_interpolated_for_another_grid():
    model = built("vit")
    table = model.embed.position.weight[1:].view(1, 5, 7, 24).permute(0, 3, 1, 2)
    wanted = F.interpolate(table.float(), size=(4, 9), mode="bicubic").double().flatten(2).mT
    found = model.embed.position.on_input(torch.zeros(1, 36, 24, dtype=torch.float64), places((4, 9), "cpu"), (4, 9))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    same = model.embed.position.on_input(torch.zeros(1, 35, 24, dtype=torch.float64), places((5, 7), "cpu"), (5, 7))
    close(same[0], model.embed.position.weight[1:])


def test_stages_double_the_width_and_halve_the_sides():
    model = built("swin")
    assert model.encode(Input({"pixels": pixels()})).shape == (3, 5 * 7, 24)
    assert [block.attention.heads for block in model.encoder.blocks] == [3, 3, 6, 6, 6]
    assert model.head.out.in_features == 24


def test_merging_by_definition():
    merge = PatchMerge(config=read(ModelConfig, {**SWIN, "head": None})).double()
    x = torch.randn(2, 3 * 5, 12, dtype=torch.float64)
    found, sides = merge(x, (3, 5))
    assert sides == (2, 3)
    picture = torch.zeros(2, 4, 6, 12, dtype=torch.float64)
    picture[:, :3, :5] = x.view(2, 3, 5, 12)
    parts = [picture[:, row::2, column::2] for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
    close(found, merge.out(merge.norm(torch.cat(parts, -1))).flatten(1, 2))


def test_windows_are_shifted_in_every_other_layer():
    model = built("swin")
    with saccade.watch(model) as seen:
        model(Input({"pixels": pixels()}))
    masks = [str(seen.call(layer).meaning.mask) for layer in seen.layers]
    assert masks == [
        "windows(10, 14, 3, 0)",
        "windows(10, 14, 3, 1)",
        "windows(5, 7, 3, 0)",
        "windows(5, 7, 3, 1)",
        "windows(5, 7, 3, 0)",
    ]


def test_windows_as_large_as_the_picture_hide_nothing():
    model = built("swin", window=14)
    with saccade.watch(model) as seen:
        model(Input({"pixels": pixels(1, 20, 20)}))
    assert {seen.call(layer).meaning.mask for layer in seen.layers} == {None}


def test_attention_in_a_convolutional_net_as_the_lecture_draws_it():
    """A map of features; 1 x 1 products for query, key and value; softmax over all places; one for the output; the
    input is added, the output times a learned factor.
    """
    model = built("net")
    block = model.encoder.blocks[1]
    x = torch.randn(2, 12, 5, 7, dtype=torch.float64)
    attention = block.attention

    def product(layer: torch.nn.Linear, y: Tensor) -> Tensor:
        return F.conv2d(y, layer.weight[:, :, None, None], layer.bias)

    q, k, v = (
        product(layer, x).flatten(2).unflatten(1, (3, 4)) for layer in (attention.query, attention.key, attention.value)
    )
    weights = torch.einsum("bhdi,bhdj->bhij", q, k).div(4**0.5).softmax(-1)
    found = torch.einsum("bhij,bhdj->bhdi", weights, v).flatten(1, 2).unflatten(2, (5, 7))
    wanted = x + block.attention_scale.weight * product(attention.out, found)
    close(as_map(block(as_rows(x), grid=(5, 7)), (5, 7)), wanted)
    plain = model.encoder.blocks[0]
    filtered = F.relu(F.conv2d(x, plain.mixer.filter.weight, plain.mixer.filter.bias, padding=1))
    close(as_map(plain(as_rows(x), grid=(5, 7)), (5, 7)), x + plain.mixer_scale.weight * filtered)


def test_pools_by_definition():
    states = torch.randn(2, 9, 24, dtype=torch.float64)
    assert torch.equal(built("vit").pooling(states), states[:, 0])
    close(built("vit", pool="mean").pooling(states), states[:, 3:].mean(1))
    both = built("turned").pooling(states)
    close(both, torch.cat((states[:, 0], states[:, 3:].mean(1)), 1))
    pool = built("vit", pool="attention").pooling
    weights = (states @ pool.weigh.weight[0] + pool.weigh.bias).softmax(1)
    close(pool(states), (weights.unsqueeze(2) * states).sum(1))
    padded = pool(states, saccade.padding([9, 4]))
    close(padded[1:], pool(states[1:, :4]))


def test_a_taught_head_is_the_mean_of_two():
    model, x = built("taught"), Input({"pixels": pixels()})
    states = model.encode(x)
    close(model(x), (model.head.out(states[:, 0]) + model.head.teacher(states[:, 1])) / 2)


def test_some_examples_skip_a_part_while_training():
    """On average the output is the same; at use nobody skips anything; the first layer never does."""
    model = built("vit", path_dropout=0.5)
    assert [block.path_dropout for block in model.encoder.blocks] == [0.0, 0.5]
    block, x = model.encoder.blocks[1].train(), torch.ones(4000, 1, 24, dtype=torch.float64)
    added = block.added(x, "feed")
    kept = added.abs().sum((1, 2)) > 0
    assert 0.45 < kept.double().mean() < 0.55
    close(added[kept], 2 * block.feed_scale(x[kept]))
    assert torch.equal(block.eval().added(x, "feed"), block.feed_scale(x))


WRONG = {
    "stages that are no encoder's": ({"decoder": 2, "width": 4, "heads": 1, "window": 3}, "give an encoder"),
    "a class token beside windows": (SWIN | {"class_tokens": 1}, "leave out class_tokens and registers"),
    "a class token of several inputs": (
        VIT | {"embed": {"a": "tokens", "b": "patches(4)"}, "vocab": 9},
        "class tokens and registers stand before one input",
    ),
    "a mask beside windows": (SWIN | {"mask": "window(3)"}, "leave out mask, pattern and summary"),
    "a merge that is none": (SWIN | {"merge": "patch"}, "no merge is called 'patch'; did you mean 'patches'"),
    "a factor that is none": (VIT | {"scale": "channel(1)"}, "no scale is called 'channel'"),
    "two class tokens too few": (TAUGHT | {"class_tokens": 1}, "the head 'taught' reads two class tokens"),
    "an even kernel": (NET | {"encoder_mixer": ["convolution2d(4)"]}, "the side of a kernel is odd"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_models_are_told_in_one_sentence(case):
    values, told = WRONG[case]
    with pytest.raises(SaccadeError, match=told):
        Model(read(ModelConfig, values))


def test_stages_without_a_picture():
    model = Model(read(ModelConfig, SWIN | {"embed": "tokens", "vocab": 7, "head": None}))
    with pytest.raises(SaccadeError, match="whose cells lie on a grid: give one as the input"):
        model(torch.zeros(1, 4, dtype=torch.long))
