"""The kernels that take any input; of the others `linear` is for features alone, `edgewise` for graphs."""

from __future__ import annotations

from saccade.attend.kernel import KERNELS

EXACT = [name for name in KERNELS if name not in ("linear", "edgewise")]
