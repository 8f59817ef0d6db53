from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.store import write_features


def test_arrays_come_back_as_float32(tmp_path: Path) -> None:
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.ones((1, 3))}
    assert write_features(tmp_path / "x.h5", arrays) == 2
    with h5py.File(tmp_path / "x.h5") as file:
        assert set(file) == {"a", "b"}
        assert file["b"].dtype == np.float32
        assert file["b"][()].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_equal_arrays_give_equal_files(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write_features(tmp_path / name, ((str(i), np.full((i + 1, 4), i)) for i in range(50)))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[str, np.ndarray]]:
        yield "a", np.zeros((1, 2))
        raise KeyboardInterrupt

    (tmp_path / "x.h5").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_features(tmp_path / "x.h5", broken())
    assert [p.name for p in tmp_path.iterdir()] == ["x.h5"]
    assert (tmp_path / "x.h5").read_bytes() == b"old"


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="cannot be written"):
        write_features(tmp_path / "no" / "x.h5", {})


def test_failing_delete_does_not_hide_the_original_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(1, "not permitted")

    def pairs() -> Iterator[tuple[str, np.ndarray]]:
        yield "a", np.ones((2, 3))
        raise ValueError("the source is broken")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(ValueError, match="the source is broken"):
        write_features(tmp_path / "x.h5", pairs())
    assert not (tmp_path / "x.h5").exists()
