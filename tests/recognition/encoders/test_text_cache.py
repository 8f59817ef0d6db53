import sqlite3
from contextlib import closing

import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders import text_cache as cached
from momentseek.recognition.encoders.text_cache import TextVectorStore, encode_cached, text_key

TEXTS = ["a man runs", "a dog barks", "a man runs", ""]


def test_rows_match_and_each_text_is_encoded_once(tmp_path):
    first = Words()
    rows = encode_cached(first, TEXTS, cache_dir=tmp_path)
    assert first.seen == ["a man runs", "a dog barks", ""]
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, Words().encode(TEXTS))
    second = Words()
    np.testing.assert_array_equal(encode_cached(second, [*TEXTS, "new"], cache_dir=tmp_path)[:4], rows)
    assert second.seen == ["new"]


def test_other_weights_have_separate_vectors(tmp_path):
    encode_cached(Words(), TEXTS, cache_dir=tmp_path)
    other = Words()
    other.fingerprint = "2"
    encode_cached(other, TEXTS, cache_dir=tmp_path)
    assert other.seen


def test_encoder_without_fingerprint_is_not_cached(tmp_path):
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


def test_unwritable_cache_is_reported_and_skipped(tmp_path, capsys):
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


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def test_long_work_is_stored_in_between(tmp_path, monkeypatch):
    monkeypatch.setattr(cached, "CHUNK_TEXTS", 1)
    store = TextVectorStore(tmp_path, "words", "1", 64)
    counts = []
    encode_cached(
        Words(),
        ["one", "two", "three"],
        cache_dir=tmp_path,
        progress=lambda *_: counts.append(len(store.find(map(text_key, ["one", "two", "three"])))),
    )
    assert counts == [0, 0, 1, 2]


@pytest.mark.parametrize("damage", ["a row", "the file", "another file", "another table"])
def test_damaged_rows_and_files_are_encoded_again(tmp_path, damage):
    rows = encode_cached(Words(), TEXTS, cache_dir=tmp_path)
    (path,) = tmp_path.glob("texts/*.sqlite")
    if damage == "a row":  # a plausible number, but another one
        data = bytearray(rows[0].tobytes())
        data[-6] ^= 1
        change(path, "UPDATE vectors SET vector = ? WHERE key = ?", bytes(data), text_key(TEXTS[0]))
    elif damage == "the file":
        path.write_bytes(path.read_bytes()[:-3000] + bytes(3000))
    elif damage == "another file":
        path.write_bytes(b"something else" * 100)
    else:
        path.unlink()
        change(path, "CREATE TABLE vectors (key, vector, sum)")
        change(path, "INSERT INTO vectors VALUES (?, 'text', 7)", text_key(TEXTS[0]))
    again = Words()
    np.testing.assert_array_equal(encode_cached(again, TEXTS, cache_dir=tmp_path), rows)
    assert TEXTS[0] in again.seen
    known = Words()
    np.testing.assert_array_equal(encode_cached(known, TEXTS, cache_dir=tmp_path), rows)
    assert not known.seen


def test_invalid_cached_vectors_are_ignored(tmp_path):
    store = TextVectorStore(tmp_path, "words", "1", 64)
    store.add([text_key("x"), text_key("y"), text_key("z")], np.array([[1], [np.nan], [2]], np.float32) * np.eye(1, 64))
    assert list(store.find(map(text_key, "xyz"))) == [text_key("x")]


def test_keys_that_end_in_zero_bytes_are_found(tmp_path):
    key = bytes(range(10)) + bytes(6)
    store = TextVectorStore(tmp_path, "words", "1", 2)
    store.add([key, bytes(16)], np.array([[0, 1], [1, 0]], np.float32))
    assert {k: v.tolist() for k, v in store.find([key, bytes(16)]).items()} == {key: [0, 1], bytes(16): [1, 0]}


@pytest.mark.parametrize("rows", [np.zeros((1, 64)), np.full((3, 64), np.nan), np.zeros((3, 64))])
def test_misbehaving_encoder_is_named(tmp_path, rows):
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
