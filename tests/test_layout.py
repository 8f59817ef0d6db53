"""The order of the package: tests mirror it, a name means one thing, and it stays small."""

from __future__ import annotations

import ast
import re
import runpy
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from source import PACKAGE, nodes

TESTS = Path(__file__).parent
WITHOUT_A_FOLDER = {"browser", "server/database"}
"""Folders of tests that drive several folders at once, or have fixtures of their own."""
LIMITS = {
    "modules": 570,
    "lines": 105_330,  # a sample of spans for the list loss; texts judged by the word index's lists, in arrays
    "late imports": 65,
    "entries at the top": 12,
    "functions over 100 lines": 0,
    "commands over 60 lines": 0,
    "calls with over 8 positional arguments": 6,
}
"""What ``tools/census.py`` may count at most; lower a limit when the package has become smaller."""
NOT_PARTICIPLES = {"embed", "feed", "learned", "need", "proceed", "seed", "shed", "speed", "watershed"}
"""Other words that end like one; ``learned`` and ``watershed`` are localisers, named as users name them."""
IRREGULAR = """
asked begun bought bound broken brought built caught chosen drawn found given grown heard held kept known laid left
made meant met said seen sent shown sought spent spoken taken taught thought told worn written
"""


def test_folders_of_tests_mirror_the_package() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    assert {str(folder) for folder in folders - packages} == WITHOUT_A_FOLDER


@pytest.mark.parametrize("what", LIMITS)
def test_the_package_stays_small(what: str, counted: Mapping[str, int]) -> None:
    assert counted[what] <= LIMITS[what], "run tools/census.py, and see docs/architecture.md on keeping it small"


@pytest.fixture(scope="module")
def counted() -> Mapping[str, int]:
    return runpy.run_path(str(TESTS.parent / "tools" / "census.py"))["census"](PACKAGE)


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, found in nodes().items():
        for node in found:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    assert {name: lines for name, lines in places.items() if len(lines) > 1} == {}


def test_functions_are_named_by_verbs_or_by_what_they_return() -> None:
    """A bare participle says neither; as a property it may say in what state a thing is."""
    assert [f"{path}:{node.lineno} {node.name}" for path, node in functions() if is_participle(node.name)] == []


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions and methods but properties and commands."""
    for path, found in nodes().items():
        for node in found:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                is_command = any("command(" in decorator for decorator in decorators)  # named as people type it
                if not is_command and not decorators & {"property", "cached_property"}:
                    yield path, node


def is_participle(name: str) -> bool:
    word = name.strip("_")
    return word in IRREGULAR.split() or (bool(re.fullmatch(r"[a-z]{2,}ed", word)) and word not in NOT_PARTICIPLES)
