"""What decoding costs when videos are added, exactly and quickly, beside ffmpeg and PySceneDetect.

    python bench/decode.py [CLIP] [--kinds film,fast,camera] [--sizes 360p,720p,1080p] [--rounds 3] [--folder DIR]

CLIP (a real one; without it photographs under a moving camera) is scaled and encoded in some ways (``KINDS``). H.264:
*film*, x264's defaults (key frames up to 250 frames apart, B-frames that others refer to); *fast*, its preset veryfast;
*camera*, a key frame a second and no B-frames; *long*, one key frame at the beginning. *hevc* and *hevc-camera*,
*vp9* and *av1* (with ``--kinds``) are other codecs. For each: processor seconds for every picture and for quick
sampling, shots included; for decoding every frame by one thread and doing nothing with it; for ffmpeg decoding all
pictures, and key frames alone; for PySceneDetect (adaptive), which decodes too; and of a whole `add` with the cheap
encoder. ffmpeg is looked for in the PATH and in the package imageio-ffmpeg.
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
VP9 = {"deadline": "realtime", "cpu-used": "5", "b": "3M", "g": "250", "row-mt": "1", "lag-in-frames": "16"}
KINDS: dict[str, tuple[str, str, dict[str, str]]] = {
    "film": ("libx264", ".mp4", {}),
    "fast": ("libx264", ".mp4", {"preset": "veryfast"}),
    "camera": ("libx264", ".mp4", {"preset": "veryfast", "g": "25", "bf": "0", "sc_threshold": "0"}),
    "long": ("libx264", ".mp4", {"preset": "veryfast", "g": "100000", "sc_threshold": "0"}),
    "hevc": ("libx265", ".mp4", {"preset": "fast", "x265-params": "log-level=none"}),
    "hevc-camera": ("libx265", ".mp4", {"preset": "fast", "x265-params": "keyint=25:bframes=0:log-level=none"}),
    "vp9": ("libvpx-vp9", ".webm", VP9),
    "av1": ("libsvtav1", ".mp4", {"preset": "10", "crf": "35"}),
}
"""Encoder, suffix and options of each way to encode a clip."""
USUAL_KINDS = ("film", "fast", "camera")
MOVES = ("pan", "zoom", "shake", "thing")
MOST_FRAMES = 400
EVERY_FRAME = "decoding every frame"
Peers = dict[str, Callable[[Path], object]]
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


def encode(clip: Path | None, path: Path, size: tuple[int, int], codec: str, options: dict[str, str]) -> None:
    """Write a clip by another encoder and in another size."""
    import av

    rate, shown = pictures(clip)
    part = path.with_name(f"part-{path.name}")
    with av.open(str(part), "w") as container:
        stream = container.add_stream(codec, rate=rate, options=options)
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


def add(path: Path, folder: Path, sampling: Sampling, second_pass: bool = False) -> float:
    """Processor seconds of adding a video to a new library; loading an encoder and starting processes is not adding."""
    shutil.rmtree(folder, ignore_errors=True)
    with LibraryStore.open(folder, create=True) as library:
        library.options = replace(
            library.options, transcriber=None, sound_detector=None, sampling=sampling, second_pass=second_pass
        )
        _ = library.encoders.vision, library.encoders.speech
        warm()
        probe(path)
        begun = family_time()
        library.add(path)
        return family_time() - begun


def decode_every_frame(path: Path) -> None:
    """Decode every frame by one thread, and throw the pictures away."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for _ in container.decode(stream):
            pass


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


def peers(record: Record, program: str | None) -> Peers:
    """What others take for the same file."""
    found: Peers = {EVERY_FRAME: decode_every_frame}
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


def measure(name: str, path: Path, count: int, others: Peers, record: Record) -> None:
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


def measure_add(name: str, path: Path, count: int, folder: Path, record: Record) -> None:
    """Add one file sampled either way, by the cheap encoder alone and with the second pass, in turns."""
    every: list[float] = []
    seconds: dict[tuple[bool, Sampling], list[float]] = {
        (second, sampling): [] for second in (False, True) for sampling in SAMPLINGS
    }
    for _ in range(count):
        begun = family_time()
        decode_every_frame(path)
        every.append(family_time() - begun)
        for (second, sampling), found in seconds.items():
            found.append(add(path, folder, sampling, second))
    for second, what in ((False, "whole add"), (True, "both passes")):
        record.ratio(f"{name}, {what}, quick", seconds[second, "quick"], "exact", seconds[second, "exact"])
        for sampling in SAMPLINGS:
            record.ratio(f"{name}, {what}, {sampling}", seconds[second, sampling], EVERY_FRAME, every)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--kinds", default=",".join(USUAL_KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--ffmpeg")
    parser.add_argument("--only", choices=["decode", "add"], help="only decoding, or only whole adds")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    record = Record("decode" if options.kinds == ",".join(USUAL_KINDS) else "codecs")
    others = peers(record, find_ffmpeg(options.ffmpeg))
    with tempfile.TemporaryDirectory() as room:
        folder = options.folder or Path(room)
        folder.mkdir(parents=True, exist_ok=True)
        for size in options.sizes.split(","):
            for kind in options.kinds.split(","):
                codec, suffix, settings = KINDS[kind]
                path = folder / f"{kind}-{size}{suffix}"
                if not path.is_file():
                    encode(options.clip, path, SIZES[size], codec, settings)
                if options.only != "add":
                    measure(f"{kind} {size}", path, options.rounds, others, record)
                if options.only != "decode":
                    measure_add(f"{kind} {size}", path, options.rounds, Path(room) / "library", record)
    record.save()


if __name__ == "__main__":
    main()
