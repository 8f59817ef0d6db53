"""Add videos on a cluster: one writer per shard, placed, restarted and retried by Ray."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from momentseek.cluster.connection import Cluster
from momentseek.cluster.manifest import ShardManifest, read_manifest
from momentseek.cluster.ray_process import ClusterLostError, work_on
from momentseek.cluster.replicas.place import shard_place
from momentseek.cluster.replicas.replica import refuse_unsharded
from momentseek.cluster.shard_writer import ShardWriter, WriterSettings, ensure_videos, known_states, list_videos
from momentseek.cluster.shards.catalog import add_up
from momentseek.cluster.storage.address import StoreUnreachableError
from momentseek.core.errors import LibraryError, MediaError, MomentseekError
from momentseek.core.reports import count
from momentseek.library.file_stamp import content_hash
from momentseek.library.files import FoundFiles, VideoFile, find_videos
from momentseek.library.location import is_remote
from momentseek.library.report import AddInterrupted, AddReport, IngestNote, IngestStep, ShowIngest

HASH_BYTES = 1 << 30
"""Largest number of bytes that one task hashes, unless a single file has more."""
MAX_RETRIES = 50
"""How often Ray restarts a task if its node died or could not reach the storage."""
CALL_BYTES = 256 << 20
CALL_FILES = 16
"""Largest amounts that a writer gets at a time; these are the steps of progress, and of work lost with a node."""


def hash_files(files: Sequence[VideoFile], shard: str) -> list[str | None]:
    """The hashes of files; remote files are first fetched next to a shard's library. None if a file cannot be read.

    If the storage does not answer, StoreUnreachableError is raised, because a file must not get another shard for that.
    """
    found: list[str | None] = []
    for file in files:
        try:
            (here,) = ensure_videos([file], shard).files
            found.append(content_hash(here.source))
        except StoreUnreachableError:
            raise
        except (MediaError, MomentseekError, ValueError):
            found.append(None)
    return found


def add_on(
    address: str,
    library: Path,
    paths: Sequence[str],
    settings: WriterSettings,
    *,
    recursive: bool,
    exclude: Sequence[str],
    gpus: float,
    tell: ShowIngest,
) -> AddReport:
    """Add videos to a sharded library on the cluster at an address; the nodes fetch remote videos.

    This runs in a separate process, because Ray ends its process if the cluster's head is lost.
    """
    refuse_unsharded(library)
    found = find_videos((p for p in paths if not is_remote(p)), recursive=recursive, exclude=exclude, skip=library)
    for path in filter(is_remote, paths):
        found.files += list_videos(path, library)
    last: IngestStep | None = None
    try:
        for kind, content in work_on(address, _add_there, library, found, settings, gpus):
            if kind == "report":
                return _report(*content)
            last = content if isinstance(content, IngestStep) else last
            tell(content)
    except ClusterLostError as e:
        done = "nothing was done" if last is None else f"{last.files:,} of {count(last.of_files, 'file')} were done"
        raise LibraryError(
            f"{address}: the cluster was lost ({e}); {done}, and what was added is kept: run the command again"
        ) from None
    raise AssertionError


def _add_there(
    cluster: Cluster, tell: ShowIngest, library: Path, found: FoundFiles, settings: WriterSettings, gpus: float
) -> tuple[AddReport, bool]:
    """Run an ``add``; returns its report, and whether it was interrupted."""
    try:
        return add_on_cluster(cluster, library, found, settings=settings, gpus=gpus, progress=tell), False
    except AddInterrupted as e:
        return e.report, True


def _report(report: AddReport, interrupted: bool) -> AddReport:
    if interrupted:
        raise AddInterrupted(report)
    return report


def add_on_cluster(
    cluster: Cluster,
    library: Path,
    found: FoundFiles,
    *,
    settings: WriterSettings | None = None,
    gpus: float = 0.0,
    progress: ShowIngest | None = None,
) -> AddReport:
    """Add files to a sharded library, on a cluster.

    Every node must find the library's folder and the files under the same paths; if the library is in object storage,
    every node has its own replica. The hash of its bytes assigns each video to a shard, and each shard has one writer
    at a time. If a node dies, only its current work is lost: Ray restarts its writers and tasks elsewhere.
    """
    refuse_unsharded(library)
    run = ClusterAdd(cluster, library, read_manifest(library), settings or WriterSettings(), gpus, progress)
    try:
        return run.go(found)
    except KeyboardInterrupt:
        raise AddInterrupted(run.finish()) from None
    finally:
        run.close()


class ClusterAdd:
    """One ``add`` on a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        library: Path,
        manifest: ShardManifest,
        settings: WriterSettings,
        gpus: float,
        progress: ShowIngest | None,
    ) -> None:
        self._cluster, self._manifest, self._progress = cluster, manifest, progress
        self._begun = time.monotonic()
        self.report = AddReport()
        self._places = [shard_place(folder) for folder in manifest.folders(library)]
        self._holder = uuid.uuid4().hex
        self._settings = settings
        self._kind = cluster.actor(
            ShardWriter, num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=MAX_RETRIES,
            scheduling_strategy="SPREAD",
        )  # fmt: skip
        self._writers: dict[int, Any] = {}
        """Shard → its writer. A writer occupies a processor, so there are at most as many writers as processors."""
        self._bytes = self._of_bytes = self._files = self._of_files = 0

    def go(self, found: FoundFiles) -> AddReport:
        """Find the shard of each file, then add all files."""
        for path, reason in found.unusable:
            self._tell(IngestNote("odd", path, reason))
        self._of_files, self._of_bytes = len(found.files), sum(file.size for file in found.files)
        shares, strays = self._shares(found.files)
        self._show()
        self._add(shares)
        for number, paths in strays.items():
            self._get(self._ask(number, "drop").remote(paths))
            self._end(number)
        return self.finish()

    def finish(self) -> AddReport:
        """The report so far."""
        self.report.elapsed = time.monotonic() - self._begun
        return self.report

    def close(self) -> None:
        """End the writers; what they have committed stays."""
        for number in list(self._writers):
            self._end(number)

    def _writer(self, number: int) -> Any:
        if number not in self._writers:
            self._writers[number] = self._kind.remote(self._places[number], self._settings, self._holder)
        return self._writers[number]

    def _ask(self, number: int, method: str) -> Any:
        return getattr(self._writer(number), method).options(retry_exceptions=[StoreUnreachableError])

    def _end(self, number: int) -> None:
        with suppress(Exception):  # an actor that is gone already
            self._cluster.ray.kill(self._writers.pop(number))

    def _shares(self, files: Sequence[VideoFile]) -> tuple[dict[int, list[VideoFile]], dict[int, list[Path]]]:
        """Shard → its files, and shard → paths whose content now belongs to another shard.

        Only files that are new or have changed are read for their hash.
        """
        shares: dict[int, list[VideoFile]] = defaultdict(list)
        looking = self._cluster.task(known_states, max_retries=MAX_RETRIES, retry_exceptions=[StoreUnreachableError])
        states = self._get([looking.remote(place, files, self._settings.subtitles) for place in self._places])
        unknown: list[VideoFile] = []
        changed: dict[Path, int] = {}
        for at, file in enumerate(files):
            held = {number: state[at] for number, state in enumerate(states) if state[at]}
            known = set(held.values())
            if "unchanged" in known:
                self.report.unchanged += 1
                self._pass(file)
            elif "failed" in known:
                self.report.failed_before += 1
                self._pass(file)
            elif "held" in known:
                shares[next(number for number, state in held.items() if state == "held")].append(file)
            else:
                unknown.append(file)
                changed.update((file.path, number) for number in held)
        hashing = self._cluster.task(hash_files, max_retries=MAX_RETRIES, retry_exceptions=[StoreUnreachableError])
        chunks = list(_chunks(unknown, HASH_BYTES, len(unknown)))
        strays: dict[int, list[Path]] = defaultdict(list)
        for chunk, hashes in zip(
            chunks, self._get([hashing.remote(chunk, self._places[0]) for chunk in chunks]), strict=True
        ):
            for file, content in zip(chunk, hashes, strict=True):
                number = self._manifest.shard_of(content if content is not None else str(file.path))
                shares[number].append(file)
                if changed.get(file.path, number) != number:
                    strays[changed[file.path]].append(file.path)
        return shares, strays

    def _pass(self, file: VideoFile) -> None:
        self._files += 1
        self._bytes += file.size

    def _add(self, shares: dict[int, list[VideoFile]]) -> None:
        waiting = {
            number: deque(_chunks(sorted(files, key=lambda file: -file.size), CALL_BYTES, CALL_FILES))
            for number, files in shares.items()
        }
        running: dict[Any, tuple[int, list[VideoFile]]] = {}
        later = deque(sorted(waiting, key=lambda number: -sum(file.size for file in shares[number])))

        def send(number: int) -> None:
            if waiting[number]:
                chunk = waiting[number].popleft()
                running[self._ask(number, "add").remote(chunk)] = number, chunk
            else:
                self._end(number)

        while running or later:
            while later and len(running) < self._cluster.processors():  # the number of nodes may change
                send(later.popleft())
            done, _ = self._cluster.ray.wait(list(running), num_returns=1)
            number, chunk = running.pop(done[0])
            part = self._get(done[0])
            send(number)
            self._count(number, chunk, part)

    def _count(self, number: int, chunk: Sequence[VideoFile], part: AddReport) -> None:
        """Add a part's numbers to the report, and show them."""
        notes = list(dict.fromkeys((*self.report.notes, *part.notes)))
        self.report = add_up([self.report, part], notes=notes, interrupted_before=False)
        for file in chunk:
            self._pass(file)
        for failure in part.failed:
            text = f"{self._manifest.shards[number]}: {failure.path.name}: {failure.reason}"
            self._tell(IngestNote("failed", failure.path, text))
        self._show()

    def _show(self) -> None:
        elapsed = time.monotonic() - self._begun
        where = f"{count(len(self._cluster.alive_nodes()), 'node')}, {count(len(self._places), 'shard')}"
        self._tell(
            IngestStep(
                files=self._files,
                of_files=self._of_files,
                bytes=self._bytes,
                of_bytes=self._of_bytes,
                name=where,
                at=0.0,
                duration=0.0,
                seconds=self.report.seconds,
                elapsed=elapsed,
                encoding=elapsed,
                bytes_encoded=self._bytes,
            )
        )

    def _tell(self, event: IngestStep | IngestNote) -> None:
        if self._progress is not None:
            self._progress(event)

    def _get(self, asked: Any) -> Any:
        """Get a result; a MomentseekError in a task is raised as itself."""
        try:
            return self._cluster.ray.get(asked)
        except self._cluster.ray.exceptions.RayTaskError as e:
            if isinstance(e.cause, MomentseekError):
                raise e.cause from None
            raise MomentseekError(f"a task on the cluster failed ({type(e.cause).__name__}: {e.cause})") from None
        except self._cluster.ray.exceptions.RayActorError as e:
            said = str(e).strip().splitlines()[-1]
            raise MomentseekError(f"a shard cannot be written on the cluster ({said}); see the nodes' logs") from None


def _chunks(files: Sequence[VideoFile], max_bytes: int, most_files: int) -> Iterator[list[VideoFile]]:
    """Split files into lists of limited size, in order.

    >>> files = [VideoFile(Path(name), name, size) for name, size in (("a", 3), ("b", 3), ("c", 9), ("d", 1))]
    >>> [[file.name for file in chunk] for chunk in _chunks(files, 6, 5)]
    [['a', 'b'], ['c'], ['d']]
    """
    chunk: list[VideoFile] = []
    size = 0
    for file in files:
        if chunk and (size + file.size > max_bytes or len(chunk) >= most_files):
            yield chunk
            chunk, size = [], 0
        chunk.append(file)
        size += file.size
    if chunk:
        yield chunk
