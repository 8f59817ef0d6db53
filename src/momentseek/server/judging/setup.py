"""Setup: the choices of a search that are compared with one another, as text and back."""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.errors import MomentseekError
from momentseek.search import Library, Results
from momentseek.search.localise import DEFAULT, LOCALISERS, localiser
from momentseek.search.options import STREAMS, Stream
from momentseek.search.query import Query

KEYS = ("localiser", "streams", "all")


@dataclass(frozen=True)
class Setup:
    """How to search.

    >>> Setup.parse("streams=speech,vision; localiser=watershed")
    Setup(localiser='watershed', streams=('vision', 'speech'), all=True)
    >>> str(Setup())
    'localiser=scenes;streams=vision,speech,name'
    """

    localiser: str = DEFAULT
    streams: tuple[Stream, ...] = STREAMS
    all: bool = True
    """Weak hits too: a ranking is measured whole, also where the page would hide its end."""

    @classmethod
    def parse(cls, text: str) -> Setup:
        """Read ``localiser=NAME;streams=A,B;all=false``; what is left out is as usual, and nonsense is refused.

        >>> Setup.parse("localizer=scenes")
        Traceback (most recent call last):
            ...
        momentseek.errors.MomentseekError: there is no setting 'localizer'; there are localiser, streams, all
        """
        given: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key not in KEYS:
                raise MomentseekError(f"there is no setting {key!r}; there are {', '.join(KEYS)}")
            if key in given:
                raise MomentseekError(f"{key} is set twice; keep one")
            given[key] = value
        return cls.of(given.get("localiser", DEFAULT), given.get("streams"), given.get("all", "true"))

    @classmethod
    def of(cls, name: str = DEFAULT, streams: str | None = None, all: str = "true") -> Setup:
        """From single texts; streams stand with commas between."""
        localiser(name)
        asked = set(STREAMS) if streams is None else {part.strip() for part in streams.split(",")}
        if not asked <= set(STREAMS):
            raise MomentseekError(f"streams are some of {', '.join(STREAMS)}, with commas between")
        if all not in ("true", "false"):
            raise MomentseekError("all is true or false")
        return cls(name, tuple(stream for stream in STREAMS if stream in asked), all == "true")

    def __str__(self) -> str:
        """The one spelling by which two of them are told apart."""
        return f"localiser={self.localiser};streams={','.join(self.streams)}" + (";all=false" if not self.all else "")

    def search(self, library: Library, query: Query, k: int) -> Results:
        """The best moments by this setup."""
        return library.search(query, k, localiser=self.localiser, streams=self.streams, all=self.all)


def pooled() -> tuple[Setup, ...]:
    """The setups whose moments are judged: every localiser on all streams, and the usual one on each stream alone.

    >>> [str(setup) for setup in pooled()][0], len(pooled()) == len(LOCALISERS) + len(STREAMS)
    ('localiser=scenes;streams=vision,speech,name', True)
    """
    others = [Setup(name) for name in sorted(LOCALISERS) if name != DEFAULT]
    return (Setup(), *others, *(Setup(streams=(stream,)) for stream in STREAMS))
