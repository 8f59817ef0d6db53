"""Videos in which every frame shows its own number."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

STRIPES = 10


def counted(seconds: float) -> Any:
    """Draw the frame's number, at 25 frames per second, as ten binary stripes: white for 1, black for 0."""
    k = round(seconds * 25)
    bits = [(k >> j) & 1 for j in range(STRIPES)]
    return np.repeat(np.array(bits, np.uint8) * 255, 16)[None, :, None].repeat(120, 0).repeat(3, 2)


@pytest.fixture
def counting(make_video: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """A video of 4 seconds at 25 frames per second in which every frame shows its number; ``number`` reads it back."""

    def make(name: str = "counting.mp4", seconds: float = 4.0, **settings: Any) -> Path:
        options = {"crf": "15"} if settings.get("codec", "libx264") == "libx264" else {}
        settings["options"] = options | settings.get("options", {})
        return make_video(tmp_path / name, [(seconds, counted)], **settings)

    return make


@pytest.fixture
def number() -> Callable[[Any], int]:
    """Return the number of the ``counting`` frame that the pixels show."""

    def read(pixels: Any) -> int:
        stripes = np.array_split(pixels, STRIPES, axis=1)
        return sum(int(np.median(stripe) > 127) << j for j, stripe in enumerate(stripes))

    return read


@pytest.fixture
def packed_avi(counting: Callable[..., Path], tmp_path: Path) -> Path:
    """``counting`` as DivX and XviD wrote AVI: each P-frame in one packet with the B-frame after it.

    An empty frame follows the B-frames to make up the number, so every packet still counts as a frame.
    """
    options = {"bf": "2", "g": "12", "b": "4000000", "sc_threshold": "1000000000"}
    with av.open(str(counting("plain.avi", codec="mpeg4", options=options))) as container:
        coded = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    mark = b"\0\0\1\xb6"
    bidirectional = [part[part.index(mark) + 4] >> 6 == 2 for part in coded]
    packed: list[bytes] = []
    at = 0
    while at < len(coded):
        end = next((i for i in range(at + 1, len(coded)) if not bidirectional[i]), len(coded))
        said = coded[at].replace(mark, b"\0\0\1\xb2DivX503b1393p" + mark, 1)  # by which decoders know such files
        packed += [said] if end - at == 1 else [said + coded[at + 1], *coded[at + 2 : end], mark + b"\x40\x7f"]
        at = end
    with av.open(str(tmp_path / "packed.avi"), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for place, data in enumerate(packed):
            packet = av.Packet(data)
            packet.stream, packet.time_base = stream, Fraction(1, 25)
            packet.pts = packet.dts = place
            packet.is_keyframe = data[data.index(mark) + 4] >> 6 == 0
            container.mux(packet)
    return tmp_path / "packed.avi"
