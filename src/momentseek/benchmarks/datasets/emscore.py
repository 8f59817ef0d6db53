"""EMScore: how well a sentence matches a video, by CLIP's vectors of its words and of frames (MVMR, section 4.2).

.. math:: P = \\frac{\\sum_w idf(w) \\max_f w \\cdot f}{\\sum_w idf(w)}, \\quad
          R = \\frac{1}{|F|} \\sum_f \\max_w f \\cdot w, \\quad
          EMScore = \\frac{1}{2} \\left( \\frac{2 P R}{P + R} + \\cos(s, \\bar f) \\right)

with words w (including the start and end tokens) and frames f of length 1, the whole sentence s and the mean of the
frames (Shi et al., CVPR 2022, eq. 1 to 6). ``idf(w) = log((n + 1) / (c + 1))`` if c of n sentences contain w.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.benchmarks.datasets.massive import VisualScore
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.progress import ShowCount
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.encoders.things import unit_vectors

TEXTS_AT_ONCE = 256


def emscores(words: Vectors, weights: FloatArray, sentence: Vectors, frames: Vectors, begin: IntArray) -> FloatArray:
    """Return the EMScore of a sentence with each video; the frames of video i start at row ``begin[i]``.

    >>> words, frames = np.eye(2, dtype=np.float32), np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    >>> emscores(words, np.array([1.0, 3.0]), words[1], frames, np.array([0, 2])).round(3).tolist()
    [0.661, 0.929]
    """
    table = words @ frames.T
    counts = np.diff([*begin.tolist(), len(frames)])
    total = weights.sum()
    shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    precision = shares @ np.maximum.reduceat(table, begin, axis=1)
    recall = np.add.reduceat(table.max(axis=0), begin) / counts
    mean = np.add.reduceat(frames, begin, axis=0)
    whole = mean @ sentence / np.maximum(np.linalg.norm(mean, axis=1), 1e-12)
    both = precision + recall
    fine = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both != 0)
    found: FloatArray = ((fine + whole) / 2).astype(np.float64)
    return found


def inverse_frequencies(sentences: Sequence[IntArray]) -> dict[int, float]:
    """Return ``log((n + 1) / (c + 1))`` for every token of n sentences, c of which contain it.

    >>> {token: round(value, 3) for token, value in inverse_frequencies([np.array([1, 2, 2]), np.array([1])]).items()}
    {1: 0.0, 2: 0.405}
    """
    counts = Counter(token for tokens in sentences for token in set(tokens.tolist()))
    return {token: float(np.log((len(sentences) + 1) / (c + 1))) for token, c in counts.items()}


def emscore_of(truth: Judgements, frames: str, clip: str | None, progress: ShowCount | None = None) -> VisualScore:
    """Return a function that computes the EMScore of a truth's queries with videos.

    ``frames`` is an HDF5 file with CLIP's vectors of each video's frames, ``clip`` the Hugging Face folder of the same
    CLIP, whose text tower reads the words.
    """
    if clip is None:
        raise MomentseekError(
            f"EMScore compares frames with single words, as CLIP's text tower reads them; name its folder "
            f"({parameter('clip')}). The tables of words that searching uses have no such vectors"
        )
    optional_module("torch", "train")
    from momentseek.models.clip_words import ClipTextTower  # needs torch
    from momentseek.models.features.store import Features

    said = list(truth.queries or ())
    texts = list(dict.fromkeys(said))
    tower, read = ClipTextTower(Path(clip)), dict[str, Any]()
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        some = texts[first : first + TEXTS_AT_ONCE]
        read |= dict(zip(some, tower.read(some), strict=True))
        if progress is not None:
            progress(len(read), len(texts))
    rarity = inverse_frequencies([read[text].tokens for text in said])
    text_of = dict(zip(truth.query_ids, said, strict=True))
    with Features(frames, "frames") as features:
        rows = {video: unit_vectors(features.read(video)) for video in truth.videos if video in features}
        if tower.dim != features.dim:
            raise MomentseekError(
                f"{frames}: frames have {features.dim} columns and words {tower.dim}; give the vectors of the same CLIP"
            )

    def score(query: str, names: Sequence[str]) -> FloatArray:
        found = np.full(len(names), np.nan)
        there = [at for at, name in enumerate(names) if len(rows.get(name, ()))]
        if there:
            parts, own = [rows[names[at]] for at in there], read[text_of[query]]
            begin = np.cumsum([0, *map(len, parts[:-1])])
            weights = np.array([rarity[token] for token in own.tokens.tolist()])
            found[there] = emscores(own.words, weights, own.sentence, np.concatenate(parts), begin)
        return found

    return score
