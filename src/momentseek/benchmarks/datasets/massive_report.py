"""The report of a massive dataset (MVMR, section 5): counts, cohesiveness, comparison with a published file, tasks.

In the paper, workers checked 100 queries and all videos added to their pools, and found 1.5 %, 0.2 % and 3.5 % of them
on the wrong side. The Label Studio tasks for that check show a positive's moment or a negative's whole video, in mixed
order; the side itself is in the task's ``meta``, which annotators do not see.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from momentseek.benchmarks.datasets.annotation.label_studio import page_beside
from momentseek.benchmarks.datasets.common import BuiltDataset, ShowProgress, as_json_lines, no_progress, tally
from momentseek.benchmarks.datasets.common import words as words_of
from momentseek.benchmarks.datasets.emscore import emscore_of
from momentseek.benchmarks.datasets.massive import (
    MassiveDataset,
    MassiveSettings,
    QueryPool,
    as_truth,
    build_massive,
    draw_lots,
    query_lots,
    read_visual_scores,
    require_videos,
)
from momentseek.benchmarks.datasets.massive_figures import (
    check_map_target,
    draw_massive,
    pair_similarities,
    read_judged_pairs,
)
from momentseek.benchmarks.datasets.sentences import (
    SIMCSE_PREFIX,
    MassiveSource,
    TextSimilarity,
    encoder_similarity,
    prepare_source,
    sentence_encoder,
    video_similarity,
)
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.table import Policy
from momentseek.core.reports import count, decimals, text_table, to_plain
from momentseek.measuring.formats import FORMATS, read_corpus, read_truth
from momentseek.measuring.formats.writers import dump
from momentseek.recognition.encoders.text_cache import EncodeChunks

QueryKey = tuple[str, str, int]
"""Own video, sentence, and which of the video's equal sentences: ids change when queries are left out."""


@dataclass(frozen=True)
class PoolSides:
    """The additional positives and the negatives of one query's pool, by name."""

    positives: frozenset[str]
    negatives: frozenset[str]


@dataclass(frozen=True)
class PoolComparison:
    """How much our pools and published ones agree; shares are over the queries that both files have."""

    both: int
    only_ours: int
    only_theirs: int
    our_positives: Mapping[int, int]
    their_positives: Mapping[int, int]
    """Number of queries by their number of additional positives."""
    positives_overlap: float
    """Mean Jaccard index of the additional positives, over queries for which either file has any."""
    negatives_overlap: float
    """Mean Jaccard index of the negatives."""
    positives_reach: float
    """Share of their additional positives whose similarity reaches our t+."""
    negatives_below: float
    """Share of their negatives whose similarity stays below our t-."""


def read_sides(truth: Judgements) -> dict[QueryKey, PoolSides]:
    """Read each query's positives and negatives from a truth with pools."""
    if truth.pools is None or truth.queries is None:
        raise MomentseekError(f"{truth.source}: has no pools to compare with; give an MVMR file")
    seen: Counter[tuple[str, str]] = Counter()
    found: dict[QueryKey, PoolSides] = {}
    names = [strip_extension(name) for name in truth.videos]
    for i, text in enumerate(truth.queries):
        moments = truth.video[truth.offsets[i] : truth.offsets[i + 1]].tolist()
        pool = truth.pools.video[truth.pools.offsets[i] : truth.pools.offsets[i + 1]].tolist()
        if not moments:
            continue
        own = names[moments[0]]
        positives = frozenset(names[v] for v in moments) - {own}
        negatives = frozenset(names[v] for v in pool) - positives - {own}
        found[own, text.strip(), seen[own, text.strip()]] = PoolSides(positives, negatives)
        seen[own, text.strip()] += 1
    return found


def strip_extension(video: str) -> str:
    """Remove the file extension from a video's name; published files may or may not have it.

    >>> strip_extension("s30-d52.avi"), strip_extension("v_bXdq2zI1Ms0")
    ('s30-d52', 'v_bXdq2zI1Ms0')
    """
    return re.sub(r"\.(avi|mkv|mov|mp4|webm)$", "", video)


def compare_pools(result: MassiveDataset, reference: Judgements, similarity: TextSimilarity) -> PoolComparison:
    """Compare our pools with a published file of the same dataset."""
    ours, theirs = read_sides(as_truth(result)), read_sides(reference)
    both = [key for key in ours if key in theirs]
    if not both:
        raise MomentseekError(f"{reference.source}: shares no query with {result.data.truth.source}; is it its MVMR?")
    reach, below = _by_our_rules(result, theirs, similarity)
    return PoolComparison(
        both=len(both),
        only_ours=len(ours) - len(both),
        only_theirs=len(theirs) - len(both),
        our_positives=_distribution([ours[k] for k in both]),
        their_positives=_distribution([theirs[k] for k in both]),
        positives_overlap=_mean([jaccard(ours[k].positives, theirs[k].positives) for k in both]),
        negatives_overlap=_mean([jaccard(ours[k].negatives, theirs[k].negatives) for k in both]),
        positives_reach=reach,
        negatives_below=below,
    )


def compare_draws(one: MassiveDataset, other: MassiveDataset) -> tuple[float, float]:
    """Return the mean Jaccard index of positives and negatives between two draws: the overlap expected by chance."""
    a, b = read_sides(as_truth(one)), read_sides(as_truth(other))
    both = [key for key in a if key in b]
    return (
        _mean([jaccard(a[k].positives, b[k].positives) for k in both]),
        _mean([jaccard(a[k].negatives, b[k].negatives) for k in both]),
    )


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the Jaccard index of two sets (intersection over union); NaN if both are empty.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(a & b) / len(a | b) if a | b else float("nan")


def _by_our_rules(
    result: MassiveDataset, theirs: Mapping[QueryKey, PoolSides], similarity: TextSimilarity
) -> tuple[float, float]:
    data = result.data
    code = {strip_extension(name): place for place, name in enumerate(data.truth.videos)}
    keys = _keys(data)
    positives: list[float] = []
    negatives: list[float] = []
    for queries, _, videos in video_similarity(data, similarity):
        for query, row in zip(queries.tolist(), videos, strict=True):
            sides = theirs.get(keys[query])
            if sides:
                positives += row[[code[v] for v in sides.positives if v in code]].tolist()
                negatives += row[[code[v] for v in sides.negatives if v in code]].tolist()
    return (
        _mean((np.array(positives) >= result.settings.text_positive).tolist()),
        _mean((np.array(negatives) < result.settings.text_negative).tolist()),
    )


def _keys(data: MassiveSource) -> list[QueryKey]:
    seen: Counter[tuple[str, str]] = Counter()
    keys = []
    for own, text in zip(data.own.tolist(), data.text.tolist(), strict=True):
        name = strip_extension(data.truth.videos[own]), data.texts[text].strip()
        keys.append((*name, seen[name]))
        seen[name] += 1
    return keys


def _distribution(sides: Sequence[PoolSides]) -> dict[int, int]:
    return dict(sorted(Counter(len(s.positives) for s in sides).items()))


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if v == v]
    return sum(known) / len(known) if known else float("nan")


HISTOGRAM_BINS = 10


@dataclass(frozen=True)
class Cohesiveness:
    """How many words a set's videos share: mean co-occurrence ratio, and its histogram in ten bins of [0, 1]."""

    mean: float
    histogram: tuple[float, ...]
    words: int


def video_words(sentences: Iterable[Iterable[str]]) -> list[IntArray]:
    """Number the distinct words of each video.

    >>> [w.tolist() for w in video_words([["A man runs.", "he runs"], ["the MAN sits"]])]
    [[0, 1, 2, 3], [4, 1, 5]]
    """
    numbers: dict[str, int] = {}
    found = []
    for some in sentences:
        words = dict.fromkeys(itertools.chain.from_iterable(words_of(s) for s in some))
        found.append(np.array([numbers.setdefault(w, len(numbers)) for w in words], dtype=np.int64))
    return found


def cooccurrence_ratios(words: Sequence[IntArray]) -> tuple[FloatArray, IntArray]:
    """Return each word's co-occurrence ratio in a set of n videos, and how many videos have the word.

    .. math:: r(w, v) = \\frac{|\\{u \\ne v : w \\in W_u\\}|}{n - 1}

    The ratio is the same for all videos that have the word, and counts once for each of them.

    >>> ratio, times = cooccurrence_ratios(video_words([["man runs"], ["man sits"], ["man"]]))
    >>> ratio.tolist(), times.tolist()
    ([1.0, 0.0, 0.0], [3, 1, 1])
    """
    if len(words) < 2:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    _, times = np.unique(np.concatenate(words), return_counts=True)
    return (times - 1) / (len(words) - 1), times


def measure_cohesiveness(sets: Iterable[Sequence[int]], words: Sequence[IntArray]) -> Cohesiveness:
    """Measure cohesiveness over many sets of videos (positions in ``words``); sets of one video do not count."""
    histogram = np.zeros(HISTOGRAM_BINS)
    total = 0.0
    for some in sets:
        ratio, times = cooccurrence_ratios([words[v] for v in some])
        histogram += np.bincount(
            np.minimum((ratio * HISTOGRAM_BINS).astype(np.int64), HISTOGRAM_BINS - 1), times, HISTOGRAM_BINS
        )
        total += float((ratio * times).sum())
    count = int(histogram.sum())
    if not count:
        return Cohesiveness(float("nan"), (0.0,) * HISTOGRAM_BINS, 0)
    return Cohesiveness(total / count, tuple((histogram / count).round(4).tolist()), count)


def massive_summary(result: MassiveDataset) -> dict[str, Any]:
    """Return the report as one JSON object: counts, positives per query, similarities of positives, cohesiveness."""
    data, pools = result.data, result.pools
    assert data.truth.queries is not None
    texts = data.truth.queries
    per_query = Counter(len(p.positives) for p in pools)
    words = video_words([texts[q] for q in data.by_video[a:b].tolist()] for a, b in itertools.pairwise(data.bounds))
    positive = measure_cohesiveness(([int(data.own[p.query]), *p.positives] for p in pools), words)
    negative = measure_cohesiveness((p.negatives for p in pools), words)
    sides = {"positive": positive, "negative": negative}
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
        "cohesiveness": to_plain({name: {**asdict(side), "mean": round(side.mean, 4)} for name, side in sides.items()}),
    }


def massive_text(found: dict[str, Any], encoder: str) -> str:
    """Render the report as text, from the summary."""
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
        [side, *(f"{share:.0%}" for share in sides[side]["histogram"]), decimals(sides[side]["mean"], 3)]
        for side in ("positive", "negative")
    ]
    return "\n".join([*lines, "", text_table(header, shares)])


def why_differ(encoder: str, visual: str | None) -> str:
    """Explain why a published file differs from ours, given the sentence encoder and the source of visual scores.

    >>> why_differ("file:simcse.npz", "emscore.npz")[-108:]
    'they filter by EMScore, here emscore.npz does; they were drawn without a seed, so pools differ by chance too'
    """
    if encoder.startswith("file:"):
        words = f"here the vectors of {encoder.removeprefix('file:')} do, which may be on another scale"
    elif encoder.startswith(SIMCSE_PREFIX):
        words = f"here the model in {encoder.removeprefix(SIMCSE_PREFIX)} does"
    else:
        words = f"here {encoder} does, whose scale is another"
    sight = f"here {visual} does" if visual else f"nothing is filtered by visual scores here ({parameter('features')})"
    return (
        f"the published files compare sentences by SimCSE (RoBERTa-large), {words}; they filter by EMScore, {sight}; "
        "they were drawn without a seed, so pools differ by chance too"
    )


def comparison_text(found: PoolComparison, chance: tuple[float, float], why: str, reference: str) -> str:
    """Render the comparison with a published file as text: how much the two agree, and why not more."""
    counts = sorted({*found.our_positives, *found.their_positives})
    rows = [[str(k), f"{found.our_positives.get(k, 0):,}", f"{found.their_positives.get(k, 0):,}"] for k in counts]
    return "\n".join(
        [
            f"compared with {reference}: {count(found.both, 'query', 'queries')} in both, "
            f"{found.only_ours:,} only here, {found.only_theirs:,} only there",
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

    ``url`` is the address of a video for annotators, with ``{video}`` for its name (percent-encoded).
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


def build_massive_dataset(
    annotations: str,
    out: str,
    settings: MassiveSettings,
    *,
    encoder: str = "minilm",
    features: str | None = None,
    frames: str | None = None,
    clip: str | None = None,
    reference: str | None = None,
    label_studio: str | None = None,
    video_url: str = "{video}",
    videos: str | None = None,
    invalid: Policy | None = None,
    report: str | None = None,
    plots: str | None = None,
    target: str | None = None,
    judged_pairs: str | None = None,
    progress: ShowProgress = no_progress,
    spread: EncodeChunks | None = None,
) -> BuiltDataset:
    """Build a pool of videos for every query of a file.

    ``features`` is a file of visual scores; alternatively, EMScore is computed from ``frames``, CLIP's vectors of each
    video's frames, and the text tower in the folder ``clip``. ``reference`` is a published file to compare with,
    ``label_studio`` a file for tasks to let people check the pools; ``spread`` encodes sentences elsewhere, such as on
    a cluster. ``plots`` is a folder for figures of the scores, which ``target`` and ``judged_pairs`` are used for.
    """
    truth = read_truth(annotations, corpus=read_corpus(videos) if videos else None, invalid=invalid or "error")
    data = prepare_source(truth)
    require_videos(data, settings)  # before encoding, which takes minutes
    check_map_target(target, data.texts)
    published = read_truth(reference, format="mvmr", invalid="keep") if reference else None
    if features and frames:
        raise MomentseekError(f"{parameter('features')} and {parameter('frames')} both give visual scores; give one")
    visual = read_visual_scores(features) if features else None
    if frames:
        with progress("reading sentences with CLIP") as show:
            visual = emscore_of(truth, frames, clip, show)
    pairs = read_judged_pairs(judged_pairs) if judged_pairs else None
    model = sentence_encoder(encoder)
    texts = data.texts if pairs is None else tuple(dict.fromkeys([*data.texts, *pairs.first, *pairs.second]))
    with progress(f"encoding with {model.name}") as show:
        similarity = encoder_similarity(model, texts, progress=show, spread=spread)
    result = build_massive(data, similarity, settings, visual)
    if not result.pools:
        why = "; ".join(f"{n:,}: {reason}" for reason, n in tally(result.decisions)["dropped"].items())
        raise MomentseekError(
            f"{annotations}: no query can be kept ({why}); choose other thresholds or a smaller {parameter('pool')}"
        )
    found: dict[str, Any] = {"out": out, "encoder": encoder, **massive_summary(result)}
    text = massive_text(found, encoder)
    notes = [f"{truth.source}: {finding}" for finding in truth.findings]
    if visual is None:
        without = f"no visual scores ({parameter('features')}, {parameter('frames')}), so sentences alone decide"
        notes.append(f"{without}; MVMR also filtered by EMScore")
    if published is not None:
        compared = compare_pools(result, published, similarity)
        other = build_massive(data, similarity, replace(settings, seed=settings.seed + 1), visual)
        chance = compare_draws(result, other)
        why = why_differ(encoder, f"EMScore by {frames}" if frames else features)
        overlaps = {"seeds_positives": chance[0], "seeds_negatives": chance[1]}
        found["reference"] = {**to_plain(asdict(compared)), **to_plain(overlaps), "why": why}
        text += "\n\n" + comparison_text(compared, chance, why, str(reference))
    files: dict[str | os.PathLike[str], bytes] = {Path(out): FORMATS["mvmr"].to_bytes(as_truth(result))}
    if report:
        files[Path(report)] = as_json_lines(result.decisions)
    if label_studio:
        files[Path(label_studio)] = dump(build_check_tasks(result, url=video_url))
        files[Path(page_beside(label_studio))] = LABELLING_CONFIG.encode()
    if plots:
        judged = None if pairs is None else (pairs, pair_similarities(pairs, similarity))
        drawn = draw_massive(result, similarity, found["cohesiveness"], model.name, target, judged)
        files |= {Path(plots) / name: data for name, data in drawn.items()}
        if "similarity-map.png" not in drawn:
            notes.append("the map of similarities needs scikit-learn: pip install scikit-learn")
    return BuiltDataset(files=files, summary=found, text=text, notes=notes)
