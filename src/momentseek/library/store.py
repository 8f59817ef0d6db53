"""LibraryStore: a library that is open for changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

from momentseek.core.errors import LibraryError, MediaError, MomentseekError, parameter
from momentseek.core.reports import count
from momentseek.library import encoders, known_files
from momentseek.library.catalog import Catalog
from momentseek.library.database import CATALOG_FILE, MAX_CLIP_SECONDS, MIN_CLIP_SECONDS, file_size
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import FoundFiles, VideoFile, find_videos
from momentseek.library.ingest.add import add_files, plan_library
from momentseek.library.ingest.reencode import reencode_library
from momentseek.library.known_files import subtitle_marks
from momentseek.library.location import SHARDS_FILE
from momentseek.library.merging import CompactReport, compact_library
from momentseek.library.options import AddOptions
from momentseek.library.paths import LibraryPaths, hold_lock
from momentseek.library.reader import CLIP_SECONDS, LibraryReader
from momentseek.library.report import AddReport, ShowIngest
from momentseek.library.scrub import MEGABYTES_PER_SECOND, ScrubReport, scrub_library
from momentseek.library.timed_text import forget_tracks
from momentseek.library.tracks.background import PassRequest, run_pass, usual_threads
from momentseek.library.tracks.captions import CaptionPass, open_scene_captioner
from momentseek.library.tracks.ocr import OcrPass
from momentseek.library.tracks.people import PEOPLE, PeoplePass
from momentseek.library.tracks.second_pass import SecondPass, not_ready, second_pass
from momentseek.library.tracks.sounds import SoundPass
from momentseek.library.tracks.speech import Transcript, edit_transcript, transcribe_videos
from momentseek.library.verify import VerifyReport, repair_library, verify_library
from momentseek.library.video import Video
from momentseek.recognition.ocr.lines import SLOT_SECONDS
from momentseek.recognition.ocr.models import DEFAULT_OCR_MODEL
from momentseek.recognition.sounds.yamnet import YAMNET
from momentseek.recognition.speech.models import DEFAULT_TRANSCRIBER
from momentseek.recognition.speech.transcript import CueEdit

Patterns = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One or several paths, folders or globs."""


class LibraryStore(LibraryReader):
    """A library on disk: videos, their timed text, and the vectors of their clips and cues.

    Any number of processes can read while one writes; a second writer waits (``wait`` seconds) or is refused.
    """

    def __init__(self, path: Path, catalog: Catalog) -> None:
        super().__init__(path, catalog)
        self.wait = 0.0
        """Seconds to wait for another writer."""
        self.lease_holder: str | None = None
        """The name under which this library's original is locked, if it is a copy; None for this process."""

    @cached_property
    def options(self) -> AddOptions:
        """The default options for adding videos."""
        return AddOptions()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool | None = None,
        encoder: str | None = None,
        clip_seconds: float = CLIP_SECONDS,
        wait: float = 0.0,
    ) -> Self:
        """Open the library in a folder; a library that does not exist is created.

        ``create=True`` also creates the folders above it; ``create=False`` refuses instead. ``encoder`` and
        ``clip_seconds`` are fixed when a library is created; naming another encoder for an existing library is an
        error, which gives the command that encodes it again. ``encoder="model:FOLDER"`` is a trained model that
        ``momentseek export`` has written; the library keeps a copy of it.
        """
        folder = Path(os.path.abspath(path))
        if (folder / SHARDS_FILE).is_file():
            raise MomentseekError(f"{folder}: is in shards; open it with momentseek.Library, or name one of its shards")
        new = not file_size(folder / CATALOG_FILE)
        if create is None:
            create = new
            if new and not folder.parent.is_dir():
                raise MomentseekError(f"{folder}: there is no folder {folder.parent}; create it, or use create=True")
        if new and create:
            if not MIN_CLIP_SECONDS <= clip_seconds <= MAX_CLIP_SECONDS:
                limits = f"{MIN_CLIP_SECONDS:g} to {MAX_CLIP_SECONDS:g} seconds"
                raise MomentseekError(f"clips of {clip_seconds} s are not possible; choose {limits}")
            encoders.check_model(encoder, clip_seconds)
            LibraryPaths(folder).make()
        opened = cls(folder, Catalog(folder, create=create))
        opened.wait = wait
        try:
            if create and opened.catalog.get("clip_seconds") is None:
                with opened.catalog.changes():
                    opened.catalog.set("clip_seconds", float(clip_seconds))
                    opened.catalog.set("encoder", encoders.adopt_encoder(encoder or encoders.default_encoder(), folder))
            if encoder is not None:
                encoders.check_spec(opened.catalog, encoder, folder)
        except BaseException:
            opened.close()
            raise
        return opened

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the write lock of this library."""
        with hold_lock(self.path, self.wait), self._publishing():
            with suppress(LibraryError):  # a damaged row, which repair writes again
                used = (self.catalog.encoder(stream) for stream in ("vision", "speech"))
                self.encoders.forget_others(row for row in used if row is not None)
            yield

    def _publishing(self) -> AbstractContextManager[None]:
        """Publish the changes of a copy to the original; does nothing if this library is not a copy."""
        return nullcontext() if self.origin is None else self.origin.publishing(self.wait, self.lease_holder)

    def add(
        self,
        paths: Patterns,
        *,
        recursive: bool = True,
        exclude: Sequence[str] = (),
        subtitles: str | os.PathLike[str] | None = None,
        progress: ShowIngest | None = None,
        retry: bool = False,
        links: bool = True,
    ) -> AddReport:
        """Add videos by file, folder or pattern. Files that are in the library and have not changed are not read.

        A file that cannot be added is reported and recorded among the ``failures``; it is tried again when it changes,
        or with ``retry``. If the call is interrupted, finished work is kept, and the next call continues from there.
        Without ``links`` no links are followed, so that nothing outside of the given folders is read.
        """

        options = replace(self.options, subtitles=subtitles_folder(subtitles), retry=retry, links=links)
        begun = time.monotonic()
        found = find_videos(_as_list(paths), recursive=recursive, exclude=exclude, skip=self.path, links=links)
        report = self.add_found(found, options, progress)
        report.elapsed = time.monotonic() - begun
        return report

    def add_found(
        self, found: FoundFiles, options: AddOptions | None = None, progress: ShowIngest | None = None
    ) -> AddReport:
        """Add files that were already found, like ``add``."""
        with self.changing():
            return add_files(self, found, options or self.options, progress)

    def retry(
        self,
        *,
        progress: ShowIngest | None = None,
        subtitles: str | os.PathLike[str] | None = None,
        links: bool = True,
    ) -> AddReport:
        """Try again the files that failed; files that no longer exist are removed from the failures."""
        options = replace(self.options, subtitles=subtitles_folder(subtitles), links=links, retry=True)
        with self.changing():
            files: list[VideoFile] = []
            with self.catalog.changes():
                for path, name in known_files.failed_files(self.catalog):
                    real = path.resolve() if links and path.exists() else path  # a broken link may have been repaired
                    if os.path.lexists(real):
                        files.append(VideoFile(real, name, file_size(real)))
                    if real != path or not os.path.lexists(path):
                        known_files.forget_failure(self.catalog, path)
            return add_files(self, FoundFiles(files), options, progress)

    def transcribe(
        self,
        patterns: Patterns = (),
        *,
        transcriber: str | None = None,
        again: bool = False,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Transcribe videos that have sound and no subtitles: all of them, or those whose names match ``patterns``.

        ``again`` also tries videos that failed before, and those that another transcriber has transcribed; corrections
        stay. If the call is interrupted, finished work is kept.
        """
        with self.changing():
            model = transcriber or self.options.transcriber or DEFAULT_TRANSCRIBER
            return transcribe_videos(self._request(patterns, again, progress), model)

    def listen(
        self,
        patterns: Patterns = (),
        *,
        detector: str | None = None,
        again: bool = False,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Detect sounds other than speech (applause, barking) in all videos, or in those that match ``patterns``.

        ``detector`` is ``yamnet`` or one that was registered; it processes the videos that it has not processed yet.
        ``again`` also tries videos that failed before. If the call is interrupted, finished work is kept.
        """
        with self.changing():
            name = detector or self.options.sound_detector or YAMNET
            return run_pass(SoundPass(self._request(patterns, again, progress), name, usual_threads(), renew=True))

    def find_people(
        self, patterns: Patterns = (), *, again: bool = False, progress: ShowIngest | None = None
    ) -> AddReport:
        """Count faces in all videos, or in those whose names match ``patterns``; nobody is recognised.

        Searches then find "two people", "a crowd" and "a close-up". :meth:`forget_people` deletes the results.
        """
        with self.changing():
            return run_pass(PeoplePass(self._request(patterns, again, progress)))

    def forget_people(self) -> int:
        """Delete all results about faces; returns the number of videos that had some."""
        with self.changing(), self.catalog.changes():
            videos = [row[0] for row in self.catalog.rows("SELECT video FROM tracks WHERE kind = ?", (PEOPLE.name,))]
            forget_tracks(self.catalog, PEOPLE, videos, whole=True)
        return len(videos)

    def ocr(
        self,
        patterns: Patterns = (),
        *,
        model: str | None = None,
        every: float = SLOT_SECONDS,
        again: bool = False,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Find text on screen (OCR) in all videos, or in those whose names match ``patterns``.

        One frame is read ``every`` N seconds of a shot; use 1 for burnt-in subtitles. ``again`` also tries videos that
        failed before, and repeats those that ``patterns`` select. If the call is interrupted, finished work is kept.
        """
        with self.changing():
            chosen = model or self.options.ocr_model or DEFAULT_OCR_MODEL
            return run_pass(OcrPass(self._request(patterns, again, progress), chosen, every, usual_threads()))

    def encode(self, patterns: Patterns = (), *, again: bool = False, progress: ShowIngest | None = None) -> AddReport:
        """Encode videos with the second of the library's two encoders: all that wait, or those that match ``patterns``.

        ``again`` also tries videos that failed before. If the call is interrupted, finished work is kept.
        """
        with self.changing():
            report = run_pass(second_pass(self._request(patterns, again, progress)))
            plan_library(self, report)
        return report

    def describe(
        self,
        model: str,
        patterns: Patterns = (),
        *,
        again: bool = False,
        requests: int | None = None,
        progress: ShowIngest | None = None,
    ) -> AddReport:
        """Describe the scenes of all videos, or of those whose names match ``patterns``, with a model.

        ``model`` is the folder of an exported captioner, or ``URL#MODEL`` of a vision endpoint, which gets at most
        ``requests`` requests. ``again`` also tries videos that failed before, and repeats those that ``patterns``
        select. If the call is interrupted, finished work is kept.
        """
        with self.changing():
            request = self._request(patterns, again, progress)
            return run_pass(CaptionPass(request, open_scene_captioner(model, self, requests)))

    def _request(self, patterns: Patterns, again: bool, progress: ShowIngest | None) -> PassRequest:
        return PassRequest(self, progress=progress, wanted=self._wanted_ids(patterns), again=again)

    def _wanted_ids(self, patterns: Patterns) -> set[int] | None:
        """Ids of the videos that match the patterns; None, which means all, if there are no patterns."""
        given = _as_list(patterns)
        return {video.id for video in self.matching(given)} if given else None

    def edit_cues(self, video: int, edits: Sequence[CueEdit]) -> Transcript:
        """Correct the automatic transcript of the video with an id; all corrections are made, or none.

        A correction replaces the text at its time, and survives another transcription.
        """
        with self.changing():
            found = self.catalog.videos([video])
            if not found:
                raise MomentseekError(f"there is no video {video}; it may have been removed or changed since")
            return edit_transcript(self, found[0], edits)

    def remove(self, patterns: Patterns = (), *, missing: bool = False) -> list[Video]:
        """Remove videos from the library, not their files; ``compact`` frees the space of their vectors."""
        with self.changing():
            videos = self.matching(_as_list(patterns), missing=missing)
            with self.catalog.changes():
                for video in videos:
                    self.catalog.remove_video(video.id)
        return videos

    def compact(self) -> CompactReport:
        """Rewrite the library without the vectors of videos that were removed."""
        with self.changing():
            report = compact_library(self.catalog, self.paths)
            self.refresh_plans()
        if self.origin is not None:
            with self.changing():
                report = replace(report, orphans=report.orphans + self.origin.drop_orphans())
        return report

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Check every file and row of the library; with ``repair``, repair what can be repaired."""
        origin = self.origin
        if repair:
            with self.changing():
                sent = 0 if origin is None else origin.send_missing()
                report = repair_library(self, verify_library(self.catalog, self.paths))
            if sent:
                report.repaired.append(f"{count(sent, 'object')} sent again")
        else:
            report = verify_library(self.catalog, self.paths)
        if origin is not None:
            problems, notes = origin.problems()
            report.problems += problems
            report.notes += notes
        return report

    def scrub(self, megabytes: float = MEGABYTES_PER_SECOND) -> ScrubReport:
        """Read everything slowly and compare it with its checksums, continuing an interrupted scrub."""
        return scrub_library(self, megabytes)

    def reencode(self, spec: str, *, progress: ShowIngest | None = None) -> AddReport:
        """Encode all videos again with another encoder; searches use the old vectors until all new ones are ready.

        Of two encoders (``things+clip``), the second encodes the videos afterwards. Existing vectors of the first are
        kept.
        """
        with self.changing():
            report = reencode_library(self, spec, self.options.pace, progress)
            self.encoders.forget()
            fused = self.encoders.fused
            if fused is not None and self.options.second_pass:
                if fused.ready:
                    report = run_pass(SecondPass(PassRequest(self, report, progress), fused))
                else:
                    report.notes.append(not_ready(fused))
            self.refresh_plans()
        return report


def _as_list(given: Patterns) -> list[str | os.PathLike[str]]:
    return [given] if isinstance(given, str | os.PathLike) else list(given)


def subtitles_folder(subtitles: str | os.PathLike[str] | None) -> Path | None:
    """The absolute path of a folder of subtitles; raises an error if it is not a folder."""
    if subtitles is None:
        return None
    folder = Path(os.path.abspath(subtitles))
    if not folder.is_dir():
        raise MomentseekError(f"{folder}: is not a folder; check {parameter('subtitles')}")
    return folder


FileState = tuple[Stamp | None, tuple[str, ...]]

POLL_SECONDS = 3.0
"""Seconds between two checks of the folders."""


def watch(
    library: LibraryStore,
    paths: Iterable[str | os.PathLike[str]],
    *,
    recursive: bool = True,
    exclude: Sequence[str] = (),
    subtitles: Path | None = None,
    progress: ShowIngest | None = None,
    poll: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[AddReport]:
    """Check folders every ``poll`` seconds and add new and changed files; yields a report each time there were any.

    The lock is held only while adding. The iterator never ends.
    """
    given = list(paths)
    for found in settled_files(given, recursive=recursive, exclude=exclude, subtitles=subtitles, skip=library.path):
        if found.files or found.unusable:
            yield library.add_found(found, replace(library.options, subtitles=subtitles), progress)
        sleep(poll)


def settled_files(
    paths: Sequence[str | os.PathLike[str]],
    *,
    recursive: bool = True,
    exclude: Sequence[str] = (),
    subtitles: Path | None = None,
    skip: Path | None = None,
    links: bool = True,
) -> Iterator[FoundFiles]:
    """Yield, at each step, the files that are new or have changed, often none. The iterator never ends.

    A file is yielded after two consecutive checks find it unchanged, so a file that is being copied or recorded waits
    until it stops growing.
    """
    last: dict[Path, FileState] = {}
    handled: dict[Path, FileState] = {}
    reported: set[Path] = set()
    while True:
        found = find_videos(paths, recursive=recursive, exclude=exclude, skip=skip, links=links)
        now = {file.path: _file_state(file.path, subtitles) for file in found.files}
        settled = [
            file
            for file in found.files
            if now[file.path] == last.get(file.path) and now[file.path] != handled.get(file.path)
        ]
        strange = [(path, reason) for path, reason in found.unusable if path not in reported]
        yield FoundFiles(settled, strange)
        handled |= {file.path: now[file.path] for file in settled}
        reported |= {path for path, _ in strange}
        last = now


def _file_state(path: Path, subtitles: Path | None) -> FileState:
    """A value that changes when a video or its subtitles do."""
    try:
        return Stamp.of(path), subtitle_marks(path, subtitles)
    except MediaError:
        return None, ()
