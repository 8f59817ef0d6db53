"""Every kind of export carries every hit, whatever its names hold, and is written whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest
from edit_list_reader import read_edl, read_fcpxml
from hypothesis import example, given
from hypothesis import strategies as st

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.read import parse_subtitles
from momentseek.search.export import EXPORT_KINDS, export_kind, hits_to_run, render, write
from momentseek.search.hit import Hit, StreamRank

NTSC = Fraction(30000, 1001)
QUERY = 'a "dog" & <b>cat</b>'


def hit(rank: int, name: str = "kitchen.mp4", start: float = 3.0, end: float = 9.0, text: str = "Here, Rex!") -> Hit:
    said = (Cue(start, end, text, "en"),) if text else ()
    streams = {"vision": StreamRank(rank, 0.25), "speech": StreamRank(rank + 1, 4.0)}
    path = Path("/films") / name.replace("/", "_")
    return Hit(
        rank=rank, video_id=rank, path=path, name=name, start=start, end=end, score=1 / (60 + rank), level="strong",
        peak=4.5, duration=60.0, rate=NTSC, said=said, streams=streams,
    )  # fmt: skip


BARK = Cue(4.0, 5.5, "dog barking", score=0.9)
LINE = Cue(2.0, 6.0, "Kitchen", None, 4.0, 0.97, (0.1, 0.2, 0.3, 0.1))
HITS = [
    hit(1),
    hit(2, "kitchen.mp4", 20.0, 21.5, ""),
    hit(3, "=cmd|' /C calc'!A0.mp4", 1.0, 2.0, "- Who's there?"),
    hit(4, '<script>alert("1")</script>\n🎬.mp4', 0.0, 60.0, "</style><img src=x onerror=alert(1)>"),
]


@pytest.mark.parametrize("kind", sorted(EXPORT_KINDS))
def test_every_kind_is_written_by_its_suffix(tmp_path: Path, kind: str) -> None:
    for suffix in EXPORT_KINDS[kind].suffixes:
        path = tmp_path / f"hits{suffix.upper()}"
        assert export_kind(path) == kind
        notes = write(HITS, QUERY, path)
        written = render(HITS, QUERY, kind)
        assert path.read_bytes().decode() == written.text
        assert notes == written.notes
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
        path.unlink()


def test_the_kind_may_be_said_instead(tmp_path: Path) -> None:
    write(HITS, QUERY, tmp_path / "hits", kind="csv")
    assert (tmp_path / "hits").read_text().startswith("rank,level,video")


@pytest.mark.parametrize("name", ["hits", "hits.doc", "hits.gz", "csv"])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(MomentseekError, match=r"\.csv, \.edl, \.fcpxml, \.htm, \.html, \.json, \.srt"):
        write(HITS, QUERY, tmp_path / name)
    with pytest.raises(MomentseekError, match="there is no export"):
        write(HITS, QUERY, tmp_path / "hits.csv", kind="tables")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", sorted(EXPORT_KINDS))
def test_no_hits_is_a_valid_file(kind: str) -> None:
    assert render([], QUERY, kind).notes == ()


def test_csv_cells_are_never_formulas() -> None:
    rows = list(csv.DictReader(io.StringIO(render(HITS, "=1+1", "csv").text)))
    assert [row["video"] for row in rows[:3]] == ["kitchen.mp4", "kitchen.mp4", "'=cmd|' /C calc'!A0.mp4"]
    assert rows[2]["said"] == "'- Who's there?"
    assert rows[0]["query"] == "'=1+1"
    assert rows[3]["video"] == HITS[3].name
    assert (rows[0]["start"], rows[0]["end"], rows[0]["rate"]) == ("3.000", "9.000", "30000/1001")


def test_sound_that_found_a_hit_is_shown() -> None:
    heard = replace(HITS[0], heard=(BARK,), streams={"sound": StreamRank(1, 1.9)})
    assert "heard: dog barking" in render([heard], QUERY, "srt").text
    assert "heard: <bdi>dog barking" in render([heard], QUERY, "html").text
    (row,) = csv.DictReader(io.StringIO(render([heard], QUERY, "csv").text))
    assert row["heard"] == "dog barking"


NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", re.IGNORECASE)
"""What a spreadsheet takes for a number, which does no harm."""


@example(name="a\r0", said="\r\n", query="0\r0")
@example(name="", said="-1+1", query="-0")
@given(name=st.text(max_size=20), said=st.text(max_size=20), query=st.text(max_size=20))
def test_csv_keeps_rows_apart_and_harmless(name: str, said: str, query: str) -> None:
    one = replace(hit(1), name=name, said=(Cue(0, 1, said),))
    header, *rows = csv.reader(io.StringIO(render([one, one], query, "csv").text, newline=""))
    assert len(rows) == 2
    for row in rows:
        assert len(row) == len(header)
        assert not any(cell.lstrip(" ").startswith(("=", "+", "-", "@")) for cell in row if not NUMBER.fullmatch(cell))


def test_json_carries_everything() -> None:
    document = orjson.loads(
        render(
            [replace(HITS[0], curve=(0.1, 0.2), also=("copy.mp4",), written=(LINE,), heard=(BARK,))], QUERY, "json"
        ).text
    )
    assert document["query"] == QUERY
    assert document["hits"] == [
        {
            "rank": 1,
            "video": "kitchen.mp4",
            "start": 3.0,
            "end": 9.0,
            "score": 1 / 61,
            "level": "strong",
            "peak": 4.5,
            "duration": 60.0,
            "rate": "30000/1001",
            "path": "/films/kitchen.mp4",
            "url": "file:///films/kitchen.mp4",
            "said": [{"start": 3.0, "end": 9.0, "text": "Here, Rex!", "language": "en"}],
            "written": [{"start": 2.0, "end": 6.0, "text": "Kitchen", "at": 4.0, "box": [0.1, 0.2, 0.3, 0.1]}],
            "described": [],
            "heard": [{"start": 4.0, "end": 5.5, "label": "dog barking", "score": 0.9}],
            "streams": {"vision": {"rank": 1, "score": 0.25}, "speech": {"rank": 2, "score": 4.0}},
            "also": ["copy.mp4"],
            "curve": [0.1, 0.2],
        }
    ]


@pytest.mark.parametrize("kind", sorted(EXPORT_KINDS))
def test_names_that_are_not_unicode(tmp_path: Path, kind: str) -> None:
    name = os.fsdecode(b"caf\xe9.mp4")
    odd = replace(HITS[0], name=name, path=Path("/films") / name)
    write([odd], QUERY, tmp_path / "out", kind=kind)
    text = (tmp_path / "out").read_text(encoding="utf-8")
    if kind in ("json", "edl", "fcpxml", "html"):
        assert "file:///films/caf%E9.mp4" in text


def test_srt_of_one_video_has_its_times() -> None:
    written = render([HITS[1], HITS[0]], QUERY, "srt")
    cues = parse_subtitles(written.text.encode(), "x.srt")
    assert [(cue.start, cue.end) for cue in cues] == [(3.0, 9.0), (20.0, 21.5)]
    assert cues[0].text == "1. kitchen.mp4 0:03.0–0:09.0 Here, Rex!"
    assert written.notes == ()


def test_srt_of_several_videos_has_the_times_of_the_edit_list() -> None:
    written = render(HITS, QUERY, "srt")
    cues = parse_subtitles(written.text.encode(), "x.srt")
    edits = read_edl(render(HITS, QUERY, "edl").text)
    first = edits.edits[0].record
    starts = [float((edit.record - first) / edits.rate) for edit in edits.edits]
    assert [cue.start for cue in cues] == pytest.approx(starts, abs=0.001)
    assert "several videos" in written.notes[0]


@pytest.mark.parametrize("kind", ["edl", "fcpxml"])
def test_edit_lists_have_the_hits_frames_and_the_query(kind: str) -> None:
    text = render(HITS, QUERY, kind).text
    found = read_edl(text) if kind == "edl" else read_fcpxml(text)
    assert [edit.path for edit in found.edits] == [one.path for one in HITS]
    assert [(edit.start, edit.end) for edit in found.edits] == [(90, 270), (599, 644), (30, 60), (0, 1798)]
    assert {edit.title for edit in found.edits} == {QUERY}
    assert found.title == QUERY


class Page(HTMLParser):
    """What a browser would see: tags with their attributes, and the text outside of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_the_page_holds_its_pictures_and_links_to_moments() -> None:
    pictures = {1: b"RIFFone", 2: None}

    def thumbnail(one: Hit) -> bytes | None:
        if one.rank > 2:
            raise MediaError("the drive is away")
        return pictures[one.rank]

    page = Page(render(HITS, QUERY, "html", thumbnail).text)
    assert [tag["src"] for name, tag in page.tags if name == "img"] == ["data:image/webp;base64,UklGRm9uZQ=="]
    assert page.said.count("no picture") == 3
    links = [tag["href"] for name, tag in page.tags if name == "a"]
    assert links[0] == links[1] == "file:///films/kitchen.mp4#t=3.000,9.000"
    assert [tag["value"] for name, tag in page.tags if name == "li"] == ["1", "2", "3", "4"]
    assert "Here, Rex!" in page.said
    assert QUERY in page.said


def test_the_page_needs_nothing_from_outside_and_runs_nothing() -> None:
    text = render(HITS, QUERY, "html", lambda one: b"x").text
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "embed"} & {name for name, _ in page.tags}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "file:///"))
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import|https?://", text)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_text_adds_a_tag_to_the_page(name: str, said: str, query: str) -> None:
    one = replace(hit(1), name=name, said=(Cue(0, 1, said, "en"),))
    plain = Page(render([hit(1)], "x", "html").text)
    odd = Page(render([one], query, "html").text)
    assert [(tag, sorted(attributes)) for tag, attributes in odd.tags] == [
        (tag, sorted(attributes)) for tag, attributes in plain.tags
    ]


def test_hits_as_a_run() -> None:
    run = hits_to_run("q7", QUERY, HITS)
    assert run.query_ids == ("q7",)
    assert run.queries == (QUERY,)
    assert [moment.video for moment in run.moments("q7")] == [one.name for one in HITS]
    assert run.score.tolist() == [one.score for one in HITS]
    assert hits_to_run("q7", QUERY, []).query_ids == ("q7",)


def test_fcpxml_has_the_size_of_the_picture_and_sound_only_where_there_is_some() -> None:
    loud, mute = replace(hit(1), width=1280, height=720, audio=True), replace(hit(2, "mute.mp4"), width=64, height=48)
    text = render([loud, mute], QUERY, "fcpxml").text
    assert 'width="1280"' in text
    assert 'height="48"' in text
    assert [("hasAudio" in asset) for asset in re.findall(r"<asset [^>]*>", text)] == [True, False]
    assert "hasAudio" not in render([mute], QUERY, "fcpxml").text


def test_a_run_tells_videos_of_one_name_apart() -> None:
    other = replace(hit(2), path=Path("/other/kitchen.mp4"))
    run = hits_to_run("q", "a cat", [hit(1), other, hit(3, "hall.mp4")])
    assert [m.video for m in run.moments("q")] == ["/films/kitchen.mp4", "/other/kitchen.mp4", "hall.mp4"]
