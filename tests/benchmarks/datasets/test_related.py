"""Related videos against the definition, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks.datasets.sentences import collect_sentences, find_related_videos
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements


def shared(queries: Sequence[str], others: Sequence[str]) -> np.ndarray:
    """The share of letters in common: 1 for equal texts only."""
    return np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in others] for a in queries], np.float32)


rows = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from("uvwx"), st.integers(0, 1), st.text("abcd ", max_size=4)),
    min_size=1,
    max_size=25,
)


@given(rows, st.sampled_from([0.3, 0.5, 1.0]), st.sampled_from([1, 3, None]))
def test_a_video_is_related_by_its_most_similar_sentence(
    given_rows: list[tuple[int, str, int, str]], threshold: float, block: int | None
) -> None:
    text = {f"q{q}": t for q, _, _, t in given_rows}
    truth = Judgements.from_rows([(f"q{q}", v, 0.0, 5.0, r) for q, v, r, _ in given_rows])
    truth = replace(truth, queries=tuple(text[q] for q in truth.query_ids))
    if not any(t.strip() for t in text.values()):
        with pytest.raises(MomentseekError, match="no sentences"):
            collect_sentences(truth)
        return
    found = find_related_videos(collect_sentences(truth), shared, threshold, block=block)
    true = {(f"q{q}", v) for q, v, r, _ in given_rows if r}
    for query in truth.query_ids:
        mine = text[query].strip()
        expected = {
            v
            for other, v in true
            if mine
            and text[other].strip()
            and (query, v) not in true
            and shared([mine], [text[other].strip()])[0, 0] >= threshold - 1e-6
        }
        assert set(found.get(query, ())) == expected
        assert len(found.get(query, ())) == len(expected)


def test_progress_counts_every_sentence() -> None:
    truth = Judgements.from_rows([(f"q{i}", "v", 0.0, 5.0, 1) for i in range(5)])
    told: list[tuple[int, int]] = []
    data = collect_sentences(replace(truth, queries=tuple("abcda")))
    find_related_videos(data, shared, 0.9, lambda done, total: told.append((done, total)), block=3)
    assert told == [(3, 4), (4, 4)]
