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
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class TextMatch(NamedTuple):
    """A text that contains words of a query: a cue, a line on screen, a caption, or the name of a video."""

    id: int
    video: int
    bm25: float
    start: float
    end: float
    at: float
    """Time in seconds of the frame to show."""
    transcribed: bool
    """Whether it is from an automatic transcript."""
    text: str


def judge_texts(
    kind: TextKind,
    matches: Sequence[TextMatch],
    terms: Sequence[str],
    weight: NDArray[np.float64],
    *,
    only_here: bool,
    spellings: Mapping[str, Sequence[str]] | None = None,
    nowhere: NDArray[np.bool_] | None = None,
) -> list[StreamHit]:
    """Turn matching texts of one kind into hits, best first.

    ``weight`` is the weight of each term, ``spellings`` maps a term to its possible misreadings, and ``nowhere`` marks
    terms that are in no text of the kind: if two others are found together, such a term is probably about the picture.
    ``only_here`` means that the words were requested for this kind of text (``said:``, ``text:``, ``described:``).
    Otherwise they may also be about the picture, and weak hits of lines and captions are left out.
    """
    if not matches:
        return []
    values = word_values([match.text for match in matches], terms, spellings or {})
    groups = (join_cues if kind == "cues" else join_lines)(matches, values)
    begins = np.cumsum([0, *map(len, groups)])[:-1]
    best_values = np.maximum.reduceat(values[[at for group in groups for at in group]], begins)
    gains = (weight * best_values).sum(axis=1).tolist()
    counts = (best_values == 1).sum(axis=1).tolist()
    whole = float(weight.sum())
    elsewhere = 0.0 if nowhere is None or only_here else (1 - NOWHERE_WEIGHT) * float(weight[nowhere].sum())
    out = []
    for group, gain, found in zip(groups, gains, counts, strict=True):
        some = [matches[i] for i in group]
        level = word_level(gain / (whole - (elsewhere if found > 1 else 0.0)), found, only_here)
        bm25 = max(match.bm25 for match in some)
        score = gain + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        if kind == "cues":
            score *= TRANSCRIPT_WEIGHT if some[0].transcribed else 1.0
            out.append(StreamHit(some[0].video, some[0].start, max(some[0].end, some[-1].end), score, level))
        elif level != "weak" or only_here:
            start, end = max(match.start for match in some), min(match.end for match in some)
            best = some[int(np.argmax((values[group] * weight).sum(axis=1)))]
            sure = "fair" if kind == "captions" and level == "strong" else level
            out.append(StreamHit(some[0].video, start, end, score, sure, min(max(best.at, start), end)))
    return sorted(out, key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))


def word_values(
    texts: Sequence[str], terms: Sequence[str], spellings: Mapping[str, Sequence[str]]
) -> NDArray[np.float64]:
    """``(texts, terms)``: 1 if a text has a term, less if it has the term with a wrong letter, otherwise 0."""
    values = WordMatcher(texts).matches(terms).astype(np.float64)
    if any(spellings.values()):
        held = [set(text.split()) for text in plain_words(texts)]
        for column, term in enumerate(terms):
            other = set(spellings.get(term, ()))
            for row, words in enumerate(held):
                if other & words:
                    values[row, column] = max(values[row, column], MISSPELT)
    return values


def join_cues(matches: Sequence[TextMatch], values: NDArray[np.float64]) -> list[list[int]]:
    """Join cues with those that follow closely and add missing words; returns positions by utterance."""
    has = values > 0
    order = sorted(range(len(matches)), key=lambda i: (matches[i].video, matches[i].start, matches[i].end))
    out: list[list[int]] = []
    for i in order:
        if out:
            first, last = matches[out[-1][0]], matches[out[-1][-1]]
            if (
                matches[i].video == last.video
                and matches[i].start - last.end <= MAX_CUE_GAP_SECONDS
                and matches[i].end - first.start <= MAX_UTTERANCE_SECONDS
            ):
                covered = has[out[-1]].any(axis=0)
                if (has[i] & ~covered).any() and (covered & ~has[i]).any():
                    out[-1].append(i)
                    continue
        out.append([i])
    return out


def join_lines(matches: Sequence[TextMatch], values: NDArray[np.float64]) -> list[list[int]]:
    """Join lines that are on screen together and add missing words; returns positions by group."""
    sums = values.sum(axis=1).tolist()
    order = sorted(range(len(matches)), key=lambda i: (-sums[i], matches[i].video, matches[i].start, i))
    groups: list[list[int]] = []
    by_video: dict[int, list[list[int]]] = {}
    for i in order:
        for group in by_video.get(matches[i].video, ()):
            start = max(matches[j].start for j in group)
            end = min(matches[j].end for j in group)
            brings = (values[i] > values[group].max(axis=0)).any()
            if brings and matches[i].start < end and start < matches[i].end:
                group.append(i)
                break
        else:
            groups.append([i])
            by_video.setdefault(matches[i].video, []).append(groups[-1])
    return groups


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
