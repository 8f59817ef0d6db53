"""From a cue's text to plain words."""

from __future__ import annotations

import html
import re

_RUBY = re.compile(r"<rt\b[^<>]{0,99}>[^<>]*(?:</rt>|$)", re.IGNORECASE)
_VOICE = re.compile(r"<v(?:\.[^<>\s]{0,99})?\s([^<>]{1,99})>\s*", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,299}>|</>|<\d[\d:.]{0,29}>")
_CODE = re.compile(r"\{\\[^{}]{0,299}\}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,31});")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffe]")


def lines(text: str) -> list[str]:
    r"""The lines of a cue as they are read aloud or shown: no tags, codes, entities or unseen characters.

    A WebVTT voice becomes a name and a colon, as captions for the deaf write it; readings set above Japanese words
    (``<rt>``) go, since the word is there too. Speaker dashes and sounds in brackets are words and stay: people look
    for ``[applause]``. Lines without a letter or digit (``♪ ♪``) say nothing and go.

    >>> lines("<v Ann>Fish &amp; chips,<00:01.500><c> please</c>\n{\\an8}<i>- Now?</i>\n♪\n[door slams]")
    ['Ann: Fish & chips, please', '- Now?', '[door slams]']
    """
    if "<" in text:
        text = _TAG.sub("", _VOICE.sub(r"\1: ", _RUBY.sub("", text)))
    if "{" in text:
        text = _CODE.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    text = _UNSEEN.sub("", text)
    kept = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in kept if any(map(str.isalnum, line))]
