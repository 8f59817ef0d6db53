"""Makes the small library that a release leaves to later ones: ``freeze.py FOLDER kept/0.1.0.zip``.

Run it (with ``PYTHONPATH=bench``) once per release whose format is new, in a FOLDER that does not exist yet and whose
path may be published, as a catalog names its films by their paths. ``test_kept.py`` then holds every later version to
it. The archive has the films, a library of them, the same in shards, and what both answer.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import light
import numpy as np

import attack_library as stand_ins
from momentseek.api.library import Library
from momentseek.cluster.shards.making import split_library
from momentseek.library.options import AddOptions, WritePace
from momentseek.library.store import LibraryStore
from momentseek.recognition.speech.transcript import CueEdit
from momentseek.server.database import DatabaseLocation
from momentseek.server.judging.store import JudgementStore
from momentseek.server.security.users import Users

COLOURS = {"red": (220, 20, 20), "green": (20, 220, 20), "blue": (20, 20, 220)}
FILMS = {
    "red-green.mp4": ("red", "green"),
    "blue.mkv": ("blue",),
    "long.mp4": ("green", "blue", "green"),
    "gone.mp4": ("red",),
}
QUERIES = {"vision": "red", "speech": "bakery", "text": "sign blue", "name": "long.mp4"}
"""Something to search each stream for."""


def install() -> None:
    """Make the encoders known, and let stand-ins hear and read."""
    light.install()
    stand_ins.install_encoders()
    stand_ins.PART_SECONDS = 0.0


def make_film(path: Path, colours: tuple[str, ...]) -> None:
    """Write a film that shows each colour for three seconds, with sound."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=5, options={"crf": "35"})
        sound: Any = container.add_stream("aac", rate=8000, layout="mono")
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for colour in colours:
            shades = np.random.default_rng(COLOURS[colour]).uniform(0.2, 1.0, (6, 8, 1)) * COLOURS[colour]
            picture = shades.astype(np.uint8).repeat(8, axis=0).repeat(8, axis=1)
            for _ in range(15):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")))
        container.mux(stream.encode(None))
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 8000
        container.mux(sound.encode(frame))
        container.mux(sound.encode(None))


def fill(library: LibraryStore, films: Path) -> None:
    """Do what people do with a library: add, be refused, hear, read, correct, remove and judge."""
    library.options = AddOptions(pace=WritePace(rows=4, seconds=60, part_clips=8))
    library.options = replace(library.options, transcriber="listener", ocr_model="clerk")
    for name in FILMS:
        library.add([films / name])
    library.add([films / "broken.mp4"])
    library.remove("gone.mp4")
    (films / "gone.mp4").unlink()
    heard = next(video for video in library.videos() if video.name == "long.mp4")
    cue = library.catalog.cues(heard.id)[1]
    library.edit_cues(heard.id, [CueEdit(cue.start, cue.end, "a line that somebody corrected")])
    with JudgementStore(library.path, create=True) as store, store.changes():
        store.add_video(heard.hash, heard.name, heard.name, heard.duration)
        query = store.add_query("something green", 20)
        store.add_candidate(query, 1, 1, heard.hash, 0.0, 3.0)
        for relevance in (4, 1, 3):
            store.add_judgement(1, "ann", relevance)
        store.undo_last("ann")
        store.add_judgement(1, "bob", 2)
    Users(DatabaseLocation(library.path)).add("ann")


def answers(library: Library) -> dict[str, Any]:
    """The first hit in each stream: its video, start and end. Later versions may score it, and rank others, as they
    please.
    """
    found = {}
    for stream, query in QUERIES.items():
        first = library.search(query, streams=[stream], all=True)[0]  # type: ignore[list-item]
        found[stream] = (first.name, first.start, first.end)
    return found


def said(folder: Path) -> dict[str, Any]:
    """All that a library in one folder says, as JSON can hold it."""
    with LibraryStore.open(folder, create=False) as library:
        videos = {
            video.name: {
                "hash": video.hash, "seconds": video.duration, "clips": video.clips, "shots": len(video.shots),
                "cues": [(cue.start, cue.end, cue.text) for cue in library.catalog.cues(video.id)],
            } for video in library.videos()
        }  # fmt: skip
        failures = [Path(failure.path).name for failure in library.failures()]
    with JudgementStore(folder) as store:
        judged = [(row.annotator, row.relevance, undone is not None) for row, undone in store.history()]
    users = [name for name, _ in Users(DatabaseLocation(folder)).list()]
    return {"videos": videos, "failures": failures, "judged": judged, "users": users}


def main(folder: Path, archive: Path) -> None:
    os.environ["MOMENTSEEK_TRANSCRIBE"] = "on"
    install()
    films = folder / "films"
    films.mkdir(parents=True)
    for name, colours in FILMS.items():
        make_film(films / name, colours)
    (films / "blue.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nThe bakery is blue.\n")
    (films / "broken.mp4").write_bytes(b"no film")
    with LibraryStore.open(folder / "library", create=True, encoder="colours") as library:
        fill(library, films)
    split_library(folder / "library", folder / "shards", 2)
    with Library.open(folder / "library") as library, Library.open(folder / "shards") as shards:
        found, parted = answers(library), answers(shards)
    expected = {"folder": str(folder), "said": said(folder / "library"), "answers": found, "in shards": parted}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for path in sorted(_files(folder)):
            out.write(path, path.relative_to(folder))


def _files(folder: Path) -> Iterator[Path]:
    """What is kept: no caches, no locks, and no log, as every database was closed."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "lock" and not path.name.endswith(("-wal", "-shm")):
            yield path


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
