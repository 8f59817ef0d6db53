import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from tests.recognition.encoders.graphs import siglip2_files, siglip2_vision
from tests.recognition.weights.server import served

from momentseek.core.errors import MomentseekError
from momentseek.recognition.downloads import fetch_model, missing_files
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.weights import catalog, hub
from momentseek.recognition.weights.catalog import HUB_MODELS, HubFile, HubModel, find_hub_model

pytest.importorskip("onnxruntime")

FILES = siglip2_files(**{"notes.txt": os.urandom(300_000)})
MODEL = HubModel("tiny", "somebody/tiny", "abc", {name: HubFile(300_000) for name in FILES}, 6, "MIT", "tests")
PINNED = HubModel(
    *("tiny", "somebody/tiny", "abc"),
    {name: HubFile(len(data), hashlib.sha256(data).hexdigest()) for name, data in FILES.items()},
    *(6, "MIT", "tests"),
)
"""The same with all hashes known."""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(catalog.HUB_MODELS, "tiny", MODEL)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 10)
    return tmp_path / "models"


def test_model_is_downloaded_once_and_its_hashes_recorded(home):
    with served(FILES) as server:
        folder = fetch_model(MODEL, server.url)
        assert {name: (folder / name).read_bytes() for name in FILES} == FILES
        assert json.loads((home / "tiny.lock.json").read_bytes())["source"] == server.url
        assert set(hub.read_lock("tiny")) == set(FILES)
        asked = len(server.asked)
        assert missing_files(MODEL) == []
        fetch_model(MODEL, server.url)
        assert len(server.asked) == asked


def test_the_hub_may_be_another_host(home, monkeypatch):
    files = {f"somebody/tiny/resolve/abc/{name}": data for name, data in FILES.items()}
    with served(files) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert fetch_model(MODEL) == hub.check_model(MODEL)


def test_second_download_must_match_the_first(home):
    with served(FILES) as server:
        fetch_model(MODEL, server.url)
        shutil.rmtree(home / "tiny")
        server.files["tokenizer.json"] = b"[]"
        with pytest.raises(
            MomentseekError, match=r"tokenizer\.json: has changed since it was downloaded .*thrown away"
        ):
            fetch_model(MODEL, server.url)
        assert "tokenizer.json" in missing_files(MODEL)
        server.files = FILES
        assert fetch_model(MODEL, server.url) == hub.check_model(MODEL) == home / "tiny"


def test_interrupted_download_keeps_finished_files(home):
    with served(FILES) as server:
        del server.files["notes.txt"]
        with pytest.raises(MomentseekError, match=r"notes\.txt: the server says 404"):
            fetch_model(MODEL, server.url)
        assert missing_files(MODEL) == ["notes.txt"]
        with pytest.raises(MomentseekError, match=r"pip|get it with|is missing|has no"):
            image_text_encoder("hub:tiny")


@pytest.mark.parametrize("flat", [False, True])
def test_model_from_a_folder(tmp_path, home, flat):
    for name, data in FILES.items():
        path = tmp_path / "stick" / (name.split("/")[-1] if flat else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert fetch_model(MODEL, str(tmp_path / "stick")) == home / "tiny"
    assert hub.check_model(MODEL) == home / "tiny"
    shutil.rmtree(home / "tiny")
    (tmp_path / "stick/config.json").write_bytes(b'{"model_type": "siglip2"}')
    with pytest.raises(MomentseekError, match="has changed since it was downloaded"):
        fetch_model(MODEL, str(tmp_path / "stick"))
    (tmp_path / "stick/config.json").unlink()
    with pytest.raises(
        MomentseekError,
        match=r"has no config\.json; give a folder with all files of the model: onnx/vision_model\.onnx, ",
    ):
        fetch_model(MODEL, str(tmp_path / "stick"))


def test_changed_and_missing_files_are_found(home):
    with pytest.raises(MomentseekError, match="is not downloaded; get it with: momentseek models get tiny"):
        hub.check_model(MODEL)
    with served(FILES) as server:
        fetch_model(MODEL, server.url)
        (home / "tiny/config.json").write_bytes(b"{}")
        with pytest.raises(MomentseekError, match=r"config\.json: has changed since it was downloaded"):
            hub.check_model(MODEL)
        assert missing_files(MODEL) == ["config.json"]
        (home / "tiny/config.json").unlink()
        with pytest.raises(MomentseekError, match=r"config\.json: is missing; get it with"):
            hub.check_model(MODEL)
        fetch_model(MODEL, server.url)
        hub.check_model(MODEL)
    for damage in (b"{", b"[]", b'{"sha256": 3}'):
        (home / "tiny.lock.json").write_bytes(damage)
        with pytest.raises(MomentseekError, match="is damaged; delete it"):
            hub.check_model(MODEL)


def test_finds_changes_that_keep_size_and_time(home):
    with served(FILES) as server:
        fetch_model(MODEL, server.url)
    path = home / "tiny/notes.txt"
    hub.check_model(MODEL)
    status = path.stat()
    path.write_bytes(bytes(300_000))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for fresh in (False, True):
        with pytest.raises(MomentseekError, match="has changed"):
            hub.check_model(MODEL, fresh=fresh)


def test_full_disk_is_reported_before_downloading(home, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 1_000_000))
    with served(FILES) as server:
        with pytest.raises(MomentseekError, match="has 1 MB free, the model needs 2 MB more"):
            fetch_model(MODEL, server.url)
        assert server.asked == []


def test_using_a_model_downloads_nothing():
    with pytest.raises(MomentseekError, match="momentseek models get siglip2-base"):
        image_text_encoder("hub:siglip2-base")
    with pytest.raises(MomentseekError, match="did you mean 'siglip2-base"):
        image_text_encoder("hub:siglip2-bas")


def test_published_hashes_are_required(home):
    with served(FILES) as server:
        server.files["onnx/vision_model.onnx"] = siglip2_vision(swaps=True)
        with pytest.raises(
            MomentseekError, match=r"vision_model\.onnx: is not the published file .*so it was thrown away"
        ):
            fetch_model(PINNED, server.url)
        assert not (home / "tiny/onnx/vision_model.onnx").exists()
        server.files["onnx/vision_model.onnx"] = FILES["onnx/vision_model.onnx"] + b" "
        with pytest.raises(MomentseekError, match=r"is larger than [\d,]+ bytes, so it cannot be the model"):
            fetch_model(PINNED, server.url)
        server.files["onnx/vision_model.onnx"] = FILES["onnx/vision_model.onnx"][:-1]
        with pytest.raises(MomentseekError, match="is not the published file"):
            fetch_model(PINNED, server.url)
        server.files = FILES
        fetch_model(PINNED, server.url)
    assert hub.check_model(PINNED) == home / "tiny"


def test_rejects_an_earlier_download_with_another_hash(home):
    with served(FILES) as server:
        server.files["notes.txt"] = b"something else"
        fetch_model(MODEL, server.url)
        hub.check_model(MODEL)
        with pytest.raises(MomentseekError, match=r"notes\.txt: is not the published file"):
            hub.check_model(PINNED)
        assert missing_files(PINNED) == ["notes.txt"]
        server.files = FILES
        fetch_model(PINNED, server.url)
    hub.check_model(PINNED)


def test_moved_file_error_explains_manual_download(home, tmp_path):
    with served(FILES) as server:
        server.files["vision.onnx"] = server.files.pop("onnx/vision_model.onnx")
        digest = PINNED.hashes["onnx/vision_model.onnx"]
        with pytest.raises(MomentseekError) as raised:
            fetch_model(PINNED, server.url)
        message = str(raised.value)
        assert "404" in message
        assert (
            f"look for vision_model.onnx ({len(FILES['onnx/vision_model.onnx']):,} bytes, SHA-256 {digest})" in message
        )
        assert "of somebody/tiny" in message
        with pytest.raises(MomentseekError, match=r"look for vision_model\.onnx \(about 0\.3 MB\)"):
            fetch_model(MODEL, server.url)
        for name, data in FILES.items():
            (tmp_path / name.split("/")[-1]).write_bytes(data)
    assert fetch_model(PINNED, str(tmp_path)) == home / "tiny"


def test_broken_connection_is_resumed(home):
    with served(FILES) as server:
        server.drop_after = [50, 60]
        fetch_model(PINNED, server.url)
        assert ("onnx/vision_model.onnx", "bytes=50-") in server.asked
    assert hub.check_model(PINNED) == home / "tiny"


def test_git_lfs_pointer_is_reported(tmp_path):
    for name, data in FILES.items():
        (tmp_path / name.split("/")[-1]).write_bytes(data)
    (tmp_path / "notes.txt").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(MomentseekError, match=r"notes\.txt: is a pointer of Git LFS, not the file itself"):
        fetch_model(PINNED, str(tmp_path))
    assert not list((tmp_path / "models/tiny").glob(".*"))


def test_failed_cleanup_does_not_hide_the_error(tmp_path, monkeypatch):
    (tmp_path / "vision_model.onnx").write_bytes(b"other")

    def refuse(self, missing_ok=False):
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(MomentseekError, match=r"vision_model\.onnx: is not the published file"):
        fetch_model(PINNED, str(tmp_path))


def test_model_is_run_after_the_download(home):
    swapped = {**FILES, "onnx/vision_model.onnx": siglip2_vision(swaps=True)}
    notes = []
    with served(swapped) as server:
        fetch_model(MODEL, server.url, note=notes.append)
    assert [note.split(";")[0] for note in notes] == ["tiny takes a red picture for a blue one"]
    rows = image_text_encoder("hub:tiny").encode_images([np.zeros((8, 8, 3), np.uint8)])
    assert rows.shape == (1, 6)


def test_broken_model_is_an_error_and_its_files_stay(home):
    message = r"vision_model\.onnx: ONNX Runtime cannot load it"
    with (
        served({**FILES, "onnx/vision_model.onnx": b"<html>"}) as server,
        pytest.raises(MomentseekError, match=message),
    ):
        fetch_model(MODEL, server.url)
    assert missing_files(MODEL) == []


def test_catalog_is_complete():
    for name, model in HUB_MODELS.items():
        if name == "tiny":
            continue
        assert model.name == name
        assert model.licence
        if model.kind not in ("speech", "image-text"):
            assert all(file.url or file.size > 0 for file in model.files.values())
            continue
        assert model.address.startswith("https://")
        assert len(model.revision) == 40
        assert {"config.json", "tokenizer.json"} <= set(model.files)
        assert all(len(digest) == 64 and int(digest, 16) for digest in model.hashes.values())
        assert all(file.size > 0 for file in model.files.values())
        if model.kind == "speech":
            assert set(model.hashes) == set(model.files)
            assert model.use == f"--transcriber {name}"
            continue
        assert "preprocessor_config.json" in model.files
        assert sum("vision_model" in file for file in model.files) == sum("text_model" in f for f in model.files) == 1
        assert model.dim in (512, 768, 1024)
    assert set(HUB_MODELS["siglip2-base"].hashes) == set(HUB_MODELS["siglip2-base"].files)
    with pytest.raises(MomentseekError, match="there is no model 'whisper-small' to download"):
        find_hub_model("whisper-small", "image-text")
    assert find_hub_model("siglip2-base-32") is HUB_MODELS["siglip2-base-quick"]
