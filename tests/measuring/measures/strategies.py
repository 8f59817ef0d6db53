"""Small random truths and runs, with ties at the thresholds: times lie on a 1.5 s grid."""

from hypothesis import strategies as st

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run

videos = st.sampled_from(["v", "w", "x"])
grid = st.tuples(st.integers(0, 12), st.integers(1, 8)).map(lambda t: (1.5 * t[0], 1.5 * (t[0] + t[1])))


@st.composite
def truths(draw, queries=3, graded=True):
    rows = []
    for q in range(draw(st.integers(1, queries))):
        for _ in range(draw(st.integers(1, 5))):
            grade = draw(st.integers(0, 4)) if graded else 1
            rows.append((f"q{q}", draw(videos), *draw(grid), grade))
    return Judgements.from_rows(rows)


@st.composite
def runs(draw, truth, depth=8):
    rows = []
    for q in truth.query_ids:
        for rank in range(draw(st.integers(1, depth))):
            rows.append((q, draw(videos), *draw(grid), -rank))
    return Run.from_rows(rows)


@st.composite
def pairs(draw, graded=True):
    truth = draw(truths(graded=graded))
    return truth, draw(runs(truth))
