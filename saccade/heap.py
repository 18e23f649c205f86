"""Keeping the heap: a process that trains or decodes asks glibc not to give freed blocks back to the system.

By default glibc returns a large freed block at once and maps a new one for the next tensor, and the system clears every
page of it again: a fifth of a small model's training step, a tenth to a fifth of a wide beam's (LOG.md).
"""

from __future__ import annotations

import ctypes
import sys

TRIM, PAD, MAPPED = -1, -2, -3  # M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD of glibc's malloc.h
# Blocks up to 1 GiB come from the heap, which grows by 128 MiB at a time and gives nothing back below 2 GiB.
SIZES = {MAPPED: 1 << 30, TRIM: (1 << 31) - 1, PAD: 1 << 27}


def keep_heap() -> bool:
    """Asks glibc to keep freed blocks; False where the system has another allocator."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    accepted = [mallopt(name, size) for name, size in SIZES.items()]
    return all(accepted)
