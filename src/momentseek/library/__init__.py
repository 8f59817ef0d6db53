"""The collection on disk: catalog, segments of vectors, ingest, and the scan over them."""

from momentseek.library.collection import Collection
from momentseek.library.compact import CompactReport
from momentseek.library.ingest import AddInterrupted, AddReport, Note, Step
from momentseek.library.place import library_folder
from momentseek.library.snapshot import Snapshot
from momentseek.library.status import Status
from momentseek.library.verify import VerifyReport
from momentseek.library.video import Failure, Video

__all__ = [
    "AddInterrupted",
    "AddReport",
    "Collection",
    "CompactReport",
    "Failure",
    "Note",
    "Snapshot",
    "Status",
    "Step",
    "VerifyReport",
    "Video",
    "library_folder",
]
