"""Decoding by a device, such as a graphics card, where PyAV offers one and the machine has it."""

from __future__ import annotations

from typing import Any

from momentseek.errors import MomentseekError
from momentseek.media.container import libav

_CODEC = "h264"  # what decodes this decodes whatever else it can


def device_kinds() -> list[str]:
    """The kinds of devices with which this build of PyAV can decode, as ``cuda``; that says nothing of the machine."""
    codec = libav().Codec(_CODEC, "r")
    return [config.device_type.name for config in codec.hardware_configs if config.is_supported]


def find_device() -> str:
    """The kind of device that decodes on this machine; an error if there is none."""
    kinds = device_kinds()
    for kind in kinds:
        if _answers(kind):
            return kind
    offered = f"this build of PyAV can use {' or '.join(kinds)}" if kinds else "this build of PyAV can use none"
    raise MomentseekError(f"--hardware: no device that decodes videos answers here ({offered}); leave it out")


def acceleration(kind: str) -> Any:
    """What `av.open` must be told to decode by a device; what that cannot decode, the processor does."""
    from av.codec.hwaccel import HWAccel

    return HWAccel(kind, allow_software_fallback=True)


def _answers(kind: str) -> bool:
    av = libav()
    try:
        acceleration(kind).create(av.Codec(_CODEC, "r"))
    except (av.FFmpegError, NotImplementedError):
        return False
    return True
