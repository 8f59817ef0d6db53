"""``momentseek data imprecise``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.benchmarks.datasets.imprecise.chat_server import serving

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.recognition.chat import KEY_VARIABLES

LINES = (
    "Zorblat brushes her hair in the kitchen.\n"
    "A man talks to Zorblat in the kitchen.\n"
    "Zorblat and Ross kiss.\n"
    "A dog barks at the man.\n"
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.txt").write_text(LINES)

    def call(*arguments, lexical=True):
        return CliRunner().invoke(
            cli,
            ["data", "imprecise", "q.txt", *arguments, *(["--encoder", "lexical"] if lexical else [])],
        )

    return call


def test_rules(run, tmp_path):
    result = run("--out", "o.txt", "--queue", "queue.jsonl", "--report", "r.jsonl", "--save-names", "n.csv")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "o.txt").read_text().splitlines() == [
        "A woman brushes her hair in the kitchen.",
        "A man talks to a woman in the kitchen.",
        "Two people kiss.",
        "A dog barks at the man.",
    ]
    assert result.stdout.splitlines()[0] == "4 queries: 2 replaced, 1 queued, 1 unchanged; 2 names known"
    assert "1 query failed the checks" in result.stderr
    assert json.loads((tmp_path / "queue.jsonl").read_text())["id"] == "3"
    outcomes = [json.loads(line)["outcome"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert outcomes == ["replaced", "replaced", "queued", "unchanged"]
    assert "Zorblat,female," in (tmp_path / "n.csv").read_text()


def test_json(run):
    told = json.loads(run("--out", "o.txt", "--json").stdout)
    assert told["decisions"]["queued"] == {"similarity is too low": 1}
    assert told["words"] == [{"word": "woman", "count": 2, "gender": "F"}]  # not the queued query's "two people"
    assert told["reviewed"] == {"taken": 0, "named": 0, "untouched": 0, "unmatched": 0}
    assert (told["backend"], told["similarity"], told["queries"]) == ("rules", "lexical", 4)


def test_corrected_queue_is_read_back(run, tmp_path):
    run("--out", "o.txt", "--queue", "queue.jsonl")
    queue = (tmp_path / "queue.jsonl").read_text()
    (tmp_path / "queue.jsonl").write_text(queue.replace('"query": "Two people kiss', '"query": "A couple kisses'))
    result = run("--out", "o.txt", "--reviewed", "queue.jsonl", "--force")
    assert "A couple kisses." in (tmp_path / "o.txt").read_text()
    assert "queued" not in result.stdout
    assert "reviewed row" not in result.stderr


def test_reports_problems_of_a_corrected_queue(run, tmp_path):
    run("--out", "o.txt", "--queue", "queue.jsonl")
    row = json.loads((tmp_path / "queue.jsonl").read_text())
    rows = [row, {**row, "id": "1", "original": LINES.splitlines()[0], "query": "Zorblat combs."}, {**row, "id": "9"}]
    (tmp_path / "queue.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = run("--out", "o.txt", "--reviewed", "queue.jsonl", "--force", "--json")
    assert result.stderr.splitlines() == [
        "note: 1 reviewed row (1): the check still finds a name in it",
        "note: 1 reviewed row (3): it is unchanged from the failed attempt",
        "note: 1 reviewed row (9): no query has this id and original, so it is not used",
        "wrote o.txt",
    ]
    assert json.loads(result.stdout)["reviewed"] == {"taken": 2, "named": 1, "untouched": 1, "unmatched": 1}
    assert (tmp_path / "o.txt").read_text().splitlines()[0] == "Zorblat combs."


def test_corrections_are_never_overwritten(run, tmp_path):
    run("--out", "o.txt", "--queue", "queue.jsonl")
    before = (tmp_path / "queue.jsonl").read_text()
    result = run("--out", "o.txt", "--reviewed", "queue.jsonl", "--queue", "queue.jsonl", "--force")
    assert "queue.jsonl: is an input of this command" in str(result.exception)
    assert (tmp_path / "queue.jsonl").read_text() == before


@pytest.mark.parametrize("option", ["--out", "--queue", "--report", "--save-names"])
def test_nothing_is_overwritten_without_force(run, tmp_path, option):
    (tmp_path / "there").write_text("mine")
    arguments = {"--out": "o", option: "there"}
    flat = [word for pair in arguments.items() for word in pair]
    assert "there: already exists" in str(run(*flat).exception)
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "o").exists()
    assert run(*flat, "--force").exit_code == 0
    assert (tmp_path / "there").read_text() != "mine"


def test_missing_vectors_are_listed_next_to_the_output(run, tmp_path):
    def stored(texts):
        np.savez(tmp_path / "v.npz", texts=np.array(texts), vectors=np.ones((len(texts), 2)))

    stored(["x"])
    arguments = ("--out", "o.txt", "--encoder", "file:v.npz")
    result = run(*arguments, lexical=False)
    sentence = "v.npz: has no vector for 6 texts, see o.txt.texts.txt, one per line; add what is missing, then run"
    assert str(result.exception).startswith(sentence)
    assert not (tmp_path / "o.txt").exists()
    texts = (tmp_path / "o.txt.texts.txt").read_text().splitlines()
    assert "someone brushes her hair in the kitchen." in texts
    stored(texts)
    assert run(*arguments, lexical=False).exit_code == 0


def test_one_of_each(run, tmp_path):
    (tmp_path / "q.txt").write_text("A dog barks at Ross on the long road.\n")
    (tmp_path / "names.csv").write_text("Ross,male\n")
    assert "1 query: 1 replaced; 1 name known" in run("--out", "o.txt", "--names", "names.csv").stdout


def test_names_of_the_user(run, tmp_path):
    (tmp_path / "names.csv").write_text("Zorblat,male\nRoss,word\n")
    run("--out", "o.txt", "--names", "names.csv")
    assert (tmp_path / "o.txt").read_text().splitlines()[2] == "A man and Ross kiss."


def test_chat_stops_and_resumes(run, tmp_path):
    def good(query):
        return query.replace("Zorblat", "a woman").replace("Ross", "a man")

    arguments = ("--out", "o.txt", "--backend", "chat", "--model", "m", "--batch", "1", "--similar", "0.2")
    with serving(good) as server:
        (tmp_path / "o.txt.partial.jsonl").write_text("")
        server.plan += [lambda h, asked: h.lines([(1, good(asked[0][1]))]), 401]
        stopped = run(*arguments, "--base-url", server.url)
        assert isinstance(stopped.exception, MomentseekError)
        assert not (tmp_path / "o.txt").exists()
        result = run(*arguments, "--base-url", server.url)
    assert "resuming: 1 query rewritten before" in result.stderr
    assert (tmp_path / "o.txt").read_text() == good(LINES)
    assert not (tmp_path / "o.txt.partial.jsonl").exists()


def test_work_file_has_no_password_and_is_not_trusted(run, tmp_path):
    arguments = ("--out", "o.txt", "--backend", "chat", "--model", "m", "--batch", "1", "--similar", "0.2")
    partial = tmp_path / "o.txt.partial.jsonl"
    with serving(lambda q: q.replace("Zorblat", "a woman").replace("Ross", "a man")) as server:
        server.plan += [lambda h, asked: h.lines([(1, h.server.rewrite(asked[0][1]))]), 401]
        stopped = run(*arguments, "--base-url", server.url.replace("//", "//me:secret@"))
        assert "secret" not in str(stopped.exception) + partial.read_text()
        partial.write_text(partial.read_text().replace('"query": "a woman', '"query": "Zorblat'))
        result = run(*arguments, "--base-url", server.url)
    assert "note: 1 earlier answer failed the checks now and had to be requested again" in result.stderr
    assert "Zorblat" not in (tmp_path / "o.txt").read_text()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for key in KEY_VARIABLES:
        monkeypatch.delenv(key, raising=False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "q.txt"], "q.txt: is an input of this command"),
        (["--out", "q.txt", "--force"], "q.txt: is an input of this command"),
        (["--out", "o", "--queue", "./o"], "o: is named for two outputs"),
        (["--out", "o", "--base-url", "http://h"], "--base-url is for a language model"),
        (["--out", "o", "--model", "m"], "--model is for a language model"),
        (["--out", "o", "--batch", "20"], "--batch is for a language model"),
        (["--out", "o", "--timeout", "60"], "--timeout is for a language model; leave it out, or add --backend chat"),
        (["--out", "o", "--encoder", "file:q.txt", "--queue", "o.texts.txt"], "is named for two outputs"),
        (["--out", "o", "--backend", "chat"], "--base-url, https://host/v1"),
        (["--out", "o", "--backend", "chat", "--base-url", "host", "--model", "m"], ", not a web address"),
        (["--out", "o", "--type", "v"], "plain lines have no type"),
        (["--out", "o", "--encoder", "minilmm"], "no text encoder 'minilmm'"),
        (["--out", "nowhere/o"], "there is no folder nowhere"),
        (["--out", "o", "--reviewed", "none.jsonl"], "cannot be read"),
    ],
)
def test_refusals(run, tmp_path, arguments, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        raise run(*arguments, lexical="--encoder" not in arguments).exception
    assert (tmp_path / "q.txt").read_text() == LINES
    assert not (tmp_path / "o").exists()


def test_help_has_examples(run):
    assert "momentseek data imprecise tvr_val_release.jsonl --type v" in run("--help").stdout


@pytest.mark.figures
def test_tvr_validation(data, tmp_path):
    """Of TVR's 8,097 descriptions, at most 1 % still have a name."""
    source = data / "tvr/tvr_val_release.jsonl"
    result = CliRunner().invoke(
        cli,
        [
            "data",
            "imprecise",
            str(source),
            "--type",
            "v",
            "--out",
            str(tmp_path / "o"),
            "--encoder",
            "lexical",
            "--json",
        ],
    )
    told = json.loads(result.stdout)
    assert told["queries"] == 8097
    queued = told["decisions"].get("queued", {})
    assert sum(n for reason, n in queued.items() if "names are left" in reason) <= 80
    assert sum(queued.values()) <= 30
    assert {w["word"] for w in told["words"][:2]} == {"man", "woman"}
    rows = [json.loads(line) for line in (tmp_path / "o").read_text().splitlines()]
    assert [r["desc"] for r in rows[:1]] == ["A woman puts one of her ponytails in her mouth."]
    assert rows[0]["original"] == "Phoebe puts one of her ponytails in her mouth."
