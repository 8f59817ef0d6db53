"""What is said: cues that hold the query's words (BM25), or mean the same (vectors of cues, where there are any).

Words of one sentence are often spread over neighbouring cues, so a cue takes the next ones in while they bring words
that were still missing. Words are weighted by how rare they are in the library's speech: of "the red lighthouse", a cue
with "lighthouse" has nearly all.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.media.cue import Cue
from momentseek.search.confidence import TINY, Scale
from momentseek.search.fusion import K
from momentseek.search.hit import Level
from momentseek.search.streams.vision import Encode, Ids, Sights
from momentseek.search.words import Matcher, any_of, content, phrase, words

LIMIT = 400
"""Cues that are looked at."""
GAP = 2.0
"""Seconds between two cues of one utterance."""
LONGEST = 15.0
"""Seconds of an utterance."""
MOST_OF_IT = 0.6
"""Share of the words' weight from which an utterance is a fair hit."""


@dataclass(frozen=True)
class Utterance:
    """Cues of one video that answer a query together."""

    video: int
    start: float
    end: float
    score: float
    level: Level


@dataclass(frozen=True)
class _Match:
    video: int
    cue: Cue
    score: float


def listen(
    catalog: Catalog,
    text: str,
    allowed: Ids | None = None,
    *,
    asked: bool = False,
    sights: Sights | None = None,
    encode: Encode | None = None,
) -> list[Utterance]:
    """Where the words of a text, or words of that meaning, are said, best first.

    ``asked`` says that the words were asked for as speech (``said:``); else that they may also be about the picture.
    """
    by_word = _by_word(catalog, text, allowed, asked)
    if sights is None or encode is None or not sights.clips:
        return by_word
    return _fused(by_word, _by_meaning(catalog, text, allowed, sights, encode))


def heard(catalog: Catalog, phrases: Sequence[str], allowed: Ids | None = None) -> list[Utterance]:
    """Where all phrases are said word for word, within one utterance of each other."""
    lists = [_spoken(catalog, text, allowed) for text in phrases]
    out = lists[0]
    for others in lists[1:]:
        joined = []
        for one in out:
            near = [
                o for o in others if o.video == one.video and max(o.end, one.end) - min(o.start, one.start) <= LONGEST
            ]
            if near:
                other = min(near, key=lambda o: (abs(o.start - one.start), o.start))
                start, end = min(one.start, other.start), max(one.end, other.end)
                joined.append(Utterance(one.video, start, end, one.score, "strong"))
        out = joined
    return out


def _by_word(catalog: Catalog, text: str, allowed: Ids | None, asked: bool) -> list[Utterance]:
    terms = content(text)
    matches = _matches(catalog, any_of(terms), allowed) if terms else []
    if not matches:
        return []
    has = Matcher([m.cue.text for m in matches]).found(terms)
    weight = _rarity(catalog, terms)
    out = []
    for utterance in _utterances(matches, has):
        covered = has[utterance].any(axis=0)
        share = float(weight[covered].sum() / weight.sum())
        first, last = matches[utterance[0]].cue, matches[utterance[-1]].cue
        bm25 = max(matches[i].score for i in utterance)
        score = float(weight[covered].sum()) + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        level = _level(share, int(covered.sum()), asked)
        out.append(Utterance(matches[utterance[0]].video, first.start, max(first.end, last.end), score, level))
    return sorted(out, key=lambda u: (-u.score, u.video, u.start, u.end))


def _level(share: float, found: int, asked: bool) -> Level:
    if share > 0.999:
        return "strong" if asked or found > 1 else "fair"
    return "fair" if share >= MOST_OF_IT else "weak"


def _rarity(catalog: Catalog, terms: Sequence[str]) -> NDArray[np.float64]:
    """BM25's weight of each word; one that is never said counts as if it were said once."""
    total = catalog.rows("SELECT count(*) FROM cues")[0][0]
    sql = "SELECT count(*) FROM cue_words WHERE cue_words MATCH ?"
    counts = [max(1, catalog.rows(sql, (any_of([term]),))[0][0]) for term in terms]
    return np.array([math.log1p((total - n + 0.5) / (n + 0.5)) for n in counts]) + 1e-9


def _matches(catalog: Catalog, match: str, allowed: Ids | None, limit: int = LIMIT) -> list[_Match]:
    """Filtered by the database, so that a filter never leaves too few."""
    sql = """SELECT cues.video, cues.start, cues.end, cues.text, cues.language, -bm25(cue_words) FROM cue_words
             JOIN cues ON cues.id = cue_words.rowid
             WHERE cue_words MATCH ?1 AND (?2 IS NULL OR cues.video IN (SELECT value FROM json_each(?2)))
             ORDER BY bm25(cue_words), cues.id LIMIT ?3"""
    listed = None if allowed is None else json.dumps(allowed.tolist())
    return [_Match(row[0], Cue(*row[1:5]), float(row[5])) for row in catalog.rows(sql, (match, listed, limit))]


def _utterances(matches: Sequence[_Match], has: NDArray[np.bool_]) -> list[list[int]]:
    """Matches joined with those that follow closely and bring missing words; each match in one utterance."""
    order = sorted(range(len(matches)), key=lambda i: (matches[i].video, matches[i].cue.start, matches[i].cue.end))
    out: list[list[int]] = []
    for i in order:
        if out:
            first, last = matches[out[-1][0]], matches[out[-1][-1]]
            covered = has[out[-1]].any(axis=0)
            if (
                matches[i].video == last.video
                and matches[i].cue.start - last.cue.end <= GAP
                and matches[i].cue.end - first.cue.start <= LONGEST
                and (has[i] & ~covered).any()
                and (covered & ~has[i]).any()
            ):
                out[-1].append(i)
                continue
        out.append([i])
    return out


def _spoken(catalog: Catalog, text: str, allowed: Ids | None) -> list[Utterance]:
    """A phrase within one cue, or begun in one and ended in the next."""
    sought = _folded(text)
    out = [
        Utterance(m.video, m.cue.start, m.cue.end, m.score, "strong")
        for m in _matches(catalog, phrase(text), allowed)
        if _contains(_folded(m.cue.text), sought)
    ]
    for cut in range(1, len(sought)):
        left = _matches(catalog, phrase(" ".join(sought[:cut])), allowed)
        right = _matches(catalog, phrase(" ".join(sought[cut:])), allowed) if left else []
        begun = [m for m in left if _folded(m.cue.text)[-cut:] == sought[:cut]]
        ended = [m for m in right if _folded(m.cue.text)[: len(sought) - cut] == sought[cut:]]
        for one in begun:
            for other in ended:
                if (
                    one.video == other.video
                    and one.cue.start <= other.cue.start
                    and other.cue.start - one.cue.end <= GAP
                ):
                    out.append(
                        Utterance(one.video, one.cue.start, other.cue.end, min(one.score, other.score), "strong")
                    )
    return sorted(set(out), key=lambda u: (-u.score, u.video, u.start, u.end))


def _folded(text: str) -> list[str]:
    """Words without case and accents."""
    plain = unicodedata.normalize("NFKD", text)
    return words("".join(c for c in plain if not unicodedata.combining(c)).casefold())


def _contains(text: list[str], sought: list[str]) -> bool:
    return any(text[i : i + len(sought)] == sought for i in range(len(text) - len(sought) + 1))


def _by_meaning(catalog: Catalog, text: str, allowed: Ids | None, sights: Sights, encode: Encode) -> list[Utterance]:
    """Cues whose vectors stand out; the others say nothing and are left out. Meaning alone is never strong."""
    if sights.clips < TINY:  # too few to know what is usual: only words count
        return []
    vector = encode([text])[0]
    scale = Scale.of(sights.sample @ vector, sights.clips)
    mask = None if allowed is None else np.isin(sights.ids, allowed)
    best = sights.scan.search(vector, LIMIT // 4, allowed=mask, gone=sights.gone)
    scored = []
    for id, segment, at in zip(best.ids[0].tolist(), best.segment[0].tolist(), best.at[0].tolist(), strict=True):
        scores = sights.segments[segment].vectors(at) @ vector
        if scale.level(float(scores.max())) == "weak":
            break  # and so are all further videos
        scored += [(float(score), id, row) for row, score in enumerate(scores.tolist())]
    out = []
    cues: dict[int, list[Cue]] = {}
    for score, id, row in sorted(scored, key=lambda s: (-s[0], s[1], s[2]))[:LIMIT]:
        if scale.level(score) == "weak":
            break
        spoken = cues.get(id) or cues.setdefault(id, catalog.cues(id))
        if row < len(spoken):
            out.append(Utterance(id, spoken[row].start, spoken[row].end, score, "fair"))
    return out


def _fused(by_word: list[Utterance], by_meaning: list[Utterance]) -> list[Utterance]:
    """One list of two, by reciprocal ranks; an utterance found by its words keeps its bounds and score."""
    shares = {u: 1 / (K + rank) for rank, u in enumerate(by_word, 1)}
    of_video: dict[int, list[Utterance]] = {}
    for u in by_word:
        of_video.setdefault(u.video, []).append(u)
    meant = set()
    for rank, other in enumerate(by_meaning, 1):
        same = [u for u in of_video.get(other.video, ()) if u.start < other.end and other.start < u.end]
        for u in same or [other]:
            shares[u] = shares.get(u, 0.0) + 1 / (K + rank)
            meant.add(u)
    order = sorted(shares, key=lambda u: (-shares[u], u.video, u.start, u.end))
    return [replace(u, level="fair") if u.level == "weak" and u in meant else u for u in order]
