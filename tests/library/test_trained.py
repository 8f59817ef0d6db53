"""Libraries whose vectors a trained model makes: of frames and cues in their context, by ONNX Runtime alone."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from tests.helpers.power_loss import record_power_loss

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.recognition.exported.encoder import load_trained_encoder
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.recognition.exported.manifest import read_kind as described_kind

SOURCES = {
    "video": EncoderRef("colours", "colours-1", 4),
    "subtitle": EncoderRef("minilm", "letters-1", 27),
    "query": EncoderRef("minilm", "letters-1", 27),
}


_EXPORTED: dict[object, dict[str, bytes]] = {}
"""The files of the models that have been exported: most tests want the same one."""


def exported(folder: Path, seed: int = 0, *, encoders: dict[str, EncoderRef] = SOURCES) -> Path:
    """A model with weights of chance."""
    key = (seed, *encoders.items())
    if key in _EXPORTED:
        folder.mkdir()
        for name, content in _EXPORTED[key].items():
            (folder / name).write_bytes(content)
        return folder
    torch.manual_seed(seed)
    model = build("xml", {"hidden": 16, "heads": 2, "max_clips": 8, "max_words": 8}, Dims(27, 4, 27))
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.5)
    export(model, "xml", folder, encoders=encoders)
    _EXPORTED[key] = {path.name: path.read_bytes() for path in folder.iterdir()}
    return folder


@pytest.fixture
def model(light: ModuleType, tmp_path: Path) -> Path:
    return exported(tmp_path / "model")


@pytest.fixture
def trained(model: Path, tmp_path: Path, films: Path) -> Path:
    """A library of three films with the model's vectors."""
    with LibraryStore.open(tmp_path / "trained", create=True, encoder=f"model:{model}") as opened:
        assert opened.add(films).added == 3
    return tmp_path / "trained"


def vectors(library: LibraryStore) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    state = library.snapshot()
    found = {}
    for video in library.videos():
        vision, spans = StoredVectors.find(state.vision, video.id), StoredVectors.find(state.spans, video.id)
        assert vision is not None
        found[video.name] = (vision.half.copy(), None if spans is None else spans.half.copy())
    return found


def test_vectors_are_the_models_of_the_frames_in_their_context(trained: Path, tmp_path: Path, films: Path, model: Path):
    with LibraryStore.open(tmp_path / "plain", create=True, encoder="colours") as plain:
        plain.add(films)
        frames = vectors(plain)
    own = load_trained_encoder(model)
    with LibraryStore.open(trained) as opened:
        assert opened.encoders.has_model
        assert opened.verify().clean
        made = vectors(opened)
        cues = {video.name: opened.catalog.cues(video.id) for video in opened.videos()}
        speech = opened.encoders.speech
        assert speech is not None
        assert [row.stream for row in opened.catalog.segments()].count("spans") == 1
    assert made.keys() == frames.keys()
    for name, (rows, _) in frames.items():
        said = speech.encode([cue.text for cue in cues[name]]) if cues[name] else None
        rounded = None if said is None else said.astype(np.float16).astype(np.float32)
        times = [(cue.start, cue.end) for cue in cues[name]]
        match, spans = own.clips(rows.astype(np.float32), times, rounded)
        np.testing.assert_array_equal(made[name][0], match.astype(np.float16))
        np.testing.assert_array_equal(made[name][1], spans.astype(np.float16))


def test_the_copy_in_the_library_serves_when_the_folder_is_gone(trained: Path, model: Path, films: Path):
    shutil.rmtree(model)
    (films / "b.mp4").rename(films / "z.mp4")
    (films / "b.srt").rename(films / "z.srt")
    with Library.open(trained) as opened:
        report = opened.add(films)
        assert (report.moved, report.unchanged, report.added) == (1, 2, 0)
        assert opened.engine.localiser == "learned"
        found = opened.search("a green thing", all=True)
        assert found
        assert {hit.name for hit in found} <= {"a.mp4", "z.mp4", "deep/c.mkv"}


def test_other_subtitles_make_other_vectors(trained: Path, films: Path):
    with LibraryStore.open(trained) as opened:
        before = vectors(opened)
        (films / "b.srt").write_text("1\n00:00:00,000 --> 00:00:02,900\nQuite other words.\n")
        report = opened.add(films)
        assert (report.changed, report.unchanged, report.failed) == (1, 2, [])
        after = vectors(opened)
        assert opened.verify().clean
    assert not np.array_equal(before["b.mp4"][0], after["b.mp4"][0])
    np.testing.assert_array_equal(before["a.mp4"][0], after["a.mp4"][0])


def test_a_copy_of_a_film_is_read_by_itself(trained: Path, films: Path):
    """Its cues may be others, and so its vectors."""
    shutil.copyfile(films / "b.mp4", films / "silent.mp4")
    with LibraryStore.open(trained) as opened:
        assert opened.add(films).added == 1
        made = vectors(opened)
        assert opened.verify().clean
    assert not np.array_equal(made["silent.mp4"][0], made["b.mp4"][0])


def test_mixing_is_refused(trained: Path, model: Path, tmp_path: Path):
    with LibraryStore.open(trained, encoder=f"model:{model}"):
        pass  # the same model, wherever it lies
    other = exported(tmp_path / "other", seed=1)
    with pytest.raises(MomentseekError, match=r"cannot be mixed.*reencode.*model:.*other"):
        LibraryStore.open(trained, encoder=f"model:{other}")
    with pytest.raises(MomentseekError, match="cannot be mixed"):
        LibraryStore.open(trained, encoder="colours")
    with (
        LibraryStore.open(tmp_path / "plain", create=True, encoder="colours") as _,
        pytest.raises(MomentseekError, match="cannot be mixed"),
    ):
        LibraryStore.open(tmp_path / "plain", encoder=f"model:{model}")


def test_reencoding_to_a_model_and_back(tmp_path: Path, films: Path, model: Path, trained: Path):
    with LibraryStore.open(trained) as opened:
        wanted = vectors(opened)
    with Library.open(tmp_path / "plain", create=True, encoder="colours") as opened:
        opened.add(films)
        assert opened.engine.localiser == "height"
        plain = vectors(opened.store)
        opened.reencode(f"model:{model}")
        assert opened.verify().clean
        made = vectors(opened.store)
        assert opened.engine.localiser == "learned"
        opened.search("a green thing")
    for name, (match, spans) in wanted.items():
        np.testing.assert_array_equal(made[name][0], match)
        np.testing.assert_array_equal(made[name][1], spans)
    with LibraryStore.open(tmp_path / "plain") as opened:
        opened.reencode("colours")
        assert opened.verify().clean
        assert not opened.encoders.has_model
        back = vectors(opened)
    for name, (rows, none) in plain.items():
        np.testing.assert_array_equal(back[name][0], rows)
        assert back[name][1] is none is None


def answers(library: Library) -> list[tuple[object, ...]]:
    found = library.search("a green thing", k=50, all=True)
    return [(hit.name, hit.start, hit.end, round(hit.score, 6)) for hit in found]


def test_open_library_follows_reencoding_by_another_process(
    trained: Path, tmp_path: Path, films: Path, film: Callable[..., Path], light: ModuleType
):
    """As a server does: the old model's query vectors mean nothing among the new one's, also where the size is one."""
    other = exported(tmp_path / "other", seed=1)
    with Library.open(trained) as served:
        told = [answers(served)]
        for spec in (f"model:{other}", "colours", f"model:{tmp_path / 'model'}"):
            with Library.open(trained) as writing:
                writing.reencode(spec)
            with Library.open(trained) as fresh:
                wanted = answers(fresh)
            told.append(answers(served))
            assert told[-1] == wanted, spec
        assert told[0] == told[3]
        assert told[0] != told[1] != told[2]

        with Library.open(trained) as writing:
            writing.reencode(f"model:{other}")
        film(films / "new.mp4", (20, 220, 20))
        assert served.add(films).added == 1  # by the new model, although the old one was loaded
        with Library.open(tmp_path / "afresh", create=True, encoder=f"model:{other}") as afresh:
            afresh.add(films)
            wanted_rows = vectors(afresh.store)["new.mp4"]
        np.testing.assert_array_equal(vectors(served.store)["new.mp4"][0], wanted_rows[0])


def test_an_open_library_follows_another_encoder_of_what_is_said(library: LibraryStore, films: Path, light: ModuleType):
    from momentseek.recognition.encoders import registry

    class Backwards(light.Letters):  # type: ignore[name-defined, misc]
        fingerprint = "letters-2"

        def encode(self, texts: list[str]) -> np.ndarray:
            return np.ascontiguousarray(super().encode(texts)[:, ::-1])

    library.add(films)
    with Library.open(library.path) as served:
        before = served.search("it is blue", streams=("speech",), all=True)
        registry.TEXT_ENCODERS["minilm"] = Backwards
        library.reencode("colours-2")
        after = served.search("it is blue", streams=("speech",), all=True)
        assert served.store.encoders.speech is not None
        assert served.store.encoders.speech.fingerprint == "letters-2"  # type: ignore[attr-defined]
    assert [(hit.name, hit.score) for hit in after] == [(hit.name, hit.score) for hit in before]


def test_removing_compacting_and_repairing_keep_both_kinds_of_vectors(trained: Path, films: Path):
    with LibraryStore.open(trained) as opened:
        opened.remove("a.mp4")
        opened.compact()
        assert opened.verify().clean
        assert all(spans is not None for _, spans in vectors(opened).values())
        (row,) = opened.catalog.segments("spans")
        path = opened.paths.segments / f"{row.name}.vec"
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        data[-200:-100] = b"\x7f" * 100
        path.write_bytes(data)
    with LibraryStore.open(trained) as opened:
        assert not opened.verify().clean
        opened.verify(repair=True)
        opened.retry()
        opened.add(films)
        assert opened.verify().clean
        assert {"b.mp4", "deep/c.mkv"} <= vectors(opened).keys()
        assert all(spans is not None for _, spans in vectors(opened).values())


def test_invalid_model_is_refused_before_a_library_is_created(tmp_path: Path, model: Path, light: ModuleType):
    def refused(folder: Path, words: str, **more: float) -> None:
        with pytest.raises(MomentseekError, match=words):
            LibraryStore.open(tmp_path / "new", create=True, encoder=f"model:{folder}", **more)  # type: ignore[arg-type]
        assert not (tmp_path / "new").exists()

    refused(tmp_path / "nowhere", "there is no such folder")
    checkpoint = tmp_path / "run"
    checkpoint.mkdir()
    (checkpoint / "best.safetensors").write_bytes(b"")
    refused(checkpoint, r"export it first: momentseek export .*run --out FOLDER")
    refused(checkpoint / "best.safetensors", "export it first")
    refused(model, "trained on clips of 1.5 s", clip_seconds=2.0)
    refused(exported(tmp_path / "unknown", encoders={}), "does not say which encoders")
    other = {**SOURCES, "video": EncoderRef("colours", "colours-of-old", 4)}
    refused(exported(tmp_path / "old", encoders=other), "another 'colours' than the one here")
    damaged = exported(tmp_path / "damaged")
    (damaged / "words.onnx").write_bytes((damaged / "words.onnx").read_bytes()[:-1])
    refused(damaged, "is not the file that was exported")
    changed = exported(tmp_path / "changed")
    values = json.loads((changed / "model.json").read_text())
    values["config"]["alpha"] = 1.0
    (changed / "model.json").write_text(json.dumps(values))
    refused(changed, "was changed after the export")
    (changed / "model.json").write_text("{}")
    refused(changed, "does not describe a model")


def test_stopped_in_the_middle_of_a_film_it_goes_on(model: Path, tmp_path: Path, film: Callable[..., Path]):
    from momentseek.library.options import WritePace

    path = film(tmp_path / "long.mp4", (220, 20, 20), (20, 220, 20), (20, 20, 220), seconds=8.0)
    made = []
    for name in ("whole", "halves"):
        with LibraryStore.open(tmp_path / name, create=True, encoder=f"model:{model}") as opened:
            opened.options = replace(opened.options, pace=WritePace(part_clips=4))
            if name == "halves":
                with pytest.raises(KeyboardInterrupt):
                    opened.add(path, progress=_stopping())
            report = opened.add(path)
            assert bool(report.resumed) == (name == "halves")
            assert opened.verify().clean
            made.append(vectors(opened)["long.mp4"])
    for one, two in zip(*made, strict=True):
        np.testing.assert_array_equal(one, two)


def _stopping() -> Callable[[object], None]:
    from momentseek.library.report import IngestStep

    def tell(event: object) -> None:
        if isinstance(event, IngestStep) and event.at > 12:
            raise KeyboardInterrupt

    return tell


WITHOUT_TORCH = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "safetensors", "h5py"):
            raise ImportError("no " + name)
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv.pop(1))
import light
light.main(sys.argv[1:])
"""


def without_torch(library: Path, *words: object) -> str:
    """What the command prints where torch is not installed."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", WITHOUT_TORCH, here, *map(str, words), "--library", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def chance(name: str, folder: Path, **settings: object) -> Path:
    """A small model that looks at maps of moments, with weights of chance."""
    torch.manual_seed(0)
    small = {"hidden": 16, "max_clips": 4, "longest": 4, "map_layers": 1, "kernel": 3, **settings}
    encoders = {key: SOURCES[key] for key in ("video", "query")}
    export(build(name, small, Dims(27, 4, None)), name, folder, encoders=encoders, window=9.0)
    return folder


@pytest.mark.parametrize("kind", ["clips", "map"])
def test_adding_and_searching_need_no_torch(kind: str, light: ModuleType, tmp_path: Path, films: Path):
    model = exported(tmp_path / "m") if kind == "clips" else chance("crocs", tmp_path / "m", space=8)
    assert described_kind(model) == kind
    without_torch(tmp_path / "new", "add", films, "--model", model)
    found = json.loads(without_torch(tmp_path / "new", "search", "a green thing", "--json", "--all"))
    assert found["hits"]


def test_re_ranking_needs_no_torch(library: LibraryStore, tmp_path: Path, films: Path):
    library.add(films)
    model = chance("tan2d", tmp_path / "tan2d", text_layers=1)
    asked = ("search", "a green thing", "--json", "--all", "--rerank", model)
    found = json.loads(without_torch(library.path, *asked))
    assert found["hits"]
    assert all(hit["reranked"]["model"].startswith("tan2d ") for hit in found["hits"])


def test_the_copy_of_the_model_survives_a_power_cut(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    with record_power_loss(root, monkeypatch) as recorder:
        LibraryStore.open(root / "library", create=True, encoder=f"model:{model}").close()
        recorder.finish_command()
    for how in ("least", "names", "any"):
        recorder.cuts[-1].leave(tmp_path / how, how, random.Random(1))
        (copy,) = (tmp_path / how / "library" / "models").iterdir()
        for path in model.iterdir():
            assert (copy / path.name).read_bytes() == path.read_bytes()
