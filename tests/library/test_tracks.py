"""A new kind of track is one class: made in the background, copied, found by its words, gone with its video."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.errors import MediaError
from momentseek.library.catalog import Catalog
from momentseek.library.database import CAPTIONS, OCR, TrackKind
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import (
    Maker,
    PendingVideo,
    TrackPart,
    fail_track,
    finish_track,
    track,
    track_counts,
    tracked_videos,
)
from momentseek.library.tracks import background
from momentseek.library.tracks.background import PassRequest, TrackPass, run_pass
from momentseek.library.word_counts import TextRows, rank_texts
from momentseek.media.subtitles.cues import Cue
from momentseek.search import part
from momentseek.search.engine import Engine
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

WEATHER = TrackKind("weather", like="captions")
BIRDS = TrackKind("birds")


class WeatherPass(TrackPass):
    """Says what the weather is like in each half of a video."""

    kind = WEATHER
    what, undone, undone_in_video = "watching the sky", "the weather was not seen", "its weather was not seen"

    def __init__(self, request: PassRequest, words: Sequence[str] = ("a thunderstorm", "bright sunshine")) -> None:
        super().__init__(request, Maker("sky", ", ".join(words)))
        self.words, self.seen = words, list[tuple[str, float]]()

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        self.seen.append((video.name, video.done))
        if video.name == "b.mp4":
            raise MediaError("is taken in a cellar")
        half = video.duration / 2
        for at, word in enumerate(self.words):
            yield TrackPart(half * (at + 1), [[half * at, half * (at + 1), word]])

    def make_cues(self, parts: Sequence[Any]) -> list[Cue]:
        return [Cue(*values) for part in parts for values in part]


@pytest.fixture
def skies(library: LibraryStore, tmp_path: Path, film: Callable[..., Path]) -> LibraryStore:
    folder = tmp_path / "skies"
    folder.mkdir()
    film(folder / "a.mp4", (200, 20, 20))
    film(folder / "b.mp4", (20, 20, 200))
    library.add(folder)
    return library


def found(library: LibraryStore, text: str) -> list[tuple[str, float, float]]:
    hits = Engine(library).search(Query.parse(text), SearchOptions(all=True, streams=("described",)))
    return [(hit.name, hit.start, hit.end) for hit in hits]


def test_it_is_made_once_found_by_its_words_and_gone_with_its_video(skies: LibraryStore, tmp_path: Path) -> None:
    first = WeatherPass(PassRequest(skies))
    report = run_pass(first)
    assert [(note.path.name, note.text) for note in report.noted] == [
        ("b.mp4", "its weather was not seen: is taken in a cellar")
    ]
    (a,) = [video for video in skies.videos() if video.name == "a.mp4"]
    made = track(skies.catalog, WEATHER, a.id)
    assert made is not None
    assert (made.by.model, made.whole, [cue.text for cue in made.cues]) == (
        "sky", True, ["a thunderstorm", "bright sunshine"],
    )  # fmt: skip
    assert track(skies.catalog, CAPTIONS, a.id) is None
    counts = track_counts(skies.catalog, WEATHER)
    assert (counts.done, counts.undone, counts.failed) == (1, 0, 1)
    assert found(skies, "described:thunderstorms") == [("a.mp4", 0.0, 2.0)]  # a hit by words is never shorter
    assert skies.catalog.cues_between(a.id, 0.0, 0.1, OCR) == []
    again = WeatherPass(PassRequest(skies))
    run_pass(again)
    assert again.seen == []
    (tmp_path / "skies/c.mp4").write_bytes((tmp_path / "skies/a.mp4").read_bytes())
    skies.add(tmp_path / "skies")
    said = {video.name: len(skies.catalog.cues(video.id, CAPTIONS)) for video in skies.videos()}
    assert said == {"a.mp4": 2, "b.mp4": 0, "c.mp4": 2}
    assert skies.verify().problems == []
    skies.remove(["a*", "c*"])
    skies.compact()
    assert found(skies, "described:sunshine") == []
    with closing(sqlite3.connect(skies.path / "catalog.sqlite")) as db, db:
        assert db.execute("SELECT count(*) FROM cues").fetchone() == (0,)
    assert skies.verify().problems == []


def test_a_kind_with_an_index_of_its_own_is_checked_and_built_again(skies: LibraryStore) -> None:
    skies.catalog.add_kind(BIRDS)
    skies.catalog.add_kind(BIRDS)
    with skies.catalog.changes():
        skies.catalog.insert_cues(1, [Cue(0.0, 1.0, "two robins"), Cue(1.0, 2.0, "a wren")], BIRDS)
    assert [skies.catalog.count_cues(word, BIRDS) for word in (None, "robin", "wren", "crow")] == [2, 1, 1, 0]
    assert skies.catalog.cue_times(["robins"], [1], BIRDS) == {1: [(0.0, 1.0)]}
    assert skies.catalog.count_cues("robin", CAPTIONS) == 0
    with closing(sqlite3.connect(skies.path / "catalog.sqlite")) as other, other:
        other.execute("INSERT INTO birds_words (birds_words) VALUES ('delete-all')")
    other.close()
    assert any("birds_words" in problem for problem in skies.verify().problems)
    assert skies.verify(repair=True).problems == []
    assert skies.catalog.count_cues("robin", BIRDS) == 1
    with skies.catalog.changes():
        skies.catalog.run("UPDATE kinds SET spelt = 1 WHERE name = 'birds'")
    assert any("row of kinds (birds)" in line for line in skies.verify(repair=True).repaired)
    skies.catalog.add_kind(BIRDS)  # as whoever makes such tracks does, before it starts
    assert skies.catalog.count_cues("robin", BIRDS) == 1
    assert skies.verify().problems == []
    with pytest.raises(ValueError, match="cannot be called"):
        skies.catalog.add_kind(TrackKind("x; DROP TABLE cues"))


class SlowPass(WeatherPass):
    """Its videos are taken away while it works on them."""

    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        for at, made in enumerate(super().work(video)):
            if at:
                with closing(Catalog(self.library.path)) as other, other.changes():
                    other.remove_video(video.id)
            yield replace(made, cues=(Cue(0.0, 1.0, "a thunderstorm"),))


def test_a_pass_looks_at_each_video_of_a_library_once(
    skies: LibraryStore, tmp_path: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large library is not looked through at every poll, only what was added since."""
    asked: list[int] = []
    real = background.pending_videos

    def pending(*given: Any) -> list[PendingVideo]:
        asked.append(given[-1])
        return real(*given)

    monkeypatch.setattr(background, "pending_videos", pending)
    with WeatherPass(PassRequest(skies)) as one:
        for _ in range(3):
            one.refill()
        skies.add(film(tmp_path / "late.mp4", (20, 200, 20)))
        one.refill()
        one.refill()
        assert one.step().of_videos == 3
    assert asked == [0, 2]


def test_video_replaced_during_processing_is_not_stored(skies: LibraryStore) -> None:
    run_pass(SlowPass(PassRequest(skies)))
    assert [video.name for video in skies.videos()] == ["b.mp4"]
    for table in ("cues", "track_parts", "tracks WHERE NOT whole"):
        assert skies.catalog.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_search_survives_a_text_removed_meanwhile(skies: LibraryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run_pass(WeatherPass(PassRequest(skies)))

    def rank_and_remove(*given: Any) -> TextRows:
        ranked = rank_texts(*given)
        with LibraryStore.open(skies.path, create=False) as other:
            if other.videos():
                other.remove(["*"])
        return ranked

    monkeypatch.setattr(part, "rank_texts", rank_and_remove)
    assert found(skies, "described:thunderstorms") == []
    assert skies.videos() == []


def test_only_the_tracks_of_the_asked_videos_are_read(library: LibraryStore) -> None:
    with library.catalog.changes():
        for video in (3, 5, 8):
            finish_track(library.catalog, CAPTIONS, video, Maker("someone", "0"), 9.0)
        fail_track(library.catalog, CAPTIONS, 9, Maker("someone", "0"), "has no picture")
    assert tracked_videos(library.catalog, CAPTIONS, [1, 5, 8, 9]) == {5, 8}
    assert tracked_videos(library.catalog, OCR, [5]) == tracked_videos(library.catalog, CAPTIONS, []) == set()
