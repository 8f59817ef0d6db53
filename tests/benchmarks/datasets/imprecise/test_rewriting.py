"""The whole protocol: attempts, checks, queue, resuming."""

from __future__ import annotations

import json
import random

import pytest
from tests.benchmarks.datasets.imprecise.chat_server import drop_second, never, reverse, serving

from momentseek.benchmarks.datasets.imprecise.names import Gazetteer
from momentseek.benchmarks.datasets.imprecise.query_files import NamedQuery, ReviewedQuery, WorkFile, read_query_file
from momentseek.benchmarks.datasets.imprecise.rewriting import (
    ChatRewriter,
    ReviewOutcome,
    RuleRewriter,
    make_imprecise,
)
from momentseek.benchmarks.datasets.imprecise.substitution import count_replacements
from momentseek.benchmarks.datasets.imprecise.verification import MissingVectors, RewriteVerifier, lexical_similarity
from momentseek.core.errors import MomentseekError

CAST = Gazetteer({}).with_names([("Ross", "male"), ("Rachel", "female"), ("Penny", "female")])
CHECKS = RewriteVerifier(CAST, lexical_similarity, as_written=True)
QUERIES = [NamedQuery(str(i), f"Ross opens the old door number {i}.") for i in range(1, 8)]


def test_rules_are_stricter_the_second_time():
    queries = [NamedQuery("1", "She looks at the Penny in the kitchen."), NamedQuery("2", "A dog barks.")]
    result = make_imprecise(queries, RuleRewriter(CAST), CHECKS)
    assert result.texts == ("She looks at the woman in the kitchen.", "A dog barks.")
    assert [(d.outcome, d.reason) for d in result.decisions] == [
        ("replaced", "passed the checks"),
        ("unchanged", "no name in it"),
    ]
    assert result.queue == ()


def test_what_fails_twice_is_queued():
    result = make_imprecise([NamedQuery("1", "Ross and Rachel kiss.")], RuleRewriter(CAST), CHECKS)
    assert result.queue[0].reasons == ("similarity 0.29 is below 0.4",)
    assert result.texts == ("Two people kiss.",)
    assert result.decisions[0].outcome == "queued"
    assert result.decisions[0].reason == "similarity is too low"


def test_a_reviewed_query_is_taken_unless_its_original_changed():
    queries = [NamedQuery("1", "Ross and Rachel kiss."), NamedQuery("2", "Ross sits on the sofa.")]
    reviewed = {
        "1": ReviewedQuery("Ross and Rachel kiss.", "A couple kiss."),
        "2": ReviewedQuery("Something else.", "x"),
    }
    result = make_imprecise(queries, RuleRewriter(CAST), CHECKS, reviewed=reviewed)
    assert result.texts == ("A couple kiss.", "A man sits on the sofa.")
    assert [d.reason for d in result.decisions] == ["reviewed", "passed the checks"]
    assert result.review == ReviewOutcome(taken=("1",), unmatched=("2",))


def test_what_is_odd_about_a_review_is_told():
    queries = [NamedQuery("1", "Ross and Rachel kiss."), NamedQuery("2", "Ross sits."), NamedQuery("3", "Rachel eats.")]
    reviewed = {
        "1": ReviewedQuery(queries[0].text, "Ross kisses a woman."),
        "2": ReviewedQuery(queries[1].text, "A man sits.", True),
        "3": ReviewedQuery(queries[2].text, "A woman eats."),
        "4": ReviewedQuery("Ann eats.", "A woman eats."),
    }
    result = make_imprecise(queries, RuleRewriter(CAST), CHECKS, reviewed=reviewed)
    assert result.texts == ("Ross kisses a woman.", "A man sits.", "A woman eats.")
    assert result.review == ReviewOutcome(("1", "2", "3"), named=("1",), untouched=("2",), unmatched=("4",))
    assert [d.evidence.get("names") for d in result.decisions] == [["Ross"], None, None]


def client(server, **more):
    return ChatRewriter(server.url, "m", **{"timeout": 5.0, "attempts": 2, "sleep": lambda _: None, **more})


def test_a_model_is_asked_again_at_another_temperature(tmp_path):
    answers = iter(["Ross opens a door.", "A man opens the old door."])
    with serving(lambda _: next(answers)) as server:
        result = make_imprecise([QUERIES[0]], client(server), CHECKS)
        assert [r["temperature"] for r in server.requests] == [0.0, 0.2]
    assert result.texts == ("A man opens the old door.",)


def test_a_model_that_keeps_names_is_queued():
    with serving(lambda q: q) as server:
        result = make_imprecise([QUERIES[0], NamedQuery("x", "A dog.")], client(server), CHECKS)
    assert [q.id for q in result.queue] == ["1"]
    assert result.queue[0].reasons == ("names are left: Ross",)


def test_stopped_and_resumed(tmp_path):
    """The server falls silent after the second batch; the next run asks only for what is missing."""
    work = WorkFile(tmp_path / "out.partial.jsonl", "m")
    with (
        serving(lambda q: q.replace("Ross", "A man"), reverse, drop_second, *[never] * 3) as server,
        pytest.raises(MomentseekError, match="gave no answer"),
    ):
        make_imprecise(QUERIES, client(server, timeout=0.2, batch=2), CHECKS, work=work)
    assert sorted(work.read()) == [q.text for q in QUERIES[:2]]
    work.path.write_bytes(work.path.read_bytes() + b'{"maker": "m", "orig')  # killed while writing
    with serving(lambda q: q.replace("Ross", "A man")) as server:
        told = []
        result = make_imprecise(QUERIES, client(server, batch=2), CHECKS, work=work, progress=lambda *n: told.append(n))
        assert len(server.requests) == 3
    assert result.texts == tuple(q.text.replace("Ross", "A man") for q in QUERIES)
    assert told == [(2, 7), (4, 7), (6, 7), (7, 7)]
    assert len(work.read()) == 7
    assert WorkFile(work.path, "another model").read() == {}
    work.path.unlink()
    assert not work.path.exists()


def test_old_answers_are_checked_again(tmp_path):
    work = WorkFile(tmp_path / "w", "m")
    work.keep([(QUERIES[0].text, "Ross opens the old door."), (QUERIES[1].text, "A man opens the old door number 2.")])
    with serving(lambda q: q.replace("Ross", "A man")) as server:
        result = make_imprecise(QUERIES[:2], client(server), CHECKS, work=work)
        assert len(server.requests) == 1
    assert result.texts == ("A man opens the old door number 1.", "A man opens the old door number 2.")
    assert result.asked_again == 1
    assert work.read()[QUERIES[0].text] == result.texts[0]


def test_what_can_be_no_answer_is_not_read_back(tmp_path):
    work = WorkFile(tmp_path / "w", "m")
    rows = [{"maker": "m", "original": str(i), "query": q} for i, q in enumerate(["\ud800", "a\nb", 3, None, "", "ok"])]
    work.path.write_text("\n".join(map(json.dumps, [*rows, [], 3])))
    assert work.read() == {"5": "ok"}


def test_missing_vectors_cost_no_answers(tmp_path):
    """All batches are asked and kept; when the vectors are there, nothing is asked again."""
    work = WorkFile(tmp_path / "w", "m")
    known = set()

    def similarity(before, after):
        if missing := [t for t in [*before, *after] if t not in known]:
            raise MissingVectors("v.npz", missing)
        return [1.0] * len(before)

    checks = RewriteVerifier(CAST, similarity, as_written=True)
    with serving(lambda q: q.replace("Ross", "A man")) as server:
        model = client(server, batch=2)
        with pytest.raises(MissingVectors, match="has no vector for 14 texts") as error:
            make_imprecise(QUERIES, model, checks, work=work)
        assert len(server.requests) == 4
        known.update(error.value.texts)
        assert len(make_imprecise(QUERIES, model, checks, work=work).texts) == 7
        assert len(server.requests) == 4


def test_interrupted(tmp_path):
    work = WorkFile(tmp_path / "w", "m")

    class Keyboard:
        batch = 2

        def rewrite(self, queries, attempt):
            if queries[0].id == "5":
                raise KeyboardInterrupt
            return [q.text.replace("Ross", "A man") for q in queries]

    with pytest.raises(KeyboardInterrupt):
        make_imprecise(QUERIES, Keyboard(), CHECKS, work=work)
    assert len(work.read()) == 4


TVR = [
    {"vid_name": "castle_s01e01_x", "ts": [0, 1], "desc": "Castle sits.", "type": "v", "desc_id": 7},
    {"vid_name": "s01e01_x", "ts": [0, 1], "desc": "Sheldon sits.", "type": "t", "desc_id": 8},
]
NATIVE = [
    {"query_id": "q", "query": "Ann sits.", "video": "a", "start": 0.0, "end": 1.0, "relevance": 2},
    {"query_id": "q", "query": "Ann sits.", "video": "b", "start": 0.0, "end": 1.0, "relevance": 1},
]


def written(tmp_path, rows):
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_tvr_records(tmp_path):
    source = read_query_file(written(tmp_path, TVR), "v")
    assert source.queries == (NamedQuery("7", "Castle sits.", "castle"),)
    assert source.everything == (("Castle sits.", "castle"), ("Sheldon sits.", "bbt"))
    (row,) = [json.loads(line) for line in source.with_queries(["A man sits."]).splitlines()]
    assert row == {**TVR[0], "desc": "A man sits.", "original": "Castle sits."}


def test_native_records_of_one_query(tmp_path):
    source = read_query_file(written(tmp_path, NATIVE))
    assert len(source.queries) == 1
    rows = [json.loads(line) for line in source.with_queries(["A woman sits."]).splitlines()]
    assert [r["query"] for r in rows] == ["A woman sits."] * 2
    assert [r["relevance"] for r in rows] == [2, 1]


def test_plain_lines(tmp_path):
    (tmp_path / "q.txt").write_text("Ann sits.\n\nBob eats.\n")
    source = read_query_file(tmp_path / "q.txt")
    assert [q.text for q in source.queries] == ["Ann sits.", "", "Bob eats."]
    assert source.with_queries(["a", "", "b"]) == b"a\n\nb\n"


@pytest.mark.parametrize(
    ("rows", "type", "sentence"),
    [
        ([{"a": 1}], None, "its records have no query"),
        (TVR, "x", "no query has the type 'x'; there are t, v"),
        ([TVR[0], {**TVR[0], "desc": "Other."}], None, "query 7 has two texts"),
        ([TVR[0], {"desc_id": 1}], None, "record 2 has no 'desc'"),
        ([TVR[0], {"desc_id": 1, "desc": None}], None, "'desc' of record 2 is null; expected text"),
    ],
)
def test_refused(tmp_path, rows, type, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        read_query_file(written(tmp_path, rows), type)


def test_words_that_came_in():
    pairs = [("Ross sits.", "A man sits."), ("A dog.", "A dog."), ("Ann and Bob sit.", "Two people sit.")]
    assert count_replacements(pairs) == [("man", 1, "M"), ("two", 1, "N"), ("people", 1, "N")]


def documented(root):
    text = (root / "docs/measurements/evaluation.md").read_text()
    table = text.split("| TVR description | imprecise query |")[1].split("\n\n")[0]
    return [
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines() if line[:2] == "| "
    ]


def test_documented_samples_are_what_comes_out(root, data, tvr_cast):
    source = read_query_file(data / "tvr/tvr_val_release.jsonl", "v")
    chosen = random.Random(2024).sample(source.queries, 30)
    rules = RuleRewriter(tvr_cast)
    ours = [(q.text.strip(), text.strip()) for q, text in zip(chosen, rules.rewrite(chosen, 0), strict=True)]
    assert documented(root) == ours[:10]


def test_documented_rules_hold(root):
    cast = Gazetteer({}).with_names(
        (name, gender)
        for gender, names in {
            "female": "Rachel Monica Phoebe Beckett",
            "male": "Ross Chandler Castle Ryan House Mike",
        }.items()
        for name in names.split()
    )
    text = (root / "docs/datasets.md").read_text()
    lines = [line.strip("|").split("|") for line in text.split("| | before | after |")[1].split("\n\n")[0].splitlines()]
    shown = [(cells[1].strip(), cells[2].strip()) for cells in lines if len(cells) == 3 and "---" not in cells[0]]
    assert len(shown) == 10
    assert [(before, RuleRewriter(cast).rewrite([NamedQuery("", before)], 0)[0]) for before, _ in shown] == shown
