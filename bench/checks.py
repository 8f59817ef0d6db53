"""What it costs to check vectors before they are rewritten, and to read a segment instead of mapping it.

    python bench/checks.py [--videos 1500]

Processor seconds, the best of several, on one segment of random vectors (40 clips a video, 384 columns). Ratios are of
one run; the machine's load matters little to them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from momentseek.library import segments
from momentseek.library.merging import proven_videos
from momentseek.library.scan.scan import Scan
from record import Record, rounds

CLIPS, DIM = 40, 384
TIMES = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=1500)
    videos = parser.parse_args().videos
    rows = np.random.default_rng(0).normal(size=(videos * CLIPS, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        content = segments.build_segment("vision", range(1, videos + 1), np.split(rows, videos))
        name = segments.write_segment(folder, content)
        path = folder / f"{name}{segments.SEGMENT_SUFFIX}"
        size = path.stat().st_size
        print(f"{videos:,} videos, {size / 1e6:.0f} MB, of which checksums {8 * videos / size:.3%}")
        segments.MAX_READ_BYTES = 0
        mapped = segments.read_segment(folder, name)
        segments.MAX_READ_BYTES = size
        held = segments.read_segment(folder, name)
        handle, buffer = os.open(path, os.O_RDONLY), bytearray(mapped.codes.nbytes)
        of_mapped, of_held = Scan([mapped]), Scan([held])
        seconds = rounds(
            {
                "rewrite": lambda: segments.write_joined(folder, "vision", [mapped]),
                "check": lambda: proven_videos(mapped),
                "open": lambda: segments.read_segment(folder, name),
                "search mapped": lambda: of_mapped.search(rows[5], 10),
                "search held": lambda: of_held.search(rows[5], 10),
                "read codes": lambda: os.preadv(handle, [buffer], 4096),
            },
            TIMES,
            time.process_time,
        )
        os.close(handle)
    record = Record("checks")
    record.ratio("checking vectors", seconds["check"], "rewriting them", seconds["rewrite"])
    record.ratio("a search of a file in memory", seconds["search held"], "of a mapped one", seconds["search mapped"])
    record.ratio("a search", seconds["search mapped"], "reading its codes from the file", seconds["read codes"])
    record.figure("reading a segment into memory", seconds["open"], "s")
    record.save()


if __name__ == "__main__":
    main()
