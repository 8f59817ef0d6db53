"""Imports flow one way: moments, media, encoders -> library -> search -> cli."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import momentseek

ROOT = Path(momentseek.__file__).parent
TRAINED = {"models", "training"}
ABOVE = {
    "language": {"construct", *TRAINED, "encoders", "library", "search", "api", "server", "cli"},
    "features": {"simulate", "ranking", *TRAINED, "encoders", "library", "search", "api", "server", "cli"},
    "ranking": {"simulate", *TRAINED, "encoders", "library", "search", "api", "server", "cli"},
    "simulate": {*TRAINED, "library", "search", "api", "server", "cli"},
    "models": {"construct", "training", "simulate", "library", "api", "server", "cli"},
    "training": {"simulate", "library", "api", "server", "cli"},
    "media": {"encoders", "library", "search", "api", "server", "cli"},
    "encoders": {"construct", "media", "trained", "library", "search", "api", "server", "cli"},
    "trained": {"construct", "media", *TRAINED, "library", "search", "api", "server", "cli"},
    "library": {"construct", *TRAINED, "search", "api", "server", "cli"},
    "search": {"construct", *TRAINED, "api", "server", "cli"},
    "api": {"server", "cli"},
    "server": {*TRAINED, "cli"},
}


def imported(path: Path) -> set[str]:
    """Packages of ours that a file imports, at its top or inside functions."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return {name.split(".")[1] for name in names if name.startswith("momentseek.")}


@pytest.mark.parametrize("package", ABOVE)
def test_nothing_imports_upwards(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    wrong = {str(path.relative_to(ROOT)): found for path in files if (found := imported(path) & ABOVE[package])}
    assert wrong == {}
