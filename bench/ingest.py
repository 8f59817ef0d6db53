"""How fast videos are added, where the time goes, and how much memory it takes.

    python bench/ingest.py [--quick] [--encoder SPEC] [--only passes] [VIDEO...]

1. For each video: seconds of video per second for decoding alone, for encoding alone and for `add` as a whole; the
   share of each stage; how long the decoder waited because the queue was full, and the encoder because it was empty.
2. The same with an encoder that only waits (a device of its own, which takes nothing from the decoder), quicker than
   the decoder and slower: the whole should take as long as the longer of the two, not their sum.
3. What each stream costs: processor seconds per second of a film in which somebody speaks all the time and every
   other scene is a slide, for decoding, shots, pictures, speech and text on screen, and as ratios to the pictures.
4. Several files at once against one after another, by the clock and by the processor's time, sampled either way.
5. Peak memory of one long video, and of many short ones, each in a process of its own.
6. The two passes of a library with two encoders: processor seconds per minute of video, pictures that each encoder
   sees in a minute, and peak memory, each pass in a process of its own; then both in one `add`, which keeps the
   pictures for the second instead of decoding the videos again. By the videos given, else by generated films.

Videos are generated (seeded): moving texture with a cut every 5 s, x264. Figures depend on the machine; compare rows.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from momentseek.benchmarks.demo.filming import make_films
from momentseek.benchmarks.demo.films import DemoFilm, DemoScene
from momentseek.core.reports import text_table
from momentseek.library.encoders import DEFAULT_ENCODER, FIRST_ENCODER
from momentseek.library.paths import clock_text
from momentseek.library.report import AddReport
from momentseek.library.store import LibraryStore
from momentseek.media.decode import SAMPLINGS, Sampling, frames
from momentseek.media.shots import ShotDetector
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Vectors
from momentseek.recognition.encoders.registry import image_text_encoder, register_image_text
from record import Record, family_time

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
    kept = [frame.pixels for frame in frames(path, 1 / CLIP, short_side=short_side, on_picture=detector.push)]
    detector.boundaries()
    return time.perf_counter() - begun, kept


def encode_alone(encoder: ImageTextEncoder, images: Sequence[Pixels]) -> float:
    begun = time.perf_counter()
    for at in range(0, len(images), 16):
        encoder.encode_images(images[at : at + 16])
    return time.perf_counter() - begun


def added(
    paths: Sequence[Path], spec: str, folder: Path, sampling: Sampling = "exact", jobs: int | None = None
) -> tuple[AddReport, float]:
    """Add videos to a new library; also the processor seconds of that."""
    shutil.rmtree(folder, ignore_errors=True)
    with LibraryStore.open(folder, create=True, encoder=spec) as library:
        library.options = replace(library.options, transcriber=None, sampling=sampling, jobs=jobs)
        _ = library.encoders.vision, library.encoders.speech  # loading is not adding
        before = family_time()
        report = library.add(paths)
        return report, family_time() - before


def row(name: str, path: Path, spec: str, work: Path, record: Record | None = None) -> list[str]:
    encoder = image_text_encoder(spec)
    before = family_time()
    decoding, images = decode_alone(path, encoder.short_side)
    processor = family_time() - before
    encode_alone(encoder, images[:16])
    encoding = encode_alone(encoder, images)
    report, whole = added([path], spec, work / "library")
    if record is not None:
        record.ratio(f"{name}, whole add", [whole], "decoding alone", [processor])
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


def speed(spec: str, videos: dict[str, Path], work: Path, record: Record) -> None:
    print(f"1. Adding with {spec!r} (x = seconds of video per second; shares of the whole's time overlap)\n")
    print(text_table(HEADER, [row(name, path, spec, work, record) for name, path in videos.items()]))


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


def streams(spec: str, work: Path, record: Record) -> None:
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
            library.options = replace(library.options, transcriber="whisper-base" if hears else None)
            library.options = replace(library.options, ocr_model="ppocr-small" if reads else None)
            costs[name] = cost(lambda library=library: library.add([path]))  # type: ignore[misc]
    pictures = costs["pictures"]
    table = {"decoding": decoding, "shots": with_shots - decoding, "pictures, with both": pictures}
    table |= {f"{name}, besides": costs[name] - pictures for name in ("speech", "text on screen")}
    for name in ("speech", "text on screen"):
        record.figure(f"{name}, besides, times the pictures", [(costs[name] - pictures) / pictures], "×")
    print(f"\n3. Streams: processor seconds, {film.seconds:.0f} s of talk (with loading what hears and reads)\n")
    print(text_table(["", "seconds", "per second of film", "/ pictures"], [
        [name, f"{seconds:.1f}", f"{seconds / film.seconds:.3f}", f"{seconds / pictures:.2f}"]
        for name, seconds in table.items()
    ]))  # fmt: skip


def cost(work: Callable[[], object]) -> float:
    """Processor seconds of something, those of the processes that it starts included."""
    before = family_time()
    work()
    return family_time() - before


def together(spec: str, work: Path, record: Record, count: int) -> None:
    """Files of a third of a minute, one after another and several at once."""
    whole = make(work / "720p-short.mp4", SIZES["720p"], 20).read_bytes()
    folder = work / "several"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.mp4").write_bytes(other_bytes(whole, i))
    for sampling in SAMPLINGS:
        seconds: dict[str, list[tuple[float, float]]] = {"one": [], "several": []}
        for turn in range(count):
            for name, jobs in (("one", 1), ("several", None))[:: 1 if turn % 2 == 0 else -1]:
                report, processor = added([folder], spec, work / "library", sampling, jobs)
                seconds[name].append((report.elapsed, processor))
        for at, clock in enumerate(("by the clock", "processor's time")):
            ours, theirs = ([each[at] for each in seconds[name]] for name in ("several", "one"))
            record.ratio(f"four files of 720p, {sampling}, {clock}, several at once", ours, "one after another", theirs)


def other_bytes(whole: bytes, number: int) -> bytes:
    """A video with the same pictures and other bytes: a box follows that players skip."""
    return whole + (12).to_bytes(4, "big") + b"free" + number.to_bytes(4, "big")


def memory(work: Path, quick: bool, record: Record) -> None:
    hours, count = ((1, 3), (100, 300)) if quick else ((1, 10), (1000, 10_000))
    rows = []
    for n in hours:
        path = make(work / f"{n}h.mp4", (160, 120), 3600 * n, rate=2)
        rows.append([f"one video of {n} h", *child(work, path)])
    for n in count:
        folder = work / f"many-{n}"
        folder.mkdir()
        whole = make(work / "short.mp4", (160, 120), 10, rate=5).read_bytes()
        for i in range(n):
            (folder / f"{i:05d}.mp4").write_bytes(other_bytes(whole, i))
        rows.append([f"{n:,} videos of 10 s", *child(work, folder)])
    for name, *_, peak in rows:
        record.figure(f"{name}, peak memory", [float(peak.removesuffix(" MB").replace(",", ""))], "MB")
    print("\n5. Memory, with an encoder that costs nothing (384 columns)\n")
    print(text_table(["", "added", "in", "x", "segments", "peak memory"], rows))


PASSES = ("first", "second", "both")


def passes(spec: str, videos: Sequence[Path], work: Path, record: Record) -> None:
    """Each pass over the same videos, the second in the library that the first has made."""
    if not isinstance(encoder := image_text_encoder(spec), FusedEncoder) or not encoder.ready:
        record.skip("the second pass", f"{spec} has no second encoder whose weights are here")
        return
    if not videos:
        scenes = [DemoScene(photograph, SCENE_SECONDS) for photograph in PHOTOGRAPHS * 4]
        videos = make_films(work / "passes", [DemoFilm("scenes.mp4", tuple(scenes))])
    rows, costs = [], []
    for which, part in zip(PASSES, (*encoder.parts, encoder), strict=True):
        place = work / ("one" if which == "both" else "two")
        words = [sys.executable, __file__, "--pass", which, "--encoder", spec, str(place), *map(str, videos)]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        processor, minutes, seen, peak = map(float, said.split())
        costs.append(processor / minutes)
        rows.append([which, part.name, f"{costs[-1]:.2f}", f"{seen / minutes:.1f}", f"{peak:,.0f} MB"])
        record.figure(f"{which} pass, processor seconds per minute of video", [costs[-1]], "s", better="less")
        record.figure(f"{which} pass, pictures per minute of video", [seen / minutes], "pictures", better="less")
        record.figure(f"{which} pass, peak memory", [peak], "MB", better="less")
    apart = costs[0] + costs[1]
    record.figure("both passes in one add, times the first", [costs[2] / costs[0]], "×", better="less")
    record.ratio("both passes in one add", [costs[2]], "the second decodes again", [apart])
    print(f"\n6. The two passes of {spec!r}; in one add {costs[2] / costs[0]:.2f} times the first\n")
    print(text_table(["pass", "encoder", "processor s / minute", "pictures / minute", "peak memory"], rows))


def run_one_pass(which: str, spec: str, folder: Path, videos: Sequence[Path]) -> None:
    """One of the two passes: prints its processor seconds, minutes of video, pictures and peak memory in MB."""
    with LibraryStore.open(folder, create=which != "second", encoder=spec) as library:
        library.options = replace(library.options, transcriber=None, second_pass=which == "both")
        _ = library.encoders.vision, library.encoders.speech
        before = family_time()
        report = library.encode() if which == "second" else library.add(videos)
        processor = family_time() - before
        held = library.status()
    seen = held.clips if which == "first" else report.pictures
    print(processor, held.seconds / 60, seen, peak_megabytes())


def child(work: Path, path: Path) -> list[str]:
    words = [sys.executable, __file__, "--child", str(path), str(work / "library")]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\t")


def run_child(path: Path, folder: Path) -> None:
    register_image_text("nothing", lambda: Waiting(0.0))
    report, _ = added([path], "nothing", folder)
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
    parser.add_argument("--encoder", help="default: things, and for the two passes things+clip")
    parser.add_argument(
        "--only", choices=["speed", "overlap", "streams", "together", "memory", "passes"], help="only this part"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of what is read together")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--pass", dest="which", choices=PASSES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(*options.child)
        return
    if options.which:
        run_one_pass(options.which, options.encoder, options.videos[0], options.videos[1:])
        return
    one = options.encoder or FIRST_ENCODER
    record = Record("ingest")
    seconds = 30 if options.quick else 180
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        if options.only in (None, "speed"):
            videos = {label: make(work / f"{label}.mp4", size, seconds) for label, size in SIZES.items()}
            speed(one, videos | {path.name: path for path in options.videos}, work, record)
        if options.only in (None, "overlap"):
            overlap(make(work / "overlap.mp4", SIZES["720p"], seconds), work)
        if options.only in (None, "streams"):
            streams(one, work, record)
        if options.only in (None, "together"):
            together(one, work, record, options.rounds)
        if options.only in (None, "memory"):
            memory(work, options.quick, record)
        if options.only in (None, "passes"):
            passes(options.encoder or DEFAULT_ENCODER, options.videos, work, record)
    record.save()


if __name__ == "__main__":
    main()
