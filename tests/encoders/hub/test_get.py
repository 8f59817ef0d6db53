import json
import os
import shutil

import pytest
from tests.encoders.hub.server import served

from momentseek.encoders import image_text_encoder
from momentseek.encoders.hub import catalogue, lock
from momentseek.encoders.hub import download as downloading
from momentseek.encoders.hub.catalogue import HUB_MODELS, HubModel
from momentseek.encoders.hub.get import fetch_model, missing_files
from momentseek.errors import MomentseekError

FILES = {
    "config.json": b'{"model_type": "clip"}',
    "preprocessor_config.json": b"{}",
    "tokenizer.json": b"{}",
    "onnx/vision_model.onnx": os.urandom(300_000),
    "onnx/text_model.onnx": os.urandom(200_000),
}
MODEL = HubModel("tiny", "somebody/tiny", "abc", dict.fromkeys(FILES, 0.3), 8, "MIT", "tests")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(catalogue.HUB_MODELS, "tiny", MODEL)
    monkeypatch.setattr(downloading.time, "sleep", lambda _: None)
    return tmp_path / "models"


def test_a_model_is_downloaded_once_and_its_hashes_written_down(home):
    with served(FILES) as server:
        folder = fetch_model(MODEL, server.url)
        assert {name: (folder / name).read_bytes() for name in FILES} == FILES
        assert json.loads((home / "tiny.lock.json").read_bytes())["source"] == server.url
        assert set(lock.read_lock("tiny")) == set(FILES)
        asked = len(server.asked)
        assert missing_files(MODEL) == []
        fetch_model(MODEL, server.url)
        assert len(server.asked) == asked


def test_a_second_download_must_be_the_first(home):
    with served(FILES) as server:
        fetch_model(MODEL, server.url)
        shutil.rmtree(home / "tiny")
        server.files["tokenizer.json"] = b"[]"
        with pytest.raises(MomentseekError, match=r"tokenizer\.json: is not the file that was downloaded first"):
            fetch_model(MODEL, server.url)
        assert "onnx/vision_model.onnx" in missing_files(MODEL)
        server.files = FILES
        assert lock.check_model(fetch_model(MODEL, server.url).name) == home / "tiny"


def test_an_interrupted_model_keeps_its_finished_files(home):
    with served(FILES) as server:
        del server.files["onnx/text_model.onnx"]
        with pytest.raises(MomentseekError, match=r"text_model\.onnx: the server says 404"):
            fetch_model(MODEL, server.url)
        assert missing_files(MODEL) == ["onnx/text_model.onnx"]
        with pytest.raises(MomentseekError, match=r"pip|get it with|is missing|has no"):
            image_text_encoder("hub:tiny")


@pytest.mark.parametrize("flat", [False, True])
def test_a_model_from_a_folder(tmp_path, home, flat):
    for name, data in FILES.items():
        path = tmp_path / "stick" / (name.split("/")[-1] if flat else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert fetch_model(MODEL, str(tmp_path / "stick")) == home / "tiny"
    assert lock.check_model("tiny") == home / "tiny"
    shutil.rmtree(home / "tiny")
    (tmp_path / "stick/config.json").write_bytes(b'{"model_type": "siglip"}')
    with pytest.raises(MomentseekError, match="is not the file that was downloaded first"):
        fetch_model(MODEL, str(tmp_path / "stick"))
    (tmp_path / "stick/config.json").unlink()
    with pytest.raises(MomentseekError, match=r"has no config\.json; give a folder with all files"):
        fetch_model(MODEL, str(tmp_path / "stick"))


def test_changed_and_missing_files_are_found(home):
    with pytest.raises(MomentseekError, match="is not downloaded; get it with: momentseek models get tiny"):
        lock.check_model("tiny")
    with served(FILES) as server:
        fetch_model(MODEL, server.url)
        (home / "tiny/config.json").write_bytes(b"{}")
        with pytest.raises(MomentseekError, match=r"config\.json: has changed since it was downloaded"):
            lock.check_model("tiny")
        assert missing_files(MODEL) == ["config.json"]
        (home / "tiny/config.json").unlink()
        with pytest.raises(MomentseekError, match=r"config\.json: is missing; get it with"):
            lock.check_model("tiny")
        fetch_model(MODEL, server.url)
        lock.check_model("tiny")
    for damage in (b"{", b"[]", b'{"sha256": 3}'):
        (home / "tiny.lock.json").write_bytes(damage)
        with pytest.raises(MomentseekError, match="is damaged; delete it"):
            lock.check_model("tiny")


def test_a_change_that_keeps_size_and_time_is_found(home):
    with served(FILES) as server:
        fetch_model(MODEL, server.url)
    path = home / "tiny/onnx/text_model.onnx"
    lock.check_model("tiny")
    status = path.stat()
    path.write_bytes(bytes(200_000))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for fresh in (False, True):
        with pytest.raises(MomentseekError, match="has changed"):
            lock.check_model("tiny", fresh=fresh)


def test_no_room_is_said_before_anything_is_fetched(home, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 1_000_000))
    with served(FILES) as server:
        with pytest.raises(MomentseekError, match="has 1 MB free, the model needs 2 MB more"):
            fetch_model(MODEL, server.url)
        assert server.asked == []


def test_nothing_is_downloaded_by_using_a_model():
    with pytest.raises(MomentseekError, match="momentseek models get siglip2-base"):
        image_text_encoder("hub:siglip2-base")
    with pytest.raises(MomentseekError, match="did you mean 'siglip2-base"):
        image_text_encoder("hub:siglip2-bas")


def test_the_catalogue_is_whole():
    for name, model in HUB_MODELS.items():
        if name == "tiny":
            continue
        assert model.name == name
        assert model.address.startswith("https://")
        assert len(model.revision) == 40
        assert {"config.json", "preprocessor_config.json", "tokenizer.json"} <= set(model.files)
        assert sum("vision_model" in file for file in model.files) == sum("text_model" in f for f in model.files) == 1
        assert model.licence
