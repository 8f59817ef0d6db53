"""Files that are damaged, or made to do harm, get one sentence from every reader and take no memory to speak of."""

from __future__ import annotations

import json
import random
import resource
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import save_file

from momentseek.benchmarks.datasets.massive import read_visual_scores
from momentseek.cli import cli
from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats.document import open_document
from momentseek.models.features.data import Data, Dims, read_related
from momentseek.models.features.store import Features
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import load_checkpoint, save_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.recognition.encoders.vector_file import read_vector_file
from momentseek.recognition.exported.manifest import MANIFEST_FILE, fingerprint_of, read_encoder_manifest, sources_of
from momentseek.recognition.weights.files import sha256

MUTANTS_PER_FILE = 20
MAX_EXTRA_BYTES = 100e6
"""Memory that reading a small hostile file may take beside what the process has already."""
CONFIG = {"model": {"name": "xml", "hidden": 8, "heads": 2, "max_clips": 40}, "training": {"steps": 6}}
MANIFEST = {
    "format": 1,
    "model": "xml",
    "clip_seconds": 1.5,
    "encoders": {kind: {"spec": "words", "fingerprint": "f", "dim": 8} for kind in ("video", "query")},
    "config": dict.fromkeys(("max_words", "max_clips", "shortest", "longest", "alpha"), 9)
    | {"normalise": True, "endpoints": False},
    "head": {"modalities": 1, "match": 8, "spans": 8, "start": [0.5], "end": [0.5], "end_time": "inclusive"},
}
DATA_TOML = '[features]\nvideo = "video.h5"\n[splits.train]\ntruth = "train.json"\nquery = "query.h5"\n' + (
    '[encoders.video]\nspec = "words"\nfingerprint = "f"\ndim = 8\n'
)


def write_vectors(path: Path) -> None:
    np.savez_compressed(path, texts=np.array(["a man runs", "ein Wörtchen"]), vectors=np.eye(2, dtype=np.float64))


def write_scores(path: Path) -> None:
    np.savez(path, queries=np.array([1, 2]), videos=np.array(["a", "b"]), scores=np.ones((2, 2)))


def write_hdf5(path: Path, **more: Any) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(path, "w", **more) as file:
        for name in ("a", "b", "c"):
            file.create_dataset(name, data=rng.normal(size=(4, 6)).astype(np.float32))
        file.create_dataset("d", data=rng.normal(size=(40, 6)).astype(np.float32), chunks=(8, 6), compression="gzip")


def write_checkpoint(path: Path) -> None:
    config = TrainConfig.of(CONFIG)
    model = build(config.model, config.settings, Dims(8, 12, 8))
    save_checkpoint(path, model, config, "abc", 7, 0.25, {"0.exp_avg": torch.ones(2)}, {"step": 7})


def write_manifest(path: Path, **changes: Any) -> None:
    files = {}
    for name in ("clips.onnx", "words.onnx"):
        (path.parent / name).write_bytes(b"graph")
        files[name] = sha256(path.parent / name)
    values = {**MANIFEST, "files": files, **changes}
    path.write_text(json.dumps({**values, "fingerprint": fingerprint_of(values)}))


def read_features(path: Path) -> None:
    with Features(path) as features:
        _ = "a" in features, features.fingerprint
        for name in features.names:
            features.read(name)


def read_data_toml(path: Path) -> None:
    write_hdf5(path.parent / "video.h5")
    sources_of(path)
    Data.open(path).close()


KINDS: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], object]]] = {
    "vectors": ("v.npz", write_vectors, read_vector_file),
    "scores": ("s.npz", write_scores, read_visual_scores),
    "hdf5": ("v.h5", write_hdf5, read_features),
    "hdf5-latest": ("v.h5", lambda path: write_hdf5(path, libver="latest"), read_features),
    "checkpoint": ("best.safetensors", write_checkpoint, load_checkpoint),
    "manifest": (MANIFEST_FILE, write_manifest, lambda path: read_encoder_manifest(path.parent)),
    "data.toml": ("data.toml", lambda path: path.write_text(DATA_TOML) and None, read_data_toml),
    "config.toml": (
        "config.toml",
        lambda path: path.write_text(TrainConfig.of(CONFIG).text()) and None,
        lambda path: TrainConfig.of(read_toml(path), str(path)),
    ),
    "related": ("related.json", lambda path: path.write_text('{"1": ["a", "b"], "2": []}') and None, read_related),
    "json-lines": (
        "x.jsonl",
        lambda path: path.write_text('{"query_id": 1, "x": [1]}\n' * 4) and None,
        lambda path: open_document(path).json,
    ),
}


def mutants(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """Bit flips (half of them in the header), truncations, splices and swapped headers of a valid file."""
    for number in range(MUTANTS_PER_FILE):
        kind, changed = number % 5, bytearray(data)
        if kind in (0, 1):
            for _ in range(rng.choice((1, 4, 16))):
                changed[rng.randrange(len(data) if kind else min(len(data), 600))] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del changed[rng.randrange(len(data)) :]
        elif kind == 3:
            a, b, size = rng.randrange(len(data)), rng.randrange(len(data)), rng.randrange(1, 64)
            changed[a : a + size] = data[b : b + size]
        else:
            size = rng.choice((4, 8, 16, 100))
            changed[:size] = rng.choice((b"PK\3\4", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY\1\0", b"{", b"\xff" * 8)).ljust(
                size, rng.choice((b"\0", b"\xff", b"["))
            )
        yield bytes(changed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    name, write, read = KINDS[kind]
    path = tmp_path / name
    write(path)
    read(path)
    data, said = path.read_bytes(), []
    for mutant in mutants(data, random.Random(kind)):
        path.write_bytes(mutant)
        try:
            read(path)
        except MomentseekError as e:
            said.append(str(e))
    assert len(said) >= MUTANTS_PER_FILE // 4
    assert all("\n" not in sentence for sentence in said), said
    assert kind == "config.toml" or all(str(tmp_path) in sentence for sentence in said), said


@contextmanager
def little_memory() -> Iterator[None]:
    """Fail if the block raises the process's peak of memory by more than ``MAX_EXTRA_BYTES``."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MAX_EXTRA_BYTES


def deflated_zeros(mebibytes: int, before: bytes = b"") -> bytes:
    """A raw deflate stream of ``before`` and then zeros, a thousandth of their size, made in no time."""
    pack = zlib.compressobj(9, wbits=-15)
    start = pack.compress(before) + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(bytes(1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    return start + block * mebibytes + pack.flush()


def npy_header(shape: tuple[int, int]) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header


def zipped(members: dict[str, tuple[bytes, int]]) -> bytes:
    """A zip file of members given by their deflated bytes and their size, whatever that is."""
    body = index = b""
    for name, (data, size) in members.items():
        about = struct.pack("<HHHHIIIHH", 0, 8, 0, 0, 0, len(data), size, len(name), 0)
        index += b"PK\1\2" + struct.pack("<HH", 20, 20) + about + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        index += name.encode()
        body += b"PK\3\4" + struct.pack("<H", 20) + about + name.encode() + data
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(index), len(body), 0)
    return body + index + b"PK\5\6" + end


def test_an_npz_bomb_is_not_expanded(tmp_path: Path) -> None:
    header = npy_header((1 << 18, 1 << 10))
    bomb = deflated_zeros(1024, header), (1 << 30) + len(header)
    (tmp_path / "bomb.npz").write_bytes(zipped({"texts.npy": bomb, "vectors.npy": bomb}))
    assert (tmp_path / "bomb.npz").stat().st_size < 3e6
    with little_memory(), pytest.raises(MomentseekError, match=r"texts expands from .* to 1,073,741,\d+ bytes"):
        read_vector_file(tmp_path / "bomb.npz")


def test_the_limit_of_arrays_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_vectors(tmp_path / "v.npz")
    monkeypatch.setenv("MOMENTSEEK_MAX_BYTES", "100")
    with pytest.raises(MomentseekError, match="more than 100; set MOMENTSEEK_MAX_BYTES to read it all the same"):
        read_vector_file(tmp_path / "v.npz")


def test_an_npz_header_that_declares_more_than_the_file_has_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        for name in ("texts", "vectors"):
            archive.writestr(f"{name}.npy", npy_header((1_000_000, 1_000_000)) + bytes(64))
    with little_memory(), pytest.raises(MomentseekError, match=r"expected an .npz file with the arrays texts, vectors"):
        read_vector_file(tmp_path / "v.npz")


def write_external_storage(file: Any, folder: Path) -> None:
    file.create_dataset("x", (2, 2), "f4", external=[(str(folder / "secret.bin"), 0, 16)])


def write_external_link(file: Any, folder: Path) -> None:
    file["x"] = h5py.ExternalLink(str(folder / "other.h5"), "/a")


def write_soft_link_out(file: Any, folder: Path) -> None:
    file["out"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
    file["x"] = h5py.SoftLink("/out/a")


def write_virtual(file: Any, folder: Path) -> None:
    layout = h5py.VirtualLayout((4, 6), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "a", (4, 6))
    file.create_virtual_dataset("x", layout)


def write_circle(file: Any, folder: Path) -> None:
    file["x"] = h5py.SoftLink("/x")


@pytest.mark.parametrize(
    "write", [write_external_storage, write_external_link, write_soft_link_out, write_virtual, write_circle]
)
def test_features_that_lead_out_of_their_file_are_refused(write: Callable[[Any, Path], None], tmp_path: Path) -> None:
    write_hdf5(tmp_path / "other.h5")
    (tmp_path / "secret.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    with h5py.File(tmp_path / "v.h5", "w") as file:
        write(file, tmp_path)
    with Features(tmp_path / "v.h5") as features:
        for read in (features.read, features.rows, features.__contains__, lambda _: features.fingerprint):
            with pytest.raises(
                MomentseekError, match=r"v.h5: video (x|out) leads out of the file.*; copy the values into"
            ):
                read("x")


def test_soft_links_within_a_file_are_followed(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "v.h5")
    with h5py.File(tmp_path / "v.h5", "a") as file:
        file["film"] = h5py.SoftLink("/a")
        file["part/film"] = h5py.SoftLink("../part/./same")
        file["part/same"] = file["b"]
    with Features(tmp_path / "v.h5") as features:
        assert (features.read("film") == features.read("a")).all()


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_features_that_declare_gigabytes_are_not_read(compression: str | None, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_dataset("x", (1 << 18, 1 << 10), "f4", compression=compression)
    with Features(tmp_path / "v.h5") as features, little_memory():
        for read in (features.read, lambda _: features.fingerprint):
            with pytest.raises(MomentseekError, match=r"x expands from 0 to 1,073,741,824 bytes"):
                read("x")


def test_a_chunk_that_expands_past_its_size_is_not_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as file:
        data = file.create_dataset("x", (4, 4), "f4", chunks=(4, 4), compression="gzip")
        data.id.write_direct_chunk((0, 0), b"\x78\xda" + deflated_zeros(1024) + bytes(4))
    said = pytest.raises(MomentseekError, match="video x has a chunk that is larger than it declares")
    with Features(tmp_path / "v.h5") as features, little_memory(), said:
        features.read("x")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"query_id":', b"[NaN,["])
def test_deep_json_is_refused(opening: bytes, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_bytes(opening * 100_000)
    (tmp_path / "model.json").write_bytes(opening * 100_000)
    for read in (lambda: open_document(path).json, lambda: read_related(path)):
        with pytest.raises(MomentseekError, match=r"deep.json: "):
            read()
    with pytest.raises(MomentseekError, match="does not describe a model"):
        read_encoder_manifest(tmp_path)


@pytest.mark.parametrize("depth", [900, 990, 1010, 100_000])
def test_deep_json_within_a_truth_ends_the_command_with_code_2(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('[{"query_id": ' + "[" * depth + "]" * depth + ', "query": "q", "relevant_moment": []}]')
    error = CliRunner().invoke(cli, ["evaluate", str(path), "--truth", str(path)]).exception
    assert isinstance(error, MomentseekError), error
    assert error.exit_code == 2
    assert "deep.json: " in str(error)


@pytest.mark.parametrize("text", ["v = " + "[" * 100_000, "v = " + "1" * 5000, "v = {a = " * 5000])
def test_toml_that_is_too_deep_or_has_absurd_numbers_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "data.toml").write_text(text)
    for read in (Data.open, sources_of, read_toml):
        with pytest.raises(MomentseekError, match=r"data.toml: "):
            read(tmp_path / "data.toml")


def change_metadata(path: Path, **changes: str) -> None:
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    header = json.loads(path.read_bytes()[8 : 8 + size])
    header["__metadata__"] |= changes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + path.read_bytes()[8 + size :])


@pytest.mark.parametrize("shape", [[1 << 40], [1 << 62, 4], [0, 1 << 62], [-1]])
def test_a_checkpoint_with_absurd_tensors_is_refused(shape: list[int], tmp_path: Path) -> None:
    header: dict[str, Any] = {"__metadata__": {"kind": "momentseek checkpoint"}}
    header["w"] = {"dtype": "F32", "shape": shape, "data_offsets": [0, 1 << 42]}
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    with little_memory(), pytest.raises(MomentseekError, match=r"x.safetensors: "):
        load_checkpoint(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": 1 << 20},
        {"hidden": 1 << 40},
        {"hidden": -8},
        {"hidden": 0},
        {"heads": 0},
        {"query_layers": 1 << 30},
        {"max_clips": 1 << 30},
        {"kernel": 1 << 22},
        {"name": "tan2d", "max_clips": 1 << 20, "longest": 1 << 20},
    ],
    ids=str,
)
def test_a_checkpoint_whose_settings_are_absurd_takes_no_memory(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    write_checkpoint(path)
    model = changes if "name" in changes else TrainConfig.of(CONFIG).table()["model"] | changes
    change_metadata(path, config=json.dumps({"model": model}))
    with little_memory(), pytest.raises(MomentseekError, match=r"best.safetensors: "):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("state", "[" * 100_000), ("value", "1" + "0" * 400), ("dims", '{"query": -1, "video": 12, "subtitle": 8}')],
    ids=["deep", "overflow", "negative"],
)
def test_absurd_metadata_of_a_checkpoint_are_said(key: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    write_checkpoint(path)
    change_metadata(path, **{key: value})
    with pytest.raises(MomentseekError, match=f"its metadata lack a readable '{key}'; train again"):
        load_checkpoint(path)


def test_a_checkpoint_larger_than_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "best.safetensors")
    monkeypatch.setenv("MOMENTSEEK_MAX_BYTES", "1000")
    with pytest.raises(MomentseekError, match="set MOMENTSEEK_MAX_BYTES to read it all the same"):
        load_checkpoint(tmp_path / "best.safetensors")


@pytest.mark.parametrize(
    "value", [None, [], [1], {}, "x", float("inf"), 10**400, {"query": 3}, {"kind": "map"}], ids=str
)
@pytest.mark.parametrize("key", ["encoders", "config", "head", "clip_seconds", "files"])
def test_a_signed_manifest_with_wrong_values_is_refused(key: str, value: Any, tmp_path: Path) -> None:
    write_manifest(tmp_path / MANIFEST_FILE, **{key: value})
    with pytest.raises(MomentseekError, match=str(tmp_path)):
        read_encoder_manifest(tmp_path)


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "x.safetensors", metadata={"kind": "momentseek checkpoint"})
    with pytest.raises(MomentseekError, match="its metadata lack a readable 'config'"):
        load_checkpoint(tmp_path / "x.safetensors")


def test_json_without_a_bottom_is_refused_in_reports(tmp_path: Path) -> None:
    from momentseek.models.training.prediction import REPORT_FILE, read_report

    (tmp_path / REPORT_FILE).write_text("[" * 200_000)
    with pytest.raises(MomentseekError, match="delete it and continue"):
        read_report(tmp_path)
