"""Queries that read the same: judged once, not once each.

Once names are replaced, different moments often have the same words (TVR-Ranking, section 3.1 and Table 2), and
asking twice would only cost work.
"""

from __future__ import annotations

import numpy as np

from momentseek.construct.decisions import Decision
from momentseek.construct.text import normalise
from momentseek.moments import Judgements
from momentseek.moments.arrays import IntArray, offsets_of


def drop_same_wording(queries: Judgements) -> tuple[Judgements, list[Decision]]:
    """The first query of each wording (case and punctuation aside), and a decision about each of the others.

    >>> from momentseek.moments import Judgements
    >>> rows = Judgements.from_groups(["a", "b"], [1, 1], ["v", "w"], [0, 0], [5, 5], queries=["Sit!", " sit"])
    >>> kept, decisions = drop_same_wording(rows)
    >>> kept.query_ids, decisions[0].subject, decisions[0].evidence
    (('a',), 'b', {'query': 'a'})
    """
    first: dict[str, int] = {}
    places: list[int] = []
    decisions = []
    for place, text in enumerate(queries.queries or ()):
        same = first.setdefault(normalise(text), place)
        if same == place:
            places.append(place)
        else:
            evidence = {"query": queries.query_ids[same]}
            decisions.append(Decision(queries.query_ids[place], "left out", "same words as another query", evidence))
    return _select_queries(queries, np.array(places, dtype=np.int64)), decisions


def _select_queries(table: Judgements, places: IntArray) -> Judgements:
    rows = np.flatnonzero(np.isin(table.row_query, places))
    return Judgements(
        query_ids=tuple(table.query_ids[p] for p in places),
        offsets=offsets_of(table.counts[places].tolist()),
        videos=table.videos,
        video=table.video[rows],
        start=table.start[rows],
        end=table.end[rows],
        relevance=table.relevance[rows],
        durations=table.durations,
        queries=tuple(table.queries[p] for p in places) if table.queries else None,
        source=table.source,
    )
