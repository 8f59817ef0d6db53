import json
import math

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import read_runs, read_truth
from momentseek.measuring.official import percentage, render


def test_tvr_byte_for_byte(golden):
    truth, runs = read_truth(golden / "tvr_gt.jsonl"), read_runs(golden / "tvr_submission.json.gz")
    assert render("tvr", runs, truth) == (golden / "tvr_official_metrics.json").read_text()


def test_qvhighlights_value_for_value(data):
    folder = data / "qvhighlights"
    truth, runs = read_truth(folder / "highlight_val_release.jsonl"), read_runs(folder / "sample_val_preds.jsonl")
    official = json.loads((folder / "sample_val_preds_metrics_raw.json").read_text())
    ours = json.loads(render("qvhighlights", runs, truth))
    assert ours == official
    assert list(ours) == list(official)
    assert list(ours["brief"]) == list(official["brief"])


def test_tvr_ranking_prints_log_lines(golden):
    truth, runs = read_truth(golden / "tvr_ranking_gt.json.gz"), read_runs(golden / "tvr_ranking_predictions.json.gz")
    lines = render("tvr-ranking", runs, truth).splitlines()
    assert lines[0] == "VAL NDCG@10, IoU=0.3: 0.135657"
    assert len(lines) == 9


def tvr_truth(types: list[str]) -> Judgements:
    ids = [str(i) for i in range(len(types))]
    n = len(ids)
    return Judgements.from_groups(ids, [1] * n, ["v"] * n, [0] * n, [10] * n, fields={"type": types})


def test_a_type_without_queries_is_nan_as_in_the_official_output():
    truth = tvr_truth(["v", "v", "t"])
    run = Run.from_groups(truth.query_ids, [1] * 3, ["v", "w", "v"], [0] * 3, [10] * 3)
    report = json.loads(render("tvr", [run], truth))
    assert list(report) == ["VCMR", "VCMR_by_type"]
    assert report["VCMR"]["0.5-r1"] == 66.67
    assert report["VCMR_by_type"]["v-0.5-r1"] == 50.0
    assert math.isnan(report["VCMR_by_type"]["vt-0.5-r1"])
    assert report["VCMR_by_type"]["desc_type_ratio"] == "v 66.67 t 33.33 vt 0.0"


def test_a_truth_without_types_has_no_table_by_type():
    truth = Judgements.from_rows([("1", "v", 0, 10, 1)])
    run = Run.from_groups(["1"], [1], ["v"], [0], [0], task="VR")
    assert json.loads(render("tvr", [run], truth)) == {"VR": {"r1": 100.0, "r5": 100.0, "r10": 100.0, "r100": 100.0}}


def test_percentages_round_as_numpy_does():
    assert percentage(np.array([1.0] * 223 + [0.0] * 19777)) == 1.12, "1.115 rounds to 1.11 in plain Python"
    assert math.isnan(percentage(np.array([])))


def highlights() -> tuple[Judgements, Saliency]:
    saliency = Saliency(np.array([0, 2]), np.array([[4.0, 4, 4], [0, 0, 0]]))
    truth = Judgements.from_groups(["1"], [1], ["v"], [0], [2], durations={"v": 4}, saliency=saliency)
    return truth, Saliency(np.array([0, 2]), np.array([[0.9], [0.1]]))


def test_a_submission_with_saliency_alone_or_windows_alone():
    truth, scores = highlights()
    alone = Run.from_groups(["1"], [0], [], [], [], saliency=scores)
    report = json.loads(render("qvhighlights", [alone], truth))
    assert list(report) == ["brief", "HL-min-Fair", "HL-min-Good", "HL-min-VeryGood"]
    assert report["brief"]["HL-min-VeryGood-Hit1"] == 100.0
    windows = Run.from_groups(["1"], [1], ["v"], [0], [2])
    report = json.loads(render("qvhighlights", [windows], truth))
    assert list(report) == ["brief", "full", "long", "middle", "short"]
    assert report["full"]["MR-R1"]["0.95"] == 100.0
    with pytest.raises(MomentseekError, match="neither windows nor saliency"):
        render("qvhighlights", [Run.from_groups(["1"], [0], [], [], [])], truth)


def test_other_protocols_have_no_official_form():
    truth, _ = highlights()
    with pytest.raises(MomentseekError, match="protocol spr has no official printed form; there are tvr, qvhighlights"):
        render("spr", [Run.from_rows([("1", "v", 0, 1, 1)])], truth)
