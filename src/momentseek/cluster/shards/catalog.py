"""ShardedCatalog: the catalogs of all shards, read as one; each video is in one of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import LibraryError
from momentseek.library.catalog import Catalog, EncoderRow, SegmentRow
from momentseek.library.database import SPEECH, TrackKind
from momentseek.library.merging import CompactReport
from momentseek.library.report import AddReport
from momentseek.library.status import Status
from momentseek.library.tracks.sounds import SoundReport
from momentseek.library.verify import VerifyReport
from momentseek.library.video import Failure, Video
from momentseek.media.subtitles.cues import Cue

T = TypeVar("T")


class ShardedCatalog(Catalog):
    """All catalogs of a library in shards, open for reading; what changes a video is asked of its own (:meth:`of`)."""

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
        """Read the same state of every shard several times."""
        with ExitStack() as stack:
            for catalog in self.catalogs:
                stack.enter_context(catalog.view())
            yield

    def rows(self, sql: str, values: Sequence[Any] = ()) -> NoReturn:
        """Refuse: one statement cannot be asked of several databases."""
        raise LibraryError(f"{self.path}: is in shards; ask the catalog of a video")

    def run(self, sql: str, values: Sequence[Any] = ()) -> NoReturn:
        """Refuse: one statement cannot change several databases."""
        raise LibraryError(f"{self.path}: is in shards; change the catalog of a video")

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a setting, from the first shard that has it."""
        found = (value for catalog in self.catalogs if (value := catalog.get(key)) is not None)
        return next(found, default)

    def state(self) -> tuple[int, int]:
        """Two numbers that change whenever anybody has changed a shard."""
        states = [catalog.state() for catalog in self.catalogs]
        return sum(one for one, _ in states), sum(other for _, other in states)

    def generation(self) -> int:
        """A number that changes whenever another connection has committed something to a shard."""
        return sum(catalog.generation() for catalog in self.catalogs)

    def encoder(self, stream: str) -> EncoderRow | None:
        """The encoder that made a stream's vectors; None if there are none yet."""
        return next((row for catalog in self.catalogs if (row := catalog.encoder(stream)) is not None), None)

    def videos(self, ids: Iterable[int] | None = None) -> list[Video]:
        """All videos of the library by id, or those of ``ids`` that are in it."""
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
        """Ids of removed videos whose vectors still lie in segments."""
        return np.sort(np.concatenate([catalog.gone() for catalog in self.catalogs]))

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        return sorted(self._each(lambda catalog: catalog.failures()), key=lambda failure: failure.path)

    def totals(self) -> dict[str, float]:
        """Numbers of videos, of their seconds, clips and cues, and of failures, by these names."""
        each = [catalog.totals() for catalog in self.catalogs]
        return {name: sum(one[name] for one in each) for name in each[0]}

    def content_number(self) -> int:
        """A number that changes with what the library holds."""
        return zlib.crc32(repr([catalog.content_number() for catalog in self.catalogs]).encode())

    def page_of_videos(self, name: str, limit: int, offset: int) -> tuple[int, list[Video]]:
        """How many videos have ``name`` in their names (all, if it is empty), and ``limit`` of these by name."""
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
        """Number of cues that hold a word in any of its forms; of all cues if no word is given."""
        return sum(catalog.count_cues(word, kind) for catalog in self.catalogs)

    def _each(self, ask: Callable[[Catalog], list[T]]) -> list[T]:
        return [one for catalog in self.catalogs for one in ask(catalog)]


def join_statuses(parts: Sequence[Status], path: Path) -> Status:
    """The counts of all shards together, as those of the library in ``path``."""
    sums = {
        field.name: sum(getattr(part, field.name) for part in parts)
        for field in fields(Status)
        if field.type in ("int", "float") and field.name != "clip_seconds"
    }
    encoders = {row.stream: row for part in reversed(parts) for row in part.encoders}
    return replace(
        parts[0],
        **sums,
        path=path,
        encoders=tuple(encoders[stream] for stream in ("vision", "speech") if stream in encoders),
        unfinished=any(part.unfinished for part in parts),
        reencoding=next((part.reencoding for part in parts if part.reencoding), None),
    )


def join_reports(parts: Sequence[AddReport], elapsed: float) -> AddReport:
    """What was added to all shards."""
    out = AddReport(elapsed=elapsed)
    for part in parts:
        for field in fields(AddReport):
            value = getattr(part, field.name)
            if field.name == "elapsed":
                continue
            if isinstance(value, bool):
                setattr(out, field.name, getattr(out, field.name) or value)
            elif isinstance(value, dict):
                mine = getattr(out, field.name)
                for key, seconds in value.items():
                    mine[key] = mine.get(key, 0.0) + seconds
            else:
                setattr(out, field.name, getattr(out, field.name) + value)
    out.notes = list(dict.fromkeys(out.notes))
    return out


def join_checks(parts: Sequence[tuple[str, VerifyReport]]) -> VerifyReport:
    """What is wrong with any shard; texts say which."""
    out = VerifyReport()
    for name, part in parts:
        out.videos, out.segments = out.videos + part.videos, out.segments + part.segments
        out.rows, out.cues = out.rows + part.rows, out.cues + part.cues
        out.problems += [f"{name}: {text}" for text in part.problems]
        out.notes += [f"{name}: {text}" for text in part.notes]
        out.repaired += [f"{name}: {text}" for text in part.repaired]
        out.words &= part.words
    return out


def join_compactions(parts: Sequence[CompactReport]) -> CompactReport:
    """What compaction did to all shards."""
    return CompactReport(*(sum(getattr(part, field.name) for part in parts) for field in fields(CompactReport)))


def join_hearings(parts: Sequence[SoundReport]) -> SoundReport:
    """What was heard in all shards."""
    failed = [one for part in parts for one in part.failed]
    return SoundReport(sum(part.heard for part in parts), sum(part.events for part in parts), failed)
