"""What is said: cues that hold the query's words (BM25), or mean the same (vectors of cues, where there are any).

Words of one sentence are often spread over neighbouring cues, so a cue takes the next ones in while they bring words
that were still missing. Words are weighted by how rare they are in the library's speech: of "the red lighthouse", a cue
with "lighthouse" has nearly all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog, CueMatch
from momentseek.library.words import WordMatcher, content_words
from momentseek.media.cue import Cue
from momentseek.search.confidence import TINY, Scale
from momentseek.search.fusion import K
from momentseek.search.hit import Level
from momentseek.search.streams.sights import Encode, Ids, StreamIndex
from momentseek.search.streams.utterance import GAP, LONGEST, Utterance

LIMIT = 400
"""Cues that are looked at."""
MOST_WORDS = 24
"""Words of a text that are looked for."""
MOST_OF_IT = 0.6
"""Share of the words' weight from which an utterance is a fair hit."""


def listen(
    catalog: Catalog,
    text: str,
    allowed: Ids | None = None,
    *,
    asked: bool = False,
    sights: StreamIndex | None = None,
    encode: Encode | None = None,
) -> list[Utterance]:
    """Where the words of a text, or words of that meaning, are said, best first.

    ``asked`` says that the words were asked for as speech (``said:``); else that they may also be about the picture.
    """
    by_word = _by_word(catalog, text, allowed, asked)
    if sights is None or encode is None or not sights.clips:
        return by_word
    return _fused(by_word, _by_meaning(catalog, text, allowed, sights, encode))


def _by_word(catalog: Catalog, text: str, allowed: Ids | None, asked: bool) -> list[Utterance]:
    terms = content_words(text)
    if not terms:
        return []
    counts = [catalog.count_cues(term) for term in terms]
    weight = _rarity(counts, catalog.count_cues())
    matches = catalog.best_cues(_telling(terms, counts), allowed, LIMIT)
    if not matches:
        return []
    has = WordMatcher([m.cue.text for m in matches]).matches(terms)
    out = []
    for utterance in _utterances(matches, has):
        covered = has[utterance].any(axis=0)
        share = float(weight[covered].sum() / weight.sum())
        first, last = matches[utterance[0]].cue, matches[utterance[-1]].cue
        bm25 = max(matches[i].bm25 for i in utterance)
        score = float(weight[covered].sum()) + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        level = _level(share, int(covered.sum()), asked)
        out.append(Utterance(matches[utterance[0]].video, first.start, max(first.end, last.end), score, level))
    return sorted(out, key=lambda u: (-u.score, u.video, u.start, u.end))


def _level(share: float, found: int, asked: bool) -> Level:
    if share > 0.999:
        return "strong" if asked or found > 1 else "fair"
    return "fair" if share >= MOST_OF_IT else "weak"


def _rarity(counts: Sequence[int], total: int) -> NDArray[np.float64]:
    """BM25's weight of each word; one that is never said counts as if it were said once."""
    return np.array([math.log1p((total - n + 0.5) / (n + 0.5)) for n in (max(1, n) for n in counts)]) + 1e-9


def _telling(terms: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Of a long text only the rarest words that are said at all, so that any search is quick.

    >>> _telling(["the", "unicorn", "dog"], [90, 0, 3])
    ['dog', 'the']
    """
    return [terms[i] for i in sorted(range(len(terms)), key=lambda i: (counts[i], i)) if counts[i]][:MOST_WORDS]


def _utterances(matches: Sequence[CueMatch], has: NDArray[np.bool_]) -> list[list[int]]:
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


def _by_meaning(
    catalog: Catalog, text: str, allowed: Ids | None, sights: StreamIndex, encode: Encode
) -> list[Utterance]:
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
        if not np.isfinite(scores).all():
            sights.broken.add(id)
            scores = np.where(np.isfinite(scores), scores, -1)
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
