"""ONNX Runtime without telemetry.

Since 1.29 its official builds report sessions and model names to Microsoft, and keep a device id on disk, unless
``ORT_DISABLE_TELEMETRY`` is set before they load (onnxruntime's Privacy.md). What people search for in their own
videos is private, so all our modules get the runtime from here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from momentseek.core.errors import MomentseekError, optional_module

THREADS_VARIABLE = "MOMENTSEEK_THREADS"
"""Environment variable for the number of threads of an encoder."""


def onnx_runtime(extra: str = "search") -> Any:
    """Import ``onnxruntime`` with telemetry off; it is imported nowhere else."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    runtime = optional_module("onnxruntime", extra)
    runtime.disable_telemetry_events()  # in case other code has loaded the runtime before
    return runtime


def session(model: Path | bytes, threads: int | None = None, extra: str = "search") -> Any:
    """Open a CPU inference session for a file (whose weights may be in files next to it) or its bytes."""
    onnxruntime = onnx_runtime(extra)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count(threads)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads would occupy shared cores
    options.log_severity_level = 3
    where = str(model) if isinstance(model, Path) else model
    try:
        return onnxruntime.InferenceSession(where, options, providers=["CPUExecutionProvider"])
    except Exception as e:  # the runtime has many error classes, none of them public
        name = model if isinstance(model, Path) else "a network"
        reason = str(e).splitlines()[0].removeprefix("[ONNXRuntimeError] : ")
        raise MomentseekError(f"{name}: ONNX Runtime cannot load it ({reason}); get the file again") from None


def run_graph(session: Any, outputs: list[str], given: dict[str, Any], where: Path) -> list[Any]:
    """Run a graph and return its outputs; errors name ``where`` the graph comes from."""
    try:
        found: list[Any] = session.run(outputs, given)
    except Exception as e:  # as in session()
        raise MomentseekError(f"{where}: ONNX Runtime stopped ({str(e).splitlines()[0]})") from None
    return found


def thread_count(asked: int | None = None) -> int:
    """Return ``asked``, else the value of ``MOMENTSEEK_THREADS``, else the number of available cores.

    >>> thread_count(3)
    3
    """
    if asked is not None:
        return asked
    said = os.environ.get(THREADS_VARIABLE, "")
    if not said:
        return available_cores()
    if not said.isascii() or not said.isdigit() or not 0 < int(said) < 1000:
        raise MomentseekError(f"{THREADS_VARIABLE} is {said!r}; give a number of threads, such as 2")
    return int(said)


def available_cores() -> int:
    """Return the number of cores this process may use, which in a container may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
