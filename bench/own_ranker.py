"""A ranker from a library's own sentences, next to the search without it: the documented path, and what it is worth.

    python bench/own_ranker.py generated FOLDER [--films 80] [--encoder clip]
    python bench/own_ranker.py library FOLDER --library LIBRARY [--truth TRUTH] [--tags] [--set key=value]...

``library`` runs `data features --own-lists`, `train slate`, `export` and `reencode --model` on a copy of a library, and
asks both libraries the queries of TRUTH (our native form; relevance 3 and 4 count as right, as in real_videos.py): the
share of queries whose first hit is in a right video (VR@1), R@1 and NDCG@10 at IoU 0.5, the difference (paired,
bootstrap over queries, 95 %), and the processor seconds of each step. The videos must be where the library found them.

``--tags``: where nobody has described the videos, every six seconds get a caption of three words, those of ImageNet's
labels that the library's own encoder finds there most unusually often. They serve training alone: neither library that
is asked has them. A model that learns from its teacher's guesses can hardly know more than the teacher.

``generated`` makes films first, of the demo's photographs: each of 15 pictures has four sentences that describe it, of
which two are subtitles of the films and two are asked for. So a model can learn what sentences look like that it has
never read, and the truth is known. It is a toy: 15 pictures, always the same, and a library of a few minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import momentseek as ms
from momentseek.benchmarks.demo.filming import make_films
from momentseek.benchmarks.demo.films import DemoFilm, DemoScene
from momentseek.core.reports import text_table
from momentseek.library.database import CAPTIONS
from momentseek.library.segments import vectors_of
from momentseek.library.store import LibraryStore
from momentseek.media.subtitles.cues import Cue
from real_videos import query_values
from record import family_time

MEASURES = ("VR@1", "R@1", "NDCG@10")
ASKED = 2
SENTENCES = """
astronaut: a smiling woman wears an orange space suit; an astronaut poses in front of a flag; a portrait of a woman
    in a pressure suit; she is dressed for a flight into orbit
brick: a wall is built of dark bricks and mortar; the rows of bricks fill the whole picture; somebody has laid a
    wall of bricks; a close view of masonry and its joints
cameraman: a man in a coat films with a camera; the photographer stands behind his tripod outdoors; someone looks
    through a camera on a tripod; a man at work with film equipment on a lawn
cat: a ginger cat looks straight at us; the whiskers and eyes of a cat up close; a pet with orange fur and green
    eyes; a kitten stares into the lens
coffee: a cup of espresso stands on a saucer; hot coffee with a spoon on the wooden table; somebody has poured a
    small strong drink; a warm brown beverage in a white cup
coins: old greek coins lie in rows on dark cloth; many round pieces of ancient money; a collection of antique metal
    money; a museum tray with silver coins
grass: green blades of grass cover the ground; a thick lawn seen from above; a meadow from a short distance; nothing
    but plants of a garden lawn
gravel: small grey stones cover the path; a heap of pebbles and gravel; rough rocks of a driveway; the ground is
    made of crushed stone
hubble: countless distant galaxies shine in deep space; a telescope picture of stars and galaxies; the universe with
    spirals of light; faint specks of light in the dark sky
moon: craters on the surface of the moon; the grey moon seen through a telescope; a lunar landscape with round
    holes; rock of a celestial body without air
motorcycle: a red motorcycle is parked in a garage; a motorbike with shining wheels and engine; a vehicle with two
    wheels indoors; somebody has parked a bike for the road
page: a printed page of text from a book; lines of letters on white paper; something to read in black print; a
    scanned sheet with paragraphs
rocket: a rocket stands on the launch pad at night; the launch of a spacecraft with bright flames; a missile rises
    from its tower; engines fire before the flight to space
flower: a pink flower opens its petals; a blossom with yellow stamens up close; a blooming plant in the garden;
    petals of a dahlia in the sun
temple: a chinese temple with a curved roof; the old palace with red walls and towers; a historic building in the
    far east; tourists visit a pagoda under a blue sky
"""
"""What each photograph shows, in four sentences: the first two are said in films, the others are asked for."""


def read_sentences() -> dict[str, list[str]]:
    joined = SENTENCES.replace("\n    ", " ").strip().splitlines()
    pairs = (line.split(": ", 1) for line in joined)
    return {name: text.split("; ") for name, text in pairs}


def generate(folder: Path, films: int, seed: int = 0) -> tuple[Path, Path]:
    """Films with subtitles, and the truth of the sentences that are in none."""
    rng, sentences = np.random.default_rng(seed), read_sentences()
    made, rows = [], []
    for number in range(films):
        scenes = []
        for name in rng.choice(sorted(sentences), 4, replace=False):
            said = sentences[name][int(rng.integers(len(sentences[name]) - ASKED))]
            scenes.append(DemoScene(str(name), float(rng.integers(4, 9)), f"{said}."))
        made.append(DemoFilm(f"film{number:03}.mp4", tuple(scenes)))
    make_films(folder / "videos", made)
    for film in made:
        for scene, start, end in film.times():
            for at, text in enumerate(sentences[scene.photograph][-ASKED:]):
                row = {"query_id": f"{scene.photograph}{at}", "query": text, "video": film.name, "start": start}
                rows.append({**row, "end": end, "relevance": 4, "duration": film.seconds})
    rows.sort(key=lambda row: row["query_id"])
    (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "videos", folder / "truth.jsonl"


def add_tags(folder: Path) -> int:
    """Captions of a library by its own encoder; how many."""
    labels = (files("momentseek.recognition.encoders") / "imagenet.txt").read_text().split("\n")[:1000]
    made = 0
    with LibraryStore.open(folder) as library:
        texts = library.encoders.vision.encode([f"a photo of a {label}" for label in labels])
        rows = {video.id: vectors_of(library.snapshot().vision, video.id) for video in library.videos()}
        scores = {id: some @ texts.T for id, some in rows.items() if some is not None}
        every = np.concatenate(list(scores.values()))
        centre, spread = every.mean(0), every.std(0)
        with library.catalog.changes():
            for video in library.videos():
                cues, unusual = [], (scores[video.id] - centre) / spread
                for first in range(0, len(unusual), 4):
                    best = np.argsort(-unusual[first : first + 4].mean(0))[:3]
                    start, end = (1.5 * at for at in (first, min(first + 4, len(unusual))))
                    cues.append(Cue(start, min(end, video.duration), ", ".join(labels[at] for at in best)))
                library.catalog.set_cues(video.id, cues, CAPTIONS)
                made += len(cues)
    return made


def run(*words: object) -> dict[str, Any]:
    """A command of the path, and its report."""
    command = [sys.executable, "-m", "momentseek", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[2:])}: {done.stderr.strip()}")
    found = done.stdout.strip()
    return json.loads(found) if found.startswith("{") else {}


def train_ranker(folder: Path, library: Path, settings: list[str], tags: bool) -> dict[str, float]:
    """The path of docs/ranker.md; processor seconds of each step."""
    data, model, copy = folder / "data", folder / "model", folder / "trained"
    for old in (data, model, copy, folder / "run", folder / "tagged"):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(library, copy)
    if tags:
        library = Path(shutil.copytree(library, folder / "tagged"))
        print(f"{add_tags(library)} captions of words that the encoder finds", flush=True)
    chosen = [word for setting in settings for word in ("--set", setting)]
    steps: dict[str, tuple[object, ...]] = {
        "features": ("data", "features", "--own-lists", "--library", library, "--out", data),
        "train": ("train", "slate", "--data", data, "--out", folder / "run", *chosen),
        "export": ("export", folder / "run", "--out", model),
        "reencode": ("reencode", "--library", copy, "--model", model),
    }
    seconds = {}
    for name, words in steps.items():
        begun = family_time()
        report = run(*words, "--json")
        seconds[name] = family_time() - begun
        short = {k: v for k, v in report.items() if not isinstance(v, list | dict) or k in ("lists", "queries")}
        print(f"{name}: {seconds[name]:.0f} s of processor; {json.dumps(short)[:400]}", flush=True)
    return seconds


def ask(library: Path, truth: Path, **options: Any) -> np.ndarray:
    """(queries, measures)."""
    queries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in truth.read_text().splitlines():
        row = json.loads(line)
        queries[row["query_id"]].append(row)
    values = []
    with ms.Library.open(library) as opened:
        for _, rows in sorted(queries.items()):
            hits = list(opened.search(rows[0]["query"], k=20, all=True, **options))
            values.append(query_values(hits, rows) if hits else [0.0] * len(MEASURES))
    return np.array(values)


def interval(values: np.ndarray, draws: int = 10_000) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def compare(plain: Path, trained: Path, truth: Path, streams: tuple[str, ...] | None) -> None:
    options = {} if streams is None else {"streams": streams}
    before, after = ask(plain, truth, **options), ask(trained, truth, **options)
    table = []
    for at, name in enumerate(MEASURES):
        low, high = interval(after[:, at] - before[:, at])
        difference = (after[:, at] - before[:, at]).mean()
        row = [name, f"{before[:, at].mean():.3f}", f"{after[:, at].mean():.3f}", f"{difference:+.3f}"]
        table.append([*row, f"{low:+.3f} to {high:+.3f}"])
    asked = "every stream" if streams is None else " and ".join(streams)
    print(f"{len(before)} queries, {asked}:")
    print(text_table(["", "untrained", "slate", "difference", "95 % of queries"], table), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["generated", "library"])
    parser.add_argument("folder", type=Path, help="where films, data, run, model and libraries go")
    parser.add_argument("--library", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--tags", action="store_true", help="train on the encoder's own words too")
    parser.add_argument("--films", type=int, default=80)
    parser.add_argument("--encoder", default="clip")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="of the training")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    library, truth = args.library, args.truth
    if args.kind == "generated":
        videos, truth = generate(args.folder, args.films)
        library = args.folder / "library"
        run("add", videos, "--library", library, "--encoder", args.encoder, "--no-transcribe", "--json")
    train_ranker(args.folder, library, args.settings, args.tags)
    if truth is not None:
        for streams in (None, ("vision",)):
            compare(library, args.folder / "trained", truth, streams)


if __name__ == "__main__":
    main()
