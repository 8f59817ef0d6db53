"""A server that speaks S3 and keeps its objects as files of a folder, so that it can be killed and started again.

    python bench/s3_folder.py FOLDER HOST PORT BUCKET

It is the server of the tests (tests/helpers/s3_server.py): it knows conditional writes, and checks no signature.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from urllib.parse import quote, unquote

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from s3_server import S3Server


class FolderObjects(MutableMapping[str, bytes]):
    """Objects by name, each a file that is written under another name and renamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / quote(name, safe="")

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, data: bytes) -> None:
        part = self._folder / f".part-{threading.get_ident()}"
        part.write_bytes(data)
        part.replace(self._path(name))

    def __delitem__(self, name: str) -> None:
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return (unquote(name) for name in os.listdir(self._folder) if not name.startswith(".part-"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def main(folder: str, host: str, port: str, *buckets: str) -> None:
    """Serve until the process is ended."""
    server = S3Server(*buckets, host=host, port=int(port))
    server.objects = FolderObjects(Path(folder))
    print(server.address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
