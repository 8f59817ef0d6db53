"""Measure searches by the judgements: one setup, two setups compared, reliability of levels, and exported files.

Truth and run are the exported ones, so ``momentseek evaluate RUN --truth TRUTH`` gives the same figures. Files are in
the formats of TVR-Ranking, Label Studio and momentseek.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import orjson

from momentseek.benchmarks.datasets.annotation.candidates import build_truth, write_candidates
from momentseek.benchmarks.datasets.annotation.label_studio import RELEVANCE_CONTROL, build_tasks, labelling_page
from momentseek.benchmarks.datasets.annotation.labels import write_labels, write_pairs
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.measuring.compare import compare
from momentseek.measuring.comparison import Comparison
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import FORMATS
from momentseek.measuring.measures import Measure, parse_all
from momentseek.measuring.reliability import RIGHT_RELEVANCE, ReliabilityBin, bins_by_level
from momentseek.measuring.report import intervals
from momentseek.measuring.result import Evaluation
from momentseek.search.confidence import LEVELS
from momentseek.search.hit import Hit
from momentseek.server.errors import ConflictError
from momentseek.server.judging.annotate import video_label
from momentseek.server.judging.consensus import AnnotatorRule, JudgementRow, judged_pairs
from momentseek.server.judging.store import JudgementStore
from momentseek.server.schemas import MAX_HITS, clean_text

DEFAULT_MEASURE = "NDCG@20[IoU>=0.5]"
UNBOUNDED_MEASURE_HITS = 100
"""Number of hits per query for a measure of the whole ranking."""
ONE_ANNOTATOR_NOTE = "judged by one annotator alone; TVR-Ranking's rule asks for two who agree"
HitsWithHashes = Sequence[Sequence[tuple[Hit, str]]]
"""The hits of every query, each with the hash of its video."""
HITS_PER_QUERY = 10
"""Number of hits per query whose levels are checked."""
JUDGED_MOMENT_IOU = 0.5
"""IoU from which a hit counts as the moment that was judged."""
DEFAULT_VIDEO_URL = "/videos"
"""Where Label Studio finds the videos by default."""


def parse_measure(name: str) -> Measure:
    """Parse the name of one measure; raises an error if it means several, or needs more hits than a search gives."""
    found = parse_all([name])
    if len(found) != 1:
        raise MomentseekError(f"{name} names {len(found)} measures; ask for one at a time")
    if (found[0].max_rank or 0) > MAX_HITS:
        raise MomentseekError(f"{name} looks at {found[0].max_rank:,} moments; a search gives at most {MAX_HITS}")
    return found[0]


def hits_needed(measure: Measure) -> int:
    """Number of hits that a measure needs for each query."""
    return measure.max_rank or UNBOUNDED_MEASURE_HITS


@dataclass(frozen=True, eq=False)
class JudgedTruth:
    """The ground truth from the judgements at one time, with the label of every judged video."""

    judgements: Judgements
    labels: dict[str, str]
    """Hash of a video → its name in exported files."""
    waiting: int
    """Number of moments that still need annotators and do not count yet."""
    rule: AnnotatorRule = "two"
    """The rule for the number of annotators."""


def read_truth(store: JudgementStore) -> JudgedTruth:
    """The moments on which annotators agree, as ground truth; queries without any are left out.

    Raises ConflictError if annotators agree on no moment at all.
    """
    with store.view():
        candidates = store.candidates()
        rule = store.rule()
        pairs = judged_pairs((c.pair for c in candidates), store.judgements(), rule)
        labels = store.labels()
    levels = {id: pair.relevance for id, pair in pairs.items() if pair.relevance is not None}
    if not levels:
        who = "two annotators have not agreed on any moment yet" if rule == "two" else "no moment has been judged yet"
        raise ConflictError(f"{who}; judge some first", "not_judged")
    counting = {c.query for c in candidates if c.pair in levels}
    truth = build_truth([c.candidate for c in candidates if c.query in counting], levels)
    return JudgedTruth(truth, labels, sum(pair.needs > 0 for pair in pairs.values()), rule)


def build_run(truth: JudgedTruth, answers: HitsWithHashes, source: str) -> Run:
    """Build the run of a setup (``source``) from its hits for every judged query, with the truth's names of videos."""
    labels = dict(truth.labels)
    flat = [one for hits in answers for one in hits]
    for hit, hash in flat:
        labels[hash] = video_label(clean_text(hit.name), hash, labels)
    return Run.from_groups(
        truth.judgements.query_ids,
        map(len, answers),
        [labels[hash] for _, hash in flat],
        [hit.start for hit, _ in flat],
        [hit.end for hit, _ in flat],
        [hit.score for hit, _ in flat],
        queries=truth.judgements.queries,
        source=source,
    )


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """The figures of a run: its evaluation, the mean, and the 95 % interval of the mean."""

    evaluation: Evaluation
    value: float
    low: float
    high: float


def measure_run(truth: JudgedTruth, run: Run, measure: Measure) -> MeasuredRun:
    """Evaluate a run by one measure; a query for which nothing was found counts as 0."""
    result = evaluate(run, truth.judgements, measure.name, missing="zero", label=run.source)
    if truth.rule == "one":
        result = replace(result, notes=(ONE_ANNOTATOR_NOTE, *result.notes))
    low, high = intervals(result)[""][measure.name]
    return MeasuredRun(result, result.means[measure.name], low, high)


def compare_runs(one: MeasuredRun, other: MeasuredRun) -> Comparison:
    """Compare two runs query by query, with Fisher's randomisation test."""
    return compare([one.evaluation, other.evaluation])


@dataclass(frozen=True)
class JudgedLevels:
    """How many hits of each level are right, the least confident level first."""

    first: list[ReliabilityBin]
    """Of the first hit of each query."""
    every: list[ReliabilityBin]
    """Of all hits."""
    unjudged: int
    """Hits on moments that nobody has judged; they do not count."""


def judged_levels(truth: JudgedTruth, answers: HitsWithHashes) -> JudgedLevels:
    """Check the hits for every query against the judged moments; a hit is right if its moment has relevance 3 or 4."""
    judgements = truth.judgements
    codes = {name: code for code, name in enumerate(judgements.videos)}
    first: list[tuple[str, bool]] = []
    every: list[tuple[str, bool]] = []
    unjudged = 0
    for at, hits in enumerate(answers):
        rows = slice(int(judgements.offsets[at]), int(judgements.offsets[at + 1]))
        videos, relevance = judgements.video[rows], judgements.relevance[rows]
        for rank, (hit, hash) in enumerate(hits):
            same = videos == codes.get(truth.labels.get(hash, ""), -1)
            overlaps = np.where(same, iou(hit.start, hit.end, judgements.start[rows], judgements.end[rows]), 0.0)
            best = int(np.argmax(overlaps))
            if overlaps[best] < JUDGED_MOMENT_IOU:
                unjudged += 1
                continue
            judged = (hit.level, bool(relevance[best] >= RIGHT_RELEVANCE))
            every.append(judged)
            if rank == 0:
                first.append(judged)
    return JudgedLevels(bins_by_level(first, LEVELS), bins_by_level(every, LEVELS), unjudged)


def tvr_ranking_files(store: JudgementStore) -> dict[str, bytes]:
    """TVR-Ranking's files, name → bytes: truth, single labels, consensus, candidates, and the history of judgements.

    ``momentseek data consensus labels.csv --incomplete drop --candidates candidates.jsonl --truth truth.json`` builds
    the same truth from the labels.
    """
    with store.view():
        truth = read_truth(store).judgements
        candidates, judgements, everything = store.candidates(), store.judgements(), history_lines(store)
        rule = store.rule()
    pairs = judged_pairs((c.pair for c in candidates), judgements, rule)
    kept = [
        (pair, one.relevance, len(one.labels), len(one.labels))
        for pair, one in pairs.items()
        if one.relevance is not None
    ]
    return {
        "truth.json": FORMATS["tvr-ranking"].to_bytes(truth),
        "labels.csv": write_labels(j.label for j in judgements),
        "pairs.csv": write_pairs(kept),
        "candidates.jsonl": write_candidates(c.candidate for c in candidates),
        "history.jsonl": everything,
    }


def history_lines(store: JudgementStore) -> bytes:
    """All judgements ever made as JSON Lines, including those that were replaced or undone."""
    lines = (
        {"pair_id": j.label[0], "worker": j.annotator, "relevance": j.relevance, "at": j.at, "undone": undone}
        for j, undone in store.history()
    )
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def label_studio_files(store: JudgementStore, base_url: str = DEFAULT_VIDEO_URL) -> dict[str, bytes]:
    """Label Studio's files, name → bytes: tasks with annotations in its export format, and its labelling page."""
    with store.view():
        candidates, judgements = store.candidates(), store.judgements()
    if not candidates:
        raise ConflictError("there is no query to judge yet; add one first", "not_judged")
    by_pair: dict[str, list[JudgementRow]] = {}
    for judgement in judgements:
        by_pair.setdefault(judgement.label[0], []).append(judgement)
    tasks_with_annotations = [
        {"id": row.id, **task, "annotations": [_annotation(j) for j in by_pair.get(row.pair, [])]}
        for row, task in zip(candidates, build_tasks((c.candidate for c in candidates), base_url, ""), strict=True)
    ]
    return {
        "tasks.json": json.dumps(tasks_with_annotations, ensure_ascii=False, indent=1).encode(),
        "page.xml": labelling_page().encode(),
    }


def _annotation(judgement: JudgementRow) -> dict[str, object]:
    choice = {"choices": [str(judgement.relevance)]}
    return {
        "id": judgement.id,
        "completed_by": {"email": judgement.annotator},
        "created_at": datetime.fromtimestamp(judgement.at, UTC).isoformat(timespec="microseconds"),
        "result": [{"from_name": RELEVANCE_CONTROL, "to_name": "video", "type": "choices", "value": choice}],
    }


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Pack files into one zip archive; the same files give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
