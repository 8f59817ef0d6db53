"""What a video costs as a library grows: adding, searching, removing, checking and compacting, in time and memory.

    python bench/growth.py [--sizes 1k,10k,100k] [--folder DIR] [--figures docs/images]

One library grows from size to size. Its videos are generated (four clips each, with vectors of the cheap offline
encoder's width, and no cues) and written by the library's own writer, in batches as ``add`` writes them. At each size
these are done by a process of their own, whose processor time and memory are measured:

* write: the videos up to this size, without decoding and encoding;
* search: twelve queries, after one that loads what is needed;
* add: eight real files of three seconds; remove: the same eight, by their paths;
* verify, and compact once every hundredth of the videos was removed (which are put back by the next size);
* serve: a server, after twelve searches: its own memory, and how much of its mapped files lies in memory.

``files`` (with --files 100,1000,10000) adds that many tiny files to a new library, and says how much memory that took.
A million videos take 6 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np

import momentseek as ms
from ingest import Waiting, make, other_bytes
from momentseek.core.figures import line_style, save_figures, subplots
from momentseek.core.reports import text_table
from momentseek.library.encoders import FIRST_ENCODER, encoder_row
from momentseek.library.ingest.writer import FinishedVideo, SegmentWriter
from momentseek.library.options import WritePace
from momentseek.library.report import StageTimer
from momentseek.library.scan.recall import refresh_plan
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.library.video import Video
from momentseek.recognition.encoders.registry import register_image_text
from record import Record, family_time
from serve import QUERIES, start

CLIPS, CLIP_SECONDS, TOPICS, CHUNK = 4, 1.5, 1000, 5000
FILES = 8
STEPS = ("write", "search", "add", "remove", "verify", "compact", "serve")
Found = dict[str, float]
"""What a step measured, by the name of the figure."""


def generated_rows(number: int, dim: int) -> np.ndarray:
    """Unit vectors of the clips of a chunk of videos: a topic, what is the video's own, and what is the clip's."""
    rng = np.random.default_rng(number)
    topics = np.random.default_rng(7).standard_normal((TOPICS, dim), dtype=np.float32)
    own = topics[rng.integers(0, TOPICS, CHUNK)] + rng.standard_normal((CHUNK, dim), dtype=np.float32)
    rows = own[:, None] + 0.7 * rng.standard_normal((CHUNK, CLIPS, dim), dtype=np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=2, keepdims=True), np.float32)


def generated_videos(first: int, last: int, dim: int) -> Iterator[FinishedVideo]:
    """Videos with numbers from ``first`` up to ``last``, ready to be written."""
    rows, chunk = np.empty(0), -1
    for number in range(first, last):
        if number // CHUNK != chunk:
            chunk = number // CHUNK
            rows = generated_rows(chunk, dim)
        name = f"{number // 1000:04d}/film {number:07d}.mp4"
        video = Video(
            0, Path("/nowhere") / name, name, 10**6, 10**18 + number, f"{number:032x}", CLIPS * CLIP_SECONDS, 640, 360,
            Fraction(25), "h264", CLIPS, 0, (), 0.0, audio=False,
        )  # fmt: skip
        yield FinishedVideo(video, (), ("",), StoredVectors.of(rows[number % CHUNK]))


def write(folder: Path, videos: int) -> Found:
    """Let the library grow to a number of videos, and build its plan."""
    with LibraryStore.open(folder, create=True, encoder=FIRST_ENCODER) as library, library.changing():
        vision = library.encoders.vision
        if library.catalog.encoder("vision") is None:
            with library.catalog.changes():
                library.catalog.set_encoder(encoder_row("vision", FIRST_ENCODER, vision))
        have = int(library.catalog.totals()["videos"])
        writer = SegmentWriter(library.paths, library.catalog, None, StageTimer(), WritePace())
        begun = time.process_time()
        drawn = 0.0
        source = generated_videos(have, videos, vision.dim)
        while True:
            before = time.process_time()
            ready = next(source, None)
            drawn += time.process_time() - before
            if ready is None:
                break
            writer.add(ready)
            if writer.is_due:
                writer.flush()
        writer.flush()
        writer.merge()
        spent = time.process_time() - begun - drawn
        begun = time.process_time()
        refresh_plan(library.snapshot().vision, library.paths.plan)
        return {
            "writing, ms a video": 1e3 * spent / max(1, videos - have),
            "plan, ms a video": 1e3 * (time.process_time() - begun) / videos,
        }


def search(folder: Path, _: int) -> Found:
    with ms.Library.open(folder) as library:
        begun = time.process_time()
        library.search("a first question")
        first = time.process_time() - begun
        each = []
        for query in QUERIES[:12]:
            begun = time.process_time()
            library.search(query, k=20)
            each.append(time.process_time() - begun)
        mapped = memory_of("self")["mapped MB"]
        return {"search, ms": 1e3 * float(np.median(each)), "first search, s": first, "search, mapped MB": mapped}


def real_files(folder: Path) -> list[Path]:
    """A few tiny videos, with bytes that no other has."""
    place = folder.parent / "files"
    if not place.exists():
        place.mkdir(parents=True)
        whole = make(place / "0.mp4", (160, 120), 3, rate=5).read_bytes()
        for number in range(FILES):
            (place / f"{number}.mp4").write_bytes(other_bytes(whole, number))
    return sorted(place.iterdir())


def add(folder: Path, _: int) -> Found:
    with LibraryStore.open(folder) as library:
        library.options = replace(library.options, transcriber=None, sound_detector=None, second_pass=False)
        _ = library.encoders.vision, library.encoders.speech
        files = real_files(folder)
        begun = family_time()
        assert library.add(files).added == FILES
        return {"adding, ms a file": 1e3 * (family_time() - begun) / FILES}


def remove(folder: Path, _: int) -> Found:
    with LibraryStore.open(folder) as library:
        begun = time.process_time()
        for path in real_files(folder):
            library.remove([path])
        return {"removing, ms a video": 1e3 * (time.process_time() - begun) / FILES}


def verify(folder: Path, videos: int) -> Found:
    with LibraryStore.open(folder) as library:
        begun = time.process_time()
        problems = library.verify().problems
        assert problems == [], problems[:3]
        spent = time.process_time() - begun
    return {"verifying, ms a video": 1e3 * spent / videos}


def compact(folder: Path, videos: int) -> Found:
    with LibraryStore.open(folder) as library:
        with library.changing(), library.catalog.changes():
            for id in library.catalog.ids().tolist()[::100]:
                library.catalog.remove_video(id)
        begun = time.process_time()
        library.compact()
        spent = time.process_time() - begun
    return {"compacting, ms a video": 1e3 * spent / videos}


def serve(folder: Path, _: int) -> Found:
    process, client, started = start(folder)
    try:
        for query in QUERIES[:12]:
            assert client.search(query)[0] == 200
        return {"server starts, s": started, **{f"server, {k}": v for k, v in memory_of(str(process.pid)).items()}}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


class OwnMemory:
    """The most memory of its own, without mapped files, that this process holds during a `with`: looked at often."""

    def __enter__(self) -> Self:
        self.megabytes = memory_of("self")["own MB"]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            self.megabytes = max(self.megabytes, memory_of("self")["own MB"])


def memory_of(process: str) -> Found:
    """Megabytes that a process holds itself, and of mapped files that lie in memory for it."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    held = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith("Rss")}
    return {"own MB": held["RssAnon"], "mapped MB": held["RssFile"]}


WORK: dict[str, Callable[[Path, int], Found]] = {
    "write": write, "search": search, "add": add, "remove": remove,
    "verify": verify, "compact": compact, "serve": serve,
}  # fmt: skip


def add_many(folder: Path, files: int) -> Found:
    """Add many tiny files to a new library, with an encoder that costs nothing."""
    register_image_text("nothing", lambda: Waiting(0.0))
    films = folder / "films"
    films.mkdir(parents=True)
    whole = make(folder / "short.mp4", (160, 120), 3, rate=5).read_bytes()
    for number in range(files):
        (films / f"{number:06d}.mp4").write_bytes(other_bytes(whole, number))
    with LibraryStore.open(folder / "library", create=True, encoder="nothing") as library:
        library.options = replace(library.options, transcriber=None, sound_detector=None)
        begun = family_time()
        assert library.add([films]).added == files
        spent = family_time() - begun
        peak = max(map(peak_memory, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()), default=0.0)
    return {"ms a file": 1e3 * spent / files, "largest process of its own, MB": peak}


def peak_memory(process: str) -> float:
    """Megabytes that a process held at most, mapped files included."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def run_child(step: str, folder: Path, videos: int) -> Found:
    words = [sys.executable, __file__, "--child", step, str(folder), str(videos)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{step} of {videos:,} videos failed:\n{done.stderr[-2000:]}")
    found: Found = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{videos:>9,} {step}: " + ", ".join(f"{name} {value:.3g}" for name, value in found.items()), flush=True)
    return found


COLUMNS = {
    "writing, ms a video": "write", "adding, ms a file": "add", "removing, ms a video": "remove",
    "verifying, ms a video": "verify", "compacting, ms a video": "compact", "search, ms": "search",
}  # fmt: skip
MEMORY = {f"{step}, own memory at most, MB": step for step in STEPS[:-1]}
MEMORY |= {"server, own MB": "serve", "server, mapped MB": "serve: mapped files"}


def draw(results: dict[int, Found]) -> Any:
    """Milliseconds and megabytes by the number of videos."""
    figure, grid = subplots(1, 2, 8.4, 3.4)
    for axes, columns, label in zip(grid[0], (COLUMNS, MEMORY), ("processor ms", "MB"), strict=True):
        for at, (name, shown) in enumerate(columns.items()):
            points = [(n, found[name]) for n, found in results.items() if name in found]
            if points:
                axes.plot(*zip(*points, strict=True), label=shown, **line_style(at, lw=1))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("videos in the library")
        axes.set_ylabel(label)
        axes.grid(linewidth=0.3)
        axes.legend(fontsize=7)
    return figure


def unit_of(name: str) -> str:
    """The unit in a figure's name.

    >>> unit_of("writing, ms a video"), unit_of("server, own MB"), unit_of("first search, s")
    ('ms', 'MB', 's')
    """
    return next(unit for unit in ("MB", "ms", "s") if unit in name.replace(",", "").split())


def number(text: str) -> int:
    """A number as people write it.

    >>> number("10k"), number("1M")
    (10000, 1000000)
    """
    return int(text.replace("k", "000").replace("M", "000000"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1k,10k,100k")
    parser.add_argument("--files", default="")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--folder", type=Path, help="where the library is kept for another run")
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        step, folder, videos = options.child
        with OwnMemory() as memory:
            found = (add_many if step == "files" else WORK[step])(Path(folder), int(videos))
        print(json.dumps({**found, f"{step}, own memory at most, MB": memory.megabytes}))
        return
    record = Record("growth")
    results: dict[int, Found] = {}
    with tempfile.TemporaryDirectory() as room:
        folder = options.folder or Path(room) / "library"
        for size in map(number, filter(None, options.sizes.split(","))):
            found: Found = {}
            for step in options.steps.split(","):
                found |= run_child(step, folder, size)
            results[size] = found
            for name, value in found.items():
                record.figure(f"{size:,} videos, {name}", [value], unit_of(name))
        for files in map(number, filter(None, options.files.split(","))):
            place = Path(room) / "many"
            for name, value in run_child("files", place, files).items():
                record.figure(f"{files:,} files, adding, {name}", [value], unit_of(name))
            shutil.rmtree(place)
    names = list(dict.fromkeys(name for found in results.values() for name in found))
    rows = [[name, *(f"{found[name]:.3g}" if name in found else "" for found in results.values())] for name in names]
    print("\n" + text_table(["", *(f"{size:,}" for size in results)], rows))
    if options.figures and results:
        print(*save_figures({"growth": lambda: draw(results)}, options.figures), sep="\n")
    record.save()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
