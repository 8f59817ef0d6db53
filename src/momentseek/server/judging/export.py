"""Judgements as files: TVR-Ranking's, Label Studio's, our own; and the run that a figure was measured on."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from momentseek.construct.annotation.candidate_files import write_candidates
from momentseek.construct.annotation.judged_pairs import write_pairs
from momentseek.construct.annotation.label_studio import RELEVANCE_CONTROL, build_tasks, labelling_page
from momentseek.construct.annotation.labels import write_labels
from momentseek.formats import FORMATS, Writing
from momentseek.moments import Judgements, Run
from momentseek.server.judging.consensus import pairs
from momentseek.server.judging.errors import RefusedError
from momentseek.server.judging.evaluation import judged
from momentseek.server.judging.rows import Judgement
from momentseek.server.judging.store import Store

VIDEOS = "/videos"
"""Where Label Studio finds the videos, unless told."""


def tvr_ranking(store: Store) -> dict[str, bytes]:
    """Name → bytes: the truth, the single labels, the consensus, the candidates, and all that was ever said.

    ``momentseek data consensus labels.csv --incomplete drop --candidates candidates.jsonl --truth truth.json`` makes
    the same truth of the labels again.
    """
    with store.view():
        truth = judged(store).truth
        candidates, judgements, everything = store.candidates(), store.judgements(), history(store)
    found = pairs((c.pair for c in candidates), judgements)
    kept = [
        (pair, one.relevance, len(one.labels), len(one.labels))
        for pair, one in found.items()
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
    """TVR-Ranking's form."""
    writer = FORMATS["tvr-ranking"].write_truth
    assert writer is not None
    return writer(truth, Writing())


def truth_lines(truth: Judgements) -> bytes:
    """Our own form, JSON Lines."""
    writer = FORMATS["native"].write_truth
    assert writer is not None
    return writer(truth, Writing())


def run_json(run: Run) -> bytes:
    """A run as TVR-Ranking's evaluator takes it; a query without moments stays, with an empty list."""
    writer = FORMATS["tvr-ranking-predictions"].write_runs
    assert writer is not None
    return writer((run,), Writing())


def history(store: Store) -> bytes:
    """Everything that was said, a line each, also what was replaced or taken back."""
    return b"".join(
        orjson.dumps(
            {
                "pair_id": said.label[0],
                "worker": said.annotator,
                "relevance": said.relevance,
                "at": said.at,
                "undone": undone,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for said, undone in store.history()
    )


def label_studio(store: Store, base_url: str = VIDEOS) -> dict[str, bytes]:
    """Name → bytes: tasks with their annotations, as that tool exports them, and its labelling page."""
    with store.view():
        candidates, judgements = store.candidates(), store.judgements()
    if not candidates:
        raise RefusedError("there is no query to judge yet; add one first", "not_judged")
    said: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        said.setdefault(judgement.label[0], []).append(judgement)
    made = [
        {"id": row.id, **task, "annotations": [_annotation(j) for j in said.get(row.pair, [])]}
        for row, task in zip(candidates, build_tasks((c.candidate for c in candidates), base_url, ""), strict=True)
    ]
    return {
        "tasks.json": json.dumps(made, ensure_ascii=False, indent=1).encode(),
        "page.xml": labelling_page().encode(),
    }


def _annotation(judgement: Judgement) -> dict[str, object]:
    choice = {"choices": [str(judgement.relevance)]}
    return {
        "id": judgement.id,
        "completed_by": {"email": judgement.annotator},
        "created_at": datetime.fromtimestamp(judgement.at, UTC).isoformat(timespec="microseconds"),
        "result": [{"from_name": RELEVANCE_CONTROL, "to_name": "video", "type": "choices", "value": choice}],
    }


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Several files as one; the same files give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
