"""What makes collecting cheap: every worker of a run collects all tests, of which it will run a third."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "src"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over a module without examples, which need not be imported to find none."""
    if collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCE):
        return b">>>" not in collection_path.read_bytes() or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Let the garbage collector rest while nothing but modules and tests is made, none of which is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Start it again, without what has been made so far: looking through that again and again finds nothing."""
    gc.collect()
    gc.freeze()
    gc.enable()
