"""Judgements as files: TVR-Ranking's, Label Studio's and our own; and the run that a figure was measured on."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from momentseek.benchmarks.datasets.annotation.candidates import write_candidates
from momentseek.benchmarks.datasets.annotation.label_studio import RELEVANCE_CONTROL, build_tasks, labelling_page
from momentseek.benchmarks.datasets.annotation.labels import write_labels, write_pairs
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import FORMATS
from momentseek.server.errors import ConflictError
from momentseek.server.judging.consensus import JudgementRow, judged_pairs
from momentseek.server.judging.evaluation import read_truth
from momentseek.server.judging.store import JudgementStore

DEFAULT_VIDEO_URL = "/videos"
"""Where Label Studio finds the videos by default."""


def tvr_ranking_files(store: JudgementStore) -> dict[str, bytes]:
    """TVR-Ranking's files, name → bytes: truth, single labels, consensus, candidates, and the history of judgements.

    ``momentseek data consensus labels.csv --incomplete drop --candidates candidates.jsonl --truth truth.json`` makes
    the same truth from the labels again.
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
        "truth.json": truth_json(truth),
        "labels.csv": write_labels(j.label for j in judgements),
        "pairs.csv": write_pairs(kept),
        "candidates.jsonl": write_candidates(c.candidate for c in candidates),
        "history.jsonl": everything,
    }


def truth_json(truth: Judgements) -> bytes:
    """The ground truth in TVR-Ranking's format."""
    return FORMATS["tvr-ranking"].to_bytes(truth)


def truth_lines(truth: Judgements) -> bytes:
    """The ground truth in the native format, JSON Lines."""
    return FORMATS["native"].to_bytes(truth)


def run_json(run: Run) -> bytes:
    """A run as TVR-Ranking's evaluator takes it; a query without moments has an empty list."""
    return FORMATS["tvr-ranking-predictions"].to_bytes((run,))


def history_lines(store: JudgementStore) -> bytes:
    """All judgements ever made as JSON Lines, including those that were replaced or undone."""
    return b"".join(
        orjson.dumps(
            {
                "pair_id": judgement.label[0],
                "worker": judgement.annotator,
                "relevance": judgement.relevance,
                "at": judgement.at,
                "undone": undone,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for judgement, undone in store.history()
    )


def label_studio_files(store: JudgementStore, base_url: str = DEFAULT_VIDEO_URL) -> dict[str, bytes]:
    """Label Studio's files, name → bytes: tasks with annotations, as that tool exports them, and its labelling page."""
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
