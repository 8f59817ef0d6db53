"""The collection on disk: catalog, segments of vectors, ingest, and the scan over them."""

from momentseek.library.collection import Collection
from momentseek.library.ingest import AddInterrupted, AddReport
from momentseek.library.place import library_folder
from momentseek.library.snapshot import Snapshot
from momentseek.library.video import Failure, Video

__all__ = ["AddInterrupted", "AddReport", "Collection", "Failure", "Snapshot", "Video", "library_folder"]
