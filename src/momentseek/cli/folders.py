"""Folders that a command writes into: made before the work, gone again if it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from momentseek.errors import MomentseekError


@contextmanager
def new_folders(*folders: str | None) -> Iterator[None]:
    """Make folders (and those above them) for the time of a ``with``; if it fails, the new ones are removed again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     try:
    ...         with new_folders(f"{here}/new/one"):
    ...             print((Path(here) / "new/one").is_dir())
    ...             raise MomentseekError("no")
    ...     except MomentseekError:
    ...         print((Path(here) / "new").exists())
    True
    False
    """
    new: list[Path] = []
    try:
        for folder in filter(None, folders):
            _make(Path(folder), new)
        yield
    except BaseException:
        for path in reversed(new):
            with suppress(OSError):  # somebody else has put something into it
                path.rmdir()
        raise


def _make(folder: Path, new: list[Path]) -> None:
    for path in (*reversed(folder.parents), folder):
        try:
            path.mkdir()
            new.append(path)
        except FileExistsError:
            if not path.is_dir():
                raise MomentseekError(f"{folder}: cannot be created as a folder ({path} is a file)") from None
        except OSError as e:
            if not path.is_dir():
                raise MomentseekError(
                    f"{folder}: cannot be created as a folder ({e.strerror}); choose another"
                ) from None
