"""ShardedLibrary: a library in shards that can be searched, with the answers of the same videos in one library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.api.library import Library
from momentseek.library.shards.catalog import ShardedCatalog
from momentseek.library.shards.manifest import ShardManifest
from momentseek.library.shards.store import ShardedVerbs, open_shards
from momentseek.library.store import LibraryStore
from momentseek.search.example import SearchExample
from momentseek.search.hit import Hit, Results
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.shards.answers import ExampleAsk
from momentseek.search.shards.engine import ShardedEngine
from momentseek.search.shards.fan_out import Asker, FanOut, LocalShards
from momentseek.search.shards.shard import SearchShard
from momentseek.search.state import QueryEncoder, SampledIndex

if TYPE_CHECKING:
    from momentseek.media.cut import Cut


class ShardedLibrary(ShardedVerbs, Library):
    """A collection in shards, and the searches over it; made by :func:`momentseek.api.open_library`."""

    fan_out: FanOut

    def adopt(self, manifest: ShardManifest, shards: Sequence[LibraryStore], fan_out: FanOut | None = None) -> None:
        """Take the shards; ``fan_out`` is a way to ask them elsewhere than in this process."""
        super().adopt(manifest, shards)
        encoder = QueryEncoder(self.encoders)
        self.fan_out = fan_out or LocalShards(
            {name: SearchShard(one, encoder) for name, one in zip(manifest.shards, self.shards, strict=True)}
        )
        self._sharded = ShardedEngine(self.fan_out, self, encoder)

    def __repr__(self) -> str:
        return f"<ShardedLibrary {self.path}: {len(self.shards)} shards>"

    def part_with(self, video: int) -> Library:
        """The shard that has the vectors of a video."""
        shard = self.shard_with(video)
        assert isinstance(shard, Library)
        return shard

    def sampled_vision(self) -> SampledIndex:
        """What is usual in all shards for what is seen."""
        return self._sharded.sampled_vision()

    def _ask(self, query: Query, options: SearchOptions) -> Results:
        return self._sharded.search(query, options)

    def _ask_like(self, example: SearchExample, where: Query, options: SearchOptions) -> Results:
        return self._sharded.search_like(example, where, options)

    def _example(self, video: int, start: float, end: float) -> SearchExample:
        number = self.shards.index(self.shard_with(video))
        example: SearchExample = Asker(self.fan_out).ask("example", {number: ExampleAsk(video, start, end)})[number]
        return example

    def thumbnail(self, hit: Hit, width: int = 320) -> bytes:
        """A WebP picture of a hit's most representative frame; kept in its shard's folder while there is room."""
        return self.part_with(hit.video_id).thumbnail(hit, width)

    def cut(self, hit: Hit, out: str | os.PathLike[str], *, exact: bool = True, pad: float = 0.0) -> Cut:
        """Write a hit as a clip of its own, ``pad`` seconds longer on each side."""
        return self.part_with(hit.video_id).cut(hit, out, exact=exact, pad=pad)


def open_sharded(
    folder: Path, *, encoder: str | None = None, wait: float = 0.0, fan_out: FanOut | None = None
) -> ShardedLibrary:
    """Open the library in shards in a folder; ``fan_out`` is a way to ask them elsewhere than in this process."""

    def open_one(shard: Path) -> Library:
        return Library.open(shard, create=False, encoder=encoder, wait=wait)

    manifest, shards = open_shards(folder, open_one)
    library = ShardedLibrary(folder, ShardedCatalog(folder, [one.catalog for one in shards]))
    library.adopt(manifest, shards, fan_out)
    library.wait = wait
    return library
