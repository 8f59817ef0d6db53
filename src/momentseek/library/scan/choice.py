"""Which kernel to use: numpy until the time it has cost would have paid for loading the compiled one.

numba takes half a second to load, so a command that asks one question of a small library should not load it, and a
server should. Nobody knows how many questions will come; the classic answer to "rent or buy" is to rent until the rent
paid equals the price, which never costs more than twice the best choice in hindsight (Karlin et al. 1988).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache

from momentseek.library.scan.kernels import Kernel, NumpyKernel

PRICE = 0.6
"""Seconds to load the compiled kernel from numba's cache."""
RATE = 1.1e-7
"""Seconds numpy takes longer than the compiled kernel for one row and one query of 256 columns."""
VARIABLE = "MOMENTSEEK_KERNEL"


class KernelChoice:
    """Remembers how much work was done, and changes to the compiled kernel when that pays."""

    def __init__(self) -> None:
        self.spent = 0.0

    def kernel(self, rows: int, queries: int, dim: int) -> Kernel:
        """The kernel for a search of so many rows."""
        forced = os.environ.get(VARIABLE)
        if forced == "numpy" or not available("numba"):
            return NumpyKernel()
        self.spent += rows * (1 + (queries - 1) / 4) * dim / 256 * RATE
        if forced == "numba" or loaded() or self.spent > PRICE:
            return compiled()
        return NumpyKernel()


@cache
def available(module: str) -> bool:
    """Whether a module is installed; it is not imported to find out."""
    return importlib.util.find_spec(module) is not None


def loaded() -> bool:
    """Whether the compiled kernel is in this process already."""
    return "momentseek.library.scan.compiled" in sys.modules


@cache
def compiled() -> Kernel:
    """The compiled kernel, or numpy's if numba cannot be loaded on this machine."""
    try:
        from momentseek.library.scan.compiled import CompiledKernel
    except Exception:  # numba raises errors of its own for a processor or a Python it does not know
        return NumpyKernel()
    return CompiledKernel()
