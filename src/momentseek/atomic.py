"""Writing files so that nobody ever sees half of one, nor half of a set."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping

from momentseek.errors import MomentseekError

Path = str | os.PathLike[str]


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it, so that nobody ever sees half of it; ``.gz`` is compressed."""
    write_all({path: data})


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write several files or none: all are written beside their places before the first is renamed."""
    waiting: list[tuple[pathlib.Path, pathlib.Path]] = []
    try:
        for path, data in files.items():
            target = pathlib.Path(path)
            waiting.append((_written_beside(target, data), target))
        for temporary, target in waiting:
            _rename(temporary, target)
    finally:
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)


def _rename(temporary: pathlib.Path, target: pathlib.Path) -> None:
    try:
        temporary.replace(target)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder") from None


def _written_beside(target: pathlib.Path, data: bytes) -> pathlib.Path:
    import tempfile  # here, because reading must not wait for it

    if target.suffix == ".gz":
        import gzip

        data = gzip.compress(data, mtime=0)
    temporary = None
    try:
        if target.exists() and not target.is_file():
            what = "folder" if target.is_dir() else "device or pipe"
            raise MomentseekError(f"{target}: is a {what}; only files are replaced, so choose another name")
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = pathlib.Path(file.name)
            file.write(data)
        temporary.chmod(0o666 & ~_umask())
    except OSError as e:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder") from None
    return temporary


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
