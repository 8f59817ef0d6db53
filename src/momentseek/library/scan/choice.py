"""Which kernel to use: the one in C where it is built, else numpy's."""

from __future__ import annotations

import os

from momentseek.errors import MomentseekError
from momentseek.library.scan.kernels import Kernel, NumpyKernel

KERNEL_VARIABLE = "MOMENTSEEK_KERNEL"
MIN_PLANNED_ROWS = 250_000
"""Rows from which a plan is quicker than the exact scan by enough to matter (a few milliseconds)."""


def best_kernel() -> Kernel:
    """The quickest kernel that there is, or the one that ``MOMENTSEEK_KERNEL`` names: ``native`` or ``numpy``."""
    wanted = os.environ.get(KERNEL_VARIABLE, "")
    if wanted not in ("", "native", "numpy"):
        raise MomentseekError(f"{KERNEL_VARIABLE} is {wanted!r}; it may be native or numpy, or not set at all")
    if wanted == "numpy":
        return NumpyKernel()
    if has_kernels():
        from momentseek.library.scan.compiled import CompiledKernel

        return CompiledKernel()
    if wanted == "native":
        raise MomentseekError(
            f"{KERNEL_VARIABLE} is native, but the compiled kernels are not here; build them: "
            "python -m momentseek.native.build"
        )
    return NumpyKernel()


def has_kernels() -> bool:
    """Whether the kernels in C are built and can be loaded."""
    from momentseek.native.library import kernels

    return kernels() is not None
