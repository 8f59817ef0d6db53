"""``describe --model`` end to end: with a local server, and with a small exported MMT."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vision_endpoint import serve_captions

from momentseek.library.store import LibraryStore
from momentseek.recognition.captions.inputs import build_vocabulary
from momentseek.recognition.chat import KEY_VARIABLES
from momentseek.recognition.encoders import registry


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for variable in KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    with serve_captions([], "An owl sleeps in a barn.") as address:
        yield address


@pytest.fixture
def library(tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(Path(__file__).parent.parent / "library" / "light.py"))["install"]()
    folder = tmp_path / "films"
    folder.mkdir()
    make_video(folder / "zoo.mp4", [(3.0, (20, 20, 200))], rate=5, size=(64, 48))
    with LibraryStore.open(tmp_path / "library", create=True, encoder="colours") as opened:
        opened.add(folder)
    return tmp_path / "library"


def test_scenes_are_described_found_and_marked(momentseek: Callable[..., Any], library: Path, endpoint: str) -> None:
    place = ("--library", library)
    one = momentseek("describe", "--model", endpoint, "--video", "zoo.mp4", "--at", "0:01-0:02", *place)
    assert (one.returncode, one.stdout) == (0, "An owl sleeps in a barn.\n")
    assert "described by a model (eye at http://127.0.0.1" in one.stderr
    assert "by a model" not in momentseek("status", *place).stdout  # one moment is printed and not kept
    done = momentseek("describe", "--model", endpoint, *place)
    assert (done.returncode, done.stderr.splitlines()[-1].split(" in ")[0]) == (0, "1 video described (00:00:03")
    assert "described 1 video (00:00:03), 1 scene, by a model" in momentseek("status", *place).stdout
    shown = momentseek("search", "described:owl", *place)
    assert ("described by a model" in shown.stdout, "An owl sleeps" in shown.stdout) == (True, True)
    (hit,) = json.loads(momentseek("search", "described:owl", "--json", *place).stdout)["hits"]
    assert (hit["said"], hit["described"][0]["text"]) == ([], "An owl sleeps in a barn.")
    assert hit["described"][0]["described_by"].startswith("eye at ")


def test_exported_captioner_needs_a_library_with_its_vectors(
    momentseek: Callable[..., Any], library: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from momentseek.models.captioner import CaptionerDims
    from momentseek.models.export.checkpoints import export_captioner
    from momentseek.models.registry import build_config
    from momentseek.models.zoo.mmt import MMT, MMTConfig

    torch.manual_seed(0)
    known = build_vocabulary([("owl", "barn")], more_than=0)
    small = {"hidden": 8, "heads": 2, "layers": 1, "feedforward": 8, "word_dim": 4, "max_clips": 6, "max_caption": 4}
    with LibraryStore.open(library, create=False) as opened:
        vision = opened.catalog.encoder("vision")
    assert vision is not None
    for columns, folder in ((vision.dim, "fits"), (vision.dim + 1, "other")):
        model = MMT(build_config(MMTConfig, small, "model mmt"), CaptionerDims(columns, known.words)).eval()
        export_captioner(model, "mmt", tmp_path / folder)
    refused = momentseek("describe", "--model", tmp_path / "other", "--library", library)
    assert (refused.returncode, "the library's are by another" in refused.stderr) == (2, True)
    done = momentseek("describe", "--model", tmp_path / "fits", "--library", library)
    assert done.returncode == 0, done.stderr
    hits = json.loads(momentseek("search", "described:owl described:barn", "--json", "--library", library).stdout)[
        "hits"
    ]
    assert set(hits[0]["described"][0]["text"].split()) <= {"owl", "barn"}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--data", "x"], "give a CHECKPOINT with --data and --split"),
        (["--model", "x", "--split", "test"], "--model describes a library"),
        (["--model", "x", "--at", "later"], "is no moment; give start and end"),
        (["--model", "x", "--at", "1-2"], "--at is a moment of one video"),
        (["--model", "x", "--video", "zoo.mp4", "--at", "9-12"], "ends at 3.0 s"),
    ],
)
def test_contradictory_options_are_one_sentence(
    momentseek: Callable[..., Any], library: Path, arguments: list[str], what: str
) -> None:
    done = momentseek("describe", *arguments, "--library", library)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert what in done.stderr
