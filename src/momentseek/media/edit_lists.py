"""Export moments as frame-accurate clips on the timeline of a video editor: CMX 3600 EDL and FCPXML.

A timecode counts a whole number of frames per second, the nominal rate. At 29.97 frames per second non-drop timecode
therefore falls behind real time by 3.6 s per hour. Drop-frame timecode skips the *numbers* 0 and 1 at the start of
every minute except each tenth (0 to 3 at 59.94); no frame is lost (SMPTE ST 12-1).
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from momentseek.core.errors import MomentseekError

_TIMECODE = re.compile(r"(\d{2}):(\d{2}):(\d{2})([:;.,])(\d{2,3})")


EDITING_RATES = tuple(map(Fraction, ["24000/1001", "24", "25", "30000/1001", "30", "50", "60000/1001", "60"]))
"""Frame rates of video editors: 23.976, 24, 25, 29.97, 30, 50, 59.94 and 60 frames per second."""


def editing_rate(rate: Fraction) -> Fraction:
    """Return the editing rate for a source: its own rate, a multiple or divisor of it, or the nearest one.

    >>> [str(editing_rate(Fraction(rate))) for rate in ("25", "15", "240", "30000/1001", "11991/999", "1")]
    ['25', '30', '60', '30000/1001', '24000/1001', '24']
    """
    if rate <= 0:
        raise MomentseekError(f"a frame rate of {rate} is none; give a positive one")
    exact = [usual for usual in EDITING_RATES if _is_multiple(usual, rate)]
    return min(exact or EDITING_RATES, key=lambda usual: (abs(usual - rate), usual))


def source_rate(rate: Fraction) -> Fraction:
    """Return the rate in which a source's frames are counted: its own rate if it matches an editing rate.

    The average rate of a variable-rate video is replaced by the nearest standard rate.

    >>> [str(source_rate(Fraction(rate))) for rate in ("25", "15", "240", "30000/1001", "2437/100", "11991/999")]
    ['25', '15', '240', '30000/1001', '24', '24000/1001']
    """
    usual = editing_rate(rate)
    return rate if _is_multiple(usual, rate) else usual


def _is_multiple(usual: Fraction, rate: Fraction) -> bool:
    """Whether one of two rates is a whole multiple of the other."""
    return (usual / rate).denominator == 1 or (rate / usual).denominator == 1


def commonest_rate(rates: Iterable[Fraction]) -> Fraction:
    """Return the most common editing rate of the sources; in a tie the higher one, which loses less.

    >>> commonest_rate([Fraction(25), Fraction(50), Fraction(50)]), commonest_rate([])
    (Fraction(50, 1), Fraction(25, 1))
    """
    counts = Counter(map(editing_rate, rates))
    return max(counts, key=lambda rate: (counts[rate], rate)) if counts else Fraction(25)


def rate_text(rate: Fraction) -> str:
    """Return a frame rate in the usual notation.

    >>> rate_text(Fraction(30000, 1001)), rate_text(Fraction(25))
    ('29.97', '25')
    """
    return f"{float(rate):.3f}".rstrip("0").rstrip(".")


def nominal(rate: Fraction) -> int:
    """Return the number of frames per second of timecode at a rate.

    >>> nominal(Fraction(24000, 1001)), nominal(Fraction(25))
    (24, 25)
    """
    return max(1, round(rate))


def can_drop(rate: Fraction) -> bool:
    """Whether drop-frame timecode exists at this rate."""
    return rate in (Fraction(30000, 1001), Fraction(60000, 1001))


def frame_at(seconds: float, rate: Fraction) -> int:
    """Return the number of the frame boundary nearest to a time; halfway, the later one.

    >>> frame_at(10.01, Fraction(30000, 1001)), frame_at(0.5, Fraction(25)), frame_at(1.5, Fraction(25))
    (300, 13, 38)
    """
    return math.floor(Fraction(seconds) * rate + Fraction(1, 2))


def timecode(frame: int, rate: Fraction, drop: bool = False) -> str:
    """Return the timecode of a frame; drop-frame timecode has a semicolon.

    >>> ntsc = Fraction(30000, 1001)
    >>> timecode(1800, ntsc), timecode(1800, ntsc, drop=True), timecode(17982, ntsc, drop=True)
    ('00:01:00:00', '00:01:00;02', '00:10:00;00')
    """
    per_second = nominal(rate)
    if drop:  # numbers are skipped in nine of every ten minutes, at the start of each but the first
        skip = _skipped_per_minute(rate)
        in_minute = per_second * 60 - skip
        tens, rest = divmod(frame, in_minute * 10 + skip)
        frame += skip * (9 * tens + (max(0, rest - skip) // in_minute))
    seconds, frames = divmod(frame, per_second)
    if not 0 <= seconds < 24 * 3600:
        raise MomentseekError("timecode ends at 24 hours; export fewer or shorter moments, or as FCPXML")
    width = 2 if per_second <= 100 else 3
    mark = ";" if drop else ":"
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{mark}{frames:0{width}d}"


def frame_of(code: str, rate: Fraction) -> int:
    """Return the frame of a timecode; a semicolon or full stop before the frames means drop-frame.

    >>> frame_of("00:10:00;00", Fraction(30000, 1001)), frame_of("00:00:01:05", Fraction(25))
    (17982, 30)
    """
    match = _TIMECODE.fullmatch(code.strip())
    if match is None:
        raise MomentseekError(f"{code!r} is not a timecode; it looks like 01:00:00:00")
    hours, minutes, seconds, frames = (int(match[group]) for group in (1, 2, 3, 5))
    per_second = nominal(rate)
    if minutes > 59 or seconds > 59 or frames >= per_second:
        raise MomentseekError(f"{code!r} is not a timecode at {per_second} frames per second; check the rate")
    number = ((hours * 60 + minutes) * 60 + seconds) * per_second + frames
    if match[4] in ":,":
        return number
    skipped = _skipped_per_minute(rate)
    if minutes % 10 and seconds == 0 and frames < skipped:
        raise MomentseekError(f"{code!r} is skipped by drop-frame timecode; check the list")
    total = hours * 60 + minutes
    return number - skipped * (total - total // 10)


def _skipped_per_minute(rate: Fraction) -> int:
    if not can_drop(rate):
        raise MomentseekError("drop-frame timecode exists at 29.97 and 59.94 frames per second only")
    return nominal(rate) // 15


@dataclass(frozen=True)
class Excerpt:
    """A part of a video for a timeline; times in seconds, ``rate`` in frames per second of the source."""

    path: Path
    name: str
    start: float
    end: float
    rate: Fraction
    title: str
    """Title of the excerpt: the query, or what is said."""
    duration: float
    """Length of the whole video, in seconds."""
    width: int | None = None
    height: int | None = None
    audio: bool = True

    @property
    def tracks(self) -> str:
        """The tracks of the event in an edit list: audio, video, or both."""
        return "AA" if self.width == 0 else "AA/V" if self.audio else "V"

    def frames(self, rate: Fraction | None = None) -> tuple[int, int]:
        """Return the first frame and the one after the last, at the source's rate or a given one.

        The range lies within the video and has at least one frame.

        >>> Excerpt(Path("a.mp4"), "a.mp4", 1.0, 2.5, Fraction(25), "", 2.0).frames()
        (25, 50)
        """
        rate = self.rate if rate is None else rate
        length = max(1, frame_at(self.duration, rate))
        first = min(max(0, frame_at(self.start, rate)), length - 1)
        return first, min(max(first + 1, frame_at(self.end, rate)), length)


@dataclass(frozen=True)
class ExportText:
    """The text of an exported file, and notes on what its format cannot express."""

    text: str
    notes: tuple[str, ...] = ()


def file_url(path: Path) -> str:
    r"""Return the file: URL of a path, with unsafe bytes percent-encoded.

    >>> file_url(Path("/films/a b\n🎬.mp4"))
    'file:///films/a%20b%0A%F0%9F%8E%AC.mp4'
    """
    return "file://" + quote(os.fsencode(Path(os.path.abspath(path)).as_posix()), safe="/:" if os.name == "nt" else "/")


# CMX 3600 is the edit decision list that every video editor reads. Each excerpt is an event: number, reel, track, cut,
# then source in, source out, record in and record out as timecode. The list has one frame rate, which the format does
# not store, so a comment states it. Source timecode starts at 00:00:00:00 with the file's first frame.

RECORD_START = "01:00:00"
"""Timecode at which the timeline starts, by convention one hour."""


def write_edl(
    excerpts: Sequence[Excerpt], title: str, *, rate: Fraction | None = None, drop: bool = False
) -> ExportText:
    """Return a CMX 3600 edit list of the excerpts, one after another.

    ``rate`` is the timeline's; by default the editing rate of most sources. Excerpts of sources with another rate are
    rounded to the timeline's frames, and a comment and a note say so.
    """
    rate = commonest_rate(e.rate for e in excerpts) if rate is None else rate
    if drop and not can_drop(rate):
        raise MomentseekError(f"no drop-frame timecode at {rate_text(rate)} frames per second; leave it non-drop")
    lines = [f"TITLE: {_line(title)[:70]}", f"FCM: {'DROP FRAME' if drop else 'NON-DROP FRAME'}"]
    rate_comment = f"* FRAME RATE: {rate} ({rate_text(rate)})"
    lines.append("" if excerpts else rate_comment)  # some programs refuse a comment before the first event
    record = frame_of(RECORD_START + (";00" if drop else ":00"), rate)
    reels = reel_names(excerpts)
    others = 0
    for number, excerpt in enumerate(excerpts, start=1):
        first, last = excerpt.frames(rate)
        codes = (timecode(frame, rate, drop) for frame in (first, last, record, record + last - first))
        lines.append(f"{number:03d}  {reels[excerpt.path]:<8} {excerpt.tracks:<5} C        {' '.join(codes)}")
        lines += [f"* FROM CLIP NAME: {_line(excerpt.name)}", f"* SOURCE FILE: {_source(excerpt.path)}"]
        if number == 1:
            lines.append(rate_comment)
        if excerpt.title:
            lines.append(f"* COMMENT: {_line(excerpt.title)}")
        if editing_rate(excerpt.rate) != rate:
            lines.append(f"* SOURCE FRAME RATE: {excerpt.rate} ({rate_text(excerpt.rate)})")
            others += 1
        lines.append("")
        record += last - first
    notes = []
    if others:
        notes.append(
            f"{others} of {len(excerpts)} excerpts come from videos of another frame rate than the list's "
            f"{rate_text(rate)}; their ends are rounded to its frames"
        )
    if len(excerpts) > 999:
        notes.append("more than 999 events; old programs read only the first 999")
    return ExportText("\n".join(lines), tuple(notes))


def reel_names(excerpts: Sequence[Excerpt]) -> dict[Path, str]:
    """Return a unique reel name for each source, of at most eight capitals and digits."""
    found: dict[Path, str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for path in dict.fromkeys(excerpt.path for excerpt in excerpts):
        base = reel = re.sub(r"[^A-Z0-9]", "", path.stem.upper())[:8] or "REEL"
        while reel in taken:
            numbers[base] += 1
            number = str(numbers[base] + 1)
            reel = base[: 8 - len(number)] + number
        taken.add(reel)
        found[path] = reel
    return found


def _line(text: str) -> str:
    """Return the text on one line; a line break would begin another statement."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _source(path: Path) -> str:
    """Return the path, or its URL if it does not fit on one line."""
    plain = str(path)
    return plain if plain == _line(plain) and not plain.startswith("file:") else file_url(path)


# FCPXML 1.10 is read by Final Cut Pro 10.6 or later and by DaVinci Resolve. Every time is a rational number of seconds.
# An excerpt's start lies on its source's frame grid, or on that of the nearest standard rate if the source's rate
# varies. Offsets and durations lie on the timeline's grid, as Final Cut requires. If the timeline has the source's rate
# or a multiple of it, nothing is rounded.

Format = tuple[Fraction, int | None, int | None]
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_fcpxml(excerpts: Sequence[Excerpt], title: str, *, rate: Fraction | None = None) -> ExportText:
    """Return an FCPXML project with the excerpts one after another on a timeline, each with a marker for its title.

    ``rate`` is the timeline's; by default the editing rate of most sources. A note names sources whose rate does not
    fit, so that durations were rounded up to whole frames of the timeline.
    """
    rate = commonest_rate(e.rate for e in excerpts) if rate is None else rate
    excerpts = [replace(e, rate=source_rate(e.rate)) for e in excerpts]
    root = Element("fcpxml", version="1.10")
    resources = SubElement(root, "resources")
    largest = max(excerpts, key=lambda e: (e.width or 0) * (e.height or 0), default=None)
    size = (largest.width, largest.height) if largest else (None, None)
    formats: dict[Format, str] = {}
    timeline = _format(resources, formats, rate, *size)
    assets: dict[Path, str] = {}
    event = SubElement(SubElement(root, "library"), "event", name="Momentseek")
    project = SubElement(event, "project", name=_text(title) or "Moments")
    sequence = SubElement(project, "sequence", format=timeline, tcStart="0s", tcFormat="NDF")
    spine = SubElement(sequence, "spine")
    offset, others = 0, 0
    for excerpt in excerpts:
        form = _format(resources, formats, excerpt.rate, excerpt.width, excerpt.height)
        if excerpt.path not in assets:
            assets[excerpt.path] = _asset(resources, excerpt, form, f"a{len(assets) + 1}")
        first, last = excerpt.frames()
        length = Fraction(last - first) / excerpt.rate * rate
        others += length.denominator != 1
        whole = -(-length.numerator // length.denominator)
        start = f"{first / excerpt.rate}s"
        clip = SubElement(spine, "asset-clip", ref=assets[excerpt.path], name=_text(excerpt.name))
        times = {"offset": f"{offset / rate}s", "start": start, "duration": f"{whole / rate}s"}
        clip.attrib |= {**times, "format": form, "tcFormat": "NDF"}
        if excerpt.title:
            SubElement(clip, "marker", start=start, duration=f"{1 / excerpt.rate}s", value=_text(excerpt.title))
        offset += whole
    sequence.set("duration", f"{offset / rate}s")
    indent(root)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n{tostring(root, encoding="unicode")}\n'
    notes = (
        f"{others} of {len(excerpts)} excerpts come from videos whose frame rate does not fit the timeline's "
        f"{rate_text(rate)}; their ends are rounded up to its frames",
    )
    return ExportText(text, notes if others else ())


def _format(
    resources: Element, formats: dict[Format, str], rate: Fraction, width: int | None, height: int | None
) -> str:
    key = (rate, width, height)
    if key not in formats:
        formats[key] = f"f{len(formats) + 1}"
        form = SubElement(resources, "format", id=formats[key], frameDuration=f"{1 / rate}s")
        if width and height:
            form.attrib |= {"width": str(width), "height": str(height)}
    return formats[key]


def _asset(resources: Element, excerpt: Excerpt, form: str, name: str) -> str:
    length = max(1, frame_at(excerpt.duration, excerpt.rate))
    asset = SubElement(resources, "asset", id=name, name=_text(excerpt.name), start="0s")
    asset.attrib |= {"duration": f"{length / excerpt.rate}s", "format": form}
    if excerpt.width != 0:
        asset.attrib["hasVideo"] = "1"
    if excerpt.audio:
        asset.set("hasAudio", "1")
    SubElement(asset, "media-rep", kind="original-media", src=file_url(excerpt.path))
    return name


def _text(text: str) -> str:
    """Return the text without characters that XML does not allow."""
    return _NOT_XML.sub(" ", text)
