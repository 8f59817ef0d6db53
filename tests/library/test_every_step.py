"""Every operation on a library's files fails once (``bench/every_step.py``): a sample here, all before a release."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent.parent / "bench" / "every_step.py"


@pytest.mark.slow
@pytest.mark.parametrize("sample", [24, pytest.param(None, marks=pytest.mark.figures)])
def test_no_failing_operation_loses_data_and_each_is_reported(sample: int | None) -> None:
    if shutil.which("cc") is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and LD_PRELOAD")
    words = [sys.executable, str(PROGRAM), *([] if sample is None else ["--sample", str(sample), "--seed", "7"])]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost" in done.stdout
