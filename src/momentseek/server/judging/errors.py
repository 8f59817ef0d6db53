"""What judging refuses, and why; the server's edge gives each its status."""

from __future__ import annotations

from momentseek.errors import MomentseekError


class UnknownError(MomentseekError):
    """There is no such query, moment or judgement."""


class RefusedError(MomentseekError):
    """What was said and asked so far does not allow it now; ``code`` tells programs why."""

    def __init__(self, message: str, code: str = "conflict") -> None:
        super().__init__(message)
        self.code = code
