"""The page's way in: the token in a body, a cookie in return."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from momentseek.server.answers import Body
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.security.tokens import COOKIE_SECONDS, Keys
from momentseek.server.service import Serving

router = APIRouter(tags=["token"])


class TokenIn(Body):
    """The token that the server printed."""

    token: Annotated[str, Field(max_length=500)]


class LoginOut(BaseModel):
    """Whether a token is needed at all."""

    needed: bool


@router.post("/login", summary="Enter the token", responses={**documented(401), **CHANGING})
async def login(request: Request, service: Serving, given: TokenIn, response: Response) -> LoginOut:
    """Give the token once; the cookie that comes back lets the page use the API for a week."""
    keys = Keys(service.settings)
    if keys.token is None:
        return LoginOut(needed=False)
    if not keys.right(given.token):
        raise ApiError(401, "the token is wrong; use the one that the server printed when it started")
    response.set_cookie(
        keys.name,
        keys.cookie(time.time()),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return LoginOut(needed=True)


@router.post("/logout", summary="Forget the cookie", responses=CHANGING)
async def logout(service: Serving, response: Response) -> LoginOut:
    """Take the cookie back."""
    keys = Keys(service.settings)
    response.delete_cookie(keys.name, httponly=True, samesite="strict")
    return LoginOut(needed=keys.token is not None)
