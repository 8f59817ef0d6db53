"""Media opened and decoded in a process of their own, so that a codec's crash, hang or hunger costs one file.

These functions do what their namesakes in `momentseek.media` do and raise what those raise; besides, `MediaError` says
that the process crashed, stopped making progress, or needed more memory than it may have.
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.media.sandbox.calls import (
        SandboxFrames,
        cues_of,
        cut,
        frames,
        glimpses,
        preview,
        probe,
        sound,
        thumbnail,
    )
    from momentseek.media.sandbox.limits import SandboxLimits
    from momentseek.media.sandbox.pool import close_idle, warm

__all__ = [
    "SandboxFrames",
    "SandboxLimits",
    "close_idle",
    "cues_of",
    "cut",
    "frames",
    "glimpses",
    "preview",
    "probe",
    "sound",
    "thumbnail",
    "warm",
]

__getattr__ = late_names(
    __name__,
    {
        "SandboxFrames": "calls",
        "SandboxLimits": "limits",
        "close_idle": "pool",
        "cues_of": "calls",
        "cut": "calls",
        "frames": "calls",
        "glimpses": "calls",
        "preview": "calls",
        "probe": "calls",
        "sound": "calls",
        "thumbnail": "calls",
        "warm": "pool",
    },
)
