"""Library: a collection of videos to search, in one folder, in shards or in object storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import update_wrapper
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from momentseek.cluster.manifest import is_sharded
from momentseek.cluster.replicas.place import MAX_PICTURED_BYTES, source_file
from momentseek.cluster.replicas.replica import update_replica
from momentseek.cluster.shard_client import LocalShards, ShardClient
from momentseek.cluster.shards.store import ShardedStore, shard_of
from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.moments.moment import Moment
from momentseek.core.pinned_file import PinnedFile
from momentseek.library.location import library_folder
from momentseek.library.paths import ThumbnailCache
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.store import LibraryStore
from momentseek.library.video import is_missing
from momentseek.media.cut import Cut
from momentseek.media.pixels import read_picture
from momentseek.media.sandbox.calls import cut, thumbnail
from momentseek.search.engine import Engine
from momentseek.search.example import SearchExample, example_of_picture
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.hit import Hit, Results
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, LEARNED_LOCALISER, MAP_LOCALISER
from momentseek.search.options import STREAMS, Group, SearchOptions, Stream
from momentseek.search.query import Query
from momentseek.search.questions import ReadQuestion, read_question

EMPTY_NOTE = "the library is empty; add videos with: momentseek add FOLDER"

P = ParamSpec("P")
R = TypeVar("R")


def open_store(
    place: str | os.PathLike[str], *, encoder: str | None = None, wait: float = 0.0, **new: Any
) -> LibraryStore:
    """Open a library to change it: in a folder, in shards, or in object storage (``s3://bucket/lib``).

    ``new`` holds the options ``create`` and ``clip_seconds`` of ``LibraryStore.open``.
    """
    folder = library_folder(os.fspath(place)) if "://" in os.fspath(place) else Path(os.path.abspath(place))
    update_replica(folder)
    if is_sharded(folder):
        return ShardedStore.open_shards(folder, encoder=encoder, wait=wait)
    return LibraryStore.open(folder, encoder=encoder, wait=wait, **new)


def _verb(verb: Callable[Concatenate[LibraryStore, P], R]) -> Callable[Concatenate[Library, P], R]:
    """Make a method of Library that calls the method of the same name of its store."""

    def call(self: Library, /, *args: P.args, **kwargs: P.kwargs) -> R:
        of_store: Callable[P, R] = getattr(self.store, verb.__name__)
        return of_store(*args, **kwargs)

    return update_wrapper(call, verb)


class Library:
    """A collection of videos that can be searched.

    Use one per thread, and keep it open: the first search loads the encoders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Library.open(folder, create=True) as library:
    ...     library.search("a dog on the beach").note
    'the library is empty; add videos with: momentseek add FOLDER'
    """

    def __init__(self, store: LibraryStore, shard_client: ShardClient | None = None) -> None:
        self.store = store
        """The library on disk, and the operations that change it."""
        if isinstance(store, ShardedStore) and shard_client is None:
            shard_client = LocalShards(dict(zip(store.manifest.shards, store.shards, strict=True)))
        self.engine = Engine(store, shard_client)
        """The search engine over the store."""
        self._thumbnails: dict[Path, ThumbnailCache] = {}

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        create: bool | None = None,
        encoder: str | None = None,
        clip_seconds: float = CLIP_SECONDS,
        wait: float = 0.0,
        shard_client: ShardClient | None = None,
    ) -> Self:
        """Open the library in a folder or at an address (``s3://bucket/lib``), with or without shards.

        A library that does not exist is created; ``create=True`` also creates the folders above it, and
        ``create=False`` refuses instead. ``encoder`` and ``clip_seconds`` are fixed when a library is created; naming
        another encoder for an existing library is an error, which gives the command that encodes it again.
        ``encoder="model:FOLDER"`` is a trained model that ``momentseek export`` has written; the library keeps a copy
        of it. ``wait`` is the number of seconds to wait for another writer. ``shard_client`` reaches shards outside
        this process.
        """
        return cls(
            open_store(place, create=create, encoder=encoder, clip_seconds=clip_seconds, wait=wait), shard_client
        )

    def close(self) -> None:
        """Close the library's files."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.store.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<Library {self.path}>"

    @property
    def path(self) -> Path:
        """The library's folder."""
        return self.store.path

    # searching

    def search(
        self,
        query: str | Query,
        k: int = 20,
        *,
        localiser: str | None = None,
        group: Group = "clip",
        streams: Sequence[Stream] | None = None,
        explain: bool = False,
        all: bool = False,
        fusion: str = DEFAULT_FUSION,
        rerank: str | os.PathLike[str] | None = None,
        rerank_videos: int = SearchOptions.rerank_videos,
    ) -> Results:
        """Return the best ``k`` moments for a query.

        A query is a text in the language of docs/searching.md, or a question. Weak hits are left out and counted
        (``.hidden``) unless ``all``. ``group="video"`` gives one moment per video, ``streams`` limits the search to
        some of the streams, and ``explain`` adds the curve of each hit's video. ``fusion`` is the method that combines
        the streams into one ranking, ``localiser`` the one that finds start and end. ``rerank`` is the folder of an
        exported model (2D-TAN, CTRL, …) that re-ranks the best ``rerank_videos`` videos and finds the moments in them
        (docs/encoders.md).
        """
        if not isinstance(query, str | Query):
            raise MomentseekError(f"a query is a text or a Query, not {type(query).__name__}; say what to look for")
        options = SearchOptions(
            k=k,
            localiser=self.engine.choose_localiser(localiser),
            group=group,
            streams=STREAMS if streams is None else tuple(streams),
            explain=explain,
            all=all,
            fusion=fusion,
            rerank=None if rerank is None else os.fspath(rerank),
            rerank_videos=rerank_videos,
        )
        read = read_question(Query.parse(query)) if isinstance(query, str) else ReadQuestion(query)
        results = self.engine.search(read.query, options)
        results.note = "; ".join(filter(None, (read.note, results.note)))
        if not results and not self.store.catalog.totals()["videos"]:
            results.note = EMPTY_NOTE
        return results

    def prepare(self, queries: Sequence[str]) -> None:
        """Encode the queries of several later searches in one run of the encoder; invalid queries are skipped."""
        read = []
        for query in queries:
            with suppress(MomentseekError):
                read.append(read_question(Query.parse(query)).query)
        self.engine.prepare(read)

    def more_like(
        self,
        example: Hit | Moment,
        k: int = 20,
        *,
        where: str | Query = "",
        localiser: str | None = None,
        group: Group = "clip",
        all: bool = False,
    ) -> Results:
        """Return the ``k`` moments that look most like a hit, or like any moment of a video (named as in the library).

        The moment itself is not among them. ``where`` may hold ``in:``, ``before:`` and ``after:``; the rest is as in
        :meth:`search`.
        """
        id = example.video_id if isinstance(example, Hit) else self._named_video(example.video)
        asked = self.engine.example(id, example.start, example.end)
        return self._search_like(asked, where, localiser, k=k, group=group, all=all)

    def search_picture(
        self,
        picture: str | os.PathLike[str] | bytes,
        k: int = 20,
        *,
        where: str | Query = "",
        localiser: str | None = None,
        group: Group = "clip",
        all: bool = False,
    ) -> Results:
        """Return the ``k`` moments that look most like a picture: a file (JPEG, PNG, WebP, …) or its bytes.

        ``where`` may hold ``in:``, ``before:`` and ``after:``; the rest is as in :meth:`search`.
        """
        encoders = self.store.encoders
        if encoders.has_model:
            raise MomentseekError(
                "a trained model made this library's vectors, and it takes no single pictures; search by a moment"
            )
        pixels = read_picture(picture if isinstance(picture, bytes) else Path(picture))
        asked = example_of_picture(encoders.vision, pixels)
        return self._search_like(asked, where, localiser, k=k, group=group, all=all)

    def _search_like(
        self, example: SearchExample, where: str | Query, localiser: str | None, *, k: int, group: Group, all: bool
    ) -> Results:
        chosen = self.engine.choose_localiser(localiser)
        if chosen in (LEARNED_LOCALISER, MAP_LOCALISER):  # models find spans by words
            chosen = DEFAULT_LOCALISER
        options = SearchOptions(k=k, localiser=chosen, group=group, streams=("vision",), all=all)
        return self.engine.search_like(example, Query.parse(where) if isinstance(where, str) else where, options)

    def _named_video(self, name: str) -> int:
        ids = [video.id for video in self.videos() if name in (video.name, str(video.path))]
        if len(ids) != 1:
            what = "is no video of the library" if not ids else f"is the name of {len(ids)} videos; give the path"
            raise MomentseekError(f"{name}: {what}{'; momentseek list shows them' if not ids else ''}")
        return ids[0]

    def thumbnail(self, hit: Hit, width: int = 320) -> bytes:
        """Return a WebP picture of a hit's most representative frame, cached in the library's folder."""
        folder = shard_of(self.store, hit.video_id).paths.thumbnails
        cache = self._thumbnails.setdefault(folder, ThumbnailCache(folder))
        name = f"{hit.video_id}-{round(hit.peak * 1000)}-{width}.webp"
        data = cache.get(name)
        if data is None:
            data = thumbnail(self._file(hit, MAX_PICTURED_BYTES), hit.peak, width)
            cache.keep(name, data)
        return data

    def cut(self, hit: Hit, out: str | os.PathLike[str], *, exact: bool = True, pad: float = 0.0) -> Cut:
        """Write a hit as a video file, ``pad`` seconds longer on each side."""
        return cut(self._file(hit), hit.start, hit.end, out, exact=exact, pad=pad)

    def _file(self, hit: Hit, max_bytes: int | None = None) -> PinnedFile:
        """The file of a hit, as it was added; raises MediaError if it is missing, replaced or not in the library."""
        found = self.store.catalog.videos([hit.video_id])
        if not found:
            raise MediaError(f"{hit.path}: is no longer in the library; search again")
        if is_missing(found[0].path):
            raise MediaError(f"{found[0].path}: does not exist; connect its drive, or add it again where it is now")
        return source_file(found[0], max_bytes)

        # the library on disk

    videos = _verb(LibraryStore.videos)
    status = _verb(LibraryStore.status)
    add = _verb(LibraryStore.add)
    remove = _verb(LibraryStore.remove)
    transcribe = _verb(LibraryStore.transcribe)
    ocr = _verb(LibraryStore.ocr)
    find_people = _verb(LibraryStore.find_people)
    forget_people = _verb(LibraryStore.forget_people)
    encode = _verb(LibraryStore.encode)
    listen = _verb(LibraryStore.listen)
    describe = _verb(LibraryStore.describe)
    verify = _verb(LibraryStore.verify)
    compact = _verb(LibraryStore.compact)
    reencode = _verb(LibraryStore.reencode)
