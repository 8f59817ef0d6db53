"""The web page's files: those in ``static/``, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from momentseek.server.files import etag_matches

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


STATIC_FOLDER = Path(__file__).parent / "static"
PAGE_SCRIPT = "app.js"
"""Name of the module that the page begins with; it is sent together with all it imports."""
PAGE_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}


def page_files(folder: Path = STATIC_FOLDER) -> dict[str, Path]:
    """Address → file of the page. Addresses are made from the files, so no address leads anywhere else."""
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.suffix in PAGE_MEDIA_TYPES and path.is_file() and not path.is_symlink()
    }
    if "index.html" in files:
        files[""] = files["index.html"]
    return files


def router(folder: Path = STATIC_FOLDER) -> APIRouter:
    """The routes of the page: ``/`` and, for each file, ``/NAME`` and ``/static/NAME``.

    They are no operations of the API: without parameters there is nothing to read from a request and to check, and
    making an operation of each would take most of the time in which a server starts.
    """
    routes = APIRouter()
    for name, path in page_files(folder).items():
        for address in {f"/{name}", f"/static/{name}"}:
            routes.add_route(address, _sender(path), methods=["GET", "HEAD"], include_in_schema=False)
    return routes


def _sender(path: Path) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        data = _whole_script(path, _newest(path.parent)) if path.name == PAGE_SCRIPT else path.read_bytes()
        headers = {"ETag": f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"', "Cache-Control": "no-cache"}
        if etag_matches(request.headers.get("if-none-match"), headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=PAGE_MEDIA_TYPES[path.suffix], headers=headers)

    return send


@lru_cache(maxsize=2)
def _whole_script(script: Path, changed: int) -> bytes:
    return join_modules(script).encode()


def _newest(folder: Path) -> int:
    """When a module of a folder was last changed, in nanoseconds."""
    return max(path.stat().st_mtime_ns for path in folder.glob("*.js"))
