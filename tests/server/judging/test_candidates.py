from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from momentseek.library.video import Video
from momentseek.search.hit import Hit
from momentseek.server.judging.annotate import decide_second_batch, pool_moments
from momentseek.server.judging.consensus import UNJUDGED_PAIR, CandidateRow, JudgedPair


def video(id: int, hash: str = "", duration: float = 1000.0) -> Video:
    rate = Fraction(25)
    return Video(
        id, Path(f"{id}.mp4"), f"{id}.mp4", 1, 1, hash or f"hash{id}", duration, 64, 48, rate, "h264", 1, 0, (), 0
    )


def hit(rank: int, id: int, start: float, end: float) -> Hit:
    return Hit(
        rank=rank, video_id=id, path=Path(f"{id}.mp4"), name=f"{id}.mp4", start=start, end=end, score=1.0 / rank,
        peak=start, duration=1000.0,
    )  # fmt: skip


VIDEOS = {1: video(1), 2: video(2), 3: video(3, "hash1"), 4: video(4, duration=20.0)}


def spans(lists: list[list[Hit]], most: int = 40) -> list[tuple[int, float, float]]:
    return [(p.video.id, p.start, p.end) for p in pool_moments(lists, VIDEOS, most)]


def test_setups_take_turns() -> None:
    one = [hit(1, 1, 0, 10), hit(2, 1, 20, 30), hit(3, 1, 40, 50)]
    other = [hit(1, 2, 0, 10)]
    assert spans([one, other]) == [(1, 0, 10), (2, 0, 10), (1, 20, 30), (1, 40, 50)]
    assert spans([one, other], 2) == [(1, 0, 10), (2, 0, 10)]


def test_moments_that_nearly_coincide_are_judged_once() -> None:
    assert spans([[hit(1, 1, 0, 10)], [hit(1, 1, 5, 10)], [hit(1, 1, 6, 10)]]) == [(1, 0, 10), (1, 6, 10)]


def test_copies_of_a_video_are_one_video() -> None:
    assert spans([[hit(1, 1, 0, 10), hit(2, 3, 0, 10)]]) == [(1, 0, 10)]


def test_what_cannot_be_watched_is_no_candidate() -> None:
    assert spans([[hit(1, 1, 0, 1000), hit(2, 9, 0, 10), hit(3, 1, 5, 8)]]) == [(1, 5, 8)]


def test_a_moment_ends_with_its_video() -> None:
    assert spans([[hit(1, 4, 15, 21)]]) == [(4, 15, 20)]


def rows(n: int) -> list[CandidateRow]:
    return [CandidateRow(i, 1, "q", i, 1, f"h{i}", "a", "a", 60.0, i, i + 1.0, 1 / i) for i in range(1, n + 1)]


def judged(levels: list[int | None]) -> dict[str, JudgedPair]:
    return {
        f"1/{i}": JudgedPair("discarded", "", 0) if level is None else JudgedPair("kept", "", 0, level)
        for i, level in enumerate(levels, 1)
    }


@pytest.mark.parametrize(("last", "outcome"), [
    ([2, 2, 2, 2, 2], "extended"), ([2, 2, 2, 2, 1], "covered"), ([4, 4, 0, 0, 2], "extended"),
    ([None, None, None, 1, 3], "extended"), ([None] * 5, "covered"), ([0, 0, 0, 0, 0], "covered"),
])  # fmt: skip
def test_the_last_five_decide(last: list[int | None], outcome: str) -> None:
    levels: list[int | None] = [4] * 15 + last
    assert decide_second_batch(rows(20), judged(levels), 20, {f"h{i}" for i in range(21)}).outcome == outcome


def test_nothing_is_decided_before_all_are_judged() -> None:
    pairs = judged([4] * 20) | {"1/3": UNJUDGED_PAIR}
    here = {f"h{i}" for i in range(21)}
    assert decide_second_batch(rows(20), pairs, 20, here).outcome == "waiting"
    assert decide_second_batch(rows(20), pairs, 20, here - {"h3"}).outcome == "extended"  # nobody can judge it any more


def test_no_consensus_at_all_is_no_reason_to_look_further() -> None:
    assert decide_second_batch(rows(3), judged([None] * 3), 3, {"h1", "h2", "h3"}).outcome == "covered"


def test_a_small_batch_is_its_own_last() -> None:
    assert decide_second_batch(rows(2), judged([4, 4]), 2, set()).outcome == "extended"
