"""The API's manual: one plain page made from the OpenAPI document, with nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from momentseek.server.reference.page import page

router = APIRouter(include_in_schema=False)
STYLE = Path(__file__).parent / "style.css"


@router.get("/docs")
def docs(request: Request) -> Response:
    """The HTTP API's manual as a web page."""
    return Response(page(request.app.openapi()), media_type="text/html; charset=utf-8")


@router.get("/docs.css")
def style() -> Response:
    """The style sheet of the manual."""
    return Response(STYLE.read_bytes(), media_type="text/css; charset=utf-8")
