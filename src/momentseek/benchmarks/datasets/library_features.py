"""Export a library's vectors as a data folder for training on one's own videos, in the community's layouts.

The layout is HDF5 files (TVR and its successors), or folders with an npz file per video and query (Moment-DETR).

A clip's video features are the library's vector of its frame, its subtitle features the mean of the vectors of the
cues that overlap it, and a query's features one row per token. Adding videos with the trained model computes exactly
the same features, so ``data.toml`` records which encoders made them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from momentseek.benchmarks.datasets.common import write_folder
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import count
from momentseek.library.catalog import EncoderRow
from momentseek.library.database import SPEECH
from momentseek.library.encoders import SPEECH_ENCODER
from momentseek.library.merging import refuse_damage
from momentseek.library.segments import vectors_of
from momentseek.library.store import LibraryStore
from momentseek.library.video import Video
from momentseek.measuring.formats import read_truth
from momentseek.models.features.data import DATA_FILE
from momentseek.models.features.readers.folder import QUERY_PREFIX
from momentseek.models.features.store import write_features, write_npz_folder
from momentseek.recognition.encoders.protocol import WordEncoder, fingerprint
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.exported.encoder import said_in_clips

CORPUS_FILE = "video_corpus.json"
BATCH_QUERIES = 64
"""Number of queries that are encoded together."""
Array = NDArray[np.float32]


@dataclass(frozen=True)
class LibraryFeatures:
    """The written folder, and its numbers of videos, clips, cues and queries."""

    folder: Path
    videos: int
    clips: int
    cues: int
    queries: Mapping[str, int]
    """Number of queries by split."""


LAYOUTS = ("hdf5", "npz")


def write_library_features(
    library: LibraryStore,
    truths: Mapping[str, Path],
    out: Path,
    *,
    layout: str = "hdf5",
    own_text: bool = False,
    preset: str = "",
    force: bool = False,
) -> LibraryFeatures:
    """Write the features of all videos of a library, and of the queries of ``truths`` (split → file), as a data folder.

    Queries are rows of MiniLM's tokens, or with ``own_text`` one row from the picture encoder's own text encoder, in
    the space of its pictures. Without ``truths``, only features are written, and no data.toml. ``preset`` names the
    default settings for training.

    The folder is written completely or not at all. Videos that the truths name must be in the library, by their file's
    name, with or without its folder and extension; the library's other videos are searched too.
    """
    if library.encoders.has_model:
        raise MomentseekError(
            f"{library.path}: its vectors come from a trained model; add the videos to a library without one"
        )
    made_by = library.catalog.encoder("vision")
    videos = library.videos()
    if made_by is None or not videos:
        raise MomentseekError(f"{library.path}: is empty; add videos first: momentseek add FOLDER")
    status = library.status()
    if status.unseen:
        raise MomentseekError(
            f"{library.path}: {count(status.unseen, 'video')} wait for {status.second_encoder}, and have half of their "
            "features; run first: momentseek encode"
        )
    read = {split: read_split(path) for split, path in truths.items()}
    keys = _feature_keys(videos, read)
    durations = _durations(videos, keys, read)
    encode, text = _query_encoder(library, own_text)
    if out.is_dir() and any(out.iterdir()) and not any((out / name).is_file() for name in (DATA_FILE, CORPUS_FILE)):
        raise MomentseekError(f"{out}: holds other files; name a new folder for the features")
    refuse_damage(library.catalog, library.paths, ("vision", "speech"))
    try:
        with write_folder(out, force) as temporary:
            write = _write_npz if layout == "npz" else _write_hdf5
            names = {"video": write(temporary, "video", "features", _video_features(library, videos, keys))}
            said = library.catalog.encoder("speech")
            if said is not None:
                spoken = _subtitle_features(library, videos, keys, said.dim)
                names["subtitle"] = write(temporary, "subtitle", "features", spoken)
            for split, truth in read.items():
                queries_of = _query_features(encode, truth)
                names[split] = write(temporary, f"{split}_query", "last_hidden_state", queries_of)
                shutil.copyfile(truths[split], temporary / _copy_name(split, truths[split]))
            corpus = {keys[video.id]: [durations[video.id], number] for number, video in enumerate(videos)}
            (temporary / CORPUS_FILE).write_text(json.dumps(corpus, indent=0) + "\n", encoding="utf-8")
            if truths:
                settings = _data_toml(library, truths, names, {"video": made_by, "subtitle": said}, text, preset)
                (temporary / DATA_FILE).write_text(settings, encoding="utf-8")
    except OSError as e:
        raise MomentseekError(f"{out}: cannot be written ({e.strerror or e}); check the folder") from None
    queries = {split: len(truth.query_ids) for split, truth in read.items()}
    clips = sum(video.clips for video in videos)
    return LibraryFeatures(out, len(videos), clips, sum(video.cues for video in videos), queries)


def read_split(path: Path) -> Judgements:
    """Read the annotations of a split, which must have the texts of their queries."""
    truth = read_truth(path)
    if truth.queries is None:
        raise MomentseekError(f"{path}: does not hold the text of its queries, which must be encoded")
    return truth


def _feature_keys(videos: Sequence[Video], truths: Mapping[str, Judgements]) -> dict[int, str]:
    """Return video id → the name of its features: the name in the truths, else that of its file."""
    called: dict[str, list[int]] = {}
    for video in videos:
        path = PurePosixPath(video.name)
        for name in {video.name, str(path.with_suffix("")), path.name, path.stem, f"{path.stem}-{video.id}"}:
            called.setdefault(name, []).append(video.id)
    keys: dict[int, str] = {}
    missing: list[str] = []
    for truth in truths.values():
        for name in truth.videos:
            found = called.get(name, [])
            if not found:
                missing.append(name)
                continue
            if len(found) > 1:
                raise MomentseekError(
                    f"{truth.source}: video {name} could be {len(found)} of the library's; name it with its folder, as "
                    "momentseek list does"
                )
            if keys.setdefault(found[0], name) != name:
                raise MomentseekError(f"{truth.source}: a video is called {name} and {keys[found[0]]}; choose one name")
    if missing:
        many = f" and {len(missing) - 1:,} others are" if len(missing) > 1 else " is"
        raise MomentseekError(f"video {missing[0]}{many} not in the library; add them, or take them out of the truth")
    taken = set(keys.values())
    for video in videos:
        if video.id in keys:
            continue
        path = PurePosixPath(video.name)
        free = (n for n in (path.stem, video.name.replace("/", "__"), f"{path.stem}-{video.id}") if n not in taken)
        keys[video.id] = next(free)
        taken.add(keys[video.id])
    if slashed := next((name for name in keys.values() if "/" in name), None):
        raise MomentseekError(f"video {slashed}: a name with / cannot be a key of HDF5; name it without its folder")
    return keys


def _durations(videos: Sequence[Video], keys: Mapping[int, str], truths: Mapping[str, Judgements]) -> dict[int, float]:
    """Return the seconds of each video; a truth's moment may end up to a clip later, due to rounding."""
    last: dict[str, float] = {}
    for truth in truths.values():
        for code, end in zip(truth.video.tolist(), truth.end.tolist(), strict=True):
            name = truth.videos[code]
            last[name] = max(last.get(name, 0.0), end)
    durations = {}
    for video in videos:
        end = last.get(keys[video.id], 0.0)
        if end > video.duration + 1.5:
            raise MomentseekError(
                f"video {keys[video.id]}: a moment ends at {end:g} s and the video at {video.duration:g} s; is it the "
                "same video?"
            )
        durations[video.id] = max(video.duration, end)
    return durations


def _video_features(
    library: LibraryStore, videos: Sequence[Video], keys: Mapping[int, str]
) -> Iterator[tuple[str, Array]]:
    segments = library.snapshot().vision
    for video in videos:
        vectors = vectors_of(segments, video.id)
        if vectors is None:
            raise MomentseekError(f"{library.path}: video {video.name} has no vectors; run momentseek verify --repair")
        yield keys[video.id], vectors


def _subtitle_features(
    library: LibraryStore, videos: Sequence[Video], keys: Mapping[int, str], dim: int
) -> Iterator[tuple[str, Array]]:
    segments = library.snapshot().speech
    for video in videos:
        vectors = vectors_of(segments, video.id) if video.cues else None
        times = [(cue.start, cue.end) for cue in library.catalog.own_cues(video.id, SPEECH)]
        if vectors is not None and len(vectors) < len(times):
            raise MomentseekError(f"{library.path}: video {video.name} is damaged; run momentseek verify --repair")
        cues = None if vectors is None else vectors[: len(times)]  # vectors of passages follow
        yield keys[video.id], said_in_clips(times, cues, video.clips, library.clip_seconds, dim)


TextRows = Callable[[Sequence[str]], Sequence[Array]]
"""Encodes texts, each as a table of rows."""


def _query_encoder(library: LibraryStore, own_text: bool) -> tuple[TextRows, dict[str, Any]]:
    """Return the function that encodes queries, and its description for data.toml."""
    if own_text:
        vision = library.encoders.vision

        def encode(texts: Sequence[str]) -> list[Array]:
            return [row[None] for row in vision.encode(list(texts))]

        return encode, {}  # a library only encodes queries as words, so it could not serve this model
    words = text_encoder(SPEECH_ENCODER)
    if not isinstance(words, WordEncoder):
        raise MomentseekError(
            f"the text encoder {words.name} gives no vectors of words; queries cannot be encoded by it"
        )
    about = {"spec": SPEECH_ENCODER, "fingerprint": fingerprint(words) or words.name, "dim": words.dim}
    return words.words, about


def _query_features(encode: TextRows, truth: Judgements) -> Iterator[tuple[str, Array]]:
    assert truth.queries is not None
    for at in range(0, len(truth.query_ids), BATCH_QUERIES):
        ids, texts = truth.query_ids[at : at + BATCH_QUERIES], truth.queries[at : at + BATCH_QUERIES]
        yield from zip(ids, encode(texts), strict=True)


def _write_hdf5(folder: Path, name: str, _: str, rows: Iterator[tuple[str, Array]]) -> str:
    write_features(folder / f"{name}.h5", rows)
    return f"{name}.h5"


def _write_npz(folder: Path, name: str, key: str, rows: Iterator[tuple[str, Array]]) -> str:
    """Write a folder of npz files; the files of queries are called ``qid<N>``, like Moment-DETR's."""
    before = QUERY_PREFIX if key != "features" else ""
    write_npz_folder(folder / f"{name}_features", ((f"{before}{one}", {key: table}) for one, table in rows))
    return f"{name}_features"


def _copy_name(split: str, path: Path) -> str:
    return split + "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])


def _data_toml(
    library: LibraryStore,
    truths: Mapping[str, Path],
    names: Mapping[str, str],
    sources: Mapping[str, EncoderRow | None],
    text: Mapping[str, Any],
    preset: str,
) -> str:
    """Return ``data.toml``: the feature files, the encoders that made them, and the splits."""
    encoders: dict[str, Any] = {
        kind: {"spec": row.spec, "fingerprint": row.fingerprint, "dim": row.dim}
        for kind, row in sources.items()
        if row is not None
    }
    encoders |= {"query": dict(text)} if text else {}
    kinds = {"video": [names["video"]]} | ({"subtitle": names["subtitle"]} if "subtitle" in names else {})
    return tomli_w.dumps(
        {
            "name": f"library {library.path.name}",
            **({"preset": preset} if preset else {}),
            "clip_seconds": library.clip_seconds,
            "features": kinds,
            "encoders": encoders,
            "splits": {
                split: {
                    "truth": _copy_name(split, path),
                    "query": names[split],
                    "corpus": CORPUS_FILE,
                }
                for split, path in truths.items()
            },
        }
    )
