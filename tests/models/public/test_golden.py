"""Our models with public weights give what the public implementations gave, file by file, in both kinds of numbers."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
import torch
from golden_models import read_golden

SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared"))
FILES = [path for folder in ("models", "newer") for path in sorted((SHARED / "golden" / folder).glob("*.npz"))]
LARGE = ("mmn_activitynet", "tan2d_activitynet", "tan2d_tacos")
"""Maps of 64 clips and more, which take torch half a second of double precision: what the files of Charades prove of
these networks to ten digits, and the same files to six, only `make test-all` repeats."""
CASES = [
    pytest.param(
        path,
        dtype,
        id=f"{path.stem}-{name}",
        marks=[pytest.mark.figures] if name == "float64" and path.stem.startswith(LARGE) else [],
    )
    for path in FILES or [Path("none")]
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64))
]


@pytest.mark.skipif(not FILES, reason="the public implementations' results are not here")
@pytest.mark.parametrize(("path", "dtype"), CASES)
def test_a_public_model(path: Path, dtype: torch.dtype) -> None:
    golden = read_golden(path, dtype)
    importlib.import_module(f"golden_models.{golden.kind}").compare(golden)
