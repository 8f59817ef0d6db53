"""A matcher without training steps: least squares from queries to clips, and a scan over spans."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth

MEASURE = "NDCG@20[IoU>=0.5]"
LENGTHS = (1, 2, 3, 4, 6, 8, 12, 18)
RIDGE = 0.03
CLIP = 1.5


def clips_of(folder: Path, streams: tuple[str, ...]) -> tuple[list[str], list[FloatArray]]:
    """Clips of every video, less the video's mean (its style), in units of the noise."""
    files = [h5py.File(folder / f"{name}.h5", "r") for name in streams]
    names = list(files[0])
    clips = []
    for name in names:
        parts = [np.asarray(f[name], dtype=np.float64) for f in files]
        clips.append(np.concatenate([p - p.mean(axis=0) for p in parts], axis=1))
    for file in files:
        file.close()
    scale = np.concatenate(clips).std(axis=0) + 1e-9
    return names, [c / scale for c in clips]


def queries_of(folder: Path, ids: tuple[str, ...]) -> FloatArray:
    with h5py.File(folder / "query.h5", "r") as file:
        means = np.stack([np.asarray(file[i], dtype=np.float64).mean(axis=0) for i in ids])
    return np.concatenate([means, np.ones((len(means), 1))], axis=1)


def linear_score(folder: Path, streams: tuple[str, ...] = ("video", "subtitle"), train: str = "train_top40") -> float:
    """NDCG@20[IoU>=0.5] on test of the least-squares map learnt from the training list."""
    names, clips = clips_of(folder, streams)
    place = {name: i for i, name in enumerate(names)}
    truth = read_truth(folder / f"{train}.json")
    inside = np.zeros((len(truth.start), clips[0].shape[1]))
    for row, (code, start, end) in enumerate(zip(truth.video, truth.start, truth.end, strict=True)):
        film = clips[place[truth.videos[code]]]
        first = min(int(start / CLIP), len(film) - 1)
        inside[row] = film[first : max(first + 1, round(end / CLIP))].mean(axis=0)
    asked = queries_of(folder, truth.query_ids)
    similarity = np.array(truth.columns["similarity"], dtype=np.float64)
    target = np.stack([np.average(inside[a:b], axis=0, weights=similarity[a:b]) for a, b in pairwise(truth.offsets)])
    gram = asked.T @ asked + RIDGE * np.eye(asked.shape[1])
    mapping = np.linalg.solve(gram, asked.T @ target)
    return rank(folder, names, clips, mapping)


def rank(folder: Path, names: list[str], clips: list[FloatArray], mapping: FloatArray) -> float:
    test = read_truth(folder / "test.json")
    asked = queries_of(folder, test.query_ids)
    vectors = (asked - asked.mean(axis=0)) @ mapping
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    best = np.full((len(test), len(names)), -np.inf)
    spans = np.zeros((len(test), len(names), 2))
    for column, film in enumerate(clips):
        curve = np.concatenate([np.zeros((len(test), 1)), np.cumsum(vectors @ film.T, axis=1)], axis=1)
        for length in LENGTHS:
            if length > len(film):
                break
            score = (curve[:, length:] - curve[:, :-length]) / np.sqrt(length)
            at = score.argmax(axis=1)
            value = score[np.arange(len(at)), at]
            better = value > best[:, column]
            best[better, column] = value[better]
            spans[better, column] = np.stack([at, at + length], axis=1)[better] * CLIP
    order = np.argsort(-best, axis=1)[:, :20]
    rows = np.arange(len(test))[:, None]
    run = Run.from_groups(
        test.query_ids,
        [order.shape[1]] * len(test),
        [names[i] for i in order.ravel()],
        spans[rows, order, 0].ravel(),
        spans[rows, order, 1].ravel(),
        best[rows, order].ravel(),
    )
    return float(evaluate(run, test, MEASURE).means[MEASURE])
