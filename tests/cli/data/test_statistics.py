"""``momentseek data statistics``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError


@pytest.fixture
def statistics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("LAMP1 0.0 6.9##a person lights a lamp.\nKITE2 9.0 2.5##fly.\n")
    (tmp_path / "test.txt").write_text("LAMP1 3.0 40.0##a person sits down on the old green sofa.\n")
    (tmp_path / "videos.json").write_text('{"LAMP1": 30.0, "KITE2": 12.5}')

    def call(*arguments):
        return CliRunner().invoke(cli, ["data", "statistics", *arguments])

    return call


def test_splits_side_by_side(statistics):
    result = statistics("train.txt", "test.txt", "--videos", "videos.json")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["train", "test", "total"]
    rows = {line[:33].strip(): line[33:].split() for line in result.stdout.splitlines()}
    assert rows["queries"] == ["2", "1", "3"]
    assert rows["videos"] == ["2", "1", "2"]
    assert "test: 1 end beyond the video (LAMP1:0: 3–40 s of LAMP1, which lasts 30 s)" in result.stdout
    assert "train: 1 moment with start >= end (KITE2:0: 9–2.5 s of KITE2, which lasts 12.5 s)" in result.stdout
    assert "test: 1 video also in another split (LAMP1)" in result.stdout


def test_json_report_and_notes(statistics, tmp_path):
    (tmp_path / "subs.jsonl").write_text('{"vid_name": "KITE2", "sub": [{"text": "Fly!", "start": 0, "end": 1}]}')
    options = ["--subtitles", "subs.jsonl", "--report", "found.jsonl", "--min-words", "2", "--json"]
    result = statistics("train.txt", *options)
    answer = json.loads(result.stdout)
    assert answer["total"]["queries"] == 2
    counts = {c["check"]: c["count"] for c in answer["checks"]}
    assert counts["copied from the subtitles"] == 1
    assert counts["fewer than 2 words"] == 1
    findings = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert {f["reason"] for f in findings} == {"copied from the subtitles", "fewer than 2 words", "start >= end"}
    (backwards,) = [f for f in findings if f["reason"] == "start >= end"]
    assert backwards == {
        "subject": "KITE2:0",
        "outcome": "found",
        "reason": "start >= end",
        "evidence": {
            "split": "train",
            "query_id": "KITE2:0",
            "video": "KITE2",
            "start": 9.0,
            "end": 2.5,
            "duration": None,
            "text": None,
            "repeats": None,
        },
    }
    (short,) = [f for f in findings if f["reason"] == "fewer than 2 words"]
    assert (short["subject"], short["evidence"]["text"], short["evidence"]["start"]) == ("KITE2:0", "fly.", 9.0)
    assert next(c["found"] for c in answer["checks"] if c["check"] == "start >= end")[0]["video"] == "KITE2"
    assert "train: 2 videos have no duration" in result.stderr
    assert "1 video has no subtitles in subs.jsonl" in result.stderr


def test_refusals(statistics, tmp_path):
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(MomentseekError, match="the file is empty"):
        raise statistics("empty.json", "--report", "found.jsonl").exception
    assert not (tmp_path / "found.jsonl").exists()
    assert statistics().exit_code == 2


def test_inputs_survive(statistics, tmp_path):
    before = (tmp_path / "train.txt").read_text()
    with pytest.raises(MomentseekError, match=r"train\.txt: is an input"):
        raise statistics("train.txt", "--report", "train.txt", "--force").exception
    assert (tmp_path / "train.txt").read_text() == before
    (tmp_path / "found.jsonl").write_text("mine")
    with pytest.raises(MomentseekError, match="already exists"):
        raise statistics("train.txt", "--report", "found.jsonl").exception
    assert statistics("train.txt", "--report", "found.jsonl", "--force").exit_code == 0
    assert (tmp_path / "found.jsonl").read_text() != "mine"


def test_rejects_a_file_given_twice(statistics):
    with pytest.raises(MomentseekError, match=r"train\.txt: is given twice"):
        raise statistics("train.txt", "./train.txt").exception


def test_one_and_many(statistics, tmp_path):
    (tmp_path / "val.txt").write_text("LAMP1 3.0 4.0##sit.\nKITE2 3.0 4.0##fly.\nKITE2 3.0 4.0##fly.\n")
    text = statistics("train.txt", "val.txt").stdout
    assert "val: 2 videos also in another split (LAMP1; KITE2)" in text
    assert "val: 1 exact duplicate (video, times, words) (KITE2:1 repeats KITE2:0: fly.)" in text
    assert "val: 3 queries of fewer than 8 words (" in text
    assert "train: 1 query with words also asked in another split (" in text
    assert "fewer than 1 word\n" in statistics("train.txt", "--min-words", "1").stdout + "\n"


TVC = [
    {
        "vid_name": "v",
        "duration": 60.0,
        "ts": times,
        "clip_id": clip,
        "descs": [{"desc": text, "type": kind, "desc_id": 0} for text, kind in said],
    }
    for clip, times, said in (
        (1, [5.0, 9.0], [("She sits down.", "v"), ("She says hello.", "t")]),
        (2, [20.0, 50.0], [("He leaves.", "v"), ("He leaves the room.", "v")]),
    )
]


def write_lines(path, entries):
    path.write_text("\n".join(map(json.dumps, entries)))


def test_captions_count_as_queries_of_their_moment(statistics, tmp_path):
    write_lines(tmp_path / "tvc.jsonl", TVC)
    write_lines(tmp_path / "bare.jsonl", [{k: v for k, v in entry.items() if k != "descs"} for entry in TVC])
    whole, bare = json.loads(statistics("tvc.jsonl", "bare.jsonl", "--json").stdout)["splits"]
    assert (whole["queries"], whole["moments"], whole["videos"]) == (4, 2, 1)
    assert whole["types"] == {"v": [3, 1], "t": [1, 1]}
    assert (bare["queries"], bare["moments"], bare["vocabulary"]) == (2, 2, 0)
    assert "queries per different moment" in statistics("tvc.jsonl").stdout


def test_labels_given_by_hand_are_counted(statistics, tmp_path):
    (tmp_path / "labels.csv").write_text("query_id,actions,rating\nLAMP1:0,2,5\nKITE2:0,1,\nNOBODY:0,3,1\n")
    result = statistics("train.txt", "--labels", "labels.csv")
    rows = {" ".join(line.split()[:-1]): line.split()[-1] for line in result.stdout.splitlines() if line.strip()}
    assert rows["queries labelled: actions"] == "2"
    assert rows["actions >= 2 (%)"] == "50"
    assert rows["queries labelled: rating"] == "1"
    assert "1 label is of queries that no file has" in result.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("query_id,actions\nLAMP1:0,two\n", "line 2 has actions 'two'; give a whole number"),
        ("query_id,actions\nLAMP1:0,2\nLAMP1:0,3\n", "line 3 labels LAMP1:0 with two values"),
        ("query_id,actions\n", "has no labels; give CSV with query_id and a column for each label"),
        ("id,actions\n1,2\n", "the header has no column 'query_id'"),
    ],
)
def test_rejects_unreadable_labels(statistics, tmp_path, text, sentence):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(MomentseekError, match=sentence):
        raise statistics("train.txt", "--labels", "labels.csv").exception


def test_figures_of_what_the_files_have(statistics, tmp_path):
    write_lines(tmp_path / "tvc.jsonl", TVC)
    (tmp_path / "labels.csv").write_text("query_id,actions\n1:0,2\n1:1,1\n")
    judged = [{"pair_id": i, "video_name": "v", "timestamp": [i, i + 5], "duration": 60.0, "caption": f"She sits {i}.",
               "similarity": 1 - i / 10, "relevance": 4 - i} for i in range(5)]  # fmt: skip
    (tmp_path / "judged.json").write_text(
        json.dumps([{"query_id": q, "query": "A woman sits.", "relevant_moment": judged} for q in (1, 2)])
    )
    plain = ["moment-lengths", "moment-shares", "moment-centres", "query-lengths"]
    for files, names in (
        (["tvc.jsonl", "--labels", "labels.csv"], [*plain, "query-types", "labels"]),
        (["judged.json"], [*plain, "similarity-relevance", "similarity-examples"]),
        (["train.txt"], ["moment-lengths", "query-lengths"]),
    ):
        folder = tmp_path / f"figures-{files[0]}"
        result = statistics(*files, "--plots", str(folder))
        assert result.exit_code == 0, result.exception
        assert {p.name for p in folder.iterdir()} == {f"{n}.{kind}" for n in names for kind in ("png", "svg")}
        assert all(p.stat().st_size > 5000 for p in folder.iterdir())
    with pytest.raises(MomentseekError, match="already exists"):
        raise statistics("train.txt", "--plots", str(folder)).exception
