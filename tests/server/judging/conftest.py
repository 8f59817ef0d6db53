"""Annotators who judge over HTTP."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.server.judging.store import JUDGEMENTS_FILE

JUDGING = "/api/v1/judging"
Levels = Callable[[dict[str, Any]], int]


class Campaign:
    """A server with queries, and people who judge their moments."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def ask(self, text: str, depth: int = 20) -> int:
        answer = self.client.post(f"{JUDGING}/queries", json={"text": text, "depth": depth})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    def next(self, query: int, who: str) -> dict[str, Any]:
        answer = self.client.get(f"{JUDGING}/queries/{query}/next", params={"annotator": who})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def say(self, query: int, candidate: int, who: str, level: int) -> Any:
        body = {"query": query, "candidate": candidate, "annotator": who, "relevance": level}
        return self.client.put(f"{JUDGING}/judgements", json=body)

    def judge(self, query: int, who: str, level: Levels, most: int = 100) -> int:
        """Judge what comes until nothing is left; how many."""
        for done in range(most):
            moment = self.next(query, who)["candidate"]
            if moment is None:
                return done
            answer = self.say(query, moment["id"], who, level(moment))
            assert answer.status_code == 200, answer.text
        return most

    def undo(self, who: str) -> Any:
        headers = {"Content-Type": "application/json"}
        return self.client.delete(f"{JUDGING}/judgements/last", params={"annotator": who}, headers=headers)

    def set_rule(self, setting: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.put(f"{JUDGING}/rule", json={"setting": setting}).json()
        return found

    def get(self, what: str, **params: Any) -> Any:
        return self.client.get(f"{JUDGING}/{what}", params=params)


@pytest.fixture
def campaign(serve: Callable[..., TestClient], place: Path) -> Campaign:
    return Campaign(serve(place))


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs ``judged`` keeps it for the others."""
    return tmp_path_factory.mktemp("judged")


@pytest.fixture
def judged(serve: Callable[..., TestClient], place: Path, kept: Path) -> Campaign:
    """Three queries judged by two people; where they disagree about the first, by two more, who settle one moment."""
    if (kept / JUDGEMENTS_FILE).is_file():
        shutil.copy(kept / JUDGEMENTS_FILE, place / JUDGEMENTS_FILE)
        return Campaign(serve(place))
    campaign = Campaign(serve(place))
    for text in ("red", "green", "a blue sky"):
        query = campaign.ask(text)
        campaign.judge(query, "ann", lambda m: m["id"] % 5)
        campaign.judge(query, "bob, the second", lambda m: m["id"] % 5 if m["id"] % 2 else (m["id"] + 2) % 5)
        if text == "red":
            campaign.judge(query, "Zoë", lambda m: 0 if m["id"] == 4 else 2)
            campaign.judge(query, "=4+4", lambda m: 4 if m["id"] == 4 else 3)
    whole, copy = sqlite3.connect(place / JUDGEMENTS_FILE), sqlite3.connect(kept / JUDGEMENTS_FILE)
    whole.backup(copy)
    whole.close()
    copy.close()
    return campaign
