"""Library: a collection that can be searched, in one folder, in shards or in object storage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.cluster.manifest import ShardManifest, is_sharded
from momentseek.cluster.replicas.place import MAX_PICTURED_BYTES, source_file
from momentseek.cluster.replicas.replica import bring_library
from momentseek.cluster.shard_client import LocalShards, ShardClient
from momentseek.cluster.shards.catalog import ShardedCatalog
from momentseek.cluster.shards.store import ShardedVerbs, open_sharded_store, open_shards
from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.moments.moment import Moment
from momentseek.core.pinned_file import PinnedFile
from momentseek.core.registry import did_you_mean
from momentseek.library.catalog import Catalog
from momentseek.library.location import library_folder
from momentseek.library.paths import ThumbnailCache
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.store import LibraryStore
from momentseek.library.video import is_missing
from momentseek.media.pixels import read_picture
from momentseek.media.sandbox.calls import cut, thumbnail
from momentseek.search.engine import Engine
from momentseek.search.example import SearchExample, example_of_picture
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.hit import Hit, Results
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, LEARNED_LOCALISER, LOCALISERS, MAP_LOCALISER
from momentseek.search.options import STREAMS, Group, SearchOptions, Stream
from momentseek.search.query import Query
from momentseek.search.stream_index import SampledIndex

if TYPE_CHECKING:
    from momentseek.media.cut import Cut


EMPTY_NOTE = "the library is empty; add videos with: momentseek add FOLDER"


class Library(LibraryStore):
    """A collection of videos and the searches over it. One per thread; keep it open, the first search loads encoders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Library.open(folder, create=True) as library:
    ...     library.search("a dog on the beach").note
    'the library is empty; add videos with: momentseek add FOLDER'
    """

    fan_out: ShardClient | None = None
    """A way to ask its shards; None for a library in one piece."""

    def __init__(self, path: Path, catalog: Catalog) -> None:
        super().__init__(path, catalog)
        self._engine = Engine(self)
        self._thumbnails = ThumbnailCache(self.paths.thumbnails)

    def __repr__(self) -> str:
        return f"<Library {self.path}>"

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
        """The best ``k`` moments for a query (docs/searching.md has the language).

        Weak hits are left out and counted (``.hidden``) unless ``all``. ``group="video"`` gives one moment per video,
        ``streams`` some of vision, speech and name, ``explain`` the curve of each hit's video; ``fusion`` is how the
        streams become one ranking, ``localiser`` what finds start and end (``self.localiser`` if none is named).
        ``rerank`` is the folder of an exported model (2D-TAN, CTRL, …) that looks again at the best ``rerank_videos``
        videos and says where in them the moments are (docs/reranking.md).
        """
        if not isinstance(query, str | Query):
            raise MomentseekError(f"a query is a text or a Query, not {type(query).__name__}; say what to look for")
        asked = Query.parse(query) if isinstance(query, str) else query
        where = self._known_localiser(localiser) if localiser else self.localiser
        chosen = STREAMS if streams is None else tuple(streams)
        again = None if rerank is None else os.fspath(rerank)
        options = SearchOptions(k, where, group, chosen, explain, all, fusion, again, rerank_videos)
        results = self._engine.search(asked, options)
        if not results and not self.catalog.totals()["videos"]:
            results.note = EMPTY_NOTE
        return results

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
        """The ``k`` moments that look most like a hit, or like any moment of a video (named as in the library).

        The moment itself is left out. ``where`` may hold ``in:``, ``before:`` and ``after:``; the rest is as in
        :meth:`search`.
        """
        id = example.video_id if isinstance(example, Hit) else self._named_video(example.video)
        found = self.catalog.videos([id])
        if not found:
            raise MomentseekError("the video of the example is no longer in the library; search for another one")
        asked = self._engine.example(id, example.start, example.end)
        return self._search_like(asked, where, k, localiser, group, all)

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
        """The ``k`` moments that look most like a picture: a file (JPEG, PNG, WebP, …) or its bytes.

        ``where`` may hold ``in:``, ``before:`` and ``after:``; the rest is as in :meth:`search`.
        """

        if self.encoders.has_model:
            raise MomentseekError(
                "a trained model made this library's vectors, which takes no single pictures; search by a moment"
            )
        pixels = read_picture(picture if isinstance(picture, bytes) else Path(picture))
        return self._search_like(example_of_picture(self.encoders.vision, pixels), where, k, localiser, group, all)

    def _search_like(
        self, example: SearchExample, where: str | Query, k: int, localiser: str | None, group: Group, all: bool
    ) -> Results:
        asked = Query.parse(where) if isinstance(where, str) else where
        chosen = self._known_localiser(localiser) if localiser else self.localiser
        if chosen in (LEARNED_LOCALISER, MAP_LOCALISER):  # models find spans by words
            chosen = DEFAULT_LOCALISER
        return self._engine.search_like(example, asked, SearchOptions(k, chosen, group, ("vision",), all=all))

    def part_with(self, video: int) -> Library:
        """The library that has the vectors of a video: this one; in a sharded library, the video's shard."""
        return self

    def sampled_vision(self) -> SampledIndex:
        """What is usual in this library for what is seen, by which a query is judged."""
        return self._engine.sampled_vision()

    def _named_video(self, name: str) -> int:
        ids = [video.id for video in self.videos() if name in (video.name, str(video.path))]
        if len(ids) != 1:
            what = "is no video of the library" if not ids else f"is the name of {len(ids)} videos; give the path"
            raise MomentseekError(f"{name}: {what}{'; momentseek list shows them' if not ids else ''}")
        return ids[0]

    @property
    def localiser(self) -> str:
        """What finds start and end if none is named: the trained model's own, where one made the vectors."""
        return {"": DEFAULT_LOCALISER, "map": MAP_LOCALISER}.get(self.encoders.model_kind, LEARNED_LOCALISER)

    @property
    def localisers(self) -> list[str]:
        """The localisers that can be chosen here: a trained model's own only where it made the vectors."""
        own = self.localiser
        return sorted(name for name in LOCALISERS if name == own or name not in (LEARNED_LOCALISER, MAP_LOCALISER))

    def _known_localiser(self, name: str) -> str:
        known = self.localisers
        if name in known:
            return name
        if name in LOCALISERS:
            raise MomentseekError(
                f"the localiser {name!r} needs a library whose vectors such a trained model made "
                f"(docs/models-in-the-library.md); there are {', '.join(known)}"
            )
        raise MomentseekError(f"there is no localiser {name!r}; {did_you_mean(name, known)}")

    def thumbnail(self, hit: Hit, width: int = 320) -> bytes:
        """A WebP picture of a hit's most representative frame; kept in the library's folder while there is room."""
        name = f"{hit.video_id}-{round(hit.peak * 1000)}-{width}.webp"
        data = self._thumbnails.get(name)
        if data is None:
            data = thumbnail(self._file(hit, MAX_PICTURED_BYTES), hit.peak, width)
            self._thumbnails.keep(name, data)
        return data

    def cut(self, hit: Hit, out: str | os.PathLike[str], *, exact: bool = True, pad: float = 0.0) -> Cut:
        """Write a hit as a clip of its own, ``pad`` seconds longer on each side."""

        return cut(self._file(hit), hit.start, hit.end, out, exact=exact, pad=pad)

    def _file(self, hit: Hit, most_bytes: int | None = None) -> PinnedFile:
        """The file of a hit, as it was added; refused if it is not there, is another one now, or left the library."""
        found = self.catalog.videos([hit.video_id])
        if not found:
            raise MediaError(f"{hit.path}: is no longer in the library; search again")
        if is_missing(found[0].path):
            raise MediaError(
                f"{found[0].path}: is not there; connect the drive it lies on, or add it again where it is now"
            )
        return source_file(found[0], most_bytes)


class ShardedLibrary(ShardedVerbs, Library):
    """A collection in shards, and the searches over it; made by :func:`momentseek.api.library.open_library`."""

    fan_out: ShardClient

    def adopt(
        self, manifest: ShardManifest, shards: Sequence[LibraryStore], fan_out: ShardClient | None = None
    ) -> None:
        """Take the shards; ``fan_out`` is a way to ask them elsewhere than in this process."""
        super().adopt(manifest, shards)
        self.fan_out = fan_out or LocalShards(dict(zip(manifest.shards, self.shards, strict=True)))
        self._engine = Engine(self, self.fan_out)

    def __repr__(self) -> str:
        return f"<ShardedLibrary {self.path}: {len(self.shards)} shards>"

    def part_with(self, video: int) -> Library:
        """The shard that has the vectors of a video."""
        shard = self.shard_with(video)
        assert isinstance(shard, Library)
        return shard

    def thumbnail(self, hit: Hit, width: int = 320) -> bytes:
        """A WebP picture of a hit's most representative frame; kept in its shard's folder while there is room."""
        return self.part_with(hit.video_id).thumbnail(hit, width)

    def cut(self, hit: Hit, out: str | os.PathLike[str], *, exact: bool = True, pad: float = 0.0) -> Cut:
        """Write a hit as a clip of its own, ``pad`` seconds longer on each side."""
        return self.part_with(hit.video_id).cut(hit, out, exact=exact, pad=pad)


def open_sharded(
    folder: Path, *, encoder: str | None = None, wait: float = 0.0, fan_out: ShardClient | None = None
) -> ShardedLibrary:
    """Open the library in shards in a folder; ``fan_out`` is a way to ask them elsewhere than in this process."""

    def open_one(shard: Path) -> Library:
        return Library.open(shard, create=False, encoder=encoder, wait=wait)

    manifest, shards = open_shards(folder, open_one)
    library = ShardedLibrary(folder, ShardedCatalog(folder, [one.catalog for one in shards]))
    library.adopt(manifest, shards, fan_out)
    library.wait = wait
    return library


def bring_folder(place: str | os.PathLike[str]) -> Path:
    """The folder of a library, given by its folder or its address; a replica is brought up to date."""
    folder = library_folder(os.fspath(place)) if "://" in os.fspath(place) else Path(os.path.abspath(place))
    if "%3A%2F%2F" in folder.name:
        bring_library(folder)
    return folder


def open_store(
    path: str | os.PathLike[str],
    *,
    create: bool | None = None,
    encoder: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
    wait: float = 0.0,
) -> LibraryStore:
    """Open the library in a folder for changing it, be it one or in shards; the rest is as in ``LibraryStore.open``."""
    folder = bring_folder(path)
    if is_sharded(folder):
        return open_sharded_store(folder, encoder=encoder, wait=wait)
    return LibraryStore.open(folder, create=create, encoder=encoder, clip_seconds=clip_seconds, wait=wait)


def open_library(
    path: str | os.PathLike[str],
    *,
    create: bool | None = None,
    encoder: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
    wait: float = 0.0,
    fan_out: ShardClient | None = None,
) -> Library:
    """Open the library in a folder or at an address (``s3://bucket/lib``), be it one or in shards (docs/sharding.md);
    the rest is as in ``Library.open``.

    ``fan_out`` is a way to ask the shards elsewhere than in this process.
    """
    folder = bring_folder(path)
    if is_sharded(folder):
        return open_sharded(folder, encoder=encoder, wait=wait, fan_out=fan_out)
    return Library.open(folder, create=create, encoder=encoder, clip_seconds=clip_seconds, wait=wait)
