"""What decoding costs when videos are added, exactly and quickly, beside ffmpeg and PySceneDetect.

    python bench/decode.py [CLIP] [--sizes 360p,720p,1080p] [--rounds 3] [--folder DIR] [--ffmpeg PROGRAM]

CLIP (a real one; without it photographs under a moving camera) is scaled and encoded as H.264 in three ways: *film*,
x264's defaults (key frames up to 250 frames apart, B-frames that others refer to); *fast*, its preset veryfast;
*camera*, a key frame a second and no B-frames. For each: processor seconds for every picture and for quick sampling,
shots included; for ffmpeg decoding all pictures, and key frames alone; for PySceneDetect (adaptive), which decodes too;
and of a whole `add` with the offline encoder. ffmpeg is looked for in the PATH and in the package imageio-ffmpeg.
--folder keeps the encoded files for another run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from momentseek.library.store import LibraryStore
from momentseek.media.decode import SAMPLINGS, Sampling, frames
from momentseek.media.sandbox.calls import probe
from momentseek.media.sandbox.process import warm
from momentseek.media.shots import ShotDetector
from record import Record, family_time, rounds

SIZES = {"360p": (640, 360), "720p": (1280, 720), "1080p": (1920, 1080)}
KINDS: dict[str, dict[str, str]] = {
    "film": {},
    "fast": {"preset": "veryfast"},
    "camera": {"preset": "veryfast", "g": "25", "bf": "0", "sc_threshold": "0"},
}
MOVES = ("pan", "zoom", "shake", "thing")
MOST_FRAMES = 400
SHORT_SIDE = 260


def pictures(clip: Path | None) -> tuple[Fraction, Iterator[Any]]:
    """The first frames of a clip, and their rate."""
    import av

    if clip is None:
        import numpy as np

        from shots import Shot, photographs

        rng = np.random.default_rng(0)
        shots = [Shot(photo, rng, move) for photo, move in zip(photographs(), MOVES, strict=False)]
        drawn = (shots[i // 100].draw(i % 100 / 25) for i in range(MOST_FRAMES))
        return Fraction(25), (av.VideoFrame.from_ndarray(np.clip(p, 0, 255).astype(np.uint8), "rgb24") for p in drawn)
    container = av.open(str(clip))
    stream = container.streams.video[0]
    rate = Fraction(stream.average_rate or 25).limit_denominator(1001)
    return rate, islice(container.decode(stream), MOST_FRAMES)


def encode(clip: Path | None, path: Path, size: tuple[int, int], options: dict[str, str]) -> None:
    """Write a clip as H.264 of another size."""
    import av

    rate, shown = pictures(clip)
    part = path.with_suffix(".part.mp4")
    with av.open(str(part), "w") as container:
        stream = container.add_stream("libx264", rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for i, frame in enumerate(shown):
            scaled = frame.reformat(*size, format="yuv420p", interpolation="BICUBIC")
            scaled.pts, scaled.time_base, scaled.pict_type = i, 1 / rate, 0
            container.mux(stream.encode(scaled))
        container.mux(stream.encode(None))
    part.rename(path)


def decode(path: Path, sampling: Sampling) -> None:
    """Decode as `add` does, without a process of its own."""
    detector = ShotDetector()
    for _ in frames(path, 1 / 1.5, short_side=SHORT_SIDE, on_picture=detector.push, sampling=sampling):
        pass
    detector.boundaries()


def add(path: Path, folder: Path, sampling: Sampling) -> float:
    """Processor seconds of adding a video to a new library; loading an encoder and starting processes is not adding."""
    shutil.rmtree(folder, ignore_errors=True)
    with LibraryStore.open(folder, create=True) as library:
        library.options = replace(library.options, transcriber=None, sampling=sampling)
        _ = library.encoders.vision, library.encoders.speech
        warm()
        probe(path)
        begun = family_time()
        library.add(path)
        return family_time() - begun


def ffmpeg(program: str, path: Path, *before: str) -> None:
    """Let ffmpeg decode a file, and throw the pictures away."""
    command = [program, "-v", "error", "-threads", "1", *before, "-i", str(path), "-map", "0:v", "-f", "null", "-"]
    subprocess.run(command, check=True)


def find_ffmpeg(named: str | None) -> str | None:
    """The program ffmpeg; None if it is nowhere."""
    if named or shutil.which("ffmpeg"):
        return named or "ffmpeg"
    try:
        import imageio_ffmpeg  # type: ignore[import-not-found]
    except ImportError:
        return None
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def peers(record: Record, program: str | None) -> dict[str, Callable[[Path], object]]:
    """What others take for the same file."""
    found: dict[str, Callable[[Path], object]] = {}
    if program is None:
        record.skip("ffmpeg", "is not here")
    else:
        found["ffmpeg, all pictures"] = lambda path: ffmpeg(program, path)
        found["ffmpeg, key frames alone"] = lambda path: ffmpeg(program, path, "-skip_frame", "nokey")
    try:
        import scenedetect
    except ImportError:
        record.skip("PySceneDetect", "is not installed")
    else:
        found["PySceneDetect"] = lambda path: scenedetect.detect(str(path), scenedetect.AdaptiveDetector())
    return found


def measure(name: str, path: Path, count: int, others: dict[str, Callable[[Path], object]], record: Record) -> None:
    """Decode one file in turns with the others."""
    works: dict[str, Callable[[], object]] = {
        "exact": partial(decode, path, "exact"),
        "quick": partial(decode, path, "quick"),
    }
    works |= {peer: partial(work, path) for peer, work in others.items()}
    seconds = rounds(works, count, family_time)
    record.ratio(f"{name}, quick", seconds["quick"], "exact", seconds["exact"])
    for peer in others:
        for sampling in ("exact", "quick"):
            record.ratio(f"{name}, {sampling}", seconds[sampling], peer, seconds[peer])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--ffmpeg")
    parser.add_argument("--only", choices=["decode"], help="leave out whole adds")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    record = Record("decode")
    others = peers(record, find_ffmpeg(options.ffmpeg))
    with tempfile.TemporaryDirectory() as room:
        folder = options.folder or Path(room)
        folder.mkdir(parents=True, exist_ok=True)
        for size in options.sizes.split(","):
            for kind, settings in KINDS.items():
                path = folder / f"{kind}-{size}.mp4"
                if not path.is_file():
                    encode(options.clip, path, SIZES[size], settings)
                measure(f"{kind} {size}", path, options.rounds, others, record)
                if options.only is None:
                    each = [
                        [add(path, Path(room) / "library", sampling) for sampling in SAMPLINGS]
                        for _ in range(options.rounds)
                    ]
                    exact, quick = zip(*each, strict=True)
                    record.ratio(f"{kind} {size}, whole add, quick", quick, "exact", exact)
    record.save()


if __name__ == "__main__":
    main()
