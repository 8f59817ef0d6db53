"""What ``attack.py`` attacks: a small library, the commands that change it, and what each of them must leave.

Videos without subtitles are heard and read, by stand-ins that cost nothing and answer part by part, so that a kill
finds them in the middle.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from momentseek.library.database import OCR
from momentseek.library.options import WritePace
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import track
from momentseek.library.tracks import ocr, speech
from momentseek.library.tracks.speech import transcript
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.encoders.protocol import Pixels, Vectors
from momentseek.recognition.encoders.registry import register_image_text
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, OcrPart
from momentseek.recognition.speech.transcript import CueEdit, TranscribedPart, spoken_cue
from momentseek.server.judging.store import JudgementStore

T = TypeVar("T")
State = tuple[dict[str, dict[str, Any]], list[int]]
"""All that a library says of each video, by name and stream, and the judgements."""
STREAMS = ("said", "written")
"""What a video gets after its pictures."""
Step = Callable[[LibraryStore], object]
FILMS = 6
JUDGEMENTS = 30
PARTS = 4
"""Parts in which a film is heard, and read."""
PART_SECONDS = 0.02
UNTOLD = range(2, FILMS)
"""Films without subtitles: what is said in them is heard."""


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


class Listener:
    """A recogniser that hears a line in each part of every film."""

    def __init__(self, spec: str, threads: int = 1) -> None:
        pass

    def hear(self, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[TranscribedPart]:
        for part in range(round(begin), PARTS):
            time.sleep(PART_SECONDS)
            words = tuple(SpokenWord(part + at / 4, part + at / 4 + 0.2, f" {word}") for at, word in
                          enumerate(("part", f"{part}", path.stem)))  # fmt: skip
            yield TranscribedPart(part + 1.0, "en", (spoken_cue(words),))

    def close(self) -> None:
        pass


class Clerk:
    """A reader that reads a line in each part of every film."""

    def __init__(self, spec: str, threads: int = 1) -> None:
        pass

    def read(self, path: Path, duration: float, cuts: Any, begin: float, every: float) -> Iterator[OcrPart]:
        for part in range(round(begin), PARTS):
            time.sleep(PART_SECONDS)
            line = OcrLine(f"sign {part} of {path.stem}", Box(0.1, 0.2, 0.3, 0.1), 0.9)
            yield OcrPart(part + 1.0, (OcrFrame(part, part + 1.0, part + 0.5, (line,)),))

    def close(self) -> None:
        pass


def install_encoders() -> None:
    """Make the encoders known by their names, and let stand-ins hear and read."""
    stand_ins: Any = {speech: {"TranscriberProcess": Listener, "transcriber_fingerprint": str},
                      ocr: {"OcrProcess": Clerk, "ocr_fingerprint": lambda spec, every: spec}}  # fmt: skip
    for module, names in stand_ins.items():
        for name, value in names.items():
            setattr(module, name, value)
    register_image_text("mean-colour", MeanColour)
    register_image_text("mean-colour-2", lambda: MeanColour(2))


def make_films(folder: Path) -> list[Path]:
    """Write small films with sound, some with subtitles: ``FILMS`` short ones, and a longer one last."""
    import av

    folder.mkdir()
    chance = np.random.default_rng(1)
    paths = []
    for number in range(FILMS + 1):
        path = folder / f"{number}.mp4"
        with av.open(str(path), "w") as container:
            stream: Any = container.add_stream("libx264", rate=5)
            sound: Any = container.add_stream("aac", rate=8000, layout="mono")
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            blocks = chance.integers(0, 255, (6, 8, 3), np.uint8)
            picture = np.ascontiguousarray(blocks.repeat(8, axis=0).repeat(8, axis=1))
            for _ in range(5 * (12 if number == FILMS else 6)):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
            container.mux(stream.encode(None))
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
            frame.sample_rate = 8000
            container.mux(sound.encode(frame))
            container.mux(sound.encode(None))
        paths.append(path)
        if number in UNTOLD:
            continue
        cue = "{0}\n00:00:0{0},000 --> 00:00:0{0},900\nLine {0} of film {1}.\n\n"
        path.with_suffix(".srt").write_text("".join(cue.format(i, number) for i in range(1, 5)))
    return paths


@contextmanager
def open_library(folder: Path) -> Iterator[LibraryStore]:
    """Open a library, with parts and segments as small as they get."""
    with LibraryStore.open(folder, create=None, encoder=None) as library:
        library.options = replace(library.options, pace=WritePace(rows=4, seconds=60, part_clips=8))
        library.options = replace(library.options, transcriber="listener", ocr_model="clerk")
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


def correct(library: LibraryStore, number: int) -> None:
    """Correct a cue that was heard."""
    video = next(video for video in library.videos() if video.name == f"{UNTOLD[0]}.mp4")
    cue = library.catalog.cues(video.id)[number]
    library.edit_cues(video.id, [CueEdit(cue.start, cue.end, f"corrected {number}")])


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
        "correct": [lambda library, n=n: correct(library, n) for n in range(PARTS)],  # type: ignore[misc]
        "remove": [lambda library, film=film: library.remove(film) for film in (films[0], films[2])],  # type: ignore[misc]
        "judge": [lambda library, n=n: judge(library, n) for n in range(JUDGEMENTS)],  # type: ignore[misc]
    }


def state_of(library: LibraryStore) -> State:
    """What a library says of each video, without ids and times of adding, and the judgements."""
    taken = library.snapshot()
    found = {}
    for video in library.videos():
        seen, spoken = (StoredVectors.find(held, video.id) for held in (taken.vision, taken.speech))
        heard, read = transcript(library.catalog, video.id), track(library.catalog, OCR, video.id)
        cues = library.catalog.cues(video.id)
        found[video.name] = {
            "seen": (_bytes(seen), video.shots, video.clips, video.duration, video.hash, video.path),
            "said": (_bytes(spoken), cues, (heard.cues, heard.edited) if heard is not None and cues else None),
            "written": read.cues if read is not None and read.whole else (),
        }
    with JudgementStore(library.path) as store:
        return found, [row.relevance for row in store.judgements()]


def _bytes(rows: StoredVectors | None) -> tuple[bytes, ...] | None:
    return None if rows is None else (rows.codes.tobytes(), rows.scales.tobytes(), rows.half.tobytes())


def is_on_the_way(found: State, goal: State) -> bool:
    """Whether a library differs from a goal only in videos that are not yet heard or read."""
    nothing = {"said": (None, [], None), "written": ()}
    if found[1] != goal[1] or found[0].keys() != goal[0].keys():
        return False
    return all(
        video["seen"] == goal[0][name]["seen"]
        and all(video[stream] in (nothing[stream], goal[0][name][stream]) for stream in STREAMS)
        for name, video in found[0].items()
    )


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
