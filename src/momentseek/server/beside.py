"""Libraries beside the served one: the same videos, seen by other encoders.

A library has one encoder, so that to compare encoders several libraries are searched. Their moments are brought into
the served library by the hash of the videos' bytes; what is not there is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.library.encoders import vision_spec
from momentseek.server.errors import ApiError
from momentseek.server.settings import Limits
from momentseek.server.workers import Workers


class Beside:
    """The libraries beside, by the name of their encoder; each is searched by a thread of its own."""

    def __init__(self, served: Path, others: Iterable[Path], limits: Limits) -> None:
        taken = {_encoder_at(served): served}
        self._workers: dict[str, Workers] = {}
        for path in others:
            name = _encoder_at(path)
            if name in taken:
                raise MomentseekError(
                    f"{path}: has the encoder {name!r}, as {taken[name]} has; beside it goes a library of another one"
                )
            taken[name] = path
            self._workers[name] = Workers(path, "beside", 1, limits.waiting, limits.seconds)

    @property
    def names(self) -> list[str]:
        """The encoders of the libraries beside."""
        return list(self._workers)

    async def workers(self, name: str, served: Workers) -> Workers | None:
        """Who searches with an encoder; None for the served library's own, 422 if there is no such encoder."""
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
        """Let go of them."""
        for workers in self._workers.values():
            workers.close()


def encoder_name(library: Library) -> str:
    """What clients call the encoder of a library's frames."""
    return nameless_spec(vision_spec(library.catalog))


def nameless_spec(spec: str) -> str:
    """An encoder's spec without the folders in it, which are nobody's business, and as one value of a setup.

    >>> nameless_spec("labels"), nameless_spec("file:/home/ann/models/clip;2"), nameless_spec("hub:openai/clip")
    ('labels', 'file:clip,2', 'hub:openai/clip')
    """
    kind, colon, place = spec.partition(":")
    if colon and Path(place).expanduser().is_absolute():
        place = Path(place).name
    return f"{kind}{colon}{place}".replace(";", ",").strip()


def _encoder_at(path: Path) -> str:
    with Library.open(path, create=False) as library:
        return encoder_name(library)
