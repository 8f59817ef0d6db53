"""The same features in every layout that people keep them in."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data
from momentseek.models.features.sources import READERS, open_source
from momentseek.models.features.store import Features, FeatureStream, write_npz_folder

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(3, 2),
    "b": np.ones((1, 2), np.float32),
}
Layout = Callable[[Path], Path]


def npz(folder: Path) -> Path:
    write_npz_folder(folder / "clip", ((name, {"features": rows}) for name, rows in ARRAYS.items()))
    return folder / "clip"


def npy(folder: Path) -> Path:
    (folder / "pann").mkdir()
    for name, rows in ARRAYS.items():
        np.save(folder / "pann" / f"{name}.npy", rows.astype(np.float16))
    return folder / "pann"


def pt_folder(folder: Path) -> Path:
    (folder / "pt").mkdir()
    for name, rows in ARRAYS.items():
        torch.save(torch.from_numpy(rows).bfloat16(), folder / "pt" / f"{name}.pt")
    return folder / "pt"


def pt_file(folder: Path) -> Path:
    torch.save({name: torch.from_numpy(rows) for name, rows in ARRAYS.items()}, folder / "all.pt")
    return folder / "all.pt"


def old_pt_file(folder: Path) -> Path:
    found = {name: torch.from_numpy(rows) for name, rows in ARRAYS.items()}
    torch.save(found, folder / "old.pth", _use_new_zipfile_serialization=False)
    return folder / "old.pth"


def safetensors_folder(folder: Path) -> Path:
    (folder / "st").mkdir()
    for name, rows in ARRAYS.items():
        save_file({"features": torch.from_numpy(rows)}, folder / "st" / f"{name}.safetensors")
    return folder / "st"


def safetensors_file(folder: Path) -> Path:
    save_file({name: torch.from_numpy(rows).half() for name, rows in ARRAYS.items()}, folder / "all.safetensors")
    return folder / "all.safetensors"


def hdf5(folder: Path) -> Path:
    with h5py.File(folder / "all.h5", "w") as file:
        for name, rows in ARRAYS.items():
            file[name] = rows
    return folder / "all.h5"


LAYOUTS = [npz, npy, pt_folder, pt_file, old_pt_file, safetensors_folder, safetensors_file, hdf5]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_is_read_from_every_layout(layout: Layout, tmp_path: Path) -> None:
    with Features(layout(tmp_path)) as features:
        assert features.names == ("a", "b")
        assert (features.dim, features.rows("a"), "a" in features, "z" in features) == (2, 3, True, False)
        for name, rows in ARRAYS.items():
            assert features.read(name).dtype == np.float32
            np.testing.assert_array_equal(features.read(name), rows)
        assert len(features.fingerprint) == 16
        assert features.sources[0].dtype("a")
        assert features.sources[0].size > 0
        with pytest.raises(MomentseekError, match="no features for video z; extract it"):
            features.rows("z")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_value_is_another_fingerprint(layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Features(layout(tmp_path / "one")) as one:
        first = one.fingerprint
    monkeypatch.setitem(ARRAYS, "b", np.full((1, 2), 2, np.float32))
    with Features(layout(tmp_path / "two")) as two:
        assert two.fingerprint != first


def test_queries_go_by_their_numbers(tmp_path: Path) -> None:
    words = {"last_hidden_state": np.ones((4, 3)), "pooler_output": np.ones(3)}
    write_npz_folder(tmp_path / "text", [("qid7", words), ("qid12", words)])
    with Features(tmp_path / "text", "query") as queries:
        assert queries.names == ("12", "7")
        assert queries.read("7").shape == (4, 3)


def test_the_array_can_be_named(tmp_path: Path) -> None:
    write_npz_folder(tmp_path / "x", [("a", {"left": np.ones((2, 3)), "right": np.zeros((2, 5))})])
    with Features(FeatureStream(tmp_path / "x", key="right")) as features:
        assert features.dim == 5
    with Features(tmp_path / "x") as features, pytest.raises(MomentseekError, match=r"several arrays \(left, right\)"):
        features.rows("a")
    with (
        Features(FeatureStream(tmp_path / "x", key="up")) as features,
        pytest.raises(MomentseekError, match="has no array 'up'; it has left, right"),
    ):
        features.rows("a")


def test_streams_are_normalised_apart_and_cut_to_the_shortest(tmp_path: Path) -> None:
    """As Moment-DETR joins SlowFast and CLIP: x / (|x| + 1e-5) of each, the shorter one's clips."""
    slow, clip = np.array([[3.0, 4.0]] * 9), np.array([[0.0, 2.0, 0.0]] * 5)
    write_npz_folder(tmp_path / "slow", [("v", {"features": slow})])
    write_npz_folder(tmp_path / "clip", [("v", {"features": clip})])
    streams = [FeatureStream(tmp_path / name, normalise=True) for name in ("slow", "clip")]
    with Features(streams, shortest=True) as features:
        expected = np.hstack([slow[:5] / (5 + 1e-5), clip / (2 + 1e-5)])
        np.testing.assert_allclose(features.read("v"), expected, rtol=1e-6)
    with Features(streams) as features, pytest.raises(MomentseekError, match=r"has 9 and 5 rows.*shortest = true"):
        features.rows("v")


def test_a_data_folder_declares_them(tmp_path: Path) -> None:
    npz(tmp_path)
    write_npz_folder(tmp_path / "text", [("qid1", {"last_hidden_state": np.ones((2, 4))})])
    (tmp_path / "val.jsonl").write_text(
        '{"qid": 1, "query": "x", "vid": "a", "duration": 6, "relevant_windows": [[0, 2]]}\n'
    )
    (tmp_path / "data.toml").write_text(
        'clip_seconds = 2\n[features]\nvideo = [{path = "clip", normalise = true}]\nshortest = true\n'
        '[splits.val]\ntruth = "val.jsonl"\nquery = {path = "text", key = "last_hidden_state"}\n'
    )
    with Data.open(tmp_path) as data:
        data.check(["val"])
        assert data.dims.video == 2
        assert data.dims.query == 4
        assert data.video is not None
        assert np.linalg.norm(data.video.read("b")) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ('[{path = "clip", normalize = true}]', "normalize = True is not understood; known are path, key, normalise"),
        ("[{key = 'x'}]", "must be a file name or a list of them, or tables"),
        ('[{path = "clip", key = 3}]', "key = 3 is not understood"),
    ],
)
def test_wrong_declarations_are_said(declared: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "data.toml").write_text(
        f'[features]\nvideo = {declared}\n[splits.val]\ntruth = "v.jsonl"\nquery = "q.h5"\n'
    )
    with pytest.raises(MomentseekError, match=re.escape(sentence)):
        Data.open(tmp_path)


class Payload:
    """What would run if it were unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("the pickle was run",))


def pickled_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[Payload()]], dtype=object), allow_pickle=True)
    return file.getvalue()


def pickled_npz() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("features.npy", pickled_npy())
    return file.getvalue()


def pickled_pt() -> bytes:
    file = io.BytesIO()
    torch.save({"features": Payload()}, file)
    return file.getvalue()


def expanded_pt() -> bytes:
    """A tensor of one number that claims to be a table of 10^14."""
    file = io.BytesIO()
    torch.save(torch.ones(1).expand(10**7, 10**7), file)
    return file.getvalue()


def huge_npy() -> bytes:
    """A header that promises more than the file holds."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (10**7, 10**7)})
    return file.getvalue()


def bomb_npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, features=np.zeros((200, 10**5), np.float32))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.npy", pickled_npy, "holds Python objects, which are never loaded"),
        ("a.npz", pickled_npz, "holds Python objects, which are never loaded"),
        ("a.pt", pickled_pt, "holds Python objects, which are never loaded"),
        ("a.pt", lambda: pickle.dumps(Payload()), "video a "),
        ("a.pt", expanded_pt, "more than"),
        ("a.npy", huge_npy, "more than"),
        ("a.npz", bomb_npz, "as a decompression bomb does"),
        ("a.npz", lambda: b"PK\x03\x04 broken", "video a cannot be read"),
        ("a.npz", lambda: b"", "video a cannot be read"),
        ("a.npy", lambda: b"\x93NUMPY\x01\x00", "video a cannot be read"),
        ("a.safetensors", lambda: b"\xff" * 40, "video a cannot be read"),
        ("a.npy", lambda: _saved(np.ones(3)), r"must be a table of numbers (rows, columns), not (3,)"),
        ("a.npy", lambda: _saved(np.array([["x"]])), r"must be a table of numbers"),
        ("a.npy", lambda: _saved(np.array([[np.nan, 1.0]])), "values that are no numbers"),
    ],
)
def test_hostile_and_damaged_files_are_one_sentence(
    name: str, content: Callable[[], bytes], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / name).write_bytes(content())
    with Features(tmp_path / "x") as features, pytest.raises(MomentseekError) as found:
        features.read("a")
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)
    assert "pickle was run" not in capsys.readouterr().out


def _saved(rows: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


def test_two_files_of_one_video_are_refused(tmp_path: Path) -> None:
    folder = npz(tmp_path)
    np.save(folder / "a.npy", ARRAYS["a"])
    with Features(folder) as features, pytest.raises(MomentseekError, match=r"both a\.npy and a\.npz"):
        _ = features.names


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: (path / "data.mdb").write_bytes(b""), "is an LMDB, read by the plug-in lmdb of examples/plugin"),
        (lambda path: (path / "0.tar").write_bytes(b""), "is a WebDataset, read by the plug-in webdataset"),
        (lambda path: (path / "notes.txt").write_text("x"), "is a folder without feature files; features are read"),
    ],
)
def test_what_no_reader_takes_is_said(make: Callable[[Path], object], sentence: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(MomentseekError, match=sentence):
        open_source(tmp_path, "video")


def test_a_dict_that_is_no_dict_is_said(tmp_path: Path) -> None:
    torch.save(torch.ones(3, 2), tmp_path / "all.pt")
    with pytest.raises(MomentseekError, match="holds Tensor and not a dict by video; put one file per video"):
        open_source(tmp_path / "all.pt", "video")


def test_every_reader_says_what_it_reads() -> None:
    assert {"folder", "hdf5", "pt", "safetensors"} <= set(READERS)
    assert all(reader.about for reader in READERS.values())
