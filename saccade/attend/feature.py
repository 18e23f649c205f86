"""Scores that are products of features, phi(q).phi(k): with phi(k) v summed first, no pairs have to be compared.

fourier   exp(|x|^2 / 2) [sin(w.x), cos(w.x)] sqrt(2 / n)       Rahimi and Recht 2007, Peng et al. 2021 (unit vectors)
favor     exp(w.x - |x|^2 / 2) sqrt(1 / n)                      Choromanski et al. 2021: positive, orthogonal w
elu       elu(x) + 1                                            Katharopoulos et al. 2020: estimates nothing

With w drawn from N(0, I), the first two estimate exp(q.k) without bias, and x is q or k times the root of the scale.
Write them with `normaliser="sum"`: they are exponentials already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.numbers import is_number, is_whole
from saccade.error import SaccadeError, nearest

_drawn: dict[tuple[object, ...], Tensor] = {}  # by features, width, seed, draw, whether orthogonal, type and device
MANY = 256  # draws that are kept


class feature(nn.Module):
    """phi(q).phi(k), with n features of one kind; w depends on the seed (and the draw) alone, and all heads share it.

    fourier puts q and k on the unit sphere first, as Peng et al. do: elsewhere a sum of its weights comes near zero or
    below. `unit` says otherwise, for either. scale: of q.k; 1 on the sphere, 1 / sqrt(D) elsewhere. `orthogonal` w
    estimate better (Yu et al. 2016); favor has them. `redraw`: steps of training after which w is drawn anew.
    """

    def __init__(
        self,
        kind: str,
        n: int | None = None,
        seed: int | None = None,
        *,
        scale: float | None = None,
        unit: bool | None = None,
        orthogonal: bool | None = None,
        redraw: int = 0,
        width: int | None = None,
    ) -> None:
        super().__init__()
        _check(kind, n, seed, scale, redraw)
        self.kind, self.n, self.seed, self.redraw = kind, n, seed, redraw
        self.unit = kind == "fourier" if unit is None else unit
        if scale is None and self.unit:
            scale = 1.0
        self.scale = None if scale is None else float(scale)
        self.orthogonal = kind == "favor" if orthogonal is None else orthogonal
        self.draw = 0
        if width is not None and kind != "elu":
            self._directions(torch.empty(0, width, device="cpu"))  # drawn now: a compiled graph could not

    def queries(self, q: Tensor, *, free: bool = False) -> Tensor:
        """phi(q), (B,H,T,D) -> (B,H,T,F). free: a row may be multiplied by anything, as where a sum divides by it."""
        with exactly(q):
            return self._map(q, free)

    def keys(self, k: Tensor) -> Tensor:
        """phi(k), (B,G,S,D) -> (B,G,S,F), each key on its own: subtracting a maximum over all keys, as is usual before
        exp, would let the past depend on the future.
        """
        with exactly(k):
            return self._map(k, False)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        a, b = self.queries(q), self.keys(k)
        with exactly(a):
            return a @ b.mT

    def count(self, width: int) -> int:
        """How many features a head of this width has."""
        return width if self.n is None else self.n

    def extra_repr(self) -> str:
        drawn = "" if self.n is None else f", {self.n}, seed={self.seed}"
        return f"{self.kind}{drawn}, scale={self.scale}, unit={self.unit}"

    def _map(self, x: Tensor, free: bool) -> Tensor:
        return KINDS[self.kind](self, unit(x) if self.unit else x, free)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x times the root of the scale, and w.x (B,H,T,F), or half of it."""
        x = x * (x.shape[-1] ** -0.25 if self.scale is None else math.sqrt(self.scale))
        return x, x @ self._directions(x).mT

    def _directions(self, x: Tensor) -> Tensor:
        """w, (F or F / 2, D), in the type and on the device of x (..., D)."""
        assert self.n is not None
        assert self.seed is not None
        rows = self.n // 2 if self.kind == "fourier" else self.n
        drawn = (rows, x.shape[-1], self.seed, self.draw, self.orthogonal)
        key = (*drawn, x.dtype, x.device)
        found = _drawn.get(key)
        if found is None:
            if len(_drawn) >= MANY:
                _drawn.clear()
            with torch.inference_mode(False):  # kept for training too, which takes no tensor of inference mode
                found = _drawn[key] = directions(*drawn).to(dtype=x.dtype, device=x.device)
        return found


def _fourier(score: feature, x: Tensor, free: bool) -> Tensor:
    x, projected = score._project(x)
    waves = torch.cat((projected.sin(), projected.cos()), -1) * math.sqrt(2 / score.count(x.shape[-1]))
    return waves if free else waves * _half_square(x).exp()


def _favor(score: feature, x: Tensor, free: bool) -> Tensor:
    x, projected = score._project(x)
    shift = projected.detach().amax(-1, keepdim=True) if free else _half_square(x)
    shift = shift + math.log(score.count(x.shape[-1])) / 2
    return projected.sub_(shift).exp_()  # in place: a tile's features are its memory


def _elu(score: feature, x: Tensor, free: bool) -> Tensor:
    return F.elu(x if score.scale is None else x * math.sqrt(score.scale)) + 1


def _half_square(x: Tensor) -> Tensor:
    """|x|^2 / 2. It is the same for all x on the sphere; queries leave it out where rows are free, since it cancels."""
    return x.square().sum(-1, keepdim=True) / 2


def unit(x: Tensor) -> Tensor:
    """x with vectors of length one; a zero vector stays as it is, in every type, and takes no gradient."""
    length = x.norm(dim=-1, keepdim=True)
    return x / torch.where(length == 0, torch.inf, length)


def exactly(x: Tensor) -> AbstractContextManager[None]:
    """Autocast turned off on the device of x: exponents, and sums of thousands of them, need float32."""
    return nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False)


def redraw(model: nn.Module, step: int) -> None:
    """Brings the features of a model to the draw that belongs to a step of training."""
    for each in model.modules():
        if isinstance(each, feature) and each.redraw:
            each.draw = step // each.redraw


def directions(rows: int, width: int, seed: int, draw: int = 0, orthogonal: bool = False) -> Tensor:
    """Rows of N(0, I), (rows, width); orthogonal: within each `width` of them, their lengths as they were drawn."""
    with torch.device("cpu"):
        generator = torch.Generator().manual_seed((seed * 1_000_003 + draw) % (1 << 63))
        w = torch.randn(rows, width, generator=generator, dtype=torch.float64)
        if not orthogonal:
            return w
        squares = torch.randn(-(-rows // width), width, width, generator=generator, dtype=torch.float64)
        turns, upper = torch.linalg.qr(squares)
        # LAPACK's signs are not random: without R's, no row is uniform on the sphere, and favor has a bias (LOG.md).
        turns = turns * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        return turns.flatten(0, 1)[:rows] * w.norm(dim=1, keepdim=True)


def _check(kind: str, n: int | None, seed: int | None, scale: float | None, redraw: int) -> None:
    if kind not in KINDS:
        raise SaccadeError(f"feature: no kind is called {kind!r}; {nearest(str(kind), KINDS)}")
    if kind == "elu":
        if n is not None or seed is not None or redraw:
            raise SaccadeError("feature(elu) has as many features as a head is wide, and draws nothing: write no more")
    else:
        _check_draw(kind, n, seed)
    if scale is not None and not (is_number(scale) and 0 < scale < 1e9):
        raise SaccadeError(f"feature: scale is a number above 0; got {scale!r}")
    if not is_whole(redraw):
        raise SaccadeError(f"feature: redraw is a whole number of steps, 0 for never; got {redraw!r}")


def _check_draw(kind: str, n: int | None, seed: int | None) -> None:
    if not is_whole(n, 1):
        raise SaccadeError(f"feature({kind}, n, seed): n is a whole number of features from 1; got {n!r}")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise SaccadeError(f"feature({kind}, {n}) draws at random and needs a seed: feature({kind}, {n}, seed=0)")
    if kind == "fourier" and n % 2:
        raise SaccadeError(f"feature(fourier, n, seed): half of n are sines and half cosines; {n} is odd")


KINDS: dict[str, Callable[[feature, Tensor, bool], Tensor]] = {"fourier": _fourier, "favor": _favor, "elu": _elu}
