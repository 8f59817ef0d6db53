"""TVR-Ranking's graded truth, in its two published forms: a list of queries, and a flat list of pairs."""

from __future__ import annotations

from typing import Any

from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.record_lists import agreed_durations, column_objects
from momentseek.measuring.formats.registry import Reading, Writing, explain, register

CARRIED_KEYS = ("pair_id", "caption", "similarity")


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read the current form; in training lists, which have no relevance, every moment counts as 1."""
    if (truth := _from_columns(document, reading)) is not None:
        return truth
    entries = checked.records(document)
    moments = checked.lists(entries, "relevant_moment", document)
    return _truth(
        checked.ids(entries, "query_id", document),
        checked.texts(entries, document, "query"),
        moments,
        document,
        reading,
    )


def _from_columns(document: Document, reading: Reading) -> Judgements | None:
    """Read a file whose moments are uniform records, like the published ones; None for any other file."""
    found = document.record_lists
    if found is None or not isinstance(found.rest, list) or set(map(type, found.rest)) - {dict}:
        return None
    counts = found.sizes([entry.get("relevant_moment") for entry in found.rest])
    videos, times = found.texts("video_name"), found.numbers("timestamp", 2)
    if counts is None or videos is None or times is None:
        return None
    grades, seconds = found.numbers("relevance"), found.numbers("duration")
    durations = agreed_durations(videos, seconds) if seconds is not None else None
    carried = {name: column_objects(found.columns[name]) for name in CARRIED_KEYS if name in found.columns}
    unclear = (grades is None, durations is None) != ("relevance" not in found.columns, "duration" not in found.columns)
    if unclear or None in carried.values():
        return None
    return Judgements.from_groups(
        checked.ids(found.rest, "query_id", document),
        counts,
        videos,
        times[:, 0],
        times[:, 1],
        grades,
        durations=checked.with_corpus(durations or {}, reading),
        queries=checked.texts(found.rest, document, "query"),
        columns={name: values for name, values in carried.items() if values is not None},
        invalid=reading.invalid,
        source=str(document.path),
    )


def read_flat(document: Document, reading: Reading) -> Judgements:
    """Read pairs, grouped by query in order of first appearance."""
    pairs = checked.records(document)
    _check_in_order(pairs, document)
    by_query: dict[int | str, list[Any]] = {}
    words: dict[int | str, str] = {}
    for query, text, pair in zip(
        checked.ids(pairs, "query_id", document), checked.texts(pairs, document, "query"), pairs, strict=True
    ):
        by_query.setdefault(query, []).append(pair)
        words.setdefault(query, text)
    return _truth(list(by_query), list(words.values()), list(by_query.values()), document, reading)


def _check_in_order(pairs: list[dict[str, Any]], document: Document) -> None:
    """Check the pairs before they are grouped, so that errors name the right record."""
    checked.matrix(checked.column(pairs, "timestamp", document), 2, document, "the timestamp of record")
    checked.strings(pairs, "video_name", document)
    if checked.has_keys(next(iter(pairs), None), "relevance"):
        checked.levels(checked.column(pairs, "relevance", document), document, range(len(pairs)))


def _truth(
    query_ids: list[Any], queries: list[str], per_query: list[list[Any]], document: Document, reading: Reading
) -> Judgements:
    moments = checked.flatten(per_query)
    times = checked.matrix(checked.column(moments, "timestamp", document), 2, document, "timestamp")
    videos = checked.strings(moments, "video_name", document)
    graded = checked.has_keys(next(iter(moments), None), "relevance")
    own = checked.durations_of(zip(videos, checked.optional(moments, "duration"), strict=True), document)
    return Judgements.from_groups(
        query_ids,
        map(len, per_query),
        videos,
        times[:, 0],
        times[:, 1],
        checked.levels(checked.column(moments, "relevance", document), document) if graded else None,
        durations=checked.with_corpus(own, reading),
        queries=queries,
        columns={name: checked.optional(moments, name) for name in CARRIED_KEYS if moments and name in moments[0]},
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write judgements in TVR-Ranking's current form, one JSON list."""
    return writers.dump(
        [
            {"query_id": writers.write_id(query), "query": text, "relevant_moment": list(moments)}
            for query, text, moments in zip(
                truth.query_ids,
                writers.texts(truth),
                writers.groups(truth, _moments(truth, "tvr-ranking")),
                strict=True,
            )
        ]
    )


def write_flat(truth: Judgements, _: Writing) -> bytes:
    """Write the older form; pairs without an id are numbered in the order of the file."""
    moments = _moments(truth, "tvr-ranking-flat")
    queries = writers.texts(truth)
    return writers.dump_lines(
        {"pair_id": pair, "query_id": writers.write_id(truth.query_ids[q]), "query": queries[q], **moment}
        for pair, (q, moment) in enumerate(zip(truth.row_query.tolist(), moments, strict=True))
    )


def _moments(truth: Judgements, format: str) -> list[dict[str, Any]]:
    writers.require_one_annotator(truth, format)
    seconds = truth.durations.tolist()
    moments: list[dict[str, Any]] = []
    for row, (video, span, code, level) in enumerate(
        zip(
            writers.row_videos(truth), writers.spans(truth), truth.video.tolist(), truth.relevance.tolist(), strict=True
        )
    ):
        known = {name: truth.columns[name][row] for name in CARRIED_KEYS if name in truth.columns}
        first = {"pair_id": known.pop("pair_id")} if "pair_id" in known else {}
        length = {"duration": seconds[code]} if seconds[code] == seconds[code] else {}
        moments.append({**first, "video_name": video, "timestamp": span, **length, **known, "relevance": level})
    return moments


def _is_raw_annotation(document: Document) -> bool:
    return document.data[:64].split(b"\n")[0].strip() == b"pair_id,worker,relevance"


register("tvr-ranking", None, read_truth, write_truth)
register("tvr-ranking-flat", None, read_flat, write_flat)
explain(_is_raw_annotation, "it holds TVR-Ranking's single workers' labels, which name no moments")
