"""What is heard, read, described, encoded again and found by trained models is the same in shards as in one library."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from vision_endpoint import serve_captions

from momentseek.api.library import Library
from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.shards.making import split_library
from momentseek.core.errors import MomentseekError
from momentseek.library.options import SECOND_PASS_VARIABLE
from momentseek.library.tracks import ocr, speech
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.chat import KEY_VARIABLES
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, OcrPart
from momentseek.recognition.speech.transcript import TranscribedPart, spoken_cue

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
SHARDS = 3


class Listener:
    """A recogniser that hears its file's name."""

    def __init__(self, spec: str, threads: int = 1) -> None:
        self.spec = spec

    def hear(self, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[TranscribedPart]:
        words = (SpokenWord(0.2, 0.4, " film"), SpokenWord(0.4, 0.8, f" {path.stem}"))
        yield TranscribedPart(3.0, "en", (spoken_cue(words),))

    def close(self) -> None:
        """Nothing is open."""


class Lector:
    """A reader that reads its file's name."""

    def __init__(self, spec: str, threads: int = 1) -> None:
        self.spec = spec

    def read(
        self, path: Path, duration: float, cuts: Sequence[float], begin: float = 0.0, every: float = 4.0
    ) -> Iterator[OcrPart]:
        line = OcrLine(f"Platform {path.stem}", Box(0.1, 0.2, 0.5, 0.1), 0.9)
        yield OcrPart(3.0, (OcrFrame(0.0, 3.0, 1.5, (line,)),))

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def films(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """Five films of one or two colours, two with sound."""
    folder = tmp_path / "films"
    folder.mkdir()
    film(folder / "ash.mp4", RED, GREEN, audio=True)
    film(folder / "birch.mp4", BLUE, audio=True)
    film(folder / "cedar.mp4", GREEN, BLUE)
    film(folder / "date.mp4", BLUE, RED)
    film(folder / "elm.mp4", GREEN)
    (folder / "elm.srt").write_text("1\n00:00:00,500 --> 00:00:02,000\na green elm\n")
    return folder


@pytest.fixture
def both(light: ModuleType, films: Path, tmp_path: Path) -> Iterator[tuple[Library, Library]]:
    """The same films in one library and in shards."""
    with pytest.MonkeyPatch.context() as patch:
        yield from open_both(tmp_path, films, "colours", patch)


def open_both(place: Path, films: Path, encoder: str, patch: pytest.MonkeyPatch) -> Iterator[tuple[Library, Library]]:
    patch.setattr(speech, "TranscriberProcess", Listener)
    patch.setattr(speech, "transcriber_fingerprint", lambda spec: f"print of {spec}")
    patch.setattr(ocr, "OcrProcess", Lector)
    patch.setattr(ocr, "ocr_fingerprint", lambda spec, every: f"print of {spec} {every}")
    with Library.open(place / "one", create=True, encoder=encoder) as one:
        one.store.options = replace(one.store.options, transcriber=None)
        assert one.add(films).added == 5
        split_library(place / "one", place / "many", SHARDS)
        with Library.open(place / "many") as many:
            assert sum(bool(shard.videos()) for shard in many.store.shards) > 1  # type: ignore[attr-defined]
            yield one, many


def answers(library: Library, *queries: str, **more: Any) -> list[list[tuple[Any, ...]]]:
    return [
        [
            (hit.name, hit.start, hit.end, hit.score, hit.level, hit.model, sorted(hit.streams))
            for hit in library.search(query, k=30, all=True, **more)
        ]
        for query in queries
    ]


def check_equal(both: tuple[Library, Library], *queries: str, **more: Any) -> None:
    one, many = (answers(library, *queries, **more) for library in both)
    assert one == many
    assert all(one), "each query finds something"
    assert all(library.verify().problems == [] for library in both)


def test_what_is_heard_and_read(both: tuple[Library, Library]) -> None:
    for library in both:
        assert library.transcribe(transcriber="parrot").heard == 2
        assert library.ocr(model="lector").read == 5
        assert library.transcribe(transcriber="parrot").heard == 0
    check_equal(both, "said:ash", "said:film", "text:platform", "text:cedar", "a red thing", "elm")
    one, many = (library.status() for library in both)
    assert (one.heard, one.read, one.lines, one.cues) == (many.heard, many.read, many.lines, many.cues)


def test_what_is_described(both: tuple[Library, Library], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    with serve_captions([], "A boat in the harbour.", []) as address:
        for library in both:
            assert library.describe(address).described == 5
        for library in both:
            assert library.describe(address).described == 0
    check_equal(both, "described:harbour", "boat")


def test_vectors_are_made_anew(both: tuple[Library, Library], light: ModuleType) -> None:
    many = both[1]
    check_equal(both, "red", "blue -green")
    for library in both:
        assert library.reencode("colours-2").in_library == 5
    assert read_manifest(many.path).encoder == "colours-2"
    check_equal(both, "red", "blue -green")
    with pytest.raises(MomentseekError, match="cannot be mixed with it"):
        Library.open(many.path, encoder="colours")


def test_the_second_encoder_looks_at_every_shard(
    light: ModuleType, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECOND_PASS_VARIABLE, "off")
    for both in open_both(tmp_path, films, "colours+shades", monkeypatch):
        assert [library.status().unseen for library in both] == [5, 5]
        assert [library.encode(["ash*"]).seen for library in both] == [1, 1]
        check_equal(both, "red", "blue -green")
        shutil.copy(films / "cedar.mp4", films / "again.mp4")
        for library in both:
            library.store.options = replace(library.store.options, second_pass=True)
            report = library.add([films])
            assert (report.copied, report.seen) == (1, 5)
            assert (library.status().seen, library.status().unseen) == (6, 0)
        check_equal(both, "red", "blue -green")


def test_shards_of_different_encoders_are_refused(both: tuple[Library, Library]) -> None:
    many = both[1]
    first = next(shard for shard in many.store.shards if shard.videos())  # type: ignore[attr-defined]
    first.reencode("colours-2")
    with pytest.raises(MomentseekError, match="have vectors of different encoders; make those of all again with: mom"):
        many.search("red")
    many.reencode("colours-2")
    assert many.search("red")


def test_a_video_in_two_shards_is_refused_and_found(both: tuple[Library, Library], films: Path) -> None:
    many = both[1]
    manifest = read_manifest(many.path)
    video = many.videos()[0]
    right = manifest.shard_of(video.hash)
    wrong = (right + 1) % SHARDS
    copy = shutil.copy(video.path, films / "copy.mp4")
    with Library.open(many.path / manifest.shards[wrong]) as shard:
        shard.store.options = replace(shard.store.options, transcriber=None)
        assert shard.add(copy).added == 1
    told = f"copy.mp4 is in the shards {manifest.shards[right]} and {manifest.shards[wrong]}"
    with pytest.raises(MomentseekError, match=told):
        Library.open(many.path)
    assert any("copy.mp4 belongs to" in text for text in many.verify().problems)


def test_trained_models_find_the_same(
    light: ModuleType, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = _models(tmp_path)
    for number, model in enumerate(models[:2]):
        place = tmp_path / f"by-{number}"
        place.mkdir()
        for both in open_both(place, films, f"model:{model}", monkeypatch):
            assert both[0].engine.localiser == both[1].engine.localiser == ("learned", "map")[number]
            check_equal(both, "a green thing", "red")
    place = tmp_path / "again"
    place.mkdir()
    for both in open_both(place, films, "colours", monkeypatch):
        check_equal(both, "a green thing", "red", rerank=models[2])
        for library in both:
            library.reencode(f"model:{models[0]}")
        check_equal(both, "a green thing", "red")


def _models(place: Path) -> list[Path]:
    """A model of clips, one of moments and a re-ranker, with weights of chance."""
    torch = pytest.importorskip("torch")
    from momentseek.models.export.writing import export
    from momentseek.models.features.data import Dims
    from momentseek.models.registry import build
    from momentseek.recognition.exported.manifest import EncoderRef

    sources = {
        "video": EncoderRef("colours", "colours-1", 4),
        "subtitle": EncoderRef("minilm", "letters-1", 27),
        "query": EncoderRef("minilm", "letters-1", 27),
    }
    maps = {"hidden": 16, "max_clips": 4, "longest": 4, "map_layers": 2, "kernel": 3, "modalities": "video+subtitle"}
    kinds: list[tuple[str, dict[str, Any], dict[str, float]]] = [
        ("xml", {"hidden": 16, "heads": 2, "max_clips": 8, "max_words": 8}, {}),
        ("crocs", {**maps, "space": 8}, {"window": 9.0}),
        ("tan2d", {**maps, "max_clips": 8, "longest": 8, "text_layers": 1}, {"window": 30.0}),
    ]
    made = []
    for name, settings, more in kinds:
        torch.manual_seed(0)
        built = build(name, settings, Dims(27, 4, 27))
        for weight in built.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=0.5)
        export(built, name, place / name, encoders=sources, **more)
        made.append(place / name)
    return made
