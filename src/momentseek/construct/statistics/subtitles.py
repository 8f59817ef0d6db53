"""TVR's subtitle files: JSON Lines, ``{"vid_name": …, "sub": [{"text": …, "start": …, "end": …}, …]}``."""

from __future__ import annotations

import os
import re

from momentseek.construct.text import normalise
from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document
from momentseek.formats.values import has_keys, lists, records, strings

SPEAKER_PATTERN = re.compile(r"\([^()]{1,40}:\)")
"""TVQA's cues name who speaks, ``(Rachel:)``, which nobody says."""


def read_subtitles(path: str | os.PathLike[str]) -> dict[str, str]:
    """Video → all that is said in it, normalised, in the order of the file."""
    document = open_document(path)
    if not document.is_json:
        raise MomentseekError(f"{path}: not subtitles in TVR's form; expected JSON Lines with vid_name and sub")
    rows = records(document)
    said: dict[str, list[str]] = {}
    for video, cues in zip(strings(rows, "vid_name", document), lists(rows, "sub", document), strict=True):
        if not all(has_keys(cue, "text") and isinstance(cue["text"], str) for cue in cues):
            raise MomentseekError(f"{path}: a cue of {video} has no text; every cue is an object with text, start, end")
        said.setdefault(video, []).extend(cue["text"] for cue in cues)
    return {
        video: normalise(" ".join(SPEAKER_PATTERN.sub(" ", text) for text in texts)) for video, texts in said.items()
    }
