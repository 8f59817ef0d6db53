"""How the API reports errors: one shape for all of them, and never a traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from momentseek.core.errors import LibraryBusyError, LibraryError, MediaError, MomentseekError

ERRORS = {
    400: ("bad_request", "The query cannot be parsed, or the address contains a secret."),
    401: ("token_needed", "The token is missing or wrong."),
    403: ("forbidden", "The request comes from another site, or uses a name for the server that is not allowed."),
    404: ("not_found", "There is no such video, moment, folder, job or query."),
    405: ("method_not_allowed", "The method is not allowed here."),
    408: ("too_slow", "The body took too long to arrive."),
    409: ("conflict", "The state of the library or of the file does not allow it now."),
    413: ("too_large", "The body is too large."),
    415: ("unsupported_type", "The body must be application/json."),
    416: ("range_not_satisfiable", "The range lies outside the file."),
    422: ("invalid", "A parameter is missing, unknown or out of range."),
    429: ("too_many_tries", "Too many wrong tokens; `Retry-After` says when to try again."),
    500: ("fault", "An error in the server."),
    503: ("busy", "The server is busy, and `Retry-After` says when to try again; or the library cannot be used."),
}
"""Status → a fixed code for programs, and what it means."""
_FOLDERS = re.compile(r"""(?<![^\s('"])(?:/(?!api/v1)(?=\S)(?:[^/:;\n]+/)*|[A-Za-z]:\\(?:[^\\:;\n]+\\)*)""")


class Problem(BaseModel):
    """What is wrong with a request, for programs and for people."""

    code: str = Field(description="A fixed code for programs.")
    message: str = Field(description="A sentence for people: what is wrong, where, and what to do.")


class ErrorBody(BaseModel):
    """The body of every error."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"error": {"code": "not_found", "message": "there is no video 7"}}}
    )
    error: Problem


class UnknownIdError(MomentseekError):
    """There is no query, candidate or judgement with the id that a client gave."""


class ConflictError(MomentseekError):
    """The stored data do not allow what a client asks for; ``code`` tells programs why."""

    def __init__(self, message: str, code: str = "conflict") -> None:
        super().__init__(message)
        self.code = code


class ApiError(Exception):
    """An error with its HTTP status, raised by the server's own code."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code or ERRORS[status][0]
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        """The JSON response that clients get."""
        content = {"error": {"code": self.code, "message": self.message}}
        return JSONResponse(content, self.status, headers=self.headers)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The possible errors of a route, as the OpenAPI document lists them."""
    return {status: {"model": ErrorBody, "description": ERRORS[status][1]} for status in statuses}


COMMON_ERRORS = error_responses(400, 401, 403, 422, 429, 503)
"""Errors that any route of the API may answer with."""
BODY_ERRORS = error_responses(408, 413, 415)
"""Further errors of routes that change something or take a body."""


def change_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The possible errors of a route that changes something."""
    return {**error_responses(*statuses), **BODY_ERRORS}


def install_handlers(app: FastAPI) -> None:
    """Install the handlers that give every exception its status and the common shape."""
    for kind in (ApiError, MomentseekError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)


def _answer(request: Request, e: Exception) -> Response:
    return api_error(e, request.method).response()


def api_error(e: Exception, method: str = "GET") -> ApiError:
    """The error that clients get for an exception."""
    match e:
        case ApiError():
            return e
        case UnknownIdError():
            return ApiError(404, str(e))
        case ConflictError():
            return ApiError(409, str(e), code=e.code)
        case LibraryBusyError():
            return ApiError(503, hide_paths(str(e)), headers={"Retry-After": "2"})
        case LibraryError():
            return ApiError(503, hide_paths(str(e)), code="library_unusable")
        case MediaError():
            return ApiError(409, hide_paths(str(e)), code="unusable_file")
        case RequestValidationError():
            return ApiError(422, validation_sentence(e.errors()))
        case HTTPException():
            status = e.status_code if e.status_code in ERRORS else 400
            messages = {
                404: "there is nothing at this address; /api/v1/docs lists the routes",
                405: f"{method} is not allowed here; /api/v1/docs lists the routes",
                400: "the body is not valid JSON; see /api/v1/docs",
            }
            return ApiError(status, messages.get(status, str(e.detail)), headers=e.headers)
    return ApiError(400, hide_paths(str(e)), code="refused")


def hide_paths(message: str) -> str:
    r"""The message with file names instead of paths, because clients must not see folders of this machine.

    >>> hide_paths("/home/ann/My Films/a.mp4: cannot be read, and/or is damaged; see /api/v1/docs")
    'a.mp4: cannot be read, and/or is damaged; see /api/v1/docs'
    >>> hide_paths(r"C:\Films\a.mp4: cannot be read (see '/tmp/x/log')")
    "a.mp4: cannot be read (see 'log')"
    """
    return _FOLDERS.sub("", message)


def validation_sentence(errors: Sequence[Any]) -> str:
    """The problems that pydantic found, as one sentence.

    >>> validation_sentence([{"loc": ("query", "k"), "msg": "Input should be less than or equal to 500"}])
    'k: input should be less than or equal to 500; see /api/v1/docs'
    """
    parts = []
    for error in errors[:3]:
        where = ".".join(str(part) for part in error["loc"][1:]) or "the body"
        if error.get("type") == "string_too_long":
            name = "the query" if where == "q" else where[:60]
            parts.append(f"{name} is longer than {error['ctx']['max_length']:,} characters; shorten it")
            continue
        message = str(error["msg"])
        parts.append(f"{where[:60]}: {message[:1].lower()}{message[1:200]}")
    return f"{', and '.join(parts)}; see /api/v1/docs"
