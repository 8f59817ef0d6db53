from __future__ import annotations

import os
import subprocess
import sys

import pytest

from momentseek.core.native import lean_numpy
from momentseek.core.native.kernels import kernels

SCRIPT = """
import os, sys
from momentseek.native.lean_numpy import load_lean_numpy
load_lean_numpy()
there = "numpy" in sys.modules
import numpy
threads = len(os.listdir("/proc/self/task"))
print(there, threads, os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def run_with(**variables: str) -> list[str]:
    kept = {k: v for k, v in os.environ.items() if k not in (lean_numpy.BLAS_VARIABLE, "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**kept, **variables}, check=True, capture_output=True, text=True
    )
    return done.stdout.split()


@pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux does")
def test_numpy_starts_no_threads_and_the_environment_stays():
    assert run_with() == ["True", "1", "None"]


@pytest.mark.parametrize("variables", [{"OPENBLAS_NUM_THREADS": "2"}, {"MOMENTSEEK_KERNEL": "numpy"}])
def test_numpy_is_left_alone_where_somebody_has_chosen(variables):
    assert run_with(**variables)[::2] == ["False", variables.get("OPENBLAS_NUM_THREADS", "None")]


def test_without_kernels_numpy_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(lean_numpy, "library_path", lambda: tmp_path / "kernels.so")
    monkeypatch.setattr(lean_numpy.sys, "modules", {})
    for name in (lean_numpy.BLAS_VARIABLE, "OMP_NUM_THREADS", "MOMENTSEEK_KERNEL"):
        monkeypatch.delenv(name, raising=False)
    lean_numpy.load_lean_numpy()
    assert lean_numpy.sys.modules == {}
