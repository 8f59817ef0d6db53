from __future__ import annotations

import pytest
from small_library import WordVectors, fill, film, nothing

import momentseek as ms
from momentseek.core.errors import MediaError
from momentseek.media.probe import probe
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders import registry


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.IMAGE_TEXT_ENCODERS, "words", WordVectors)
    films = {f"other{i}.mp4": nothing(12, i) for i in range(10)} | {
        "dog.mp4": film([("cat", 2), ("dog", 4), ("sea", 2)])
    }
    catalog = fill(tmp_path, films, {"dog.mp4": [Cue(3.0, 5.0, "sit down")]})
    with catalog.changes():
        catalog.set("encoder", "words")
    catalog.close()
    with ms.Library.open(tmp_path) as opened:
        yield opened


def test_results_are_a_list_with_remarks(library):
    hits = library.search("dog", k=3)
    assert isinstance(hits, list)
    assert isinstance(hits[0], ms.Hit)
    assert hits[0].name == "dog.mp4"
    assert hits.query == ms.Query.parse("dog")
    assert hits.took > 0
    assert list(library.search(ms.Query(text="dog"), k=3)) == list(hits)


def test_pictures_and_clips_of_a_hit(library, make_video, tmp_path):
    (hit,) = library.search("dog", k=1)
    with pytest.raises(MediaError, match="connect its drive"):
        library.thumbnail(hit)
    with pytest.raises(MediaError, match="connect its drive"):
        library.cut(hit, tmp_path / "clip.mp4")
    made = make_video(tmp_path / "dog.mp4", [(12.0, (0, 0, 250))], rate=5, size=(64, 48)).stat()
    with pytest.raises(MediaError, match="has changed since it was added; add it again"):
        library.thumbnail(hit)
    with library.store.catalog.changes() as db:
        db.execute(
            "UPDATE videos SET size = ?, mtime_ns = ? WHERE id = ?", (made.st_size, made.st_mtime_ns, hit.video_id)
        )
    assert library.thumbnail(hit)[:4] == b"RIFF"
    assert len(list((tmp_path / "thumbnails").iterdir())) == 1
    clip = library.cut(hit, tmp_path / "clip.mp4", pad=0.2)
    assert clip.duration == pytest.approx(hit.end - hit.start + 0.4, abs=0.21)
    assert probe(tmp_path / "clip.mp4").duration == pytest.approx(clip.duration, abs=0.01)


def test_a_search_sees_what_another_connection_removed(library):
    assert library.search("dog", k=1)[0].name == "dog.mp4"
    with ms.Library.open(library.path) as other, other.store.catalog.changes():
        other.store.catalog.remove_video(11)
    assert "dog.mp4" not in [hit.name for hit in library.search("dog", all=True)]


def test_what_was_found_can_be_evaluated(library):
    from momentseek.search.export import hits_to_run

    run = hits_to_run("q", "dog", library.search("dog", k=5))
    truth = ms.Judgements.from_rows([("q", "dog.mp4", 3.0, 9.0, 1)])
    assert ms.evaluate(run, truth, "R@1[IoU>=0.5]")["R@1[IoU>=0.5]"] == 1.0


@pytest.mark.parametrize("query", [None, 5, ["dog"], b"dog"])
def test_what_is_no_query_is_refused_in_a_sentence(library, query):
    with pytest.raises(ms.MomentseekError, match="a query is a text or a Query, not "):
        library.search(query)


def test_a_hit_knows_the_picture_of_its_video(library):
    (hit,) = library.search("dog", k=1)
    assert (hit.width, hit.height, hit.audio) == (640, 360, False)
