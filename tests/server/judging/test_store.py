from __future__ import annotations

import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.server.errors import ConflictError, UnknownIdError
from momentseek.server.judging.store import JUDGEMENTS_FILE, JudgementStore


def filled(folder: Path, moments: int = 3) -> JudgementStore:
    store = JudgementStore(folder, create=True)
    with store.changes():
        store.add_video("h1", "a.mp4", "a.mp4", 60.0)
        query = store.add_query("a dog", 2)
        for rank in range(1, moments + 1):
            store.add_candidate(query, rank, 1 + (rank - 1) // 2, "h1", 10.0 * rank, 10.0 * rank + 5)
    return store


def test_looking_makes_no_file(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        assert store.queries() == []
        assert store.judgements() == []
    assert not (tmp_path / JUDGEMENTS_FILE).exists()


def test_only_open_batches_are_candidates(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        assert [c.rank for c in store.candidates(1)] == [1, 2]
        with store.changes():
            store.open_batch(1, 2)
        assert [(c.rank, c.batch) for c in store.candidates(1)] == [(1, 1), (2, 1), (3, 2)]


def test_the_latest_word_counts_and_the_earlier_is_kept(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        with store.changes():
            store.add_judgement(1, "ann", 3)
            store.add_judgement(2, "ann", 1)
            store.add_judgement(1, "ann", 4)
        assert [(j.candidate, j.relevance) for j in store.judgements()] == [(2, 1), (1, 4)]
        assert [j.relevance for j, _ in store.history()] == [3, 1, 4]


def test_undoing_a_correction_brings_the_first_word_back(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        with store.changes():
            store.add_judgement(1, "ann", 3)
            store.add_judgement(1, "bob", 0)
            store.add_judgement(1, "ann", 4)
        with store.changes():
            taken = store.undo_last("ann")
        assert taken is not None
        assert taken.relevance == 4
        assert [(j.annotator, j.relevance) for j in store.judgements()] == [("ann", 3), ("bob", 0)]
        with store.changes():
            store.undo_last("ann")
            assert store.undo_last("ann") is None
        assert [(j.annotator, undone is None) for j, undone in store.history()] == [
            ("ann", False), ("bob", True), ("ann", False),
        ]  # fmt: skip


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with filled(tmp_path) as store:

        def half() -> None:
            with store.changes():
                store.add_judgement(1, "ann", 3)
                raise ConflictError("no")

        with pytest.raises(ConflictError):
            half()
        assert store.history() == []


def test_levels_beyond_the_scale_are_refused_by_the_database(tmp_path: Path) -> None:
    with filled(tmp_path) as store, pytest.raises(MomentseekError, match="cannot be used"), store.changes():
        store.add_judgement(1, "ann", 5)


def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    together = Barrier(8)

    def work(n: int) -> None:
        together.wait()
        with JudgementStore(tmp_path, create=True) as store, store.changes():
            store.add_query(f"query {n}", 20)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    with JudgementStore(tmp_path) as store:
        assert sorted(q.text for q in store.queries()) == [f"query {n}" for n in range(8)]


def test_what_is_no_store_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / JUDGEMENTS_FILE).write_bytes(b"not a database at all, and long enough to be looked at" * 40)
    with pytest.raises(MomentseekError, match="cannot be used"):
        JudgementStore(tmp_path)


def test_a_store_of_another_release_is_refused(tmp_path: Path) -> None:
    filled(tmp_path).close()
    db = sqlite3.connect(tmp_path / JUDGEMENTS_FILE)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(MomentseekError, match="another release"):
        JudgementStore(tmp_path)


def test_an_unknown_query_is_said(tmp_path: Path) -> None:
    with filled(tmp_path) as store, pytest.raises(UnknownIdError, match="no query 9"):
        store.query(9)


def test_the_log_may_disappear_while_a_reader_opens_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite deletes it when the last connection closes, which may be that of another request."""
    filled(tmp_path).close()
    log = tmp_path / f"{JUDGEMENTS_FILE}-wal"
    log.write_bytes(b"")
    stat = Path.stat

    def stat_and_delete(path: Path, **options: bool) -> os.stat_result:
        found = stat(path, **options)
        if path == log:
            log.unlink()
        return found

    monkeypatch.setattr(Path, "stat", stat_and_delete)
    with JudgementStore(tmp_path) as store:
        assert len(store.queries()) == 1


def test_several_create_the_file_while_others_read_it(tmp_path: Path) -> None:
    """An empty file would be called lost data, and one that replaces another's loses what is in that one."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for number in range(20):
            folder = tmp_path / str(number)
            folder.mkdir()
            together = Barrier(4)

            def create(text: str, folder: Path = folder, together: Barrier = together) -> None:
                together.wait()
                with JudgementStore(folder, create=True) as store, store.changes():
                    store.add_query(text, 2)

            def read(_: str, folder: Path = folder, together: Barrier = together) -> None:
                together.wait()
                for _ in range(10):
                    with JudgementStore(folder) as store:
                        store.queries()

            with ThreadPoolExecutor(4) as threads:
                works = [threads.submit(work, text) for text in ("a", "b") for work in (create, read)]
            for work in works:
                work.result()
            with JudgementStore(folder) as store:
                assert {query.text for query in store.queries()} == {"a", "b"}
            assert {path.name for path in folder.iterdir()} == {JUDGEMENTS_FILE}
    finally:
        sys.setswitchinterval(before)
