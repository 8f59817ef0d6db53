import json

import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words, needs_minilm

ROWS = [
    {"vid_name": f"v{i % 3}", "duration": 60.0, "ts": [float(i), i + 4.0], "desc": text, "type": kind, "desc_id": i}
    for i, (text, kind) in enumerate(
        [("Ross runs away.", "v"), ("Ross sits down.", "vt"), ("Joey runs away.", "v"), ("Joey eats.", "v")]
    )
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    texts = [row["desc"] for row in ROWS] + ["A man runs away."]
    np.savez(tmp_path / "vectors.npz", texts=texts, vectors=Words().encode(texts))
    (tmp_path / "other.jsonl").write_text('{"query_id": 0, "query": "A man runs away."}\n')
    (tmp_path / "val.jsonl").write_text('{"query_id": 99, "query": "joey eats"}\n')
    return tmp_path


def run(momentseek, files, *more):
    return momentseek(
        "data", "pseudo-train", files / "train.jsonl", "--out", files / "out", "--encoder",
        f"file:{files / 'vectors.npz'}", *more,
    )  # fmt: skip


def test_files_of_each_n_are_written_and_reported(momentseek, files):
    done = run(
        momentseek, files, "--n", "2, 1", "--exclude", files / "val.jsonl", "--report", files / "report.jsonl", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (files / "out").iterdir()) == ["train_top01.json", "train_top02.json"]
    result = json.loads(done.stdout)
    assert result["decisions"]["dropped"] == {"occurs in --exclude": 1}
    assert list(result["lists"]) == ["1", "2"]
    lines = [json.loads(line) for line in (files / "report.jsonl").read_text().splitlines()]
    assert [(line["subject"], line["outcome"]) for line in lines] == [
        ("0", "kept"), ("1", "kept"), ("2", "kept"), ("3", "dropped"),
    ]  # fmt: skip
    top = json.loads((files / "out/train_top02.json").read_bytes())
    assert [m["caption"] for m in top[0]["relevant_moment"]] == ["Ross runs away.", "Joey runs away."]


def test_the_default_is_1_20_40_and_a_table(momentseek, files):
    done = run(momentseek, files, "--where", "type=v", "--queries", files / "other.jsonl")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [
        "train_top01.json", "train_top20.json", "train_top40.json",
    ]  # fmt: skip
    assert "left out: 2 queries, no version in --queries" in done.stderr
    assert "only 3 moments, so no query has more" in done.stderr
    (entry,) = json.loads((files / "out/train_top40.json").read_bytes())
    assert entry["query"] == "A man runs away."
    assert len(entry["relevant_moment"]) == 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--n", "0"], "--n is '0'; give numbers of moments such as 1,20,40"),
        (["--n", ""], "give numbers of moments"),
        (["--where", "type=x"], "no query has type=x; there are v, vt"),
        (["--encoder", "minlm"], "did you mean 'minilm'?"),
        (["--exclude", "absent.json"], "absent.json: cannot be read"),
        (["--out", "pyproject.toml/x"], "cannot be created as a folder"),
    ],
)
def test_errors_are_one_sentence(momentseek, files, more, message):
    done = run(momentseek, files, *more)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--report", "train.jsonl", "--force"], "is an input of this command"),
        (["--report", "out/train_top20.json"], "is named for two outputs"),
        (["--report", "cache"], "is a folder"),
        (["--report", "val.jsonl"], "already exists"),
    ],
)
def test_nothing_is_destroyed_or_half_written(momentseek, files, more, message):
    (files / "cache").mkdir()
    done = run(momentseek, files, more[0], files / more[1], *more[2:])
    assert done.returncode == 2
    assert message in done.stderr
    assert not (files / "out").exists()
    assert (files / "train.jsonl").read_text().startswith('{"vid_name"')


def test_folder_instead_of_a_file_stops_all(momentseek, files):
    (files / "out/train_top40.json").mkdir(parents=True)
    done = run(momentseek, files, "--force")
    assert done.returncode == 2
    assert "train_top40.json: is a folder" in done.stderr
    assert [p.name for p in (files / "out").iterdir()] == ["train_top40.json"]


def test_singular_forms(momentseek, files):
    (files / "train.jsonl").write_text(json.dumps(ROWS[0]))
    done = run(momentseek, files, "--n", "2")
    assert "there is only 1 moment, so no query has more" in done.stderr
    assert "1 query, 1 moment to choose from" in done.stderr
    assert "already exists" in run(momentseek, files, "--n", "2").stderr
    assert run(momentseek, files, "--n", "2", "--force").returncode == 0


def test_missing_durations_error_asks_for_them(momentseek, files):
    (files / "train.jsonl").write_text("LAMP 0.0 5.0##she sings\n")
    done = run(momentseek, files)
    assert done.returncode == 2
    assert "needs every video's duration" in done.stderr
    assert "--videos" in done.stderr


@needs_minilm
@pytest.mark.slow
def test_real_subset_with_the_real_encoder(momentseek, files, data):
    lines = (data / "tvr/tvr_val_release.jsonl").read_text().splitlines()[:100]
    (files / "val100.jsonl").write_text("\n".join(lines))
    done = momentseek("data", "pseudo-train", files / "val100.jsonl", "--out", files / "real", "--n", "1,20", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["own_moment_first"] > 0.98
    assert found["lists"]["20"]["pairs"] == 2000
    assert found["lists"]["1"]["similarity"] == pytest.approx(1, abs=1e-4)
