"""How often levels are right, by the judgements of one's own library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from momentseek.core.moments.judgements import Judgements
from momentseek.server.judging.evaluation import JudgedTruth, judged_levels


class Found:
    """As much of a hit as counts here."""

    def __init__(self, start: float, end: float, level: str) -> None:
        self.start, self.end, self.level = start, end, level


def test_hits_are_right_wrong_or_unjudged() -> None:
    rows = [("1", "a", 0, 10, 4), ("1", "b", 0, 10, 2), ("2", "a", 20, 30, 0), ("2", "a", 40, 50, 3)]
    truth = JudgedTruth(Judgements.from_rows(rows), {"hash-a": "a", "hash-b": "b"}, 0)
    answers: Any = [
        [(Found(0, 9, "strong"), "hash-a"), (Found(1, 10, "fair"), "hash-b"), (Found(50, 60, "weak"), "hash-a")],
        [(Found(21, 30, "strong"), "hash-a"), (Found(40, 50, "strong"), "hash-a"), (Found(0, 9, "fair"), "hash-c")],
    ]
    found = judged_levels(truth, answers)
    assert [(each.name, each.right, each.count) for each in found.every] == [
        ("weak", 0, 0), ("fair", 0, 1), ("strong", 2, 3),
    ]  # fmt: skip
    assert [(each.name, each.right, each.count) for each in found.first] == [
        ("weak", 0, 0), ("fair", 0, 0), ("strong", 1, 2),
    ]  # fmt: skip
    assert found.unjudged == 2


def test_the_server_tells_how_far_levels_can_be_trusted(campaign: Any) -> None:
    assert campaign.get("reliability").status_code == 409  # nothing is judged
    query = campaign.ask("red")
    campaign.judge(query, "ann", lambda moment: 4 if moment["start"] < 1 else 0)
    answer = campaign.get("reliability").json()
    assert (answer["queries"], answer["rule"], len(answer["notes"])) == (1, "one", 1)
    assert [one["level"] for one in answer["every"]] == ["strong", "fair", "weak"]
    judged = sum(one["judged"] for one in answer["every"])
    assert judged > 0
    assert sum(one["judged"] for one in answer["first"]) <= 1
    for one in (*answer["every"], *answer["first"]):
        assert one["right"] <= one["judged"]
        assert 0 <= one["low"] <= (one["share"] if one["share"] is not None else one["low"]) <= one["high"] <= 1
        assert one["share"] == (pytest.approx(one["right"] / one["judged"]) if one["judged"] else None)
    shown = campaign.get("reliability", all="false").json()
    assert shown["every"][2]["judged"] == 0
    assert np.isfinite(answer["unjudged"])
    assert campaign.get("reliability", localiser="nonsense").status_code == 422
