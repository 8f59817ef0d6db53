from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from momentseek.benchmarks.datasets.annotation.consensus import find_consensus as rule
from momentseek.benchmarks.datasets.annotation.labels import read_labels, write_labels
from momentseek.server.judging.consensus import JudgementRow, annotators_needed, consensus_statistics, judged_pairs

CAMPAIGNS = st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=12)
"""For each pair the labels of up to four annotators, each another one."""


def said(levels: list[list[int]]) -> list[JudgementRow]:
    return [
        JudgementRow(0, 1, pair, f"annotator {who}", level, 0.0)
        for who in range(4)
        for pair, some in enumerate(levels, 1)
        for level in some[who : who + 1]
    ]


@given(levels=CAMPAIGNS)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_the_rule_on_the_exported_labels(levels: list[list[int]], tmp_path: Path) -> None:
    given = said(levels)
    names = [f"1/{pair}" for pair in range(1, len(levels) + 1)]
    found = judged_pairs(names, given)
    assert list(found) == names
    if not given:
        assert all(one.needs == 2 for one in found.values())
        return
    file = tmp_path / "labels.csv"
    file.write_bytes(write_labels(j.label for j in given))
    true = rule(read_labels(file), incomplete="drop")
    kept = {
        pair: level for pair, level in zip(true.labels.pair_ids, true.relevance.tolist(), strict=True) if level >= 0
    }
    assert {pair: one.relevance for pair, one in found.items() if one.relevance is not None} == kept
    four = {p for p, n, k in zip(true.labels.pair_ids, true.labels.counts, true.kept, strict=True) if n == 4 and not k}
    assert {pair for pair, one in found.items() if one.outcome == "discarded"} == four
    assert (consensus_statistics(given) is None) == (not true.complete.any())


@given(levels=st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_whoever_is_needed_ends_in_two_or_four_labels(levels: list[int]) -> None:
    given: list[JudgementRow] = []
    for who, level in enumerate(levels):
        if not judged_pairs(["1/1"], given)["1/1"].is_open_for(f"annotator {who}"):
            break
        given.append(JudgementRow(who, 1, 1, f"annotator {who}", level, 0.0))
    end = judged_pairs(["1/1"], given)["1/1"]
    assert len(end.labels) == (2 if abs(levels[0] - levels[1]) <= 1 else 4)
    assert end.outcome in ("kept", "discarded")
    assert annotators_needed(len(end.labels), end.outcome == "kept") == 0


def test_nobody_is_asked_twice() -> None:
    one = judged_pairs(["1/1"], said([[0, 4]]))["1/1"]
    assert [one.is_open_for(f"annotator {who}") for who in range(4)] == [False, False, True, True]
