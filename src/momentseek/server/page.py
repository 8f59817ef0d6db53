"""Serves the web page (the files in ``static/``) and the API's manual, made from the OpenAPI document."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

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
"""Suffix → media type of the files that are served."""
manual_router = APIRouter(include_in_schema=False)
CODE = re.compile(r"`([^`]+)`")


def page_files(folder: Path = STATIC_FOLDER) -> dict[str, Path]:
    """Address → file of the page. Only the listed files have addresses, so no address leads anywhere else."""
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


@manual_router.get("/docs")
def docs(request: Request) -> Response:
    """The HTTP API's manual as a web page."""
    return Response(reference_page(request.app.openapi()), media_type="text/html; charset=utf-8")


def reference_page(document: Mapping[str, Any]) -> str:
    """All operations of an OpenAPI document as HTML, by subject, then the shapes they use."""
    info = document["info"]
    subjects: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            subjects.setdefault(operation.get("tags", ["other"])[0], []).append(_operation(path, method, operation))
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(info['title'])} API</title>",
        '<link rel="stylesheet" href="/docs.css"></head><body><main>',
        f"<h1>{escape(info['title'])} API {escape(info['version'])}</h1>",
        f"<p>{_prose(info.get('summary', ''))} For programs: <a href='/api/v1/openapi.json'>openapi.json</a>. ",
        'Every error has the shape <a href="#ErrorBody">ErrorBody</a>. If a token is needed, send it as ',
        "<code>Authorization: Bearer TOKEN</code>.</p>",
        "<nav><ul>",
        *(f'<li><a href="#{escape(name)}">{escape(name)}</a></li>' for name in (*subjects, "shapes")),
        "</ul></nav>",
    ]
    for name, operations in subjects.items():
        parts += [f'<section id="{escape(name)}"><h2>{escape(name)}</h2>', *operations, "</section>"]
    parts += ['<section id="shapes"><h2>shapes</h2>', *_shapes(document), "</section></main></body></html>"]
    return "".join(parts)


def _prose(text: str) -> str:
    """A description as HTML; text in backticks becomes code.

    >>> _prose("give `a<b`, or `")
    'give <code>a&lt;b</code>, or `'
    """
    return CODE.sub(r"<code>\1</code>", escape(text))


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    parts = [
        f"<article><h3><code>{method.upper()} {escape(path)}</code> {escape(operation.get('summary', ''))}</h3>",
        f"<p>{_prose(operation.get('description', ''))}</p>",
    ]
    rows = [_parameter(one) for one in operation.get("parameters", ())]
    if rows:
        parts.append(_table(("parameter", "type", "default", ""), rows))
    body = operation.get("requestBody", {}).get("content", {})
    for kind, content in body.items():
        parts.append(f"<p>Body: <code>{escape(kind)}</code> {_type(content.get('schema', {}))}</p>")
    rows = [
        (escape(status), _contents(answer.get("content", {})), _prose(answer.get("description", "")))
        for status, answer in operation.get("responses", {}).items()
    ]
    return "".join([*parts, _table(("answer", "type", ""), rows), "</article>"])


def _parameter(one: Mapping[str, Any]) -> tuple[str, ...]:
    schema = one.get("schema", {})
    default = "required" if one.get("required") else escape(json.dumps(schema.get("default")))
    about = one.get("description") or schema.get("description", "")
    return f"<code>{escape(one['name'])}</code> ({escape(one['in'])})", _type(schema), default, _prose(about)


def _contents(content: Mapping[str, Any]) -> str:
    return ", ".join(f"<code>{escape(kind)}</code> {_type(value.get('schema', {}))}" for kind, value in content.items())


def _shapes(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        yield f'<article id="{escape(name)}"><h3>{escape(name)}</h3><p>{_prose(schema.get("description", ""))}</p>'
        needed = schema.get("required", ())
        rows = [
            (f"<code>{escape(key)}</code>", _type(one), "" if key in needed else "optional", _prose(_about(one)))
            for key, one in schema.get("properties", {}).items()
        ]
        yield _table(("name", "type", "", ""), rows)
        if "example" in schema:
            yield f"<pre>{escape(json.dumps(schema['example'], indent=1, ensure_ascii=False))}</pre>"
        yield "</article>"


def _about(schema: Mapping[str, Any]) -> str:
    bounds = [
        f"{word} {schema[key]}"
        for key, word in (("minimum", "from"), ("maximum", "to"), ("maxLength", "up to"), ("maxItems", "up to"))
        if key in schema
    ]
    return " ".join(filter(None, (schema.get("description", ""), f"({', '.join(bounds)})" if bounds else "")))


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a word or two, with links to the shapes."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return f'<a href="#{escape(name)}">{escape(name)}</a>'
    for key in ("anyOf", "allOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(one) for one in schema[key])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(one))}</code>" for one in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    kind = escape(str(schema.get("type", "any")))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"map to {_type(schema['additionalProperties'])}"
    return kind


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    top = "".join(f"<th scope='col'>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
