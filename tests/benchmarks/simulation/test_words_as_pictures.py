"""Real captions as pictures, with a fast encoder: a fixed random vector for each word."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from momentseek.benchmarks.simulation.truths import full_truth, load_known
from momentseek.benchmarks.simulation.words_as_pictures import WordPictureSettings, simulate_words
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_truth
from momentseek.models.features.data import Data

SETTINGS = WordPictureSettings(queries=40, seed=1, video_dim=32)


class HashedWords:
    """A fixed random vector for each word, and their sum for a text."""

    name, dim = "hashed", 24

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.stack([rows.sum(0) for rows in self.words(texts)])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def words(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.stack([self._vector(word) for word in text.lower().strip(".").split()]) for text in texts]

    def tokens(self, text: str) -> list[str]:
        return text.split()

    def _vector(self, word: str) -> np.ndarray:
        return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(24).astype(np.float32)


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    verbs, things = ("opens", "lifts", "drops", "kicks", "paints"), ("door", "mug", "letter", "ball", "wall", "lamp")
    lines = []
    for i in range(60):
        text = f"Ann {verbs[rng.integers(5)]} the {things[rng.integers(6)]} near the {things[rng.integers(6)]}."
        start = round(rng.uniform(0, 30), 2)
        video = {"vid_name": f"show_{i // 4}", "duration": 45.0, "ts": [start, start + 6.0]}
        lines.append(json.dumps({**video, "desc": text, "type": "v", "desc_id": i}))
    path = tmp_path / "captions.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_corpus_of_real_captions_can_be_trained_on(annotations: Path, tmp_path: Path) -> None:
    sizes = simulate_words(annotations, tmp_path / "out", SETTINGS, encoder=HashedWords())
    assert sizes["videos"] == 15
    with Data.open(tmp_path / "out") as data:
        train, test = data.split("train_top20").truth, data.split("test").truth
        assert (len(train), len(test)) == (32, 6)
        assert train.counts.max() == 20
        assert data.rows("show_0") == 30
        assert set(test.relevance.tolist()) <= set(range(5))
        similarity = np.array(train.columns["similarity"], float)[train.offsets[:-1]]
        assert similarity.tolist() == pytest.approx([1.0] * 32, abs=1e-3)  # a query's own caption is the first


def test_the_same_settings_give_the_same_files(annotations: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        simulate_words(annotations, tmp_path / name, SETTINGS, encoder=HashedWords())
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert {"video.h5", "query.h5", "test.json", "data.toml"} <= set(files)
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "two" / f).read_bytes() for f in files)


def test_clips_of_alike_captions_look_alike(annotations: Path, tmp_path: Path) -> None:
    simulate_words(annotations, tmp_path / "out", SETTINGS, encoder=HashedWords())
    with Data.open(tmp_path / "out") as data:
        assert data.video is not None
        rows = [json.loads(line) for line in annotations.read_text().splitlines()]
        middle = []
        for row in rows:
            clips = data.video.read(row["vid_name"])
            middle.append(clips[int((row["ts"][0] + 3) / 1.5)])
        found = np.corrcoef(np.stack(middle))
        vectors = HashedWords().encode([row["desc"] for row in rows])
        off = ~np.eye(len(rows), dtype=bool)
        assert np.corrcoef((vectors @ vectors.T)[off], found[off])[0, 1] > 0.08


def test_too_few_captions_are_refused(annotations: Path, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="fewer than 100 queries"):
        simulate_words(annotations, tmp_path / "out", WordPictureSettings(queries=100), encoder=HashedWords())


def rows_of(truth: Judgements) -> Iterator[tuple[int, int, float, float, int]]:
    columns = (truth.row_query, truth.video, truth.start, truth.end, truth.relevance)
    return zip(*(column.tolist() for column in columns), strict=True)


def test_some_of_the_videos_and_the_true_level_of_every_moment(annotations: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, videos=11)
    assert simulate_words(annotations, tmp_path / "out", settings, encoder=HashedWords())["videos"] == 11
    truth, full = read_truth(tmp_path / "out" / "test.json"), full_truth(load_known(tmp_path / "out"), "test")
    with Data.open(tmp_path / "out") as data:
        assert len(data.split("test").corpus) == 11
    captions = {(r["vid_name"], *r["ts"]): r["desc"] for r in map(json.loads, annotations.read_text().splitlines())}
    known = {}
    for q, v, s, e, level in rows_of(full):
        moment = (full.videos[v], s, e)
        texts = [full.queries[q] if full.queries else "", captions[moment]]
        cosine = float(np.prod(HashedWords().encode(texts), axis=0).sum())
        assert level == sum(cosine >= edge for edge in (0.35, 0.5, 0.65, 0.8))
        known[q, *moment] = int(level)
    off = [abs(known.get((q, truth.videos[v], s, e), 0) - level) for q, v, s, e, level in rows_of(truth)]
    assert len(known) > len(truth) * 5
    assert max(off) <= 2
    assert np.mean(off) < 0.5
