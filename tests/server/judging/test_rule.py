"""One person judging alone gets figures that say so; the paper's rule counts as soon as another joins or it is set."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from momentseek.server.judging.evaluation import ONE_ANNOTATOR_NOTE
from momentseek.server.judging.store import JUDGEMENTS_FILE, JudgementStore


def test_one_person_gets_figures_that_say_so(campaign: Any) -> None:
    query = campaign.ask("red")
    assert campaign.get("evaluation").json()["error"]["message"].startswith("no moment has been judged yet")
    judged = campaign.judge(query, "ann", lambda _: 3)
    assert campaign.get("rule").json() == {"rule": "one", "setting": "auto", "annotators": ["ann"]}
    alone = campaign.get("evaluation").json()
    assert (alone["rule"], alone["moments"], alone["waiting"]) == ("one", judged, 0)
    assert 0 < alone["value"] <= 1
    assert ONE_ANNOTATOR_NOTE in alone["notes"]
    compared = campaign.get("compare", a="localiser=scenes", b="localiser=whole").json()
    assert ONE_ANNOTATOR_NOTE in compared["notes"]
    [state] = campaign.get("queries").json()["queries"]
    assert (state["kept"], state["open"]) == (judged, 0)
    assert campaign.get("export", kind="jsonl").status_code == 200


def test_second_annotator_gets_all_moments_and_two_must_agree(campaign: Any) -> None:
    query = campaign.ask("red")
    judged = campaign.judge(query, "ann", lambda _: 3)
    assert campaign.next(query, "bob")["left"] == judged
    campaign.judge(query, "bob", lambda _: 3, most=1)
    assert campaign.get("rule").json()["rule"] == "two"
    both = campaign.get("evaluation").json()
    assert (both["rule"], both["waiting"]) == ("two", judged - 1)
    assert ONE_ANNOTATOR_NOTE not in both["notes"]
    assert campaign.undo("bob").status_code == 200
    assert campaign.get("rule").json()["rule"] == "one"


def test_the_rule_can_be_set(campaign: Any) -> None:
    query = campaign.ask("red")
    campaign.judge(query, "ann", lambda _: 3)
    assert campaign.set_rule("two")["rule"] == "two"
    refused = campaign.get("evaluation")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_judged")
    assert "two annotators have not agreed" in refused.json()["error"]["message"]
    assert campaign.set_rule("one")["rule"] == "one"
    assert campaign.next(query, "bob")["left"] == 0
    moment = campaign.get("consensus").json()["queries"][0]["pairs"][0]
    assert (moment["relevance"], moment["outcome"]) == (3, "kept")
    answer = campaign.say(query, moment["candidate"], "bob", 1)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_needed")
    assert campaign.set_rule("auto") == {"rule": "one", "setting": "auto", "annotators": ["ann"]}
    assert campaign.client.put("/api/v1/judging/rule", json={"setting": "three"}).status_code == 422


def test_a_store_of_the_first_format_is_given_settings(campaign: Any, place: Path) -> None:
    campaign.ask("red")
    with closing(sqlite3.connect(place / JUDGEMENTS_FILE)) as db, db:
        db.executescript("DROP TABLE settings; PRAGMA user_version = 1")
    db.close()
    assert campaign.get("rule").json()["setting"] == "auto"
    assert campaign.set_rule("two")["setting"] == "two"
    with JudgementStore(place) as store:
        assert store.rule("ann") == "two"
