"""The package's source as syntax trees, read once for all tests that look at it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import momentseek

PACKAGE = Path(momentseek.__file__).parent


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Every file of the package, by its place in it."""
    return {path.relative_to(PACKAGE): ast.parse(path.read_bytes()) for path in sorted(PACKAGE.rglob("*.py"))}
