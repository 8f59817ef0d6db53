"""``momentseek data imprecise``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.construct.chat_server import serving

from momentseek.cli import cli
from momentseek.errors import MomentseekError

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
    assert "1 queries failed the checks" in result.stderr
    assert json.loads((tmp_path / "queue.jsonl").read_text())["id"] == "3"
    outcomes = [json.loads(line)["outcome"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert outcomes == ["replaced", "replaced", "queued", "unchanged"]
    assert "Zorblat,female," in (tmp_path / "n.csv").read_text()


def test_json(run):
    told = json.loads(run("--out", "o.txt", "--json").stdout)
    assert told["decisions"]["queued"] == {"similarity is too low": 1}
    assert told["words"][0] == {"word": "woman", "count": 2, "gender": "F"}
    assert (told["backend"], told["similarity"], told["queries"]) == ("rules", "lexical", 4)


def test_a_corrected_queue_is_read_back(run, tmp_path):
    run("--out", "o.txt", "--queue", "queue.jsonl")
    queue = (tmp_path / "queue.jsonl").read_text()
    (tmp_path / "queue.jsonl").write_text(queue.replace("Two people kiss.", "A couple kisses."))
    result = run("--out", "o.txt", "--reviewed", "queue.jsonl", "--force")
    assert "A couple kisses." in (tmp_path / "o.txt").read_text()
    assert "queued" not in result.stdout


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
    assert "resuming: 1 queries were rewritten before" in result.stderr
    assert (tmp_path / "o.txt").read_text() == good(LINES)
    assert not (tmp_path / "o.txt.partial.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "q.txt"], "q.txt is there already"),
        (["--out", "o", "--backend", "chat"], "needs --base-url"),
        (["--out", "o", "--backend", "chat", "--base-url", "host", "--model", "m"], "is not a web address"),
        (["--out", "o", "--type", "v"], "plain lines have no type"),
        (["--out", "o", "--encoder", "minilmm"], "no text encoder 'minilmm'"),
        (["--out", "nowhere/o"], "cannot be written"),
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


def test_tvr_validation(data, tmp_path):
    """The real thing: 8,097 descriptions, at most 1 % of them with a name left."""
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
