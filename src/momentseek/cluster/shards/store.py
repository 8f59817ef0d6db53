"""ShardedStore: a sharded library that is open for changes; every operation runs over all its shards."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from momentseek.cluster.manifest import ShardManifest, read_manifest
from momentseek.cluster.replicas.replica import store_manifest
from momentseek.cluster.shards.catalog import ShardedCatalog, add_up
from momentseek.core.errors import LibraryError, MediaError, MomentseekError
from momentseek.library import known_files
from momentseek.library.database import CATALOG_FILE
from momentseek.library.encoders import catalogued_spec
from momentseek.library.file_stamp import Stamp, content_hash, printable
from momentseek.library.files import FoundFiles, VideoFile
from momentseek.library.location import place_text
from momentseek.library.merging import CompactReport
from momentseek.library.options import AddOptions
from momentseek.library.reader import Snapshot, Status
from momentseek.library.report import AddInterrupted, AddReport, ShowIngest
from momentseek.library.scrub import MEGABYTES_PER_SECOND, ScrubReport
from momentseek.library.store import LibraryStore
from momentseek.library.tracks.speech import Transcript
from momentseek.library.verify import VerifyReport
from momentseek.library.video import Video
from momentseek.recognition.speech.transcript import CueEdit

Patterns = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
CHECKED_VIDEOS = 64
"""Number of videos that are checked at either end of a shard's ids when it is opened."""


class ShardedStore(LibraryStore):
    """A library in shards, open for changes; each shard is a library with its own lock."""

    def __init__(self, path: Path, manifest: ShardManifest, shards: Sequence[LibraryStore]) -> None:
        super().__init__(path, ShardedCatalog(path, [one.catalog for one in shards]))
        self.manifest, self.shards = manifest, tuple(shards)
        made = next((one for one in shards if one.catalog.encoder("vision") is not None), shards[0])
        self.encoders = made.encoders
        for one in shards:
            one.encoders = made.encoders

    @classmethod
    def open_shards(cls, folder: Path, *, encoder: str | None = None, wait: float = 0.0) -> ShardedStore:
        """Open the library in shards in a folder; raises an error if a shard is missing."""
        manifest = read_manifest(folder)
        with ExitStack() as opened:
            shards = []
            for name, path in zip(manifest.shards, manifest.folders(folder), strict=True):
                if not (path / CATALOG_FILE).is_file():
                    raise LibraryError(f"{folder}: the shard {name} is missing; restore its folder")
                shards.append(opened.enter_context(LibraryStore.open(path, create=False, encoder=encoder, wait=wait)))
                if abs(shards[-1].clip_seconds - manifest.clip_seconds) > 1e-9:
                    raise LibraryError(f"{path}: has clips of another length than the other shards; restore its folder")
            check_duplicates(folder, manifest, shards)
            opened.pop_all()
        store = cls(folder, manifest, shards)
        store.wait = wait
        return store

    def close(self) -> None:
        """Close the files of all shards."""
        for one in self.shards:
            one.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the write locks of all shards."""
        with ExitStack() as stack:
            for one in self.shards:
                one.wait = self.wait
                stack.enter_context(one.changing())
            yield

    def snapshot(self) -> Snapshot:
        """Refuse: the vectors are in the shards."""
        raise MomentseekError(
            f"{self.path}: is in shards, and this needs one library; name one of them: --library {self.shards[0].path}"
        )

    def status(self) -> Status:
        """Count the contents of the library."""
        parts = [one.status() for one in self.shards]
        encoders = {row.stream: row for part in reversed(parts) for row in part.encoders}
        known = tuple(encoders[stream] for stream in ("vision", "speech") if stream in encoders)
        return add_up(parts, path=self.path, clip_seconds=parts[0].clip_seconds, encoders=known)

    # adding

    def add_found(
        self, found: FoundFiles, options: AddOptions | None = None, progress: ShowIngest | None = None
    ) -> AddReport:
        """Add files that were already found, each to the shard of its content."""
        groups = {number: FoundFiles() for number in range(len(self.shards))}
        for file in found.files:
            groups[self._shard_of_file(file)].files.append(file)
        for path, reason in found.unusable:
            groups[self.manifest.shard_of(os.fspath(path))].unusable.append((path, reason))

        def add(number: int) -> AddReport:
            report = self.shards[number].add_found(groups[number], options or self.options, progress)
            self._drop_strays(number, groups[number].files)
            return report

        return self._each([number for number, group in groups.items() if group.files or group.unusable], add)

    def _each(self, numbers: Iterable[int], work: Callable[[int], AddReport]) -> AddReport:
        """Call a function on some shards, one after another, and merge the reports."""
        begun = time.monotonic()
        done = [AddReport()]
        stopped = False
        for number in numbers:
            self._prepare(self.shards[number])
            try:
                done.append(work(number))
            except AddInterrupted as e:
                done.append(e.report)
                stopped = True
                break
        notes = list(dict.fromkeys(note for report in done for note in report.notes))
        report = add_up(done, elapsed=time.monotonic() - begun, notes=notes)
        if stopped:
            raise AddInterrupted(report)
        return report

    def _prepare(self, one: LibraryStore) -> LibraryStore:
        one.wait, one.options = self.wait, self.options
        return one

    def _shard_of_file(self, file: VideoFile) -> int:
        """The number of a file's shard; a file that has not changed is not read again to find out."""
        try:
            stamp = Stamp.of(file.source)
            for number, one in enumerate(self.shards):
                known = known_files.file_at(one.catalog, file.path)
                if known is not None and known.same(stamp):
                    return number
                if known_files.earlier_failure(one.catalog, file.path, stamp) is not None:
                    return number
            return self.manifest.shard_of(content_hash(file.source))
        except MediaError:  # the shard's own `add` reports the error
            return self.manifest.shard_of(os.fspath(file.path))

    def _drop_strays(self, number: int, files: Sequence[VideoFile]) -> None:
        """Remove the former versions of changed files from other shards."""
        here = self.shards[number]
        for file in files:
            if known_files.file_at(here.catalog, file.path) is None:
                continue
            for other in self.shards:
                if other is here:
                    continue
                old = known_files.file_at(other.catalog, file.path)
                if old is not None or known_files.has_failed(other.catalog, file.path):
                    with other.changing(), other.catalog.changes():
                        known_files.forget_failure(other.catalog, file.path)
                        if old is not None:
                            other.catalog.remove_video(old.id)

    def retry(self, **how: Any) -> AddReport:
        """Try again to add the files that failed, and forget those that no longer exist."""
        return self._each(range(len(self.shards)), lambda number: self.shards[number].retry(**how))

    # tracks of text

    def transcribe(self, patterns: Patterns = (), **how: Any) -> AddReport:
        """Transcribe videos that have sound and no subtitles: all of them, or those whose names match ``patterns``."""
        chosen = self._videos_by_shard(patterns)
        return self._each(chosen, lambda number: self.shards[number].transcribe(chosen[number], **how))

    def ocr(self, patterns: Patterns = (), **how: Any) -> AddReport:
        """Find text on screen (OCR) in all videos, or in those whose names match ``patterns``."""
        chosen = self._videos_by_shard(patterns)
        return self._each(chosen, lambda number: self.shards[number].ocr(chosen[number], **how))

    def encode(self, patterns: Patterns = (), **how: Any) -> AddReport:
        """Encode waiting videos with the second of two encoders: all, or those that match ``patterns``."""
        chosen = self._videos_by_shard(patterns)
        return self._each(chosen, lambda number: self.shards[number].encode(chosen[number], **how))

    def describe(self, model: str, patterns: Patterns = (), **how: Any) -> AddReport:
        """Let a model describe the scenes of videos; ``requests`` is the limit for each shard."""
        chosen = self._videos_by_shard(patterns)
        return self._each(chosen, lambda number: self.shards[number].describe(model, chosen[number], **how))

    def listen(self, patterns: Patterns = (), **how: Any) -> AddReport:
        """Detect sounds other than speech in all videos, or in those whose names match ``patterns``."""
        chosen = self._videos_by_shard(patterns)
        return self._each(chosen, lambda number: self.shards[number].listen(chosen[number], **how))

    def _videos_by_shard(self, patterns: Patterns) -> dict[int, list[Path]]:
        """The shards to process, each with the paths of its videos; an empty list means all videos."""
        given = [patterns] if isinstance(patterns, str | os.PathLike) else list(patterns)
        if not given:
            return {number: [] for number in range(len(self.shards))}
        by_shard: dict[int, list[Path]] = {}
        for video in self.matching(given):
            by_shard.setdefault(self.shards.index(shard_of(self, video.id)), []).append(video.path)
        return dict(sorted(by_shard.items()))

    # maintenance

    def edit_cues(self, video: int, edits: Sequence[CueEdit]) -> Transcript:
        """Correct the automatic transcript of a video; either all corrections are made, or none."""
        return self._prepare(shard_of(self, video)).edit_cues(video, edits)

    def remove(self, patterns: Patterns = (), *, missing: bool = False) -> list[Video]:
        """Remove videos from the library; their files stay."""
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
        return add_up([self._prepare(one).compact() for one in self.shards])

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Check every file and row of every shard, and that each video is in its own shard."""
        found = []
        for one in self.shards:
            part = self._prepare(one).verify(repair=repair)
            for texts in (part.problems, part.notes, part.repaired):
                texts[:] = [f"{one.path.name}: {text}" for text in texts]
            found.append(part)
        report = add_up(found, words=all(part.words for part in found))
        report.problems += find_duplicates(self.manifest, self.shards)
        return report

    def scrub(self, megabytes: float = MEGABYTES_PER_SECOND) -> ScrubReport:
        """Read all files of every shard slowly and compare checksums."""
        return add_up([one.scrub(megabytes) for one in self.shards])

    def reencode(self, spec: str, **how: Any) -> AddReport:
        """Encode all videos again with another encoder, shard after shard; until all are done, searches are refused."""
        report = self._each(range(len(self.shards)), lambda number: self.shards[number].reencode(spec, **how))
        self.manifest = replace(self.manifest, encoder=catalogued_spec(spec))
        store_manifest(self.path, self.manifest)
        self.encoders.forget()
        return report


def shard_of(store: LibraryStore, video: int) -> LibraryStore:
    """The store of a video: its shard (the first, if none has it), or the store itself if it has no shards."""
    if not isinstance(store, ShardedStore):
        return store
    catalog = store.catalog.of(video)
    return next(one for one in store.shards if one.catalog is catalog)


def find_duplicates(manifest: ShardManifest, shards: Sequence[LibraryStore]) -> list[str]:
    """Find videos that are in two shards, or in a shard that is not their own; returns a sentence for each."""
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


def check_duplicates(folder: Path, manifest: ShardManifest, shards: Sequence[LibraryStore]) -> None:
    """Refuse a library with a video in two shards; only the first and the last videos of each shard are compared.

    One of the two shards then has a video of another shard: its folder was copied, or the video was added to it alone.
    ``verify`` checks all videos.
    """
    for number, (name, one) in enumerate(zip(manifest.shards, shards, strict=True)):
        for order in ("", "DESC"):
            rows = one.catalog.rows(f"SELECT path, hash FROM videos ORDER BY id {order} LIMIT {CHECKED_VIDEOS}")
            for path, hash in rows:
                right = manifest.shard_of(hash) if hash else number
                if right != number and shards[right].catalog.rows("SELECT 1 FROM videos WHERE hash = ?", (hash,)):
                    shown, where = printable(os.fsdecode(path)), place_text(folder)
                    raise LibraryError(
                        f"{where}: {shown} is in the shards {manifest.shards[right]} and {name}; bring the right "
                        f"{name} back, or take the video out of it: momentseek remove --library "
                        f"{shlex.quote(str(one.path))}"
                    )
