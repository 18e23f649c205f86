"""How far futures are from what came: ADE and FDE (Pellegrini et al. 2009), of the likeliest and of the best.

ADE is the mean distance over the steps that come, FDE the distance at the last of them. `best` is that of the future
that came nearest, told afterwards: a measure of whether the truth is among the futures at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saccade.field.tracks.scene import Sequel

ERRORS = ("ade", "fde", "ade_best", "fde_best")
Errors = tuple[float, ...]  # of one scene: for each of ERRORS a sum, and how many it is of


def straight(seen: np.ndarray, steps: int) -> np.ndarray:
    """Everybody (N,T,D) going on as in the last step, (N,steps,D): constant velocity. Who was seen once stands still;
    who was not seen at the last step is nowhere, NaN.
    """
    last = seen[:, -1]
    known = np.isfinite(seen).all(2)
    velocity = np.zeros_like(last)
    for agent, row in enumerate(known):
        before = np.flatnonzero(row[:-1])
        if row[-1] and len(before):
            velocity[agent] = (last[agent] - seen[agent, before[-1]]) / (len(row) - 1 - before[-1])
    return last[:, None] + velocity[:, None] * np.arange(1, steps + 1)[None, :, None]


def errors(said: Sequence[Any] | None, sequel: Sequel, *, whole: bool) -> Errors:
    """Sums and counts over the agents of a scene; said: for each its futures, the likeliest first; None: straight on.
    whole: of those alone who were there at every step.
    """
    seen, future = sequel
    known = np.isfinite(future).all(2) & np.isfinite(seen[:, -1]).all(1)[:, None]
    every = np.isfinite(seen).all((1, 2)) & known.all(1)
    ahead = straight(seen, future.shape[1])
    found = np.zeros(2 * len(ERRORS))
    for agent in np.flatnonzero(every if whole else known.any(1)).tolist():
        own = None if said is None else said[agent]
        ways = ahead[agent][None] if own is None else np.asarray(own["futures"], np.float64)
        now = known[agent]
        away = np.sqrt(((ways[:, now] - future[agent][None, now]) ** 2).sum(2))  # (K, steps that are known)
        means = away.mean(1)
        found += _row(means[0], means.min(), away[0, -1], away[:, -1].min(), bool(now[-1]))
    return tuple(found.tolist())


def _row(ade: float, best: float, fde: float, nearest: float, ended: bool) -> np.ndarray:
    """What one agent adds; FDE is of those who are there at the last step."""
    last = float(ended)
    return np.array([ade, 1.0, fde * last, last, best, 1.0, nearest * last, last])
