"""Collect the examples in docstrings: only from modules that have some, imported by their names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from momentseek.core.native.build import library_path

SOURCE = Path(__file__).parent / "src"
COMPILED = ("formats/record_lists.py", "scan/scenes.py")
"""Modules whose examples need the kernels in C."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Skip modules without examples, and import the others by name.

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
