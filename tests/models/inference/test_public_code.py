"""Benchmarks take functions from a checkout of the public repository; a stand-in is enough to see that they do."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def functions_of(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("public_code", root / "bench" / "public_code.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.functions_of


def checkout(folder: Path, package: str, text: str) -> Path:
    (folder / package).mkdir(parents=True)
    (folder / package / "run_utils.py").write_text(text)
    return folder


def test_functions_of_a_checkout(functions_of: Any, tmp_path: Path) -> None:
    before = list(sys.path)
    folder = checkout(tmp_path, "stand_in_whole", "def topk_3d(x, k):\n    return x[:k]\n")
    (top,) = functions_of(folder, "stand_in_whole.run_utils", ("topk_3d",))
    assert top([3, 2, 1], 2) == [3, 2]
    assert sys.path == before


@pytest.mark.parametrize(
    ("package", "text", "message"),
    [
        ("stand_in_needs", "import no_such_package", "needs no_such_package; install it to time the public code"),
        ("stand_in_lacks", "x = 1", "has no function topk_3d; check out a version that ranks moments"),
    ],
)
def test_what_is_not_there(functions_of: Any, tmp_path: Path, package: str, text: str, message: str) -> None:
    folder = checkout(tmp_path, package, text)
    with pytest.raises(SystemExit, match=message):
        functions_of(folder, f"{package}.run_utils", ("topk_3d",))
    with pytest.raises(SystemExit, match="give a checkout of TVR-Ranking's repository"):
        functions_of(tmp_path / "nowhere", f"{package}.run_utils", ("topk_3d",))
