"""Make a large library for measuring whole searches: generated videos whose clips are like those of a real library.

    python bench/large_library.py FOLDER --like LIBRARY [--videos 100000] [--clips 20]

A video has one to three scenes. A scene's clips are a clip of LIBRARY, turned by noise of its own and by a drift from
clip to clip; labels that the encoder keeps in a row stay as they are. Half of the videos have four cues, a tenth two
lines on screen, made of everyday words; each cue has its sentence's vector, turned by noise. So all streams have
something to find, and queries score as they do in LIBRARY. What it does not show: the variety of as many real videos.
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.api.library import Library
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.cue_vectors import PASSAGES_SETTING, passages
from momentseek.library.database import OCR
from momentseek.library.merging import MAX_JOINED_ROWS
from momentseek.library.segments import Segment, quantise, write_joined
from momentseek.library.store import LibraryStore
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.encoders.things import COLUMNS, kind_names

CHUNK_VIDEOS = 5_000
OWN_NOISE, DRIFT_NOISE = 0.5, 0.25
"""Lengths of what is a scene's own and of a clip's own, where the row that both are added to has length 1."""
SENTENCES = 4_000
CUES, SPOKEN_SHARE, LINES, WRITTEN_SHARE = 4, 0.5, 2, 0.1

Floats = NDArray[np.float32]


def make_sentences(rng: np.random.Generator) -> list[str]:
    """What is said and written in the videos."""
    nouns = np.array(kind_names())
    first, second = nouns[rng.integers(0, len(nouns), (2, SENTENCES))]
    ways = ("this is the {} with the {}", "{} and {}", "there was a {} and then the {}", "the {} or a {}")
    return [ways[n % len(ways)].format(a, b) for n, (a, b) in enumerate(zip(first, second, strict=True))]


def passage_means(rows: Floats, cues: list[Cue]) -> Floats:
    """Vectors of the passages of several cues: the means of their cues', for encoding as many would take hours."""
    sums = [rows[some.start : some.stop].sum(axis=0) for some in passages(cues) if len(some) > 1]
    means = np.array(sums, np.float32).reshape(-1, rows.shape[1])
    return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9), np.float32)


def turn(rows: Floats, noise: Floats, blocks: tuple[slice, ...], share: float) -> Floats:
    """Rows with noise in some blocks of columns, in which each row keeps its length."""
    out = rows.copy()
    for block in blocks:
        part, own = out[:, block], noise[:, block]
        length = np.linalg.norm(part, axis=1, keepdims=True)
        mixed = part + share * length * own / np.linalg.norm(own, axis=1, keepdims=True)
        out[:, block] = mixed * (length / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9))
    return out


class RowMaker:
    """Makes the rows of videos from those of a library."""

    def __init__(self, like: Path, clips: int) -> None:
        with Library.open(like, create=False) as library:
            snapshot, encoder = library.store.snapshot(), library.store.encoders.vision
            self.encoders = snapshot.encoders
            self.speech = library.store.encoders.speech
            self.rows = np.concatenate([np.asarray(segment.half, np.float32) for segment in snapshot.vision])
        if not isinstance(encoder, FusedEncoder):
            sys.exit(f"{like}: is made by {encoder.name}; give a library of the default encoders")
        first = encoder.blocks[0]
        self._blocks = slice(0, first - COLUMNS), slice(first, first + 512)  # without what rows keep besides vectors
        self._clips = clips
        self._noise = np.random.default_rng(11).standard_normal(1 << 24, dtype=np.float32)

    def draw_noise(self, rng: np.random.Generator, rows: int, width: int) -> Floats:
        """Rows of a long noise, which begin anywhere: to draw each would take most of the time."""
        begin = rng.integers(0, len(self._noise) - width, rows)
        return np.stack([self._noise[at : at + width] for at in begin.tolist()])

    def make(self, rng: np.random.Generator, videos: int) -> Floats:
        """The rows of videos, one after another."""
        count, width = videos * self._clips, self.rows.shape[1]
        cut = (rng.random((videos, self._clips)) < 1.0 / self._clips) | (np.arange(self._clips) == 0)
        scene = np.cumsum(cut.ravel()) - 1
        scenes = int(scene[-1]) + 1
        base = self.rows[rng.integers(0, len(self.rows), scenes)]
        own = turn(base, self.draw_noise(rng, scenes, width), self._blocks, OWN_NOISE)
        return turn(own[scene], self.draw_noise(rng, count, width), self._blocks, DRIFT_NOISE)


def make_library(folder: Path, like: Path, videos: int, clips: int) -> None:
    """Write the library, chunk by chunk, and its plan."""
    (folder / "segments").mkdir(parents=True)
    rng = np.random.default_rng(3)
    maker = RowMaker(like, clips)
    sentences = make_sentences(rng)
    assert maker.speech is not None
    vectors = maker.speech.encode(sentences)
    begun = time.perf_counter()
    seconds = 1.5 * clips
    waiting: list[Segment] = []
    talks: list[Segment] = []
    catalog = Catalog(folder, create=True)
    with catalog.changes():
        catalog.set("clip_seconds", 1.5)
        catalog.set(PASSAGES_SETTING, True)
        for row in maker.encoders:
            catalog.set_encoder(row)
    for first in range(1, videos + 1, CHUNK_VIDEOS):
        ids = np.arange(first, min(first + CHUNK_VIDEOS, videos + 1))
        rows = maker.make(rng, len(ids))
        offsets = np.arange(0, len(rows) + 1, clips)
        waiting.append(Segment("", "vision", ids, offsets, *quantise(rows), rows.astype(np.float16)))
        spoken = rng.random(len(ids)) < SPOKEN_SHARE
        said = rng.integers(0, SENTENCES, (len(ids), CUES))
        written = rng.random(len(ids)) < WRITTEN_SHARE
        spoken_cues: list[list[Cue]] = []
        with catalog.changes():
            for at, id in enumerate(ids.tolist()):
                name, step = f"{id:07}.mp4", seconds / CUES
                cues = [Cue(n * step, n * step + 1.4, sentences[one]) for n, one in enumerate(said[at])]
                video = Video(
                    0, folder / name, name, 1, id, f"content {id}", seconds, 640, 360, Fraction(25), "h264", clips, 2,
                    (), 0.0,
                )  # fmt: skip
                catalog.insert_video(video, cues if spoken[at] else [])
                spoken_cues += [cues] if spoken[at] else []
                if written[at]:
                    lines = [Cue(0.0, seconds, cue.text, frame=0.0, box=(0.1, 0.1, 0.5, 0.1)) for cue in cues[:LINES]]
                    catalog.insert_cues(id, lines, OCR)
            tables = [vectors[numbers] for numbers in said[spoken]]
            tables = [
                np.concatenate([rows, passage_means(rows, talk)])
                for rows, talk in zip(tables, spoken_cues, strict=True)
            ]
            speech, ends = np.concatenate(tables), np.cumsum([0, *map(len, tables)])
            speech = turn(speech, maker.draw_noise(rng, *speech.shape), (slice(None),), OWN_NOISE)
            talks.append(Segment("", "speech", ids[spoken], ends, *quantise(speech), speech.astype(np.float16)))
            if sum(one.rows for one in waiting) >= MAX_JOINED_ROWS or ids[-1] == videos:
                name = write_joined(folder / "segments", "vision", waiting)
                count = sum(len(one.ids) for one in waiting)
                catalog.insert_segment(SegmentRow(name, "vision", count, count * clips, int(waiting[0].ids[0])))
                waiting.clear()
        print(f"\r{ids[-1]:,} videos in {time.perf_counter() - begun:.0f} s", end="", flush=True)
    with catalog.changes():
        name, count = write_joined(folder / "segments", "speech", talks), sum(len(part.ids) for part in talks)
        rows = sum(part.rows for part in talks)
        catalog.insert_segment(SegmentRow(name, "speech", count, rows, int(talks[0].ids[0])))
    catalog.close()
    with LibraryStore.open(folder, create=False) as library:
        library.refresh_plans()
    print(f", with its plans in {time.perf_counter() - begun:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--like", type=Path, required=True)
    parser.add_argument("--videos", type=int, default=100_000)
    parser.add_argument("--clips", type=int, default=20)
    asked = parser.parse_args()
    make_library(asked.folder, asked.like, asked.videos, asked.clips)


if __name__ == "__main__":
    main()
