"""Readers and writers of community file formats, one module each; files are recognised by their content."""

from __future__ import annotations

from momentseek.core.atomic import write_all, write_bytes
from momentseek.measuring.formats.files import (
    read_answers,
    read_captions,
    read_corpus,
    read_run,
    read_runs,
    read_standard,
    read_truth,
    write_captions,
    write_run,
    write_runs,
    write_truth,
)
from momentseek.measuring.formats.registry import FORMATS, FileFormat, Reading, Writing, recognise

FORMATS.load()

__all__ = [
    "FORMATS",
    "FileFormat",
    "Reading",
    "Writing",
    "read_answers",
    "read_captions",
    "read_corpus",
    "read_run",
    "read_runs",
    "read_standard",
    "read_truth",
    "recognise",
    "write_all",
    "write_bytes",
    "write_captions",
    "write_run",
    "write_runs",
    "write_truth",
]
