"""A small data folder, made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three videos of 4, 5 and 6 clips, two queries, one split."""
    rng = np.random.default_rng(0)
    lengths = {"a": 4, "b": 5, "c": 6}
    write(tmp_path / "video.h5", {v: rng.normal(size=(n, 6)) for v, n in lengths.items()})
    write(tmp_path / "subtitle.h5", {v: rng.normal(size=(n, 3)) for v, n in lengths.items()})
    write(tmp_path / "query.h5", {"1": rng.normal(size=(2, 3)), "2": rng.normal(size=(4, 3))})
    (tmp_path / "corpus.json").write_text(json.dumps({v: n * 1.5 for v, n in lengths.items()}))
    moments = [{"video_name": "a", "timestamp": [0, 3]}, {"video_name": "b", "timestamp": [1, 4.5]}]
    truth = [{"query_id": i, "query": "q", "relevant_moment": [m]} for i, m in enumerate(moments, start=1)]
    (tmp_path / "train.json").write_text(json.dumps(truth))
    (tmp_path / "data.toml").write_text(
        'name = "three"\n[features]\nvideo = ["video.h5"]\nsubtitle = "subtitle.h5"\n'
        '[splits.train]\ntruth = "train.json"\nquery = "query.h5"\ncorpus = "corpus.json"\n'
    )
    return tmp_path


def write(path: Path, tables: dict[str, np.ndarray]) -> None:
    with h5py.File(path, "w") as file:
        for name, values in tables.items():
            file.create_dataset(name, data=values.astype(np.float32))


@pytest.fixture
def write_features() -> Callable[[Path, dict[str, np.ndarray]], None]:
    return write
