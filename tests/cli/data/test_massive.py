import json

import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words, needs_minilm

from momentseek.benchmarks.datasets.massive_figures import MASSIVE_FIGURES

SENTENCES = ["opens door", "closes window", "eats pizza", "reads book", "washes car"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entries = {
        f"v{i:02d}": {"duration": 30.0, "timestamps": [[1.0, 5.0]], "sentences": [SENTENCES[i % 5]]} for i in range(20)
    }
    (tmp_path / "test.json").write_text(json.dumps(entries))
    np.savez(tmp_path / "vectors.npz", texts=SENTENCES, vectors=Words().encode(SENTENCES))
    return tmp_path


def run(momentseek, files, *more):
    return momentseek(
        "data", "massive", files / "test.json", "--out", files / "mvmr.json", "--encoder",
        f"file:{files / 'vectors.npz'}", *more,
    )  # fmt: skip


def test_pools_reports_and_tasks_are_written(momentseek, files):
    done = run(
        momentseek, files, "--pool", 6, "--positives", 2, "--report", files / "r.jsonl", "--label-studio",
        files / "tasks.json", "--video-url", "http://host/{video}", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no visual scores" in done.stderr
    found = json.loads(done.stdout)
    assert found["further_positives"] == {"2": 20}
    made = json.loads((files / "mvmr.json").read_bytes())
    assert all(len(e["retrieval_pool"][0]) == 6 and len(e["pos_moments"][0]) == 2 for e in made.values())
    assert len((files / "r.jsonl").read_text().splitlines()) == 20
    assert len(json.loads((files / "tasks.json").read_bytes())) == 100
    assert "<Choices" in (files / "tasks.xml").read_text()
    (files / "mvmr.json").rename(files / "published.json")
    more = ("--pool", 6, "--positives", 2, "--reference", files / "published.json", "--seed", 1)
    again = run(momentseek, files, *more)
    assert again.returncode == 0, again.stderr
    assert "20 queries in both, 0 only here, 0 only there" in again.stdout
    assert "100.0% reach the positive threshold here" in again.stdout
    told = json.loads(run(momentseek, files, *more, "--json", "--force").stdout)
    assert f"the vectors of {files / 'vectors.npz'} do" in told["reference"]["why"]
    assert told["reference"]["why"] in again.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--out", "test.json", "--force"], "is an input of this command"),
        (["--reference", "mvmr.json", "--force"], "is an input of this command"),
        (["--report", "mvmr.json"], "is named for two outputs"),
        (["--label-studio", "tasks.xml"], "is named for two outputs"),
        (["--report", "cache"], "is a folder"),
        (["--report", "absent/r.jsonl"], "there is no folder"),
        (["--report", "vectors.npz"], "vectors.npz: is an input of this command"),
        (["--report", "old"], "already exists"),
    ],
)
def test_nothing_is_destroyed(momentseek, files, more, message):
    (files / "cache").mkdir()
    (files / "old").write_text("mine")
    before = {p: p.read_bytes() for p in files.iterdir() if p.is_file()}
    here = [files / a if isinstance(a, str) and not a.startswith("--") else a for a in more]
    done = run(momentseek, files, "--pool", 6, *here)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert {p: p.read_bytes() for p in files.iterdir() if p.is_file()} == before


@pytest.mark.parametrize(
    "more", [["--seed", -1], ["--text-positive", "nan"], ["--text-negative", -1.5], ["--pool", 1], ["--positives", -1]]
)
def test_options_have_ranges(momentseek, files, more):
    done = run(momentseek, files, *more)
    assert done.returncode == 2
    assert f"Invalid value for '{more[0]}'" in done.stderr


def test_the_same_seed_writes_the_same_bytes(momentseek, files):
    outputs = set()
    for _ in range(2):
        assert run(momentseek, files, "--pool", 6, "--seed", 5, "--force").returncode == 0
        outputs.add((files / "mvmr.json").read_bytes())
    assert len(outputs) == 1


def test_visual_scores_are_used(momentseek, files):
    lines = [
        json.dumps({"query_id": f"v{q:02d}:0", "video": f"v{v:02d}", "score": 1.0 - abs(q - v) / 20})
        for q in range(20)
        for v in range(20)
    ]
    (files / "scores.jsonl").write_text("\n".join(lines))
    done = run(momentseek, files, "--pool", 5, "--features", files / "scores.jsonl")
    assert done.returncode == 0, done.stderr
    assert "visual scores >= 1.0000 positive" in done.stdout
    assert "no visual scores" not in done.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "has 20 videos, fewer than a pool of 50; choose a smaller --pool"),
        (["--pool", 20, "--positives", 2], "no query can be kept (20: too few negatives for the pool)"),
        (["--pool", 6, "--text-negative", 0.95], "could be both"),
        (["--pool", 6, "--reference", "examples"], "cannot be read"),
        (["--pool", 6, "--features", "absent.npz"], "absent.npz: cannot be read"),
    ],
)
def test_errors_are_one_sentence_and_write_nothing(momentseek, files, more, message):
    done = run(momentseek, files, *more)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (files / "mvmr.json").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ('{"v": {"duration": 9, "timestamps": [[0, 5]], "sentences": ["opens door"]}}', "has 1 video, fewer"),
        ('{"v": {"duration": 9, "timestamps": [[0, 5]], "sentences": [" "]}}', "has no sentences to compare"),
        ('{"v": {"duration": null, "timestamps": [[0, 5]], "sentences": ["a"]}}', "needs every video's duration"),
        ('{"v": {"duration": 9, "timestamps": [], "sentences": []}}', "there are no queries in it"),
    ],
)
def test_unusable_annotations(momentseek, files, content, message):
    (files / "test.json").write_text(content)
    done = run(momentseek, files)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@needs_minilm
@pytest.mark.figures
def test_charades_sta_matches_the_published_file(momentseek, files, data):
    folder = data / "charades-sta"
    done = momentseek(
        "data", "massive", folder / "charades_sta_test.txt", "--videos", folder / "charades_decoded_durations.json",
        "--out", files / "charades.json", "--reference", data / "mvmr/charades_test_mvmr.json", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kept"] == 3720
    assert found["further_positives"] == {"0": 1139, "1": 331, "2": 226, "3": 154, "4": 1870}
    assert found["reference"]["their_positives"]["4"] == 1537
    assert found["reference"]["positives_reach"] == pytest.approx(0.70, abs=0.005)
    assert found["reference"]["negatives_below"] == pytest.approx(0.978, abs=0.002)
    made = json.loads((files / "charades.json").read_bytes())
    for video, entry in made.items():
        for pool, positives in zip(entry["retrieval_pool"], entry["pos_moments"], strict=True):
            assert len(set(pool)) == len(pool) == 50
            assert pool[0] == video
            assert [p[0] for p in positives] == pool[1 : 1 + len(positives)]
            assert len(positives) <= 4


def test_figures_of_the_scores(momentseek, files):
    rng = np.random.default_rng(0)
    names = [f"v{i:02d}" for i in range(20)]
    scores = rng.random((20, 20)) + np.eye(20)
    np.savez(files / "visual.npz", queries=[f"{name}:0" for name in names], videos=names, scores=scores)
    (files / "pairs.csv").write_text("first,second,score\nopens door,opens door,5\nopens door,eats pizza,0.4\n")
    asked = ["--pool", 3, "--positives", 1, "--plots", files / "figures", "--features", files / "visual.npz"]
    more = ["--target", "eats pizza", "--judged-pairs", files / "pairs.csv"]
    done = run(momentseek, files, *asked, *more)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in (files / "figures").iterdir()}
    assert drawn == {f"{name}.{kind}" for name in MASSIVE_FIGURES for kind in ("png", "svg")}
    assert all(path.stat().st_size > 4000 for path in (files / "figures").iterdir())
    assert "already exists" in run(momentseek, files, *asked, "--out", files / "other.json").stderr
    plain = run(momentseek, files, "--pool", 3, "--positives", 1, "--plots", files / "plain", "--force")
    assert plain.returncode == 0, plain.stderr
    assert {path.stem for path in (files / "plain").iterdir()} == set(MASSIVE_FIGURES[:3])


@pytest.mark.parametrize(
    ("more", "pairs", "message"),
    [
        (["--target", "eats pizza"], "", "--target would do nothing without --plots"),
        (["--plots", "{}/f", "--target", "eats pizzas"], "", "no query says 'eats pizzas'; did you mean 'eats pizza'?"),
        (["--plots", "{}/f", "--judged-pairs", "{}/pairs.csv"], "first,second,score\n", "pairs.csv: has no pairs"),
        (
            ["--plots", "{}/f", "--judged-pairs", "{}/pairs.csv"],
            "first,second,score\na,b,c\n",
            "line 2 has the score 'c'",
        ),
    ],
)
def test_reports_figures_that_cannot_be_drawn(momentseek, files, more, pairs, message):
    (files / "pairs.csv").write_text(pairs)
    done = run(momentseek, files, "--pool", 3, *(text.format(files) for text in more))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (files / "mvmr.json").exists()
    assert not (files / "f").exists()
