"""What a model says of scenes becomes captions of its video, once, whatever happens in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vision_endpoint import serve_captions

from momentseek.core.errors import MomentseekError
from momentseek.library.database import CAPTIONS
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import track
from momentseek.recognition.captions.scenes import LONGEST_SCENE, SHORTEST_SCENE, BudgetSpent, scene_spans
from momentseek.recognition.chat import KEY_VARIABLES
from momentseek.search.display import table
from momentseek.search.engine import Engine
from momentseek.search.export.json import hit_record
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

RED, GREEN, BLUE = (200, 20, 20), (20, 200, 20), (20, 20, 200)
SAID = ["A woman waters the tulips.", "A man repairs a bicycle.", "Two children fly a kite."]


class Sayings:
    """What the endpoint says in turn, and how many pictures each request brought."""

    captions: list[str]
    asked: list[int]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for variable in KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    Sayings.asked, Sayings.captions = [], list(SAID)
    with serve_captions(Sayings.captions, "Nobody is there.", Sayings.asked) as address:
        yield address


@pytest.fixture
def film_of_three(library: LibraryStore, tmp_path: Path, film: Callable[..., Path]) -> Path:
    """A film of three scenes of five seconds, in a library."""
    folder = tmp_path / "films"
    folder.mkdir()
    film(folder / "a.mp4", RED, GREEN, BLUE, seconds=5.0)
    library.add(folder)
    return folder


def _captions(library: LibraryStore) -> list[str]:
    found = track(library.catalog, CAPTIONS, library.videos()[0].id)
    return [] if found is None else [caption.text for caption in found.cues]


@given(st.floats(0.1, 500), st.lists(st.floats(0, 500), max_size=20))
def test_scenes_cover_the_video_and_are_neither_short_nor_long(duration: float, cuts: list[float]) -> None:
    spans = scene_spans(duration, [cut for cut in cuts if cut < duration])
    assert (spans[0][0], spans[-1][1]) == (0.0, duration)
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    lengths = [end - start for start, end in spans]
    assert max(lengths) <= LONGEST_SCENE + 1e-9
    assert len(spans) == 1 or min(lengths) >= SHORTEST_SCENE - 1e-9


def test_scenes_are_described_once_and_found_as_described_never_as_said(
    library: LibraryStore, film_of_three: Path, endpoint: str
) -> None:
    assert track(library.catalog, CAPTIONS, 1) is None
    report = library.describe(endpoint)
    assert (report.described, Sayings.asked) == (1, [4, 4, 4])
    assert _captions(library) == SAID
    status = library.status()
    assert (status.described, status.captions, status.undescribed, status.cues) == (1, 3, 0, 0)
    assert library.describe(endpoint).described == 0
    assert len(Sayings.asked) == 3
    engine = Engine(library)
    for text in ("repairs bicycle", "described:bicycles"):  # plain words look at descriptions too
        (hit, *_) = engine.search(Query.parse(text), SearchOptions())
        assert ("described" in hit.streams, hit.level, hit.said) == (True, "fair", ())
        assert SAID[1] in [caption.text for caption in hit.described]
    (record,) = hit_record(hit)["described"]
    assert (record["text"], "eye at http://127" in record["described_by"]) == (SAID[1], True)
    shown = table([hit], Query.parse("bicycle"))
    assert "described by a model" in shown
    assert "described #1" in shown
    assert not engine.search(Query.parse("said:bicycle"), SearchOptions(streams=("speech",), all=True))
    assert not engine.search(Query.parse("described:bicycle -described:man"), SearchOptions(streams=("described",)))
    assert not engine.search(Query.parse("described:unicorn"), SearchOptions(all=True))


def test_videos_are_described_as_they_are_added_if_that_is_asked_for(
    library: LibraryStore, film_of_three: Path, endpoint: str, film: Callable[..., Path]
) -> None:
    library.options = replace(library.options, captioner=endpoint)
    film(film_of_three / "b.mp4", BLUE, seconds=4.0)
    report = library.add(film_of_three)
    assert (report.added, report.unchanged, report.described) == (1, 1, 2)
    assert str(report).startswith("1 video added, 1 unchanged; 2 videos described (00:00:19)")
    library.options = replace(library.options, captioner="nowhere")
    report = library.add(film_of_three)
    assert [note.split(":")[0] for note in report.notes if "nowhere" in note] == ["scenes were not described"]


def test_spent_budget_keeps_descriptions_and_next_run_continues(
    library: LibraryStore, film_of_three: Path, endpoint: str
) -> None:
    with pytest.raises(BudgetSpent):
        library.describe(endpoint, requests=2)
    assert _captions(library) == SAID[:2]
    assert library.status().undescribed == 1
    library.describe(endpoint, requests=2)
    assert (_captions(library), len(Sayings.asked)) == (SAID, 3)
    assert library.verify().problems == []


def test_another_model_starts_over_and_wordless_scene_has_no_caption(
    library: LibraryStore, film_of_three: Path, endpoint: str
) -> None:
    with pytest.raises(BudgetSpent):
        library.describe(endpoint, requests=1)
    Sayings.captions[:] = ["", "A kite.", "A mast."]
    library.describe(f"{endpoint}2")
    assert _captions(library) == ["A kite.", "A mast."]
    video = library.videos()[0]
    (caption,) = library.catalog.cues_between(video.id, 14.0, 15.0, CAPTIONS)
    assert caption.by.startswith("eye2 at ")
    library.describe(endpoint, ["a*"], again=True)
    assert _captions(library) == ["Nobody is there."] * 3


def test_a_copy_keeps_captions_and_a_removed_video_leaves_none(
    library: LibraryStore, film_of_three: Path, endpoint: str
) -> None:
    library.describe(endpoint)
    (film_of_three / "b.mp4").write_bytes((film_of_three / "a.mp4").read_bytes())
    library.add(film_of_three)
    assert [len(library.catalog.cues_between(v.id, 0, 15, CAPTIONS)) for v in library.videos()] == [3, 3]
    library.remove(["a*", "b*"])
    library.compact()
    assert library.verify().problems == []
    with closing(sqlite3.connect(library.path / "catalog.sqlite")) as db, db:
        assert db.execute("SELECT count(*) FROM cues").fetchone() == (0,)


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ("nowhere", "nowhere: is not a folder; give an exported captioner"),
        ("http://127.0.0.1:1/v1", "needs the name of a model after a #"),
        ("ftp://host/v1#eye", "not a web address"),
    ],
)
def test_a_model_that_makes_no_sense_is_one_sentence(
    library: LibraryStore, film_of_three: Path, model: str, what: str
) -> None:
    with pytest.raises(MomentseekError, match=what):
        library.describe(model)
    assert track(library.catalog, CAPTIONS, 1) is None
