"""A correction replaces the recognised words in its time, and applying it again changes nothing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.speech.transcript import CueEdit, apply_edits, cues_from_words, spoken_cue

WORDS = ["one", "two", "three", "four", "five", "self"]


@st.composite
def transcripts(draw: st.DrawFn) -> list[Cue]:
    at, words = 0.0, []
    for text in draw(st.lists(st.sampled_from(WORDS), max_size=20)):
        at += draw(st.sampled_from([0.0, 0.1, 1.0]))
        end = at + draw(st.sampled_from([0.0, 0.15, 0.4]))
        words.append(SpokenWord(round(at, 3), round(end, 3), draw(st.sampled_from([" ", "-"])) + text))
        at = end
    return cues_from_words(words)


texts = st.lists(st.sampled_from([*WORDS, "new", "Two,"]), max_size=8).map(" ".join)


@given(transcripts(), st.data())
def test_correction_keeps_its_times_and_is_idempotent(heard: list[Cue], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.sampled_from([(c.start, c.end) for c in heard] or [(1.0, 2.0)]), unique=True))
    edits = [CueEdit.of(start, end, data.draw(texts)) for start, end in times]
    once = apply_edits(heard, edits)
    assert apply_edits(once, edits) == once
    for edit in edits:
        same = [c for c in once if (c.start, round(c.end, 3), c.text) == (edit.start, edit.end, edit.text)]
        assert len(same) == bool(edit.text)
    for cue in once:
        assert all(a.start <= b.start and a.start <= a.end for a, b in pairwise(cue.words))
    left = [(w.start, w.text) for cue in heard for w in cue.words if not any(e.covers(w) for e in edits)]
    kept = [(w.start, w.text) for cue in once for w in cue.words]
    assert all(word in kept for word in left)


def test_unchanged_words_keep_their_times() -> None:
    words = (" It", " was", " the", " beast", " of", " times.")
    heard = [spoken_cue(tuple(SpokenWord(i / 2, i / 2 + 0.5, text) for i, text in enumerate(words)))]
    (cue,) = apply_edits(heard, [CueEdit(0.0, 3.0, "It was the very best of times!")])
    assert [(w.text, w.start) for w in cue.words if w.text.strip() in ("It", "of", "times!")] == [
        (" It", 0.0), (" of", 2.0), (" times!", 2.5)
    ]  # fmt: skip
    very, best = cue.words[3:5]
    assert 1.5 <= very.start < very.end == best.start < best.end <= 2.0


def test_word_is_not_split_between_lines() -> None:
    long = [SpokenWord(i, i + 0.9, f" word{i}") for i in range(7)]
    cues = cues_from_words([*long, SpokenWord(7.0, 7.5, "-made")])
    assert [cue.text for cue in cues][-1].endswith("word6-made")
