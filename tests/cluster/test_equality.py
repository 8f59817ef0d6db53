"""A library in shards gives the answers of the same videos in one library: moment for moment, score for score."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_library import OpenLibrary, TwoHalves, WordVectors, fill, film, nothing

from momentseek.cluster.shard_client import LocalShards, ShardAnswers
from momentseek.cluster.shards.making import split_library
from momentseek.library.catalog import Catalog
from momentseek.library.database import CAPTIONS, OCR
from momentseek.library.timed_text import Maker, TrackPart, finish_track, keep_part
from momentseek.media.subtitles.cues import Cue
from momentseek.search import session, stream_index
from momentseek.search.engine import Engine
from momentseek.search.hit import Results
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

VOCABULARY = ("dog", "beach", "kitchen", "train", "running", "runs", "red", "lighthouse", "the", "and", "snow", "piano")
QUERIES = (
    "dog", "a dog on the beach", "dog -beach", "train 2:snow", "red lighthouse -dog", "said:dog", 'said:"red dog"',
    '"the dog"', '"dog and" beach', '"red" "snow"', "text:station", "text:statoin", "-text:station dog", "unicorn",
    "described:piano", "dog -described:piano", "dog -said:red", "name:beach", "beach film", "in:a* dog", "-in:a* dog",
    "running", "said:running", "dog before:2003", "in:nothing dog",
)  # fmt: skip


class Pickled(LocalShards):
    """Shards whose questions and answers go through pickle, as they would to another machine."""

    def ask(self, method: str, arguments: Mapping[int, Any]) -> ShardAnswers:
        got: ShardAnswers = pickle.loads(pickle.dumps(super().ask(method, pickle.loads(pickle.dumps(arguments)))))
        return got


def build(folder: Path, rng: np.random.Generator, videos: int, clips: int) -> Catalog:
    """A library of random films, with cues, lines, captions, copies of files and a removed video."""
    films, cues, hashes, times = {}, {}, {}, {}

    def words(most: int) -> str:
        return " ".join(rng.choice(VOCABULARY, size=rng.integers(1, most)).tolist())

    for number in range(videos):
        name = f"{rng.choice(['a', 'b', 'beach'])}{number}.mp4"
        size = int(rng.integers(1, clips))
        films[name] = film([(words(3), size)], seed=number) if rng.random() < 0.5 else nothing(size, number)
        cues[name] = [Cue(2.0 * i, 2.0 * i + 1.5, words(6)) for i in range(int(rng.integers(0, 6)))]
        hashes[name] = f"content {number // 2 if rng.random() < 0.2 else number}"
        times[name] = float(rng.integers(1_000_000_000, 1_100_000_000))
    for name, other in zip(list(films)[1::7], list(films)[::7], strict=False):  # the same film twice
        films[name], cues[name], hashes[name] = films[other], cues[other], hashes[other]
    catalog = fill(
        folder, films, cues, hashes=hashes, times=times, speech=WordVectors() if any(cues.values()) else None
    )
    with catalog.changes():
        for video in catalog.videos():
            if rng.random() < 0.5:
                caption = Cue(0.0, video.duration, words(5))
                keep_part(catalog, CAPTIONS, video.id, Maker("model", "1"), TrackPart(video.duration, cues=(caption,)))
            if rng.random() < 0.5:
                text = str(rng.choice(["Station", "Statlon red", "exit"]))
                line = Cue(0.0, video.duration, text, None, 0.0, 1.0, (0.0, 0.0, 1.0, 1.0))
                finish_track(catalog, OCR, video.id, Maker("reader", "1"), video.duration, [line])
        catalog.remove_video(catalog.videos()[-1].id)
    return catalog


def open_shards(folder: Path, shards: int, encoder: WordVectors) -> Engine:
    split = folder.parent / f"{folder.name}-{shards}"
    manifest = split_library(folder, split, shards)
    libraries = [OpenLibrary(each, Catalog(each), encoder) for each in manifest.folders(split)]
    client = Pickled(dict(zip(manifest.shards, libraries, strict=True)))  # type: ignore[arg-type]
    return Engine(libraries[0], client)  # type: ignore[arg-type]


def told(results: Results) -> Sequence[Any]:
    return list(results), results.hidden, results.note, results.complete


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10**6),
    videos=st.integers(1, 40),
    shards=st.sampled_from([1, 2, 4, 7]),
    clips=st.sampled_from([3, 12]),
    chosen=st.lists(st.sampled_from(QUERIES), min_size=6, max_size=6, unique=True),
    sampled=st.sampled_from([16, 8192]),
    depth=st.sampled_from([3, 12, 100]),
    encoder=st.sampled_from([WordVectors(), TwoHalves()]),
)
def test_any_library_answers_alike_in_shards(seed, videos, shards, clips, chosen, sampled, depth, encoder):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as made:
        patch.setattr(stream_index, "SAMPLE_CLIPS", sampled)
        patch.setattr(session, "MAX_VIDEOS", depth)  # fewer than there are, so that shards must agree on the best
        patch.setattr(session, "MAX_HIDDEN", 2)
        folder = Path(made) / "one"
        catalog = build(folder, rng, videos, clips)
        whole = Engine(OpenLibrary(folder, catalog, encoder))  # type: ignore[arg-type]
        parts = open_shards(folder, shards, encoder)
        for text in chosen:
            for options in (SearchOptions(k=5), SearchOptions(k=30, all=True, explain=True, fusion="scores")):
                query = Query.parse(text)
                assert told(parts.search(query, options)) == told(whole.search(query, options)), text


class Failing(LocalShards):
    """Shards of which one does not answer one kind of question."""

    method = ""

    def ask(self, method: str, arguments: Mapping[int, Any]) -> ShardAnswers:
        if method != self.method or 1 not in arguments:
            return super().ask(method, arguments)
        rest = super().ask(method, {number: asked for number, asked in arguments.items() if number != 1})
        return ShardAnswers(rest.answers, {1: "the machine is away"})


@pytest.mark.parametrize("method", ["statistics", "sample", "scan", "find", "hits"])
def test_answer_is_incomplete_while_a_shard_does_not_answer(method: str, tmp_path: Path) -> None:
    build(tmp_path / "one", np.random.default_rng(3), 20, 12).close()
    manifest = split_library(tmp_path / "one", tmp_path / "new", 3)
    libraries = [OpenLibrary(each, Catalog(each), WordVectors()) for each in manifest.folders(tmp_path / "new")]
    shards = Failing(dict(zip(manifest.shards, libraries, strict=True)))  # type: ignore[arg-type]
    engine = Engine(libraries[0], shards)  # type: ignore[arg-type]
    query, options = Query.parse("dog beach"), SearchOptions(k=50, all=True)
    shards.method = method
    partly = engine.search(query, options)
    assert (partly.complete, partly.missing) == (False, ("shard-001",))
    assert partly.note.startswith("incomplete: 1 of 3 shards did not answer (shard-001)")
    shards.method = ""
    again = engine.search(query, options)
    assert again.complete
    fresh = Engine(libraries[0], shards)  # type: ignore[arg-type]
    assert told(again) == told(fresh.search(query, options))
