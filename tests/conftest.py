"""Where the real data lies, and the two fixtures most tests start from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", ROOT.parent / "shared"))


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def golden() -> Path:
    """Inputs and outputs of the official evaluators."""
    return _present(SHARED / "golden")


@pytest.fixture
def data() -> Path:
    """Real annotations and predictions."""
    return _present(Path(os.environ.get("MOMENTSEEK_DATA", SHARED / "data")))


def _present(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not here")
    return folder


@pytest.fixture
def momentseek(root: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command as a user would: another process, nothing shared."""

    def run(*arguments: object, cwd: Path = root) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "momentseek", *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
