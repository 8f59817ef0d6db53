from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from momentseek.benchmarks.debias.documents import as_json, as_text, csv_files, markdown
from momentseek.benchmarks.debias.figures import draw, location_figure
from momentseek.benchmarks.debias.report import Truths, debias_report
from momentseek.benchmarks.debias.systems import System, blind_systems
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_run, read_truth


def truth(name: str, count: int, where: float, seed: int) -> Judgements:
    """Moments of 20 s around a place in videos of 100 s."""
    start = np.clip(100 * where + np.random.default_rng(seed).normal(0, 5, count), 0, 80)
    ids = [f"{name}{i}" for i in range(count)]
    said = ["the person opens the door" if i % 2 else "the person sits down" for i in range(count)]
    return Judgements.from_groups(
        ids, [1] * count, ids, start, start + 20, durations=dict.fromkeys(ids, 100.0), queries=said
    )


TRAIN, IID, OOD = truth("t", 120, 0.1, 0), truth("i", 60, 0.1, 1), truth("o", 60, 0.7, 2)


def answers(of: Judgements, start: float | None) -> Run:
    """The same place for all, or (None) the truth itself."""
    starts = of.start if start is None else np.full(len(of), start)
    return Run.from_groups(of.query_ids, [1] * len(of), list(of.query_ids), starts, starts + 20, task="SVMR")


STUBBORN = System("stubborn", ((answers(IID, 10), answers(OOD, 10)), (answers(IID, 12), answers(OOD, 12))))
RIGHT = System("right", ((answers(IID, None), answers(OOD, None)),))
ONE_SIDED = System("one-sided", ((None, answers(OOD, 70)),))


def test_lean_separates_location_bias_from_finding_moments() -> None:
    report = debias_report(Truths(IID, OOD), [STUBBORN, RIGHT], TRAIN, verbs=3)
    gaps = {(g.system, g.measure): g for g in report.gaps}
    for measure in ("R@1[IoU>=0.5]", "dR@1[IoU>=0.7]"):
        one = gaps["stubborn", measure]
        means = [evaluate(run, IID, measure)[measure] for run, _ in STUBBORN.runs if run]
        assert one.iid.mean == pytest.approx(np.mean(means))
        assert one.iid.sd == pytest.approx(np.std(means, ddof=1))
        assert one.ood.mean == 0
        assert one.relative == 1
        right = gaps["right", measure]
        assert right.gap.mean == 0
        assert right.ood_gain is not None
        assert right.ood_gain.low == 1
    leans = {p.system: p.lean.mean for p in report.placings if p.split == "ood"}
    assert leans["stubborn"] > 0.95
    assert leans["right"] == pytest.approx(report.leans["ood"])
    assert report.apart["ood"] > 0.9 > 0.3 > report.apart["iid"]
    assert {v.verb for v in report.verbs} == {"open", "sit"}
    by_verb = report.verbs[0].systems
    assert [each.ood for each in by_verb] == pytest.approx([0, 1])
    assert by_verb[0].placing is not None
    assert by_verb[0].placing.lean.mean > 0.9


def test_curves_fall_and_dr_is_below_r() -> None:
    report = debias_report(Truths(IID, OOD), [STUBBORN], TRAIN)
    curves = {(c.split, c.kind): [v.mean for v in c.values] for c in report.curves}
    for split in ("iid", "ood"):
        assert curves[split, "R"] == sorted(curves[split, "R"], reverse=True)
        assert all(d <= r for d, r in zip(curves[split, "dR"], curves[split, "R"], strict=True))


def test_everything_is_written_and_says_that_data_are_simulated(tmp_path: Path) -> None:
    blind = blind_systems(IID, OOD, TRAIN, 2)
    systems = [ONE_SIDED, STUBBORN, *blind]
    report = debias_report(Truths(IID, OOD, ("a", "b")), systems, TRAIN, verbs=1, note="SIMULATED DATA")
    text = json.dumps(as_json(report), allow_nan=False)
    assert json.loads(text)["gaps"][0]["iid"]["mean"] is None
    assert as_text(report).startswith("NOTE: SIMULATED DATA\n")
    page = markdown(report, ("figures/gap.png",))
    for words in ("> **SIMULATED DATA**", "iid (a): 60 queries", "| bias-based (blind) |", "## By verb", "gap.png"):
        assert words in page
    rows = list(csv.DictReader(io.StringIO(csv_files(report)["gap.csv"].decode())))
    assert len(rows) == 6 * len(systems)
    assert rows[0]["iid"] == ""
    assert float(rows[0]["ood"]) > 0
    names = {p.name for p in draw(report, tmp_path)}
    assert {
        f"{n}.{e}" for n in ("gap", "thresholds", "locations", "locations-by-verb") for e in ("png", "svg")
    } == names


def test_without_a_training_set_nothing_is_said_of_it() -> None:
    report = debias_report(Truths(IID, OOD), [STUBBORN, *blind_systems(IID, OOD, None, 1)])
    assert report.blind == {"predict-all", "chance"}
    assert "lean" not in as_text(report)
    json.dumps(as_json(report), allow_nan=False)
    assert markdown(report)
    assert len(location_figure(report).axes) == 2 * 2  # the truths, and one system below them
    with pytest.raises(MomentseekError, match="needs the training set"):
        debias_report(Truths(IID, OOD), [STUBBORN], verbs=2)


def test_two_systems_of_one_name_are_refused() -> None:
    with pytest.raises(MomentseekError, match="the same name"):
        debias_report(Truths(IID, OOD), [RIGHT, RIGHT])
    with pytest.raises(MomentseekError, match="nothing to compare"):
        debias_report(Truths(IID, OOD), [])


@pytest.mark.figures
def test_charades_cd_gives_the_papers_figures(data: Path) -> None:
    train, iid, ood = (
        read_truth(data / f"charades-cd/charades_{name}.json", invalid="keep")
        for name in ("train", "test_iid", "test_ood")
    )
    run = read_run(data / "predictions/shuffling_charades_cd_test_ood.json", invalid="keep")
    systems = [System("shuffling", ((None, run),)), *blind_systems(iid, ood, train, 2)]
    report = debias_report(Truths(iid, ood), systems, train)
    found = {
        (g.system, g.measure[-4:-1]): (100 * g.iid.mean, 100 * g.ood.mean) for g in report.gaps if g.measure[0] == "d"
    }
    assert found["predict-all", "0.5"] == pytest.approx((0, 0.06), abs=0.005)
    assert found["predict-all", "0.7"] == pytest.approx((0, 0))
    assert found["bias-based", "0.5"] == pytest.approx((16.81, 5.09), abs=1.0)
    assert found["bias-based", "0.7"] == pytest.approx((9.29, 2.23), abs=1.0)
    assert found["shuffling", "0.5"][1] == pytest.approx(42.81, abs=0.01)
    leans = {p.system: p.lean.mean for p in report.placings if p.split == "ood"}
    assert leans["bias-based"] > 0.95 > leans["shuffling"] > report.leans["ood"]
