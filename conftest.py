"""What makes collecting cheap."""

from __future__ import annotations

import gc
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from momentseek.core.native.build import library_path

pytest_plugins = ["forked_workers"]
SOURCE = Path(__file__).parent / "src"
LATE = ("matplotlib.figure", "scipy.stats", "sklearn.linear_model", "torch._dynamo")
"""What tests of several folders import late and takes long: forked workers have it when they begin."""
COMPILED = ("measuring/formats/record_lists.py", "library/scan/pooling.py")
"""Modules whose examples need the kernels in C."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over a module without examples, which need not be imported to find none; import others by their names.

    Left to itself, pytest runs a module again that its package imported, and puts it in the package's namespace, in the
    place of a function of the same name.
    """
    if collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCE):
        if b">>>" not in collection_path.read_bytes():
            return True
        if collection_path.as_posix().endswith(COMPILED) and not library_path().exists():
            return True
        parts = collection_path.relative_to(SOURCE).with_suffix("").parts
        import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Let the garbage collector rest while nothing but modules and tests is made, none of which is garbage."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start it again, without what has been made so far: looking through that again and again finds nothing."""
    if session.config.getoption("forks"):
        with warnings.catch_warnings(), suppress(ImportError):
            warnings.simplefilter("ignore")
            for name in LATE:
                import_module(name)
    gc.collect()
    gc.freeze()
    gc.enable()
