"""The collection: a library's folder, opened."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from momentseek.encoders.protocol import ImageTextEncoder, TextEncoder
from momentseek.encoders.registry import MODEL
from momentseek.errors import MomentseekError
from momentseek.library import encoding, ledger
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.compact import CompactReport, compact
from momentseek.library.database import FILE
from momentseek.library.files import FoundFiles, VideoFile, find
from momentseek.library.ingest.add import add_found
from momentseek.library.ingest.report import AddReport, ShowIngest
from momentseek.library.ingest.writer import WritePace
from momentseek.library.lock import writing
from momentseek.library.paths import LibraryPaths
from momentseek.library.planning import refresh_plan
from momentseek.library.reencode import reencode
from momentseek.library.repair import repair as mend
from momentseek.library.select import select
from momentseek.library.snapshot import Snapshot, snapshot
from momentseek.library.status import Status, status
from momentseek.library.verify import VerifyReport, verify
from momentseek.library.video import Failure, Video
from momentseek.trained.encoder import TrainedEncoder

CLIP_SECONDS = 1.5


class LibraryStore:
    """Videos, what is said in them, and the vectors of their clips and cues.

    Any number of processes may read while one writes; a second writer waits (``wait`` seconds) or is refused.
    """

    def __init__(self, path: Path, catalog: Catalog) -> None:
        self.path = path
        self.place = LibraryPaths(path)
        self.catalog = catalog
        self.wait = 0.0
        """Seconds to wait for another writer."""
        self.pace = WritePace()
        self._snapshot: Snapshot | None = None
        self._vision: ImageTextEncoder | None = None
        self._speech: TextEncoder | None = None

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
        """The library in a folder, made if it is not there.

        ``create=True`` makes the folders above it too, ``create=False`` refuses where there is no library.
        ``encoder`` and ``clip_seconds`` are a new library's, once and for all; naming another encoder for one that is
        there is refused with the command that makes its vectors anew. ``encoder="model:FOLDER"`` is a trained model
        that ``momentseek export`` has written; the library keeps a copy of it.
        """
        folder = Path(os.path.abspath(path))
        new = not (folder / FILE).is_file() or (folder / FILE).stat().st_size == 0
        if create is None:
            create = new
            if new and not folder.parent.is_dir():
                raise MomentseekError(f"{folder}: there is no folder {folder.parent}; make it, or say create=True")
        if new and create:
            if not 0.1 <= clip_seconds <= 600:
                raise MomentseekError(f"clips of {clip_seconds} s are not possible; choose 0.1 to 600 seconds")
            encoding.check_model(encoder, clip_seconds)
            LibraryPaths(folder).make()
        opened = cls(folder, Catalog(folder, create=create))
        opened.wait = wait
        try:
            if create and opened.catalog.get("clip_seconds") is None:
                with opened.catalog.changes():
                    opened.catalog.set("clip_seconds", float(clip_seconds))
                    opened.catalog.set("encoder", encoding.adopted(encoder or encoding.DEFAULT, folder))
            if encoder is not None:
                encoding.check_spec(opened.catalog, encoder, folder)
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Let go of the files."""
        self._snapshot = None
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # reading

    def snapshot(self) -> Snapshot:
        """The state now: both streams' segments and the ids that no longer count; kept until something changes."""
        if self._snapshot is None or self._snapshot.generation != self.catalog.state():
            self._snapshot = snapshot(self.catalog, self.place.segments)
            self._keep_encoders(self._snapshot.encoders)
        return self._snapshot

    def _keep_encoders(self, made_by: Iterable[EncoderRow]) -> None:
        """Forget a loaded encoder that is not the one of the vectors: another process may have made them anew."""
        for row in made_by:
            if row.stream == "vision" and self._vision is not None and not encoding.is_by(row, self._vision):
                self._vision = None
            if row.stream == "speech" and self._speech is not None and not encoding.is_by(row, self._speech):
                self._speech = None

    def videos(self) -> list[Video]:
        """All videos, by id."""
        return self.catalog.videos()

    def failures(self) -> list[Failure]:
        """Files that could not be added."""
        return self.catalog.failures()

    @property
    def clip_seconds(self) -> float:
        """The length of a clip."""
        return float(self.catalog.get("clip_seconds", CLIP_SECONDS))

    @property
    def vision_encoder(self) -> ImageTextEncoder:
        """The encoder of this library's frames, loaded at first use, and the very one that made its vectors."""
        if self._vision is None:
            self._vision = encoding.vision(self.catalog, self.path)
        return self._vision

    @property
    def trained(self) -> bool:
        """Whether a trained model makes this library's vectors; asked without loading it."""
        return encoding.vision_spec(self.catalog).startswith(MODEL)

    @property
    def model_kind(self) -> str:
        """``clips`` or ``map`` by what the trained model keeps vectors of; empty where none makes this library's."""
        return encoding.model_kind(self.catalog, self.path)

    @property
    def model(self) -> TrainedEncoder | None:
        """The trained model that makes this library's vectors, if one does."""
        return encoder if isinstance(encoder := self.vision_encoder, TrainedEncoder) else None

    @property
    def speech_encoder(self) -> TextEncoder | None:
        """The encoder of what is said; None if it is not installed."""
        if self._speech is None:
            self._speech = encoding.speech(self.catalog, self.path)
        return self._speech

    # changing

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be the only writer."""
        with writing(self.path, self.wait):
            used = (self.catalog.encoder(stream) for stream in ("vision", "speech"))
            self._keep_encoders(row for row in used if row is not None)
            yield

    def add(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        recursive: bool = True,
        exclude: Sequence[str] = (),
        subtitles: str | os.PathLike[str] | None = None,
        progress: ShowIngest | None = None,
        retry: bool = False,
    ) -> AddReport:
        """Add files, folders and patterns. Files that are in the library and have not changed are not read.

        A file that cannot be added is reported and kept among the ``failures``; it is tried again when it changes, or
        with ``retry``. What has been done stays if this is stopped at any instant, and the next call goes on from
        there.
        """
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        folder = subtitles_folder(subtitles)
        begun = time.monotonic()
        found = find(given, recursive=recursive, exclude=exclude, skip=self.path)
        with self.changing():
            report = add_found(self, found, subtitles=folder, progress=progress, retry=retry)
        report.elapsed = time.monotonic() - begun
        return report

    def retry(
        self, *, progress: ShowIngest | None = None, subtitles: str | os.PathLike[str] | None = None
    ) -> AddReport:
        """Try again the files that failed; those that are no longer there are forgotten."""
        folder = subtitles_folder(subtitles)
        with self.changing():
            listed = ledger.failed_names(self.catalog)
            files = [VideoFile(path, name, _size(path)) for path, name in listed if os.path.lexists(path)]
            with self.catalog.changes():
                for path, _ in listed:
                    if not os.path.lexists(path):
                        ledger.forget_failure(self.catalog, path)
            return add_found(self, FoundFiles(files), subtitles=folder, progress=progress, retry=True)

    def matching(self, patterns: Iterable[str | os.PathLike[str]], *, missing: bool = False) -> list[Video]:
        """Videos by path, by a folder they lie in, or by a glob for their name; with ``missing``, also those whose
        file is not there. A pattern that means nothing is refused.
        """
        return select(self.videos(), [os.fspath(pattern) for pattern in patterns], missing)

    def remove(
        self, patterns: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (), *, missing: bool = False
    ) -> list[Video]:
        """Take videos out of the library; the files stay where they are, and ``compact`` gives back the room."""
        given = [patterns] if isinstance(patterns, str | os.PathLike) else list(patterns)
        with self.changing():
            videos = self.matching(given, missing=missing)
            with self.catalog.changes():
                for video in videos:
                    self.catalog.remove_video(video.id)
        return videos

    def compact(self) -> CompactReport:
        """Rewrite the library without what was removed."""
        with self.changing():
            report = compact(self.catalog, self.place)
            refresh_plan(self.snapshot(), self.place)
        return report

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Check every file and row; with ``repair``, mend what can be mended."""
        if not repair:
            return verify(self.catalog, self.place)
        with self.changing():
            report = verify(self.catalog, self.place)
            return mend(self, report)

    def reencode(self, spec: str, *, progress: ShowIngest | None = None) -> AddReport:
        """Make all vectors anew with another encoder; the old ones serve until all are there."""
        with self.changing():
            report = reencode(self, spec, progress)
            refresh_plan(self.snapshot(), self.place)
        self._vision = self._speech = None
        return report

    def status(self) -> Status:
        """What the library holds."""
        return status(self.catalog, self.place)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def subtitles_folder(subtitles: str | os.PathLike[str] | None) -> Path | None:
    """A folder that was named for subtitles; refused if it is none."""
    if subtitles is None:
        return None
    folder = Path(os.path.abspath(subtitles))
    if not folder.is_dir():
        raise MomentseekError(f"{folder}: is no folder of subtitles; check --subtitles")
    return folder
