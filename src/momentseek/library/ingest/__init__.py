"""From video files to the library: read ahead in one thread, encode in batches, commit whole videos."""

from momentseek.library.ingest.report import AddInterrupted, AddReport, Note, Resumed, Step

__all__ = ["AddInterrupted", "AddReport", "Note", "Resumed", "Step"]
