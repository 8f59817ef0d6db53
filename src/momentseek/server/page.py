"""The web page's files: those in ``static/``, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from momentseek.server.files import etag_matches

STATIC_FOLDER = Path(__file__).parent / "static"
PAGE_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Kinds of files that are served."""


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


def page_router(folder: Path = STATIC_FOLDER) -> APIRouter:
    """The routes of the page: ``/`` and, for each file, ``/NAME`` and ``/static/NAME``."""
    routes = APIRouter()
    for name, path in page_files(folder).items():
        for address in {f"/{name}", f"/static/{name}"}:
            routes.add_route(address, _sender(path), methods=["GET", "HEAD"], include_in_schema=False)
    return routes


def _sender(path: Path) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        data = path.read_bytes()
        headers = {"ETag": f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"', "Cache-Control": "no-cache"}
        if etag_matches(request.headers.get("if-none-match"), headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=PAGE_MEDIA_TYPES[path.suffix], headers=headers)

    return send
