"""The measures written down as their definitions read, query by query, to check the array code against."""

import math

from momentseek.core.moments.moment import iou


def lists(truth, run):
    """Per query: judged (moment, relevance) and predicted moments."""
    for q in truth.query_ids:
        grades = truth.relevance[truth.rows(q)].tolist()
        yield list(zip(truth.moments(q), grades, strict=True)), run.moments(q) if q in run else []


def overlap(a, b):
    return float(iou(a.start, a.end, b.start, b.end)) if a.video == b.video else 0.0


def matched_grades(judged, predicted, threshold, strict, absorb):
    """TVR-Ranking §4, one prediction after the other."""
    left = sorted((j for j in judged if absorb or j[1] > 0), key=lambda j: -j[1])
    grades = []
    for p in predicted:
        candidates = [(overlap(p, m), i) for i, (m, _) in enumerate(left) if m.video == p.video]
        best = max(candidates, key=lambda c: (c[0], -c[1]), default=(-1, 0))
        if best[0] > threshold if strict else best[0] >= threshold:
            grades.append(left.pop(best[1])[1])
        else:
            grades.append(0)
    return grades


def ndcg(judged, predicted, k, threshold, *, strict=False, gain=lambda r: r, absorb=True):
    def dcg(grades):
        return sum(gain(g) / math.log2(i + 2) for i, g in enumerate(grades[:k]))

    ideal = dcg(sorted((g for _, g in judged), reverse=True))
    return dcg(matched_grades(judged, predicted, threshold, strict, absorb)) / ideal if ideal else 0.0


def best_overlaps(judged, predicted):
    """r(k) of the AxIoU supplement for every rank."""
    return [max((overlap(p, m) for m, grade in judged if grade > 0), default=0.0) for p in predicted]
