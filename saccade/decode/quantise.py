"""int8 weights: a quarter of the memory, and as much less to read in every step (Dettmers et al. 2022).

    x W^T + b  ~  (xq wq^T) xs ws + b        xs = max |x| / 127 of each row,  ws = max |w| / 127 of each output channel

The product is of integers and exact, so a row never depends on its neighbours. Activations are quantised as they come;
nothing is calibrated. Unlike in the paper, outliers stay among the integers: an outlier costs its row precision.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from saccade.attend.layer import Attention
from saccade.error import SaccadeError, nearest
from saccade.model.feed import FeedForward
from saccade.model.head import vocabulary
from saccade.model.model import Model

KINDS = ("int8",)
# Their projections; all others (routers, positions, scores, poolers) are small, or choose more than they compute.
PARTS: dict[type[nn.Module], tuple[str, ...]] = {
    Attention: ("query", "key", "value", "out"),
    FeedForward: ("gate", "up", "down"),
}
WIDE, FEW = 8192, 4  # outputs and rows from which oneDNN's own order of the weights pays
LONGEST = (2**31 - 1) // 127**2  # inputs whose products fit the 32 bits they are added up in
# Tensors, since every call would make one of a plain number. TINY vanishes beside any maximum but 0.
TINY, STEP = torch.tensor(1e-30, device="cpu"), torch.tensor(1 / 127, device="cpu")
ZERO = torch.zeros(1, dtype=torch.long, device="cpu")


class Int8(nn.Module):
    """x W^T + b, (...,K) -> (...,N), in x's dtype: in place of a Linear, or of the head `vocabulary`."""

    reads, pooled = "last", False  # as a head it reads every state
    weight: Tensor  # (N,K) int8
    scale: Tensor  # (N,)
    bias: Tensor | None  # (N,)

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        if weight.shape[1] > LONGEST:
            raise SaccadeError(f"int8: {weight.shape[1]} inputs are more than the {LONGEST} that 32 bits can add up")
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", bias)
        self._turned: tuple[Tensor, Tensor] | None = None
        self._packed: Tensor | None = None
        self._joined: tuple[Int8, list[Tensor]] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if x.requires_grad and torch.is_grad_enabled():
            raise SaccadeError("int8 weights cannot be trained: train the model they were made from")
        flat = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
        output = self.product(*rows(flat))
        output = output if x.dim() == 2 else output.view(*x.shape[:-1], output.shape[1])
        return output if x.dtype is torch.float32 else output.to(x.dtype)

    def product(self, xq: Tensor, xs: Tensor) -> Tensor:
        """(M,N) float32 of what `rows` gave: xq (M,K), xs (M,1), so that several projections share it."""
        if not (xq.is_cpu or xq.is_meta):
            raise SaccadeError(f"int8 weights are multiplied on the CPU alone, not on {xq.device.type}: move the model")
        held: dict[str, Any] = self._buffers  # attributes are slow, and a step has fifty of these products
        weight, bias = held["weight"], held["bias"]
        if self._turned is None or self._turned[0] is not weight:
            turned = weight.t() if weight.shape[1] > 1 else weight.view(1, -1)  # torch misreads a turned column
            self._turned, self._packed = (weight, turned), None
        if weight.shape[0] >= WIDE and xq.shape[0] >= FEW and weight.is_cpu and _packs():
            output = self._scaled(xq)
        else:
            output = torch._int_mm(xq, self._turned[1]).float().mul_(held["scale"])  # a product of two types is slow
        return output.mul_(xs) if bias is None else torch.addcmul(bias, output, xs, out=output)

    def _scaled(self, xq: Tensor) -> Tensor:
        """The product times the channels' scales in one call of oneDNN, on a copy of the weights in its own order.

        Exactly the same, and for several rows of a vocabulary, whose scaling takes as long as the product, quicker.
        """
        if self._packed is None:
            self._packed = torch.ops.onednn.qlinear_prepack(self.weight, None)
        return _packed_product(xq, self._packed, self.scale)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, bias={self.bias is not None}"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_turned": None, "_packed": None, "_joined": None}


def together(layers: Sequence[Int8]) -> Int8:
    """One layer whose outputs are those of several, side by side; they are parts of its memory from now on.

    A step of one row spends as much on the calls as on the integers: one product is quicker than three.
    """
    first, weights = layers[0], [layer.weight for layer in layers]
    if first._joined is not None and all(a is b for a, b in zip(first._joined[1], weights, strict=True)):
        return first._joined[0]
    with torch.inference_mode(False):
        biases = [torch.zeros_like(layer.scale) if layer.bias is None else layer.bias for layer in layers]
        bias = torch.cat(biases) if any(layer.bias is not None for layer in layers) else None
        joined = Int8(torch.cat(weights), torch.cat([layer.scale for layer in layers]), bias)
        parts = joined.weight.split([len(each) for each in weights])
    for layer, part in zip(layers, parts, strict=True):
        layer.weight, layer._turned, layer._packed = part, None, None
    first._joined = joined, list(parts)
    return joined


def rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """x (M,K) as int8 with a scale (M,1) each: x ~ xq xs. Zeros stay zeros; NaN or infinity make products NaN."""
    x = x if x.dtype is torch.float32 else x.float()
    xs = torch.addcmul(TINY, x.abs().amax(-1, keepdim=True), STEP)  # TINY vanishes beside any maximum but 0
    return (x / xs).round_().char(), xs  # NaN becomes 0 here, and NaN again when 0 meets its scale


def quantise(model: Model, kind: str = "int8") -> Model:
    """A new model for use: the blocks' projections and the vocabulary in int8, all else in float32.

    Where head and embedding are tied, both read the same integers. The given model stays as it is.
    """
    if kind not in KINDS:
        raise SaccadeError(f"weights cannot be quantised to {kind!r}; {nearest(kind, KINDS)}")
    if is_quantised(model):
        raise SaccadeError("the weights are int8 already: quantise the model they were made from")
    if not _exact():
        raise SaccadeError(
            "this processor adds up int8 products inexactly (it lacks VNNI): use the weights as they are"
        )
    shared: dict[int, Any] = {id(each): _frozen(each) for each in model.parameters()}
    made = copy.deepcopy(model, shared)
    for module in list(made.modules()):
        for name in PARTS.get(type(module), ()):
            if isinstance(linear := getattr(module, name), nn.Linear):
                setattr(module, name, _int8(linear.weight, linear.bias))
    if isinstance(head := made.head, vocabulary):
        made.head = _int8(head.weight, head.bias, head.factor)
        if head.weight is made.table:
            made.target_embed.part.share(made.head.weight, made.head.scale / head.factor)
    for parameter in made.parameters():  # few are left; the memory they came from may be a whole mapped file
        parameter.data = parameter.data.clone()
    return made.eval()


def is_quantised(model: nn.Module) -> bool:
    """Whether any of its weights are integers."""
    return any(isinstance(each, Int8) for each in model.modules())


def parameters_of(model: nn.Module) -> int:
    """How many numbers a model learned, also where they are integers now; tied ones count once."""
    integers = (each for each in model.modules() if isinstance(each, Int8))
    held = (tensor for each in integers for tensor in (each.weight, each.bias) if tensor is not None)
    return sum(each.numel() for each in (*model.parameters(), *held))


def drift(model: Model, other: Model, *, sequences: int = 8, length: int = 64, seed: int = 0) -> dict[str, float]:
    """How far another model's answers are from a model's, on tokens that it writes itself (an encoder: random ones).

    kl_divergence: mean of sum_v p log(p / q), in nats; top1_agreement: how often both like the same answer best.
    """
    if model.head is None:
        raise SaccadeError("a model without a head gives no answers that could be compared")
    with torch.inference_mode():
        given = _sample_inputs(model, sequences, min(length, model.room or length), seed)
        p, q = (each(*given).double().log_softmax(-1) for each in (model, other))
    kl = (p.exp() * (p - q)).sum(-1).mean()
    return {"kl_divergence": float(kl), "top1_agreement": float((p.argmax(-1) == q.argmax(-1)).double().mean())}


def _sample_inputs(model: Model, sequences: int, length: int, seed: int) -> tuple[Any, ...]:
    """What a model is called with: a random source, and tokens that it draws itself, each by its probability."""
    generator = torch.Generator().manual_seed(seed)
    source = model.embed.sample(sequences, length, generator=generator)
    if model.decoder is None:
        return (source,)
    said: Any = (
        source if model.target_embed is model.embed else model.target_embed.sample(sequences, 1, generator=generator)
    )
    before, written = () if model.encoder is None else (source,), [said.values["tokens"][:, :1]]
    state = model.start(*before)
    while len(written) < length:
        logits = model.decode_step(written[-1], state)[:, -1]
        written.append(torch.multinomial(logits.float().softmax(-1), 1, generator=generator))
    return (*before, torch.cat(written, 1))


def _int8(weight: Tensor, bias: Tensor | None, factor: float = 1.0) -> Int8:
    integers, scale = rows(weight.contiguous())  # turned views (GPT-2's, from a folder) would be read at half the speed
    return Int8(integers, scale.squeeze(1) * factor, None if bias is None else bias.detach().clone())


def _frozen(parameter: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(parameter.detach().float(), requires_grad=False)


def _packed_product(xq: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
    """xq (M,K) times weights in oneDNN's own order, and the channels' scales (N,)."""
    shifted = xq.view(torch.uint8) ^ 128  # 0 ... 255, with 128 for 0
    found: Tensor = torch.ops.onednn.qlinear_pointwise(
        shifted, 1.0, 128, packed, scale, ZERO, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found


@cache
def _packs() -> bool:
    """Whether the largest products add up exactly in oneDNN's packed form too, which may be another kernel."""
    xq = torch.full((FEW, 64), 127, dtype=torch.int8, device="cpu")
    weight = torch.full((WIDE, 64), 127, dtype=torch.int8, device="cpu")
    scale = torch.ones(WIDE, device="cpu")
    found = _packed_product(xq, torch.ops.onednn.qlinear_prepack(weight, None), scale)
    return torch.equal(found, torch._int_mm(xq, weight.t()).float())


@cache
def _exact() -> bool:
    """Whether the largest products add up: without VNNI, pairs of them are cut off at 16 bits."""
    most = torch.tensor([127, -127], dtype=torch.int8, device="cpu").repeat(16)[:, None].expand(-1, 1024).contiguous()
    wanted = most[:, 0].long()[:, None] * most[:, 0].long() * 1024
    return all(torch.equal(torch._int_mm(most[:M], most.t()).long(), wanted[:M]) for M in (1, 2, 32))
