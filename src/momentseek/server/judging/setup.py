"""SearchSetup: the choices of a search that are compared with one another, as text and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.hit import Results
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, LOCALISERS
from momentseek.search.options import STREAMS, Stream
from momentseek.search.query import Query

SETUP_KEYS = ("localiser", "streams", "fusion", "encoder", "all")


@dataclass(frozen=True)
class SearchSetup:
    """How to search: the localiser, the streams, the fusion, the encoder, and whether weak hits count.

    >>> SearchSetup.parse("streams=speech,vision; localiser=watershed")
    SearchSetup(localiser='watershed', streams=('vision', 'speech'), all=True, fusion='rrf', encoder='')
    >>> print(SearchSetup("scenes"), SearchSetup(fusion="scores", encoder="labels"), sep=chr(10))
    localiser=scenes;streams=vision,speech,text,described,name
    streams=vision,speech,text,described,name;fusion=scores;encoder=labels
    """

    localiser: str = ""
    """The library's own if empty."""
    streams: tuple[Stream, ...] = STREAMS
    all: bool = True
    """Whether weak hits count: a ranking is measured whole, also where the page would hide its end."""
    fusion: str = DEFAULT_FUSION
    encoder: str = ""
    """The encoder whose library is searched; the served library's own if empty."""

    @classmethod
    def parse(cls, text: str) -> SearchSetup:
        """Parse ``localiser=NAME;streams=A,B;all=false``; what is left out has its default, unknown names are refused.

        >>> SearchSetup.parse("all=perhaps")
        Traceback (most recent call last):
            ...
        momentseek.core.errors.MomentseekError: all is true or false
        """
        given: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key not in SETUP_KEYS:
                raise MomentseekError(f"there is no setting {key!r}; there are {', '.join(SETUP_KEYS)}")
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
    ) -> SearchSetup:
        """Check and combine the choices given as texts, streams separated by commas; encoders are not checked."""
        if localiser:
            _ = LOCALISERS[localiser]
        _ = FUSIONS[fusion]
        chosen = set(STREAMS) if streams is None else {part.strip() for part in streams.split(",")}
        if not chosen <= set(STREAMS):
            raise MomentseekError(f"streams are some of {', '.join(STREAMS)}, separated by commas")
        if all not in ("true", "false"):
            raise MomentseekError("all is true or false")
        return cls(localiser, tuple(s for s in STREAMS if s in chosen), all == "true", fusion, encoder)

    def __str__(self) -> str:
        """The canonical text of a setup: equal setups have the same text."""
        parts = [f"localiser={self.localiser}"] * bool(self.localiser) + [f"streams={','.join(self.streams)}"]
        parts += [f"fusion={self.fusion}"] * (self.fusion != DEFAULT_FUSION)
        parts += [f"encoder={self.encoder}"] * bool(self.encoder)
        return ";".join(parts + ["all=false"] * (not self.all))

    def resolve(self, library: Library) -> SearchSetup:
        """The setup with the library's own localiser filled in where none is named."""
        return replace(self, localiser=self.localiser or library.localiser)

    def search(self, library: Library, query: Query, k: int) -> Results:
        """Search a library, which must have the setup's encoder, for the best ``k`` hits."""
        return library.search(
            query, k, localiser=self.localiser or None, streams=self.streams, all=self.all, fusion=self.fusion
        )


def pool_setups(
    localiser: str = DEFAULT_LOCALISER, localisers: Iterable[str] = (), encoders: Iterable[str] = ()
) -> tuple[SearchSetup, ...]:
    """The setups whose moments are pooled for judging: the default one, and those that differ from it in one choice.

    >>> [str(setup) for setup in pool_setups()][0], len(pool_setups(encoders=["other"])) - len(pool_setups())
    ('localiser=height;streams=vision,speech,text,described,name', 1)
    >>> len(pool_setups("scenes", ["scenes", "whole"])) - len(pool_setups("scenes"))
    1
    """
    default = SearchSetup(localiser)
    return (
        default,
        *(replace(default, localiser=name) for name in localisers if name != localiser),
        *(replace(default, streams=(stream,)) for stream in STREAMS),
        *(replace(default, fusion=name) for name in sorted(FUSIONS) if name != default.fusion),
        *(SearchSetup(encoder=name) for name in encoders),
    )
