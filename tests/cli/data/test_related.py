import json

import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words

from momentseek.models.features.data import read_related

SENTENCES = ["opens door", "closes window", "opens door", "eats pizza"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "train.txt").write_text("".join(f"v{i} 0.0 5.0##{s}\n" for i, s in enumerate(SENTENCES)))
    np.savez(tmp_path / "vectors.npz", texts=SENTENCES[:2] + SENTENCES[3:],
             vectors=Words().encode(SENTENCES[:2] + SENTENCES[3:]))  # fmt: skip
    return tmp_path


def run(momentseek, files, *more):
    encoder = f"file:{files / 'vectors.npz'}"
    return momentseek(
        "data", "related", files / "train.txt", "--out", files / "related.json", "--encoder", encoder, *more
    )


def test_training_reads_the_output(momentseek, files):
    done = run(momentseek, files)
    assert done.returncode == 0, done.stderr
    assert "2 of 4 queries have other videos" in done.stdout
    found = read_related(files / "related.json")
    assert sorted(found.values()) == [("v0",), ("v2",)]


def test_lower_threshold_relates_more(momentseek, files):
    done = run(momentseek, files, "--threshold", -1, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["queries"], told["with_related"], told["pairs"]) == (4, 4, 12)


@pytest.mark.parametrize(
    ("more", "message"),
    [(["--threshold", "2"], "--threshold"), (["--out", "train.txt", "--force"], "is an input of this command")],
    ids=["threshold", "overwriting"],
)
def test_usage_errors(momentseek, files, more, message):
    args = [files / m if m == "train.txt" else m for m in more]
    done = run(momentseek, files, *args)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (files / "related.json").exists()


def test_existing_file_needs_force(momentseek, files):
    (files / "related.json").write_text("{}")
    assert run(momentseek, files).returncode == 2
    assert (files / "related.json").read_text() == "{}"
    assert run(momentseek, files, "--force").returncode == 0
