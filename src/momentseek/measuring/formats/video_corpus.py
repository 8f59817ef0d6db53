"""Lists of videos with durations: TVR-Ranking's video_corpus.json in both forms, and Charades' CSV."""

from __future__ import annotations

from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Corpus
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document, header_of, rows_of
from momentseek.measuring.formats.registry import Reading, Writing, register


def claims_corpus(document: Document) -> bool:
    """Whether a file is ``{video: duration}`` or ``{video: [duration, id]}``."""
    value = document.outline if document.is_json else None
    return isinstance(value, dict) and bool(value) and all(map(_is_entry, value.values()))


def read_corpus(document: Document, _: Reading) -> Corpus:
    """Read a list of videos in either published form, with or without indices."""
    document.reject_repeated_names()
    for video, entry in checked.mapping(document).items():
        if not _is_entry(entry):
            checked.wrong(document, f"video {video}", entry, "seconds or [seconds, index]")
    return checked.collection(
        ((v, *e) if isinstance(e, list) else (v, e, None) for v, e in checked.mapping(document).items()), document
    )


def write_corpus(corpus: Corpus, _: Writing) -> bytes:
    """Write a corpus as ``video_corpus.json``, with the videos' indices if all of them have one."""
    unknown = [video for video, seconds in corpus.durations.items() if seconds != seconds]
    if unknown:
        raise MomentseekError(f"video-corpus needs every duration, and {corpus.source} has none for {unknown[0]}")
    numbers = {video: number for number, video in corpus.names.items()}
    if len(numbers) == len(corpus.durations):
        return writers.dump({video: [seconds, numbers[video]] for video, seconds in corpus.durations.items()})
    return writers.dump(dict(corpus.durations))


def _is_entry(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) == 2 and checked.is_number(value[0]) and type(value[1]) is int
    return checked.is_number(value)


def claims_charades(document: Document) -> bool:
    """Whether a file is a CSV with the columns ``id`` and ``length``."""
    header = header_of(document)
    return "id" in header and "length" in header


def read_charades(document: Document, _: Reading) -> Corpus:
    """Read Charades' own durations, which are on average 0.16 s shorter than the decoded videos."""
    entries = []
    for line, row in rows_of(document, "id", "length"):
        try:
            entries.append((row["id"], float(row["length"]), None))
        except ValueError:
            checked.wrong(document, f"the length of video {row['id']} (line {line:,})", row["length"], "seconds")
    return checked.collection(entries, document)


register("video-corpus", claims_corpus, read_corpus, write_corpus)
register("charades-csv", claims_charades, read_charades)
