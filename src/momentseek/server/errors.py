"""How the API says no: one shape for every error, and never a traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from momentseek.errors import LibraryBusyError, LibraryError, MediaError, MomentseekError
from momentseek.server.judging.errors import RefusedError, UnknownError

CODES = {
    400: "bad_request",
    401: "token_needed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported_type",
    416: "range_not_satisfiable",
    422: "invalid",
    429: "too_many_tries",
    500: "fault",
    503: "busy",
}
MEANINGS = {
    400: "The query cannot be read, or a secret stands in the address.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site, or calls the server by a name that is not its own.",
    404: "There is no such thing in the library.",
    408: "The body took too long to arrive.",
    409: "The state of the library or of the file does not allow it now.",
    413: "The body is too large.",
    415: "The body must be application/json.",
    416: "The range lies outside the file.",
    422: "A parameter is missing, unknown or out of its bounds.",
    429: "Too many wrong tokens; `Retry-After` says when to try again.",
    503: "The server is busy, and `Retry-After` says when to come back; or the library cannot be used.",
}

_FOLDERS = re.compile(r"""(?<![^\s('"])(?:/(?!api/v1)(?=\S)(?:[^/:;\n]+/)*|[A-Za-z]:\\(?:[^\\:;\n]+\\)*)""")


class Problem(BaseModel):
    """What is wrong."""

    code: str = Field(description="For programs.")
    message: str = Field(description="For people: what, where, and what to do.")


class ErrorBody(BaseModel):
    """The body of every error."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"error": {"code": "not_found", "message": "there is no video 7"}}}
    )
    error: Problem


class ApiError(Exception):
    """A refusal with its status."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code or CODES[status]
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        """As it is sent."""
        content = {"error": {"code": self.code, "message": self.message}}
        return JSONResponse(content, self.status, headers=self.headers)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for the OpenAPI document."""
    return {status: {"model": ErrorBody, "description": MEANINGS[status]} for status in statuses}


EVERYWHERE = documented(400, 401, 403, 422, 503)
"""What any route of the API may answer."""
CHANGING = documented(408, 413, 415)
"""And any that changes something or takes a body."""


def install(app: FastAPI) -> None:
    """Give every exception that reaches the application its status and shape."""
    app.add_exception_handler(ApiError, _api)
    app.add_exception_handler(MomentseekError, _refused)
    app.add_exception_handler(MediaError, _media)
    app.add_exception_handler(LibraryError, _unusable)
    app.add_exception_handler(LibraryBusyError, _busy)
    app.add_exception_handler(UnknownError, _unknown)
    app.add_exception_handler(RefusedError, _not_now)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def _api(_: Request, e: Exception) -> Response:
    assert isinstance(e, ApiError)
    return e.response()


def _refused(_: Request, e: Exception) -> Response:
    return ApiError(400, nameless(str(e)), code="refused").response()


def _media(_: Request, e: Exception) -> Response:
    return ApiError(409, nameless(str(e)), code="unusable_file").response()


def _unusable(_: Request, e: Exception) -> Response:
    return ApiError(503, nameless(str(e)), code="library_unusable").response()


def _busy(_: Request, e: Exception) -> Response:
    return ApiError(503, nameless(str(e)), headers={"Retry-After": "2"}).response()


def _unknown(_: Request, e: Exception) -> Response:
    return ApiError(404, str(e)).response()


def _not_now(_: Request, e: Exception) -> Response:
    assert isinstance(e, RefusedError)
    return ApiError(409, str(e), code=e.code).response()


def _invalid(_: Request, e: Exception) -> Response:
    assert isinstance(e, RequestValidationError)
    return ApiError(422, sentence(e.errors())).response()


def nameless(message: str) -> str:
    r"""A sentence for clients, who need not know where on this machine a file lies: its name instead of its path.

    >>> nameless("/home/ann/My Films/a.mp4: cannot be read, and/or is damaged; see /api/v1/docs")
    'a.mp4: cannot be read, and/or is damaged; see /api/v1/docs'
    >>> nameless(r"C:\Films\a.mp4: cannot be read (see '/tmp/x/log')")
    "a.mp4: cannot be read (see 'log')"
    """
    return _FOLDERS.sub("", message)


def sentence(errors: Sequence[Any]) -> str:
    """What a validator found, as one sentence.

    >>> sentence([{"loc": ("query", "k"), "msg": "Input should be less than or equal to 500"}])
    'k: input should be less than or equal to 500; see /api/v1/docs'
    """
    parts = []
    for error in errors[:3]:
        where = ".".join(str(part) for part in error["loc"][1:]) or "the body"
        message = str(error["msg"])
        parts.append(f"{where[:60]}: {message[:1].lower()}{message[1:200]}")
    return f"{', and '.join(parts)}; see /api/v1/docs"


def _http(request: Request, e: Exception) -> Response:
    assert isinstance(e, HTTPException)
    messages = {
        404: "there is nothing at this address; /api/v1/docs lists what there is",
        405: f"{request.method} is not possible here; /api/v1/docs lists what is",
        400: "the body is no JSON; see /api/v1/docs",
    }
    status = e.status_code if e.status_code in CODES else 400
    message = messages.get(status, str(e.detail))
    return ApiError(status, message, headers=e.headers).response()
