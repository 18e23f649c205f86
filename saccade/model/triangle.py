"""Triangles: how the vectors z (B,T,T,P) of pairs meet, each pair ij with those that make a triangle with it.

outgoing   z_ij from sum_k a_ik * b_jk      multiplication over the edges that leave i and j
incoming   z_ij from sum_k a_ki * b_kj      and over those that reach them
starting   z_ij looks at z_ik, every k      attention among the pairs that begin at i, with a bias of z_jk
ending     z_ij looks at z_kj, every k      and among those that end at j, with a bias of z_ki

Jumper et al. 2021 (AlphaFold), supplement, algorithms 11 to 14. All four take z after a norm and give what is added.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.layer import Attention
from saccade.attend.mask import padding
from saccade.error import SaccadeError

Norm = Callable[[int], nn.Module]


class TriangleMultiplication(nn.Module):
    """y_ij = sigmoid(W_g z_ij) * W norm(sum_k a_ik * b_jk), where a = sigmoid(W_1 z) * W_2 z and b likewise.

    incoming: the sum runs over a_ki * b_kj. Products of one channel are those of matrices (T,T), so that a and b are
    computed with their channels in front.
    """

    def __init__(self, width: int, norm: Norm = nn.LayerNorm, *, incoming: bool = False) -> None:
        super().__init__()
        self.incoming = incoming
        self.left, self.left_gate = nn.Linear(width, width), nn.Linear(width, width)
        self.right, self.right_gate = nn.Linear(width, width), nn.Linear(width, width)
        self.out_norm = norm(width)
        self.out, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        for each in (self.left, self.right):
            nn.init.xavier_uniform_(each.weight)
            nn.init.zeros_(each.bias)
        for each in (self.left_gate, self.right_gate, self.gate):
            _open(each)
        _silent(self.out)

    def forward(self, z: Tensor, real: Tensor | None = None) -> Tensor:
        """real: which positions are no padding, (B,T); pairs of others count for nothing in any sum."""
        B, T, _, P = z.shape
        values, gates = (self.left, self.right), (self.left_gate, self.right_gate)
        weight = torch.cat([each.weight for each in (*values, *gates)])  # (4P,P)
        bias = torch.cat([each.bias for each in (*values, *gates)])
        product = torch.baddbmm(bias.view(1, -1, 1), weight.expand(B, -1, -1), z.reshape(B, T * T, P).mT)
        both = F.glu(product, 1).view(B, 2 * P, T, T)
        if real is not None:
            both = both * (real.unsqueeze(2) & real.unsqueeze(1)).unsqueeze(1)
        a, b = both.split(P, 1)
        summed = a.mT @ b if self.incoming else a @ b.mT  # (B,P,T,T)
        return self.out(self.out_norm(summed.permute(0, 2, 3, 1))) * self.gate(z).sigmoid()


class TriangleAttention(nn.Module):
    """y_ij = attention of z_ij to z_ik over all k, with a bias W z_jk that is shared by all i; gated.

    ending: the same of the transposed pairs. Each row of pairs is a sequence of its own.
    """

    def __init__(self, width: int, heads: int = 4, *, ending: bool = False) -> None:
        super().__init__()
        if not isinstance(heads, int) or heads < 1 or width % heads:
            raise SaccadeError(f"{heads} heads do not divide the width {width} of a pair")
        self.ending = ending
        self.attention = Attention(width, heads, gate=True)
        self.bias = nn.Linear(width, heads, bias=False)
        nn.init.normal_(self.bias.weight, std=width**-0.5)
        _silent(self.attention.out)

    def forward(self, z: Tensor, hidden: padding | None = None) -> Tensor:
        """hidden: the padding of positions, which no pair looks at."""
        z = z.transpose(1, 2) if self.ending else z
        B, T, _, P = z.shape
        bias = self.bias(z).permute(0, 3, 1, 2)  # (B,H,T,T)
        if B > 1:
            bias = bias.unsqueeze(1).expand(-1, T, -1, -1, -1).flatten(0, 1)
        mask = None if hidden is None else padding(hidden.held(T, z.device).expand(B).repeat_interleave(T), hidden.side)
        y = self.attention(z.reshape(B * T, T, P), mask=mask, bias=bias).view(B, T, T, P)
        return y.transpose(1, 2) if self.ending else y


def _open(gate: nn.Linear) -> None:
    """A gate that begins the same for all: weights 0, bias 1."""
    nn.init.zeros_(gate.weight)
    nn.init.ones_(gate.bias)


def _silent(out: nn.Linear) -> None:
    """An output that begins at 0, so that a new block adds nothing."""
    nn.init.zeros_(out.weight)
    nn.init.zeros_(out.bias)
