"""The catalog."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog, EncoderRow, SegmentRow
from momentseek.library.database import CAPTIONS, OCR, SPEECH
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue


def video(name: str = "a.mp4", *, mtime: float = 100.0, path: Path | None = None) -> Video:
    place = path or Path("/films") / name
    return Video(
        0, place, name, 10, int(mtime * 1e9), "h", 6.0, 64, 48, Fraction(30000, 1001), "h264", 4, 0, (1.5, 3.25), 9.0,
        ("odd",), True,
    )  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path, create=True)


def put(catalog: Catalog, *videos: Video, cues: tuple[Cue, ...] = ()) -> list[int]:
    with catalog.changes():
        return [catalog.insert_video(v, cues) for v in videos]


def said(catalog: Catalog, words: str) -> list[tuple[int, str]]:
    sql = """SELECT cues.video, cues.text FROM speech_words JOIN cues ON cues.id = speech_words.rowid
             WHERE speech_words MATCH ? ORDER BY cues.id"""
    return [tuple(row) for row in catalog.rows(sql, (words,))]


def named(catalog: Catalog, words: str) -> list[int]:
    return [row[0] for row in catalog.rows("SELECT rowid FROM name_words WHERE name_words MATCH ?", (words,))]


def test_a_video_comes_back_as_it_was(catalog: Catalog) -> None:
    cues = (Cue(0.0, 1.0, "Hello", "en"), Cue(1.0, 2.0, "there"))
    (id,) = put(catalog, video(), cues=cues)
    (back,) = catalog.videos()
    assert back.id == id
    assert (back.rate, back.shots, back.notes, back.cues) == (Fraction(30000, 1001), (1.5, 3.25), ("odd",), 2)
    assert back.audio is True
    assert catalog.cues(id) == list(cues)
    assert catalog.videos([id, 99]) == [back]


def test_videos_are_listed_a_page_at_a_time(catalog: Catalog) -> None:
    put(catalog, *(video(name) for name in ("b.mp4", "Cat.mp4", "a.mp4", "cats.mp4")))
    total, page = catalog.page_of_videos("", limit=2, offset=1)
    assert (total, [v.name for v in page]) == (4, ["a.mp4", "b.mp4"])
    total, page = catalog.page_of_videos("CAT", limit=9, offset=0)
    assert (total, [v.name for v in page]) == (2, ["Cat.mp4", "cats.mp4"])
    assert catalog.page_of_videos("%", limit=9, offset=0) == (0, [])


def test_videos_are_found_by_the_hash_of_their_content(catalog: Catalog) -> None:
    ids = put(catalog, video("a.mp4"), replace(video("b.mp4"), hash="other"), video("c.mp4"))
    found = catalog.find_contents(["h", "none"])
    assert found == [("h", ids[0], Path("/films/a.mp4")), ("h", ids[2], Path("/films/c.mp4"))]


def test_cues_that_overlap_a_time(catalog: Catalog) -> None:
    cues = (Cue(0.0, 1.0, "one"), Cue(1.0, 2.0, "two"), Cue(3.0, 4.0, "three"))
    (id,) = put(catalog, video(), cues=cues)
    assert catalog.cues_between(id, 1.0, 3.0) == [cues[1]]
    assert catalog.cues_between(id, 0.5, 3.1) == list(cues)


def test_texts_of_all_kinds_that_overlap_a_time(catalog: Catalog) -> None:
    first, second = put(catalog, video(), video("b.mp4"), cues=(Cue(0.0, 1.0, "one"), Cue(2.0, 3.0, "two")))
    with catalog.changes():
        catalog.insert_cues(first, [Cue(0.5, 2.5, "EXIT", frame=1.0), Cue(4.0, 5.0, "late", frame=4.5)], OCR)
    found = catalog.texts_between(first, 0.9, 2.2)
    assert {kind.family: list(found.get(kind.family, ())) for kind in (SPEECH, OCR, CAPTIONS)} == {
        kind.family: catalog.cues_between(first, 0.9, 2.2, kind) for kind in (SPEECH, OCR, CAPTIONS)
    }
    assert [cue.text for cue in found["ocr"]] == ["EXIT"]
    assert set(catalog.texts_between(second, 0.9, 2.2)) == {"speech"}


def test_what_ranking_needs_of_videos(catalog: Catalog) -> None:
    ids = put(catalog, video(), video("b.mp4"))
    assert catalog.video_cards([99, *reversed(ids)]) == [(id, 6.0, "h", video().shots, 0) for id in ids]
    with catalog.changes():
        catalog.run("UPDATE videos SET duration = 'long' WHERE id = ?", (ids[0],))
    with pytest.raises(MomentseekError, match="verify"):
        catalog.video_cards(ids)
    with catalog.changes():
        catalog.run("UPDATE videos SET duration = 6.0, shots = x'00' WHERE id = ?", (ids[0],))
    with pytest.raises(MomentseekError, match="verify"):
        catalog.video_cards(ids)


def test_the_content_number_changes_with_the_content(catalog: Catalog, tmp_path: Path) -> None:
    empty = catalog.content_number()
    (id,) = put(catalog, video())
    full = catalog.content_number()
    assert full != empty
    assert Catalog(tmp_path).content_number() == full
    with catalog.changes():
        catalog.remove_video(id)
    assert catalog.content_number() not in (empty, full)


def test_an_id_is_never_used_again(catalog: Catalog) -> None:
    (first,) = put(catalog, video())
    assert catalog.next_ids()[0] == first + 1
    with catalog.changes():
        catalog.remove_video(first)
    assert put(catalog, video()) == [first + 1]
    assert catalog.gone().tolist() == [first]


def test_the_same_path_replaces(catalog: Catalog) -> None:
    put(catalog, video(), cues=(Cue(0, 1, "old words"),))
    put(catalog, video(), cues=(Cue(0, 1, "new words"),))
    assert [v.id for v in catalog.videos()] == [2]
    assert said(catalog, "words") == [(2, "new words")]


def test_ids_by_glob_and_time(catalog: Catalog) -> None:
    put(catalog, video("Holiday/Beach.mp4", mtime=10), video("work/beach.mkv", mtime=20), video("cat.mp4", mtime=30))
    assert catalog.ids(names=["beach"]).tolist() == [1, 2]
    assert catalog.ids(names=["*.mkv", "cat*"]).tolist() == [2, 3]
    assert catalog.ids(after=20.0).tolist() == [2, 3]
    assert catalog.ids(after=10.0, before=20.0).tolist() == [1]
    with catalog.changes():
        catalog.run("UPDATE videos SET recorded = 15 WHERE id = 3")
    assert catalog.ids(after=10.0, before=20.0).tolist() == [1, 3]
    assert [video.date for video in catalog.videos([3])] == [15.0]


def test_globs_take_the_whole_name_or_its_last_part_in_any_case(catalog: Catalog) -> None:
    put(catalog, video("2019/Holiday.mp4"), video("Ärger.mp4"), video("A\u0308rger 2.mp4"), video("my holiday[1].mp4"))
    assert catalog.ids(names=["holiday*"]).tolist() == [1]
    assert catalog.ids(names=["2019/*"]).tolist() == [1]
    assert catalog.ids(names=["ärger"]).tolist() == [2, 3]
    assert catalog.ids(names=["ÄRGER*"]).tolist() == [2, 3]
    assert catalog.ids(names=["a\u0308rger.mp4"]).tolist() == [2]
    assert catalog.ids(names=["[!ä2]*"]).tolist() == catalog.ids(names=["[^Ä2]*"]).tolist() == [1, 4]
    assert catalog.ids(names=["my holiday[1].mp4"]).tolist() == [4]


def test_names_are_searched_by_their_words(catalog: Catalog) -> None:
    put(catalog, video("Trip2019/BeachWalk_part2.mp4"), video("b.mp4"))
    assert named(catalog, "beach walking") == [1]


def test_paths_are_bytes(catalog: Catalog) -> None:
    path = Path("/films") / "caf\udce9\n🎬.mp4"
    put(catalog, video(path=path))
    assert catalog.videos()[0].path == path


def test_a_failed_transaction_changes_nothing(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.changes():  # noqa: PT012
        catalog.insert_video(video(), ())
        raise ZeroDivisionError
    assert catalog.videos() == []
    assert catalog.totals()["videos"] == 0


def test_others_commits_change_the_state_and_views_stay(catalog: Catalog, tmp_path: Path) -> None:
    other = Catalog(tmp_path)
    before = catalog.state()
    assert catalog.state() == before
    with catalog.view():
        assert catalog.videos() == []
        put(other, video())
        assert catalog.videos() == []
    assert len(catalog.videos()) == 1
    assert catalog.state() != before
    mine = catalog.state()
    put(catalog, video("b.mp4"))
    assert catalog.state() != mine
    other.close()


def test_segments_and_encoders(catalog: Catalog) -> None:
    row = EncoderRow("vision", "labels", "labels", "abc", 4)
    with catalog.changes():
        catalog.set_encoder(row)
        catalog.insert_segment(SegmentRow("y", "vision", 1, 4, 7))
        catalog.insert_segment(SegmentRow("x", "vision", 2, 8, 3))
        catalog.insert_segment(SegmentRow("z", "speech", 2, 8, 3))
    assert [s.name for s in catalog.segments("vision")] == ["x", "y"]
    assert len(catalog.segments()) == 3
    assert catalog.encoder("vision") == row
    assert catalog.encoder("speech") is None


def test_integrity_is_checked_and_words_rebuilt(catalog: Catalog) -> None:
    (id,) = put(catalog, video(), cues=(Cue(0, 1, "Hello"),))
    assert catalog.problems() == []
    with catalog.changes() as db:
        db.execute("INSERT INTO speech_words (speech_words, rowid, text) VALUES ('delete', 1, 'Hello')")
    assert any("speech_words" in text for text in catalog.problems())
    with catalog.changes():
        catalog.rebuild_words()
    assert catalog.problems() == []
    assert said(catalog, "hello") == [(id, "Hello")]


def test_what_is_no_library_is_said(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="momentseek add"):
        Catalog(tmp_path)
    (tmp_path / "catalog.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(MomentseekError, match="damaged"):
        Catalog(tmp_path)


def test_reading_errors_are_ours(catalog: Catalog) -> None:
    with pytest.raises(MomentseekError, match="cannot be used"):
        said(catalog, '"unbalanced')
    assert isinstance(catalog.gone(), np.ndarray)
    with pytest.raises(MomentseekError, match="cannot be used"):
        catalog.run("nonsense")
