from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.library.video import Video
from momentseek.search.fusion import (
    Candidate,
    drop_repeats,
    fit_span,
    fit_spans,
    is_same_moment,
    merge_hits,
    rank_candidates,
)
from momentseek.search.hit import StreamHit

SPANS = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 20), st.integers(1, 9)), max_size=12)


def candidate(video=1, start=0.0, end=5.0, **streams):
    one = Candidate(video, start, end, start)
    for name, (rank, level) in streams.items():
        one.add_stream(name, rank, 0.0, level)
    return one


def test_two_streams_beat_one_and_sureness_counts():
    both = candidate(vision=(2, "strong"), speech=(2, "strong"))
    seen = candidate(vision=(1, "strong"))
    chatter = candidate(speech=(1, "weak"))
    assert rank_candidates([chatter, seen, both]) == [both, seen, chatter]
    assert seen.score == 0.2 + 1 / 61
    assert both.score == 0.2 + 2 / 62
    assert chatter.score == pytest.approx(0.01 / 61)


def test_a_surer_moment_goes_first_whatever_its_ranks():
    last = candidate(vision=(500, "strong"))
    fair = candidate(vision=(1, "fair"))
    weak = candidate(vision=(1, "weak"), speech=(1, "weak"), name=(1, "weak"))
    assert rank_candidates([weak, fair, last]) == [last, fair, weak]


def test_the_better_of_two_standings_counts():
    one = candidate(speech=(3, "weak"))
    one.add_stream("speech", 5, 9.0, "strong")
    assert one.ranks["speech"].rank == 3
    one.add_stream("speech", 1, 7.0, "strong")
    assert (one.ranks["speech"].score, one.levels["speech"]) == (7.0, "strong")


def test_ties_go_by_video_and_time():
    late, early, other = candidate(1, 9, 10), candidate(1, 3, 4), candidate(0, 50, 51)
    assert rank_candidates([late, early, other]) == [other, early, late]


@given(SPANS)
def test_kept_spans_overlap_by_at_most_half_and_dropped_ones_overlap_a_kept_one(spans):
    given_ = [Candidate(v, s, s + n, s) for v, s, n in spans]
    kept = drop_repeats(given_)
    for at, one in enumerate(kept):
        for other in kept[:at]:
            if one.video == other.video:
                shared = min(one.end, other.end) - max(one.start, other.start)
                assert shared <= 0.5 * min(one.end - one.start, other.end - other.start)
    for one in given_:
        assert one in kept or any(k.video == one.video and k.start < one.end and one.start < k.end for k in kept)
    assert [c for c in given_ if c in kept] == kept


def test_a_cue_at_the_edge_of_a_span_is_another_moment():
    assert is_same_moment(9.0, 11.0, 10.0, 20.0)
    assert not is_same_moment(9.0, 11.0, 10.5, 20.0)


def test_weak_pictures_do_not_move_what_is_said():
    video = Video(1, Path("v"), "v", 1, 0, "", 60.0, 1, 1, Fraction(25), "", 40, 0, (), 0.0)
    said = StreamHit(1, 20.5, 24.0, 3.0, "strong")
    weak, fair = (StreamHit(1, 1.5, 36.0, 0.1, level, 30.0) for level in ("weak", "fair"))
    (one,) = merge_hits([weak], {"speech": [said]}, {1: video})
    assert (one.start, one.end, one.peak, set(one.ranks)) == (20.5, 24.0, 24.0, {"vision", "speech"})
    (other,) = merge_hits([fair], {"speech": [said]}, {1: video})
    assert (other.start, other.end) == (1.5, 36.0)
    assert merge_hits([weak], {"speech": [said]}, {}) == [], "the video has just been removed"


@given(st.floats(-5, 100), st.floats(-5, 100), st.floats(0, 60))
def test_one_span_is_fitted_as_many_are(start, end, duration):
    starts, ends = fit_spans([start], [end], duration)
    assert fit_span(start, end, duration) == (float(starts[0]), float(ends[0]))
