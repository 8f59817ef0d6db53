"""Reading edit lists back, to compare what was written: the cuts of a CMX 3600 EDL or of an FCPXML, in frames.

OpenTimelineIO reads them too (tests/media/test_edit_lists.py), but takes 29.97 frames per second for 29.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

from momentseek.media.edit_lists import frame_of

_EVENT = re.compile(r"\d+\s+(\S+)\s+\S+\s+C\s+" + r"\s+".join([r"(\d\d:\d\d:\d\d[:;]\d{2,3})"] * 4))
_COMMENT = re.compile(r"\*\s*([A-Z ]+):\s?(.*)")


@dataclass(frozen=True)
class Edit:
    """Frames ``start`` up to ``end`` of a source, placed at frame ``record`` of the timeline."""

    path: Path | None
    name: str
    start: int
    end: int
    rate: Fraction
    record: int
    title: str = ""


@dataclass(frozen=True)
class EditList:
    """An edit list as read."""

    title: str
    rate: Fraction
    edits: tuple[Edit, ...]


def read_edl(text: str) -> EditList:
    """The cuts of an EDL of ours, whose comment says its frame rate."""
    title, rate = "", Fraction(0)
    events: list[tuple[tuple[str, ...], dict[str, str]]] = []
    for line in map(str.strip, text.splitlines()):
        event, comment = _EVENT.fullmatch(line), _COMMENT.fullmatch(line)
        if line.startswith("TITLE:"):
            title = line[6:].strip()
        elif event is not None:
            events.append((event.groups(), {}))
        elif comment is not None and comment[1] == "FRAME RATE":
            rate = Fraction(comment[2].split()[0])
        if comment is not None and events:
            events[-1][1].setdefault(comment[1], comment[2])
    edits = []
    for (reel, *codes), comments in events:
        start, end, record, _ = (frame_of(code, rate) for code in codes)
        source = comments["SOURCE FILE"]
        path = path_of(source) if source.startswith("file:") else Path(source)
        edits.append(
            Edit(path, comments.get("FROM CLIP NAME", reel), start, end, rate, record, comments.get("COMMENT", ""))
        )
    return EditList(title, rate, tuple(edits))


def read_fcpxml(text: str) -> EditList:
    """The clips of an FCPXML of ours."""
    root = ElementTree.fromstring(text)
    rates = {form.attrib["id"]: 1 / _seconds(form.attrib["frameDuration"]) for form in root.iter("format")}
    sources = {asset.attrib["id"]: asset.find("media-rep") for asset in root.iter("asset")}
    sequence = next(root.iter("sequence"))
    rate = rates[sequence.attrib["format"]]
    edits = []
    for clip in sequence.iter("asset-clip"):
        own, begin = rates[clip.attrib["format"]], _seconds(clip.attrib["start"])
        source, marker = sources[clip.attrib["ref"]], clip.find("marker")
        edits.append(
            Edit(
                None if source is None else path_of(source.attrib["src"]),
                clip.attrib["name"],
                round(begin * own),
                round((begin + _seconds(clip.attrib["duration"])) * own),
                own,
                round(_seconds(clip.attrib["offset"]) * rate),
                "" if marker is None else marker.attrib["value"],
            )
        )
    return EditList(next(root.iter("project")).attrib["name"], rate, tuple(edits))


def path_of(url: str) -> Path:
    """The path of a file: URL."""
    return Path(os.fsdecode(unquote_to_bytes(url.removeprefix("file://"))))


def _seconds(time: str) -> Fraction:
    return Fraction(time.removesuffix("s"))
