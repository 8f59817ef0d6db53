"""The hash-checked installation agrees with the versions that the suite is tested with."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
LOCKED = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.M)


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    pytest.importorskip("packaging")
    spec = importlib.util.spec_from_file_location("lock", ROOT / "tools" / "lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    """Name → version; every line is a requirement with at least one hash, or a comment."""
    text = (ROOT / "requirements.lock").read_text()
    assert not LOCKED.sub("", re.sub("(?m)^#.*$", "", text)).strip()
    return {name: version for name, version, _ in LOCKED.findall(text)}


def test_the_versions_are_those_of_the_constraints(lock: ModuleType, locked: dict[str, str]) -> None:
    pins = lock.pins(ROOT / "constraints.txt")
    assert {name: pins.get(name) for name in locked} == locked
    assert "torch" not in locked


def test_nothing_that_is_needed_is_left_out(lock: ModuleType, locked: dict[str, str]) -> None:
    assert lock.closure(lock.project_requirements(lock.EXTRAS), lock.installed()) <= set(locked)


def test_a_requirement_of_any_platform_or_extra_counts(lock: ModuleType) -> None:
    requires = {
        "a": ["b; sys_platform == 'win32'", "c; extra == 'more'", "d; python_version < '3'", "E.F"],
        "e-f": ["c[x]"],
        "c": ["g; extra == 'x'"],
    }
    plain, more = (lock.closure([lock.Requirement(text)], requires) for text in ("a", "a[more]"))
    assert plain == more == {"a", "b", "c", "e-f", "g"}
