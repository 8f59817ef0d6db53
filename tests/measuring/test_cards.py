"""Result cards and leaderboards: what they hold, what is comparable, and what a stranger's card may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek import Judgements, Run, compare, evaluate
from momentseek.core.errors import MomentseekError
from momentseek.measuring.cards import build_card, card_markdown, fingerprint_truth, read_card, write_card
from momentseek.measuring.formats import read_truth, write_run, write_truth
from momentseek.measuring.leaderboard import build_leaderboard

MEASURES = ["R@1[IoU>=0.5]", "mIoU"]


def truth_of(queries: int = 40) -> Judgements:
    rows = [(f"q{i}", f"v{i // 2}", 0, 10, 1) for i in range(queries)]
    return Judgements.from_rows(rows)


def run_of(quality: float, seed: int, queries: int = 40) -> Run:
    ends = 10 * np.clip(np.random.default_rng(seed).normal(quality, 0.15, queries), 0.05, 1)
    return Run.from_rows([(f"q{i}", f"v{i // 2}", 0, float(ends[i]), 1.0) for i in range(queries)])


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """Cards of a good and two poorer systems on one truth."""
    for name, quality in (("good", 0.8), ("poor", 0.4), ("alike", 0.41)):
        write_run(run_of(quality, len(name)), tmp_path / f"{name}.jsonl")
        result = evaluate(tmp_path / f"{name}.jsonl", truth_of(), MEASURES)
        write_card(build_card(result, tmp_path / f"{name}.jsonl"), tmp_path / "cards" / f"{name}.json")
    return tmp_path / "cards"


def test_a_card_holds_what_it_takes_to_check_it(cards: Path, tmp_path: Path) -> None:
    card = read_card(cards / "good.json")
    assert card is not None
    result = evaluate(tmp_path / "good.jsonl", truth_of(), MEASURES)
    assert {name: f.value for name, f in card.figures.items()} == pytest.approx(result.means)
    figure = card.figures["mIoU"]
    assert figure.low < figure.value < figure.high
    assert card.data["fingerprint"] == fingerprint_truth(truth_of())
    assert (card.data["queries"], card.missing) == (40, {"policy": "error", "queries": 0})
    assert card.clusters is not None
    assert np.allclose(card.values["mIoU"], result.values[:, 1])
    assert set(card.machine) == {"system", "processor", "cores", "python", "numpy"}
    assert "| mIoU |" in (cards / "good.md").read_text()
    json.loads((cards / "good.json").read_text(), parse_constant=pytest.fail)  # no NaN


def test_letters_are_those_of_compare(cards: Path, tmp_path: Path) -> None:
    board = build_leaderboard([str(cards)], ["mIoU"])
    (group,) = board.groups
    assert group.cards[0].system == "good"
    runs = [tmp_path / f"{card.system}.jsonl" for card in group.cards]
    direct = compare([str(run) for run in runs], truth_of(), "mIoU")
    assert [group.beaten(card, "mIoU") for card in group.cards] == [
        direct.beaten("mIoU", card.system) for card in group.cards
    ]
    assert group.beaten(group.cards[0], "mIoU") == "bc"
    assert group.comparison is not None
    assert group.comparison.videos == 20  # queries of one video are exchanged together
    assert group.comparison.pairs[0].p == pytest.approx(direct.pairs[0].p)


def test_other_data_and_other_rules_stand_apart(cards: Path, tmp_path: Path) -> None:
    write_run(run_of(0.9, 9), tmp_path / "x.jsonl")
    other = evaluate(
        tmp_path / "x.jsonl", Judgements.from_rows([(f"q{i}", f"v{i // 2}", 0, 9, 1) for i in range(40)]), MEASURES
    )
    write_card(build_card(other, tmp_path / "x.jsonl"), cards / "other-data.json")
    rules = evaluate(tmp_path / "x.jsonl", truth_of(), MEASURES, missing="zero")
    write_card(build_card(rules, tmp_path / "x.jsonl", missing="zero"), cards / "other-rules.json")
    board = build_leaderboard([str(cards)])
    assert [len(group.cards) for group in board.groups] == [3, 1, 1]
    text = board.render("text")
    assert (
        "cannot be compared with each other: they have different data and different rules for missing queries" in text
    )


def test_fingerprint_ignores_order_and_format(tmp_path: Path) -> None:
    truth = truth_of(6)
    write_truth(truth, tmp_path / "t.qrels", format="trec-qrels")
    assert fingerprint_truth(read_truth(tmp_path / "t.qrels")) == fingerprint_truth(truth)
    rows = [("q0", "v0", 0, 10, 2), *((f"q{i}", f"v{i // 2}", 0, 10, 1) for i in range(1, 6))]
    assert fingerprint_truth(Judgements.from_rows(rows)) != fingerprint_truth(truth)  # another level


def test_an_error_rate_ranks_the_smaller_first(tmp_path: Path) -> None:
    truth = Judgements.from_rows([(f"q{i}", f"v{i}", 0, 10, i % 2) for i in range(30)])
    for name, level in (("careful", 0.1), ("eager", 0.9)):
        scores = [0.95 if i % 2 else level for i in range(30)]
        run = Run.from_rows([(f"q{i}", f"v{i}", 0, 9, scores[i]) for i in range(30)])
        write_run(run, tmp_path / f"{name}.jsonl")
        result = evaluate(run, truth, ["FalseAlarm[level=0.5]"], label=name)
        write_card(build_card(result, tmp_path / f"{name}.jsonl"), tmp_path / "cards" / f"{name}.json")
    (group,) = build_leaderboard([str(tmp_path / "cards")]).groups
    assert [card.system for card in group.cards] == ["careful", "eager"]
    assert [group.beaten(card, group.measures[0]) for card in group.cards] == ["b", ""]
    assert "**0.0000**" in group.table().render("markdown")


def test_a_page_runs_nothing_that_a_card_says(cards: Path) -> None:
    card = json.loads((cards / "poor.json").read_text())
    card["system"] = "<script>alert(1)</script>"
    (cards / "evil.json").write_text(json.dumps(card))
    page = build_leaderboard([str(cards)]).render("html")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert "http://" not in page + ""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"figures": {"mIoU": {"value": "x"}}}, "is not a whole result card"),
        ({"query_ids": ["q1"]}, "columns of different lengths"),
        ({"data": {}}, "is not a whole result card"),
        ({"card_version": 9}, "is a card of version 9"),
        ({"clusters": [1]}, "columns of different lengths"),
    ],
)
def test_damaged_cards_are_refused_with_their_name(cards: Path, change: dict[str, Any], sentence: str) -> None:
    card = json.loads((cards / "poor.json").read_text()) | change
    (cards / "bad.json").write_text(json.dumps(card))
    with pytest.raises(MomentseekError, match=rf"bad.json: .*{sentence}|bad.json: {sentence}"):
        build_leaderboard([str(cards)])


def test_other_files_and_second_cards_are_noted(cards: Path) -> None:
    (cards / "settings.json").write_text('{"a": 1}')
    (cards / "zcopy.json").write_bytes((cards / "good.json").read_bytes())
    board = build_leaderboard([str(cards)])
    assert len(board.groups[0].cards) == 3
    assert any("is no result card" in note for note in board.notes)
    assert any("is of the same run as" in note for note in board.notes)


def test_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="holds no result card"):
        build_leaderboard([str(tmp_path)])
    with pytest.raises(MomentseekError, match="no such file or folder"):
        build_leaderboard([str(tmp_path / "none")])


def test_a_card_without_values_by_query_is_shown_untested(cards: Path) -> None:
    card = json.loads((cards / "poor.json").read_text()) | {"values": {}, "query_ids": [], "clusters": None}
    (cards / "poor.json").write_text(json.dumps(card))
    (group,) = build_leaderboard([str(cards)], ["mIoU"]).groups
    poor = next(card for card in group.cards if card.system == "poor")
    assert group.letter(poor) == ""
    assert any("Not tested, because their cards lack values by query: poor" in note for note in group.notes())


def test_the_cost_of_answers_is_on_the_card(tmp_path: Path) -> None:
    rows = [{"query_id": f"q{i}", "video": f"v{i // 2}", "answer": "from 0 to 8 s", "prompt_tokens": 100,
             "completion_tokens": 7, "seconds": 0.5} for i in range(40)]  # fmt: skip
    (tmp_path / "eye.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = evaluate(tmp_path / "eye.jsonl", truth_of(), MEASURES)
    card = build_card(result, tmp_path / "eye.jsonl", cost="2 cents")
    assert card.cost == {"said": "2 cents", "prompt_tokens": 4000, "completion_tokens": 280, "seconds": 20.0}
    assert "2 cents, prompt tokens 4000" in card_markdown(card)


def test_the_commands(momentseek: Any, tmp_path: Path) -> None:
    write_truth(truth_of(), tmp_path / "truth.jsonl")
    for name, quality in (("good", 0.8), ("poor", 0.4)):
        write_run(run_of(quality, 1), tmp_path / f"{name}.jsonl")
        done = momentseek(
            "evaluate", f"{name}.jsonl", "-t", "truth.jsonl", "-m", "mIoU",
            "--card", f"cards/{name}.json", "--system", f"The {name} one", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    done = momentseek("leaderboard", "cards", "--html", "board.html", "--markdown", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[4].startswith("| a | The good one | **")
    assert "The poor one" in (tmp_path / "board.html").read_text()
    found = json.loads(momentseek("leaderboard", "cards", "--json", cwd=tmp_path).stdout)
    assert found["groups"][0]["systems"][0]["better_than"] == {"mIoU": ["b"]}
    refused = momentseek("evaluate", "good.jsonl", "-t", "truth.jsonl", "--card", "card.txt", cwd=tmp_path)
    assert "a card is a .json file" in refused.stderr
