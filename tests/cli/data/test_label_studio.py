"""``momentseek data label-studio write`` and ``read``, as a round trip."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError

CANDIDATES = [
    {"pair_id": f"q/{i}", "query_id": "q", "query": "a man sits", "video": f"v{i}", "start": i, "end": i + 2.5}
    for i in range(3)
]


@pytest.fixture
def studio(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.jsonl").write_text("\n".join(map(json.dumps, CANDIDATES)))

    def call(*arguments):
        return CliRunner().invoke(cli, ["data", *arguments])

    return call


def annotate(tasks, *judgements):
    """Return Label Studio's export after ``judgements``: one list of levels per worker, None for not judged."""
    for place, task in enumerate(tasks):
        task["annotations"] = [
            {"completed_by": worker, "result": [{"from_name": "relevance", "value": {"choices": [str(levels[place])]}}]}
            for worker, levels in enumerate(judgements)
            if levels[place] is not None
        ]
    return json.dumps(tasks)


def test_round_trip_with_a_second_round(studio, tmp_path):
    write = ["label-studio", "write", "first.jsonl", "--base-url", "https://example.org"]
    result = studio(*write, "--out", "tasks.json")
    assert result.exit_code == 0
    assert result.stderr == "wrote tasks.json: 3 tasks of 1 query\nwrote tasks.xml: the labelling page\n"
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    (tmp_path / "export.json").write_text(annotate(tasks, [4, 0, None], [3, 4, None]))
    result = studio("label-studio", "read", "export.json", "--out", "labels.csv")
    assert result.stdout == "4 labels of 2 pairs by 2 workers\n1 pair not judged yet (q/2)\n"
    assert (tmp_path / "labels.csv").read_text() == ("pair_id,worker,relevance\nq/0,0,4\nq/0,1,3\nq/1,0,0\nq/1,1,4\n")
    assert studio(*write, "--out", "again.json", "--disagreed", "labels.csv", "--config", "page.xml").exit_code == 0
    again = json.loads((tmp_path / "again.json").read_text())
    assert [t["meta"]["pair_id"] for t in again] == ["q/1"]
    assert (tmp_path / "page.xml").exists()
    (tmp_path / "export2.json").write_text(annotate(again, [None], [None], [1], [1]))
    result = studio("label-studio", "read", "export.json", "export2.json", "--out", "labels.csv", "--json", "--force")
    assert json.loads(result.stdout) == {
        "tasks": 4,
        "labels": 6,
        "pairs": 2,
        "workers": 4,
        "missing": ["q/2"],
        "cancelled": 0,
        "empty": 0,
        "replaced": 0,
        "repeated": 0,
    }
    assert studio("consensus", "labels.csv", "--out", "pairs.csv").exit_code == 0
    assert (tmp_path / "pairs.csv").read_text() == "pair_id,relevance,annotators,labels\nq/0,4,2,2\nq/1,1,4,4\n"


def test_nothing_judged_writes_nothing(studio, tmp_path):
    (tmp_path / "export.json").write_text('[{"data": {"pair_id": "q/0"}, "annotations": []}]')
    with pytest.raises(MomentseekError, match="nobody has judged anything yet"):
        raise studio("label-studio", "read", "export.json", "--out", "labels.csv").exception
    assert not (tmp_path / "labels.csv").exists()


def test_tasks_and_page_are_two_files(studio):
    with pytest.raises(MomentseekError, match="need a file each"):
        raise studio("label-studio", "write", "first.jsonl", "--base-url", "x", "--out", "t.xml").exception


def test_pairs_must_have_their_own_names(studio, tmp_path):
    (tmp_path / "first.jsonl").write_text("\n".join(map(json.dumps, [CANDIDATES[0]] * 2)))
    with pytest.raises(MomentseekError, match="pair q/0 occurs more than once"):
        raise studio("label-studio", "write", "first.jsonl", "--base-url", "x", "--out", "t.json").exception


def test_later_export_includes_the_earlier(studio, tmp_path):
    def export(name, *levels):
        made = [
            {"id": i, "completed_by": i, "created_at": f"2024-03-0{i}", "result": [{"value": {"rating": level}}]}
            for i, level in enumerate(levels, 1)
        ]
        (tmp_path / name).write_text(json.dumps([{"id": 1, "data": {"pair_id": "p"}, "annotations": made}]))

    export("e1.json", 3)
    export("e2.json", 2, 4)
    result = studio("label-studio", "read", "e1.json", "e1.json", "--out", "once.csv")
    assert result.stdout == (
        "1 label of 1 pair by 1 worker\n"
        "1 annotation was in an earlier export too; each counts once, in its last state\n"
    )
    result = studio("label-studio", "read", "e1.json", "e2.json", "--out", "l.csv", "--report", "why.jsonl", "--json")
    assert (tmp_path / "l.csv").read_text() == "pair_id,worker,relevance\np,1,2\np,2,4\n"
    summary = json.loads(result.stdout)
    assert (summary["tasks"], summary["labels"], summary["repeated"], summary["replaced"]) == (1, 2, 1, 0)
    why = [json.loads(line) for line in (tmp_path / "why.jsonl").read_text().splitlines()]
    assert [(d["outcome"], d["evidence"]["level"], d["evidence"]["source"]) for d in why] == [
        ("left out", 3, "e1.json"),
        ("label", 2, "e2.json"),
        ("label", 4, "e2.json"),
    ]


def test_inputs_survive(studio, tmp_path):
    write = ["label-studio", "write", "first.jsonl", "--base-url", "x", "--force"]
    before = (tmp_path / "first.jsonl").read_text()
    for arguments in (["--out", "first.jsonl"], ["--out", "t.json", "--config", "first.jsonl"]):
        with pytest.raises(MomentseekError, match=r"first\.jsonl: is an input"):
            raise studio(*write, *arguments).exception
    assert (tmp_path / "first.jsonl").read_text() == before
    (tmp_path / "e1.json").write_text("[]")
    with pytest.raises(MomentseekError, match=r"e1\.json: is an input"):
        raise studio("label-studio", "read", "e1.json", "--out", "e1.json", "--force").exception
    (tmp_path / "t.xml").write_text("mine")
    with pytest.raises(MomentseekError, match=r"t\.xml: already exists"):
        raise studio(*write[:-1], "--out", "t.json").exception
    assert not (tmp_path / "t.json").exists()
    assert studio(*write, "--out", "t.json").exit_code == 0


def test_report_lists_pairs_and_reasons(studio, tmp_path):
    (tmp_path / "labels.csv").write_text("pair_id,worker,relevance\nq/0,a,4\nq/0,b,0\nq/1,a,2\nq/1,b,2\n")
    write = ["label-studio", "write", "first.jsonl", "--base-url", "/videos", "--out", "t.json"]
    result = studio(*write, "--disagreed", "labels.csv", "--report", "why.jsonl", "--json")
    assert json.loads(result.stdout) == {
        "tasks": 1,
        "queries": 1,
        "page": "t.xml",
        "decisions": {
            "asked": {"two annotators disagree": 1},
            "left out": {"two annotators agree": 1, "no labels": 1},
        },
    }
    assert result.stderr.startswith("wrote t.json: 1 task of 1 query\n")
    assert (tmp_path / "why.jsonl").read_text().count("\n") == 3


@pytest.mark.parametrize("base", ["", "javascript:alert(1)"])
def test_addresses_of_videos(studio, tmp_path, base):
    with pytest.raises(MomentseekError, match="is not an address of videos; give http://"):
        raise studio("label-studio", "write", "first.jsonl", "--base-url", base, "--out", "t.json").exception
    assert not (tmp_path / "t.json").exists()
