"""Create a library in shards, empty or split from an ordinary one, in a folder or in object storage.

Splitting copies rows and vectors bit for bit; nothing is decoded or encoded again, and videos keep their ids.
Everything is written next to the new folder and renamed at the end, so a split that is stopped leaves nothing behind.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.cluster.manifest import MANIFEST_FILE, ShardManifest, is_sharded, write_manifest
from momentseek.cluster.replicas.place import make_replica_folder
from momentseek.cluster.replicas.publishing import Sources, list_files_of, upload_chunks
from momentseek.cluster.replicas.replica import copy_catalog, update_replica
from momentseek.cluster.replicas.state import STATE_FILE, ShardState
from momentseek.cluster.storage.objects import (
    MissingObjectError,
    ObjectStore,
    StaleObjectError,
    join_address,
)
from momentseek.core.atomic import flush_folder, usual_mode
from momentseek.core.errors import MomentseekError
from momentseek.core.progress import ShowCount
from momentseek.library import encoders
from momentseek.library.catalog import ID_STEP_SETTING, LEAST_ID_SETTING, Catalog, SegmentRow
from momentseek.library.database import CATALOG_FILE, DATABASE_ERRORS, unusable
from momentseek.library.ingest.add import ADDING_SETTING
from momentseek.library.location import address_of, copies_folder
from momentseek.library.merging import refuse_damage
from momentseek.library.paths import HOLDER_FILE, LOCK_FILE, LibraryPaths, hold_lock
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.segments import MAX_JOINED_ROWS, VECTOR_STREAMS, Segment, parts_without, write_joined
from momentseek.library.store import LibraryStore
from momentseek.library.video import name_text

OWN_SETTINGS = (ADDING_SETTING, ID_STEP_SETTING, LEAST_ID_SETTING)
"""Settings of a library that are not copied to its shards."""
TABLES = {"videos": "id", "cues": "video", "tracks": "video", "track_parts": "video"}
"""Table whose rows belong to videos → its column with the video's id."""


def make_shards(
    target: Path, shards: int, *, encoder: str | None = None, clip_seconds: float = CLIP_SECONDS
) -> ShardManifest:
    """Create an empty library in shards."""
    manifest = ShardManifest.of(shards, clip_seconds, encoder or encoders.default_encoder())
    with _written_aside(target) as work:
        for number, folder in enumerate(manifest.folders(work)):
            LibraryStore.open(folder, create=True, encoder=encoder, clip_seconds=clip_seconds).close()
            with closing(Catalog(folder)) as catalog, catalog.changes():
                _set_ids(catalog, number, shards, 1)
        write_manifest(work, manifest)
    return manifest


def split_library(
    source: Path, target: Path, shards: int, *, wait: float = 0.0, progress: ShowCount | None = None
) -> ShardManifest:
    """Split a copy of an ordinary library over shards; the library itself stays as it is.

    ``progress`` is called with the number of finished shards and the number of all.
    """
    if is_sharded(source):
        raise MomentseekError(f"{source}: is in shards already; split an ordinary library")
    with LibraryStore.open(source, create=False, wait=wait) as opened, hold_lock(source, wait):
        catalog = opened.catalog
        manifest = ShardManifest.of(shards, opened.clip_seconds, encoders.vision_spec(catalog))
        refuse_damage(catalog, opened.paths, VECTOR_STREAMS)
        rows = catalog.rows("SELECT id, hash FROM videos ORDER BY id")
        owner = np.array([manifest.shard_of(hash or str(id)) for id, hash in rows], np.int64)
        ids = np.array([id for id, _ in rows], np.int64)
        snapshot = opened.snapshot()
        streams = {"vision": snapshot.vision, "spans": snapshot.spans, "speech": snapshot.speech}
        with _written_aside(target) as work:
            for number, folder in enumerate(manifest.folders(work)):
                if progress is not None:
                    progress(number, shards)
                _write_shard(opened, folder, ids[owner == number], streams, manifest, number)
            for path in source.glob("*.sqlite"):
                if path.name != CATALOG_FILE:  # judgements and bookmarks refer to videos of all shards
                    _copy_database(path, work / path.name)
            write_manifest(work, manifest)
    if progress is not None:
        progress(shards, shards)
    return manifest


def _write_shard(
    source: LibraryStore,
    folder: Path,
    ids: NDArray[np.int64],
    streams: dict[str, tuple[Segment, ...]],
    manifest: ShardManifest,
    number: int,
) -> None:
    paths = LibraryPaths(folder)
    paths.make()
    if source.paths.models.is_dir():
        shutil.copytree(source.paths.models, paths.models)
    with closing(Catalog(folder, create=True)) as catalog:
        for kind in source.catalog.kinds():
            catalog.add_kind(kind)
        written = [row for stream, held in streams.items() for row in _write_vectors(paths.segments, stream, held, ids)]
        with _attach_source(catalog, source.path / CATALOG_FILE), catalog.changes():
            _copy_rows(catalog, ids, manifest, number)
            _set_ids(catalog, number, len(manifest.shards), source.catalog.next_ids()[0])
            for row in written:
                catalog.insert_segment(row)
        catalog.tidy()
    with LibraryStore.open(folder, create=False) as shard:
        shard.refresh_plans()


def _write_vectors(folder: Path, stream: str, held: Sequence[Segment], ids: NDArray[np.int64]) -> Iterator[SegmentRow]:
    """Write the rows of some videos as segments of a reasonable size."""
    waiting: list[Segment] = []
    rows = 0
    parts = [part for segment in held for part in parts_without(segment, np.setdiff1d(segment.ids, ids))]
    for at, part in enumerate(parts):
        waiting.append(part)
        rows += part.rows
        if at + 1 == len(parts) or rows + parts[at + 1].rows > MAX_JOINED_ROWS:
            videos = sum(len(each.ids) for each in waiting)
            first = min(int(each.ids.min()) for each in waiting)
            yield SegmentRow(write_joined(folder, stream, waiting), stream, videos, rows, first)
            waiting, rows = [], 0


@contextmanager
def _attach_source(catalog: Catalog, source: Path) -> Iterator[None]:
    catalog.run("ATTACH DATABASE ? AS source", (os.fspath(source),))
    try:
        yield
    finally:
        catalog.run("DETACH DATABASE source")


def _copy_rows(catalog: Catalog, ids: NDArray[np.int64], manifest: ShardManifest, number: int) -> None:
    catalog.run("CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY)")
    catalog.run("INSERT INTO chosen SELECT value FROM json_each(?)", (json.dumps(ids.tolist()),))
    for table, key in TABLES.items():
        columns = _columns(catalog, table)
        catalog.run(
            f"""INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}
                WHERE {key} IN (SELECT id FROM chosen) ORDER BY {key}"""
        )
    columns = _columns(catalog, "cue_edits")
    for (hash,) in catalog.rows("SELECT DISTINCT hash FROM source.cue_edits"):
        if manifest.shard_of(hash) == number:
            catalog.run(
                f"INSERT INTO main.cue_edits ({columns}) SELECT {columns} FROM source.cue_edits WHERE hash = ?", (hash,)
            )
    columns = _columns(catalog, "failures")
    for (path,) in catalog.rows("SELECT path FROM source.failures"):
        if manifest.shard_of(os.fsdecode(path)) == number:
            sql = f"INSERT INTO main.failures ({columns}) SELECT {columns} FROM source.failures WHERE path = ?"
            catalog.run(sql, (path,))
    for id, name in catalog.rows("SELECT id, name FROM main.videos"):
        catalog.run("INSERT INTO main.name_words (rowid, text) VALUES (?, ?)", (id, name_text(name)))
    catalog.run("INSERT OR REPLACE INTO main.encoders SELECT * FROM source.encoders")
    marks = ", ".join("?" * len(OWN_SETTINGS))
    catalog.run(
        f"INSERT OR REPLACE INTO main.settings SELECT * FROM source.settings WHERE key NOT IN ({marks})", OWN_SETTINGS
    )
    catalog.run("DROP TABLE chosen")


def _columns(catalog: Catalog, table: str) -> str:
    return ", ".join(row[1] for row in catalog.rows(f"PRAGMA source.table_info({table})"))


def _set_ids(catalog: Catalog, number: int, shards: int, least: int) -> None:
    """Make a shard give ids to new videos that no other shard gives."""
    catalog.set(ID_STEP_SETTING, shards)
    catalog.set(LEAST_ID_SETTING, least + number)


def _copy_database(source: Path, target: Path) -> None:
    try:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
    except DATABASE_ERRORS as e:
        raise unusable(source, e) from None


@contextmanager
def _written_aside(target: Path) -> Iterator[Path]:
    """A folder to write into, renamed once everything is written; an existing folder is refused."""
    if os.path.lexists(target):
        raise MomentseekError(f"{target}: already exists; name a new folder for the library in shards")
    if not target.parent.is_dir():
        raise MomentseekError(f"{target}: there is no folder {target.parent}; create it first")
    try:
        with _work_folder(target.parent, f".{target.name}.making-") as work:
            yield work
            for name in (LOCK_FILE, HOLDER_FILE):
                (work / name).unlink(missing_ok=True)
            flush_folder(work)
            if os.path.lexists(target):
                raise MomentseekError(f"{target}: was made meanwhile; name another folder for the library in shards")
            work.rename(target)
            flush_folder(target.parent)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); make room or check the rights") from None


@contextmanager
def _work_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder to write into, deleted at the end; folders that killed processes left are deleted first."""
    for old in parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(MomentseekError), hold_lock(old):  # locked while the process that made it runs
            shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    try:
        work.chmod(usual_mode(0o777))
        with hold_lock(work):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


Make = Callable[[Path], ShardManifest]
"""Creates a library in shards in a folder that does not exist yet."""


def make_elsewhere(address: str, make: Make) -> ShardManifest:
    """Create a library in shards and upload it to an address; raises an error if there already is one.

    If it is stopped, it leaves unused objects, and no library.
    """
    objects = ObjectStore(address)
    try:
        objects.read(MANIFEST_FILE)
    except MissingObjectError:
        pass
    else:
        raise _there_already(objects)
    place = copies_folder()
    make_replica_folder(place)
    with _work_folder(place, ".making-") as work:
        manifest = make(work / "library")
        for name, folder in zip(manifest.shards, manifest.folders(work / "library"), strict=True):
            send_shard(folder, ObjectStore(join_address(address, name)))
        try:
            objects.replace(MANIFEST_FILE, (work / "library" / MANIFEST_FILE).read_bytes(), None)
        except StaleObjectError:
            raise _there_already(objects) from None
    return manifest


def send_shard(folder: Path, objects: ObjectStore) -> None:
    """Upload all files of a shard's folder, and then the state that names them."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".publishing-") as work:
        copy = Path(work) / CATALOG_FILE
        copy_catalog(folder, copy)
        sources: Sources = {}
        state = ShardState(list_files_of(folder, copy, None, sources))
        upload_chunks(objects, {hash: sources[hash] for hash in state.chunks})
    objects.write(STATE_FILE, state.to_bytes())


def make_sharded(
    place: Path,
    shards: int,
    *,
    source: Path | None = None,
    encoder: str | None = None,
    wait: float = 0.0,
    progress: ShowCount | None = None,
) -> dict[str, int]:
    """Create a library in shards, empty or with the videos of ``source``; returns shard → number of its videos.

    ``place`` is its folder, or the folder of its replica if it is created in object storage.
    """

    def make(into: Path) -> ShardManifest:
        if source is None:
            return make_shards(into, shards, encoder=encoder)
        return split_library(source, into, shards, wait=wait, progress=progress)

    address = address_of(place)
    manifest = make(place) if address is None else make_elsewhere(address, make)
    update_replica(place)
    counts = {}
    for name, folder in zip(manifest.shards, manifest.folders(place), strict=True):
        with closing(Catalog(folder)) as catalog:
            counts[name] = int(catalog.totals()["videos"])
    return counts


def _there_already(objects: ObjectStore) -> MomentseekError:
    return MomentseekError(f"{objects.address}: already exists; name a new place for the library in shards")
