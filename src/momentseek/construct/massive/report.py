"""The report of a massive dataset, in the terms of MVMR's section 5, for people and for programs."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from momentseek.construct.decisions import tally
from momentseek.construct.massive.cohesiveness import HISTOGRAM_BINS, Cohesiveness, measure_cohesiveness, video_words
from momentseek.construct.massive.comparison import PoolComparison
from momentseek.construct.massive.construction import MassiveDataset
from momentseek.tables import NO_VALUE, count, text_table


def summary(result: MassiveDataset) -> dict[str, Any]:
    """The report as one JSON object: counts, positives per query, similarities of positives, cohesiveness."""
    data, pools = result.data, result.pools
    assert data.truth.queries is not None
    texts = data.truth.queries
    per_query = Counter(len(p.positives) for p in pools)
    words = video_words([texts[q] for q in data.by_video[a:b].tolist()] for a, b in itertools.pairwise(data.bounds))
    positive = measure_cohesiveness(([int(data.own[p.query]), *p.positives] for p in pools), words)
    negative = measure_cohesiveness((p.negatives for p in pools), words)
    scores = [s for p in pools for s in p.similarity]
    return {
        "queries": len(data.truth),
        "videos": len(data.truth.videos),
        "kept": len(pools),
        "settings": asdict(result.settings),
        "visual": None
        if result.visual is None
        else {"golden": result.visual.golden, "negative": result.visual.negative},
        "decisions": tally(result.decisions),
        "further_positives": {str(k): per_query[k] for k in sorted(per_query)},
        "positives_per_query": round(1 + sum(len(p.positives) for p in pools) / max(1, len(pools)), 4),
        "positive_similarity": round(float(np.mean(scores)), 4) if scores else None,
        "cohesiveness": {"positive": _plain(positive), "negative": _plain(negative)},
    }


def as_text(found: dict[str, Any], encoder: str) -> str:
    """The report as text, from the summary."""
    settings = found["settings"]
    lines = [
        f"kept {found['kept']:,} of {count(found['queries'], 'query', 'queries')} over "
        f"{count(found['videos'], 'video')}; pools of {settings['pool']}, {found['positives_per_query']:.2f} positives "
        "per query (the own one included)",
        f"rules: {encoder} similarity >= {settings['text_positive']:g} positive, < {settings['text_negative']:g} "
        f"negative; seed {settings['seed']}; {_visual(found)}",
    ]
    for outcome, reasons in found["decisions"].items():
        lines += [f"  {outcome}: {n:,}, {reason}" for reason, n in reasons.items()]
    rows = [[k, f"{n:,}", f"{n / found['kept']:.1%}"] for k, n in found["further_positives"].items()]
    lines += ["", text_table(["further positives", "queries", "share"], rows)]
    sides = found["cohesiveness"]
    header = [
        "words shared by other videos of the set",
        *(f"{i / HISTOGRAM_BINS:.1f}–" for i in range(HISTOGRAM_BINS)),
        "mean",
    ]
    shares = [
        [side, *(f"{share:.0%}" for share in sides[side]["histogram"]), _number(sides[side]["mean"])]
        for side in ("positive", "negative")
    ]
    return "\n".join([*lines, "", text_table(header, shares)])


def why_differ(encoder: str, features: str | None) -> str:
    """Why a published file differs from ours, given the encoder of sentences and the file of visual scores.

    >>> why_differ("file:simcse.npz", "emscore.npz")[-108:]
    'they filter by EMScore, here emscore.npz does; they were drawn without a seed, so pools differ by chance too'
    """
    if encoder.startswith("file:"):
        words = f"here the vectors of {encoder.removeprefix('file:')} do, which may be on another scale"
    else:
        words = f"here {encoder} does, whose scale is another"
    sight = f"here {features} does" if features else "nothing is filtered by visual scores here (`features`)"
    return (
        f"the published files compare sentences by SimCSE (RoBERTa-large), {words}; they filter by EMScore, {sight}; "
        "they were drawn without a seed, so pools differ by chance too"
    )


def comparison_text(found: PoolComparison, chance: tuple[float, float], why: str, reference: str) -> str:
    """The comparison with a published file as text: how far the two agree, and why not further."""
    counts = sorted({*found.our_positives, *found.their_positives})
    rows = [[str(k), f"{found.our_positives.get(k, 0):,}", f"{found.their_positives.get(k, 0):,}"] for k in counts]
    return "\n".join(
        [
            f"beside {reference}: {count(found.both, 'query', 'queries')} in both, {found.only_ours:,} only here, "
            f"{found.only_theirs:,} only there",
            text_table(["further positives", "here", "there"], rows),
            f"same further positives (mean Jaccard): {found.positives_overlap:.3f}; between two seeds here: "
            f"{chance[0]:.3f}",
            f"same negatives (mean Jaccard): {found.negatives_overlap:.3f}; between two seeds here: {chance[1]:.3f}",
            f"of its further positives {found.positives_reach:.1%} reach the positive threshold here; of its negatives "
            f"{found.negatives_below:.1%} stay below the negative one",
            f"why they differ: {why}",
        ]
    )


def _visual(found: dict[str, Any]) -> str:
    if found["visual"] is None:
        return "no visual filter"
    return f"visual scores >= {found['visual']['golden']:.4f} positive, < {found['visual']['negative']:.4f} negative"


def _plain(found: Cohesiveness) -> dict[str, Any]:
    mean = None if found.mean != found.mean else round(found.mean, 4)
    return {"mean": mean, "histogram": list(found.histogram), "words": found.words}


def _number(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.3f}"
