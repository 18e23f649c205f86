"""Log-mel spectrograms: how loud a sound is in bands as wide as the ear's, frame by frame (Davis and Mermelstein 1980;
the bands of Slaney's Auditory Toolbox, 1998).

    e_tb = sum_f w_fb |FFT(h x_t)_f|^2,    log max(e_tb, 1e-10)

x_t are the samples around frame t, h is Hann's window, w_fb a triangle over the frequencies of band b, whose area is
the same for all bands. A frame stands in the middle of its samples; what lies before the first and behind the last
sample is their mirror image.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

FLOOR = 1e-10  # power that counts as silence
LINEAR, MELS, FACTOR = 1000.0, 15.0, np.log(6.4) / 27.0  # Slaney: 15 mels up to 1,000 Hz, from there on logarithmic


def log_mels(samples: Tensor, rate: int, bands: int, window: int, hop: int) -> Tensor:
    """samples (n,) from -1 to 1 -> (n // hop, bands), in float64; window and hop in samples."""
    around = np.pad(samples.numpy(), window // 2, mode="reflect")
    frames = torch.from_numpy(around).double().unfold(0, window, hop)[: len(samples) // hop]
    width = fft_width(window)
    power = torch.view_as_real(torch.fft.rfft(frames * hann(window), n=width)).square_().sum(-1)
    return (power @ mel_bands(rate, bands, width)).clamp_(min=FLOOR).log_()


@lru_cache(16)
def hann(window: int) -> Tensor:
    """Hann's window for frames that follow one another: (1 - cos(2 pi n / window)) / 2."""
    return torch.hann_window(window, dtype=torch.double)


def fft_width(window: int) -> int:
    """The points of a frame's Fourier transform: the next power of two."""
    return 1 << (window - 1).bit_length()


@lru_cache(16)
def mel_bands(rate: int, bands: int, width: int) -> Tensor:
    """The weights w (width / 2 + 1, bands) of frequencies up to half the rate."""
    edges = _hertz(np.linspace(0.0, _mels(rate / 2), bands + 2))
    frequencies = np.linspace(0, rate // 2, width // 2 + 1)[:, None]
    rising = (frequencies - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - frequencies) / np.diff(edges)[1:]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return torch.from_numpy(triangles * (2.0 / (edges[2:] - edges[:-2])))


def _mels(hertz: float) -> float:
    """The place of a frequency on Slaney's scale."""
    return 3 * hertz / 200 if hertz < LINEAR else MELS + np.log(hertz / LINEAR) / FACTOR


def _hertz(mels: np.ndarray) -> np.ndarray:
    """The frequencies at places on that scale."""
    return np.where(mels < MELS, 200 * mels / 3, LINEAR * np.exp(FACTOR * (mels - MELS)))
