"""XLNet's own ways against `transformers`: segments, memory, two streams. And Transformer-XL's recurrence."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers as hf
from texts import texts
from torch import Tensor, nn

import saccade
from saccade.zoo.folder import read_folder

OPTIONS = {"vocab_size": 59, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 47, "mem_len": 8}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    torch.manual_seed(0)
    theirs = hf.XLNetLMHeadModel(hf.XLNetConfig(**OPTIONS)).eval()
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.2)
    path = tmp_path_factory.mktemp("xlnet") / "model"
    theirs.save_pretrained(path)
    return theirs.double(), read_folder(path, dtype=torch.float64).model


def tokens(seed: int = 0) -> Tensor:
    return torch.randint(3, 57, (2, 7), generator=torch.Generator().manual_seed(seed))


def segments() -> Tensor:
    return torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1]])


def same(a: Tensor, b: Tensor, tolerance: float = 1e-8) -> None:
    """Their sinusoids compute in float32, so 1e-9 is out of reach."""
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@torch.no_grad()
def test_segments(pair):
    theirs, ours = pair
    same(ours(texts(tokens(), segments=segments())), theirs(tokens(), token_type_ids=segments()).logits)
    assert not torch.allclose(ours(texts(tokens(), segments=segments())), ours(tokens()))


@torch.no_grad()
def test_memory_of_earlier_segments(pair):
    """Three segments of 7 with a memory of 8: it fills, then slides."""
    theirs, ours = pair
    memory, mems = ours.memory(), None
    for seed in range(3):
        output = theirs(tokens(seed), mems=mems, use_mems=True)
        mems = output.mems
        same(ours(tokens(seed), memory=memory), output.logits)
        for number, state in memory.states.items():
            same(state.transpose(0, 1), mems[number])


@torch.no_grad()
@pytest.mark.parametrize("with_segments", [False, True])
def test_two_streams(pair, with_segments):
    """Each place is predicted from those before it in the permutation; with a memory too."""
    theirs, ours = (copy.deepcopy(each).float() for each in pair)  # their two streams mix types in float64
    permutations = torch.stack((torch.randperm(7), torch.randperm(7)))
    hidden = (~saccade.order(permutations, strict=True)(7)[:, 0]).float()
    mapping = torch.eye(7).expand(2, 7, 7)
    kinds = {"token_type_ids": segments()} if with_segments else {}
    own = texts(tokens(), segments=segments() if with_segments else None)
    expected = theirs(tokens(), perm_mask=hidden, target_mapping=mapping, **kinds).logits
    found = ours.permuted(own, permutations)
    rest = permutations[:, 1:]  # the first sees nothing: zeros here, all places alike there
    for b in range(2):
        same(found[b, rest[b]], expected[b, rest[b]], 1e-4)
    memory = ours.memory()
    mems = theirs(tokens(1), use_mems=True).mems
    ours(tokens(1), memory=memory)
    expected = theirs(tokens(), perm_mask=hidden, target_mapping=mapping, mems=mems, **kinds).logits
    same(ours.permuted(own, permutations, memory=memory), expected, 1e-4)


@torch.no_grad()
def test_a_place_never_sees_itself_or_what_comes_later(pair):
    _, ours = pair
    permutation = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    before = ours.permuted(tokens(), permutation)
    for rank, place in enumerate(permutation.tolist()):
        changed = tokens()
        changed[:, place] = (changed[:, place] + 11) % 59
        after = ours.permuted(changed, permutation)
        early = permutation[: rank + 1]
        assert torch.equal(before[:, early], after[:, early])
        if rank < 6:
            assert not torch.allclose(before[:, permutation[rank + 1 :]], after[:, permutation[rank + 1 :]])


def test_transformer_xl_recurs():
    """Segments in a row with a memory that holds them all are one long sequence, where no gradient is asked for."""
    torch.manual_seed(0)
    model = saccade.build("transformer-xl", vocab=59, width=24, heads=3, decoder=2, memory=21).double().eval()
    for name, weight in model.named_parameters():
        if "norm" not in name:
            nn.init.normal_(weight, std=0.2)
    x = torch.cat((tokens(0), tokens(1), tokens(2)), 1)
    whole = model(x)
    memory = model.memory()
    same(torch.cat([model(part, memory=memory) for part in x.split(7, 1)], 1), whole)
    memory = model.memory()
    model(x[:, :7], memory=memory)
    loss = model(x[:, 7:14], memory=memory).square().sum()
    loss.backward()
    assert all(not state.requires_grad for state in memory.states.values())
    with pytest.raises(saccade.SaccadeError, match="keeps no memory"):
        saccade.build("gpt2", vocab=59, width=24, heads=3, decoder=1).memory()
    with pytest.raises(saccade.SaccadeError, match="a memory keeps whole segments"):
        model(texts(x[:, 7:14], [5, 7]), memory=memory)
    with pytest.raises(saccade.SaccadeError, match="streams = 2"):
        model.permuted(x, torch.arange(21))
