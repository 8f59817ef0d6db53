"""All parts of a diagnosis together: which are run, their text and their figures."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.diagnosis import PARTS, Diagnosis, diagnose
from momentseek.measuring.diagnose.plots import draw


def corpus(queries: int = 30, side: str = "") -> tuple[Judgements, list[tuple[str, Run]]]:
    rng = np.random.default_rng(4)
    ids = [f"{side}q{i}" for i in range(queries)]
    videos = [f"v{i}" for i in range(queries)]
    start = rng.uniform(0, 60, queries)
    end = start + rng.uniform(5, 30, queries)
    truth = Judgements.from_groups(ids, [1] * queries, videos, start, end, durations=dict.fromkeys(videos, 100.0))
    runs = []
    for name, spread in (("close", 3.0), ("far", 12.0)):
        s = np.maximum(0, np.repeat(start, 5) + rng.normal(0, spread, 5 * queries))
        e = np.maximum(s + 1, np.repeat(end, 5) + rng.normal(0, spread, 5 * queries))
        scores = -np.sort(-rng.uniform(0, 1, (queries, 5)), axis=1).ravel()
        runs.append((name, Run.from_groups(ids, [5] * queries, list(np.repeat(videos, 5)), s, e, scores)))
    return truth, runs


@pytest.fixture(scope="module")
def whole() -> Diagnosis:
    truth, runs = corpus()
    return diagnose(runs, [truth])


def test_every_part_is_run_and_explained(whole: Diagnosis) -> None:
    text = whole.as_text()
    for title in ("AXIOMS", "TIES", "LABEL NOISE", "LOCATION BIAS", "PERFORMANCE"):
        assert title in text
    assert "nan" not in text
    assert dict(whole.reasons) == {"annotators": "no re-annotations given (`annotators`)"}


def test_json_has_every_key_and_only_finite_numbers(whole: Diagnosis) -> None:
    plain = json.loads(json.dumps(whole.as_json(), allow_nan=False))
    assert {"axioms", "ties", "noise", "annotators", "location", "reasons"} <= set(plain)
    assert plain["annotators"] is None
    ties = whole.ties
    assert ties is not None
    assert plain["ties"][0]["measures"][0]["ratio"] == ties[0].measures[0].ratio
    example = next(m for m in plain["axioms"]["measures"] if m["measure"] == "DCG@10")["verdicts"][0]["example"]
    assert len(example["case"]["after"]) == 2
    assert plain["location"]["sides"][0]["runs"][0]["predicted"]["fullest"] > 0


def test_a_part_without_its_data_is_skipped_or_an_error_if_requested() -> None:
    truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    runs = [("ours", Run.from_rows([("q", "v", 0, 5, 1)]))]
    found = diagnose(runs, [truth], ["R@1[IoU>=0.5]"])
    assert found.ties is None
    assert found.location is None
    assert "duration" in found.reasons["location"]
    assert "Not run: ties" in found.as_text()
    for part in ("ties", "location", "performance"):
        with pytest.raises(MomentseekError):
            diagnose(runs, [truth], only=[part])


@pytest.mark.parametrize("part", PARTS)
def test_only_runs_what_is_asked(part: str) -> None:
    truth, runs = corpus(8)
    found = diagnose(runs, [truth], ["R@1[IoU>=0.5]", "AxIoU@5"], only=[part])
    assert [p for p in PARTS if getattr(found, p) is not None] == [part]


def test_a_part_that_does_not_exist_is_refused() -> None:
    truth, runs = corpus(8)
    with pytest.raises(MomentseekError, match=r"there is no part 'axiom' of a diagnosis; did you mean 'axioms'\?"):
        diagnose(runs, [truth], only=["axiom"])


def test_two_truths(tmp_path: Path) -> None:
    iid, first = corpus(10, "i")
    ood, second = corpus(12, "o")
    found = diagnose([*first, *second], [iid, ood], ["AxIoU@5", "R@5[IoU>=0.5]"], only=["ties", "noise", "location"])
    assert found.ties is not None
    assert [t.queries for t in found.ties] == [10, 12]
    assert "iid: the first truth" in found.as_text()
    names = {p.name for p in draw(replace(found, noise=None, location=None), tmp_path / "new")}
    assert names == {f"{name}.{kind}" for name in ("ties", "ties-2") for kind in ("png", "svg")}


def test_figures_are_whole_files_and_reproducible(whole: Diagnosis, tmp_path: Path) -> None:
    first = draw(whole, tmp_path / "a")
    again = draw(replace(whole, noise=None, location=None), tmp_path / "b")
    assert len(first) == 8
    for one, two in zip(first, again, strict=False):
        assert one.read_bytes() == two.read_bytes()
        assert one.read_bytes().startswith(b"\x89PNG" if one.suffix == ".png" else b"<?xml")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(p.name for p in first)


def test_without_matplotlib_the_extra_is_named(
    whole: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MomentseekError, match=r"pip install 'momentseek\[plots\]'"):
        draw(whole, tmp_path)


def test_a_file_in_the_way_of_the_folder(whole: Diagnosis, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MomentseekError, match="cannot be created as a folder"):
        draw(whole, tmp_path / "file")


def test_measures_that_learn_equally_little() -> None:
    truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    runs = [(name, Run.from_rows([("q", "w", 0, 5, 1)])) for name in ("one", "two")]
    text = diagnose(runs, [truth], ["R@1[IoU>=0.3]", "AxIoU@1"], only=["ties"]).as_text()
    assert "on how many queries do both runs score exactly the same?" in text
    assert "(memory): 1 query; runs one, two." in text
    assert "Every measure learns from\n0.00 % of the queries." in text
    alone = diagnose(runs, [truth], ["R@1[IoU>=0.3]"], only=["ties"]).as_text()
    assert "R@1[IoU>=0.3] learns from\n0.00 % of the queries." in alone


def test_nothing_relevant(tmp_path: Path) -> None:
    truth = Judgements.from_groups(["q"], [1], ["v"], [0], [10], [0], durations={"v": 100.0})
    runs = [("one", Run.from_rows([("q", "w", 0, 5, 1)]))]
    found = diagnose(runs, [truth], ["R@1[IoU>=0.3]"], only=["location"])
    text = found.as_text()
    assert "nan" not in text
    assert "Note: 1 first prediction of one cannot be located in a video." in text
    assert len(draw(found, tmp_path)) == 4


def test_no_figures_no_folder(whole: Diagnosis, tmp_path: Path) -> None:
    assert draw(replace(whole, ties=None, noise=None, location=None), tmp_path / "new") == []
    assert not (tmp_path / "new").exists()
