import numpy as np
import pytest

from momentseek.benchmarks.datasets.massive import read_visual_scores
from momentseek.core.errors import MomentseekError


def test_a_matrix_and_lines_say_the_same(tmp_path):
    np.savez(tmp_path / "s.npz", queries=[7, 8], videos=["a", "b"], scores=np.array([[0.1, 0.2], [0.3, np.nan]]))
    (tmp_path / "s.jsonl").write_text(
        '{"query_id": 7, "video": "a", "score": 0.1}\n{"query_id": 7, "video": "b", "score": 0.2}\n'
        '{"query_id": "8", "video": "a", "score": 0.3}\n'
    )
    for name in ("s.npz", "s.jsonl"):
        score = read_visual_scores(tmp_path / name)
        np.testing.assert_array_equal(score("7", ["b", "x", "a"]), [0.2, np.nan, 0.1])
        np.testing.assert_array_equal(score("8", ["a", "b"]), [0.3, np.nan])
        np.testing.assert_array_equal(score("9", ["a"]), [np.nan])


def test_unusable_files_are_named(tmp_path):
    np.savez(tmp_path / "shape.npz", queries=["7"], videos=["a", "b"], scores=np.zeros((2, 2)))
    np.savez(tmp_path / "names.npz", queries=["7"], scores=np.zeros((1, 1)))
    (tmp_path / "word.jsonl").write_text('{"query_id": 7, "video": "a", "score": "high"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    for name, message in [
        ("shape.npz", r"expected 1 queries × 2 videos"),
        ("names.npz", "arrays queries, videos, scores"),
        ("word.jsonl", "score 1 is .high.; expected a number"),
        ("empty.jsonl", "the file is empty"),
        ("absent.npz", "cannot be read"),
    ]:
        with pytest.raises(MomentseekError, match=message):
            read_visual_scores(tmp_path / name)
