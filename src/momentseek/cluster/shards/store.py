"""ShardedStore: a library in shards, opened for changing it; every verb of a library, over all its shards."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from momentseek.cluster.manifest import ShardManifest, read_manifest
from momentseek.cluster.replicas.replica import store_manifest
from momentseek.cluster.shards.catalog import (
    ShardedCatalog,
    join_checks,
    join_compactions,
    join_hearings,
    join_reports,
    join_statuses,
)
from momentseek.core.errors import LibraryError, MediaError, MomentseekError
from momentseek.core.progress import ShowCount
from momentseek.library import known_files
from momentseek.library.database import CATALOG_FILE
from momentseek.library.encoders import catalogued_spec
from momentseek.library.file_stamp import Stamp, content_hash, printable
from momentseek.library.files import FoundFiles, VideoFile
from momentseek.library.location import place_text
from momentseek.library.merging import CompactReport
from momentseek.library.options import AddOptions
from momentseek.library.reader import Snapshot
from momentseek.library.report import AddInterrupted, AddReport, ShowIngest
from momentseek.library.status import Status
from momentseek.library.store import LibraryStore, subtitles_folder
from momentseek.library.tracks.sounds import SoundReport
from momentseek.library.tracks.speech import Transcript
from momentseek.library.verify import VerifyReport
from momentseek.library.video import Video
from momentseek.recognition.ocr.lines import SLOT_SECONDS
from momentseek.recognition.speech.transcript import CueEdit

Patterns = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
LOOKED_AT = 64
"""Videos of a shard that are looked at when it is opened, from the first and from the last."""
NEEDS_ONE_SHARD = "is in shards, and this needs one library; name one of them: --library {}"


class ShardedVerbs(LibraryStore):
    """The verbs of a library whose videos lie in shards; each shard is a library of its own with a lock of its own."""

    manifest: ShardManifest
    shards: tuple[LibraryStore, ...]

    def adopt(self, manifest: ShardManifest, shards: Sequence[LibraryStore]) -> None:
        """Take the shards, which from now on share their encoders."""
        self.manifest, self.shards = manifest, tuple(shards)
        made = next((one for one in shards if one.catalog.encoder("vision") is not None), shards[0])
        self.encoders = made.encoders
        for one in shards:
            one.encoders = made.encoders

    def close(self) -> None:
        """Let go of all shards' files."""
        for one in self.shards:
            one.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be the only writer of every shard for the time of a ``with``."""
        with ExitStack() as stack:
            for one in self.shards:
                one.wait = self.wait
                stack.enter_context(one.changing())
            yield

    def snapshot(self) -> Snapshot:
        """Refuse: vectors lie in the shards."""
        raise MomentseekError(f"{self.path}: {NEEDS_ONE_SHARD.format(self.shards[0].path)}")

    def status(self) -> Status:
        """Counts of what the library holds."""
        return join_statuses([one.status() for one in self.shards], self.path)

    def shard_with(self, video: int) -> LibraryStore:
        """The shard that has the video with an id; the first one if none has."""
        catalog = self.catalog.of(video)
        return next(one for one in self.shards if one.catalog is catalog)

    # adding

    def add_found(
        self, found: FoundFiles, options: AddOptions | None = None, progress: ShowIngest | None = None
    ) -> AddReport:
        """Add files that have been looked for already, each to the shard that its content belongs to."""
        begun = time.monotonic()
        groups = {number: FoundFiles() for number in range(len(self.shards))}
        for file in found.files:
            groups[self._shard_of(file)].files.append(file)
        for path, reason in found.unusable:
            groups[self.manifest.shard_of(os.fspath(path))].unusable.append((path, reason))
        done: list[AddReport] = []
        for number, group in groups.items():
            if not (group.files or group.unusable):
                continue
            one = self._prepare(self.shards[number])
            try:
                done.append(one.add_found(group, options or self.options, progress))
            except AddInterrupted as e:
                raise AddInterrupted(join_reports([*done, e.report], time.monotonic() - begun)) from None
            self._drop_strays(number, group.files)
        return join_reports(done, time.monotonic() - begun)

    def _prepare(self, one: LibraryStore) -> LibraryStore:
        one.wait, one.options = self.wait, self.options
        return one

    def _shard_of(self, file: VideoFile) -> int:
        """The number of the shard for a file; a file that has not changed is not read to find out."""
        try:
            stamp = Stamp.of(file.source)
            for number, one in enumerate(self.shards):
                known = known_files.file_at(one.catalog, file.path)
                if known is not None and known.same(stamp):
                    return number
                if known_files.earlier_failure(one.catalog, file.path, stamp) is not None:
                    return number
            return self.manifest.shard_of(content_hash(file.source))
        except MediaError:  # the shard's own add says what is wrong
            return self.manifest.shard_of(os.fspath(file.path))

    def _drop_strays(self, number: int, files: Sequence[VideoFile]) -> None:
        """Take out of other shards what files were before their content changed."""
        here = self.shards[number].catalog
        for file in files:
            if known_files.file_at(here, file.path) is None:
                continue
            for other in self.shards:
                if other is self.shards[number]:
                    continue
                old = known_files.file_at(other.catalog, file.path)
                if old is not None or known_files.has_failed(other.catalog, file.path):
                    with other.changing(), other.catalog.changes():
                        known_files.forget_failure(other.catalog, file.path)
                        if old is not None:
                            other.catalog.remove_video(old.id)

    def retry(
        self,
        *,
        progress: ShowIngest | None = None,
        subtitles: str | os.PathLike[str] | None = None,
        links: bool = True,
    ) -> AddReport:
        """Try again the files that failed; those that are no longer there are forgotten."""
        folder = subtitles_folder(subtitles)
        done: list[AddReport] = []
        begun = time.monotonic()
        for one in self.shards:
            done.append(self._prepare(one).retry(progress=progress, subtitles=folder, links=links))
        return join_reports(done, time.monotonic() - begun)

    # what is done beside the pictures

    def transcribe(
        self,
        patterns: Patterns = (),
        *,
        transcriber: str | None = None,
        again: bool = False,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Hear the videos that have sound and no subtitles: all of them, or those whose names match ``patterns``."""
        return self._beside(
            patterns, lambda one, some: one.transcribe(some, transcriber=transcriber, again=again, progress=progress)
        )

    def read(
        self,
        patterns: Patterns = (),
        *,
        reader: str | None = None,
        every: float = SLOT_SECONDS,
        again: bool = False,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Read what is written in the pictures of videos: of all, or of those whose names match ``patterns``."""
        return self._beside(
            patterns, lambda one, some: one.read(some, reader=reader, every=every, again=again, progress=progress)
        )

    def describe(
        self,
        model: str,
        patterns: Patterns = (),
        *,
        again: bool = False,
        requests: int | None = None,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Have a model describe the scenes of videos: of all, or of those whose names match ``patterns``.

        ``requests`` is a limit for each shard.
        """
        return self._beside(
            patterns, lambda one, some: one.describe(model, some, again=again, requests=requests, progress=progress)
        )

    def listen(self, detector: str, patterns: Patterns = (), *, progress: ShowCount | None = None) -> SoundReport:
        """Hear what is neither speech nor silence with a detector that was registered."""
        chosen = self._videos_by_shard(patterns)
        return join_hearings([one.listen(detector, some, progress=progress) for one, some in chosen])

    def _beside(self, patterns: Patterns, work: Callable[[LibraryStore, list[Path]], AddReport]) -> AddReport:
        begun = time.monotonic()
        done: list[AddReport] = []
        for one, some in self._videos_by_shard(patterns):
            try:
                done.append(work(self._prepare(one), some))
            except AddInterrupted as e:
                raise AddInterrupted(join_reports([*done, e.report], time.monotonic() - begun)) from None
        return join_reports(done, time.monotonic() - begun)

    def _videos_by_shard(self, patterns: Patterns) -> list[tuple[LibraryStore, list[Path]]]:
        """The shards in which something is to be done, each with the videos that are meant; none means all."""
        given = [patterns] if isinstance(patterns, str | os.PathLike) else list(patterns)
        if not given:
            return [(one, []) for one in self.shards]
        by_shard: dict[int, list[Path]] = {}
        for video in self.matching(given):
            by_shard.setdefault(self.shards.index(self.shard_with(video.id)), []).append(video.path)
        return [(self.shards[number], paths) for number, paths in sorted(by_shard.items())]

    # care

    def edit_cues(self, video: int, edits: Sequence[CueEdit]) -> Transcript:
        """Correct what a recogniser heard in the video with an id, all at once or not at all."""
        return self._prepare(self.shard_with(video)).edit_cues(video, edits)

    def remove(self, patterns: Patterns = (), *, missing: bool = False) -> list[Video]:
        """Take videos out of the library; their files stay where they are."""
        given = [patterns] if isinstance(patterns, str | os.PathLike) else list(patterns)
        with self.changing():
            videos = self.matching(given, missing=missing)
            for one in self.shards:
                mine = [video for video in videos if self.catalog.of(video.id) is one.catalog]
                with one.catalog.changes():
                    for video in mine:
                        one.catalog.remove_video(video.id)
        return videos

    def compact(self) -> CompactReport:
        """Rewrite the shards without the vectors of videos that were removed."""
        return join_compactions([self._prepare(one).compact() for one in self.shards])

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Check every file and row of every shard, and that each video is in the shard that it belongs to."""
        checked = [(one.path.name, self._prepare(one).verify(repair=repair)) for one in self.shards]
        report = join_checks(checked)
        report.problems += find_doubles(self.manifest, self.shards)
        return report

    def reencode(self, spec: str, *, progress: ShowIngest | None = None) -> AddReport:
        """Encode all videos again with another encoder, shard after shard; until all are done, searches are refused."""
        begun = time.monotonic()
        done: list[AddReport] = []
        for one in self.shards:
            try:
                done.append(self._prepare(one).reencode(spec, progress=progress))
            except AddInterrupted as e:
                raise AddInterrupted(join_reports([*done, e.report], time.monotonic() - begun)) from None
        self.manifest = replace(self.manifest, encoder=catalogued_spec(spec))
        store_manifest(self.path, self.manifest)
        self.encoders.forget()
        return join_reports(done, time.monotonic() - begun)


class ShardedStore(ShardedVerbs):
    """A library in shards, open for reading and changing it, but not for searching it."""


def find_doubles(manifest: ShardManifest, shards: Sequence[LibraryStore]) -> list[str]:
    """What is wrong with how videos are spread over shards: a video in two of them, or in one it does not belong to."""
    out: list[str] = []
    places: dict[bytes, str] = {}
    ids: dict[int, str] = {}
    for number, one in enumerate(shards):
        name = manifest.shards[number]
        for id, path, hash in one.catalog.rows("SELECT id, path, hash FROM videos ORDER BY id"):
            shown = printable(os.fsdecode(path))
            if path in places or id in ids:
                out.append(f"{name}: {shown} is in {places.get(path) or ids[id]} too; remove it, and add it again")
            elif hash and manifest.shard_of(hash) != number:
                right = manifest.shards[manifest.shard_of(hash)]
                out.append(f"{name}: {shown} belongs to {right}; remove it, and add it again")
            places.setdefault(path, name)
            ids.setdefault(id, name)
    return out


def open_shards(folder: Path, open_one: Callable[[Path], LibraryStore]) -> tuple[ShardManifest, list[LibraryStore]]:
    """The manifest of the library in a folder and its shards, opened; refused if one is not there."""
    manifest = read_manifest(folder)
    opened: list[LibraryStore] = []
    try:
        for name, path in zip(manifest.shards, manifest.folders(folder), strict=True):
            if not (path / CATALOG_FILE).is_file():
                raise LibraryError(f"{folder}: the shard {name} is missing; bring its folder back")
            opened.append(open_one(path))
            if abs(opened[-1].clip_seconds - manifest.clip_seconds) > 1e-9:
                raise LibraryError(f"{path}: has clips of another length than the other shards; bring its folder back")
        check_doubles(folder, manifest, opened)
    except BaseException:
        for one in opened:
            one.close()
        raise
    return manifest, opened


def check_doubles(folder: Path, manifest: ShardManifest, shards: Sequence[LibraryStore]) -> None:
    """Refuse a library with a video in two shards, as far as the first and the last videos of each tell.

    One of the two shards has then a video that does not belong to it, be it a copy of the other's folder or added to
    it alone. ``verify`` looks at all videos.
    """
    for number, (name, one) in enumerate(zip(manifest.shards, shards, strict=True)):
        for order in ("", "DESC"):
            rows = one.catalog.rows(f"SELECT path, hash FROM videos ORDER BY id {order} LIMIT {LOOKED_AT}")
            for path, hash in rows:
                right = manifest.shard_of(hash) if hash else number
                if right != number and shards[right].catalog.rows("SELECT 1 FROM videos WHERE hash = ?", (hash,)):
                    shown, where = printable(os.fsdecode(path)), place_text(folder)
                    raise LibraryError(
                        f"{where}: {shown} is in the shards {manifest.shards[right]} and {name}; bring the right "
                        f"{name} back, or take the video out of it: momentseek remove --library "
                        f"{shlex.quote(str(one.path))}"
                    )


def open_sharded_store(folder: Path, *, encoder: str | None = None, wait: float = 0.0) -> ShardedStore:
    """Open the library in shards in a folder for changing it."""

    def open_one(shard: Path) -> LibraryStore:
        return LibraryStore.open(shard, create=False, encoder=encoder, wait=wait)

    manifest, shards = open_shards(folder, open_one)
    store = ShardedStore(folder, ShardedCatalog(folder, [one.catalog for one in shards]))
    store.adopt(manifest, shards)
    store.wait = wait
    return store
