"""ONNX Runtime, kept to itself.

Since 1.29 its official builds report sessions and model names to Microsoft, and keep a device id on disk, unless
``ORT_DISABLE_TELEMETRY`` is set before they load (onnxruntime's Privacy.md). What people search for in their own
videos is nobody's business, so every module of ours gets the runtime from here.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from momentseek.encoders.wheel import missing


def onnx_runtime(extra: str = "offline") -> Any:
    """The module ``onnxruntime``, with its telemetry off; it is imported here and nowhere else."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    runtime = optional_module("onnxruntime", extra)
    runtime.disable_telemetry_events()  # for a runtime that somebody else has loaded before
    return runtime


def optional_module(name: str, extra: str = "offline") -> Any:
    """A module of an optional dependency, or one sentence on how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise missing(name, extra) from None
