"""The page's way in: the token in a body, a cookie in return."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from momentseek.server.answers import Body
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.security.tokens import COOKIE_SECONDS
from momentseek.server.service import Serving

router = APIRouter(tags=["token"])


class TokenIn(Body):
    """The token that the server printed."""

    token: Annotated[str, Field(max_length=500)]


class LoginOut(BaseModel):
    """Whether a token is needed at all."""

    needed: bool


@router.post("/login", summary="Enter the token", responses={**documented(401, 429), **CHANGING})
async def login(request: Request, service: Serving, given: TokenIn, response: Response) -> LoginOut:
    """Give the token once; the cookie that comes back lets the page use the API for a week.

    Who is wrong too often must wait (429), also with the right token.
    """
    keys = service.keys
    if keys.token is None:
        return LoginOut(needed=False)
    now, client = time.monotonic(), request.client.host if request.client else ""
    if seconds := keys.tries.wait(client, now):
        raise ApiError(429, f"too many wrong tokens; try again in {seconds} s", headers={"Retry-After": str(seconds)})
    if not keys.right(given.token):
        keys.tries.wrong(client, now)
        raise ApiError(401, "the token is wrong; use the one that the server printed when it started")
    response.set_cookie(
        keys.name,
        keys.open(time.time()),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return LoginOut(needed=True)


@router.post("/logout", summary="End the session", responses=CHANGING)
async def logout(request: Request, service: Serving, response: Response) -> LoginOut:
    """End the session of the cookie, wherever the cookie was copied to, and take the cookie back."""
    service.keys.end(service.keys.shown(request.headers))
    response.delete_cookie(service.keys.name, httponly=True, samesite="strict")
    return LoginOut(needed=service.keys.token is not None)
