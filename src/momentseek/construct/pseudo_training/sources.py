"""Queries from other files: those to keep out of training, and other versions of the training queries."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document
from momentseek.formats.files import read_truth
from momentseek.formats.values import first_record, has_keys, ids, records, strings
from momentseek.moments import Judgements
from momentseek.moments.arrays import offsets_of

QUERY_KEYS = (("query_id", "query"), ("desc_id", "desc"), ("qid", "query"))
"""Names of a query's id and text in files, including files without moments, such as TVR's public test split."""


def read_query_texts(path: str | os.PathLike[str]) -> list[str]:
    """Read the texts of all queries of a file."""
    return list(read_queries_by_id(path).values())


def read_queries_by_id(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the text of every query id of a file, whether or not the file has moments."""
    document = open_document(path)
    first = first_record(document)
    for key, words in QUERY_KEYS:
        if has_keys(first, key, words):
            entries: list[Any] = records(document)
            names = map(str, ids(entries, key, document))
            return dict(zip(names, strings(entries, words, document), strict=True))
    truth = read_truth(path, invalid="keep")
    if truth.queries is None:
        raise MomentseekError(f"{path}: has no texts of queries; give a file with sentences")
    return dict(zip(truth.query_ids, truth.queries, strict=True))


def select_queries(truth: Judgements, where: str) -> Judgements:
    """Select the queries that have a label, given as ``FIELD=VALUE``.

    >>> truth = Judgements.from_groups(["1", "2"], [1, 1], ["a", "b"], [0, 4], [5, 9], fields={"type": ["v", "t"]})
    >>> select_queries(truth, "type=v").query_ids
    ('1',)
    """
    field, mark, value = where.partition("=")
    if not mark or field not in truth.fields:
        known = ", ".join(truth.fields) or "none"
        raise MomentseekError(f"{truth.source}: no label fits {where!r} (`where`); its queries have: {known}")
    keep = np.array([label == value for label in truth.fields[field]])
    if not keep.any():
        raise MomentseekError(f"{truth.source}: no query has {where}; there are {_some(truth.fields[field])}")
    rows = np.flatnonzero(keep[truth.row_query])
    places = np.flatnonzero(keep).tolist()
    return replace(
        truth,
        query_ids=tuple(truth.query_ids[i] for i in places),
        offsets=offsets_of(truth.counts[keep].tolist()),
        video=truth.video[rows],
        start=truth.start[rows],
        end=truth.end[rows],
        relevance=truth.relevance[rows],
        queries=None if truth.queries is None else tuple(truth.queries[i] for i in places),
        fields={name: tuple(labels[i] for i in places) for name, labels in truth.fields.items()},
        columns={name: tuple(values[r] for r in rows.tolist()) for name, values in truth.columns.items()},
        agreement=None if truth.agreement is None else truth.agreement[keep],
        saliency=None,
        pools=None,
    )


def _some(labels: tuple[str, ...]) -> str:
    return ", ".join(sorted(set(labels))[:5])
