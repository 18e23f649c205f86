"""How a process that trains or writes asks the system for memory.

glibc gives a large freed block back to the system at once and takes it anew for the next tensor, and the system clears
every page of it again: a fifth of a small model's training step, a tenth to a fifth of a wide beam's (LOG.md). Who does
the same work again and again keeps what it has.
"""

from __future__ import annotations

import ctypes
import sys

# The numbers of glibc's malloc.h, and the bytes up to which blocks come from the heap, are kept, and are asked ahead.
TRIM, PAD, MAPPED = -1, -2, -3
SIZES = {MAPPED: 1 << 30, TRIM: (1 << 31) - 1, PAD: 1 << 27}


def keep_memory() -> bool:
    """Asks glibc to keep freed memory; False where the system has another allocator."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    taken = [mallopt(name, size) for name, size in SIZES.items()]
    return all(taken)
