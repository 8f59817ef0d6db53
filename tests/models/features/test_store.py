from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.store import Features

Write = Callable[[Path, dict[str, np.ndarray]], None]


@pytest.fixture
def path(tmp_path: Path, write_features: Write) -> Path:
    write_features(tmp_path / "x.h5", {"a": np.arange(6).reshape(3, 2), "b": np.ones((1, 2))})
    return tmp_path / "x.h5"


def test_reads_what_was_written_and_counts_without_reading(path: Path) -> None:
    with Features(path) as features:
        assert features.names == ("a", "b")
        assert (features.dim, features.rows("a"), features.rows("b")) == (2, 3, 1)
        assert features.read("a").tolist() == [[0, 1], [2, 3], [4, 5]]
        assert features.read("a").dtype == np.float32
        assert "a" in features
        assert "z" not in features


def test_files_are_joined_by_columns_and_cut_to_the_shorter(path: Path, tmp_path: Path, write_features: Write) -> None:
    write_features(tmp_path / "y.h5", {"a": np.full((2, 1), 9.0), "c": np.ones((1, 1))})
    with Features([path, tmp_path / "y.h5"]) as features:
        assert features.names == ("a",)
        assert features.dim == 3
        assert features.read("a").tolist() == [[0, 1, 9], [2, 3, 9]]


def test_files_of_different_clips_are_refused(path: Path, tmp_path: Path, write_features: Write) -> None:
    write_features(tmp_path / "y.h5", {"a": np.ones((9, 1))})
    with Features([path, tmp_path / "y.h5"]) as features, pytest.raises(MomentseekError, match="3 and 9 rows"):
        features.read("a")


def test_companions_are_no_features(tmp_path: Path, write_features: Write) -> None:
    write_features(tmp_path / "sub.h5", {"a": np.ones((2, 3)), "a-mask": np.ones(2), "a-lengths": np.ones(2)})
    with Features(tmp_path / "sub.h5") as features:
        assert features.names == ("a",)


def test_a_missing_key_is_named_with_a_remedy(path: Path) -> None:
    with Features(path) as videos, pytest.raises(MomentseekError, match=r"no features for video z; extract it, or"):
        videos.read("z")
    with Features(path, "query") as queries, pytest.raises(MomentseekError, match=r"no features for query z; encode"):
        queries.rows("z")


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="there is no such feature file"):
        Features(tmp_path / "none.h5")


def test_a_file_that_is_not_hdf5_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.h5").write_bytes(b"features, honestly" * 100)
    with pytest.raises(MomentseekError, match="is not an HDF5 file"):
        Features(tmp_path / "x.h5")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_file_cut_in_the_middle_is_said_when_opened(tmp_path: Path, write_features: Write, share: float) -> None:
    file = tmp_path / "x.h5"
    write_features(file, {f"v{i}": np.ones((50, 20)) for i in range(20)})
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    with pytest.raises(MomentseekError, match="ends in the middle"):
        Features(file)


def test_damage_inside_a_file_is_said_when_read(tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    with h5py.File(file, "w") as f:
        f.create_dataset("a", data=np.random.default_rng(0).normal(size=(200, 20)), compression="gzip", fletcher32=True)
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 400] = b"\x00" * 400
    file.write_bytes(bytes(raw))
    with Features(file) as features, pytest.raises(MomentseekError, match="video a cannot be read"):
        features.read("a")


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (np.ones(3), "must be a table of numbers"),
        (np.ones((2, 2, 2)), "must be a table of numbers"),
        (np.array([[1.0, np.nan]]), "values that are no numbers"),
        (np.array([[1.0, np.inf]]), "values that are no numbers"),
        (np.ones((2, 5)), "has 5 columns and others have 2"),
    ],
    ids=["flat", "deep", "nan", "inf", "columns"],
)
def test_wrong_values_are_said(tmp_path: Path, write_features: Write, values: np.ndarray, what: str) -> None:
    write_features(tmp_path / "x.h5", {"a": np.ones((1, 2)), "b": values})
    with Features(tmp_path / "x.h5") as features, pytest.raises(MomentseekError, match=what):
        features.read("b")


def test_an_empty_file_is_said(tmp_path: Path, write_features: Write) -> None:
    write_features(tmp_path / "x.h5", {})
    with Features(tmp_path / "x.h5") as features, pytest.raises(MomentseekError, match="holds no features"):
        _ = features.dim


def test_reading_after_closing_is_said(path: Path) -> None:
    features = Features(path)
    assert features.dim == 2
    features.close()
    with pytest.raises(MomentseekError, match="was closed"):
        features.read("a")


def test_threads_read_the_same(tmp_path: Path, write_features: Write) -> None:
    tables = {f"v{i}": np.full((20, 8), float(i)) for i in range(30)}
    write_features(tmp_path / "x.h5", tables)
    wrong: list[str] = []
    with Features(tmp_path / "x.h5") as features:

        def work() -> None:
            wrong.extend(n for n, t in tables.items() if not np.array_equal(features.read(n), t))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert wrong == []


def test_fingerprints_tell_files_apart(tmp_path: Path, write_features: Write) -> None:
    for name, first in (("x", 1.0), ("y", 1.0), ("z", 2.0)):
        write_features(tmp_path / f"{name}.h5", {"a": np.full((2, 2), first), "b": np.ones((2, 2))})
    prints = [Features(tmp_path / f"{n}.h5").fingerprint for n in "xyz"]
    assert prints[0] == prints[1] != prints[2]


def test_the_fingerprint_sees_every_shape_and_entries_in_between(tmp_path: Path, write_features: Write) -> None:
    def of(changed: dict[str, np.ndarray]) -> str:
        write_features(tmp_path / "x.h5", {f"v{i:02}": np.ones((4, 2)) for i in range(20)} | changed)
        with Features(tmp_path / "x.h5") as features:
            return features.fingerprint

    plain = of({})
    assert of({}) == plain
    assert of({"v07": np.full((4, 2), 2.0)}) != plain
    assert of({"v07": np.ones((2, 4))}) != plain  # as many bytes, another shape
    assert of({"v07": np.ones((4, 2)), "v08": np.ones(3)}) != plain  # no table, and perhaps not used


def test_the_fingerprint_of_many_entries_reads_a_few_dozen(
    tmp_path: Path, write_features: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_features(tmp_path / "x.h5", {f"v{i:03}": np.ones((1, 2)) for i in range(300)})
    read: list[str] = []
    get = h5py.Dataset.__getitem__

    def noted(self: h5py.Dataset, *args: object) -> object:
        read.append(self.name.lstrip("/"))
        return get(self, *args)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", noted)
    with Features(tmp_path / "x.h5") as features:
        assert features.fingerprint
    assert 24 <= len(read) <= 60
    assert (read[0], read[-1]) == ("v000", "v299")


def test_other_columns_are_found_without_reading(tmp_path: Path, write_features: Write) -> None:
    write_features(tmp_path / "x.h5", {"a": np.ones((1, 2)), "b": np.ones((1, 5))})
    with Features(tmp_path / "x.h5") as features:
        assert features.rows("a") == 1
        with pytest.raises(MomentseekError, match="video b has 5 columns and others have 2"):
            features.rows("b")
