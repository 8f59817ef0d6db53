import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders import text_cache as cached
from momentseek.recognition.encoders.text_cache import MAX_PARTS, TextVectorStore, encode_cached, text_key


def unit(i):
    """A row of length 1 for each number."""
    return np.array([[np.cos(i), np.sin(i)]], np.float32)


TEXTS = ["a man runs", "a dog barks", "a man runs", ""]


def test_rows_are_the_encoders_and_each_text_is_encoded_once(tmp_path):
    first = Words()
    rows = encode_cached(first, TEXTS, cache_dir=tmp_path)
    assert first.seen == ["a man runs", "a dog barks", ""]
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, Words().encode(TEXTS))
    second = Words()
    np.testing.assert_array_equal(encode_cached(second, [*TEXTS, "new"], cache_dir=tmp_path)[:4], rows)
    assert second.seen == ["new"]


def test_other_weights_have_their_own_vectors(tmp_path):
    encode_cached(Words(), TEXTS, cache_dir=tmp_path)
    other = Words()
    other.fingerprint = "2"
    encode_cached(other, TEXTS, cache_dir=tmp_path)
    assert other.seen


def test_an_encoder_without_fingerprint_is_not_kept(tmp_path):
    encoder = Words()
    encoder.fingerprint = ""
    encode_cached(encoder, TEXTS, cache_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_to_encode(tmp_path):
    assert encode_cached(Words(), [], cache_dir=tmp_path).shape == (0, 64)


def test_the_user_cache_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    encode_cached(Words(), TEXTS)
    assert [p.name.split("-")[0] for p in tmp_path.glob("momentseek/texts/*")] == ["words"]


def test_a_cache_that_cannot_be_written_is_said_and_done_without(tmp_path, capsys):
    (tmp_path / "file").write_bytes(b"")
    rows = encode_cached(Words(), TEXTS, cache_dir=tmp_path / "file")
    np.testing.assert_array_equal(rows, Words().encode(TEXTS))
    assert capsys.readouterr().err.startswith("note: vectors are not kept for next time: ")


def test_interrupting_keeps_what_is_finished(tmp_path, monkeypatch):
    class Interrupted(Words):
        def encode(self, texts):
            if self.seen:
                raise KeyboardInterrupt
            return super().encode(texts)

    monkeypatch.setattr(cached, "CHUNK_TEXTS", 2)
    with pytest.raises(KeyboardInterrupt):
        encode_cached(Interrupted(), ["one", "two", "three"], cache_dir=tmp_path)
    later = Words()
    encode_cached(later, ["one", "two", "three"], cache_dir=tmp_path)
    assert later.seen == ["three"]


def test_long_work_is_kept_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(cached, "CHUNK_TEXTS", 1)
    monkeypatch.setattr(cached, "SAVE_INTERVAL_SECONDS", -1.0)
    encode_cached(Words(), ["one", "two", "three"], cache_dir=tmp_path)
    assert len(list(tmp_path.glob("texts/*/*.npy"))) == 3


def test_many_parts_become_one_and_damaged_ones_are_passed_over(tmp_path):
    store = TextVectorStore(tmp_path, "words", "1", 2)
    texts = [f"text {i}" for i in range(MAX_PARTS)]
    for i, text in enumerate(texts):
        store.add([text_key(text)], unit(i))
    store.add([text_key(texts[0]), text_key("other")], np.concatenate([unit(0), unit(99)]))
    (store.folder / "0.npy").write_bytes(b"\x93NUMPY cut off")
    (store.folder / "1.npy").write_bytes(b"")
    np.save(store.folder / "2.npy", np.zeros(3))
    store.tidy()
    assert len(list(store.folder.glob("*.npy"))) == 4
    found = store.find(map(text_key, texts))
    np.testing.assert_array_equal(
        [found[text_key(t)] for t in texts], np.concatenate([unit(i) for i in range(MAX_PARTS)])
    )


def test_damaged_parts_and_rows_are_encoded_again(tmp_path):
    rows = encode_cached(Words(), TEXTS, cache_dir=tmp_path)
    (part,) = tmp_path.glob("texts/*/*.npy")
    data = bytearray(part.read_bytes())
    data[-6] ^= 1  # a plausible number, but another one
    part.write_bytes(data)
    again = Words()
    np.testing.assert_array_equal(encode_cached(again, TEXTS, cache_dir=tmp_path), rows)
    assert again.seen == ["a man runs", "a dog barks", ""]
    assert sorted(tmp_path.glob("texts/*/*.npy")) == [part]
    known = Words()
    np.testing.assert_array_equal(encode_cached(known, TEXTS, cache_dir=tmp_path), rows)
    assert not known.seen
    store = TextVectorStore(tmp_path, "words", "1", 64)
    store.add([text_key("x"), text_key("y"), text_key("z")], np.array([[1], [np.nan], [2]], np.float32) * np.eye(1, 64))
    assert list(store.find(map(text_key, "xyz"))) == [text_key("x")]


def test_keys_that_end_in_zero_bytes_are_found(tmp_path):
    key = bytes(range(10)) + bytes(6)
    store = TextVectorStore(tmp_path, "words", "1", 2)
    store.add([key, bytes(16)], np.array([[0, 1], [1, 0]], np.float32))
    assert {k: v.tolist() for k, v in store.find([key, bytes(16)]).items()} == {key: [0, 1], bytes(16): [1, 0]}


@pytest.mark.parametrize("rows", [np.zeros((1, 64)), np.full((3, 64), np.nan), np.zeros((3, 64))])
def test_an_encoder_that_misbehaves_is_named(tmp_path, rows):
    encoder = Words()
    encoder.encode = lambda texts: rows
    with pytest.raises(MomentseekError, match="the text encoder words gave"):
        encode_cached(encoder, ["a", "b", "c"], cache_dir=tmp_path)


def test_progress_counts_the_texts_that_need_encoding(tmp_path, monkeypatch):
    monkeypatch.setattr(cached, "CHUNK_TEXTS", 2)
    reports = []
    encode_cached(Words(), ["a"], cache_dir=tmp_path)
    encode_cached(
        Words(), ["a", "b", "c", "b", "d"], cache_dir=tmp_path, progress=lambda *counts: reports.append(counts)
    )
    assert reports == [(0, 3), (2, 3), (3, 3)]
