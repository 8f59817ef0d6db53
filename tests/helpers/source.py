"""What the package's source consists of, read once for all tests that look at it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import momentseek

PACKAGE = Path(momentseek.__file__).parent
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def nodes() -> Mapping[Path, Sequence[ast.AST]]:
    """The imports, definitions and texts in every file of the package, by its place in it.

    Definitions are without their bodies, whose own are in the list: a million nodes would cost each collection of
    garbage a second from then on.
    """
    return {path.relative_to(PACKAGE): _nodes(path) for path in sorted(PACKAGE.rglob("*.py"))}


def _nodes(path: Path) -> list[ast.AST]:
    kinds = (*DEFINITIONS, ast.Import, ast.ImportFrom)
    walk = ast.walk(ast.parse(path.read_bytes()))
    found = [node for node in walk if isinstance(node, kinds) or isinstance(getattr(node, "value", None), str)]
    for node in found:
        if isinstance(node, DEFINITIONS):
            node.body = []
    return found
