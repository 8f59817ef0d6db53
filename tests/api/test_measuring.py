"""The public functions that measure: files or objects, and results that print well."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import momentseek as ms

KITCHEN = "examples/kitchen/"
TRUTH, CAREFUL, HASTY = KITCHEN + "truth.jsonl", KITCHEN + "careful.jsonl", KITCHEN + "hasty.jsonl"
MEASURE = "NDCG@10[IoU>=0.5]"


def test_files_and_objects_give_the_same_figures() -> None:
    of_files = ms.evaluate(CAREFUL, TRUTH, MEASURE)
    of_objects = ms.evaluate(ms.read_run(CAREFUL), ms.read_judgements(TRUTH), [MEASURE])
    assert of_files.means == of_objects.means
    assert of_files.run == "careful"


def test_runs_or_their_evaluations_can_be_compared() -> None:
    of_files = ms.compare([CAREFUL, HASTY], TRUTH, MEASURE)
    of_evaluations = ms.compare([ms.evaluate(run, TRUTH, MEASURE) for run in (CAREFUL, HASTY)])
    named = ms.compare({"a": CAREFUL, "b": ms.read_run(HASTY)}, TRUTH, MEASURE)
    assert of_files.pairs == of_evaluations.pairs
    assert named.runs == ("a", "b")
    assert named.pairs[0].p == of_files.pairs[0].p


def test_missing_or_surplus_arguments_of_a_comparison_are_reported() -> None:
    with pytest.raises(ms.MomentseekError, match="needs ground truth; give it"):
        ms.compare([CAREFUL, HASTY])
    with pytest.raises(ms.MomentseekError, match="leave out `truth`"):
        ms.compare([ms.evaluate(run, TRUTH, MEASURE) for run in (CAREFUL, HASTY)], TRUTH)


def test_a_diagnosis_of_one_part_says_why_the_others_are_not_there() -> None:
    found = ms.diagnose([CAREFUL, HASTY], TRUTH, "AxIoU@1", only=["ties"])
    assert found.ties is not None
    assert found.ties[0].runs == ("careful", "hasty")
    assert found.reasons["axioms"] == "not asked for (`only`)"
    assert repr(found).startswith("<Diagnosis under protocol paper: ties")
    assert "TIES" in found._repr_html_()


def test_an_evaluation_in_a_notebook_is_its_table() -> None:
    result = ms.evaluate(CAREFUL, TRUTH, MEASURE)
    assert repr(result) == "<Evaluation of careful, 27 queries, protocol paper: NDCG@10[IoU>=0.5] 0.8961>"
    assert "<td>NDCG@10[IoU&gt;=0.5]</td><td>0.8961</td>" in result._repr_html_()
    assert f"<td>{MEASURE.replace('>', '&gt;')}</td>" in ms.compare([CAREFUL, HASTY], TRUTH, MEASURE)._repr_html_()


def test_a_long_table_is_cut_in_a_notebook() -> None:
    shown = ms.read_run(CAREFUL)._repr_html_()
    assert "the first 10 of 270 rows" in shown
    assert shown.count("<tr>") == 11


def test_rows_go_to_arrow() -> None:
    pytest.importorskip("pyarrow")
    table = ms.read_judgements(TRUTH).to_arrow()
    assert {"query_id", "query", "video", "start", "end", "relevance"} <= set(table.column_names)
    values = ms.evaluate(CAREFUL, TRUTH, MEASURE).to_arrow()
    assert values.num_rows == 27
    assert sum(values[MEASURE].to_pylist()) / 27 == pytest.approx(0.8961, abs=1e-4)
    pairs = ms.compare([CAREFUL, HASTY], TRUTH, MEASURE).to_arrow()
    assert pairs.column("first").to_pylist() == ["careful"]


def test_rows_go_to_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    assert ms.read_run(CAREFUL).to_pandas()["rank"][:3] == [1, 2, 3]


def test_without_pandas_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ms.MomentseekError, match="pip install pandas"):
        ms.read_run(CAREFUL).to_pandas()
