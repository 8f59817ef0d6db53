"""Charades-STA's truth: text lines ``VIDEO start end##sentence``."""

from __future__ import annotations

import re

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register

LINE = re.compile(rb"\s*\S+[ \t]+\S+[ \t]+\S+[ \t]*##")
LONGEST_LINE = 4096


def claims_truth(document: Document) -> bool:
    """Whether a file is text whose first line has three words before ``##``."""
    return not document.is_json and LINE.match(document.data[:LONGEST_LINE].removeprefix(b"\xef\xbb\xbf")) is not None


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read one moment per line; durations come from the corpus, if given."""
    videos: list[str] = []
    starts: list[float] = []
    ends: list[float] = []
    sentences: list[str] = []
    for number, line in enumerate(document.text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip():
            continue
        head, mark, sentence = line.partition("##")
        try:
            video, start, end = head.split()
            starts.append(float(start))
            ends.append(float(end))
        except ValueError:
            mark = ""
        if not mark:
            raise MomentseekError(
                f"{document.path}: line {number:,} is {line[:60]!r}; expected VIDEO start end##sentence"
            )
        videos.append(video)
        sentences.append(sentence)
    return Judgements.from_groups(
        checked.number_by_video(videos),
        [1] * len(videos),
        videos,
        starts,
        ends,
        durations=checked.with_corpus({}, reading),
        queries=sentences,
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write one line per query, in the order of the queries."""
    writers.require_ungraded(truth, "charades-sta")
    writers.require_one_annotator(truth, "charades-sta")
    writers.require_one_moment(truth, "charades-sta")
    lines = []
    for video, (start, end), sentence in zip(
        writers.query_videos(truth, "charades-sta"), writers.spans(truth), writers.texts(truth), strict=True
    ):
        if "\n" in sentence or "\r" in sentence or any(c.isspace() or c == "#" for c in str(video)):
            raise MomentseekError(
                f"charades-sta has one line per query and names without blanks or #; it cannot hold {video} "
                f"{sentence[:40]!r}"
            )
        lines.append(f"{video} {start} {end}##{sentence}\n")
    return "".join(lines).encode()


register("charades-sta", claims_truth, read_truth, write_truth)
