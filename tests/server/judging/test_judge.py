from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from momentseek.api.library import Library
from momentseek.server.judging.store import JUDGEMENTS_FILE, JudgementStore


def test_everybody_judges_every_moment_once_in_another_order(campaign: Any) -> None:
    query = campaign.ask("red")
    seen: dict[str, list[int]] = {"ann": [], "bob": []}
    for who, order in seen.items():
        campaign.judge(query, who, lambda moment, order=order: order.append(moment["id"]) or 2)
    total = campaign.get("queries").json()["queries"][0]["candidates"]
    assert sorted(seen["ann"]) == sorted(seen["bob"])
    assert len(set(seen["ann"])) == total >= 4
    assert seen["ann"] != seen["bob"]


def test_what_is_shown_gives_nothing_away(campaign: Any) -> None:
    moment = campaign.next(campaign.ask("red"), "ann")["candidate"]
    assert set(moment) == {"id", "video_id", "start", "end", "media"}
    assert campaign.client.get(moment["media"]).status_code == 200


def test_ids_do_not_tell_the_rank(campaign: Any, place: Path) -> None:
    campaign.ask("red")
    campaign.ask("green")
    with JudgementStore(place) as store:
        orders = [[c.rank for c in sorted(store.candidates(query), key=lambda c: c.id)] for query in (1, 2)]
    assert all(order != sorted(order) for order in orders)


def test_a_third_is_only_asked_where_two_disagree(campaign: Any) -> None:
    query = campaign.ask("red")
    first = campaign.next(query, "ann")["candidate"]["id"]
    campaign.judge(query, "ann", lambda _: 0)
    campaign.judge(query, "bob", lambda m: 2 if m["id"] == first else 1)
    todo = campaign.next(query, "cy")
    assert (todo["candidate"]["id"], todo["total"]) == (first, 1)
    other = next(i for i in range(first - 1, first + 2) if i not in (0, first))
    refused = campaign.say(query, other, "cy", 3)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_needed")
    assert campaign.say(query, first, "cy", 2).json()["outcome"] == "waiting"
    assert campaign.say(query, first, "dan", 3).json()["outcome"] == "kept"
    assert campaign.next(query, "eve")["candidate"] is None
    assert campaign.say(query, first, "eve", 3).status_code == 409


def test_the_second_batch_opens_when_the_last_are_still_relevant(campaign: Any) -> None:
    query = campaign.ask("red", depth=2)
    for who in ("ann", "bob"):
        assert campaign.judge(query, who, lambda _: 3, most=2) == 2
    listed = campaign.get("queries").json()["queries"][0]
    assert (listed["batch"], listed["kept"], listed["candidates"]) == (2, 2, 4)
    assert campaign.next(query, "ann")["left"] == 2
    assert campaign.get("consensus").json()["queries"][0]["second_batch"] == "extended"


def test_the_second_batch_closes_again_unless_somebody_has_begun_it(campaign: Any) -> None:
    def state() -> tuple[Any, ...]:
        listed = campaign.get("queries").json()["queries"][0]
        found = campaign.get("consensus").json()["queries"][0]
        assert len(found["pairs"]) == listed["candidates"]
        return listed["batch"], listed["candidates"], found["second_batch"], found["reason"]

    query = campaign.ask("red", depth=2)
    for who in ("ann", "bob"):
        campaign.judge(query, who, lambda _: 3, most=2)
    opened = state()
    assert opened[:3] == (2, 4, "extended")
    last = campaign.undo("bob").json()["candidate"]
    assert state() == (1, 2, "waiting", "1 of the first batch still need annotators")
    campaign.say(query, last, "bob", 3)
    assert state() == opened
    for one in (1, 2):  # somebody thinks better of it
        for who in ("ann", "bob"):
            campaign.say(query, one, who, 0)
    assert state()[:3] == (1, 2, "covered")
    for one in (1, 2):
        for who in ("ann", "bob"):
            campaign.say(query, one, who, 3)
    campaign.judge(query, "cy", lambda _: 2, most=1)
    campaign.say(query, 1, "ann", 4)
    campaign.undo("bob")
    batch, many, outcome, reason = state()
    assert (batch, many, outcome) == (2, 4, "extended")
    assert reason.startswith("people have judged moments of the second batch (1 of the first batch still")
    campaign.undo("cy")
    assert state()[0] == 1


def test_the_second_batch_stays_closed_when_they_are_not(campaign: Any) -> None:
    query = campaign.ask("red", depth=2)
    for who in ("ann", "bob"):
        campaign.judge(query, who, lambda _: 1)
    listed = campaign.get("queries").json()["queries"][0]
    assert (listed["batch"], listed["candidates"]) == (1, 2)
    found = campaign.get("consensus").json()["queries"][0]
    assert (found["second_batch"], found["reason"]) == ("covered", "the last 2 are not relevant enough")


def test_saying_it_again_replaces_and_undoing_brings_it_back(campaign: Any) -> None:
    query = campaign.ask("red")
    one = campaign.next(query, "ann")["candidate"]["id"]
    assert campaign.say(query, one, "ann", 1).json()["before"] is None
    assert campaign.say(query, one, "ann", 4).json()["before"] == 1
    assert campaign.get("queries").json()["queries"][0]["judged"] == {"ann": 1}
    back = campaign.undo("ann").json()
    assert (back["candidate"], back["relevance"], back["now"]) == (one, 4, 1)
    assert campaign.undo("ann").json()["now"] is None
    assert campaign.undo("ann").status_code == 404
    assert campaign.next(query, "ann")["candidate"]["id"] == one


def test_every_answer_says_how_far_the_query_is(campaign: Any) -> None:
    """What a page shows after a judgement, without asking for the whole consensus again."""
    query = campaign.ask("red")
    campaign.set_rule("two")
    [before] = campaign.get("queries").json()["queries"]
    moment = campaign.next(query, "ann")["candidate"]["id"]
    first = campaign.say(query, moment, "ann", 0).json()["state"]
    assert first == {**before, "judged": {"ann": 1}}
    disputed = campaign.say(query, moment, "bob", 4).json()["state"]
    assert (disputed["disputed"], disputed["open"], disputed["judged"]) == (1, before["open"], {"ann": 1, "bob": 1})
    agreed = campaign.say(query, moment, "bob", 1).json()["state"]
    assert (agreed["kept"], agreed["disputed"], agreed["open"]) == (1, 0, before["open"] - 1)
    assert campaign.get("queries").json()["queries"] == [agreed]
    [whole] = campaign.get("consensus").json()["queries"]
    for key in ("kept", "discarded", "waiting", "second_batch", "reason"):
        assert whole[key] == agreed[key]
    assert campaign.undo("bob").json()["state"] == disputed


def test_undo_is_each_annotators_own(campaign: Any) -> None:
    query = campaign.ask("red")
    campaign.judge(query, "ann", lambda _: 1, most=2)
    campaign.judge(query, "bob", lambda _: 2, most=1)
    assert campaign.undo("ann").json()["annotator"] == "ann"
    assert campaign.get("queries").json()["queries"][0]["judged"] == {"ann": 1, "bob": 1}


def test_names_are_one_in_every_spelling(campaign: Any) -> None:
    query = campaign.ask("red")
    campaign.judge(query, "Zoe\u0308 ", lambda _: 1, most=1)
    campaign.judge(query, "Zo\u00eb", lambda _: 1, most=1)
    assert campaign.get("queries").json()["queries"][0]["judged"] == {"Zo\u00eb": 2}


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0b", "x" * 65, "\u202eevil"])
def test_what_is_no_name_is_refused(campaign: Any, name: str) -> None:
    query = campaign.ask("red")
    assert campaign.say(query, 1, name, 1).status_code == 422
    assert campaign.get(f"queries/{query}/next", annotator=name).status_code == 422


@pytest.mark.parametrize("level", [-1, 5, 2.5, "3", True, None])
def test_what_is_no_level_is_refused(campaign: Any, level: Any) -> None:
    assert campaign.say(campaign.ask("red"), 1, "ann", level).status_code == 422


@pytest.mark.parametrize("id", ["1", True, 1.0, None])
def test_what_is_no_number_is_no_id(campaign: Any, id: Any) -> None:
    query = campaign.ask("red")
    assert campaign.say(query, id, "ann", 1).status_code == 422
    assert campaign.say(id, 1, "ann", 1).status_code == 422
    assert campaign.client.post("/api/v1/judging/queries", json={"text": "green", "depth": id}).status_code == 422


def test_moments_and_queries_that_are_not_there(campaign: Any) -> None:
    first, second = campaign.ask("red", depth=2), campaign.ask("green", depth=2)
    assert campaign.say(9, 1, "ann", 1).status_code == 404
    assert campaign.say(first, 999, "ann", 1).status_code == 404
    others = campaign.next(second, "ann")["candidate"]["id"]
    assert campaign.say(first, others, "ann", 1).status_code == 404
    closed = 3  # of the second batch of the first query
    assert campaign.say(first, closed, "ann", 1).status_code == 404
    assert campaign.get("queries/9/next", annotator="ann").status_code == 404


def test_many_at_once_lose_nothing(campaign: Any, place: Path) -> None:
    query = campaign.ask("red")
    total = campaign.get("queries").json()["queries"][0]["candidates"]

    def work(who: str) -> int:
        done = 0
        while (moment := campaign.next(query, who)["candidate"]) is not None:
            answer = campaign.say(query, moment["id"], who, 2)
            assert answer.status_code in (200, 409)
            done += answer.status_code == 200
        return done

    with ThreadPoolExecutor(5) as threads:
        counts = list(threads.map(work, ["ann", "bob", "cy", "dan", "eve"]))
    assert sum(counts) == 2 * total  # each by two, although five wanted to
    found = campaign.get("consensus").json()["queries"][0]
    assert found["kept"] == total
    with JudgementStore(place) as store:
        assert len(store.history()) == 2 * total


def test_the_same_judgement_from_several_windows(campaign: Any, place: Path) -> None:
    query = campaign.ask("red")
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda n: campaign.say(query, 1, "ann", n % 5), range(12)))
    assert {a.status_code for a in answers} == {200}
    with JudgementStore(place) as store:
        (now,) = store.judgements()
        history = [j for j, _ in store.history()]
    assert len(history) == 12
    assert now == history[-1]


def test_a_video_that_is_removed_and_added_again(campaign: Any, place: Path, shared: Path) -> None:
    query = campaign.ask("red")
    campaign.set_rule("two")
    campaign.judge(query, "ann", lambda _: 2)
    before = campaign.get("queries").json()["queries"][0]
    assert campaign.get("evaluation").status_code == 409
    with Library.open(place) as library:
        library.remove(["one.mp4"])
    todo = campaign.next(query, "bob")
    assert todo["removed"] > 0
    assert "removed from the library" in todo["note"]
    assert todo["left"] + todo["removed"] == before["candidates"]
    removed = [p for p in campaign.get("consensus").json()["queries"][0]["pairs"] if p["removed"]]
    assert len(removed) == todo["removed"] == campaign.get("queries").json()["queries"][0]["removed"]
    assert campaign.say(query, removed[0]["candidate"], "bob", 2).status_code == 200  # seen before it went
    with Library.open(place) as library:
        library.add(shared / "films" / "one.mp4")
    todo = campaign.next(query, "bob")
    assert (todo["removed"], todo["done"], todo["total"]) == (0, 1, before["candidates"])
    assert campaign.get("queries").json()["queries"][0]["judged"]["ann"] == before["candidates"]
    campaign.judge(query, "bob", lambda _: 2)
    assert campaign.get("evaluation").json()["moments"] == before["candidates"]


def test_moments_of_a_missing_file_are_hidden_until_it_returns(
    campaign: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = campaign.ask("red")
    before = campaign.next(query, "ann")
    is_file = Path.is_file
    with monkeypatch.context() as unplugged:
        unplugged.setattr(Path, "is_file", lambda path: path.name != "one.mp4" and is_file(path))
        todo = campaign.next(query, "ann")
        assert todo["left"] + todo["removed"] == before["left"]
        assert 0 < todo["removed"] < before["left"]
        assert campaign.get("consensus").json()["queries"][0]["pairs"][0]["removed"] is False
    assert campaign.next(query, "ann") == before


def test_what_is_skipped_stays_for_later(campaign: Any) -> None:
    query = campaign.ask("red")
    first = campaign.next(query, "ann")
    skipped = campaign.get(f"queries/{query}/next", annotator="ann", skip=[first["candidate"]["id"]]).json()
    assert skipped["candidate"]["id"] != first["candidate"]["id"]
    assert skipped["left"] == first["left"]
    everything = list(range(1, first["left"] + 1))
    assert campaign.get(f"queries/{query}/next", annotator="ann", skip=everything).json()["candidate"] is None


def test_the_library_grows_while_people_judge(campaign: Any, place: Path, shared: Path) -> None:
    query = campaign.ask("green")
    campaign.judge(query, "ann", lambda _: 3)
    with Library.open(place) as library:
        library.add(shared / "more")
    campaign.judge(query, "bob", lambda _: 3)
    found = campaign.get("evaluation").json()
    assert found["judged"] < 1  # what was added has not been judged
    assert found["value"] > 0


def test_queries_are_added_once_and_removed_only_unjudged(campaign: Any) -> None:
    post = campaign.client.post
    query = campaign.ask("a  red   thing", depth=2)
    assert post("/api/v1/judging/queries", json={"text": "a red thing"}).json()["error"]["code"] == "asked_before"
    other = campaign.ask("green")
    campaign.judge(query, "ann", lambda _: 1, most=1)
    remove = lambda id: campaign.client.request(  # noqa: E731
        "DELETE", f"/api/v1/judging/queries/{id}", headers={"Content-Type": "application/json"}
    )
    assert remove(query).status_code == 409
    assert remove(other).json()["text"] == "green"
    assert remove(other).status_code == 404
    assert [q["id"] for q in campaign.get("queries").json()["queries"]] == [query]


@pytest.mark.parametrize(("body", "status"), [
    ({"text": ""}, 422), ({"text": "-nothing"}, 400), ({"text": "x", "depth": 0}, 422), ({"text": "x" * 2001}, 422),
    ({"text": "red", "more": 1}, 422), ({"text": "red in:nowhere*"}, 409),
])  # fmt: skip
def test_queries_that_cannot_be(campaign: Any, place: Path, body: dict[str, Any], status: int) -> None:
    answer = campaign.client.post("/api/v1/judging/queries", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_damaged_store_is_said_in_a_sentence(campaign: Any, place: Path) -> None:
    (place / JUDGEMENTS_FILE).write_bytes(b"no database, but long enough to be looked at " * 50)
    answer = campaign.get("queries")
    assert answer.status_code == 503
    assert "cannot be used" in answer.json()["error"]["message"]


def test_the_store_is_in_wal_mode(campaign: Any, place: Path) -> None:
    campaign.ask("red")
    db = sqlite3.connect(place / JUDGEMENTS_FILE)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_the_guideline_has_the_five_levels(campaign: Any) -> None:
    found = campaign.get("guideline").json()
    assert [level["value"] for level in found["levels"]] == [4, 3, 2, 1, 0]
    assert found["instructions"]
