"""Bringing a library in object storage here: its manifest and its shards' catalogs; vectors come when they are read."""

from __future__ import annotations

import shlex
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import LibraryError
from momentseek.library.database import CATALOG_FILE
from momentseek.library.replicas.fetching import do_at_once
from momentseek.library.replicas.place import address_of, make_replica_folder, shard_folder
from momentseek.library.replicas.replica import ShardReplica
from momentseek.library.shards.manifest import MANIFEST_FILE, ShardManifest, parse_manifest, write_manifest
from momentseek.storage.objects import MissingObjectError, ObjectStore, join_address
from momentseek.storage.opening import open_objects

SHARDS_AT_ONCE = 16


def bring_library(folder: Path) -> bool:
    """Bring the replica of a library up to date, if the folder is one's; true if it is."""
    address = address_of(folder)
    if address is None:
        return False
    manifest = bring_manifest(folder, address)

    def bring(name: str) -> None:
        ShardReplica.at(folder / name, join_address(address, name)).pull()

    do_at_once(bring, manifest.shards, SHARDS_AT_ONCE)
    return True


def bring_manifest(folder: Path, address: str) -> ShardManifest:
    """The manifest of the library at an address, copied into the folder of its replica."""
    objects = open_objects(address)
    try:
        data = objects.read(MANIFEST_FILE).data
    except MissingObjectError:
        raise LibraryError(_no_library(objects)) from None
    manifest = parse_manifest(data, f"{address}/{MANIFEST_FILE}")
    path = folder / MANIFEST_FILE
    if not path.is_file() or path.read_bytes() != data:
        make_replica_folder(folder)
        write_bytes(path, data)
    return manifest


def store_manifest(folder: Path, manifest: ShardManifest) -> None:
    """Write the manifest of a library into its folder, and where its shards are."""
    write_manifest(folder, manifest)
    address = address_of(folder)
    if address is not None:
        open_objects(address).write(MANIFEST_FILE, (folder / MANIFEST_FILE).read_bytes())


def bring_shard(place: str) -> Path:
    """The folder of a shard, given by its folder or its address; a replica is brought up to date."""
    folder = shard_folder(place)
    address = address_of(folder.parent)
    if address is not None:
        ShardReplica.at(folder, join_address(address, folder.name)).pull()
    return folder


def _no_library(objects: ObjectStore) -> str:
    make = f"momentseek shard {shlex.quote(objects.address)} --shards 8"
    try:
        objects.read(CATALOG_FILE)
    except MissingObjectError:
        return f"{objects.address}: has no library; make one with: {make}"
    return (
        f"{objects.address}: holds a library that is not in shards; copy it to a folder, and run: {make} --from FOLDER"
    )
