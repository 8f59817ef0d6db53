"""Seeking in a video of more than a gigabyte.

The file costs a few megabytes: its frames lie far apart, and between them are holes. A browser cannot tell that from
large frames, for to reach a frame it must ask for the bytes at its place.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FRAMES, RATE, APART = 300, 20, 3_600_000

BITS = 12
"""A frame shows its number in two rows of six blocks, the highest bit first; white is one."""
WIDTH, HEIGHT = 192, 96
PARENTS = (b"moov", b"trak", b"mdia", b"minf", b"stbl")
READ_NUMBER = """() => {
    const video = document.querySelector(".player video");
    const canvas = document.createElement("canvas");
    canvas.width = 6;
    canvas.height = 2;
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    let number = 0;
    for (let i = 0; i < 12; i++) {
        const [x, y] = [i % 6, Math.floor(i / 6)];
        pen.drawImage(video, 32 * x + 8, 48 * y + 8, 16, 32, x, y, 1, 1);
        number = 2 * number + (pen.getImageData(x, y, 1, 1).data[0] > 127 ? 1 : 0);
    }
    return number;
}"""
"""Reads the number in the page."""


def counted(process: int, file: str, name: str) -> int:
    """A figure that Linux keeps of a process."""
    lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's figures of processes")
def test_seeking_in_a_gigabyte_shows_the_right_frame_and_reads_little(
    light_serving: Callable[..., Any], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    film = write_large(tmp_path / "large.mp4", FRAMES, RATE, APART)
    assert film.stat().st_size > 2**30
    server = light_serving(film, tmp_path / "library")
    id = server.ids["large.mp4"]
    page = open_page(server.address, reduced_motion="reduce")
    page.wait_for_selector("#q")
    memory, read = counted(server.process, "status", "VmHWM"), counted(server.process, "io", "rchar")

    first = 2 * FRAMES // 3 / RATE
    page.evaluate("(hash) => { location.hash = hash; }", f"v={id}&t={first},{first + 3}")
    position = page.get_by_role("slider", name="Position")
    for time in (first, 14.85, 1.05, 14.75, 7.5, 14.95):
        if time != first:
            page.evaluate("(hash) => { location.hash = hash; }", f"v={id}&t={time},{min(time + 3, FRAMES / RATE)}")
        page.wait_for_function(
            """(time) => {
                const video = document.querySelector(".player video");
                return video.readyState >= 2 && !video.seeking && Math.abs(video.currentTime - time) < 0.1;
            }""",
            arg=time,
        )
        page.wait_for_function(f"() => Math.abs(window.frameShown - {time}) < 1e-3")
        assert page.evaluate(READ_NUMBER) == round(time * RATE)
        assert float(position.get_attribute("aria-valuenow")) == pytest.approx(time, abs=1 / RATE)

    assert counted(server.process, "io", "rchar") - read < film.stat().st_size / 4
    assert counted(server.process, "status", "VmHWM") - memory < 100 * 1024  # kilobytes


def write_large(path: Path, frames: int, rate: int, apart: int) -> Path:
    """A film of so many frames (fewer than 2¹²), each ``apart`` bytes after the one before."""
    whole, samples = _encoded(frames, rate)
    kind, index = (_box(whole, name) for name in (b"ftyp", b"moov"))
    begin = len(kind) + len(_spread(index, [0] * frames)) + 16
    places = [begin + i * apart for i in range(frames)]
    size = begin + frames * apart
    with path.open("wb") as file:
        file.write(kind + _spread(index, places))
        file.write(struct.pack(">I4sQ", 1, b"mdat", size - begin + 16))
        for place, sample in zip(places, samples, strict=True):
            file.seek(place)
            file.write(sample)
        os.truncate(file.fileno(), size)
    return path


def _encoded(frames: int, rate: int) -> tuple[bytes, list[bytes]]:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", "mp4") as container:
        stream: Any = container.add_stream("libx264", rate=rate, options={"preset": "ultrafast", "g": "1", "qp": "30"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, rate)
        for number in range(frames):
            bits = np.array([number >> bit & 1 for bit in reversed(range(BITS))]).reshape(2, 6)
            grey = np.kron(bits * 200 + 28, np.ones((HEIGHT // 2, WIDTH // 6))).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(np.repeat(grey[..., None], 3, axis=2), "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer) as container:
        samples = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    return buffer.getvalue(), samples


def _boxes(data: bytes) -> list[tuple[bytes, bytes]]:
    """Name and content of the boxes in some bytes."""
    found, at = [], 0
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        found.append((name, data[at + 8 : at + size]))
        at += size
    return found


def _box(data: bytes, name: bytes) -> bytes:
    return next(_packed(one, content) for one, content in _boxes(data) if one == name)


def _packed(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def _spread(box: bytes, places: list[int]) -> bytes:
    """The index with every sample in a chunk of its own, at the given place."""
    name, content = _boxes(box)[0]
    if name in PARENTS:
        content = b"".join(_spread(_packed(*one), places) for one in _boxes(content))
    elif name == b"stsc":
        content = struct.pack(">5I", 0, 1, 1, 1, 1)
    elif name in (b"stco", b"co64"):
        name, content = b"co64", struct.pack(f">2I{len(places)}Q", 0, len(places), *places)
    return _packed(name, content)
