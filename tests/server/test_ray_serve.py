"""The application for Ray Serve: what it is told, and a real one that answers over HTTP."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.server.ray_serve import application, read_arguments


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"replica": "2"}, "there is no argument 'replica'; did you mean 'replicas'"),
        ({"replicas": "many"}, "replicas=many is not a number of replicas"),
        ({"replicas": "0"}, "replicas=0 is not a number of replicas"),
        ({"replicas": "3"}, "3 replicas share sessions and judgements in a database"),
        ({"token": "x" * 20}, "token=… would be shown by the list of processes; give token_file="),
        ({"token_file": "/nowhere/token"}, "token_file=/nowhere/token: cannot be read"),
        ({"database": "postgresql://ann:secret@db/films"}, "a password in database=… would be shown"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(args: dict[str, str], told: str) -> None:
    with pytest.raises(MomentseekError, match=told):
        read_arguments({"library": "./films", **args})


def test_only_this_machine_is_answered_without_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, replicas, settings = read_arguments({"library": str(tmp_path / "films")})
    assert (folder, replicas, settings.loopback, settings.changes) == (tmp_path / "films", 1, True, False)
    (tmp_path / "token").write_text("t" * 32 + "\n")
    (tmp_path / "password").write_text("secret")
    monkeypatch.setenv("PGPASSWORD", "")
    _, replicas, settings = read_arguments(
        {
            "library": "./films",
            "token_file": str(tmp_path / "token"),
            "replicas": "4",
            "hosts": "a.org, b.org",
            "database": "postgresql://d/films",
            "password_file": str(tmp_path / "password"),
        }
    )
    assert (replicas, settings.loopback, settings.allowed_hosts) == (4, False, ("a.org", "b.org"))
    assert (settings.token, os.environ["PGPASSWORD"]) == ("t" * 32, "secret")


def test_missing_library_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="has no library"):
        application({"library": str(tmp_path / "none")})


@pytest.mark.figures
@pytest.mark.xdist_group("ray")
def test_a_real_application_answers_over_http(shared: Path) -> None:
    pytest.importorskip("aiohttp")
    serve = pytest.importorskip("ray.serve")
    from momentseek.cluster.connection import join_cluster

    with join_cluster("local"):
        made = application({"library": str(shared / "library")})
        serve.run(made, name="films", route_prefix="/")
        try:
            with urllib.request.urlopen("http://127.0.0.1:8000/api/v1/status", timeout=60) as answer:
                assert json.load(answer)["library"]["videos"] == 2
            with urllib.request.urlopen("http://127.0.0.1:8000/", timeout=60) as page:
                assert "Momentseek" in page.read().decode()
        finally:
            serve.shutdown()
