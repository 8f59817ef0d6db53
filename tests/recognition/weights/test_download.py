import hashlib
import os
import resource

import huggingface_hub
import pytest
from filelock import FileLock
from tests.recognition.weights.server import served

from momentseek.core.errors import MomentseekError
from momentseek.recognition.weights.hub import download, part_file

DATA = os.urandom(700_000)
HASH = hashlib.sha256(DATA).hexdigest()
LIMIT = 1_000_000


@pytest.fixture
def server():
    with served({"model.onnx": DATA}) as found:
        yield found


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "onnx/model.onnx"


def get(server, target, **options):
    return download(f"{server.url}/model.onnx", target, **{"digest": None, "limit": LIMIT, **options})


def names(target):
    return sorted(path.name for path in target.parent.iterdir())


def test_downloads_a_file_and_returns_its_hash(server, target):
    seen = []
    assert get(server, target, advance=seen.append) == HASH
    assert target.read_bytes() == DATA
    assert sum(seen) == len(DATA)
    assert names(target) == ["model.onnx"]


def test_dropped_connections_are_resumed_where_they_broke(server, target):
    server.drop_after = [100_000, 250_000]
    assert get(server, target, digest=HASH) == HASH
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-", "bytes=350000-"]


def test_lost_connection_keeps_the_partial_file(server, target):
    server.drop_after = [4000, *[0] * 20]
    with pytest.raises(MomentseekError, match=r"4,000 bytes have arrived\); the same command continues"):
        get(server, target)
    server.drop_after = []
    assert names(target) == [part_file(target, "v1").name]
    seen = []
    assert get(server, target, advance=seen.append) == HASH
    assert server.asked[-1] == ("model.onnx", "bytes=4000-")
    assert seen[0] == 4000
    assert sum(seen) == len(DATA)


def test_interrupting_keeps_the_partial_file(server, target):
    def advance(count):
        if count > 0:
            raise KeyboardInterrupt

    server.drop_after = [300_000]
    with pytest.raises(KeyboardInterrupt):
        get(server, target, advance=advance)
    arrived = part_file(target, "v1").stat().st_size
    assert 0 < arrived < len(DATA)
    assert get(server, target) == HASH
    assert server.asked[-1] == ("model.onnx", f"bytes={arrived}-")


@pytest.mark.parametrize("etag", ['"v2"', 'W/"v1"', None])
def test_partial_file_of_another_version_is_not_resumed(server, target, etag):
    target.parent.mkdir()
    part_file(target, "v1").write_bytes(b"something else" * 100)
    server.etag = etag
    seen = []
    assert get(server, target, advance=seen.append) == HASH
    assert target.read_bytes() == DATA
    assert sum(seen) == len(DATA)


def test_changed_version_is_not_resumed(server, target):
    server.drop_after = [100_000]
    changed = []

    def advance(count):
        if count > 0 and not changed:
            changed.append(server.etag)
            server.etag, server.files["model.onnx"] = '"v2"', DATA[::-1]

    assert get(server, target, advance=advance) == hashlib.sha256(DATA[::-1]).hexdigest()


@pytest.mark.parametrize("part", [DATA, DATA + b"too much"])
def test_complete_partial_file_is_used_and_a_longer_one_replaced(server, target, part):
    target.parent.mkdir()
    part_file(target, "v1").write_bytes(part)
    assert get(server, target) == HASH
    assert target.read_bytes() == DATA


def test_server_without_range_requests_works(server, target):
    server.fail_with = [501]
    assert get(server, target) == HASH


def test_file_with_another_hash_is_deleted(server, target):
    with pytest.raises(MomentseekError, match=r"its SHA-256 differs\), so it was thrown away"):
        get(server, target, digest="0" * 64)
    assert names(target) == []


def test_missing_or_too_large_files_are_refused_at_once(server, target):
    with pytest.raises(MomentseekError, match="the server says 404"):
        download(f"{server.url}/absent", target, digest=None, limit=LIMIT)
    assert server.asked == []
    with pytest.raises(MomentseekError, match="is larger than 1,000 bytes"):
        get(server, target, limit=1000)
    assert not target.exists()


def test_server_errors_are_retried(server, target):
    server.fail_with = [503, 429]
    assert get(server, target) == HASH


def test_unreachable_server(target):
    with served({}) as gone:
        pass
    with pytest.raises(MomentseekError, match=r"the connection is lost or there is none .*\(source=\"FOLDER\"\)"):
        get(gone, target)


def test_only_https_even_after_a_redirect(server, target):
    for url in ("http://example.org/x", "ftp://example.org/x", "file:///etc/passwd"):
        with pytest.raises(MomentseekError, match="only https addresses"):
            download(url, target, digest=None, limit=LIMIT)
    server.redirect["away"] = "http://example.org/x"
    with pytest.raises(MomentseekError, match="only https addresses"):
        download(f"{server.url}/away", target, digest=None, limit=LIMIT)
    server.redirect["here"] = f"{server.url}/model.onnx"
    assert download(f"{server.url}/here", target, digest=None, limit=LIMIT) == HASH


def test_only_https_with_a_new_session(server, target, monkeypatch):
    ask = huggingface_hub.get_hf_file_metadata

    def ask_in_trouble(*args, **options):
        about = ask(*args, **options)
        huggingface_hub.close_session()  # as the client does after a connection that failed
        return about

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", ask_in_trouble)
    server.redirect["away"] = server.url.replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(MomentseekError, match="only https addresses"):
        download(f"{server.url}/away", target, digest=None, limit=LIMIT)


def test_the_environment_may_forbid_downloads(server, target, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(MomentseekError, match="the connection is lost or there is none"):
        get(server, target)
    assert server.asked == []


def test_full_disk_is_reported(server, target):
    target.parent.mkdir()
    part_file(target, "v1").symlink_to("/dev/full")
    with pytest.raises(MomentseekError, match=r"cannot be written \(No space left on device\); make room"):
        get(server, target)
    assert not target.exists()


def test_download_resumes_after_a_full_disk(server, target):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
    try:
        with pytest.raises(MomentseekError, match=r"cannot be written \(File too large\); make room"):
            get(server, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert get(server, target) == HASH
    assert server.asked[-1] == ("model.onnx", "bytes=400000-")


def test_parallel_downloads_of_one_file_are_refused(server, target):
    target.parent.mkdir()
    with (
        FileLock(target.with_name("model.onnx.lock")),
        pytest.raises(MomentseekError, match="another process is downloading this"),
    ):
        get(server, target)


def test_folder_that_cannot_be_created(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MomentseekError, match="cannot be written"):
        get(server, tmp_path / "file/model.onnx")
