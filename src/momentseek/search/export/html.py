"""Hits as one self-contained HTML page, light and dark, with embedded pictures, no script and no requests.

Each picture links to the video at the moment (a media fragment, ``#t=3,9``), which browsers that can play the file
support. Every text is escaped, and the page's policy forbids loading or running anything, whatever a file name
contains.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.media.edit_lists import ExportText, file_url
from momentseek.search.display import clock, reason, tidy, time_range
from momentseek.search.export import EXPORT_KINDS, ExportKind, Thumbnail
from momentseek.search.hit import Hit, heard_labels

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title} – Momentseek</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1 dir="auto">{title}</h1>
<p>{summary}</p>
</header>
<main>
{hits}
</main>
</body>
</html>
"""
_HIT = """<li value="{rank}" class="{level}">
<a class="picture" href="{url}" tabindex="-1" aria-hidden="true">{picture}</a>
<div class="facts">
<p class="line"><span class="rank">{rank}</span> <span class="level">{level}</span> <span class="why">{why}</span></p>
<h2><a href="{url}"><bdi>{name}</bdi> <span class="when">{when}</span></a></h2>
<div class="bar" aria-hidden="true"><i style="margin-left:{left:.2f}%;width:{width:.2f}%"></i></div>
<p class="length">{length} of {whole}</p>
{said}</div>
</li>"""


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render a page; a hit without a picture gets an empty frame."""
    title = escape(tidy(query) or "Moments")
    videos = len({hit.path for hit in hits})
    summary = (
        f"{count(len(hits), 'moment')} in {count(videos, 'video')}, best match first" if hits else "No moments found."
    )
    rows = "\n".join(_hit_item(hit, _picture(hit, thumbnail)) for hit in hits)
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    body = f"<ol>\n{rows}\n</ol>" if hits else ""
    return ExportText(_PAGE.format(title=title, style=style, summary=summary, hits=body))


def _hit_item(hit: Hit, picture: str) -> str:
    whole = max(hit.duration, hit.end, 1e-9)
    return _HIT.format(
        rank=hit.rank,
        level=hit.level,
        url=escape(f"{file_url(hit.path)}#t={hit.start:.3f},{hit.end:.3f}"),
        picture=picture,
        why=escape(reason(hit)),
        name=escape(tidy(hit.name)),
        when=time_range(hit),
        left=100 * hit.start / whole,
        width=100 * (hit.end - hit.start) / whole,
        length=f"{hit.end - hit.start:.1f} s",
        whole=clock(hit.duration),
        said="".join(_quote(text, language) for text, language in _said_by_language(hit)) + _found_paragraphs(hit),
    )


def _found_paragraphs(hit: Hit) -> str:
    """Text on screen, descriptions and sounds of a hit, each if its stream found the hit."""
    found = {
        "text": ("written", " / ".join(tidy(line.text) for line in hit.written)),
        "described": ("described by a model", " ".join(tidy(caption.text) for caption in hit.described)),
        "sound": ("heard", ", ".join(map(tidy, heard_labels(hit)))),
    }
    return "".join(
        f'<p class="length">{what}: <bdi>{escape(text)}</bdi></p>\n'
        for stream, (what, text) in found.items()
        if stream in hit.streams and text
    )


def _said_by_language(hit: Hit) -> list[tuple[str, str | None]]:
    """What is said in a hit, with consecutive cues of one language joined."""
    found: list[tuple[str, str | None]] = []
    for cue in hit.said:
        if found and found[-1][1] == cue.language:
            found[-1] = (f"{found[-1][0]} {tidy(cue.text)}", cue.language)
        else:
            found.append((tidy(cue.text), cue.language))
    return found


def _quote(text: str, language: str | None) -> str:
    tongue = f' lang="{escape(language)}"' if language else ""
    return f'<blockquote dir="auto"{tongue}>{escape(text)}</blockquote>\n'


def _picture(hit: Hit, thumbnail: Thumbnail | None) -> str:
    try:
        data = thumbnail(hit) if thumbnail is not None else None
    except MomentseekError:
        data = None
    if not data:
        return '<span class="none">no picture</span>'
    return f'<img src="data:image/webp;base64,{b64encode(data).decode()}" alt="">'


EXPORT_KINDS.add("html", ExportKind((".html", ".htm"), "a page with pictures, to look at and pass on", render))
