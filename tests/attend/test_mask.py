"""Masks against loops, the laws of & | ~, batches and rows, and a clear sentence for each bad input."""

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade import (
    SaccadeError,
    bigbird,
    blocks,
    causal,
    dilated,
    document,
    everyone,
    order,
    padding,
    prefix,
    window,
    windows,
)
from saccade.attend.grid import Grid
from saccade.attend.mask import Mask, as_mask

L = 23  # positions that every table covers
IDS = [0, 0, 0, 1, 1, 5, 5, 5, 5, 0, 0, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4]
VISITS = [(7 * n + 3) % L for n in range(L)]
LAYOUT = [[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]]
small = examples(40)


def visited(strict):
    """Who was visited before whom, by walking along the permutation."""
    seen, sees = set(), {}
    for position in VISITS:
        sees[position] = seen | (set() if strict else {position})
        seen.add(position)
    return lambda i, j: j in sees[i]


def swin(height, width, size, shift):
    """The paper's way: roll the picture, cut it into windows, and tell apart in them what was not neighbours before."""
    regions = torch.zeros(height, width, dtype=torch.long)
    cuts = (slice(0, -size), slice(-size, -shift or None), slice(-shift, None) if shift else slice(0, 0))
    for number, (rows, columns) in enumerate((a, b) for a in cuts for b in cuts):
        regions[rows, columns] = number
    place = torch.arange(height * width).view(height, width).roll((-shift, -shift), (0, 1))
    seen = torch.zeros(height * width, height * width, dtype=torch.bool)
    for top in range(0, height, size):
        for left in range(0, width, size):
            part = (slice(top, top + size), slice(left, left + size))
            cells, region = place[part].flatten(), regions[part].flatten()
            seen[cells.view(-1, 1), cells] = region.view(-1, 1) == region
    return seen


LAWS = {
    "everyone": lambda i, j: True,
    "causal": lambda i, j: j <= i,
    "window(3)": lambda i, j: -3 < i - j < 3,
    "window(1)": lambda i, j: i == j,
    "prefix(5)": lambda i, j: j in (0, 1, 2, 3, 4),
    "prefix(0)": lambda i, j: False,
    f"document({IDS})": lambda i, j: IDS[i] == IDS[j],
    f"order({VISITS})": visited(strict=False),
    f"order({VISITS}, strict=True)": visited(strict=True),
    "blocks(3)": lambda i, j: i // 3 == j // 3,
    "blocks(3, before=2)": lambda i, j: i // 3 - j // 3 in (0, 1, 2),
    "blocks(5, after=1)": lambda i, j: j // 5 - i // 5 in (0, 1),
    f"blocks(7, layout={LAYOUT})": lambda i, j: LAYOUT[i // 7][j // 7] == 1,
    "dilated(3, 2)": lambda i, j: i - j in (-4, -2, 0, 2, 4),
    "dilated(2, 1)": lambda i, j: i - j in (-1, 0, 1),
    "dilated(1, 5)": lambda i, j: i == j,
    "windows(4, 6, 2)": lambda i, j: (i // 12, i % 6 // 2) == (j // 12, j % 6 // 2),
    "causal & window(3) | prefix(2)": lambda i, j: i - 3 < j <= i or j < 2,
    "~(causal & ~window(3))": lambda i, j: j > i or abs(i - j) < 3,
}
sizes = {"T": st.integers(0, 7), "S": st.integers(0, 13), "start": st.integers(0, 11)}


def at(T, S, start):
    return Grid(T, S, start, torch.device("cpu"))


def full(mask, grid, B=1, H=1):
    """The mask written out, (B,H,rows,S)."""
    return as_mask(mask).dense(grid).expand(B, H, grid.i.shape[2], grid.S)


@pytest.mark.parametrize("text", LAWS)
def test_masks_follow_their_definitions(text):
    @small
    @given(**sizes)
    def check(T, S, start):
        wanted = [[LAWS[text](start + t, s) for s in range(S)] for t in range(T)]
        drawn = as_mask(text)(T, S, start=start)
        assert torch.equal(drawn, torch.tensor(wanted, dtype=torch.bool).view(T, S))

    check()


def test_the_last_query_stands_at_the_last_key():
    assert causal(2, 5).tolist() == [[True] * 4 + [False], [True] * 5]
    assert torch.equal(window(2)(5), window(2)(5, 5, start=0))
    assert order([2, 0, 1])(3).tolist() == [[True, False, True], [True, True, True], [False, False, True]]


@small
@given(lengths=st.lists(st.integers(0, 9), min_size=3, max_size=3), T=st.integers(1, 5))
def test_masks_of_a_batch(lengths, T):
    S = 7
    keys = [[range(S)[:n] for n in lengths], [range(S)[max(S - n, 0) :] for n in lengths], [range(n) for n in lengths]]
    for mask, allowed in zip((padding(lengths), padding(lengths, "left"), prefix(lengths)), keys, strict=True):
        drawn = mask(T, S, start=2)
        assert drawn.shape == (3, 1, T, S)
        assert drawn[:, 0].tolist() == [[[s in each for s in range(S)]] * T for each in allowed]


literals = st.one_of(
    st.sampled_from([everyone, causal, blocks(7, layout=LAYOUT), blocks(2, 1, 3)]),
    st.builds(window, st.integers(1, 5)),
    st.builds(dilated, st.integers(1, 3), st.integers(1, 4)),
    st.builds(windows, st.just(4), st.just(3), st.integers(3, 5), st.integers(0, 2)),
    st.builds(prefix, st.integers(0, 5)),
    st.builds(bigbird, st.integers(1, 3), st.just(1), st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)),
)
masks = st.recursive(
    literals,
    lambda m: st.one_of(m.map(lambda a: ~a), st.builds(Mask.__and__, m, m), st.builds(Mask.__or__, m, m)),
    max_leaves=5,
)


@small
@given(masks, masks, masks)
def test_laws_of_and_or_not(a, b, c):
    def drawn(mask):
        return mask(5, 11).tolist()

    A, B = a(5, 11), b(5, 11)
    assert drawn(a & b) == drawn(A & b) == (A & B).tolist()  # a bool tensor may stand on either side
    assert drawn(a | b) == drawn(a | B) == (A | B).tolist()
    assert drawn(~a) == (~A).tolist()
    assert drawn(~(a & b)) == drawn(~a | ~b)
    assert drawn(~(a | b)) == drawn(~a & ~b)
    assert drawn(a & (b | c)) == drawn((a & b) | (a & c))
    assert drawn(~~a) == drawn(a)
    terms = [term(5, 11) for term in (a & b & c).terms()]
    assert torch.stack([everyone(5, 11), *terms]).all(0).tolist() == drawn(a & b & c)


@examples(150)
@given(masks)
def test_a_literal_mask_reads_back(mask):
    assert torch.equal(as_mask(repr(mask))(5, 11), mask(5, 11))


@pytest.mark.parametrize("text", [*LAWS, "padding([3, 0, 7], left)", "prefix([1, 2])"])
def test_every_spec_reads_back(text):
    assert torch.equal(as_mask(repr(as_mask(text)))(5, 11), as_mask(text)(5, 11))


def test_bare_masks_take_their_data_from_the_batch():
    bare = as_mask("causal & (~padding | document) & padding([5])")
    either = (~padding([2, 3]) | document(IDS))(5, 11)
    assert torch.equal(bare.bind(lengths=[2, 3], ids=IDS)(5, 11), (causal & either & padding([5]))(5, 11))
    assert torch.equal(as_mask(repr(as_mask("~padding | document"))).bind(lengths=[2, 3], ids=IDS)(5, 11), either)
    assert torch.equal(as_mask("padding").bind(lengths=[2, 3], side="left")(5, 7), padding([2, 3], "left")(5, 7))
    assert torch.equal(padding(side="left").bind(lengths=[2, 3])(5, 7), padding([2, 3], "left")(5, 7))
    with pytest.raises(SaccadeError, match=r"^a bare 'padding' takes its lengths from the batch; here, write padding"):
        bare.bind(ids=IDS)(5, 11)
    with pytest.raises(SaccadeError, match=r"^a bare 'document' takes its ids from the batch; here, write document"):
        bare.bind(lengths=[2, 3])(5, 11)


IDS3 = torch.tensor([IDS, IDS[::-1], sorted(IDS)])
VISITS3 = torch.tensor([VISITS, VISITS[::-1], range(L)])
BATCHES = {  # a mask of three examples, and the same mask for one of them
    **{text: (as_mask(text), lambda b, text=text: as_mask(text)) for text in LAWS},
    "bigbird": (bigbird(2, 1, 1, 1), lambda b: bigbird(2, 1, 1, 1)),
    "padding": (padding([2, 5, 11]), lambda b: padding([(2, 5, 11)[b]])),
    "prefix": (prefix([2, 5, 11]), lambda b: prefix((2, 5, 11)[b])),
    "documents": (document(IDS3), lambda b: document(IDS3[b])),
    "orders": (order(VISITS3), lambda b: order(VISITS3[b])),
    "one document for all": (document(IDS3[:1]), lambda b: document(IDS)),
    "one order for all": (order(VISITS3[:1], True), lambda b: order(VISITS, True)),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("starts", [[0, 4, 9], [6, 6, 1]])
def test_each_example_may_start_elsewhere(name, starts):
    mask, alone = BATCHES[name]
    together = full(mask, at(5, 11, torch.tensor(starts)), B=3)
    for b, start in enumerate(starts):
        assert torch.equal(together[b : b + 1], full(alone(b), at(5, 11, start)))


@pytest.mark.parametrize("kernel", ["plain", "auto"])
@pytest.mark.parametrize("text", ["causal", "causal & window(3)", "padding([2, 5, 11])"])
def test_starts_of_a_batch_reach_the_kernel(text, kernel):
    q, k = torch.randn(3, 2, 5, 7, dtype=torch.float64), torch.randn(3, 2, 11, 7, dtype=torch.float64)
    start = torch.tensor([0, 4, 6])
    dense = full(text, at(5, 11, start), B=3)
    wanted = saccade.attention(q, k, k, mask=dense, kernel="plain")
    torch.testing.assert_close(saccade.attention(q, k, k, mask=text, start=start, kernel=kernel), wanted)


TENSORS = {"all": (5, 11), "keys": (11,), "one row": (3, 1, 1, 11), "batch": (3, 2, 5, 11), "queries": (5, 1)}


@pytest.mark.parametrize("rows", [range(1, 4), range(0), range(0, 5, 2), torch.tensor([4, 1, 1]), torch.tensor([2])])
@pytest.mark.parametrize("start", [0, 6, torch.tensor([0, 4, 6])], ids=["first", "later", "batch"])
def test_some_rows_are_a_slice_of_all(start, rows):
    grid = at(5, 11, start)
    tensors = [as_mask(torch.rand(shape) < 0.5) for shape in TENSORS.values()]
    for mask in [*(mask for mask, _ in BATCHES.values()), *tensors]:
        some = mask.dense(grid.take(rows)).expand(3, 2, len(rows), 11)
        wanted = full(mask, grid, 3, 2)[:, :, list(rows) if isinstance(rows, range) else rows]
        assert torch.equal(some, wanted), mask


counts = st.tuples(st.sampled_from([1, 3, 5]), st.integers(0, 3), st.integers(0, 4), st.integers(0, 2**31 - 1))


@small
@given(block=st.integers(1, 5), n=st.integers(0, 29), m=st.integers(0, 29), counts=counts)
def test_bigbird(block, n, m, counts):
    (window, globals, random, _), bird = counts, bigbird(block, *counts)
    links = bird.links(n)
    assert torch.equal(links, links.T)
    assert torch.equal(bird.links(max(n, m))[:n, :n], links)  # a longer sequence changes nothing
    for a in range(n):
        for b in range(a + 1):
            assert links[a, b] or (b >= globals and a - b > window // 2)
        far = links[a, globals : max(globals, a - window // 2)]
        assert far.sum() == min(random, len(far)) or a < globals
    T, S, start = 5, 17, 9
    if n * block >= S:
        wanted = [[bool(links[(start + t) // block, s // block]) for s in range(S)] for t in range(T)]
        assert bird(T, S, start=start).tolist() == wanted


@pytest.mark.parametrize(("height", "width", "size"), [(4, 6, 2), (6, 9, 3), (4, 4, 4), (10, 5, 5), (3, 4, 1)])
def test_windows_of_a_picture(height, width, size):
    for shift in range(size):
        drawn = windows(height, width, size, shift)(height * width)
        assert torch.equal(drawn, swin(height, width, size, shift))


def test_windows_that_do_not_fit_are_cut_at_the_edges():
    a = [0, 1, 1, 1, 2, 2, 2, 3]  # of 8 columns, by a shift of 1 and a size of 3
    wanted = [[(r == s) and a[c] == a[d] for s in (0, 1) for d in range(8)] for r in (0, 1) for c in range(8)]
    assert windows(2, 8, 3, shift=1)(16).tolist() == wanted


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("window(5)", 5),
        ("dilated(3, 4)", 9),
        ("causal & window(5) & dilated(2, 2)", 3),
        ("window(5) | dilated(2, 7)", 8),
        ("window(5) | causal", None),
        ("~window(5)", None),
        ("causal", None),
    ],
)
def test_how_far_back_a_mask_looks(text, back):
    assert as_mask(text).back() == back
    if back is not None:
        drawn = as_mask(text)(40)
        assert drawn[39, 40 - back :].any()
        assert drawn[39, 40 - back]
        assert not drawn[39, : 40 - back].any()


def test_bigbird_is_the_same_everywhere():
    golden = ["1100000", "1111001", "0110110", "0101000", "0010100", "0010010", "0100001"]
    assert ["".join(str(int(x)) for x in row) for row in bigbird(1, 1, 0, 1, seed=0).links(7)] == golden


def test_bigbird_seeds_differ():
    drawn = {tuple(bigbird(1, 1, 0, 2, seed).links(13).flatten().tolist()) for seed in range(20)}
    assert len(drawn) == 20
    # No block is a favourite: over many seeds block 12 draws each of 0 ... 11 about equally often.
    often = torch.stack([bigbird(1, 1, 0, 1, seed).links(13)[12, :12] for seed in range(1200)]).sum(0)
    assert often.sum() == 1200
    assert often.min() > 60
    assert often.max() < 150


def test_a_tensor_says_who_may_look():
    q, v = torch.randn(3, 2, 5, 7), torch.randn(3, 2, 11, 7)
    for shape in TENSORS.values():
        may = torch.rand(shape) < 0.5
        weights = saccade.weights(q, v, mask=may)
        assert torch.equal(weights != 0, may.expand(3, 2, 5, 11))
    assert as_mask(None)(3, 5).all()
    assert as_mask(causal) is causal


@pytest.mark.parametrize("text", ["~everyone", "everyone & everyone"])
def test_a_value_that_is_not_a_number_stays_with_who_may_look(text):
    q, v = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 7)
    v[1, 2, 3] = torch.nan
    output = saccade.attention(q, q, v, mask=text, kernel="plain")
    assert output.isnan().any(-1).sum() == (5 if text[0] == "e" else 0)
    assert text[0] == "e" or not output.any()


def draw(mask, *size, **start):
    return lambda: mask(*size, **start)


def made(make, *args, **named):
    return lambda: make(*args, **named)


def called(mask, **options):
    q, k = torch.randn(3, 2, 5, 7), torch.randn(3, 2, 11, 7)
    return lambda: saccade.attention(q, k, k, mask=mask, **options)


yes = torch.ones(5, 11).bool()
BAD = [
    *((made(window, n), f"window: n is a whole number from 1; got {n!r}$") for n in (0, -2, 2.0, True, "a", None)),
    (made(prefix, -1), "prefix: n is a whole number from 0; got -1$"),
    (made(prefix, True), "prefix: n is a whole number from 0; got True$"),
    (made(prefix, 1.5), r"prefix: n must be whole numbers with 1 axes; got float32 \(\)$"),
    (made(prefix, "a"), "prefix: n must be whole numbers; got str$"),
    (made(padding, [1.0, 2.0]), r"padding: lengths must be whole numbers with 1 axes; got float32 \(2,\)$"),
    (made(padding, [[1, 2]]), r"padding: lengths must be whole numbers with 1 axes; got int64 \(1, 2\)$"),
    (made(padding, [[1], [2, 3]]), "padding: lengths must be whole numbers; got list$"),
    (made(padding, [3], "up"), "padding: side is 'right' or 'left', not 'up'$"),
    (made(document, [True, False]), "document: ids must be whole numbers with 1 or 2 axes; got bool"),
    (draw(document(IDS), 5, L + 1), "document: covers 23 positions; this call has 24$"),
    (draw(document(IDS), 5, 7, start=19), "document: covers 23 positions; this call has 24$"),
    (made(order, [0, 1, 1]), r"order: a permutation names each of 0 \.\.\. 2 once$"),
    (made(order, [[0, 1], [0, 2]]), r"order: a permutation names each of 0 \.\.\. 1 once$"),
    (made(order, 5), "order: permutation must be whole numbers with 1 or 2 axes"),
    (draw(order(VISITS), 5, L + 1), "order: covers 23 positions; this call has 24$"),
    (made(as_mask, "order([1, 0], strict=false)"), "order: strict is True or False"),  # else a string, and so true
    (made(blocks, 0), "blocks: size is a whole number from 1; got 0$"),
    (made(blocks, 2, before=-1), "blocks: before is a whole number from 0; got -1$"),
    (made(blocks, 2, after=0.5), "blocks: after is a whole number from 0; got 0.5$"),
    *(
        (made(blocks, 2, layout=table), "blocks: layout is a square table of 0 and 1, one row a block$")
        for table in (3, [], [1, 0], [[1, 0]], [[1], [0, 1]], "a", [[7]], [["no"]])
    ),
    (draw(blocks(7, layout=LAYOUT), 5, 29), "blocks: the layout covers 28 positions; this call has 29$"),
    (made(dilated, 0, 1), "dilated: n is a whole number from 1; got 0$"),
    (made(dilated, 3, 0), "dilated: step is a whole number from 1; got 0$"),
    (made(windows, 4, 0, 2), "windows: width is a whole number from 1; got 0$"),
    (made(windows, 4, 4, 2, 2), "windows: shift is smaller than the size 2; got 2$"),
    (draw(windows(4, 5, 2), 21), "windows: a picture of 4 x 5 has 20 positions; this call has 21$"),
    (made(bigbird, window=2), "bigbird: window counts the block itself and as many on each side; 2 is even$"),
    (made(bigbird, 0), "bigbird: block is a whole number from 1; got 0$"),
    (made(bigbird, seed=-1), "bigbird: seed is a whole number from 0; got -1$"),
    (made(bigbird, random=1.5), "bigbird: random is a whole number from 0; got 1.5$"),
    (
        made(as_mask, yes.float()),
        r"a mask is bool, True where a query may look; got float32: write mask\.bool\(\), or ~",
    ),
    (made(as_mask, yes[None, None, None]), r"a mask broadcasts to \(B,H,T,S\); got 5 axes$"),
    (made(as_mask, 3), "mask is a Mask, a spec string or a bool tensor, not int$"),
    (called(yes.T), r"the mask has shape \(11, 5\), which does not broadcast to \(B,H,T,S\) = \(3, 2, 5, 11\)$"),
    (called(causal & yes.expand(2, 1, 5, 11)), r"the mask has shape \(2, 1, 5, 11\), which does not broadcast"),
    (called(yes.to("meta")), "the mask is on meta and q on cpu: move one of them$"),
    (called(padding([1, 2])), "padding: 2 entries for a batch of 3$"),
    (called(~(causal | prefix([1, 2]))), "prefix: 2 entries for a batch of 3$"),
    (called(document(IDS3[:2])), "document: 2 entries for a batch of 3$"),
    (called(order(VISITS3[:2])), "order: 2 entries for a batch of 3$"),
    (called("causal & padding"), "a bare 'padding' takes its lengths from the batch"),
    # Drawing checks as a call does, and no position is negative: tables would be read from their end.
    (draw(as_mask(yes), 3, 11), r"the mask has shape \(5, 11\), which does not broadcast to"),
    (draw(causal, 5, 3), "5 queries over 3 keys: say where the first query stands with start="),
    (draw(document(IDS), 5, 11, start=-2), "start is a position and cannot be negative; got -2$"),
    (called(document(IDS), start=torch.tensor([0, -2, 1])), "start is a position and cannot be negative"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_input_gets_one_clear_sentence(wrong, message):
    with pytest.raises(SaccadeError, match="^" + message):
        wrong()


@pytest.mark.parametrize(
    "text", ["window({})", "prefix({})", "blocks({})", "blocks(2, {})", "bigbird(3, seed={})", "dilated({}, 1)"]
)
def test_numbers_beyond_64_bits_are_drawn_or_refused(text):
    try:
        drawn = as_mask(text.format(10**30))(3, 5)
    except SaccadeError:
        return
    assert drawn.all()


def test_lengths_of_no_rows_are_lengths():
    assert saccade.padding([]).lengths.dtype is torch.long
