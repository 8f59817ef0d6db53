"""``momentseek data consensus``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_truth

LABELS = "pair_id,worker,relevance\nq1/a,ann,3\nq1/a,bob,4\nq1/b,ann,0\nq1/b,bob,3\nq2/c,bob,1\nq2/c,cy,1\n"


@pytest.fixture
def consensus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(LABELS)

    def call(*arguments):
        return CliRunner().invoke(cli, ["data", "consensus", *arguments])

    return call


def test_pairs_report_and_json(consensus, tmp_path):
    result = consensus("labels.csv", "--out", "pairs.csv", "--report", "why.jsonl", "--json")
    assert result.exit_code == 0
    assert (tmp_path / "pairs.csv").read_text() == "pair_id,relevance,annotators,labels\nq1/a,4,2,2\nq2/c,1,2,2\n"
    found = json.loads(result.stdout)
    assert (found["pairs"], found["kept"], found["discarded"]) == (3, 2, 1)
    assert found["levels"] == {"0": 0, "1": 1, "2": 0, "3": 0, "4": 1}
    assert found["by_labels"]["2"] == {
        "pairs": 3,
        "kept": 2,
        "discarded": 1,
        "one_annotator": 0,
        "repeated_annotator": 0,
    }
    assert found["lowest_highest"]["all"][0][3] == 1
    assert {"kappa", "weighted", "alpha_ordinal", "alpha_interval", "workers"} <= set(found["agreement"])
    decisions = [json.loads(line) for line in (tmp_path / "why.jsonl").read_text().splitlines()]
    assert [d["outcome"] for d in decisions] == ["kept", "discarded", "kept"]
    assert decisions[1]["evidence"]["labels"] == [0, 3]


def test_text_output(consensus):
    result = consensus("labels.csv")
    assert result.stdout.startswith(
        "3 pairs, 6 labels by 3 workers\n2 kept (66.67 %), 1 discarded\n\n"
        "labels  pairs  kept  discarded  with a worker's second label\n"
        "two         3     2          1                             0\n"
        "four        0     0          0                             0\n"
    )
    assert "Cohen's kappa" in result.stdout
    assert "Each worker against the consensus" in result.stdout


def test_one_pair_only_has_no_statistics(consensus, tmp_path):
    (tmp_path / "one.csv").write_text("pair_id,worker,relevance\na,x,2\na,y,2\n")
    found = json.loads(consensus("one.csv", "--json").stdout)
    assert (found["kept"], found["agreement"]["kappa"]) == (1, None)
    assert "–" in consensus("one.csv").stdout


def test_incomplete_pairs(consensus, tmp_path):
    (tmp_path / "three.csv").write_text(LABELS + "q2/c,dan,1\n")
    with pytest.raises(MomentseekError, match="pair q2/c has 3 labels"):
        raise consensus("three.csv", "--out", "pairs.csv", "--report", "why.jsonl").exception
    assert not (tmp_path / "pairs.csv").exists()
    assert not (tmp_path / "why.jsonl").exists()
    result = consensus("three.csv", "--incomplete", "drop", "--out", "pairs.csv")
    assert "1 dropped for having neither 2 nor 4 labels" in result.stdout
    assert (tmp_path / "pairs.csv").read_text().count("\n") == 2


def test_reports_repeated_workers(consensus, tmp_path):
    (tmp_path / "again.csv").write_text("pair_id,worker,relevance\na,x,2\na,x,2\n")
    result = consensus("again.csv", "--out", "pairs.csv", "--report", "why.jsonl")
    assert "note: in 1 pair a worker judged more than once, and in 1 of them all labels are by one" in result.stderr
    assert result.stdout.startswith("1 pair, 2 labels by 1 worker\n")
    assert (tmp_path / "pairs.csv").read_text() == "pair_id,relevance,annotators,labels\na,2,1,2\n"
    assert json.loads((tmp_path / "why.jsonl").read_text())["reason"] == "two labels of one annotator agree"
    assert json.loads(consensus("again.csv", "--json").stdout)["by_labels"]["2"]["one_annotator"] == 1
    with pytest.raises(MomentseekError, match="worker x judged pair a twice"):
        raise consensus("again.csv", "--repeats", "error").exception


def test_truth_from_candidates(consensus, tmp_path):
    rows = [("q1", "a", 0.0), ("q1", "b", 3.0), ("q2", "c", 6.0)]
    (tmp_path / "c.jsonl").write_text(
        "\n".join(
            json.dumps({"pair_id": f"{q}/{v}", "query_id": q, "query": "x", "video": v, "start": s, "end": s + 2})
            for q, v, s in rows
        )
    )
    for name in ("truth.jsonl", "truth.json"):
        assert consensus("labels.csv", "--candidates", "c.jsonl", "--truth", name).exit_code == 0
        truth = read_truth(tmp_path / name)
        assert (truth.query_ids, truth.relevance.tolist()) == (("q1", "q2"), [4, 1])
    with pytest.raises(MomentseekError, match="belong together"):
        raise consensus("labels.csv", "--truth", "t.jsonl").exception


def test_figures(consensus, tmp_path):
    pytest.importorskip("matplotlib")
    assert consensus("labels.csv", "--plots", "figures").exit_code == 0
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == [
        "lowest-highest.png",
        "lowest-highest.svg",
        "scores.png",
        "scores.svg",
    ]


def test_exam(consensus, tmp_path):
    rows = [(p, w, r) for p in "ab" for w, r in (("ann", 3), ("bob", 3), ("cy", 0))]
    (tmp_path / "exam.csv").write_text("pair_id,worker,relevance\n" + "".join(f"{p},{w},{r}\n" for p, w, r in rows))
    result = consensus("exam.csv", "--exam", "--out", "truth.csv", "--report", "why.jsonl")
    assert "2 pass (100% of their labels within 1 of the truth, none missing), 1 fail" in result.stdout
    assert (tmp_path / "truth.csv").read_text() == "pair_id,relevance,annotators,labels\na,3,3,3\nb,3,3,3\n"
    assert (tmp_path / "why.jsonl").read_text().count("relabel") == 2
    assert json.loads(consensus("exam.csv", "--exam", "--json").stdout)["failed"] == 1
    assert "3 pass" in consensus("exam.csv", "--exam", "--pass-share", "0").stdout
    with pytest.raises(MomentseekError, match="an exam has no figures"):
        raise consensus("exam.csv", "--exam", "--plots", "x").exception


def test_bad_score_error_names_its_line(consensus, tmp_path, momentseek_process):
    (tmp_path / "seven.csv").write_text(LABELS + "q3/d,ann,7\n")
    result = momentseek_process("data", "consensus", "seven.csv", "--out", "pairs.csv")
    assert result.returncode == 2
    assert result.stderr.startswith("momentseek: seven.csv: line 8 gives pair q3/d the relevance '7'")
    assert result.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.csv", "seven.csv"]


@pytest.fixture
def momentseek_process(momentseek, tmp_path):
    return lambda *arguments: momentseek(*arguments, cwd=tmp_path)


@pytest.mark.figures
def test_tvr_ranking(data, momentseek, tmp_path):
    result = momentseek(
        "data", "consensus", data / "tvr-ranking/raw_annotation.csv", "--out", tmp_path / "pairs.csv.gz", "--json"
    )
    assert result.returncode == 0
    found = json.loads(result.stdout)
    assert (found["kept"], found["discarded"]) == (94_442, 2_041)
    assert found["by_labels"]["2"]["discarded"] == 2
    assert found["by_labels"]["4"]["discarded"] == 2_039
    assert (tmp_path / "pairs.csv.gz").stat().st_size > 100_000


def test_inputs_survive(consensus, tmp_path):
    for arguments in (["--out", "labels.csv"], ["--report", "labels.csv"], ["--exam", "--out", "labels.csv"]):
        with pytest.raises(MomentseekError, match=r"labels\.csv: is an input"):
            raise consensus("labels.csv", *arguments, "--force").exception
    with pytest.raises(MomentseekError, match=r"c\.jsonl: is an input"):
        raise consensus("labels.csv", "--candidates", "c.jsonl", "--truth", "c.jsonl").exception
    with pytest.raises(MomentseekError, match="two outputs"):
        raise consensus("labels.csv", "--out", "x", "--report", "x").exception
    assert (tmp_path / "labels.csv").read_text() == LABELS


def test_files_are_kept_unless_forced(consensus, tmp_path):
    (tmp_path / "pairs.csv").write_text("mine")
    with pytest.raises(MomentseekError, match="already exists"):
        raise consensus("labels.csv", "--out", "pairs.csv").exception
    assert (tmp_path / "pairs.csv").read_text() == "mine"
    assert consensus("labels.csv", "--out", "pairs.csv", "--force").exit_code == 0


def test_no_file_without_the_others(consensus, tmp_path):
    (tmp_path / "c.jsonl").write_text(
        json.dumps({"pair_id": "other", "query_id": "q", "query": "x", "video": "v", "start": 0, "end": 2})
    )
    with pytest.raises(MomentseekError, match="pair q1/a is not among the candidates"):
        raise consensus("labels.csv", "--out", "p.csv", "--candidates", "c.jsonl", "--truth", "t.jsonl").exception
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.jsonl", "labels.csv"]


@pytest.mark.parametrize(
    ("rows", "arguments", "sentence"),
    [
        ("a,x,1\nb,x,2\n", ["--incomplete", "drop"], "no pair has two or four labels"),
        ("a,x,1\na,y,4\n", ["--out", "pairs.csv"], "there is no agreement on any pair"),
    ],
)
def test_nothing_kept(consensus, tmp_path, rows, arguments, sentence):
    (tmp_path / "few.csv").write_text(f"pair_id,worker,relevance\n{rows}")
    with pytest.raises(MomentseekError, match=sentence):
        raise consensus("few.csv", *arguments).exception
    assert not (tmp_path / "pairs.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--pass-share", "1"], "--pass-share would do nothing without --exam; leave it out"),
        (["--exam", "--incomplete", "error"], "--incomplete would do nothing in an exam; leave it out"),
        (
            ["--exam", "--repeats", "count", "--incomplete", "drop"],
            "--incomplete and --repeats would do nothing in an exam; leave them out",
        ),
    ],
)
def test_options_are_not_ignored(consensus, arguments, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        raise consensus("labels.csv", *arguments).exception
