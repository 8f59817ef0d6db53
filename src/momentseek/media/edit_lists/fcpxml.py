"""FCPXML 1.10, read by Final Cut Pro 10.6 and later and by DaVinci Resolve.

Every time is a rational number of seconds. An excerpt's start lies on its source's frame grid, or where the source's
rate varies on that of the nearest usual rate; offsets and durations lie on the timeline's, as Final Cut demands. Where
the timeline has the source's rate or a multiple of it, nothing is rounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from momentseek.media.edit_lists.timeline import (
    Excerpt,
    ExportText,
    commonest_rate,
    file_url,
    frame_at,
    rate_text,
    source_rate,
)

FCPXML_VERSION = "1.10"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_fcpxml(excerpts: Sequence[Excerpt], title: str, *, rate: Fraction | None = None) -> ExportText:
    """An FCPXML project with the excerpts one after another on one timeline, each with a marker that carries its title.

    ``rate`` is the timeline's; without it, the one most sources are edited at. A note says where a source's rate does
    not fit it and durations were rounded up to whole frames of the timeline.
    """
    rate = commonest_rate(e.rate for e in excerpts) if rate is None else rate
    excerpts = [replace(e, rate=source_rate(e.rate)) for e in excerpts]
    root = Element("fcpxml", version=FCPXML_VERSION)
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
        f"{rate_text(rate)}; their ends are rounded up to its frames",
    )
    return ExportText(text, notes if others else ())


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
    SubElement(asset, "media-rep", kind="original-media", src=file_url(excerpt.path))
    return name


def _time(seconds: Fraction) -> str:
    """A time as FCPXML writes it.

    >>> _time(Fraction(1001, 30000)), _time(Fraction(3))
    ('1001/30000s', '3s')
    """
    return f"{seconds}s"


def _text(text: str) -> str:
    """Text that XML can hold at all."""
    return _NOT_XML.sub(" ", text)
