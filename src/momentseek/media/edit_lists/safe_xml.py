"""Parsing XML from anywhere: no entities, no external subsets, bounded depth and size."""

from __future__ import annotations

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from momentseek.errors import MomentseekError

MAX_DEPTH = 100
MAX_CHARACTERS = 50_000_000


def parsed(text: str) -> Element:
    """The root element. A bare ``<!DOCTYPE name>`` passes; declarations inside one, which could grow or fetch, do not.

    >>> parsed('<!DOCTYPE a><a b="1"/>').get("b")
    '1'
    >>> parsed('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>')
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: the XML declares entities or a document type of its own, which is not read
    """
    if len(text) > MAX_CHARACTERS:
        raise MomentseekError(f"the XML has more than {MAX_CHARACTERS:,} characters, which is not read")
    builder = TreeBuilder()
    parser = expat.ParserCreate("utf-8")
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise MomentseekError(f"the XML is nested more than {MAX_DEPTH} deep, which is not read")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def doctype(name: str, system: str | None, public: str | None, internal: bool) -> None:
        if internal or system or public:
            refuse()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(text.encode("utf-8", errors="surrogateescape"), True)
    except expat.ExpatError as e:
        raise MomentseekError(f"no well-formed XML ({e}); save it again") from None
    return builder.close()


def refuse(*_: object) -> NoReturn:
    """Stop at whatever declares."""
    raise MomentseekError("the XML declares entities or a document type of its own, which is not read")
