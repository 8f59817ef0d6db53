from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from momentseek.recognition.weights import files as module
from momentseek.recognition.weights.files import BLOCK_BYTES, file_hashes, hashes, is_unchanged


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.onnx"
    path.write_bytes(os.urandom(3 * BLOCK_BYTES + 5))
    return path


def _right(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_hash_is_computed_once(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tmp_path / "memory.json"
    assert hashes([weights], memory) == {weights: _right(weights)}
    monkeypatch.setattr(module, "file_hashes", lambda path: pytest.fail("read"))
    assert hashes([weights], memory) == {weights: _right(weights)}


def test_finds_changes_that_keep_size_and_time(weights: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    before = hashes([weights], memory)[weights]
    status = weights.stat()
    data = bytearray(weights.read_bytes())
    data[2 * BLOCK_BYTES] ^= 1
    weights.write_bytes(data)
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert hashes([weights], memory)[weights] == _right(weights) != before


@pytest.mark.parametrize("at", [0, BLOCK_BYTES, 3 * BLOCK_BYTES + 4])
def test_finds_silent_corruption(weights: Path, tmp_path: Path, at: int) -> None:
    """As on a failing disk, only the content changes."""
    memory = tmp_path / "memory.json"
    hashes([weights], memory)
    data = bytearray(weights.read_bytes())
    data[at] ^= 1
    weights.write_bytes(data)
    status = weights.stat()
    entry = json.loads(memory.read_text())
    entry[str(weights)]["stamp"] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    memory.write_text(json.dumps(entry))
    assert hashes([weights], memory)[weights] == _right(weights)


def test_empty_and_truncated_files(tmp_path: Path, weights: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    known = file_hashes(empty)
    assert (known.blocks, is_unchanged(empty, known)) == ("", True)
    whole = file_hashes(weights)
    assert is_unchanged(weights, whole)
    os.truncate(weights, 3 * BLOCK_BYTES)
    assert not is_unchanged(weights, whole)


@pytest.mark.parametrize("text", ["", "[]", '{"PATH": 1}', '{"PATH": [1, 2, "x"]}', '{"PATH": {"stamp": [1]}}'])
def test_ignores_a_hash_cache_of_another_format(weights: Path, tmp_path: Path, text: str) -> None:
    memory = tmp_path / "memory.json"
    memory.write_text(text.replace("PATH", str(weights)))
    assert hashes([weights], memory) == {weights: _right(weights)}
