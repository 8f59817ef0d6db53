"""Data folders: ``data.toml`` says which feature files and truths belong together.

    name = "TVR-Ranking"
    clip_seconds = 1.5
    preset = "tvr-ranking-reloclnet"    # optional: the default preset of `train`
    [features]
    video = ["tvr_i3d_rgb600_avg_cl-1.5.h5"]
    subtitle = "tvr_sub_pretrained_w_sub_query_max_cl-1.5.h5"
    shortest = false                    # optional: cut a video's features to the shortest, even if they differ much
    [splits.train_top40]
    truth = "train_top40.json"
    query = "query_bert.h5"
    corpus = "video_corpus.json"        # optional: the videos to search; by default those in the truth
    durations = "durations.json"        # optional: durations of the videos in seconds, if the truth has none
    related = "related.json"            # optional: {query: [more videos that answer it]}, never negatives in training

A stream is an HDF5 file, a folder of npz, npy, pt or safetensors files, a pt or safetensors file, or a format that a
plug-in reads. A table can set more: ``video = [{path = "clip", key = "features", normalise = true}]``.

Captioners learn from splits of moments with captions, and read subtitles as text:

    subtitles = "tvqa_preprocessed_subtitles.jsonl"
    [splits.tvc_train]
    captions = "tvc_train_release.jsonl"

Paths are relative to the file. Files are read when needed, and features one video or query at a time.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.registry import did_you_mean
from momentseek.measuring.formats import read_captions, read_corpus, read_truth
from momentseek.measuring.formats.document import open_document
from momentseek.models.features.store import Features, FeatureStream
from momentseek.recognition.exported.preparation import MODALITIES, parse_modalities

EXPECTED = '{"vid_name": …, "sub": [{"text": …, "start": …, "end": …}]}'
DATA_FILE = "data.toml"
SPLIT_KEYS = ("truth", "query", "corpus", "durations", "related")
"""Settings that a split of queries may have."""
CAPTIONS_KEY = "captions"
"""The only setting of a split of captions."""


class SubtitleLine(NamedTuple):
    """A line of subtitles, with its times in seconds."""

    start: float
    end: float
    text: str


def read_subtitles(path: Path) -> dict[str, tuple[SubtitleLine, ...]]:
    """Read the subtitle lines of every video, in the order of their times."""
    found: dict[str, tuple[SubtitleLine, ...]] = {}
    entries = open_document(path).records
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("vid_name"), str):
            raise MomentseekError(f"{path}: line {number} names no video; each line is {EXPECTED}")
        lines = entry.get("sub")
        if not isinstance(lines, list):
            raise MomentseekError(f"{path}: line {number} has no list of subtitles; each line is {EXPECTED}")
        if entry["vid_name"] in found:
            raise MomentseekError(f"{path}: has the video {entry['vid_name']} twice; keep one line of each")
        found[entry["vid_name"]] = tuple(sorted(_line(line, path, number) for line in lines))
    if not found:
        raise MomentseekError(f"{path}: holds no subtitles; each line is {EXPECTED}")
    return found


def _line(line: Any, path: Path, number: int) -> SubtitleLine:
    if isinstance(line, Mapping) and isinstance(line.get("text"), str):
        times = [line.get("start"), line.get("end")]
        if all(isinstance(t, int | float) and not isinstance(t, bool) and math.isfinite(t) for t in times):
            return SubtitleLine(float(times[0]), float(times[1]), line["text"])  # type: ignore[arg-type]
    raise MomentseekError(f"{path}: line {number} has a subtitle without text or times; each line is {EXPECTED}")


@dataclass(frozen=True)
class Dims:
    """Number of columns of query, video and subtitle features; None for a modality that is missing or not used."""

    query: int
    video: int | None
    subtitle: int | None


@dataclass(frozen=True, eq=False)
class DataSplit:
    """One split of a data folder: its truth, its queries' features, and the videos to search."""

    name: str
    truth: Judgements
    query: Features
    corpus: tuple[str, ...]
    durations: Mapping[str, float]
    """Duration in seconds of every video of the corpus and the truth; computed from its clips if no file has it."""
    related: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """More videos that answer a query, by its id; these are never negatives in training."""

    @property
    def timed_truth(self) -> Judgements:
        """The truth with the durations of this split."""
        seconds = np.array([self.durations[video] for video in self.truth.videos], dtype=np.float64)
        return replace(self.truth, durations=seconds)


@dataclass(frozen=True, eq=False)
class CaptionSplit:
    """One split of moments with captions, and the subtitles of their videos."""

    name: str
    table: CaptionTable
    subtitles: Mapping[str, tuple[SubtitleLine, ...]]
    """The lines of each video; empty if the data have no subtitles."""


class Data:
    """An open data folder: its splits and their features; use it as a context manager, or ``close`` it."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.folder = path.parent
        self._settings = settings
        self._open: dict[tuple[FeatureStream, ...], Features] = {}
        self._splits: dict[str, DataSplit] = {}
        self._rows: dict[tuple[tuple[str, ...], str], int] = {}
        self._prints: dict[tuple[str, ...], str] = {}
        self._used: tuple[str, ...] = MODALITIES
        self.name = str(settings.get("name", self.folder.resolve().name))
        self.clip_seconds = float(settings.get("clip_seconds", 1.5))
        self.simulated = bool(settings.get("simulated", False))
        self.preset: str | None = settings.get("preset", "simulation" if self.simulated else None)
        entries = settings["splits"]
        self.splits: tuple[str, ...] = tuple(name for name in entries if CAPTIONS_KEY not in entries[name])
        self.caption_splits: tuple[str, ...] = tuple(name for name in entries if CAPTIONS_KEY in entries[name])
        self._subtitles: Mapping[str, tuple[SubtitleLine, ...]] | None = None
        features = settings["features"]
        video, subtitle = features.get("video"), features.get("subtitle")
        if not video and not subtitle:
            raise MomentseekError(f"{path}: [features] names no file; give video = [...] or subtitle = ...")
        try:
            self.video = self._features(video, "video") if video else None
            self.subtitle = self._features(subtitle, "video") if subtitle else None
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Data:
        """Open the data of a folder, given by its path or by that of its data.toml."""
        file = Path(path)
        file = file / DATA_FILE if file.is_dir() or file.suffix != ".toml" else file
        settings = read_toml(file, f"data are described by a {DATA_FILE} (`momentseek simulate` makes one)")
        _check_settings(file, settings)
        return cls(file, settings)

    @property
    def location(self) -> str:
        """The absolute path that opens these data."""
        return str((self.folder if self.path.name == DATA_FILE else self.path).resolve())

    def use(self, modalities: str) -> None:
        """Set which features are used (``video``, ``subtitle`` or ``video+subtitle``); the others may have gaps.

        ``check`` and ``rows`` then consider these only. By default, all are used.
        """
        named = parse_modalities(modalities)
        self._used = tuple(name for name in MODALITIES if name in named)

    def split(self, name: str) -> DataSplit:
        """The split called ``name``, which is read once."""
        if name not in self._splits:
            self._splits[name] = self._read_split(name)
        return self._splits[name]

    def captions(self, name: str) -> CaptionSplit:
        """The split of captions called ``name``."""
        entry = self._entry(name)
        if CAPTIONS_KEY not in entry:
            known = did_you_mean(name, self.caption_splits) if self.caption_splits else "the data have none"
            raise MomentseekError(f"{self.path}: the split {name} has queries and no captions; {known}")
        return CaptionSplit(name, read_captions(self.folder / entry[CAPTIONS_KEY]), self.subtitles)

    @property
    def subtitles(self) -> Mapping[str, tuple[SubtitleLine, ...]]:
        """The subtitle lines of each video; empty if the data have no subtitles."""
        if self._subtitles is None:
            name = self._settings.get("subtitles")
            self._subtitles = read_subtitles(self.folder / name) if name else {}
        return self._subtitles

    def dims_of(self, split: str) -> Dims:
        """Number of columns of the features, with the queries of one split."""
        return Dims(
            self._query(split).dim,
            self.video.dim if self.video else None,
            self.subtitle.dim if self.subtitle else None,
        )

    @property
    def dims(self) -> Dims:
        """Number of columns of the features; every split has the same (``check`` makes sure)."""
        if not self.splits:
            raise MomentseekError(f"{self.path}: has splits of captions only, and no queries; add a split of queries")
        return self.dims_of(self.splits[0])

    def rows(self, video: str) -> int:
        """Number of clips of a video: the same in all features in use, or with ``shortest`` the least of them."""
        key = (self._used, video)
        if key not in self._rows:
            used = [f for name, f in zip(MODALITIES, (self.video, self.subtitle), strict=True) if name in self._used]
            counts = [f.rows(video) for f in used if f]
            if not counts:
                raise MomentseekError(f"{self.path}: has no {' or '.join(self._used)} features; set modalities")
            if max(counts) != min(counts) and not self._settings["features"].get("shortest", False):
                raise MomentseekError(
                    f"{self.path}: video {video} has {counts[0]} clips in the video features and {counts[1]} in the "
                    "subtitle features; both must be of the same clips (shortest = true cuts them to the fewer)"
                )
            if not min(counts):
                raise MomentseekError(f"{self.path}: video {video} has no clip; extract it, or leave it out")
            self._rows[key] = min(counts)
        return self._rows[key]

    def check(self, splits: Iterable[str]) -> None:
        """Check, without reading features, that training or predicting on ``splits`` will not fail half-way."""
        first: tuple[str, int] | None = None
        for name in splits:
            split = self.split(name)
            if first and split.query.dim != first[1]:
                raise MomentseekError(
                    f"{self.path}: queries of {name} have {split.query.dim:,} columns and those of {first[0]} "
                    f"{first[1]:,}; encode all with one encoder"
                )
            first = first or (name, split.query.dim)
            for video in dict.fromkeys([*split.corpus, *split.truth.videos]):
                self.rows(video)
            for query in split.truth.query_ids:
                if not split.query.rows(query):
                    raise MomentseekError(
                        f"{split.query.source}: query {query} of split {name} has no words; encode it, or leave it out"
                    )

    @property
    def fingerprint(self) -> str:
        """A hash that identifies the data: ``fingerprint_of`` all splits."""
        return self.fingerprint_of(self.splits)

    def fingerprint_of(self, splits: Iterable[str]) -> str:
        """A hash of the files of these splits, computed once; files of other splits need not exist.

        It covers truth, corpus, durations and related videos completely, and features by ``Features.fingerprint``.
        """
        names = tuple(sorted(set(splits)))
        if names not in self._prints:
            seen = hashlib.sha256(f"{self.clip_seconds}\n".encode())
            for features in (self.video, self.subtitle):
                seen.update(f"{features.fingerprint if features else '-'}\n".encode())
            for name in names:
                entry = self._entry(name)
                if CAPTIONS_KEY in entry:
                    files = [entry[CAPTIONS_KEY], *filter(None, [self._settings.get("subtitles")])]
                    seen.update(f"{name} {' '.join(_file_hash(self.folder / file) for file in files)}\n".encode())
                    continue
                seen.update(f"{name} {self._query(name).fingerprint}\n".encode())
                for key in SPLIT_KEYS:
                    if key in entry and key != "query":
                        seen.update(f"{key} {_file_hash(self.folder / entry[key])}\n".encode())
            self._prints[names] = seen.hexdigest()[:16]
        return self._prints[names]

    def close(self) -> None:
        """Close all feature files that were opened."""
        for features in self._open.values():
            features.close()

    def __enter__(self) -> Data:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _features(self, declared: Any, what: str) -> Features:
        given = declared if isinstance(declared, list) else [declared]
        tables = [{"path": one} if isinstance(one, str) else one for one in given]
        streams = tuple(FeatureStream(**{**table, "path": self.folder / table["path"]}) for table in tables)
        if streams not in self._open:
            shortest = bool(self._settings["features"].get("shortest", False))
            self._open[streams] = Features(streams, what, shortest=shortest)
        return self._open[streams]

    def _query(self, name: str) -> Features:
        entry = self._entry(name)
        if CAPTIONS_KEY in entry:
            raise MomentseekError(
                f"{self.path}: the split {name} has captions and no queries; {did_you_mean(name, self.splits)}"
            )
        return self._features(entry["query"], "query")

    def _entry(self, name: str) -> Mapping[str, Any]:
        splits = self._settings["splits"]
        if name not in splits:
            raise MomentseekError(f"{self.path}: there is no split {name!r}; {did_you_mean(name, splits)}")
        entry: Mapping[str, Any] = splits[name]
        return entry

    def _read_split(self, name: str) -> DataSplit:
        entry, query = self._entry(name), self._query(name)
        corpus = read_corpus(self.folder / entry["corpus"]) if "corpus" in entry else None
        seconds_of = read_corpus(self.folder / entry["durations"]) if "durations" in entry else corpus
        truth = read_truth(self.folder / entry["truth"], corpus=seconds_of)
        durations = dict(zip(truth.videos, truth.durations.tolist(), strict=True))
        searched = tuple(corpus.durations) if corpus else truth.videos
        durations |= corpus.durations if corpus else {}
        for video, seconds in durations.items():
            if seconds != seconds:
                durations[video] = self.rows(video) * self.clip_seconds
        related = read_related(self.folder / entry["related"]) if "related" in entry else {}
        return DataSplit(name, truth, query, searched, durations, related)


@contextmanager
def open_data(data: Data | str | os.PathLike[str]) -> Iterator[Data]:
    """Open the data of a folder and close them at the end; data that are already open stay open."""
    if isinstance(data, Data):
        yield data
    else:
        with Data.open(data) as opened:
            yield opened


def _file_hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the path in {DATA_FILE}") from None


def _check_settings(file: Path, settings: Mapping[str, Any]) -> None:
    features, splits = settings.get("features"), settings.get("splits")
    if not isinstance(features, dict):
        raise MomentseekError(f"{file}: has no [features]; name the files or folders there")
    if not isinstance(splits, dict) or not splits:
        raise MomentseekError(f"{file}: has no splits; add a section such as [splits.train]")
    for kind, value in features.items():
        if kind == "shortest":
            if not isinstance(value, bool):
                raise MomentseekError(f"{file}: features.shortest must be true or false, not {value!r}")
        elif kind not in MODALITIES:
            raise MomentseekError(f"{file}: [features] knows video, subtitle and shortest, not {kind!r}")
        else:
            _check_streams(value, f"{file}: features.{kind}")
    seconds = settings.get("clip_seconds", 1.5)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise MomentseekError(f"{file}: clip_seconds must be a number above 0, not {seconds!r}")
    if not isinstance(settings.get("preset", ""), str):
        raise MomentseekError(f"{file}: preset must be the name of one, not {settings['preset']!r}")
    if not isinstance(settings.get("subtitles", ""), str):
        raise MomentseekError(f"{file}: subtitles must be the name of a file, not {settings['subtitles']!r}")
    for name, entry in splits.items():
        if isinstance(entry, dict) and CAPTIONS_KEY in entry:
            if len(entry) > 1 or not isinstance(entry[CAPTIONS_KEY], str):
                raise MomentseekError(f"{file}: split {name} has captions, so it names their file and nothing else")
            continue
        for key in ("truth", "query"):
            if not isinstance(entry, dict) or key not in entry:
                raise MomentseekError(f"{file}: split {name} does not say its {key} file; add {key} = ...")
        _check_streams(entry["query"], f"{file}: splits.{name}.query")
        for key in entry:
            if key not in SPLIT_KEYS or (key != "query" and not isinstance(entry[key], str)):
                raise MomentseekError(
                    f"{file}: splits.{name}.{key} is not understood; known are {', '.join(SPLIT_KEYS)}"
                )


def _check_streams(declared: Any, where: str) -> None:
    """Refuse a declaration of streams that is not a path, a table with a path, or a list of these."""
    known = {field.name: kind for field, kind in zip(fields(FeatureStream), (str, str, bool), strict=True)}
    for stream in declared if isinstance(declared, list) else [declared]:
        if isinstance(stream, str):
            continue
        if not isinstance(stream, dict) or "path" not in stream:
            raise MomentseekError(
                f'{where} must be a file name or a list of them, or tables such as {{path = "clip"}}, not {stream!r}'
            )
        for key, value in stream.items():
            if not isinstance(value, known.get(key, ())):
                raise MomentseekError(f"{where}: {key} = {value!r} is not understood; known are {', '.join(known)}")


def read_related(path: Path) -> dict[str, tuple[str, ...]]:
    """Read ``{query: [video, …]}``, the videos that are related to each query, from a JSON file."""
    found = open_document(path).json
    if not isinstance(found, dict) or not all(isinstance(v, list) for v in found.values()):
        raise MomentseekError(f"{path}: expected {{query: [videos]}}; write one list of video names per query id")
    return {str(query): tuple(map(str, videos)) for query, videos in found.items()}
