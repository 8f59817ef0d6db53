"""Checking a shard's objects: that those are there which its state names, and which others nothing names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from momentseek.library.replicas.fetching import missing_files
from momentseek.library.replicas.publishing import upload_chunks
from momentseek.library.replicas.replica import ShardReplica
from momentseek.library.replicas.state import OBJECTS_FOLDER, Files, ShardState
from momentseek.library.verify import VerifyReport
from momentseek.tables import count


def check_objects(replica: ShardReplica, report: VerifyReport) -> None:
    """Add to a report what is wrong with the objects of a shard, and what is only worth knowing."""
    state, _ = replica.remote_state()
    there = _sizes(replica)
    report.problems += [
        f"{replica.origin.address}: the object {chunk.hash} is missing or cut short; momentseek verify --repair sends "
        "it again, if it is here"
        for chunk in state.chunks.values()
        if there.get(chunk.hash) != chunk.size
    ]
    if orphans := _orphans(state, there):
        report.notes.append(f"{count(len(orphans), 'object')} that nothing names, left by a writer that was stopped")


def send_missing_objects(replica: ShardReplica) -> int:
    """Send the files again whose objects are missing or cut short, from the replica; returns how many.

    The caller holds the lease. A catalog is not sent: the next change of it is.
    """
    state, _ = replica.remote_state()
    there = _sizes(replica)
    lost: Files = {
        path: chunks
        for path, chunks in state.files.items()
        if len(chunks) == 1 and there.get(chunks[0].hash) != chunks[0].size
    }
    have = lost.keys() - missing_files(replica.folder, lost).keys()
    sources: Mapping[str, Path] = {lost[path][0].hash: replica.folder / path for path in have}
    upload_chunks(replica.objects, dict(sources))
    return len(sources)


def sweep_objects(replica: ShardReplica) -> int:
    """Delete the objects of a shard that its state does not name; returns how many. The caller holds the lease."""
    orphans = _orphans(replica.remote_state()[0], _sizes(replica))
    replica.objects.delete(f"{OBJECTS_FOLDER}/{hash}" for hash in orphans)
    return len(orphans)


def _sizes(replica: ShardReplica) -> dict[str, int]:
    return {path.rpartition("/")[2]: size for path, size in replica.objects.sizes(OBJECTS_FOLDER).items()}


def _orphans(state: ShardState, there: Mapping[str, int]) -> list[str]:
    """Objects that neither the state names nor the one before did, of which readers may still want some."""
    return sorted(there.keys() - state.chunks.keys() - set(state.dropped))
