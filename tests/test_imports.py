"""Imports go one way, from the command line down to the vocabulary; late and type-only ones count like the others."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module

import pytest
from source import nodes

FOLDERS = (
    "core",
    "measuring",
    "media",
    "recognition",
    "library",
    "search",
    "models",
    "cluster",
    "benchmarks",
    "api",
    "server",
    "cli",
)
"""The folders, lowest first: a folder imports itself and lower ones."""
FACE = {"__init__", "__main__"}
"""The package's face, above all folders: it exports them, and they read nothing of it but the version."""
ONLY_IN = {
    "torch": {"models"},
    "click": {"cli"},
    "fastapi": {"server"},
    "mcp": {"server"},
    "uvicorn": {"server", "cli"},
    "ray": {"cluster"},
}
SQL = re.compile(
    r"\s*(SELECT|PRAGMA|INSERT (OR|INTO)|REPLACE INTO|UPDATE \w+ SET|DELETE FROM|WITH \w+ AS|"
    r"(CREATE|DROP|ALTER) (TABLE|INDEX|UNIQUE|VIRTUAL|TRIGGER|VIEW))\b"
)
SQL_FOLDERS = ("library", "cluster", "server")
SQL_MODULES = ("recognition.encoders.text_cache",)
"""A cache that is a SQLite file."""


@cache
def modules() -> Mapping[str, Sequence[ast.AST]]:
    """What every module consists of, by its name without ``momentseek.``; a folder's ``__init__`` by the folder's."""
    named = {}
    for path, found in nodes().items():
        parts = path.with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = found
    return named


def folder(module: str) -> str:
    return module.split(".")[0]


def room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def imports(module: Sequence[ast.AST]) -> Iterator[str]:
    """Full names of all that a module imports, wherever in the file."""
    for node in module:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def all_imports() -> Mapping[str, frozenset[str]]:
    """Full names of all that each module imports."""
    return {module: frozenset(imports(found)) for module, found in modules().items()}


@cache
def graph() -> Mapping[str, set[str]]:
    """Which modules of the package each module imports."""
    return {module: _ours(names) - {module} for module, names in all_imports().items()}


def _ours(names: frozenset[str]) -> set[str]:
    found = set()
    for name in names:
        if name.startswith("momentseek.") and name != "momentseek.__version__":
            module = name.removeprefix("momentseek.")
            while module not in modules():
                module = module.rpartition(".")[0] or "__init__"
            found.add(module)
    return found


def test_every_folder_has_its_place() -> None:
    assert {folder(module) for module in modules()} - FACE == set(FOLDERS)


@pytest.mark.parametrize("above", FOLDERS)
def test_nothing_imports_upwards(above: str) -> None:
    lower = set(FOLDERS[: FOLDERS.index(above) + 1])
    imported = {(module, used) for module, uses in graph().items() if folder(module) == above for used in uses}
    assert {(module, used) for module, used in imported if folder(used) not in lower} == set()


@pytest.mark.parametrize("name", FOLDERS)
def test_rooms_of_a_folder_import_one_way(name: str) -> None:
    """A room is a folder inside a folder, or a module next to it; no two of them import each other."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for module, uses in graph().items():
        if folder(module) == name:
            rooms[room(module)] |= {room(used) for used in uses if folder(used) == name} - {room(module)}
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))


def test_no_module_imports_itself_through_others() -> None:
    try:
        TopologicalSorter({module: imported - FACE for module, imported in graph().items()}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))


@pytest.mark.parametrize("package", ONLY_IN)
def test_a_heavy_package_stays_in_its_folders(package: str) -> None:
    users = {module for module, names in all_imports().items() if package in map(folder, names)}
    assert users
    assert {module for module in users if folder(module) not in ONLY_IN[package]} == set()


def test_sql_is_only_where_the_databases_are() -> None:
    statements = {
        (module, node.value.strip().splitlines()[0])
        for module, found in modules().items()
        if folder(module) not in SQL_FOLDERS and module not in SQL_MODULES
        for node in found
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    }
    assert statements == set()


def test_every_module_can_be_imported() -> None:
    for name in modules():
        if folder(name) not in FACE:
            import_module(f"momentseek.{name}")


def test_public_names_load_on_first_use_and_none_is_a_modules() -> None:
    package = import_module("momentseek")
    assert [thing for thing in package.__all__ if getattr(package, thing, None) is None] == []
    assert {thing for thing in package.__all__ if thing in modules()} == set()
