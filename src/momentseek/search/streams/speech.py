"""What is said: cues that hold the query's words (BM25), or mean the same (vectors of cues, where there are any).

Words of one sentence are often spread over neighbouring cues, so a cue takes the next ones in while they bring words
that were still missing. Words are weighted by how rare they are in the library's speech: of "the red lighthouse", a cue
with "lighthouse" has nearly all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog, CueMatch
from momentseek.library.transcripts import transcribed_videos
from momentseek.library.words import WordMatcher, content_words
from momentseek.media.cue import Cue
from momentseek.search.confidence import MIN_CLIPS, Scale
from momentseek.search.fusion import RRF_K
from momentseek.search.hit import StreamHit
from momentseek.search.state import Ids, LibraryState
from momentseek.search.streams.word_weights import rarest_words, rarity, word_level

MAX_CUES = 400
"""Cues that are looked at."""
MAX_CUE_GAP_SECONDS = 2.0
"""Longest pause between two cues of one utterance."""
MAX_UTTERANCE_SECONDS = 15.0
MIN_MEANING = 0.45
"""Cosine below which two sentences do not mean the same, however far it stands out: on real recordings with few cues,
all that stood out with less was about something else."""
HEARD_WEIGHT = 0.9
"""What words count that a recogniser heard, against words of subtitles: it may have misheard."""


def search_speech(
    state: LibraryState, text: str, allowed: Ids | None = None, *, only_speech: bool = False
) -> list[StreamHit]:
    """StreamHits with the words of a text, or with words of that meaning, best first.

    ``only_speech`` says that the words were asked for as speech (``said:``); else they may also be about the picture.
    """
    by_word = _search_words(state.catalog, text, allowed, only_speech)
    index = state.speech
    if not len(index.sample) or not index.clips or not state.encoder.knows_words("speech", [text]):
        return by_word
    return _fuse_hits(by_word, _search_meaning(state, text, allowed))


def _search_words(catalog: Catalog, text: str, allowed: Ids | None, only_speech: bool) -> list[StreamHit]:
    terms = content_words(text)
    if not terms:
        return []
    counts = [catalog.count_cues(term) for term in terms]
    weight = rarity(counts, catalog.count_cues())
    matches = catalog.best_cues(rarest_words(terms, counts), allowed, MAX_CUES)
    if not matches:
        return []
    heard = transcribed_videos(catalog)
    has = WordMatcher([m.cue.text for m in matches]).matches(terms)
    out = []
    for utterance in _join_cues(matches, has):
        covered = has[utterance].any(axis=0)
        share = float(weight[covered].sum() / weight.sum())
        first, last = matches[utterance[0]].cue, matches[utterance[-1]].cue
        bm25 = max(matches[i].bm25 for i in utterance)
        score = float(weight[covered].sum()) + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        if matches[utterance[0]].video in heard:
            score *= HEARD_WEIGHT
        level = word_level(share, int(covered.sum()), only_speech)
        out.append(StreamHit(matches[utterance[0]].video, first.start, max(first.end, last.end), score, level))
    return sorted(out, key=lambda u: (-u.score, u.video, u.start, u.end))


def _join_cues(matches: Sequence[CueMatch], has: NDArray[np.bool_]) -> list[list[int]]:
    """Join matches with those that follow closely and bring missing words; returns positions by utterance."""
    order = sorted(range(len(matches)), key=lambda i: (matches[i].video, matches[i].cue.start, matches[i].cue.end))
    out: list[list[int]] = []
    for i in order:
        if out:
            first, last = matches[out[-1][0]], matches[out[-1][-1]]
            covered = has[out[-1]].any(axis=0)
            if (
                matches[i].video == last.video
                and matches[i].cue.start - last.cue.end <= MAX_CUE_GAP_SECONDS
                and matches[i].cue.end - first.cue.start <= MAX_UTTERANCE_SECONDS
                and (has[i] & ~covered).any()
                and (covered & ~has[i]).any()
            ):
                out[-1].append(i)
                continue
        out.append([i])
    return out


def _search_meaning(state: LibraryState, text: str, allowed: Ids | None) -> list[StreamHit]:
    """Cues whose vectors stand out; all others are left out. Meaning alone is never strong."""
    index = state.speech
    if index.clips < MIN_CLIPS:  # too few to know what is usual: only words count
        return []
    vector = state.encoder.encode("speech", [text])[0]
    scale = Scale.of(index.sample @ vector, index.clips)
    best = index.scan.search(vector, MAX_CUES // 4, allowed=index.allowed_mask(allowed), gone=index.gone)
    scored = []
    for id, segment, at in zip(best.ids[0].tolist(), best.segment[0].tolist(), best.at[0].tolist(), strict=True):
        scores = index.segments[segment].vectors(at) @ vector
        if not np.isfinite(scores).all():
            index.damaged_videos.add(id)
            scores = np.where(np.isfinite(scores), scores, -1)
        if scores.max() < MIN_MEANING or scale.level(float(scores.max())) == "weak":
            break  # and so are all further videos
        scored += [(float(score), id, row) for row, score in enumerate(scores.tolist())]
    out = []
    cues: dict[int, list[Cue]] = {}
    for score, id, row in sorted(scored, key=lambda s: (-s[0], s[1], s[2]))[:MAX_CUES]:
        if score < MIN_MEANING or scale.level(score) == "weak":
            break
        spoken = cues.get(id) or cues.setdefault(id, state.catalog.cues(id))
        if row < len(spoken):
            out.append(StreamHit(id, spoken[row].start, spoken[row].end, score, "fair"))
    return out


def _fuse_hits(by_word: list[StreamHit], by_meaning: list[StreamHit]) -> list[StreamHit]:
    """Fuse two lists into one by reciprocal ranks; a hit found by its words keeps its times and score."""
    shares = {u: 1 / (RRF_K + rank) for rank, u in enumerate(by_word, 1)}
    of_video: dict[int, list[StreamHit]] = {}
    for u in by_word:
        of_video.setdefault(u.video, []).append(u)
    meant = set()
    for rank, other in enumerate(by_meaning, 1):
        same = [u for u in of_video.get(other.video, ()) if u.start < other.end and other.start < u.end]
        for u in same or [other]:
            shares[u] = shares.get(u, 0.0) + 1 / (RRF_K + rank)
            meant.add(u)
    order = sorted(shares, key=lambda u: (-shares[u], u.video, u.start, u.end))
    return [replace(u, level="fair") if u.level == "weak" and u in meant else u for u in order]
