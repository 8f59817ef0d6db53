"""Writers reject what their format cannot hold, and files appear completely or not at all."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Corpus, Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import FORMATS, read_truth, write_bytes, write_run, write_runs, write_truth

GRADED = Judgements.from_rows([("1", "a", 0, 5, 4)])
SEVERAL = Judgements.from_groups(["1"], [2], ["a", "a"], [0, 5], [5, 10], durations={"a": 20.0})
TWO_VIDEOS = Judgements.from_groups(["1"], [2], ["a", "b"], [0, 5], [5, 10], durations={"a": 20.0, "b": 20.0})
NO_LENGTH = Judgements.from_rows([("1", "a", 0, 5, 1)])
NAMED = Judgements.from_groups(["one"], [1], ["a"], [0], [5], durations={"a": 20.0})
EMPTY = Judgements.from_groups(["1"], [0], [], [], [], durations={"a": 20.0})
AGREED = Judgements.from_groups(["1"], [1], ["a"], [0.0], [5.0], durations={"a": 20.0}, agreement=[2])
OFF_GRID = Judgements.from_groups(["1"], [1], ["a"], [0.5], [5.0], durations={"a": 20.0})


@pytest.mark.parametrize(
    ("name", "truth", "sentence"),
    [
        ("tvr", GRADED, "tvr has no relevance levels, but .* relevance 4"),
        ("tvr", SEVERAL, "tvr has one moment per query, .* has 2 for query 1"),
        ("tvr", TWO_VIDEOS, "tvr keeps a query to one video"),
        ("tvr", NO_LENGTH, "tvr needs every video's duration, .* none for a"),
        ("tvr", NAMED, "tvr needs whole numbers as desc_id, .* query 'one'"),
        ("tvr", EMPTY, "tvr has one moment per query, .* has 0 for query 1"),
        ("tvr", AGREED, "of which a hit needs 2"),
        ("qvhighlights", GRADED, "no relevance levels"),
        ("qvhighlights", NAMED, "whole numbers as qid"),
        ("qvhighlights", EMPTY, "has windows for every query; 1 has none"),
        ("charades-sta", SEVERAL, "exactly one moment per query, .* has 2 for query 1"),
        ("charades-sta", EMPTY, "has none for query 1"),
        ("charades-sta", AGREED, "cannot say that a hit needs 2 annotators"),
        ("activitynet", NO_LENGTH, "needs every video's duration"),
        ("activitynet", GRADED, "no relevance levels|needs every"),
        ("charades-cd", SEVERAL, "exactly one moment"),
        ("tacos", OFF_GRID, r"counts time in frames of 1/29.4 s, and 0.5 s is not on one"),
        ("tacos-tall", NAMED, "recognised by names such as s30-d52.avi"),
        ("didemo", OFF_GRID, "whole 5 s segments, .* 0.5–5 s"),
        ("didemo", NAMED, "whole numbers as annotation_id"),
        ("didemo", SEVERAL, "a hit in didemo needs 2 annotators, but one of query 1 in .* needs 1"),
        ("mvmr", NAMED, "which videos each query is searched in"),
        ("tvr-ranking", AGREED, "cannot say that a hit needs 2 annotators"),
    ],
)
def test_refusals(name, truth, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        FORMATS[name].to_bytes(truth)


RUN = Run.from_rows([("1", "a", 0, 5, 0.5), ("1", "b", 0, 5, 0.25)])


@pytest.mark.parametrize(
    ("name", "runs", "sentence"),
    [
        ("tvr-submission", (Run.from_rows([("x", "a", 0, 5, 1)]),), "whole numbers as desc_id"),
        ("tvr-submission", (RUN, RUN), "one VCMR list, but 2 runs"),
        ("tvr-ranking-predictions", (RUN, RUN), "holds one list of predictions, but .* has 2"),
        ("spr", (Run.from_groups(["1"], [1], ["a"], [0], [0], task="VR"),), "ranks whole videos"),
        ("tvr-ranking-indexed", (RUN,), "names videos by index; give the file"),
        ("qvhighlights-submission", (RUN,), "keeps a query to one video"),
        ("activitynet-results", (Run.from_rows([("1", "a", 0, 5, 1), ("1", "a", 1, 5, 0)]),), "exactly one prediction"),
        ("native-run", (RUN, RUN), "one run per task"),
        (
            "native-run",
            (Run.from_groups(["1"], [1], ["a"], [0], [1], [np.nan], invalid="keep"),),
            "cannot hold the score nan",
        ),
        (
            "tvr-submission",
            (Run.from_groups(["1"], [1], ["a"], [0], [1], [np.inf], invalid="keep"),),
            "cannot hold the score inf",
        ),
    ],
)
def test_refusals_of_runs(name, runs, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        FORMATS[name].to_bytes(runs)


def test_submission_uses_the_collections_indices(tmp_path):
    write_run(RUN, tmp_path / "s.json", format="tvr-submission", corpus=Corpus({"a": 1.0, "b": 2.0}, {8: "b", 9: "a"}))
    written = json.loads((tmp_path / "s.json").read_bytes())
    assert written["video2idx"] == {"b": 8, "a": 9}
    assert written["VCMR"][0] == {"desc_id": 1, "desc": "", "predictions": [[9, 0.0, 5.0, 0.5], [8, 0.0, 5.0, 0.25]]}
    write_runs((RUN,), tmp_path / "t.json", format="tvr-submission")
    assert json.loads((tmp_path / "t.json").read_bytes())["video2idx"] == {"a": 0, "b": 1}


def test_written_as_the_community_writes(tmp_path):
    truth = Judgements.from_groups(["7"], [1], ["a"], [0], [4.5], durations={"a": 9.0}, queries=["é"])
    write_truth(truth, tmp_path / "t.jsonl", format="tvr")
    assert (tmp_path / "t.jsonl").read_bytes() == (
        b'{"vid_name": "a", "duration": 9.0, "ts": [0.0, 4.5], "desc": "\\u00e9", "desc_id": 7}'
    )
    write_truth(truth, tmp_path / "n.jsonl")
    assert (tmp_path / "n.jsonl").read_text("utf-8") == (
        '{"query_id":"7","query":"é","video":"a","start":0.0,"end":4.5,"relevance":1,"duration":9.0}\n'
    )


def test_only_read(tmp_path):
    with pytest.raises(MomentseekError, match="can be read but not written"):
        write_truth(GRADED, tmp_path / "x.csv", format="hidden-challenges")


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    target = tmp_path / "out.json"
    write_bytes(target, b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(MomentseekError, match=r"out.json: cannot be written \(No space left on device\)"):
        write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_missing_folder(tmp_path):
    with pytest.raises(MomentseekError, match=r"cannot be written \(No such file or directory\); check the folder"):
        write_bytes(tmp_path / "no" / "out.json", b"x")


def test_compressed_files_depend_on_their_content_only(tmp_path):
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_truth(GRADED, tmp_path / name)
    one, two = ((tmp_path / n).read_bytes() for n in ("one.jsonl.gz", "two.jsonl.gz"))
    assert one == two
    assert gzip.decompress(one).startswith(b'{"query_id":"1"')
    assert read_truth(tmp_path / "one.jsonl.gz").relevance.tolist() == [4]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "x", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_only_files_are_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(MomentseekError, match="folder: is a folder; only files are replaced"):
        write_bytes(tmp_path / "folder", b"x")
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(MomentseekError, match=f"{target}: is a device or pipe; only files are replaced"):
            write_bytes(target, b"x")
    assert Path("/dev/null").is_char_device()
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


@pytest.mark.parametrize("name", ["native-run", "qvhighlights-submission"])
def test_saliency_that_json_cannot_hold(name):
    clips = Saliency(np.array([0, 1]), np.array([[np.nan]]))
    run = Run.from_groups(["1"], [0], [], [], [], saliency=clips, task="SVMR", invalid="keep")
    with pytest.raises(MomentseekError, match=f"{name} cannot hold the saliency scores in .* not finite"):
        FORMATS[name].to_bytes((run,))
