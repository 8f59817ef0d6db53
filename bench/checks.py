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
from collections.abc import Callable
from pathlib import Path

import numpy as np

from momentseek.library import segments
from momentseek.library.damage import proven_videos
from momentseek.library.scan import Scan

CLIPS, DIM = 40, 384
TIMES = 7


def best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(TIMES):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return min(seconds)


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
        opening = best(lambda: segments.read_segment(folder, name))
        segments.MAX_READ_BYTES = size
        held = segments.read_segment(folder, name)
        reading = best(lambda: segments.read_segment(folder, name))
        rewrite = best(lambda: segments.write_joined(folder, "vision", [mapped]))
        check = best(lambda: proven_videos(folder, mapped))
        print(f"rewriting {rewrite:.3f} s, checking first {check:.3f} s ({check / rewrite:.0%} more)")
        print(f"opening: mapped {opening * 1e3:.1f} ms, read {reading * 1e3:.1f} ms")
        scans = [Scan([mapped]), Scan([held])]
        one, two = (best(lambda scan=scan: scan.search(rows[5], 10)) for scan in scans)  # type: ignore[misc]
        print(f"a search: mapped {one * 1e3:.1f} ms, read {two * 1e3:.1f} ms ({two / one:.2f} x)")
        handle, buffer = os.open(path, os.O_RDONLY), bytearray(mapped.codes.nbytes)
        again = best(lambda: os.preadv(handle, [buffer], 4096))
        os.close(handle)
        print(f"reading the codes anew for each search would add {again * 1e3:.1f} ms ({again / one:.0%})")
        print(f"looking at a mapped file's size: {best(mapped.check_size) * 1e6:.1f} µs")


if __name__ == "__main__":
    main()
