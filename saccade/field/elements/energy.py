"""Where a sound is louder than its noise: what tells of events that has learned nothing. A baseline.

The power of short frames is compared with that of the quiet ones among them, which are taken for noise. Loud frames
that lie near each other are one event, and very short ones are none.
"""

from __future__ import annotations

import numpy as np

from saccade.field.elements.element import Elements, elements
from saccade.field.recording import Recording

FRAME, HOP = 0.03, 0.01  # seconds
QUIET = 0.2  # the share of frames that is noise, at least
MARGIN = 1.5  # dB above the noise from which a frame is loud
GAP = 0.05  # seconds of quiet inside an event, at most
SHORTEST = 0.1  # seconds of an event
SILENCE = 1e-10  # power


def marked(recording: Recording, label: str) -> Elements:
    """Every loud part of a sound as an event of this label."""
    parts = loud_parts(recording.samples, recording.rate)
    return elements([label] * len(parts), parts, (0.0, recording.seconds))


def loud_parts(samples: np.ndarray, rate: int) -> np.ndarray:
    """When loud parts begin and end, in seconds, (n,2): samples (n,) of any scale."""
    power = _power(samples.astype(np.float64) / max(float(np.abs(samples).max(initial=0)), 1e-12), rate)
    if not len(power):
        return np.empty((0, 2))
    level = 10 * np.log10(power + SILENCE)
    loud = level > np.quantile(level, QUIET) + MARGIN
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8))).reshape(-1, 2)
    joined: list[list[float]] = []
    half = (FRAME - HOP) / 2  # a frame begins to be loud when its last half reaches an event
    for begin, end in (edges * HOP).tolist():
        if joined and begin - joined[-1][1] < GAP:
            joined[-1][1] = end
        else:
            joined.append([begin, end])
    seconds = len(samples) / rate
    parts = [(begin + half, min(end + half, seconds)) for begin, end in joined if end - begin >= SHORTEST]
    return np.array(parts).reshape(-1, 2)


def _power(samples: np.ndarray, rate: int) -> np.ndarray:
    """The mean square of each frame; frame t begins at t times the hop."""
    frame, hop = int(FRAME * rate), int(HOP * rate)
    if len(samples) < frame:
        return np.zeros(0)
    sums = np.concatenate([[0.0], np.cumsum(samples**2)])
    begins = np.arange(0, len(samples) - frame + 1, hop)
    return (sums[begins + frame] - sums[begins]) / frame
