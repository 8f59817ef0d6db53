"""A search as one would otherwise write it, beside ours: one CLIP vector per second in FAISS, neighbours merged.

    python bench/plain_pipeline.py FOLDER... [--libraries DIR]

A FOLDER is one of bench/real_videos.py. The plain pipeline has the same CLIP image tower and the same text side as the
library's second encoder: a picture a second, an exact FAISS index of inner products, the 100 best seconds of a query,
and those of a video that follow each other within two seconds as one moment, best second first. It was not tuned, but
for how many seconds are taken and how far apart merged ones may lie (``--merge`` tries others). Ours is the library as
``add`` makes it, without speech. Printed: VR@1, R@1 and NDCG@10 at IoU 0.5 with 95 % bootstrap intervals, the paired
difference, and processor milliseconds a query, both in turns, and of encoding the query alone.

What it does not show: other collections, a user's own tuning. The queries are those our search was tuned on.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np

from momentseek.core.reports import text_table
from momentseek.media.decode import frames
from momentseek.recognition.encoders.protocol import ImageTextEncoder
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.search.localise.localiser import DEFAULT_LOCALISER
from real_videos import MEASURES, JudgedSet, figures_text, measure, query_values, read_set
from record import Record, family_time

SECONDS_TAKEN = 100
MERGE_SECONDS = 2.0


@dataclass(frozen=True)
class Moment:
    """A found moment, with the fields of a hit that measures look at."""

    name: str
    start: float
    end: float


class PlainPipeline:
    """One vector per second of each video, in FAISS."""

    def __init__(self, videos: list[Path], encoder: ImageTextEncoder) -> None:
        self.encoder = encoder
        self.places: list[tuple[str, float]] = []
        self.index = faiss.IndexFlatIP(encoder.dim)
        for path in videos:
            shown = [frame.pixels for frame in frames(path, 1.0, short_side=encoder.short_side)]
            self.index.add(np.ascontiguousarray(encoder.encode_images(shown), np.float32))
            self.places += [(path.name, float(second)) for second in range(len(shown))]

    def search(self, query: str, merge: float = MERGE_SECONDS, k: int = 10) -> list[Moment]:
        """The best moments for a query."""
        return self.find(self.encoder.encode([query]), merge, k)

    def find(self, row: np.ndarray, merge: float = MERGE_SECONDS, k: int = 10) -> list[Moment]:
        """The best moments for an encoded query."""
        scores, found = self.index.search(np.asarray(row, np.float32), SECONDS_TAKEN)
        by_video: dict[str, list[tuple[float, float]]] = {}
        for score, at in zip(scores[0].tolist(), found[0].tolist(), strict=True):
            if at >= 0:
                name, second = self.places[at]
                by_video.setdefault(name, []).append((second, score))
        moments: list[tuple[float, Moment]] = []
        for name, seconds in by_video.items():
            first = last = best = -np.inf
            for second, score in [*sorted(seconds), (np.inf, 0.0)]:
                if second - last > merge:
                    if np.isfinite(last):
                        moments.append((best, Moment(name, first, last + 1)))
                    first, best = second, score
                last, best = second, max(best, score)
        return [moment for _, moment in sorted(moments, key=lambda pair: -pair[0])[:k]]


def time_searches(judged: JudgedSet, plain: PlainPipeline) -> dict[str, list[float]]:
    """Processor seconds of each query by both, in turns; words are added so that no query was encoded before."""

    def spent(work: Callable[[str], object], query: str) -> float:
        begun = time.process_time()
        work(query)
        return time.process_time() - begun

    works: dict[str, Callable[[str], object]] = {
        "ours": lambda query: judged.library.search(f"{query} today", k=10),
        "plain": lambda query: plain.search(f"{query} today"),
        "encoding a query for the plain one": lambda query: plain.encoder.encode([f"{query} then"]),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn, rows in enumerate(judged.queries.values()):
        for name in list(works)[:: 1 if turn % 2 else -1]:
            times[name].append(spent(works[name], rows[0]["query"]))
    return times


def compare(judged: JudgedSet, videos: list[Path], encoder: ImageTextEncoder, merges: list[float]) -> None:
    """Both searches on one folder."""
    record = Record("plain")
    begun = family_time()
    plain = PlainPipeline(videos, encoder)
    added = family_time() - begun
    ours = measure(judged, DEFAULT_LOCALISER)
    rows = [["ours", *figures_text(ours), *[""] * len(MEASURES)]]
    for merge in merges:
        found = np.array(
            [query_values(plain.search(rows[0]["query"], merge), rows) for rows in judged.queries.values()]  # type: ignore[arg-type]
        )
        rows.append([f"plain, merged within {merge:g} s", *figures_text(found), *figures_text(ours - found)])
    print(f"\n{judged.name}: {len(judged.queries)} queries, {len(plain.places)} seconds")
    print(text_table(["", *MEASURES, *(f"ours - it, {m}" for m in MEASURES)], rows, align="lllllll"))
    print(f"adding, processor seconds: plain {added:.0f}" + (f", ours {judged.seconds:.0f}" * (judged.seconds > 5)))
    times = time_searches(judged, plain)
    for name, seconds in times.items():
        record.figure(f"{judged.name}, {name}, a query", [1e3 * s for s in seconds], "ms")
    record.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--libraries", type=Path, default=Path("libraries"))
    parser.add_argument("--merge", default=f"{MERGE_SECONDS:g}")
    options = parser.parse_args()
    os.environ.setdefault("MOMENTSEEK_TRANSCRIBE", "off")
    encoder = image_text_encoder("clip")
    for folder in options.folders:
        judged = read_set(folder, options.libraries, options.folders[0] / "absent.json")
        videos = sorted((folder / "videos").iterdir())
        compare(judged, videos, encoder, [float(one) for one in options.merge.split(",")])


if __name__ == "__main__":
    main()
