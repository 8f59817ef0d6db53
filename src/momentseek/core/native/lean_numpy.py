"""Numpy without threads of its own, where the kernels in C do what these would be for.

OpenBLAS starts a thread per core as soon as numpy is imported, and each of them spins for a while: on two cores that is
a quarter of the processor's time that the import takes, on the core where the encoder is loaded meanwhile.
"""

from __future__ import annotations

import os
import sys

from momentseek.core.native.build import library_path

BLAS_VARIABLE = "OPENBLAS_NUM_THREADS"


def load_lean_numpy() -> None:
    """Import numpy, with one thread for products of matrices, if the kernels in C are built and nobody says otherwise.

    Without kernels these products are how a library is scanned, and numpy is left to whoever needs it first. The
    environment stays as it is, for the processes that this one may start.
    """
    chosen = {BLAS_VARIABLE, "OMP_NUM_THREADS", "MOMENTSEEK_KERNEL"} & os.environ.keys()
    if "numpy" in sys.modules or chosen or not library_path().exists():
        return
    os.environ[BLAS_VARIABLE] = "1"
    try:
        import numpy as np  # noqa: F401
    finally:
        del os.environ[BLAS_VARIABLE]
