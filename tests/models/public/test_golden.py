"""Our models with public weights give what the public implementations gave, file by file, in both kinds of numbers."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
import torch
from golden_models import read_golden

SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared"))
FILES = sorted((SHARED / "golden" / "models").glob("*.npz"))


@pytest.mark.skipif(not FILES, reason="the public implementations' results are not here")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("path", FILES or [Path("none")], ids=lambda path: path.stem)
def test_a_public_model(path: Path, dtype: torch.dtype) -> None:
    golden = read_golden(path, dtype)
    importlib.import_module(f"golden_models.{golden.kind}").compare(golden)
