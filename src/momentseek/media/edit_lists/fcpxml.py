"""FCPXML 1.10, read by Final Cut Pro 10.6 and later and by DaVinci Resolve.

Every time is a rational number of seconds. An excerpt's start lies on its source's frame grid; offsets and durations
lie on the timeline's, as Final Cut demands. Where the timeline has the source's rate or a multiple of it, nothing is
rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from momentseek.errors import MomentseekError
from momentseek.media.edit_lists import rates, safe_xml
from momentseek.media.edit_lists.excerpt import Edit, EditList, EditListText, Excerpt
from momentseek.media.edit_lists.locations import path_of, url_of
from momentseek.media.edit_lists.timecode import frame_at

VERSION = "1.10"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TIME = re.compile(r"(-?\d{1,18})(?:/(\d{1,18}))?s")


def write_fcpxml(excerpts: Sequence[Excerpt], title: str, *, rate: Fraction | None = None) -> EditListText:
    """The excerpts one after another on one timeline, each with a marker that carries its title.

    ``rate`` is the timeline's; without it, the one most sources are edited at. A note says where a source's rate does
    not fit it and durations were rounded up to whole frames of the timeline.
    """
    rate = rates.commonest(e.rate for e in excerpts) if rate is None else rate
    root = Element("fcpxml", version=VERSION)
    resources = SubElement(root, "resources")
    largest = max(excerpts, key=lambda e: (e.width or 0) * (e.height or 0), default=None)
    size = (largest.width, largest.height) if largest else (None, None)
    formats: dict[tuple[Fraction, int | None, int | None], str] = {}
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
        clip = SubElement(
            spine,
            "asset-clip",
            ref=assets[excerpt.path],
            name=_text(excerpt.name),
            offset=_time(offset / rate),
            start=_time(first / excerpt.rate),
            duration=_time(whole / rate),
            format=form,
            tcFormat="NDF",
        )
        if excerpt.title:
            SubElement(
                clip,
                "marker",
                start=_time(first / excerpt.rate),
                duration=_time(1 / excerpt.rate),
                value=_text(excerpt.title),
            )
        offset += whole
    sequence.set("duration", _time(offset / rate))
    indent(root)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n{tostring(root, encoding="unicode")}\n'
    notes = (
        f"{others} of {len(excerpts)} excerpts come from videos whose frame rate does not fit the timeline's "
        f"{rates.spoken(rate)}; their ends are rounded up to its frames",
    )
    return EditListText(text, notes if others else ())


def read_fcpxml(text: str) -> EditList:
    """The clips of the first timeline in an FCPXML file, in frames of their sources."""
    root = safe_xml.parsed(text)
    if root.tag != "fcpxml":
        raise MomentseekError(f"the XML is a {root.tag[:40]!r}, no FCPXML; export it as FCPXML")
    frame_rates = {form.get("id"): _rate(form) for form in root.iterfind("resources/format")}
    assets = {asset.get("id"): asset for asset in root.iterfind("resources/asset")}
    sequence = next(root.iter("sequence"), None)
    rate = None if sequence is None else frame_rates.get(sequence.get("format"))
    if sequence is None or rate is None:
        raise MomentseekError("the FCPXML has no timeline with a frame rate; export a project")
    name = next((project.get("name", "") for project in root.iter("project")), "")
    return EditList(name, rate, tuple(_edits(sequence, assets, frame_rates, rate)))


def _edits(
    sequence: Element, assets: dict[str | None, Element], frame_rates: dict[str | None, Fraction | None], rate: Fraction
) -> Iterator[Edit]:
    for clip in sequence.iterfind("spine/asset-clip"):
        asset = assets.get(clip.get("ref"))
        if asset is None:
            raise MomentseekError(f"the FCPXML has no asset {clip.get('ref')!r}; export it again")
        own = frame_rates.get(clip.get("format") or asset.get("format")) or rate
        begin = _seconds(clip.get("start") or asset.get("start") or "0s") - _seconds(asset.get("start") or "0s")
        end = begin + _seconds(clip.get("duration") or asset.get("duration") or "0s")
        source = asset.find("media-rep")
        url = asset.get("src") if source is None else source.get("src")
        marker = clip.find("marker")
        yield Edit(
            None if url is None else path_of(url),
            clip.get("name", ""),
            round(begin * own),
            round(end * own),
            own,
            round(_seconds(clip.get("offset") or "0s") * rate),
            "" if marker is None else marker.get("value", ""),
        )


def _format(
    resources: Element,
    formats: dict[tuple[Fraction, int | None, int | None], str],
    rate: Fraction,
    width: int | None,
    height: int | None,
) -> str:
    key = (rate, width, height)
    if key not in formats:
        formats[key] = f"f{len(formats) + 1}"
        form = SubElement(resources, "format", id=formats[key], frameDuration=_time(1 / rate))
        if width and height:
            form.set("width", str(width))
            form.set("height", str(height))
    return formats[key]


def _asset(resources: Element, excerpt: Excerpt, form: str, name: str) -> str:
    length = max(1, frame_at(excerpt.duration, excerpt.rate))
    asset = SubElement(
        resources,
        "asset",
        id=name,
        name=_text(excerpt.name),
        start="0s",
        duration=_time(length / excerpt.rate),
        hasVideo="1",
        format=form,
    )
    if excerpt.audio:
        asset.set("hasAudio", "1")
    SubElement(asset, "media-rep", kind="original-media", src=url_of(excerpt.path))
    return name


def _rate(form: Element) -> Fraction | None:
    length = form.get("frameDuration")
    return 1 / _seconds(length) if length and _seconds(length) > 0 else None


def _time(seconds: Fraction) -> str:
    """A time as FCPXML writes it.

    >>> _time(Fraction(1001, 30000)), _time(Fraction(3))
    ('1001/30000s', '3s')
    """
    return f"{seconds}s"


def _seconds(time: str) -> Fraction:
    match = _TIME.fullmatch(time.strip())
    if match is None or (match[2] is not None and int(match[2]) == 0):
        raise MomentseekError(f"{time[:40]!r} is no time of FCPXML; export it again")
    return Fraction(int(match[1]), int(match[2] or 1))


def _text(text: str) -> str:
    """Text that XML can hold at all."""
    return _NOT_XML.sub(" ", text)
