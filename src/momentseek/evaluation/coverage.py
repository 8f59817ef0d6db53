"""Do run and truth speak of the same queries? What is missing, unknown, or only looks alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.measures import Alignment
from momentseek.moments import CaptionTable, Judgements, Run
from momentseek.moments.arrays import BoolArray, IntArray
from momentseek.moments.table import MomentTable


def refuse_unknown(run: MomentTable, truth: MomentTable) -> None:
    """Refuse predictions for queries that are not judged, or captions of moments that have no references."""
    unknown = [q for q in run.query_ids if q not in truth.position]
    if unknown:
        made = "these captions were" if isinstance(run, CaptionTable) else "this run was"
        raise MomentseekError(
            f"{run.source}: {some(unknown, asked=run.ASKED)} not in {truth.source}; use the truth {made} made for"
        )


def unanswered_queries(view: Alignment, saliency: bool) -> IntArray:
    """Judged queries (by place) for which the run has no predictions, or no saliency scores."""
    if not saliency:
        return np.flatnonzero(~view.has_predictions())
    answered: BoolArray = np.zeros(view.queries, dtype=bool)
    if view.run.saliency is not None:
        counts = np.diff(view.run.saliency.offsets)
        answered[[view.truth.position[q] for q, n in zip(view.run.query_ids, counts, strict=True) if n]] = True
    return np.flatnonzero(~answered)


def refuse_unanswered(view: Alignment, places: IntArray, saliency: bool) -> None:
    """Refuse a run that leaves judged queries out, as every official evaluator should."""
    if not len(places):
        return
    run, truth = view.run, view.truth
    gone = [truth.query_ids[i] for i in places]
    what = "saliency scores" if saliency else "predictions"
    empty = " (an empty list)" if gone[0] in run else ""
    raise MomentseekError(
        f"{run.source}: {some(gone, ('has', 'have'))} no {what}{empty}, but {truth.source} judges "
        f'{"it" if len(gone) == 1 else "them"}; count such queries as 0 (missing="zero") or leave them out '
        '(missing="skip")'
    )


def check_queries(views: Sequence[Alignment], truth: Judgements, missing: str) -> None:
    """Refuse predictions for unjudged queries and, unless ``missing`` says otherwise, judged queries without any."""
    for view in views:
        refuse_unknown(view.run, truth)
        if missing == "error":
            refuse_unanswered(view, unanswered_queries(view, saliency=False), saliency=False)


def differing_texts(run: Run, truth: Judgements) -> str | None:
    """A note where run and truth give a query different words; refused where its id is only a position.

    Ids such as ``3MSZA:2`` mean the third sentence of a video. If the words differ there, the two files count
    differently, and every figure would be wrong. Punctuation and case do not matter.
    """
    if run.queries is None or truth.queries is None:
        return None
    places = [truth.position[q] for q in run.query_ids]
    texts = [(q, a, truth.queries[i]) for q, a, i in zip(run.query_ids, run.queries, places, strict=True)]
    other = [(q, a, b) for q, a, b in texts if a != b and a and b and _letters(a) != _letters(b)]
    if not other:
        return None
    query, ours, theirs = other[0]
    words = f"{run.source}: {some([q for q, _, _ in other], ('has', 'have'))} other words than in {truth.source}"
    example = f"query {query}: {ours.strip()!r} and {theirs.strip()!r}"
    video, _, place = query.rpartition(":")
    if place.isdigit() and video in truth.video_code:
        raise MomentseekError(f"{words} ({example}), so the two files do not number their queries alike")
    return f"{words} ({example})"


def outside_pools(view: Alignment) -> str | None:
    """A note on predictions in videos that do not belong to their query's pool (MVMR)."""
    pools, truth = view.truth.pools, view.truth
    if pools is None:
        return None
    owner = np.repeat(np.arange(len(truth)), np.diff(pools.offsets))
    inside = np.isin(view.query * len(truth.videos) + view.video, owner * len(truth.videos) + pools.video)
    outside = int((~inside | (view.video < 0)).sum())
    if not outside:
        return None
    return f"{view.run.source}: {outside:,} of {len(view.query):,} predictions lie outside their query's pool of videos"


def without_relevant(truth: Judgements) -> str | None:
    """A note on queries that nothing could answer."""
    relevant = np.zeros(len(truth), dtype=bool)
    relevant[truth.row_query[truth.relevance > 0]] = True
    ids = [truth.query_ids[i] for i in np.flatnonzero(~relevant)]
    return f"{truth.source}: {some(ids, ('has', 'have'))} no relevant moment" if ids else None


def some(
    ids: Sequence[str], verb: tuple[str, str] = ("is", "are"), asked: tuple[str, str] = ("query", "queries")
) -> str:
    """Queries (or what else was ``asked``) in words: the one, or how many and the first three.

    >>> some(["a"]), some(["a", "b", "c", "d"])
    ('query a is', '4 queries (a, b, c, …) are')
    """
    if len(ids) == 1:
        return f"{asked[0]} {ids[0]} {verb[0]}"
    return f"{len(ids):,} {asked[1]} ({', '.join(ids[:3])}{', …' if len(ids) > 3 else ''}) {verb[1]}"


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
