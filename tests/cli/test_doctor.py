import json
import sqlite3

import pytest
from click.testing import CliRunner
from tests.recognition.encoders.fakes import needs_labels

from momentseek.api import checkup as checks
from momentseek.cli.models import doctor as command
from momentseek.core import errors as optional
from momentseek.recognition.encoders import minilm, things
from momentseek.recognition.weights.files import are_installed, locate, packaged_weights


def doctor(*args):
    result = CliRunner().invoke(command, args)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def items(*args):
    return {item["name"]: item for item in json.loads(doctor("--json", *args).stdout)["items"]}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for asset in (minilm.ASSET, things.ASSET, packaged_weights("clip")):
        if are_installed(asset):  # those of this machine, in a folder of its own
            (tmp_path / "models").mkdir(exist_ok=True)
            (tmp_path / "models" / asset.kept.name).symlink_to(locate(asset))
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("MOMENTSEEK_LIBRARY", raising=False)
    return tmp_path


@needs_labels
def test_complete_installation_passes_and_creates_nothing(home):
    pytest.importorskip("av")
    result = doctor()
    assert result.exit_code == 0
    assert result.stdout.endswith("Videos can be added and searched.\n")
    with_clip = are_installed(packaged_weights("clip"))
    better = "is better: momentseek models get siglip2-base" if with_clip else "with clip: momentseek models get"
    assert better in result.stdout
    assert [path.name for path in home.iterdir()] == ["models"]
    found = items()
    assert "h264" in found["ffmpeg decoders"]["found"]
    assert found["sqlite"]["found"].startswith(sqlite3.sqlite_version)
    assert found["library"]["found"] == f"{home / 'data/momentseek/default'} (will be created)"


@needs_labels
def test_full_computes_hashes_again():
    assert items("--full")["things"]["found"] == "ready, image-text, hashes checked again"


def test_missing_package_fails_with_a_remedy(monkeypatch):
    real = optional.import_module

    def absent(name):
        if name == "tokenizers":
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(optional, "import_module", absent)
    result = doctor()
    assert result.exit_code == 1
    assert "tokenizers: install it with: pip install 'momentseek[search]'" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("must be fixed first.")


def test_no_encoder_at_all_fails(monkeypatch):
    def nothing(asset):
        raise checks.MomentseekError("the weights of x are not downloaded; get them with: momentseek models get x")

    monkeypatch.setattr("momentseek.recognition.weights.files.locate", nothing)
    monkeypatch.setattr("momentseek.recognition.inventory.IMAGE_TEXT_ENCODERS", {})
    found = items()
    assert found["an image encoder"]["state"] == "failed"
    assert found["an image encoder"]["advice"] == "momentseek models get"
    assert found["things"] == {
        "name": "things",
        "state": "note",
        "found": "absent",
        "advice": "1,000 kinds of things, no actions: get them with: momentseek models get x (23 MB)",
    }


def test_unwritable_library_fails(home, monkeypatch):
    (home / "file").write_bytes(b"")
    monkeypatch.setenv("MOMENTSEEK_LIBRARY", str(home / "file/library"))
    assert items()["library"]["state"] == "failed"


def test_low_disk_space_and_memory_are_notes(monkeypatch):
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5e8}))
    monkeypatch.setattr(checks, "free_memory", lambda: int(2e8))
    found = items()
    assert (found["disk"]["state"], found["disk"]["found"]) == ("note", "0.5 GB free for the library")
    assert (found["memory"]["state"], found["memory"]["found"]) == ("note", "0.2 GB free")


def test_invalid_number_of_threads_is_reported(monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_THREADS", "many")
    assert items()["cores"]["state"] == "failed"


def test_missing_meteor_is_a_note(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))
    found = items()["METEOR"]
    assert found["state"] == "note"
    assert "apt install default-jre-headless" in found["advice"]


def test_missing_kernels_are_a_note(monkeypatch):
    monkeypatch.setattr("momentseek.api.checkup.kernels", lambda: None)
    note = items()["compiled kernels"]
    assert (note["state"], note["found"]) == ("note", "not built")
    assert "python -m momentseek.core.native.build" in note["advice"]
