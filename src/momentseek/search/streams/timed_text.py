"""Finds words in timed text: what is said, written on screen, and described by a model.

Words of one sentence are often spread over neighbouring cues, so a cue is joined with the next ones while they add
missing words. Lines that are on screen at the same time are joined, too: the title of a slide and its points, or the
two rows of a sign. Rare words weigh more: of "the red lighthouse", a cue with "lighthouse" has nearly all the weight. A
word with one wrong letter counts less, and only if words on screen were requested (``text:``). A caption is a model's
opinion of a picture, so a hit by captions is fair at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import Positions
from momentseek.library.word_counts import TextRows
from momentseek.library.words import WordMatcher, plain_words
from momentseek.search.hit import Level, StreamHit

TextKind = Literal["cues", "lines", "spellings", "captions", "names"]
"""Kinds of texts in which words are sought; spellings are lines, too, found by words with one wrong letter."""
MAX_TEXTS: Mapping[TextKind, int] = {"cues": 400, "lines": 400, "spellings": 400, "captions": 400, "names": 100}
"""Largest number of texts of each kind that are considered."""
MAX_WORDS = 24
"""Largest number of words that are sought."""
FAIR_SHARE = 0.6
"""Share of the total weight of the words from which a hit is fair."""
NOWHERE_WEIGHT = 0.5
"""Factor for the weight of a word that is in no text, if two or more other words are found together."""
FORM_WORDS = frozenset(
    ("banner", "caption", "label", "logo", "logos", "poster", "screen", "screenshot", "sign", "signs", "text", "title",
     "word", "words", "writing", "written", "reads", "says", "saying")
)  # fmt: skip
"""Words about writing itself: for "google chrome logo", the word "logo" need not be on screen."""
MISSPELT = 0.7
"""Value of a word with one wrong letter."""
TRANSCRIPT_WEIGHT = 0.9
"""Factor for automatic transcripts compared with subtitles, because they contain errors."""
MAX_CUE_GAP_SECONDS = 2.0
"""Longest pause between two cues of one utterance."""
MAX_UTTERANCE_SECONDS = 15.0


def judge_texts(
    kind: TextKind,
    found: TextRows,
    values: NDArray[np.float64],
    weight: NDArray[np.float64],
    *,
    only_here: bool,
    nowhere: NDArray[np.bool_] | None = None,
) -> list[StreamHit]:
    """Turn matching texts of one kind into hits, best first.

    ``values`` says how well each text has each word of the query (:func:`word_values`), ``weight`` is the weight of
    each word, and ``nowhere`` marks words that are in no text of the kind: if two others are found together, such a
    word is probably about the picture. ``only_here`` means that the words were requested for this kind of text
    (``said:``, ``text:``, ``described:``). Otherwise they may also be about the picture, and weak hits of lines and
    captions are left out.
    """
    if not found.texts:
        return []
    order, begins = (join_cues if kind == "cues" else join_lines)(found, values)
    _, video, bm25, start, end, at, transcribed = found.table[:, order]
    best_values = np.maximum.reduceat(values[order], begins)
    gains = (weight * best_values).sum(axis=1)
    counts = (best_values == 1).sum(axis=1)
    elsewhere = 0.0 if nowhere is None or only_here else (1 - NOWHERE_WEIGHT) * float(weight[nowhere].sum())
    shares = gains / (float(weight.sum()) - np.where(counts > 1, elsewhere, 0.0))
    levels = [word_level(*pair, only_here) for pair in zip(shares.tolist(), counts.tolist(), strict=True)]
    best = np.maximum.reduceat(bm25, begins)
    score = gains + best / (1 + best)  # weight decides, BM25 breaks its ties
    ends = np.append(begins[1:], len(order))
    if kind == "cues":
        score *= np.where(transcribed[begins] > 0, TRANSCRIPT_WEIGHT, 1.0)
        first, last, peaks = start[begins], np.maximum(end[begins], end[ends - 1]), [None] * len(begins)
    else:
        first, last = np.maximum.reduceat(start, begins), np.minimum.reduceat(end, begins)
        shown = begins.copy()
        for group in np.flatnonzero(ends - begins > 1).tolist():
            own = slice(begins[group], ends[group])
            shown[group] += np.argmax((values[order[own]] * weight).sum(axis=1))
        peaks = np.minimum(np.maximum(at[shown], first), last).tolist()
        if kind == "captions":
            levels = ["fair" if level == "strong" else level for level in levels]
    owner = video[begins]
    columns = (owner.astype(np.int64), first, last, score)
    rows = list(zip(*(column.tolist() for column in columns), levels, peaks, strict=True))
    ranked = np.lexsort((last, first, owner, -score)).tolist()
    hits = (StreamHit(*rows[group]) for group in ranked)
    return [hit for hit in hits if kind == "cues" or only_here or hit.level != "weak"]


def word_values(
    texts: Sequence[str], terms: Sequence[str], spellings: Mapping[str, Sequence[str]]
) -> NDArray[np.float64]:
    """``(texts, terms)``: 1 if a text has a term, less if it has the term with a wrong letter, otherwise 0."""
    values = WordMatcher(texts).matches(terms).astype(np.float64)
    held = [set(text.split()) for text in plain_words(texts)]
    for column, term in enumerate(terms):
        other = set(spellings.get(term, ()))
        for row, words in enumerate(held):
            if other & words:
                values[row, column] = max(values[row, column], MISSPELT)
    return values


def join_cues(found: TextRows, values: NDArray[np.float64]) -> tuple[Positions, Positions]:
    """Join cues with those that follow closely and add missing words.

    Returns their positions, one utterance after another, and where each utterance begins among these.
    """
    _, video, _, start, end, _, _ = found.table
    order = np.lexsort((end, start, video))
    video, start, end, has = video[order], start[order], end[order], values[order] > 0
    begins = np.ones(len(order), bool)
    first, covered = 0, has[0]
    follows = (np.diff(video) == 0) & (start[1:] - end[:-1] <= MAX_CUE_GAP_SECONDS)
    for at in (1 + np.flatnonzero(follows)).tolist():
        if begins[at - 1]:
            first, covered = at - 1, has[at - 1]
        adds = (has[at] & ~covered).any() and (covered & ~has[at]).any()
        if adds and end[at] - start[first] <= MAX_UTTERANCE_SECONDS:
            begins[at], covered = False, covered | has[at]
    return order, np.flatnonzero(begins)


def join_lines(found: TextRows, values: NDArray[np.float64]) -> tuple[Positions, Positions]:
    """Join lines that are on screen together and add missing words; returns the same as :func:`join_cues`."""
    _, video, _, start, end, _, _ = found.table
    order = np.lexsort((start, video, -values.sum(axis=1)))
    place = np.arange(len(order))  # of the first line of each one's group
    by_video: dict[float, list[list[int]]] = {}
    _, number, count = np.unique(video[order], return_inverse=True, return_counts=True)
    for nth in np.flatnonzero(count[number] > 1).tolist():
        line = order[nth]
        groups = by_video.setdefault(float(video[line]), [])
        for group in groups:
            lines = order[group]
            brings = (values[line] > values[lines].max(axis=0)).any()
            if brings and start[line] < end[lines].min() and start[lines].max() < end[line]:
                place[nth] = group[0]
                group.append(nth)
                break
        else:
            groups.append([nth])
    joined = np.argsort(place, kind="stable")
    return order[joined], np.flatnonzero(np.diff(place[joined], prepend=-1))


# weights of words


def word_level(share: float, found: int, only_here: bool) -> Level:
    """The level of a hit with a share of the words' weight, and with ``found`` of the words.

    ``only_here`` means that the words were requested for this kind of text (``said:``, ``text:``, ``described:``).
    Otherwise they may also be about the picture, and one word alone is not enough for a strong hit.
    """
    if share > 0.999:
        return "strong" if only_here or found > 1 else "fair"
    return "fair" if share >= FAIR_SHARE else "weak"


def asked_in_writing(terms: Sequence[str]) -> list[str]:
    """The words of a query to look for on screen, without those about writing itself if there are others.

    >>> asked_in_writing(["google", "chrome", "logo"]), asked_in_writing(["sign"])
    (['google', 'chrome'], ['sign'])
    """
    return [term for term in terms if term not in FORM_WORDS] or list(terms)


def rarity(counts: Sequence[int], total: int) -> NDArray[np.float64]:
    """BM25's weight of each word; a word that is in no text counts as if it were in one."""
    return np.array([math.log1p((total - n + 0.5) / (n + 0.5)) for n in (max(1, n) for n in counts)]) + 1e-9


def rarest_words(terms: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The rarest words that occur at all, at most ``MAX_WORDS``, so that every search is quick.

    >>> rarest_words(["the", "unicorn", "dog"], [90, 0, 3])
    ['dog', 'the']
    """
    return [terms[i] for i in sorted(range(len(terms)), key=lambda i: (counts[i], i)) if counts[i]][:MAX_WORDS]
