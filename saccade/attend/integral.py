"""A score whose weights are the generalized Fourier integral estimator's (FourierFormer: Nguyen et al. 2022).

    weight_j = a_j / sum_j a_j,    a_j = prod_d phi(sin(z_d) / z_d),    z = R (q - k_j),    phi(x) = x^power

The numbers of a head interact through the product, where a dot product only adds them up. The score is log a_j, a sum,
and softmax (the default) makes it the paper's ratio: no product of many numbers is ever too small for its type, and
what is hidden has no part in it. Its cost is quadratic in the length, and D times that of a dot product.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from saccade.attend.numbers import is_number, is_whole
from saccade.error import SaccadeError

NEAR = 0.25  # where sin(z) / z is so near 1 that its logarithm is better summed as a series
# -log(sin(z) / z) = sum_n SERIES[n - 1] z^2n, to the last bit of float64 for |z| < NEAR
SERIES = (1 / 6, 1 / 180, 1 / 2835, 1 / 37800, 1 / 467775, 691 / 3831077250, 2 / 127702575)


class integral(nn.Module):
    """power sum_d log |sin(z_d) / z_d| with z = R (q - k), and R learned, one a head.

    radius: where R starts; by default where the score is as sharp as scaled_dot, since for small z it is nearly
    -power R^2 |q - k|^2 / 6. An even power keeps the weights positive; the paper's is 4.
    """

    logarithm: ClassVar[bool] = True  # of the weights: for softmax, not for sum

    def __init__(self, width: int, heads: int = 1, radius: float | None = None, power: int = 4) -> None:
        super().__init__()
        if not is_whole(power, 2) or power % 2:
            raise SaccadeError(f"integral: power is an even number from 2; got {power!r}")
        if radius is None:
            radius = math.sqrt(3 / (power * math.sqrt(width)))
        if not (is_number(radius) and 0 < radius < 1e30):
            raise SaccadeError(f"integral: radius is a positive number; got {radius!r}")
        self.hidden, self.power = width, power  # D numbers for each pair
        self.radius = nn.Parameter(torch.full((heads, 1, 1), float(radius)))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        if self.radius.shape[0] not in (1, q.shape[1]) or self.hidden != q.shape[-1]:
            raise SaccadeError(
                f"this integral score was built for {self.radius.shape[0]} heads of width {self.hidden}; "
                f"q has {q.shape[1]} of width {q.shape[-1]}"
            )
        radius = self.radius.to(q.dtype)
        z = (q * radius).unsqueeze(3) - (k * radius).unsqueeze(2)  # (B,H,T,S,D)
        return self.power * LogSinc.apply(z).sum(-1)

    def extra_repr(self) -> str:
        return f"width={self.hidden}, power={self.power}"


class LogSinc(torch.autograd.Function):
    """log |sin(z) / z|, number by number, exact near 0 and finite where the sine is 0.

    Autograd on its own would keep several tensors as large as z, and subtract numbers that cancel near 0.
    """

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        near, far = z.abs() < NEAR, torch.where(z.abs() < NEAR, 1.0, z)
        logarithm = (torch.sin(far) / far).abs().clamp(min=torch.finfo(z.dtype).tiny).log()
        return torch.where(near, -_series(z.square(), SERIES) * z.square(), logarithm)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """cot(z) - 1 / z."""
        (z,) = ctx.saved_tensors
        near, far = z.abs() < NEAR, torch.where(z.abs() < NEAR, 1.0, z)
        sine = torch.sin(far)
        slope = torch.cos(far) / torch.where(sine == 0, torch.inf, sine) - 1 / far
        slopes = tuple(2 * n * each for n, each in enumerate(SERIES, 1))
        return gradient * torch.where(near, -_series(z.square(), slopes) * z, slope)


def _series(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """sum_n coefficients[n] x^n."""
    total = torch.full_like(x, coefficients[-1])
    for each in reversed(coefficients[:-1]):
        total = total * x + each
    return total
