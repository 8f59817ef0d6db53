"""Hardware decoding: used if a device is present; otherwise an error, or the CPU decodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.pinned_file import PinnedFile
from momentseek.media import container as hardware
from momentseek.media.sandbox import calls as sandbox

Video = Callable[..., Path]


def test_without_a_device_the_error_lists_supported_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_answers", lambda kind: False)
    kinds = " or ".join(hardware.device_kinds()) or "none"
    with pytest.raises(MomentseekError, match=rf"no device .* answers here \(this build of PyAV can use {kinds}\)"):
        hardware.find_device()


def test_uses_the_first_working_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "device_kinds", lambda: ["cuda", "vaapi", "qsv"])
    monkeypatch.setattr(hardware, "_answers", lambda kind: kind != "cuda")
    assert hardware.find_device() == "vaapi"


@pytest.mark.parametrize("kind", ["cuda", "drm"])
def test_falls_back_to_the_cpu(kind: str, counting: Video) -> None:
    if kind in hardware.device_kinds() and hardware._answers(kind):
        pytest.skip("the device is there, and its pixels may differ in the last bit")
    path = counting("a.mp4", seconds=1.0)
    state = path.stat()
    for file in (path, PinnedFile(path, state.st_size, state.st_mtime_ns)):
        with_device = list(sandbox.frames(file, 4.0, hardware=kind))
        plain = list(sandbox.frames(file, 4.0))
        assert [frame.time for frame in with_device] == [frame.time for frame in plain]
        assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(with_device, plain, strict=True))
