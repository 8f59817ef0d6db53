"""ShardedCatalog: the catalogs of all shards, read as one catalog."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import LibraryError
from momentseek.library.catalog import Catalog, EncoderRow, SegmentRow
from momentseek.library.database import SPEECH, TrackKind
from momentseek.library.video import Failure, Video, VideoPlace
from momentseek.media.subtitles.cues import Cue

T = TypeVar("T")


class ShardedCatalog(Catalog):
    """All catalogs of a library in shards, open for reading; to change a video, use its own catalog (:meth:`of`)."""

    def __init__(self, path: Path, catalogs: Sequence[Catalog]) -> None:
        self.path, self.catalogs = path, tuple(catalogs)
        self.read_only = True

    @property
    def parts(self) -> tuple[Catalog, ...]:
        """The catalogs of the shards."""
        return self.catalogs

    def of(self, video: int) -> Catalog:
        """The catalog of the shard that has a video; the first one if none has."""
        having = (c for c in self.catalogs if c.rows("SELECT 1 FROM videos WHERE id = ?", (video,)))
        return next(having, self.catalogs[0])

    def close(self) -> None:
        """Close all catalogs."""
        for catalog in self.catalogs:
            catalog.close()

    @contextmanager
    def view(self) -> Iterator[None]:
        """Read several times from one unchanging state of every shard."""
        with ExitStack() as stack:
            for catalog in self.catalogs:
                stack.enter_context(catalog.view())
            yield

    def rows(self, sql: str, values: Sequence[Any] = ()) -> NoReturn:
        """Refuse: one statement cannot read several databases."""
        raise LibraryError(f"{self.path}: is in shards; ask the catalog of a video")

    def run(self, sql: str, values: Sequence[Any] = ()) -> NoReturn:
        """Refuse: one statement cannot change several databases."""
        raise LibraryError(f"{self.path}: is in shards; change the catalog of a video")

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a setting, from the first shard that has it."""
        found = (value for catalog in self.catalogs if (value := catalog.get(key)) is not None)
        return next(found, default)

    def set(self, key: str, value: Any) -> None:
        """Store a setting, in the first shard."""
        self.catalogs[0].set(key, value)

    def state(self) -> tuple[int, int]:
        """Two numbers that change whenever a shard is changed."""
        states = [catalog.state() for catalog in self.catalogs]
        return sum(one for one, _ in states), sum(other for _, other in states)

    def generation(self) -> int:
        """A number that changes whenever another connection commits a change to a shard."""
        return sum(catalog.generation() for catalog in self.catalogs)

    def encoder(self, stream: str) -> EncoderRow | None:
        """The encoder that made a stream's vectors; None if there are none yet."""
        return next((row for catalog in self.catalogs if (row := catalog.encoder(stream)) is not None), None)

    def places(self, paths: Collection[str] | None = None) -> list[VideoPlace]:
        """Path and name of the videos at some paths, or of all videos, by id."""
        return sorted(place for catalog in self.catalogs for place in catalog.places(paths))

    def videos(self, ids: Iterable[int] | None = None) -> list[Video]:
        """All videos of the library, or those with the given ``ids``, by id."""
        wanted = None if ids is None else list(ids)
        return sorted(self._each(lambda catalog: catalog.videos(wanted)), key=lambda video: video.id)

    def ids(
        self, *, names: Sequence[str] = (), after: float | None = None, before: float | None = None
    ) -> NDArray[np.int64]:
        """Ids of the videos whose name matches any of the globs and whose file time lies in ``[after, before)``."""
        found = [catalog.ids(names=names, after=after, before=before) for catalog in self.catalogs]
        return np.sort(np.concatenate(found))

    def cues(self, video: int, kind: TrackKind = SPEECH) -> list[Cue]:
        """The cues of a video."""
        return self.of(video).cues(video, kind)

    def cues_between(self, video: int, start: float, end: float, kind: TrackKind = SPEECH) -> list[Cue]:
        """The cues of a video that overlap the time from ``start`` to ``end`` (seconds)."""
        return self.of(video).cues_between(video, start, end, kind)

    def segments(self, stream: str | None = None) -> list[SegmentRow]:
        """The segments of all shards."""
        return self._each(lambda catalog: catalog.segments(stream))

    def gone(self) -> NDArray[np.int64]:
        """Ids of removed videos whose vectors are still in segments."""
        return np.sort(np.concatenate([catalog.gone() for catalog in self.catalogs]))

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        return sorted(self._each(lambda catalog: catalog.failures()), key=lambda failure: failure.path)

    def totals(self) -> dict[str, float]:
        """Totals by name: videos, their seconds, clips and cues, and failures."""
        each = [catalog.totals() for catalog in self.catalogs]
        return {name: sum(one[name] for one in each) for name in each[0]}

    def content_number(self) -> int:
        """A number that changes with what the library holds."""
        return zlib.crc32(repr([catalog.content_number() for catalog in self.catalogs]).encode())

    def page_of_videos(self, name: str, limit: int, offset: int) -> tuple[int, list[Video]]:
        """The number of videos with ``name`` in their names (all, if it is empty), and a page of them, by name."""
        pages = [catalog.page_of_videos(name, limit + offset, 0) for catalog in self.catalogs]
        videos = sorted((v for _, page in pages for v in page), key=lambda v: (v.name.encode("utf-8", "replace"), v.id))
        return sum(total for total, _ in pages), videos[offset : offset + limit]

    def find_contents(self, hashes: Iterable[str]) -> list[tuple[str, int, Path]]:
        """Hash, id and path of every video whose content has one of the ``hashes``, by id."""
        wanted = list(hashes)
        return sorted(self._each(lambda catalog: catalog.find_contents(wanted)), key=lambda found: found[1])

    def copies(self, video: Video) -> tuple[str, ...]:
        """Names of the other videos with the same content, which are in the same shard."""
        return self.of(video.id).copies(video)

    def count_cues(self, word: str | None = None, kind: TrackKind = SPEECH) -> int:
        """Number of cues that contain a word in any of its forms, or of all cues if no word is given."""
        return sum(catalog.count_cues(word, kind) for catalog in self.catalogs)

    def _each(self, ask: Callable[[Catalog], list[T]]) -> list[T]:
        return [one for catalog in self.catalogs for one in ask(catalog)]


def add_up(reports: Sequence[T], **own: Any) -> T:
    """Merge the reports of several shards (dataclasses): numbers are added, lists and dictionaries joined.

    For other fields the first value that is not empty counts; ``own`` overrides fields.
    """
    first = reports[0]
    columns = {f.name: [getattr(one, f.name) for one in reports] for f in fields(first)}  # type: ignore[arg-type]
    return type(first)(**{name: own[name] if name in own else _add(values) for name, values in columns.items()})


def _add(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, bool):
        return any(values)
    if isinstance(first, int | float):
        return sum(values)
    if isinstance(first, list | tuple):
        return type(first)(one for value in values for one in value)
    if isinstance(first, dict):
        out: dict[Any, Any] = {}
        for value in values:
            for key, one in value.items():
                out[key] = out[key] + one if key in out else one
        return out
    return next((value for value in values if value), first)
