"""Real captions as pictures: the variant of the simulated corpus that is closest to real language.

Videos, times and captions are those of TVR's annotations. The features of a clip are generated from words: a fixed
random non-linear transform of the vectors of 50 to 70 % of its caption's content words, and of unrelated sentences
throughout the video. So co-occurrences are real, and a model must learn to map pictures back to words. The lists are
based on MiniLM's similarity; the level of a moment is a step function of it, with annotators' errors.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from momentseek.benchmarks.datasets.common import top_similar, words, write_folder
from momentseek.benchmarks.simulation.captions import TEST_SHARE, VAL_SHARE
from momentseek.benchmarks.simulation.files import TRAINING_LIST_LENGTHS
from momentseek.benchmarks.simulation.relevance import BATCH_MOMENTS, draw_consensus
from momentseek.benchmarks.simulation.settings import CLIP_SECONDS, MIN_DIM, MIN_QUERIES, MIN_VIDEOS
from momentseek.benchmarks.simulation.variants import Variant
from momentseek.benchmarks.simulation.vectors import clip_count, clip_shares
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_truth
from momentseek.models.features.data import DATA_FILE
from momentseek.models.features.store import write_features
from momentseek.recognition.encoders.protocol import WordEncoder
from momentseek.recognition.encoders.registry import word_encoder

FREQUENT_WORDS = 60
"""Number of the most frequent words, which are not shown because they say little."""
SHOWN_SHARE = (0.5, 0.7)
DISTRACTOR_STRENGTH = 0.7
DISTRACTOR_SECONDS = (6.0, 20.0)
NOISE_LENGTH = 0.4
LEVEL_COSINES = (0.35, 0.5, 0.65, 0.8)
"""Minimum cosines of query and caption for levels 1, 2, 3 and 4."""
LEVELS_FILE = "levels.npz"
"""The level of every moment for every query of val and test."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class WordPictureSettings:
    """The settings of a corpus of words as pictures; the same settings and annotations give the same files."""

    queries: int = 5000
    seed: int = 0
    video_dim: int = 256
    videos: int | None = None
    """Number of videos drawn from the annotations; None for all."""

    def __post_init__(self) -> None:
        for name, least in (("queries", MIN_QUERIES), ("video_dim", MIN_DIM), ("seed", 0), ("videos", MIN_VIDEOS)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise MomentseekError(f"{parameter(name)} is {value}; give at least {least}")

    def random(self, purpose: str) -> np.random.Generator:
        """Return a separate random generator for every purpose."""
        return np.random.default_rng([self.seed, int.from_bytes(purpose.encode())])


def simulate_words(
    annotations: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: WordPictureSettings | None = None,
    *,
    encoder: WordEncoder | None = None,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, int]:
    """Write a corpus of words as pictures to the folder ``out`` and return its sizes.

    ``annotations`` are captions with times and durations of videos in any format of truths, such as TVR's. MiniLM
    encodes texts unless another encoder is given.
    """
    settings = settings or WordPictureSettings()
    encoder = encoder or word_encoder("minilm")
    truth = read_truth(Path(annotations))
    if truth.queries is None or not np.isfinite(truth.durations).all():
        raise MomentseekError(f"{annotations}: has no texts or no durations of videos; give annotations like TVR's")
    if settings.videos is not None:
        truth = _draw_videos(truth, settings.videos, settings.random("videos"))
    assert truth.queries is not None
    if len(truth.start) < settings.queries:
        raise MomentseekError(
            f"{annotations}: has {len(truth.start):,} captions, fewer than {settings.queries:,} queries; "
            f"ask for fewer ({parameter('queries')})"
        )
    captions = [truth.queries[q] for q in truth.row_query.tolist()]
    asked = settings.random("queries").permutation(len(captions))[: settings.queries]
    vectors = encoder.encode(captions)
    near, cosine = top_similar(vectors[asked], vectors, max(TRAINING_LIST_LENGTHS))
    with write_folder(out, force) as folder:
        _write_lists(folder, truth, captions, asked, near, cosine, settings)
        texts = [captions[row] for row in asked.tolist()]
        write_features(
            folder / "query.h5", {str(i + 1): v.astype(np.float32) for i, v in enumerate(encoder.words(texts))}
        )
        shown = content_words(captions)
        known = sorted({word for caption in shown for word in caption})
        meaning = dict(zip(known, encoder.encode(known), strict=True))
        write_features(folder / "video.h5", _clips(truth, shown, meaning, settings, progress))
        _write_data(folder, settings)
        _write_levels(folder, truth, vectors, asked)
    return {"videos": len(truth.videos), "moments": len(captions), "queries": len(asked), "words": len(known)}


def _draw_videos(truth: Judgements, count: int, rng: np.random.Generator) -> Judgements:
    """Return the captions of ``count`` random videos."""
    drawn = np.isin(truth.video, rng.permutation(len(truth.videos))[:count])
    rows = np.flatnonzero(drawn)
    query = truth.row_query[rows]
    return Judgements.from_groups(
        [truth.query_ids[q] for q in query.tolist()],
        [1] * len(rows),
        [truth.videos[v] for v in truth.video[rows].tolist()],
        truth.start[rows],
        truth.end[rows],
        truth.relevance[rows],
        queries=None if truth.queries is None else [truth.queries[q] for q in query.tolist()],
        durations=dict(zip(truth.videos, truth.durations.tolist(), strict=True)),
        source=truth.source,
    )


def content_words(captions: Sequence[str], frequent: int = FREQUENT_WORDS) -> list[list[str]]:
    """Return the words of each caption without the most frequent ones; all its words if none would be left.

    >>> content_words(["a dog", "a cat", "a"], frequent=1)
    [['dog'], ['cat'], ['a']]
    """
    split = [words(caption) for caption in captions]
    common = {word for word, _ in Counter(word for caption in split for word in caption).most_common(frequent)}
    return [[word for word in caption if word not in common] or caption for caption in split]


def _clips(
    truth: Judgements,
    shown: list[list[str]],
    meaning: dict[str, Floats],
    settings: WordPictureSettings,
    progress: Callable[[int], None],
) -> Iterator[tuple[str, Floats]]:
    """Yield name and features of every video, ``tanh(A y)``."""
    rng = settings.random("pictures")
    width = len(next(iter(meaning.values())))
    camera = 1.5 * rng.standard_normal((width, settings.video_dim))
    rows_of: list[list[int]] = [[] for _ in truth.videos]
    for row, video in enumerate(truth.video.tolist()):
        rows_of[video].append(row)
    for video, name in enumerate(truth.videos):
        seconds = float(truth.durations[video])
        clips = clip_count(seconds)
        seen = np.zeros((clips, width))
        for row in rows_of[video]:
            share = clip_shares(clips, float(truth.start[row]), float(truth.end[row]))
            seen += share[:, None] * _picture(shown[row], meaning, rng)
        at = 0.0
        while at < seconds:
            until = at + float(rng.uniform(*DISTRACTOR_SECONDS))
            other = shown[int(rng.integers(len(shown)))]
            strength = DISTRACTOR_STRENGTH * clip_shares(clips, at, min(until, seconds))
            seen += strength[:, None] * _picture(other, meaning, rng)
            at = until
        seen += rng.standard_normal(seen.shape) * (NOISE_LENGTH / np.sqrt(width))
        yield name, np.tanh(seen @ camera).astype(np.float32)
        progress(1)


def _picture(caption: list[str], meaning: dict[str, Floats], rng: np.random.Generator) -> FloatArray:
    """Return the normalised sum of the vectors of some of the words."""
    count = max(1, round(float(rng.uniform(*SHOWN_SHARE)) * len(caption)))
    total = np.sum([meaning[caption[i]] for i in rng.permutation(len(caption))[:count].tolist()], axis=0)
    result: FloatArray = total / max(float(np.linalg.norm(total)), 1e-9)
    return result


def _write_lists(
    folder: Path, truth: Judgements, captions: list[str], asked: IntArray, near: IntArray, cosine: Floats,
    settings: WordPictureSettings,
) -> None:  # fmt: skip
    """Write training lists, judged moments and the corpus, like TVR-Ranking's."""
    splits = split_rows(len(asked))

    def entry(row: int, top: int, levels: IntArray | None = None) -> dict[str, Any]:
        moments = []
        for rank, (moment, value) in enumerate(zip(near[row, :top].tolist(), cosine[row, :top].tolist(), strict=True)):
            video = int(truth.video[moment])
            found = {
                "pair_id": row * top + rank,
                "video_name": truth.videos[video],
                "timestamp": [float(truth.start[moment]), float(truth.end[moment])],
                "duration": float(truth.durations[video]),
                "caption": captions[moment],
                "similarity": round(max(0.0, value), 4),
            }
            moments.append(found if levels is None else found | {"relevance": int(levels[rank])})
        moments = [m for m in moments if m.get("relevance", 0) >= 0]  # annotators did not agree
        return {"query_id": row + 1, "query": captions[asked[row]], "relevant_moment": moments}

    _write(folder / "video_corpus.json", dict(zip(truth.videos, truth.durations.tolist(), strict=True)))
    for top in TRAINING_LIST_LENGTHS:
        _write(folder / f"train_top{top:02d}.json", [entry(row, top) for row in splits["train"]])
    for split in ("val", "test"):
        first, last = splits[split].start, splits[split].stop
        levels = np.searchsorted(LEVEL_COSINES, cosine[first:last], side="right").astype(np.int64)
        judged = draw_consensus(levels, Variant().annotator_error, settings.random(f"judging {split}"))
        rows = [entry(row, 2 * BATCH_MOMENTS, judged[row - first]) for row in range(first, last)]
        _write(folder / f"{split}.json", rows)


def split_rows(queries: int) -> dict[str, range]:
    """Return the positions of each split's queries among all.

    >>> split_rows(100)
    {'train': range(0, 80), 'val': range(80, 85), 'test': range(85, 100)}
    """
    val, test = max(1, round(VAL_SHARE * queries)), max(1, round(TEST_SHARE * queries))
    train = queries - val - test
    return {"train": range(train), "val": range(train, train + val), "test": range(train + val, queries)}


def _write_levels(folder: Path, truth: Judgements, vectors: Floats, asked: IntArray) -> None:
    """Write the level of every moment for every query of val and test, without annotators' errors."""
    splits = split_rows(len(asked))
    levels = {
        split: np.searchsorted(LEVEL_COSINES, vectors[asked[list(splits[split])]] @ vectors.T, side="right")
        for split in ("val", "test")
    }
    np.savez_compressed(
        folder / LEVELS_FILE, video=truth.video, start=truth.start, end=truth.end, videos=np.array(truth.videos),
        val=levels["val"].astype(np.int8), test=levels["test"].astype(np.int8),
    )  # fmt: skip


def _write_data(folder: Path, settings: WordPictureSettings) -> None:
    names = [*(f"train_top{n:02d}" for n in TRAINING_LIST_LENGTHS), "val", "test"]
    table = {
        "name": f"words as pictures, seed {settings.seed}",
        "clip_seconds": CLIP_SECONDS,
        "simulated": True,
        "features": {"video": ["video.h5"]},
        "splits": {n: {"truth": f"{n}.json", "query": "query.h5", "corpus": "video_corpus.json"} for n in names},
    }
    (folder / DATA_FILE).write_text(tomli_w.dumps(table), encoding="utf-8", newline="\n")
    _write(folder / "settings.json", {"what": "real captions as pictures: no real videos", **asdict(settings)})


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8", newline="\n")
