"""Write the files of a simulated corpus: those of TVR, TVC and TVR-Ranking, ``data.toml`` and what really happened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from momentseek import __version__
from momentseek.benchmarks.simulation import settings as lengths
from momentseek.benchmarks.simulation.captions import SimulatedQueries
from momentseek.benchmarks.simulation.relevance import SimulatedJudgements
from momentseek.benchmarks.simulation.settings import CLIP_SECONDS, FILES_VERSION, SimulationSettings
from momentseek.benchmarks.simulation.story import Story
from momentseek.benchmarks.simulation.vectors import SimulatedLine
from momentseek.benchmarks.simulation.world import World
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.models.features.data import DATA_FILE

TRAINING_LIST_LENGTHS = (1, 20, 40)
TVR_SHARES = {"train": 0.8, "val": 0.1, "test": 0.1}
TVC_CAPTIONS = {"train": 2, "val": 4, "test": 4}
"""Captions per moment, as in TVC; TVR's own description is one of them only in train."""
SUBTITLE_FILE = "tvqa_preprocessed_subtitles.jsonl"
NEW_CORPUS_FILE = "new_corpus.json"


def write_corpus(folder: Path, story: Story, settings: SimulationSettings) -> None:
    """Write ``video_corpus.json``: {video: seconds}; and ``new_corpus.json`` if val and test search other videos."""
    _write_json(folder / "video_corpus.json", {v.name: v.seconds for v in story.videos})
    if settings.changes.new_library:
        searched = (story.videos[i] for i in settings.listed_videos("test"))
        _write_json(folder / NEW_CORPUS_FILE, {v.name: v.seconds for v in searched})


def write_training(
    folder: Path, story: Story, captions: list[str], queries: SimulatedQueries, near: IntArray, similarity: FloatArray
) -> None:
    """Write ``train_top01.json``, ``…20`` and ``…40``: the moments most similar to each query."""
    for top in TRAINING_LIST_LENGTHS:
        lists = zip(near[:, :top].tolist(), similarity[:, :top].tolist(), strict=True)
        entries = [
            _query(queries, row, _moments(story, captions, pairs, values, row * top))
            for row, (pairs, values) in enumerate(lists)
        ]
        _write_json(folder / f"train_top{top:02d}.json", entries)


def write_judged(
    folder: Path, split: str, story: Story, captions: list[str], queries: SimulatedQueries, judged: SimulatedJudgements
) -> None:
    """Write ``val.json`` or ``test.json``: the judged moments of each query, with their relevance."""
    entries = []
    at = 0
    for row, count in zip(range(*queries.rows(split).indices(len(queries.texts))), judged.counts, strict=True):
        part = slice(at, at + int(count))
        moments = _moments(story, captions, judged.moment[part].tolist(), judged.similarity[part].tolist(), at)
        for moment, level in zip(moments, judged.relevance[part].tolist(), strict=True):
            moment["relevance"] = level
        entries.append(_query(queries, row, moments))
        at = part.stop
    _write_json(folder / f"{split}.json", entries)


def write_tvr(folder: Path, story: Story, descriptions: list[str]) -> None:
    """Write TVR's own files: a line per precise caption, and durations with indices; videos are split 80/10/10."""
    bounds = _tvr_bounds(len(story.videos))
    durations = {
        split: {story.videos[i].name: [story.videos[i].seconds, i] for i in range(first, last)}
        for split, (first, last) in bounds.items()
    }
    _write_json(folder / "tvr_video2dur_idx.json", durations)
    for split, rows in _tvr_rows(story).items():
        lines = [
            {**_tvr_moment(story, i), "desc": descriptions[i], "type": _kind(story, i), "desc_id": i} for i in rows
        ]
        _write_lines(folder / f"tvr_{split}_release.jsonl", lines)


def write_tvc(folder: Path, story: Story, descriptions: list[str], paraphrases: list[list[str]]) -> None:
    """Write TVC's files: several captions of every moment, in the same splits as TVR's."""
    per_moment = max(TVC_CAPTIONS.values())
    for split, rows in _tvr_rows(story).items():
        written = ([descriptions, *paraphrases] if split == "train" else paraphrases)[: TVC_CAPTIONS[split]]
        lines = [
            {
                **_tvr_moment(story, i),
                "clip_id": i,
                "descs": [
                    {"type": _kind(story, i), "desc": texts[i], "desc_id": i * per_moment + k}
                    for k, texts in enumerate(written)
                ],
            }
            for i in rows
        ]
        _write_lines(folder / f"tvc_{split}_release.jsonl", lines)


def _tvr_moment(story: Story, row: int) -> dict[str, Any]:
    video = story.videos[story.moments.video[row]]
    times = [float(story.moments.start[row]), float(story.moments.end[row])]
    return {"vid_name": video.name, "duration": video.seconds, "ts": times}


def _kind(story: Story, row: int) -> str:
    return lengths.KINDS[story.moments.kind[row]]


def write_subtitles(folder: Path, spoken: Iterable[tuple[str, list[SimulatedLine]]]) -> None:
    """Write the spoken lines in the form of TVQA's and TVR's preprocessed subtitles."""
    lines = [{"vid_name": video, "sub": [line._asdict() for line in said]} for video, said in spoken]
    _write_lines(folder / SUBTITLE_FILE, lines)


def write_concepts(folder: Path, world: World, story: Story) -> None:
    """Write ``concepts.jsonl``: what really happens in every moment, so that explanations can be checked."""
    m = story.moments
    people = {"actor": m.actor, "other": m.other}
    deeds = {"action": m.action, "object": m.object, "second_action": m.action2, "second_object": m.object2}
    details = {"color": m.color, "manner": m.manner}
    talk = {"speech": m.speech, "topic": m.topic, "place": m.place}
    columns = {name: column.tolist() for name, column in {**people, **deeds, **details, **talk}.items()}

    def line(i: int) -> dict[str, Any]:
        known = {name: world.name(column[i]) for name, column in columns.items() if column[i] >= 0}
        times = {"action_times": [round(float(m.begin[i]), 2), round(float(m.finish[i]), 2)]}
        where = {"vid_name": story.videos[m.video[i]].name, "ts": [float(m.start[i]), float(m.end[i])]}
        about = {
            "type": _kind(story, i),
            "place_named": bool(m.names_place[i]),
            "color_named": bool(m.names_color[i]),
            "prominence": int(m.prominence[i]),
        }
        return {"desc_id": i, **where, **times, **about, **known}

    _write_lines(folder / "concepts.jsonl", list(map(line, range(len(m)))))


def write_data(folder: Path, settings: SimulationSettings) -> None:
    """Write ``data.toml``, which tells training and prediction where everything is."""
    splits = {f"train_top{n:02d}": f"train_top{n:02d}.json" for n in TRAINING_LIST_LENGTHS}
    splits |= {"val": "val.json", "test": "test.json"}
    ranking = {
        split: {"truth": truth, "query": "query.h5", "corpus": "video_corpus.json"} for split, truth in splits.items()
    }
    if settings.changes.new_library:
        for split in ("val", "test"):
            ranking[f"{split}_all"] = ranking[split]
            ranking[split] = ranking[split] | {"corpus": NEW_CORPUS_FILE}
    tvr = {f"tvr_{s}": {"truth": f"tvr_{s}_release.jsonl", "query": "tvr_query.h5"} for s in TVR_SHARES}
    table = {
        "name": f"simulation, seed {settings.seed}",
        "clip_seconds": CLIP_SECONDS,
        "simulated": True,
        "features": {"video": ["video.h5"], "subtitle": "subtitle.h5"},
        "subtitles": SUBTITLE_FILE,
        "splits": ranking | tvr | {f"tvc_{s}": {"captions": f"tvc_{s}_release.jsonl"} for s in TVC_CAPTIONS},
    }
    _write(folder / DATA_FILE, tomli_w.dumps(table))


def write_world(folder: Path, settings: SimulationSettings) -> str:
    """Write ``world.json`` (settings, version, fingerprint of all files) and return the fingerprint."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        with path.open("rb") as file:
            digest.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    about = {
        "what": "a simulation: no real videos, no real words",
        "version": FILES_VERSION,
        "momentseek": __version__,
        "seed": settings.seed,
        "settings": settings.as_json(),
        "difficulty": asdict(settings.difficulty),
        "fingerprint": digest.hexdigest(),
    }
    _write(folder / "world.json", json.dumps(about, indent=2) + "\n")
    return digest.hexdigest()


def _tvr_bounds(videos: int) -> dict[str, tuple[int, int]]:
    """Return the first video of each split, and the first after it.

    >>> _tvr_bounds(50)
    {'train': (0, 40), 'val': (40, 45), 'test': (45, 50)}
    """
    train, val = round(videos * TVR_SHARES["train"]), round(videos * TVR_SHARES["val"])
    return {"train": (0, train), "val": (train, train + val), "test": (train + val, videos)}


def _tvr_rows(story: Story) -> dict[str, range]:
    """Return the rows of the moments of each split."""
    bounds = _tvr_bounds(len(story.videos))
    return {split: range(int(story.offsets[a]), int(story.offsets[b])) for split, (a, b) in bounds.items()}


def _query(queries: SimulatedQueries, row: int, moments: list[dict[str, Any]]) -> dict[str, Any]:
    return {"query_id": row + 1, "query": queries.texts[row], "relevant_moment": moments}


def _moments(
    story: Story, captions: list[str], rows: list[int], similarity: list[float], pair: int
) -> list[dict[str, Any]]:
    m = story.moments
    return [
        {
            "pair_id": pair + i,
            "video_name": story.videos[m.video[row]].name,
            "timestamp": [float(m.start[row]), float(m.end[row])],
            "duration": story.videos[m.video[row]].seconds,
            "caption": captions[row],
            "similarity": value,
        }
        for i, (row, value) in enumerate(zip(rows, similarity, strict=True))
    ]


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value))


def _write_lines(path: Path, values: list[Any]) -> None:
    _write(path, "\n".join(map(json.dumps, values)))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
