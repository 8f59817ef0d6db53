"""Which kernel to use: numpy until the time it has cost would have paid for loading the compiled one.

numba takes half a second to load, so a command that asks one question of a small library should not load it, and a
server should. Nobody knows how many questions will come; the classic answer to "rent or buy" is to rent until the rent
paid equals the price, which never costs more than twice the best choice in hindsight (Karlin et al. 1988).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from typing import Any

from momentseek.library.scan.kernels import Kernel, NumpyKernel

COMPILED_LOAD_SECONDS = 0.6
"""Seconds to load the compiled kernel from numba's cache."""
NUMPY_EXTRA_SECONDS = 1.1e-7
"""Seconds numpy takes longer than the compiled kernel for one row and one query of 256 columns."""
KERNEL_VARIABLE = "MOMENTSEEK_KERNEL"


class KernelChoice:
    """Remembers how much work was done, and changes to the compiled kernel when that pays."""

    def __init__(self) -> None:
        self.spent = 0.0

    def kernel(self, rows: int, queries: int, dim: int) -> Kernel:
        """The kernel for a search of so many rows."""
        forced = os.environ.get(KERNEL_VARIABLE)
        if forced == "numpy" or not is_installed("numba"):
            return NumpyKernel()
        self.spent += rows * (1 + (queries - 1) / 4) * dim / 256 * NUMPY_EXTRA_SECONDS
        if forced == "numba" or is_compiled_loaded() or self.spent > COMPILED_LOAD_SECONDS:
            return compiled_kernel()
        return NumpyKernel()


@cache
def is_installed(module: str) -> bool:
    """Whether a module is installed; it is not imported to find out."""
    return importlib.util.find_spec(module) is not None


def compiled_module(name: str) -> Any:
    """A module of compiled kernels, or None where numba is not installed or does not know the processor."""
    if not is_installed("numba"):
        return None
    try:
        return importlib.import_module(name)
    except Exception:  # numba raises errors of its own for a processor or a Python it does not know
        return None


def is_compiled_loaded() -> bool:
    """Whether the compiled kernel is in this process already."""
    return "momentseek.library.scan.compiled" in sys.modules


@cache
def compiled_kernel() -> Kernel:
    """The compiled kernel, or numpy's if numba cannot be loaded on this machine."""
    try:
        from momentseek.library.scan.compiled import CompiledKernel
    except Exception:  # numba raises errors of its own for a processor or a Python it does not know
        return NumpyKernel()
    return CompiledKernel()
