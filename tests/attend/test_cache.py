"""A cache whose rows differ in length, join, leave, rewind and forget is as if each row were alone."""

from __future__ import annotations

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade import Attention, SaccadeError
from saccade.attend import cache as room
from saccade.attend.cache import Cache
from saccade.model.mixer import as_mixer

OPTIONS = [
    {"mask": "causal"},
    {"mask": "causal & window(3)", "position": "rotary"},
    {"mask": "causal & window(3)", "position": "alibi", "kv_heads": 2},
    {"mask": "causal | prefix(2)"},
    {"mask": None, "score": "cosine"},
    {"mask": "causal", "score": "feature(favor, 10, seed=1)", "normaliser": "sum", "position": "rotary"},
    {"mask": "causal", "score": "feature(elu)", "normaliser": "sum", "kv_heads": 2},
]
MIXERS = [{"mixer": kind} for kind in ("lstm", "gru", "gated", "convolution(3)")]


def layer(mixer: str = "", **options) -> torch.nn.Module:
    torch.manual_seed(0)
    if mixer:
        return as_mixer(mixer, width=24, causal=True, number=0).double()
    return saccade.Attention(24, 6, **options).double()


def empty(ours: torch.nn.Module) -> Cache:
    return Cache(ours.window, getattr(ours, "fold", None))


def alone(ours: torch.nn.Module, x: torch.Tensor, steps: list[int]) -> torch.Tensor:
    """The same parts of one row, through a cache of its own that forgets nothing."""
    cache = Cache()
    return torch.cat([ours(part, cache=cache) for part in x[None].split(steps, 1)], 1)[0]


@pytest.mark.parametrize("options", OPTIONS + MIXERS, ids=str)
@examples(25)
@given(data=st.data())
def test_rows_live_as_if_alone(options, data):
    """Rows step together, join, leave, move and are taken back; each is checked against a life of its own."""
    ours = layer(**options)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    grow, slack = data.draw(st.sampled_from([(2, 1), (5, 3), (256, 64)]))
    before = room.BLOCK, room.FORGET, room.FOLD, room.SLACK
    room.BLOCK, room.FORGET, room.FOLD, room.SLACK = grow, grow, grow, slack
    try:
        cache, lives = empty(ours), []
        for _ in range(data.draw(st.integers(1, 12))):
            do = data.draw(st.sampled_from(["step", "step", "join", "leave", "back", "take"])) if lives else "join"
            with torch.no_grad():
                if do == "join":
                    count, T = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 4))
                    x = torch.randn(count, T, 24, generator=generator, dtype=torch.float64)
                    new = empty(ours)
                    ours(x, cache=new)
                    lives += [(each, [T]) for each in x]
                    if cache.rows:
                        cache.join(new)
                    else:
                        cache = new
                elif do == "step":
                    T = data.draw(st.integers(1, 3))
                    x = torch.randn(len(lives), T, 24, generator=generator, dtype=torch.float64)
                    found = ours(x, cache=cache)
                    lives = [(torch.cat((old, now)), [*steps, T]) for (old, steps), now in zip(lives, x, strict=True)]
                    for (whole, steps), row in zip(lives, found, strict=True):
                        torch.testing.assert_close(row, alone(ours, whole, steps)[-T:], rtol=1e-9, atol=1e-9)
                elif do == "leave":
                    rows = data.draw(st.lists(st.integers(0, len(lives) - 1), min_size=1, max_size=4))
                    cache.reorder(torch.tensor(rows))
                    lives = [lives[row] for row in rows]
                elif do == "take":
                    cache = cache.take(torch.arange(len(lives)))
                else:
                    most = [min(len(whole) - 1, slack, steps[-1] - 1) for whole, steps in lives]
                    back = [data.draw(st.integers(0, max(each, 0))) for each in most]
                    lengths = torch.tensor([len(whole) - n for (whole, _), n in zip(lives, back, strict=True)])
                    cache.rewind(lengths)
                    lives = [
                        (whole[:n], [*steps[:-1], steps[-1] - (len(whole) - n)])
                        for (whole, steps), n in zip(lives, lengths.tolist(), strict=True)
                    ]
        assert cache.rows == len(lives)
    finally:
        room.BLOCK, room.FORGET, room.FOLD, room.SLACK = before


def test_a_window_keeps_the_buffers_small():
    ours, cache = layer(mask="causal & window(7)"), Cache(7)
    x = torch.randn(1, 1500, 24, dtype=torch.float64)
    with torch.no_grad():
        steps = torch.cat([ours(part, cache=cache) for part in x.split([400] + [1] * 1100, 1)], 1)
        torch.testing.assert_close(steps, ours(x), rtol=1e-9, atol=1e-9)
    assert cache.length == 1500
    assert cache._keys.shape[2] <= 7 + room.SLACK + 2 * room.FORGET
    with pytest.raises(saccade.SaccadeError, match="cannot be rewound to 100"):
        cache.rewind(100)


def test_a_fold_keeps_one_state_of_all_that_lies_back():
    ours = layer(mask="causal", score="feature(favor, 10, seed=1)", normaliser="sum")
    cache = Cache(ours.window, ours.fold)
    x = torch.randn(2, 700, 24, dtype=torch.float64)
    with torch.no_grad():
        steps = torch.cat([ours(part, cache=cache) for part in x.split([400] + [1] * 300, 1)], 1)
        torch.testing.assert_close(steps, ours(x), rtol=1e-9, atol=1e-9)
    assert cache.held <= room.SLACK + room.FOLD
    assert cache.state is not None
    assert cache.state.shape == (2, 6, 10, 5)
    with pytest.raises(saccade.SaccadeError, match="cannot be rewound to 100"):
        cache.rewind(100)


def test_a_folded_past_has_no_weights_to_show():
    ours = layer(mask="causal", score="feature(favor, 10, seed=1)", normaliser="sum").eval()
    cache, x = Cache(ours.window, ours.fold), torch.randn(1, 200, 24, dtype=torch.float64)
    with saccade.watch(ours) as seen, torch.no_grad():
        ours(x[:, :150], cache=cache)
        ours(x[:, 150:], cache=cache)
    assert seen.weights("attention", call=0).shape == (1, 6, 150, 150)
    with pytest.raises(saccade.SaccadeError, match="folded into one state"):
        seen.weights("attention", call=1)


def test_only_rows_that_move_are_copied():
    cache = Cache()
    with torch.no_grad():
        cache.append(torch.randn(4, 2, 3, 5), torch.randn(4, 2, 3, 5))
        before, keys = cache._keys.clone(), cache._keys
        cache.reorder(torch.tensor([0, 3, 2]))
        assert cache._keys is keys
        assert torch.equal(cache.keys, before[[0, 3, 2], :, :3])
        assert torch.equal(keys[3], before[3])


def test_what_was_left_behind_spoils_nobody():
    """A row full of NaN leaves; a shorter one takes its place."""
    ours, cache, other = layer(mask="causal"), Cache(), Cache()
    with torch.no_grad():
        ours(torch.randn(1, 4, 24).double(), cache=cache)
        ours(torch.full((1, 4, 24), torch.nan).double(), cache=other)
        cache.join(other)
        cache.reorder(torch.tensor([0]))
        other = Cache()
        ours(torch.randn(1, 2, 24).double(), cache=other)
        cache.join(other)
        assert ours(torch.randn(2, 1, 24).double(), cache=cache).isfinite().all()


def test_refused():
    empty, cache = Cache(), Cache()
    cache.append(torch.randn(2, 1, 3, 4), torch.randn(2, 1, 3, 4))
    with pytest.raises(saccade.SaccadeError, match="this cache is empty"):
        empty.join(cache)
    with pytest.raises(saccade.SaccadeError, match="cannot be rewound to 4"):
        cache.rewind(torch.tensor([2, 4]))
    cache.rewind(torch.tensor([2, 3]))
    assert cache.lengths.tolist() == [2, 3]


@pytest.mark.parametrize("mask", [saccade.document(torch.arange(500) // 50), "~prefix(9)", saccade.padding([400])])
def test_a_cache_that_forgets_takes_masks_of_distances_alone(mask):
    """Refused from the first call on, not only once it has forgotten something."""
    layer, x = Attention(16, 2, mask="causal & window(8)"), torch.randn(1, 5, 16)
    with torch.no_grad(), pytest.raises(SaccadeError, match="means absolute places: make"):
        layer(x, mask=mask, cache=Cache(layer.window))
    layer(x, mask="window(3)", cache=Cache(layer.window))


def test_a_cache_that_folds_takes_no_mask_that_hides_what_was_folded():
    layer, x = Attention(16, 2, mask="causal", score="feature(elu)", normaliser="sum"), torch.randn(2, 5, 16)
    for mask in (saccade.padding([3, 5]), "window(3)"):
        with torch.no_grad(), pytest.raises(SaccadeError, match="folds old keys into sums"):
            layer(x, mask=mask, cache=Cache(layer.window, layer.fold))
    layer(x, mask="causal", cache=Cache(layer.window, layer.fold))


@pytest.mark.parametrize("frozen", ["key", "value"])
def test_gradients_through_a_cache_where_some_weights_are_frozen(frozen):
    layer, x = Attention(16, 2, mask="causal").double(), torch.randn(1, 4, 16, dtype=torch.double)
    getattr(layer, frozen).requires_grad_(False)
    cache = Cache()
    found = torch.cat([layer(part, cache=cache) for part in x.split(2, 1)], 1)
    wanted = [weight for weight in layer.parameters() if weight.requires_grad]
    for one, other in zip(*(torch.autograd.grad(y.square().sum(), wanted) for y in (found, layer(x))), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("length", [torch.tensor(4), torch.tensor([4])])
def test_one_length_for_all_rows_may_be_a_tensor(length):
    cache = Cache()
    cache.append(torch.randn(3, 1, 6, 2), torch.randn(3, 1, 6, 2))
    cache.rewind(length)
    assert cache.lengths is None
    assert cache.length == 4
    cache.reorder(torch.tensor([2, 1, 0]))
    with pytest.raises(SaccadeError, match="one length for all or one for each; got 2"):
        cache.rewind(torch.tensor([1, 2]))


def test_another_type_is_told():
    cache = Cache()
    cache.append(torch.randn(1, 1, 2, 2), torch.randn(1, 1, 2, 2))
    with torch.no_grad(), pytest.raises(SaccadeError, match=r"holds torch\.float32 and got torch\.float64"):
        cache.append(torch.randn(1, 1, 2, 2).double(), torch.randn(1, 1, 2, 2).double())


@torch.no_grad()
def test_what_is_noted_is_written_when_somebody_looks():
    """The buffers then hold what `append` would have written, also for rows that were moved on the way."""
    steps = torch.randn(9, 4, 2, 1, 3).unbind()
    late, soon = Cache(), Cache()
    for number, step in enumerate(steps):
        late.note(step, step[..., :1])
        soon.append(step, step[..., :1])
        if number in (2, 3, 6):
            rows = torch.randint(4, (4,))
            late.reorder(rows)
            soon.reorder(rows)
        assert late._keys is None
        assert torch.equal(late.newest.k, soon.keys[:, :, -1:])
    assert late.start == soon.start
    assert torch.equal(late.keys, soon.keys)
    assert torch.equal(late.values, soon.values)
    assert late.newest is None


@pytest.mark.parametrize("window", [2, None])
@torch.no_grad()
def test_what_is_noted_is_kept_no_longer_than_a_window_needs(window):
    cache, step = Cache(window), torch.randn(2, 1, 1, 3)
    cache.append(torch.randn(2, 1, 40, 3), torch.randn(2, 1, 40, 3))
    cache.join(cache.take(torch.tensor([0])))
    cache.rewind(torch.tensor([40, 30, 35]))
    for number in range(1000):
        cache.note(step[[0, 1, 0]] + number, step[[0, 1, 0]])
        assert len(cache._late) <= room.FORGET + room.SLACK + 1
    assert cache.start.tolist() == [1040, 1030, 1035]
    cache.check(cache.start - room.SLACK)
    if window:
        assert cache.held <= room.FORGET + room.SLACK + 1
        with pytest.raises(SaccadeError, match="cannot be rewound to 600"):
            cache.check(600)
    cache.rewind(cache.start - room.SLACK)
    ends = cache.start - cache.forgotten - 1
    assert torch.equal(cache.keys[torch.arange(3), 0, ends], step[[0, 1, 0], 0, 0] + 999 - room.SLACK)


@torch.no_grad()
def test_what_a_recurrent_layer_hands_out_is_the_callers():
    ours, x = layer("lstm"), torch.randn(2, 5, 24).double()
    cache, expected = Cache(2), ours(x)
    for step, now in zip(x.split(1, 1), expected.split(1, 1), strict=True):
        found = ours(step, cache=cache)
        torch.testing.assert_close(found, now)
        found.zero_()


@torch.no_grad()
def test_a_note_of_another_shape_is_refused():
    cache = Cache(2)
    cache.note(torch.randn(2, 1, 1, 3), torch.randn(2, 1, 1, 3))
    with pytest.raises(SaccadeError, match="make a new cache"):
        cache.note(torch.randn(3, 1, 1, 3), torch.randn(3, 1, 1, 3))
    with pytest.raises(SaccadeError, match="keep one type"):
        cache.note(torch.randn(2, 1, 1, 3).double(), torch.randn(2, 1, 1, 3).double())
    with pytest.raises(SaccadeError, match="got \\(2, 1, 4\\)"):
        cache.note(torch.randn(2, 1, 1, 3), torch.randn(2, 1, 1, 4))
    assert cache.start == 1
    assert cache.values.shape == (2, 1, 1, 3)


@torch.no_grad()
def test_the_order_of_a_reordering_is_the_callers():
    cache, x, rows = Cache(2), torch.arange(3.0).view(3, 1, 1, 1), torch.tensor([2, 1, 0])
    cache.note(x, x)
    cache.note(x + 10, x)
    cache.reorder(rows)
    rows.zero_()
    assert cache.keys.flatten(1).tolist() == [[2, 12], [1, 11], [0, 10]]


@torch.no_grad()
def test_rows_that_leave_take_what_was_noted_with_them():
    cache, other, x = Cache(2), Cache(2), torch.randn(64, 1, 1, 3)
    for _ in range(5):
        cache.note(x, x)
    cache.rewind(torch.arange(1, 65) % 5 + 1)
    for _ in range(5):
        cache.note(x, x)
    cache.reorder(torch.tensor([7]))
    assert cache.newest is None
    assert cache.keys.shape == (1, 1, 9, 3)
    assert torch.equal(cache.keys[0, 0], x[7, 0].expand(9, 3))
    cache.note(x[:1], x[:1])
    cache.reorder(torch.tensor([], dtype=torch.long))
    other.note(x[:2], x[:2])
    cache.join(other)
    assert torch.equal(cache.keys, x[:2])


@pytest.mark.parametrize("T", [1, 3])
@pytest.mark.parametrize("mixer", ["lstm", "gru", "rnn", "gated"])
def test_from_inference_to_gradients(mixer, T):
    ours, cache, x = layer(mixer), Cache(2), torch.randn(2, 1 + T, 24).double()
    with torch.inference_mode():
        ours(x[:, :1], cache=cache)
    found = ours(x[:, 1:], cache=cache)
    torch.testing.assert_close(found, ours(x)[:, 1:])
    found.sum().backward()
    assert all(each.grad is not None for each in ours.parameters())
