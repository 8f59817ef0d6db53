"""Words as Stanford's PTB tokenizer (3.4.1, Java) gives them: its output is the expectation."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.measuring.formats import read_captions
from momentseek.measuring.measures.captions.ptb import PUNCTUATION, caption_words, ptb_tokens

REAL = {
    "tvr/tvr_val_release.jsonl": "b03492fcf51c1db579a110dfe678bd4f780dedabf2a414237f0af17d49ec28ae",
    "qvhighlights/highlight_val_release.jsonl": "fbd78eac0a95a91babc1320a2d706e787fe270815b98a4655015e533ae149b8e",
}
"""SHA-256 of the Java program's words of all sentences, one per line."""

CASES = [
    ("He's on the 2nd-floor café; it's $3.50 (50%).", "he 's on the 2nd-floor café it 's $ 3.50 -lrb- 50 % -rrb-"),
    ("can't cannot gonna isn't don'ts 'tis", "ca n't can not gon na is n't do n'ts 't is"),
    ("Mr. Smith at 5:30 p.m., U.S.A.", "mr. smith at 5:30 p.m. u.s.a."),
    ("an e-mail and/or 'n' #1 w/ ear/", "an e-mail and/or 'n' # 1 w / ear /"),
    ("pants. and shoe.and held", "pants and shoe.and held"),
    ("he leaves with Alex.", "he leaves with alex."),
    ("really?! what??? no!! oh... well..", "really ?! what ??? no !! oh well"),
    ("S&M R&B a&b", "s&m r&b a & b"),
    ("5'6 5'6\" the '80s 80's '48'", "5 6 5 6 the '80s 80 's 48"),
    ("o'clock O'Malley y'all ma'am l'est o's", "o'clock o'malley y' all ma'am l'est o 's"),
    ("mail me@x.com or see www.x.com @name", "mail me@x.com or see www.x.com @name"),
    ("a--b a - b co-ed -a a-", "a b a b co-ed a a"),
    ("3-D 81km 10x3 3.5lbs 10,000 five,6", "3-d 81km 10x3 3.5 lbs 10,000 five ,6"),
    ("1 1/2 cups, call 925 606 0946", "1\xa01/2 cups call 925\xa0606\xa00946"),
    ("no. 5 no. five pp. 4", "no. 5 no five pp. 4"),
    ("vitamin c. The man", "vitamin c the man"),
    ("vitamin c. with", "vitamin c. with"),
    ("it’s “quoted” – £5 …", "it 's quoted # 5"),
    ("yes :) no =)", "yes :-rrb- no =-rrb-"),
    ("medicines., and 5.;", "medicines. and 5."),
]


@pytest.mark.parametrize(("text", "words"), CASES)
def test_single_texts(text, words):
    assert caption_words([text], ascii_only=False) == [words.split(" ")]


def test_a_full_stop_may_depend_on_the_next_caption():
    assert caption_words(["person A.", "A man sits.", "person B.", "and so on"])[::2] == [
        ["person", "a"],
        ["person", "b."],
    ]


def test_characters_outside_ascii_become_blanks():
    assert caption_words(["Beyoncé’s hat", "中文"]) == [["beyonc", "s", "hat"], []]


@pytest.mark.parametrize("name", REAL)
def test_real_sentences(data, name):
    sentences = [" ".join(text.split()) for text in read_captions(data / name, invalid="keep").captions]
    lines = "\n".join(map(" ".join, caption_words(sentences, ascii_only=False)))
    assert hashlib.sha256(lines.encode()).hexdigest() == REAL[name]


def test_a_text_without_blanks_takes_no_longer_than_another():
    assert len(ptb_tokens("a-b." * 50_000)) > 50_000


SPECIAL = "aAbe.,'’\"-/&$#@()[]:;=<>0123 \xa0\t\n!?_*%é中£"


@given(st.text(max_size=40) | st.text(st.sampled_from(SPECIAL), max_size=40))
def test_any_text_has_tokens_that_hold_its_letters(text):
    tokens = ptb_tokens(text)
    assert all(tokens)
    assert not any(set(token) & set(" \t\n") for token in tokens)
    assert not set().union(*caption_words([text])) & PUNCTUATION
    if text.isascii() and text.isalnum():
        assert "".join(tokens) == text.lower()
