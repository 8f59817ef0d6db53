"""The human check of MVMR (section 5.2) as Label Studio tasks: does this video show what the query says?

The paper had workers look at 100 queries and all videos added to their pools, and found 1.5 %, 0.2 % and 3.5 % of
them on the wrong side. A positive is asked about at its moment, a negative as a whole video, in mixed order; the
side itself is in the task's ``meta``, which annotators do not see.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np

from momentseek.construct.massive.construction import MassiveDataset, QueryPool
from momentseek.construct.massive.pools import draw_lots, query_lots

CHECKED_QUERIES = 100

LABELLING_CONFIG = """<View>
  <Header value="$query"/>
  <Text name="where" value="$where"/>
  <Video name="video" value="$video_url"/>
  <Choices name="answer" toName="video" choice="single" required="true">
    <Choice value="yes"/>
    <Choice value="no"/>
  </Choices>
</View>
"""
"""The labelling page (XML) for these tasks."""


def build_check_tasks(
    result: MassiveDataset, queries: int = CHECKED_QUERIES, url: str = "{video}"
) -> list[dict[str, Any]]:
    """Build tasks for some queries, drawn by the seed: one per added video, in an order that reveals nothing.

    ``url`` is where the annotators find a video, with ``{video}`` in the place of its name (quoted, as addresses
    need it).
    """
    truth = result.data.truth
    lots = query_lots(draw_lots(result.data.names, result.settings.seed), "human check")
    chosen = sorted(sorted(result.pools, key=lambda p: int(lots[p.query]))[:queries], key=lambda p: p.query)
    tasks = []
    for pool in chosen:
        added = [*pool.positives, *pool.negatives]
        order = np.argsort(
            query_lots(draw_lots([truth.videos[v] for v in added], result.settings.seed), result.data.names[pool.query])
        )
        tasks += [_task(result, pool, at, url) for at in order.tolist()]
    return tasks


def _task(result: MassiveDataset, pool: QueryPool, at: int, url: str) -> dict[str, Any]:
    truth = result.data.truth
    assert truth.queries is not None
    positive = at < len(pool.positives)
    video = pool.positives[at] if positive else pool.negatives[at - len(pool.positives)]
    name = truth.videos[video]
    meta: dict[str, Any] = {"query_id": truth.query_ids[pool.query], "side": "positive" if positive else "negative"}
    start, end = 0.0, float(truth.durations[video])
    if positive:
        row = int(truth.offsets[pool.sources[at]])
        start, end = float(truth.start[row]), float(truth.end[row])
        meta |= {"sentence": truth.queries[pool.sources[at]], "similarity": round(pool.similarity[at], 4)}
    return {
        "data": {
            "query": truth.queries[pool.query],
            "video": name,
            "video_url": url.replace("{video}", quote(name)),
            "start": start,
            "end": end,
            "where": f"{name}, {start:g}–{end:g} s",
        },
        "meta": meta,
    }
