"""Where the nodes of a graph are drawn: neighbours attract, all repel each other (Fruchterman and Reingold 1991)."""

from __future__ import annotations

import numpy as np

STEPS = 120
SAMPLED = 64  # nodes that each is repelled by in a step, where there are more: a sample of all


def layout(count: int, edges: np.ndarray, seed: int = 0) -> np.ndarray:
    """Places (N,2) from 0 to 1, the same for the same graph."""
    random = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    places = np.stack([np.cos(angle), np.sin(angle)], 1) + random.normal(0, 0.05, (count, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    wish = 2.0 / np.sqrt(max(count, 1))  # the length of an edge
    for step in range(STEPS if count > 1 else 0):
        force = _repelled(places, wish, random)
        away = places[edges[:, 1]] - places[edges[:, 0]]
        pull = away * (np.linalg.norm(away, axis=1, keepdims=True) / wish) / 2  # an edge may be there both ways
        np.add.at(force, edges[:, 0], pull)
        np.add.at(force, edges[:, 1], -pull)
        force -= 0.3 * places  # parts that are not joined stay near
        size = np.linalg.norm(force, axis=1, keepdims=True)
        places = places + force / np.maximum(size, 1e-9) * np.minimum(size, 0.3 * (1 - step / STEPS) + 0.01)
    low, high = (places.min(0), places.max(0)) if count else (np.zeros(2), np.ones(2))
    return (places - low) / np.maximum(high - low, 1e-9)


def _repelled(places: np.ndarray, wish: float, random: np.random.Generator) -> np.ndarray:
    """How each is pushed away by the others, or by a sample that counts for all."""
    others = places if len(places) <= 4 * SAMPLED else places[random.integers(len(places), size=SAMPLED)]
    away = places[:, None] - others[None]
    far = (away**2).sum(2) + 1e-6
    return (away * (wish**2 / far)[:, :, None]).sum(1) * (len(places) / len(others))
