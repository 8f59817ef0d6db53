"""Faces are counted when somebody asks for it, found by words, and deleted when asked."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from momentseek.api.library import Library
from momentseek.cli import cli
from momentseek.recognition import faces as module
from momentseek.recognition.encoders.protocol import Pixels
from momentseek.recognition.faces import BLAZEFACE, FACE_DETECTORS, BlazeFace, Face, describe_faces, heights
from momentseek.recognition.weights.files import are_installed, packaged_weights

LIGHT = Path(__file__).parent / "light.py"
needs_weights = pytest.mark.skipif(
    not are_installed(packaged_weights(BLAZEFACE)), reason="needs momentseek models get blazeface"
)


class Redness:
    """Sees as many faces as a picture is red."""

    fingerprint = "redness-1"

    def detect(self, picture: Pixels) -> list[Face]:
        red = int(picture[..., 0].mean()) > 128
        return [Face(0.1, 0.1, 0.1, 0.1, 0.9), Face(0.6, 0.1, 0.2, 0.4, 0.8)] if red else []


@pytest.fixture
def library(tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    from momentseek.recognition.encoders import registry

    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    monkeypatch.setitem(FACE_DETECTORS._things, BLAZEFACE, Redness)
    runpy.run_path(str(LIGHT))["install"]()
    make_video(tmp_path / "film.mp4", [(8.0, (220, 20, 20)), (6.0, (20, 20, 220))], rate=5, size=(64, 48))
    with Library.open(tmp_path / "library", create=True, encoder="colours") as opened:
        opened.add(tmp_path / "film.mp4")
        yield opened


def test_nothing_is_known_of_faces_until_somebody_asks(library: Library) -> None:
    assert not library.search("described:people", all=True)
    assert library.find_people().faces == 1
    (hit,) = library.search('described:"two people"', all=True)
    assert hit.start < 1
    assert 7 <= hit.end <= 10
    (scene,) = hit.described
    assert (scene.text, scene.by) == ("two people, a close-up", BLAZEFACE)
    assert library.find_people().faces == 0  # once is enough
    assert library.verify().clean


def test_what_was_found_is_deleted_when_asked(library: Library, tmp_path: Path) -> None:
    library.find_people()
    library.close()
    words = ["people", "--remove", "--library", str(tmp_path / "library")]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.stderr == "deleted what was found about faces in 1 video\n"
    with Library.open(tmp_path / "library") as opened:
        assert not opened.search("described:people", all=True)
        for table in ("cues", "tracks", "track_parts"):
            assert opened.store.catalog.rows(f"SELECT count(*) FROM {table} WHERE kind = 'people'") == [(0,)]


def test_counts_and_sizes_in_words() -> None:
    said = [describe_faces(number, 0.1) for number in range(8)]
    assert said == ["", "one person", "two people", "three people", "four people", "five people",
                    "a crowd of people", "a crowd of people"]  # fmt: skip
    assert heights([]) == (0, 0.0)


@needs_weights
def test_the_detector_finds_the_faces_of_a_photograph() -> None:
    pytest.importorskip("ai_edge_litert")
    data = pytest.importorskip("skimage.data")
    detector = BlazeFace()
    astronaut = data.astronaut()
    (face,) = detector.detect(astronaut)
    assert 0.30 < face.left < 0.40
    assert 0.08 < face.top < 0.18
    assert face.score > 0.8
    bust = astronaut[0:250, 100:350]
    for down, across in ((1, 2), (1, 3), (2, 4)):
        assert len(detector.detect(np.tile(bust, (down, across, 1)))) == down * across
    close = detector.detect(astronaut[20:220, 150:300])
    assert heights(close)[1] > module.CLOSE_UP_HEIGHT
    assert [detector.detect(data.coffee()), detector.detect(data.rocket())] == [[], []]
