"""What is fuzzed: each target takes any bytes and may raise nothing but MomentseekError.

The first byte of an input chooses a kind of file where there are several. What is read must make sense besides.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from momentseek.core.errors import MomentseekError
from momentseek.core.workers import WireError, receive_message
from momentseek.measuring.formats import read_captions, read_runs, read_truth
from momentseek.measuring.measures.captions.ptb import caption_words
from momentseek.media.decode import frames
from momentseek.media.probe import probe
from momentseek.media.subtitles.read import parse_subtitles
from momentseek.search.query import Query
from momentseek.server.errors import ApiError
from momentseek.server.files import etag_matches, parse_range

SUBTITLE_NAMES = ("a.srt", "a.vtt", "a.ass", "a.sbv")
ANNOTATION_SUFFIXES = (".json", ".jsonl", ".csv", ".txt")
MAX_FRAMES = 4
_ROOM = Path(tempfile.mkdtemp(prefix="momentseek-fuzz-"))


def _chosen(data: bytes, names: tuple[str, ...]) -> tuple[str, bytes]:
    return names[data[0] % len(names) if data else 0], data[1:]


def _written(data: bytes, name: str) -> Path:
    path = _ROOM / f"{os.getpid()}{name}"
    path.write_bytes(data)
    return path


def subtitles(data: bytes) -> None:
    """Subtitle files, of any kind and encoding."""
    name, text = _chosen(data, SUBTITLE_NAMES)
    for cue in parse_subtitles(text, name):
        assert math.isfinite(cue.start)
        assert cue.start <= cue.end < math.inf
        assert cue.text


def media_headers(data: bytes) -> None:
    """Videos: what they say of themselves, and their first pictures. ffmpeg itself is not instrumented."""
    path = _written(data, ".video")
    found = probe(path)
    assert 0 < found.duration < math.inf
    assert min(found.width, found.height) > 0
    for count, frame in enumerate(frames(path, 2.0, short_side=32)):
        assert frame.pixels.shape[2] == 3
        if count == MAX_FRAMES:
            break


def annotations(data: bytes) -> None:
    """Files of annotations, of predictions and of captions, whose words are counted."""
    suffix, text = _chosen(data, ANNOTATION_SUFFIXES)
    path = _written(text, suffix)
    with suppress(MomentseekError):
        read_truth(path)
    with suppress(MomentseekError):
        assert all(map(all, caption_words(read_captions(path).captions)))
    read_runs(path)


def queries(data: bytes) -> None:
    """The language of queries; what was understood, written again, is understood alike."""
    query = Query.parse(data.decode("utf-8", "replace"))
    assert Query.parse(str(query)) == query


def ranges(data: bytes) -> None:
    """The headers of a request for a part of a file."""
    size = int.from_bytes(data[:3], "little")
    header = data[3:].decode("latin-1")
    etag_matches(header, '"a"')
    with suppress(ApiError):
        part = parse_range(header, size)
        assert part is None or 0 <= part[0] <= part[1] < size


def messages(data: bytes) -> None:
    """What the process that decodes might say, were it taken over."""
    with suppress(WireError):
        receive_message(BytesIO(data))  # type: ignore[arg-type]


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (subtitles, media_headers, annotations, queries, ranges, messages)
}


def try_input(name: str, data: bytes) -> None:
    """Give a target an input; what it may raise is caught."""
    with suppress(MomentseekError):
        TARGETS[name](data)
