"""The sample films show what their script says, to the frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from momentseek.benchmarks.demo.filming import RATE, make_films
from momentseek.benchmarks.demo.films import DEMO_FILMS, DEMO_QUERIES, SLIDE_FILM, SPOKEN_FILM, DemoFilm, DemoScene
from momentseek.media.decode import SAMPLE_RATE, sound

av = pytest.importorskip("av")
SHORT = (
    DemoFilm("a.mp4", (DemoScene("cat", 2.0, "Hello, cat."), DemoScene("hubble", 1.0), DemoScene("coffee", 0.5))),
    DemoFilm("b.mp4", (DemoScene("moon", 1.0), DemoScene("rocket", 2.0, "And up it goes.")), track=True),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    make_films(folder, SHORT)
    return folder


def pictures(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]).astype(np.int16)


def test_scenes_change_at_their_frame(folder: Path) -> None:
    frames = pictures(folder / "a.mp4")
    assert len(frames) == 3.5 * RATE
    change = np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3))
    assert sorted(np.argsort(change)[-2:] + 1) == [2 * RATE, 3 * RATE]


def test_the_camera_moves(folder: Path) -> None:
    frames = pictures(folder / "a.mp4")
    assert np.abs(frames[1] - frames[8]).mean() > 1


def test_words_lie_beside_or_inside(folder: Path) -> None:
    assert (folder / "a.srt").read_text() == "1\n00:00:00,400 --> 00:00:01,600\nHello, cat.\n"
    assert not (folder / "b.srt").exists()
    with av.open(str(folder / "b.mp4")) as container:
        words = [(p.pts, p.duration, bytes(p)[2:]) for p in container.demux(subtitles=0) if p.size > 2]
    assert words == [(1400, 1200, b"And up it goes.")]


def test_a_slide_is_drawn_and_a_voice_speaks_in_its_scene(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    scenes = (DemoScene("slide", 1.0, written="A line\nAnother"), DemoScene("cat", 2.0, "Hello there, cat."))
    (path,) = make_films(tmp_path, [DemoFilm("c.mp4", scenes, voice=True)])
    assert not path.with_suffix(".srt").exists()
    dark = (pictures(path).mean(axis=3) < 100).mean(axis=(1, 2))
    assert 0.003 < dark[0] < 0.2  # letters on paper
    heard = np.concatenate(list(sound(path)))
    loud = np.flatnonzero(np.abs(heard) > 0.02) / SAMPLE_RATE
    assert 1.3 < loud.min() < 1.7
    assert loud.max() < 3.0


def test_making_again_keeps_the_files(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    make_films(folder, SHORT)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_scenes_are_whole_frames() -> None:
    films = (*DEMO_FILMS, SPOKEN_FILM, SLIDE_FILM)
    assert all((scene.seconds * RATE).is_integer() for film in films for scene in film.scenes)


def test_every_question_has_its_answer() -> None:
    for query in DEMO_QUERIES:
        start, end = query.interval
        assert 0 <= start < end <= next(film for film in DEMO_FILMS if film.name == query.film).seconds
