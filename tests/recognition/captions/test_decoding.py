"""Caption decoding, compared with plain loops and with exhaustive search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.recognition.captions.decoding import DecodingSettings, NextWords, decode_captions, length_factor
from momentseek.recognition.captions.inputs import BOS, EOS, SPECIAL_WORDS, Vocabulary

KNOWN = Vocabulary((*SPECIAL_WORDS, "a", "b"))
WORDS = [KNOWN.number["a"], KNOWN.number["b"]]
END = KNOWN.number[EOS]


def random_network(seed: int, vocabulary: Vocabulary = KNOWN) -> NextWords:
    """Return next-word probabilities that depend on the moment and on every word so far."""

    def next_words(rows: IntArray, begun: IntArray) -> FloatArray:
        found = []
        for row, words in zip(rows.tolist(), begun.tolist(), strict=True):
            logits = np.random.default_rng([seed, row, *words]).normal(0, 2, len(vocabulary))
            found.append(logits - np.log(np.exp(logits).sum()))
        return np.array(found)

    return next_words


def log_chance(network: NextWords, row: int, words: list[int], *, ended: bool) -> float:
    total, told = 0.0, [KNOWN.number[BOS]]
    for word in [*words, *([END] if ended else [])]:
        total += float(network(np.array([row]), np.array([told]))[0, word])
        told.append(word)
    return total


def best_by_trying_all(network: NextWords, row: int, longest: int, penalty: float) -> list[int]:
    tried = []
    for length in range(1, longest + 1):
        for words in product(WORDS, repeat=length):
            ended = length < longest
            score = log_chance(network, row, list(words), ended=ended)
            tried.append((score / length_factor(length + ended, penalty), list(words)))
    return max(tried)[1]


def beam_by_loops(network: NextWords, row: int, width: int, longest: int, penalty: float) -> list[int]:
    """Textbook beam search, one moment and one partial caption at a time, without early stopping."""
    live, done = [(0.0, [KNOWN.number[BOS]])], []
    for length in range(1, longest + 1):
        grown = []
        for score, told in live:
            chances = network(np.array([row]), np.array([told]))[0]
            if length > 1:  # no caption is empty
                done.append(((score + chances[END]) / length_factor(length, penalty), told[1:]))
            grown += [(score + chances[word], [*told, word]) for word in WORDS]
        live = sorted(grown, reverse=True)[:width]
    done += [(score / length_factor(longest, penalty), told[1:]) for score, told in live]
    return max(done)[1]


@given(seed=st.integers(0, 10_000), longest=st.integers(1, 4), penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]))
@settings(max_examples=16, deadline=None)
def test_wide_beam_finds_the_best_caption(seed: int, longest: int, penalty: float) -> None:
    network = random_network(seed)
    found = decode_captions(network, 2, KNOWN, DecodingSettings(16, penalty, longest))
    assert found == [best_by_trying_all(network, row, longest, penalty) for row in range(2)]


@given(seed=st.integers(0, 10_000), width=st.integers(2, 4), penalty=st.sampled_from([0.0, 0.7, 1.5]))
@settings(max_examples=16, deadline=None)
def test_beam_equals_the_reference(seed: int, width: int, penalty: float) -> None:
    network = random_network(seed)
    found = decode_captions(network, 3, KNOWN, DecodingSettings(width, penalty, 6))
    assert found == [beam_by_loops(network, row, width, 6, penalty) for row in range(3)]


def test_greedy_takes_the_most_likely_word() -> None:
    network = random_network(3)
    for row, caption in enumerate(decode_captions(network, 5, KNOWN, DecodingSettings(longest=7))):
        told = [KNOWN.number[BOS]]
        for word in caption:
            chances = network(np.array([row]), np.array([told]))[0]
            assert word == max((END, *WORDS) if told[1:] else WORDS, key=lambda w: chances[w])
            told.append(word)
        last = network(np.array([row]), np.array([told]))[0]
        assert len(caption) == 7 or last[END] == max(last[[END, *WORDS]])


def test_captions_never_contain_unknown_words() -> None:
    def next_words(rows: IntArray, begun: IntArray) -> FloatArray:
        chances = np.full((len(rows), len(KNOWN)), -1.0)
        chances[:, : len(SPECIAL_WORDS)] = 0.0
        chances[:, END] = -9.0
        return chances

    for beam in (1, 3):
        assert decode_captions(next_words, 1, KNOWN, DecodingSettings(beam, longest=3)) == [[WORDS[0]] * 3]


def test_no_moments_give_no_captions() -> None:
    assert decode_captions(random_network(0), 0, KNOWN, DecodingSettings()) == []


@pytest.mark.parametrize(
    ("wrong", "what"),
    [({"beam": 0}, "1 to 64 captions"), ({"length_penalty": -1.0}, "length penalty"), ({"longest": 0}, "at least 1")],
)
def test_rejects_settings_out_of_range(wrong: dict[str, int], what: str) -> None:
    with pytest.raises(MomentseekError, match=what):
        DecodingSettings(**wrong)
