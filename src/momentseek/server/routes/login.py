"""Routes to log in with a token, which gives the page a session cookie, and to log out."""

from __future__ import annotations

import time
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from momentseek.server.errors import BODY_ERRORS, ApiError, change_errors
from momentseek.server.schemas import StrictBody
from momentseek.server.security.sessions import COOKIE_SECONDS, client_of
from momentseek.server.service import ServiceParam

router = APIRouter(tags=["token"])


class TokenIn(StrictBody):
    """The token that the server printed."""

    token: Annotated[str, Field(max_length=500)]


class LoginOut(BaseModel):
    """Whether the server needs a token."""

    needed: bool


@router.post("/login", summary="Enter the token", responses=change_errors(401, 429))
async def login(request: Request, service: ServiceParam, given: TokenIn, response: Response) -> LoginOut:
    """Log in with the token; the session cookie lets the page use the API for a week.

    After too many wrong tokens a client must wait (429), even with the right one.
    """
    sessions = service.sessions
    if not await anyio.to_thread.run_sync(lambda: sessions.needed):
        return LoginOut(needed=False)
    if not sessions.try_token(given.token, client_of(request.scope), time.monotonic()):
        raise ApiError(401, "the token is wrong; use your own, or the one that the server printed when it started")
    response.set_cookie(
        sessions.name,
        await anyio.to_thread.run_sync(
            sessions.open, time.time(), given.token
        ),  # a shared session is written to a database
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return LoginOut(needed=True)


@router.post("/logout", summary="End the session", responses=BODY_ERRORS)
async def logout(request: Request, service: ServiceParam, response: Response) -> LoginOut:
    """End the session of the cookie, wherever the cookie was copied to, and delete the cookie."""
    await anyio.to_thread.run_sync(service.sessions.end, service.sessions.cookies(request.headers))
    response.delete_cookie(service.sessions.name, httponly=True, samesite="strict")
    return LoginOut(needed=service.sessions.needed)
