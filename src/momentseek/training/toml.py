"""Writing the small part of TOML that configs need; the standard library only reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of plain values.

    >>> print(text({"model": {"name": "xml", "hidden": 64, "parts": ("a", "b")}}), end="")
    [model]
    name = "xml"
    hidden = 64
    parts = ["a", "b"]
    """
    blocks = []
    for section, values in sections.items():
        lines = [f"{key} = {_value(value)}" for key, value in values.items()]
        blocks.append("\n".join([f"[{section}]", *lines]) + "\n")
    return "\n".join(blocks)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{value!r} has no place in a config")
