"""The collection on disk: catalog, segments of vectors, ingest, and the scan over them."""

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
