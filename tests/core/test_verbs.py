"""The rule that finds verbs."""

from __future__ import annotations

from collections import Counter

import pytest

from momentseek.core.language import verbs
from momentseek.measuring.formats import read_truth


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("person turn a light on.", ["turn"]),
        ("The dog was running, and the man ran after it.", ["run", "run"]),
        ("She took off her dress and undresses.", ["take", "undress"]),
        ("a person watches another run up some stairs", ["watch"]),
        ("He is tying his shoes while mopping", ["tie", "mop"]),
        ("People are windsurfing on the lake.", ["windsurf"]),
        ("A building with a painting.", []),
        ("", []),
    ],
)
def test_sentences(sentence, found):
    assert verbs(sentence) == found


@pytest.mark.figures
def test_coverage_of_frequent_verbs_matches_the_paper(data):
    parts = ("train", "val", "test_iid", "test_ood")
    files = [read_truth(data / f"charades-cd/charades_{part}.json", invalid="keep") for part in parts]
    counts = Counter(v for f in files for q in f.queries or () for v in verbs(q))
    top = [v for v, _ in counts.most_common(30)]
    assert {"open", "put", "take", "eat", "close", "sit", "throw", "drink", "sneeze", "cook"} <= set(top)
    assert sum(counts[v] for v in top) / counts.total() == pytest.approx(0.927, abs=0.01)
