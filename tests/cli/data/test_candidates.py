"""``momentseek data candidates``, with an encoder that counts letters."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.registry import TEXT_ENCODERS


class Letters:
    name, dim = "letters", 26

    def encode(self, texts):
        rows = np.array([[1e-6 + t.lower().count(chr(97 + i)) for i in range(26)] for t in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def tvr(*texts):
    return "\n".join(
        json.dumps({"desc_id": i, "desc": t, "vid_name": f"v{i}", "ts": [i, i + 4.5], "duration": 60, "type": "v"})
        for i, t in enumerate(texts)
    )


@pytest.fixture
def candidates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TEXT_ENCODERS, "letters", Letters)
    (tmp_path / "queries.jsonl").write_text(tvr("a dog", "a cat", "A dog!"))
    (tmp_path / "captions.jsonl").write_text(tvr("a dog", "a cat", "good dog", "fat cat", "zzz", "the act"))

    def call(*arguments):
        files = ["queries.jsonl", "captions.jsonl", "--encoder", "letters"]
        return CliRunner().invoke(cli, ["data", "candidates", *files, *arguments])

    return call


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_two_batches(candidates, tmp_path):
    result = candidates("--out", "first.jsonl", "--batch", "2")
    assert result.exit_code == 0
    assert "1 query left out: same words as another query" in result.stdout
    first = lines(tmp_path / "first.jsonl")
    assert [(c["pair_id"], c["rank"], c["batch"]) for c in first] == [
        ("0/0", 1, 1),
        ("0/2", 2, 1),
        ("1/1", 1, 1),
        ("1/3", 2, 1),
    ]
    (tmp_path / "pairs.csv").write_text("pair_id,relevance,annotators\n0/0,4,2\n0/2,3,2\n1/1,4,2\n1/3,0,2\n")
    arguments = ["--labels", "pairs.csv", "--batch", "2", "--last", "1", "--report", "why.jsonl", "--json"]
    result = candidates("--out", "second.jsonl", *arguments)
    assert [(c["query_id"], c["rank"], c["batch"]) for c in lines(tmp_path / "second.jsonl")] == [
        ("0", 3, 2),
        ("0", 4, 2),
    ]
    assert json.loads(result.stdout)["pairs"] == 2
    assert [d["outcome"] for d in lines(tmp_path / "why.jsonl")] == ["left out", "extended", "covered"]
    low = candidates("--out", "none.jsonl", *arguments, "--still-relevant", "4", "--force")
    assert json.loads(low.stdout)["queries"] == 0


def test_every_query_if_asked(candidates, tmp_path):
    assert candidates("--out", "all.jsonl", "--identical", "each").exit_code == 0
    assert len(lines(tmp_path / "all.jsonl")) == 3 * 6


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ("pair_id,relevance\n0/0,5\n", "line 2 gives pair 0/0 the relevance '5'"),
        ("pair_id,relevance\n0/0,1\n0/0,1\n", "line 3 judges pair 0/0 again"),
        ("pair_id,relevance\n", "there are no pairs"),
        ("pair_id,relevance\n0/99,1\n", "pair 0/99 is not among"),
        ("pair_id,level\n0/0,1\n", "no column 'relevance'"),
    ],
)
def test_bad_labels(candidates, tmp_path, pairs, sentence):
    (tmp_path / "pairs.csv").write_text(pairs)
    with pytest.raises(MomentseekError, match=sentence):
        raise candidates("--out", "second.jsonl", "--labels", "pairs.csv").exception
    assert not (tmp_path / "second.jsonl").exists()


def test_queries_need_words(candidates, tmp_path):
    row = {"query_id": "q", "video": "v", "start": 0, "end": 1, "relevance": 1}
    (tmp_path / "queries.jsonl").write_text(json.dumps(row))
    with pytest.raises(MomentseekError, match="its queries have no words"):
        raise candidates("--out", "x.jsonl").exception


def test_inputs_survive(candidates, tmp_path):
    before = (tmp_path / "captions.jsonl").read_text()
    with pytest.raises(MomentseekError, match=r"captions\.jsonl: is an input"):
        raise candidates("--out", "captions.jsonl", "--force").exception
    with pytest.raises(MomentseekError, match="two outputs"):
        raise candidates("--out", "x.jsonl", "--report", "x.jsonl").exception
    assert (tmp_path / "captions.jsonl").read_text() == before
    assert candidates("--out", "first.jsonl").exit_code == 0
    with pytest.raises(MomentseekError, match="already exists"):
        raise candidates("--out", "first.jsonl").exception
    assert candidates("--out", "first.jsonl", "--force").exit_code == 0


@pytest.mark.parametrize("arguments", [["--last", "5"], ["--still-relevant", "2"]])
def test_options_of_the_second_batch(candidates, tmp_path, arguments):
    with pytest.raises(MomentseekError, match=f"{arguments[0]} would do nothing without --labels; leave it out"):
        raise candidates("--out", "x.jsonl", *arguments).exception
    assert not (tmp_path / "x.jsonl").exists()


def test_another_batch_size_is_reported(candidates, tmp_path):
    (tmp_path / "pairs.csv").write_text("pair_id,relevance\n0/0,4\n0/2,3\n1/1,4\n1/3,4\n")
    with pytest.raises(MomentseekError, match="pair 0/2 has rank 2, beyond a first batch of 1; give the batch size"):
        raise candidates("--out", "x.jsonl", "--labels", "pairs.csv", "--batch", "1").exception
    assert not (tmp_path / "x.jsonl").exists()
    larger = candidates("--out", "x.jsonl", "--labels", "pairs.csv", "--batch", "3")
    assert "note: no pair beyond rank 2 has a level; if the first batch was smaller than 3, give" in larger.stderr
    assert "note" not in candidates("--out", "y.jsonl", "--labels", "pairs.csv", "--batch", "2").stderr
