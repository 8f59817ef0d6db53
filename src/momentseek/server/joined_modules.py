"""The modules of the page as one: a browser that asks for each of them spends more on asking than on running them."""

from __future__ import annotations

import re
from pathlib import Path

IMPORT = re.compile(
    r'^import (?:\* as (?P<whole>\w+)|(?P<names>\{ \w+(?:, \w+)* \})) from "\./(?P<file>[\w.-]+)";$', re.MULTILINE
)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (?P<name>\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?P<what>import|export)\b.*", re.MULTILINE)


def join_modules(entry: Path) -> str:
    """The text of a module with all that it imports, directly or not, from its folder.

    Each imported module becomes a function that is called once, in the order in which a browser would run them, and
    returns what it exports; the entry itself stays as it is. Understood are ``import { a, b } from "./x.js";``,
    ``import * as x from "./x.js";`` and ``export`` before functions, classes and constants, each at the beginning of a
    line; other imports and exports are refused, and so are modules that import each other.
    """
    joined: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"{' → '.join((*importers, name))}: modules that import each other cannot be joined")
        if name in joined:
            return
        text = (entry.parent / name).read_text(encoding="utf-8")
        for found in IMPORT.finditer(text):
            add(found["file"], (*importers, name))
        text = IMPORT.sub(_constants, text)
        if importers:
            exported = ", ".join(found["name"] for found in EXPORT.finditer(text))
            text = EXPORT.sub("", text)
            text = f"const {_variable(name)} = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();\n"
        unknown = next((found[0] for found in OTHER.finditer(text) if importers or found["what"] == "import"), None)
        if unknown is not None:
            raise ValueError(f"{name}: {unknown!r} cannot be joined")
        joined[name] = text

    add(entry.name, ())
    return "\n".join(joined.values())


def _constants(found: re.Match[str]) -> str:
    """An import as constants taken from the module's exports."""
    return f"const {found['whole'] or found['names']} = {_variable(found['file'])};"


def _variable(file: str) -> str:
    """The constant that holds the exports of a module; no module has a name like it.

    >>> _variable("judge-stage.js")
    '$judge_stage_js'
    """
    return f"${re.sub(r'[^A-Za-z0-9]', '_', file)}"
