"""What ``attack.py`` attacks: a small library, the commands that change it, and what each of them must leave."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from momentseek.encoders.protocol import Pixels, Vectors
from momentseek.encoders.registry import register_image_text
from momentseek.library import LibraryStore
from momentseek.library.ingest.writer import WritePace
from momentseek.library.vectors import StoredVectors
from momentseek.server.judging.store import JudgementStore

T = TypeVar("T")
State = tuple[dict[str, Any], list[int]]
"""All that a library says of each video, by name, and the judgements."""
Step = Callable[[LibraryStore], object]
FILMS = 6
JUDGEMENTS = 30


class MeanColour:
    """An encoder that costs nothing: an image is its mean colour."""

    name, short_side, dim = "mean-colour", 32, 48

    def __init__(self, version: int = 1) -> None:
        self.fingerprint, self.version = f"mean-colour-{version}", version

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        return self._unit([np.resize(image.reshape(-1, 3).mean(axis=0) / 255, self.dim) for image in images])

    def encode(self, texts: Sequence[str]) -> Vectors:
        return self._unit([np.ones(self.dim) for _ in texts])

    def _unit(self, rows: Sequence[Any]) -> Vectors:
        wide = np.asarray(rows, np.float32).reshape(-1, self.dim) + np.arange(self.dim, dtype=np.float32) / self.dim
        wide[:, self.version] += 1
        return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def install_encoders() -> None:
    """Make the encoders known by their names."""
    register_image_text("mean-colour", MeanColour)
    register_image_text("mean-colour-2", lambda: MeanColour(2))


def make_films(folder: Path) -> list[Path]:
    """Write small films, each with subtitles: ``FILMS`` short ones, and a longer one last."""
    import av

    folder.mkdir()
    chance = np.random.default_rng(1)
    paths = []
    for number in range(FILMS + 1):
        path = folder / f"{number}.mp4"
        with av.open(str(path), "w") as container:
            stream: Any = container.add_stream("libx264", rate=5)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            blocks = chance.integers(0, 255, (6, 8, 3), np.uint8)
            picture = np.ascontiguousarray(blocks.repeat(8, axis=0).repeat(8, axis=1))
            for _ in range(5 * (12 if number == FILMS else 6)):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
            container.mux(stream.encode(None))
        cue = "{0}\n00:00:0{0},000 --> 00:00:0{0},900\nLine {0} of film {1}.\n\n"
        path.with_suffix(".srt").write_text("".join(cue.format(i, number) for i in range(1, 5)))
        paths.append(path)
    return paths


@contextmanager
def open_library(folder: Path) -> Iterator[LibraryStore]:
    """Open a library, with parts and segments as small as they get."""
    with LibraryStore.open(folder, create=None, encoder=None) as library:
        library.pace = WritePace(rows=4, seconds=60, part_clips=8)
        yield library


def make_base(folder: Path, films: Sequence[Path]) -> None:
    """A library of some films in several segments, of which one is removed and not yet compacted."""
    LibraryStore.open(folder, create=True, encoder="mean-colour").close()
    with open_library(folder) as library:
        library.add([films[FILMS]])
        library.add(films[:2])
        library.add([films[2]])
        library.remove(films[1])


def judge(library: LibraryStore, number: int) -> None:
    """Judge a moment of a query of its own."""
    with JudgementStore(library.path, create=True) as store, store.changes():
        video = library.videos()[0]
        store.add_video(video.hash, video.name, video.name, video.duration)
        query = store.add_query(f"query {number}", 20)
        store.add_candidate(query, 1, 1, video.hash, 0.0, 1.5)
        store.add_judgement(query, "somebody", number % 5)


def commands(films: Sequence[Path]) -> dict[str, list[Step]]:
    """Each command that changes a library, as steps that are reported when they are done."""
    return {
        "add": [lambda library, film=film: library.add([film]) for film in films[3:FILMS]],  # type: ignore[misc]
        "reencode": [
            lambda library: library.reencode("mean-colour-2"),
            lambda library: library.reencode("mean-colour"),
        ],
        "compact": [
            lambda library: library.compact(),
            lambda library: library.remove(films[0]),
            lambda library: library.compact(),
        ],
        "remove": [lambda library, film=film: library.remove(film) for film in (films[0], films[2])],  # type: ignore[misc]
        "judge": [lambda library, n=n: judge(library, n) for n in range(JUDGEMENTS)],  # type: ignore[misc]
    }


def state_of(library: LibraryStore) -> State:
    """What a library says of each video, without ids and times of adding, and the judgements."""
    taken = library.snapshot()
    found = {}
    for video in library.videos():
        rows = [StoredVectors.find(held, video.id) for held in (taken.vision, taken.speech)]
        found[video.name] = (
            [None if r is None else (r.codes.tobytes(), r.scales.tobytes(), r.half.tobytes()) for r in rows],
            library.catalog.cues(video.id), video.shots, video.clips, video.duration, video.hash, video.path,
        )  # fmt: skip
    with JudgementStore(library.path) as store:
        return found, [row.relevance for row in store.judgements()]


def states_of_steps(base: Path, copy: Path, steps: Sequence[Step]) -> list[State]:
    """The state at first and after each step, when nothing goes wrong."""
    shutil.copytree(base, copy)
    with open_library(copy) as library:
        found = [state_of(library)]
        for step in steps:
            step(library)
            found.append(state_of(library))
    shutil.rmtree(copy)
    return found


def in_child(work: Callable[..., T], *arguments: Any) -> T:
    """Do something in a process of its own, so that this one has no threads and can be forked safely."""
    here, there = os.pipe()
    if not (child := os.fork()):
        os.close(here)
        with os.fdopen(there, "wb") as file:
            pickle.dump(work(*arguments), file)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    if not data:
        raise SystemExit("a part of the attack did not run; see above")
    return pickle.loads(data)  # type: ignore[no-any-return]
