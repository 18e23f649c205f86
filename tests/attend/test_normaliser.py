"""Normalisers against their definitions, row by row, and the laws that all of them keep."""

import math
from itertools import product

import pytest
import torch
from torch.autograd import gradcheck

import saccade
from saccade import SaccadeError
from saccade.attend.normaliser import NORMALISERS, as_normaliser, hard, none, sigmoid, softmax, sparsemax, sum_

B, H, T, S = 2, 3, 5, 7
ALL = [*NORMALISERS, "softmax(beta=0.3)"]
every = pytest.mark.parametrize("name", ALL)


def project(row):
    """The point of the simplex nearest to the row, by bisection for the threshold that makes the weights sum to 1."""
    low, high = min(row) - 1, max(row)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(x - middle, 0) for x in row) > 1 else (low, middle)
    return [max(x - low, 0) for x in row]


def soften(row, beta=1.0):
    parts = [math.exp(beta * x) for x in row]
    return [part / sum(parts) for part in parts]


ROWS = {
    "softmax": soften,
    "softmax(beta=0.3)": lambda row: soften(row, 0.3),
    "sigmoid": lambda row: [1 / (1 + math.exp(-x)) for x in row],
    "hard": lambda row: [float(n == row.index(max(row))) for n in range(len(row))],
    "sparsemax": project,
    "sum": lambda row: [x / sum(row) for x in row],
    "none": lambda row: row,
}


@pytest.fixture
def scores():
    torch.manual_seed(0)
    return 2 * torch.randn(B, H, T, S, dtype=torch.float64)


@pytest.fixture
def may(scores):
    """Who may look: one row sees nobody, one everybody, one a single key."""
    may = torch.rand(B, H, T, S) < 0.6
    may[1, 2, 3], may[0, 1, 2], may[1, 0, 4] = False, True, torch.arange(S) == 5
    return may


def gradient(name, scores, may):
    """The gradient of a fixed weighted sum of the weights."""
    scores = scores.clone().requires_grad_()
    weights = as_normaliser(name)(scores, may)
    return torch.autograd.grad((weights * torch.arange(1.0, S + 1)).sum(), scores)[0]


@every
@pytest.mark.parametrize("shape", [None, (B, H, T, S), (B, 1, 1, S), (1, H, T, 1), (T, S), (1, 1, 1, 1), ()])
def test_formulas(name, shape, scores):
    may = None if shape is None else torch.rand(shape) < 0.6
    weights = as_normaliser(name)(scores, may)
    allowed = torch.ones(B, H, T, S).bool() if may is None else may.expand(B, H, T, S)
    wanted = torch.zeros_like(scores)
    for b, h, t in product(range(B), range(H), range(T)):
        seen = allowed[b, h, t].nonzero().flatten().tolist()
        for s, weight in zip(seen, ROWS[name](scores[b, h, t, seen].tolist()) if seen else [], strict=True):
            wanted[b, h, t, s] = weight
    torch.testing.assert_close(weights, wanted, rtol=1e-12, atol=1e-12)


@every
def test_masked_weights_are_exactly_zero(name, scores, may):
    for dtype in (torch.float64, torch.float32):
        weights = as_normaliser(name)(1000 * scores.to(dtype), may)
        assert weights.dtype == dtype
        assert not weights[~may].any()
        assert weights[0, 1, 2].any()


@every
def test_a_row_that_sees_nobody_is_zero_with_zero_gradients(name, scores, may):
    for nobody in (may, torch.zeros(1, 1, 1, 1).bool(), torch.zeros(T, S).bool()):
        empty = ~nobody.expand(B, H, T, S).any(-1)
        weights, slope = as_normaliser(name)(scores, nobody), gradient(name, scores, nobody)
        assert empty.any()
        assert not weights[empty].any()
        assert not slope[empty].any()
        assert slope.isfinite().all()


@every
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_what_is_hidden_never_leaks(name, poison, scores, may):
    poisoned = scores.masked_fill(~may, poison)
    assert torch.equal(as_normaliser(name)(poisoned, may), as_normaliser(name)(scores, may))
    slope = gradient(name, poisoned, may)
    assert torch.equal(slope, gradient(name, scores, may))
    assert not slope[~may].any()


@every
@pytest.mark.parametrize("learning", [False, True])
def test_a_visible_nan_shows(name, learning, scores, may):
    """Broken scores must not turn into weights that look sound, nor into an error about something else."""
    scores[0, 1, 2, 3] = math.nan
    for who in (None, may):
        weights = as_normaliser(name)(scores.requires_grad_(learning), who)
        assert weights[0, 1, 2].isnan().any()
        assert not weights[1].isnan().any()


@every
@pytest.mark.parametrize("shape", [(B, H, T, 0), (B, H, 0, S), (0, H, T, S)])
def test_nothing_to_normalise(name, shape):
    scores = torch.randn(shape, requires_grad=True)
    for may in (None, torch.ones(shape).bool(), torch.ones(1, 1, 1, 1).bool()):
        weights = as_normaliser(name)(scores, may)
        assert weights.shape == shape
        weights.sum().backward()


@pytest.mark.parametrize("name", ["softmax", "softmax(beta=1.7)", "sigmoid", "sum", "none", "sparsemax"])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients(name, masked, scores, may):
    who = may if masked else None
    scores = scores.exp() if name == "sum" else scores  # away from sums near 0
    if name == "sparsemax":
        weights = sparsemax()(scores, who)
        top = weights.argmax(-1, keepdim=True)
        kink = weights.gather(-1, top) - scores.gather(-1, top) + scores  # s - tau
        assert (kink if who is None else kink[who]).abs().min() > 1e-4  # the derivative jumps where s = tau
    assert gradcheck(as_normaliser(name), (scores.requires_grad_(), who))


def test_softmax_tends_to_hard(scores, may):
    gaps = [(softmax(beta)(scores, may) - hard()(scores, may)).abs().max().item() for beta in (1, 10, 100, 1000, 10000)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.1
    assert gaps[-1] < 1e-6


def test_softmax_without_temperature_is_uniform(scores, may):
    uniform = may / may.sum(-1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(softmax(0)(scores, may), uniform.double())


def test_hard_ties_go_to_the_first_that_may_be_seen():
    scores = torch.tensor([[3.0, 5.0, 5.0, 5.0], [2.0, 2.0, 2.0, 2.0]])
    assert hard()(scores, None).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
    may = torch.tensor([[True, False, True, True], [False, False, False, True]])
    assert hard()(scores, may).tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]


def test_hard_learns_as_softmax(scores, may):
    for who in (None, may):
        assert torch.equal(gradient("hard", scores, who), gradient("softmax", scores, who))
        weights = hard()(scores.clone().requires_grad_(), who)
        assert torch.equal(weights, hard()(scores, who))  # learning changes no weight, not even by rounding
        assert set(weights.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("row", "weights"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0], [0.2] * 5),
        ([2.0, 1.0, 0.0, -5.0, 0.0], [1.0, 0, 0, 0, 0]),
        ([0.5, 0.25, 0.0, 0.0, -1.0], [0.5625, 0.3125, 0.0625, 0.0625, 0]),
        ([1e9, 1e9, 0.0, 0.0, 0.0], [0.5, 0.5, 0, 0, 0]),
        ([-1e9, -1e9 - 0.5, -2e9, -2e9, -2e9], [0.75, 0.25, 0, 0, 0]),
    ],
)
def test_sparsemax_by_hand(row, weights):
    assert sparsemax()(torch.tensor(row, dtype=torch.float64), None).tolist() == pytest.approx(weights, abs=1e-12)


def test_a_sum_of_zero_gives_zeros():
    scores = torch.tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 3.0, 0.0], [2.0, 5.0, -2.0]], requires_grad=True)
    may = torch.tensor([[True] * 3] * 3 + [[True, False, True]])
    weights = sum_()(scores, may)
    weights.square().sum().backward()
    assert weights.tolist() == [[0, 0, 0], [0, 0, 0], [0.25, 0.75, 0], [0, 0, 0]]
    assert scores.grad.isfinite().all()
    assert not scores.grad[[0, 1, 3]].any()


@pytest.mark.parametrize(
    "beta", [-1, -0.5, math.nan, math.inf, True, "hot", None, [1], 10**400], ids=lambda beta: str(beta)[:5]
)
def test_beta_is_a_number_from_0(beta):
    with pytest.raises(SaccadeError, match=r"^softmax: beta is a number from 0 to below 1e30; got "):
        softmax(beta)


def test_specs_and_functions():
    assert as_normaliser("softmax(beta=2)") == softmax(2)
    assert [as_normaliser(name) for name in NORMALISERS] == [softmax(), sigmoid(), hard(), sparsemax(), sum_(), none()]
    q, k = torch.randn(B, H, T, 11), torch.randn(B, H, S, 11)
    own = saccade.weights(q, k, mask="causal", normaliser=lambda scores, may: scores.exp() * may)
    torch.testing.assert_close(own / own.sum(-1, keepdim=True), saccade.weights(q, k, mask="causal"))
    with pytest.raises(SaccadeError, match=r"^normaliser is a spec string or a function, not int$"):
        as_normaliser(3)


@pytest.mark.parametrize("kind", [softmax, hard, sum_])
def test_a_class_is_not_yet_a_normaliser(kind):
    """`hard` for `hard()` is easily written, since `causal` is written so."""
    q = torch.randn(B, H, T, S)
    with pytest.raises(SaccadeError, match=rf"^normaliser .*{kind.__name__}\(\)"):
        saccade.attention(q, q, q, normaliser=kind)
