"""Read workers' labels, and reject rows that are not labels."""

from __future__ import annotations

import gzip

import pytest

from momentseek.benchmarks.datasets.annotation.labels import group_labels, read_labels, write_labels
from momentseek.core.errors import MomentseekError


def test_rows_of_a_pair_need_not_stand_together(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("pair_id,worker,relevance\nb,w1,3\na,w1,0\nb,w2,4\n")
    labels = read_labels(path)
    assert labels.pair_ids == ("b", "a")
    assert labels.offsets.tolist() == [0, 2, 3]
    assert labels.relevance.tolist() == [3, 4, 0]
    assert labels.place.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "text",
    [
        "relevance,note,worker,pair_id\n3,fine,w1,a\n2.0,,w2,a\n",
        "\ufeffpair_id,worker,relevance\r\na,w1,3\r\n\r\na,w2,2\r\n",
        '"pair_id","worker","relevance"\n"a","w1",3\na, w2 ,2\n',
    ],
)
def test_columns_in_any_order_and_dialect(tmp_path, text):
    path = tmp_path / "labels.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    labels = read_labels(path)
    assert (labels.pair_ids, labels.workers, labels.relevance.tolist()) == (("a",), ("w1", "w2"), [3, 2])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"pair_id,worker,relevance\n", "there are no labels in it"),
        (b"pair,worker,relevance\n1,2,3\n", "no column 'pair_id'"),
        (b"pair_id,worker,relevance\n1,2,3\n\n1,3,7\n", r"line 4 gives pair 1 the relevance '7'; levels are whole"),
        (b"pair_id,worker,relevance\n1,2,2.5\n", r"line 2 gives pair 1 the relevance '2.5'"),
        (b"pair_id,worker,relevance\n1,2,nan\n", r"line 2 gives pair 1 the relevance 'nan'"),
        (b"pair_id,worker,relevance\n1,2,-1\n", "relevance '-1'"),
        (b"pair_id,worker,relevance\n1,2,\n", "relevance ''"),
        (b"pair_id,worker,relevance\n1,,2\n", "line 2 has no worker"),
        (b"pair_id,worker,relevance\n,1,2\n", "line 2 has no pair_id"),
        (b"pair_id,worker,relevance\n1,2\n", "line 2 has 2 columns instead of 3"),
        (b"pair_id,worker,relevance\n1,caf\xe9,2\n", "not UTF-8"),
    ],
)
def test_what_is_no_label_is_refused(tmp_path, content, sentence):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(MomentseekError, match=sentence):
        read_labels(path)


def test_written_labels_are_read_again(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(write_labels([("a,1", 'w "x"', 4), ("b", "w", 0)]))
    labels = read_labels(path)
    assert (labels.pair_ids, labels.workers, labels.relevance.tolist()) == (("a,1", "b"), ('w "x"', "w"), [4, 0])


def test_repeated_workers():
    labels = group_labels([("a", "w", 1), ("a", "v", 2), ("a", "w", 3), ("b", "w", 4)])
    assert labels.repeated.tolist() == [False, False, True, False]
    assert labels.first_labels().relevance.tolist() == [1, 2, 4]
