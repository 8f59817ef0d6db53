"""What the process that decodes media may use."""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from momentseek.errors import MomentseekError
from momentseek.media.container import MEMORY_VARIABLE

SECONDS_VARIABLE = "MOMENTSEEK_DECODE_SECONDS"


@dataclass(frozen=True)
class SandboxLimits:
    """Limits on the process that decodes.

    ``gigabytes`` (2^30 bytes) of memory are enough for 8K video with 16 reference pictures. ``seconds`` may pass
    without a packet being read, which a sleeping drive may take and nothing else does. A ``device``'s driver reserves
    far more addresses than it takes memory, so these are not bounded with one.
    """

    gigabytes: float = 4.0
    seconds: float = 60.0
    device: bool = False

    @classmethod
    def from_environment(cls, *, device: bool = False) -> SandboxLimits:
        """The limits that the environment asks for, else the usual ones."""
        return cls(_positive(MEMORY_VARIABLE, cls.gigabytes), _positive(SECONDS_VARIABLE, cls.seconds), device)

    def enforce(self) -> None:
        """Bind this process to its limit of memory, and let a crash leave no core file; where the system can."""
        if sys.platform == "win32":
            return
        import resource

        most = int(self.gigabytes * 2**30)
        limits = {resource.RLIMIT_DATA: most, resource.RLIMIT_CORE: 0}
        if not self.device:
            limits[resource.RLIMIT_AS] = 2 * most
        for kind, limit in limits.items():
            with suppress(OSError, ValueError):
                _, hard = resource.getrlimit(kind)
                allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (allowed, hard))


def _positive(variable: str, usual: float) -> float:
    text = os.environ.get(variable, "")
    if not text:
        return usual
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise MomentseekError(f"{variable} is {text!r}; set it to a number above 0, or unset it")
    return value
