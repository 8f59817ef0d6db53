"""Companion libraries: the same videos as the served library's, indexed with other encoders, to compare encoders.

A library has one encoder, so comparing encoders means searching several libraries. Hits of a companion are translated
to the served library by the hashes of the videos; hits in videos that it lacks are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from momentseek.api import Library, open_library
from momentseek.errors import MomentseekError
from momentseek.library.encoders import vision_spec
from momentseek.server.errors import ApiError
from momentseek.server.settings import Limits
from momentseek.server.workers import LibraryWorkers


class CompanionLibraries:
    """The companion libraries of a server by the names of their encoders; each has a thread that searches it."""

    def __init__(self, served: Path, others: Iterable[Path], limits: Limits) -> None:
        taken = {_encoder_at(served): served}
        self._workers: dict[str, LibraryWorkers] = {}
        for path in others:
            name = _encoder_at(path)
            if name in taken:
                raise MomentseekError(
                    f"{path}: has the encoder {name!r}, as {taken[name]} has; a companion library needs another encoder"
                )
            taken[name] = path
            self._workers[name] = LibraryWorkers(path, "companion", 1, limits.waiting, limits.seconds)

    @property
    def names(self) -> list[str]:
        """The encoders of the companion libraries."""
        return list(self._workers)

    async def workers(self, name: str, served: LibraryWorkers) -> LibraryWorkers | None:
        """The workers of the library with an encoder; None for the served library's own, 422 if no library has it."""
        if not name:
            return None
        if name in self._workers:
            return self._workers[name]
        own = await served.run(encoder_name)
        if name == own:
            return None
        raise ApiError(
            422,
            f"there is no library with the encoder {name!r} here; there are {', '.join((own, *self.names))}, "
            "and momentseek serve --beside LIBRARY adds others",
        )

    def close(self) -> None:
        """Close the companion libraries."""
        for workers in self._workers.values():
            workers.close()


def encoder_name(library: Library) -> str:
    """The name by which clients know the encoder of a library's frames."""
    return public_spec(vision_spec(library.catalog))


def public_spec(spec: str) -> str:
    """An encoder's spec as clients may see it: without folders of this machine, and without semicolons.

    >>> public_spec("labels"), public_spec("file:/home/ann/models/clip;2"), public_spec("hub:openai/clip")
    ('labels', 'file:clip,2', 'hub:openai/clip')
    """
    kind, colon, place = spec.partition(":")
    if colon and Path(place).expanduser().is_absolute():
        place = Path(place).name
    return f"{kind}{colon}{place}".replace(";", ",").strip()


def _encoder_at(path: Path) -> str:
    with open_library(path, create=False) as library:
        return encoder_name(library)
