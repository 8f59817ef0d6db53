"""How fast videos are added, where the time goes, and how much memory it takes.

    python bench/ingest.py [--quick] [--encoder labels] [--only streams] [VIDEO...]

1. For each video: seconds of video per second for decoding alone, for encoding alone and for `add` as a whole; the
   share of each stage; how long the decoder waited because the queue was full, and the encoder because it was empty.
2. The same with an encoder that only waits (a device of its own, which takes nothing from the decoder), quicker than
   the decoder and slower: the whole should take as long as the longer of the two, not their sum.
3. What each stream costs: processor seconds per second of a film in which somebody speaks all the time and every
   other scene is a slide, for decoding, shots, pictures, speech and text on screen, and as ratios to the pictures.
4. Peak memory of one long video, and of many short ones, each in a process of its own.

Videos are generated (seeded): moving texture with a cut every 5 s, x264. Figures depend on the machine; compare rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np

from momentseek.demo import DemoFilm, DemoScene, make_films
from momentseek.encoders import image_text_encoder
from momentseek.encoders.protocol import ImageTextEncoder, Pixels, Vectors
from momentseek.encoders.registry import register_image_text
from momentseek.library import AddReport, LibraryStore
from momentseek.library.paths import clock_text
from momentseek.media.decode import frames
from momentseek.media.shots import ShotDetector
from momentseek.tables import text_table

CLIP = 1.5
SCENE_SECONDS = 5.0
PHOTOGRAPHS = ("coffee", "cat", "temple", "rocket", "motorcycle", "astronaut")
SENTENCES = (
    "The yellow train leaves the station at seven in the morning.",
    "Please put the old books back on the shelf beside the window.",
    "Nobody expected snow in April, but the gardens were white.",
)
SLIDES = ("", "Harbour bridge\nbudget and timetable", "", "Questions\nand answers")
SIZES = {"360p": (640, 360), "720p": (1280, 720), "1080p": (1920, 1080)}


class Waiting:
    """An encoder on another device: it takes its time and none of ours."""

    name, dim, short_side = "waiting", 384, 224

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.fingerprint = f"waiting-{seconds}"

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        time.sleep(self.seconds * len(images))
        rows = np.ones((len(images), self.dim), np.float32)
        for row, image in zip(rows, images, strict=True):
            row[:3] += image[::8, ::8].mean(axis=(0, 1))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.full((len(texts), self.dim), self.dim**-0.5, np.float32)


def pictures(size: tuple[int, int], count: int, rate: float) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    width, height = size
    texture = rng.integers(0, 255, (height // 4 + 64, width // 4 + 64, 3), np.uint8)
    for i in range(count):
        if i % max(1, int(5 * rate)) == 0:
            tint = rng.uniform(0.2, 1.0, 3)
        shift = i % 60
        part = (texture[shift : shift + -(-height // 4), shift : shift + -(-width // 4)] * tint).astype(np.uint8)
        yield np.repeat(np.repeat(part, 4, axis=0), 4, axis=1)[:height, :width]


def make(path: Path, size: tuple[int, int], seconds: float, rate: int = 25) -> Path:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate, options={"preset": "ultrafast", "g": str(4 * rate)})
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for i, picture in enumerate(pictures(size, int(seconds * rate), rate)):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
            frame.pts, frame.time_base = i, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def decode_alone(path: Path, short_side: int) -> tuple[float, list[Pixels]]:
    begun = time.perf_counter()
    detector = ShotDetector()
    kept = [frame.pixels for frame in frames(path, 1 / CLIP, short_side=short_side, spy=detector.push)]
    detector.boundaries()
    return time.perf_counter() - begun, kept


def encode_alone(encoder: ImageTextEncoder, images: Sequence[Pixels]) -> float:
    begun = time.perf_counter()
    for at in range(0, len(images), 16):
        encoder.encode_images(images[at : at + 16])
    return time.perf_counter() - begun


def added(paths: Sequence[Path], spec: str, folder: Path) -> AddReport:
    shutil.rmtree(folder, ignore_errors=True)
    with LibraryStore.open(folder, create=True, encoder=spec) as library:
        _ = library.encoders.vision, library.encoders.speech  # loading is not adding
        return library.add(paths)


def row(name: str, path: Path, spec: str, work: Path) -> list[str]:
    encoder = image_text_encoder(spec)
    decoding, images = decode_alone(path, encoder.short_side)
    encode_alone(encoder, images[:16])
    encoding = encode_alone(encoder, images)
    report = added([path], spec, work / "library")
    stages, wall, seconds = report.stages, report.elapsed, report.seconds
    return [
        name,
        clock_text(seconds),
        f"{seconds / decoding:.1f}",
        f"{seconds / encoding:.1f}",
        f"{seconds / wall:.1f}",
        f"{wall / max(decoding, encoding):.2f}",
        f"{wall / (decoding + encoding):.2f}",
        *(f"{100 * stages.get(stage, 0) / wall:.0f} %" for stage in ("decode", "encode", "hash", "write")),
        f"{stages.get('wait for room', 0):.2f} s",
        f"{stages.get('wait for frames', 0):.2f} s",
    ]


HEADER = [
    "video", "length", "decode x", "encode x", "add x", "/ longer", "/ sum", "decoding", "encoding", "hashing",
    "writing", "queue full", "queue empty",
]  # fmt: skip


def speed(spec: str, videos: dict[str, Path], work: Path) -> None:
    print(f"1. Adding with {spec!r} (x = seconds of video per second; shares of the whole's time overlap)\n")
    print(text_table(HEADER, [row(name, path, spec, work) for name, path in videos.items()]))


def overlap(path: Path, work: Path) -> None:
    decoding, images = decode_alone(path, Waiting.short_side)
    each = decoding / len(images)
    rows = []
    for name, factor in (("half the decoder's time", 0.5), ("as long", 1.0), ("twice", 2.0)):
        spec = f"waiting-{factor}"
        register_image_text(spec, lambda factor=factor: Waiting(factor * each))  # type: ignore[misc]
        rows.append(row(name, path, spec, work))
    print(f"\n2. {path.name}, encoders of another device, that take … per frame\n")
    print(text_table(HEADER, rows))


def streams(spec: str, work: Path) -> None:
    scenes = [
        DemoScene(
            PHOTOGRAPHS[i % len(PHOTOGRAPHS)], SCENE_SECONDS, SENTENCES[i % len(SENTENCES)], SLIDES[i % len(SLIDES)]
        )
        for i in range(12)
    ]
    film = DemoFilm("talk.mp4", tuple(scenes), voice=True)
    (path,) = make_films(work / "talk", [film])
    side = image_text_encoder(spec).short_side
    decoding = cost(lambda: [None for _ in frames(path, 1 / CLIP, short_side=side)])
    with_shots = cost(lambda: decode_alone(path, side))
    costs = {}
    for name, hears, reads in (("pictures", False, False), ("speech", True, False), ("text on screen", False, True)):
        with LibraryStore.open(work / f"library of {name}", create=True, encoder=spec) as library:
            _ = library.encoders.vision, library.encoders.speech
            library.transcriber = "whisper-base" if hears else None
            library.reader = "ppocr-small" if reads else None
            costs[name] = cost(lambda library=library: library.add([path]))  # type: ignore[misc]
    pictures = costs["pictures"]
    table = {"decoding": decoding, "shots": with_shots - decoding, "pictures, with both": pictures}
    table |= {f"{name}, besides": costs[name] - pictures for name in ("speech", "text on screen")}
    print(f"\n3. Streams: processor seconds, {film.seconds:.0f} s of talk (with loading what hears and reads)\n")
    print(text_table(["", "seconds", "per second of film", "/ pictures"], [
        [name, f"{seconds:.1f}", f"{seconds / film.seconds:.3f}", f"{seconds / pictures:.2f}"]
        for name, seconds in table.items()
    ]))  # fmt: skip


def cost(work: Callable[[], object]) -> float:
    """Processor seconds of something, those of the processes that it starts included."""
    before = processor_seconds()
    work()
    return processor_seconds() - before


def processor_seconds() -> float:
    """Of this process and of all below it, those that have ended included."""
    found, below = {os.getpid()}, True
    numbers = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            numbers[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    while below:
        below = {pid for pid, (parent, _) in numbers.items() if parent in found} - found
        found |= below
    return sum(numbers[pid][1] for pid in found if pid in numbers) / os.sysconf("SC_CLK_TCK")


def memory(work: Path, quick: bool) -> None:
    hours, count = ((1, 3), (300, 1000)) if quick else ((1, 10), (1000, 10_000))
    rows = []
    for n in hours:
        path = make(work / f"{n}h.mp4", (160, 120), 3600 * n, rate=2)
        rows.append([f"one video of {n} h", *child(work, path)])
    for n in count:
        folder = work / f"many-{n}"
        folder.mkdir()
        whole = make(work / "short.mp4", (160, 120), 10, rate=5).read_bytes()
        for i in range(n):  # the same pictures, other bytes: a box that players skip
            (folder / f"{i:05d}.mp4").write_bytes(whole + (12).to_bytes(4, "big") + b"free" + i.to_bytes(4, "big"))
        rows.append([f"{n:,} videos of 10 s", *child(work, folder)])
    print("\n4. Memory, with an encoder that costs nothing (384 columns)\n")
    print(text_table(["", "added", "in", "x", "segments", "peak memory"], rows))


def child(work: Path, path: Path) -> list[str]:
    words = [sys.executable, __file__, "--child", str(path), str(work / "library")]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\t")


def run_child(path: Path, folder: Path) -> None:
    register_image_text("nothing", lambda: Waiting(0.0))
    report = added([path], "nothing", folder)
    peak = peak_megabytes()
    with LibraryStore.open(folder) as library:
        files = len(library.catalog.segments())
        assert library.verify().clean
    print(
        clock_text(report.seconds), clock_text(report.elapsed), f"{report.seconds / report.elapsed:,.0f}", files,
        f"{peak:,.0f} MB", sep="\t", end="",
    )  # fmt: skip


def peak_megabytes() -> float:
    """Of this process alone: getrusage would count what its parent had before it became this one."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("videos", nargs="*", type=Path, help="videos of your own, measured besides")
    parser.add_argument("--quick", action="store_true", help="shorter videos")
    parser.add_argument("--encoder", default="things")
    parser.add_argument("--only", choices=["streams"], help="only this part")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(*options.child)
        return
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        if options.only:
            streams(options.encoder, work)
            return
        seconds = 60 if options.quick else 180
        videos = {label: make(work / f"{label}.mp4", size, seconds) for label, size in SIZES.items()}
        videos |= {path.name: path for path in options.videos}
        speed(options.encoder, videos, work)
        overlap(videos["720p"], work)
        streams(options.encoder, work)
        memory(work, options.quick)


if __name__ == "__main__":
    main()
