"""The collection on disk: catalog, segments of vectors, ingest, and the scan over them."""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.library.compact import CompactReport
    from momentseek.library.ingest import AddInterrupted, AddReport, BesideStep, IngestNote, IngestStep
    from momentseek.library.location import library_folder
    from momentseek.library.snapshot import Snapshot
    from momentseek.library.status import Status
    from momentseek.library.store import LibraryStore
    from momentseek.library.verify import VerifyReport
    from momentseek.library.video import Failure, Video

__all__ = [
    "AddInterrupted",
    "AddReport",
    "LibraryStore",
    "CompactReport",
    "Failure",
    "BesideStep",
    "IngestNote",
    "Snapshot",
    "Status",
    "IngestStep",
    "VerifyReport",
    "Video",
    "library_folder",
]

__getattr__ = late_names(
    __name__,
    {
        "AddInterrupted": "ingest",
        "AddReport": "ingest",
        "BesideStep": "ingest",
        "CompactReport": "compact",
        "Failure": "video",
        "IngestNote": "ingest",
        "IngestStep": "ingest",
        "LibraryStore": "store",
        "Snapshot": "snapshot",
        "Status": "status",
        "VerifyReport": "verify",
        "Video": "video",
        "library_folder": "location",
    },
)
