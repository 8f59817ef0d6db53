"""The hash-checked installation agrees with the versions that the suite is tested with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKED = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ;[^\n]*?)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.M)
EXTRAS = ("parquet", "plots", "offline", "speech", "ocr", "demo", "serve", "mcp")


def _names(requirements: list[str]) -> set[str]:
    """Names of packages other than our own, as the lock writes them."""
    names = {re.split(r"[\s<>=!;\[]", text, maxsplit=1)[0] for text in requirements}
    return {name.lower().replace("_", "-") for name in names} - {"momentseek"}


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    """Name → version; every line is a requirement with at least one hash, or a comment."""
    text = (ROOT / "requirements.lock").read_text()
    assert not LOCKED.sub("", re.sub("(?m)^ *#.*$", "", text)).strip()
    return {name: version for name, version, _ in LOCKED.findall(text)}


def test_the_versions_are_those_of_the_constraints(locked: dict[str, str]) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)
    different = {name: (version, pins[name]) for name, version in locked.items() if pins.get(name, version) != version}
    assert different == {}, "run make lock"
    assert "torch" not in locked


def test_nothing_that_is_needed_is_left_out(locked: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(text for extra in EXTRAS for text in project["optional-dependencies"][extra])]
    assert _names(wanted) <= set(locked), "run make lock"
