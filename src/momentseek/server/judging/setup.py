"""Setup: the choices of a search that are compared with one another, as text and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.search import Results
from momentseek.search.engine import STREAMS, Stream
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.localise import DEFAULT_LOCALISER, LOCALISERS
from momentseek.search.query import Query

KEYS = ("localiser", "streams", "fusion", "encoder", "all")


@dataclass(frozen=True)
class Setup:
    """How to search.

    >>> Setup.parse("streams=speech,vision; localiser=watershed")
    Setup(localiser='watershed', streams=('vision', 'speech'), all=True, fusion='rrf', encoder='')
    >>> str(Setup("scenes")), str(Setup(fusion="scores", encoder="labels"))
    ('localiser=scenes;streams=vision,speech,name', 'streams=vision,speech,name;fusion=scores;encoder=labels')
    """

    localiser: str = ""
    """The library's own, if none is named."""
    streams: tuple[Stream, ...] = STREAMS
    all: bool = True
    """Weak hits too: a ranking is measured whole, also where the page would hide its end."""
    fusion: str = DEFAULT_FUSION
    encoder: str = ""
    """Whose library is searched; the one that is served, if none is named."""

    @classmethod
    def parse(cls, text: str) -> Setup:
        """Read ``localiser=NAME;streams=A,B;all=false``; what is left out is as usual, and nonsense is refused.

        >>> Setup.parse("all=perhaps")
        Traceback (most recent call last):
            ...
        momentseek.errors.MomentseekError: all is true or false
        """
        given: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key not in KEYS:
                raise MomentseekError(f"there is no setting {key!r}; there are {', '.join(KEYS)}")
            if key in given:
                raise MomentseekError(f"{key} is set twice; keep one")
            given[key] = value
        return cls.of(**given)

    @classmethod
    def of(
        cls,
        localiser: str = "",
        streams: str | None = None,
        all: str = "true",
        fusion: str = DEFAULT_FUSION,
        encoder: str = "",
    ) -> Setup:
        """From single texts; streams stand with commas between. Which encoders there are, only a server knows."""
        if localiser:
            _ = LOCALISERS[localiser]
        _ = FUSIONS[fusion]
        asked = set(STREAMS) if streams is None else {part.strip() for part in streams.split(",")}
        if not asked <= set(STREAMS):
            raise MomentseekError(f"streams are some of {', '.join(STREAMS)}, with commas between")
        if all not in ("true", "false"):
            raise MomentseekError("all is true or false")
        return cls(localiser, tuple(s for s in STREAMS if s in asked), all == "true", fusion, encoder)

    def __str__(self) -> str:
        """The one spelling by which two of them are told apart."""
        parts = [f"localiser={self.localiser}"] * bool(self.localiser) + [f"streams={','.join(self.streams)}"]
        parts += [f"fusion={self.fusion}"] * (self.fusion != DEFAULT_FUSION)
        parts += [f"encoder={self.encoder}"] * bool(self.encoder)
        return ";".join(parts + ["all=false"] * (not self.all))

    def on(self, library: Library) -> Setup:
        """With all that is left to a library said."""
        return replace(self, localiser=self.localiser or library.localiser)

    def search(self, library: Library, query: Query, k: int) -> Results:
        """The best moments by this setup in a library, which has its encoder."""
        return library.search(
            query, k, localiser=self.localiser or None, streams=self.streams, all=self.all, fusion=self.fusion
        )


def pooled(localiser: str = DEFAULT_LOCALISER, encoders: Iterable[str] = ()) -> tuple[Setup, ...]:
    """The setups whose moments are judged: the usual one, with its localiser, and those that differ in one thing.

    >>> [str(setup) for setup in pooled()][0], len(pooled(encoders=["other"])) - len(pooled())
    ('localiser=scenes;streams=vision,speech,name', 1)
    """
    usual = Setup(localiser)
    return (
        usual,
        *(replace(usual, localiser=name) for name in sorted(LOCALISERS) if name != localiser),
        *(replace(usual, streams=(stream,)) for stream in STREAMS),
        *(replace(usual, fusion=name) for name in sorted(FUSIONS) if name != usual.fusion),
        *(Setup(encoder=name) for name in encoders),
    )
