"""What makes collecting cheap: every worker of a run collects all tests, of which it will run a third."""

from __future__ import annotations

import compileall
import gc
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "src"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over a module without examples, which need not be imported to find none; import others by their names.

    Left to itself, pytest runs a module again that its package imported, and puts it in the package's namespace, in the
    place of a function of the same name.
    """
    if collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCE):
        if b">>>" not in collection_path.read_bytes():
            return True
        parts = collection_path.relative_to(SOURCE).with_suffix("").parts
        import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let the garbage collector rest while nothing but modules and tests is made, none of which is garbage."""
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        _compile_share(session, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def _compile_share(session: pytest.Session, worker: int, workers: int) -> None:
    """Compile the package and import the tests, each worker beginning at another part of them.

    In a fresh clone, workers that went through the files in the same order would each compile every one of them.
    """
    for path in sorted(SOURCE.rglob("*.py"))[worker::workers]:
        compileall.compile_file(path, quiet=2)
    given = [Path(argument.split("::")[0]).absolute() for argument in session.config.args]
    paths = [path for one in given for path in (sorted(one.rglob("test_*.py")) if one.is_dir() else [one])]
    first = len(paths) * worker // workers
    for path in [*paths[first:], *paths[:first]]:
        if path.name.startswith("test_") and path.suffix == ".py":
            with suppress(Exception, pytest.skip.Exception):  # collecting it says what is wrong
                _ = pytest.Module.from_parent(session, path=path).obj


def pytest_collection_finish() -> None:
    """Start it again, without what has been made so far: looking through that again and again finds nothing."""
    gc.collect()
    gc.freeze()
    gc.enable()
