import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.recognition.encoders.fakes import needs_minilm

from momentseek.core import errors as optional
from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders import minilm
from momentseek.recognition.encoders import minilm as word_pieces
from momentseek.recognition.encoders.minilm import WordPieceTokenizer
from momentseek.recognition.weights.files import locate

WORDS = st.sampled_from(
    ["paragliding", "the", "unaffable", "QWERTZ", "U.S.", "don't", "e-mail", "3.14", "[MASK]", "a" * 99]
)
TEXTS = st.lists(WORDS | st.text(st.characters(max_codepoint=126), max_size=12), max_size=8).map(" ".join)


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(locate(minilm.ASSET) / "tokenizer.json", minilm.MAX_TOKENS, "offline")


@needs_minilm
@given(text=TEXTS, marks=st.booleans())
@example(text="", marks=True)
@example(text="a" * 101 + " " + "a" * 100, marks=False)
@example(text='\t"\\" {tab}\r\n~new^line_', marks=True)
@example(text="bell\x07 \x0b \x1f \x00 \x7f", marks=True)
def test_tokens_are_those_of_the_library(tokenizer, text, marks):
    ours, theirs = tokenizer.encode(text, marks=marks), tokenizer._library.encode(text, add_special_tokens=marks)
    assert ours.ids == theirs.ids
    assert ours.tokens == theirs.tokens
    assert ours.special_tokens_mask == theirs.special_tokens_mask


@needs_minilm
def test_every_word_of_the_vocabulary_is_cut_as_the_library_cuts_it(tokenizer):
    words = [word.removeprefix("##") + ending for word in list(tokenizer._vocabulary)[::29] for ending in ("", "ness")]
    theirs = tokenizer._library.encode_batch(words)
    assert [tokenizer.encode(word).ids for word in words] == [e.ids for e in theirs]


@needs_minilm
def test_long_texts_and_many_texts_are_left_to_the_library(tokenizer):
    for texts in (["dog " * 253, "dog " * 254, "dog " * 300], ["a dog"] * 40, ["a dog", "Éva"], []):
        assert [e.ids for e in tokenizer.encode_all(texts)] == [e.ids for e in tokenizer._library.encode_batch(texts)]
    assert not isinstance(tokenizer.encode("dog " * 300), word_pieces.PlainTokens)
    assert isinstance(tokenizer.encode("dog " * 254), word_pieces.PlainTokens)


@needs_minilm
def test_plain_texts_need_no_library_and_others_say_what_to_install(tokenizer, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(optional, "import_module", absent)
    alone = WordPieceTokenizer(tokenizer._file, minilm.MAX_TOKENS, "offline")
    assert alone.encode("a dog", marks=False).tokens == ["a", "dog"]
    with pytest.raises(MomentseekError, match=r"tokenizers; install it with: pip install 'momentseek\[offline\]'"):
        alone.encode("Éva")
