"""What was done to several shards as one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from momentseek.library.compact import CompactReport
from momentseek.library.ingest.report import AddReport
from momentseek.library.sounds import SoundReport
from momentseek.library.status import Status
from momentseek.library.verify import VerifyReport


def join_statuses(parts: Sequence[Status], path: Path) -> Status:
    """The counts of all shards together, as those of the library in ``path``."""
    sums = {
        field.name: sum(getattr(part, field.name) for part in parts)
        for field in fields(Status)
        if field.type in ("int", "float") and field.name != "clip_seconds"
    }
    encoders = {row.stream: row for part in reversed(parts) for row in part.encoders}
    return replace(
        parts[0],
        **sums,
        path=path,
        encoders=tuple(encoders[stream] for stream in ("vision", "speech") if stream in encoders),
        unfinished=any(part.unfinished for part in parts),
        reencoding=next((part.reencoding for part in parts if part.reencoding), None),
    )


def join_reports(parts: Sequence[AddReport], elapsed: float) -> AddReport:
    """What was added to all shards."""
    out = AddReport(elapsed=elapsed)
    for part in parts:
        for field in fields(AddReport):
            value = getattr(part, field.name)
            if field.name == "elapsed":
                continue
            if isinstance(value, bool):
                setattr(out, field.name, getattr(out, field.name) or value)
            elif isinstance(value, dict):
                mine = getattr(out, field.name)
                for key, seconds in value.items():
                    mine[key] = mine.get(key, 0.0) + seconds
            else:
                setattr(out, field.name, getattr(out, field.name) + value)
    out.notes = list(dict.fromkeys(out.notes))
    return out


def join_checks(parts: Sequence[tuple[str, VerifyReport]]) -> VerifyReport:
    """What is wrong with any shard; texts say which."""
    out = VerifyReport()
    for name, part in parts:
        out.videos, out.segments = out.videos + part.videos, out.segments + part.segments
        out.rows, out.cues = out.rows + part.rows, out.cues + part.cues
        out.problems += [f"{name}: {text}" for text in part.problems]
        out.notes += [f"{name}: {text}" for text in part.notes]
        out.repaired += [f"{name}: {text}" for text in part.repaired]
        out.words &= part.words
    return out


def join_compactions(parts: Sequence[CompactReport]) -> CompactReport:
    """What compaction did to all shards."""
    return CompactReport(*(sum(getattr(part, field.name) for part in parts) for field in fields(CompactReport)))


def join_hearings(parts: Sequence[SoundReport]) -> SoundReport:
    """What was heard in all shards."""
    failed = [one for part in parts for one in part.failed]
    return SoundReport(sum(part.heard for part in parts), sum(part.events for part in parts), failed)
