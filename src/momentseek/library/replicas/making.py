"""Making a library in object storage: it is made here in shards, sent, and counts once its manifest is there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.library.database import CATALOG_FILE
from momentseek.library.replicas.catalogs import copy_catalog
from momentseek.library.replicas.place import make_replica_folder, replicas_folder
from momentseek.library.replicas.publishing import Sources, list_files_of, upload_chunks
from momentseek.library.replicas.state import STATE_FILE, ShardState
from momentseek.library.shards.manifest import MANIFEST_FILE, ShardManifest
from momentseek.storage.objects import MissingObjectError, ObjectStore, StaleObjectError, join_address
from momentseek.storage.opening import open_objects

Make = Callable[[Path], ShardManifest]
"""Makes a library in shards in a folder that is not there yet."""


def make_elsewhere(address: str, make: Make) -> ShardManifest:
    """Make a library in shards and send it to an address; refused if there is one already.

    Stopped before its end, it leaves objects that nothing names, and no library.
    """
    objects = open_objects(address)
    try:
        objects.read(MANIFEST_FILE)
    except MissingObjectError:
        pass
    else:
        raise _there_already(objects)
    place = replicas_folder()
    make_replica_folder(place)
    beside = Path(tempfile.mkdtemp(dir=place, prefix=".making-"))
    try:
        manifest = make(beside / "library")
        for name, folder in zip(manifest.shards, manifest.folders(beside / "library"), strict=True):
            send_shard(folder, open_objects(join_address(address, name)))
        try:
            objects.replace(MANIFEST_FILE, (beside / "library" / MANIFEST_FILE).read_bytes(), None)
        except StaleObjectError:
            raise _there_already(objects) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return manifest


def send_shard(folder: Path, objects: ObjectStore) -> None:
    """Send all files of a shard's folder, and then the state that names them."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".publishing-") as work:
        copy = Path(work) / CATALOG_FILE
        copy_catalog(folder, copy)
        sources: Sources = {}
        state = ShardState(list_files_of(folder, copy, None, sources))
        upload_chunks(objects, {hash: sources[hash] for hash in state.chunks})
    objects.write(STATE_FILE, state.to_bytes())


def _there_already(objects: ObjectStore) -> MomentseekError:
    return MomentseekError(f"{objects.address}: is there already; name a new place for the library in shards")
