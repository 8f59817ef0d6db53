"""What is read of letters in pictures, how surely, at what cost.

    python bench/reading.py [--frames 60] [--video FILE]...

1. Lines drawn on photographs (seeded: other sizes, places, colours, a blur and compression), and photographs without
   any: how many lines are read, how many of their letters are wrong, and how many frames give lines that are not there.
2. With `--video`: frames and lines of real videos as `momentseek ocr run` chooses and merges them, processor seconds,
   and what an hour of such video costs.

The photographs are those of scikit-image. Processor time of one thread; peak memory is that of this process.
"""

from __future__ import annotations

import argparse
import io
import resource
import time
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from momentseek.core.reports import text_table
from momentseek.media.pixels import Pixels
from momentseek.media.sandbox.calls import probe
from momentseek.media.sandbox.process import close_idle
from momentseek.recognition.ocr.lines import letters, merge_lines
from momentseek.recognition.ocr.models import DEFAULT_OCR_MODEL, PaddleOcr, model_files, read_file

SENTENCES = """\
Seven telescopes in the desert
Way out
Platform 9
Wir sind gleich zurück
Où est la gare ?
Mañana será otro día
Quarterly results 2026
Do not lean out of the window
Müller & Söhne
Chapter One
Zażółć gęślą jaźń
İstanbul Boğazı
OPEN 24 HOURS
Lost and found
Dr. Amelia Hart, Geologist
Eintritt frei
No parking
Train to York 14:32""".splitlines()
PHOTOGRAPHS = ("astronaut", "coffee", "chelsea", "rocket")


def photographs() -> list[Pixels]:
    from skimage import data

    return [np.asarray(getattr(data, name)()) for name in PHOTOGRAPHS]


def drawn_frame(rng: np.random.Generator, pictures: list[Pixels], text: str | None) -> Pixels:
    """A photograph at 1280 x 720, with a line drawn on it if one is given, blurred a little and compressed."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    frame = Image.fromarray(pictures[rng.integers(len(pictures))]).convert("RGB").resize((1280, 720))
    if text is not None:
        font = ImageFont.load_default(int(rng.integers(24, 80)))
        draw = ImageDraw.Draw(frame)
        wide = draw.textlength(text, font=font)
        place = rng.uniform(20, max(21, 1260 - wide)), rng.uniform(20, 600)
        light = bool(rng.integers(2))
        fill, edge = ((250, 250, 240), (10, 10, 10)) if light else ((20, 20, 20), (245, 245, 245))
        draw.text(place, text, fill=fill, font=font, stroke_width=int(rng.integers(1, 4)), stroke_fill=edge)
    frame = frame.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 1.2))))
    held = io.BytesIO()
    frame.save(held, "JPEG", quality=int(rng.integers(35, 90)))
    return np.asarray(Image.open(held).convert("RGB"))


def wrong_letters(wanted: str, found: str) -> float:
    """The share of a line's letters that were not read."""
    one, other = letters(wanted), letters(found)
    same = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    return 1 - same / max(1, len(one))


def read_drawn(reader: PaddleOcr, frames: int) -> None:
    rng, pictures = np.random.default_rng(16), photographs()
    read = wrong = false = 0.0
    times: dict[bool, list[float]] = {True: [], False: []}
    for at in range(frames):
        text = SENTENCES[at // 2 % len(SENTENCES)] if at % 2 else None
        frame = drawn_frame(rng, pictures, text)
        begun = time.process_time()
        lines = reader.read(frame)
        times[text is not None].append(time.process_time() - begun)
        if text is None:
            false += bool(lines)
            continue
        best = min((wrong_letters(text, line.text) for line in lines), default=1.0)
        read += best <= 0.2
        wrong += best
    some = frames // 2
    rows = [
        ["drawn lines read", f"{read:.0f} of {some}"],
        ["letters wrong", f"{100 * wrong / some:.1f} %"],
        ["frames without text that give lines", f"{false:.0f} of {frames - some}"],
        ["ms per frame with text", f"{1000 * np.median(times[True]):.0f}"],
        ["ms per frame without", f"{1000 * np.median(times[False]):.0f}"],
    ]
    print(text_table(["drawn on photographs, 1280 x 720", ""], rows))


def read_video(reader: PaddleOcr, path: Path, show: bool) -> tuple[float, int, float]:
    found = probe(path)
    begun = time.process_time()
    frames = [frame for part in read_file(reader, path, found.duration, ()) for frame in part.frames]
    lines = merge_lines(frames)
    took = time.process_time() - begun
    if show:
        for line in lines:
            print(f"  {path.name}  {line.start:6.1f}-{line.end:6.1f}  {line.score:.2f}  {line.text}")
    return found.duration, sum(frame.lines is not None for frame in frames), took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--video", type=Path, action="append", default=[])
    parser.add_argument("--show", action="store_true", help="Print the lines of the videos.")
    given = parser.parse_args()
    begun = time.process_time()
    reader = PaddleOcr(*model_files(DEFAULT_OCR_MODEL, check=True))
    print(f"loading: {time.process_time() - begun:.1f} s")
    if given.frames:
        read_drawn(reader, given.frames)
    if given.video:
        rows = [read_video(reader, video, given.show) for video in given.video]
        seconds, frames, took = (sum(column) for column in zip(*rows, strict=True))
        close_idle()  # so that its time counts
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        decoding = used.ru_utime + used.ru_stime
        print(f"{frames} frames of {seconds:.0f} s read: {1000 * took / max(1, frames):.0f} ms a frame")
        hour = 60 / seconds
        print(f"minutes an hour of video: {took * hour:.1f} reading, {decoding * hour:.1f} decoding")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
