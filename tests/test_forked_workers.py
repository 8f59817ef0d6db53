"""The processes that the suite itself is run in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parent / "helpers"
FIXTURE = """
import os
import pytest

os.environ["REPORTS"] = str(os.getpid())

@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / f"opened-by-{os.getpid()}"
    file.touch()
    yield os.getpid()
    file.rename(file.with_name(f"closed-by-{os.getpid()}"))
"""
FOLDER = """
import os, warnings
import pytest

@pytest.mark.parametrize("number", range(6))
def test_passes(number, opened):
    assert opened == os.getpid() and os.getppid() == int(os.environ["REPORTS"])
"""
OTHERS = """
def test_fails():
    print("what was printed")
    warnings.warn("what was warned of")
    assert [1, 2] == [1, 3]

@pytest.mark.skip(reason="why it is not run")
def test_is_skipped(): ...

def test_ends_the_process(): os._exit(7)

def test_comes_after(opened): ...
"""


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "forked_workers", "-p", "no:cacheprovider", "-ra", *options, "."]
    done = subprocess.run(
        [*command, "--basetemp", str(folder / "temporary")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(HELPERS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(FIXTURE)
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(FOLDER)
    return tmp_path


def test_every_test_is_run_once_and_what_happens_is_told(folder: Path) -> None:
    (folder / "two" / "test_two.py").write_text(FOLDER + OTHERS)
    said = run(folder, "--forks", "2", "--verbose")
    assert "2 failed, 19 passed, 1 skipped, 1 warning" in said
    passes = re.findall(r"(\w+/\w+.py::test_passes\[\d\]) PASSED", said)
    assert len(passes) == len(set(passes)) == 18
    assert "At index 1 diff: 2 != 3" in said
    assert "what was printed" in said
    assert "what was warned of" in said
    assert "why it is not run" in said
    assert "the process of this test ended with 7" in said
    opened, closed = (list((folder / "temporary").glob(f"{state}-by-*")) for state in ("opened", "closed"))
    assert len(opened) <= 1 <= len(closed)  # the process that was ended could not close what it had opened


def test_it_stops_at_the_first_failure_where_that_is_asked_for(folder: Path) -> None:
    (folder / "one" / "test_one.py").write_text("def test_fails(): assert False\n" + FOLDER)
    said = run(folder, "--forks", "1", "-x")
    assert "stopping after 1 failures" in said
    assert "1 failed" in said
    assert not list((folder / "temporary").glob("opened-by-*"))
