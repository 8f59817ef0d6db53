"""From video files to the library: read ahead in one thread, encode in batches, commit whole videos."""

from momentseek.library.ingest.report import (
    AddInterrupted,
    AddReport,
    BesideStep,
    IngestNote,
    IngestStep,
    ResumedVideo,
)

__all__ = ["AddInterrupted", "AddReport", "BesideStep", "IngestNote", "ResumedVideo", "IngestStep"]
