"""The chat client against a real server that misbehaves."""

from __future__ import annotations

import socket
import time

import pytest
from tests.benchmarks.datasets.imprecise.chat_server import (
    chatter,
    drip,
    drip_headers,
    drip_refusal,
    drop_second,
    garbage,
    half_a_character,
    never,
    no_status,
    redirect,
    reverse,
    serving,
    short,
    wrong_shape,
)

from momentseek.benchmarks.datasets.imprecise.query_files import NamedQuery
from momentseek.benchmarks.datasets.imprecise.rewriting import ChatRewriter, open_rewriter, parse_answer
from momentseek.core.errors import MomentseekError
from momentseek.recognition.chat import KEY_VARIABLES

QUERIES = ["Ross sits.", "A dog barks.", "Ross and\nRoss eat."]
EXPECTED = ["a man sits.", "A dog barks.", "a man and a man eat."]


def rewritten(answer):
    return answer.replace("Ross", "a man")


def chat(server, **more):
    pauses = []
    settings = {"timeout": 5.0, "attempts": 4, "sleep": pauses.append, **more}
    return ChatRewriter(server.url, "some-model", **settings), pauses


def rewrite(client, texts, attempt=0):
    return client.rewrite([NamedQuery(str(i), text) for i, text in enumerate(texts)], attempt)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for key in KEY_VARIABLES:
        monkeypatch.delenv(key, raising=False)


@pytest.mark.parametrize(
    ("plan", "requests"),
    [
        ([], 1),
        ([reverse], 1),
        ([drop_second], 2),
        ([garbage], 2),
        ([wrong_shape], 2),
        ([429, 500, 503], 4),
        ([chatter], 4),
        ([half_a_character], 4),
        ([short], 2),
        ([no_status], 2),
    ],
)
def test_recovers(plan, requests):
    with serving(rewritten, *plan) as server:
        client, _ = chat(server)
        assert rewrite(client, QUERIES) == EXPECTED
        assert len(server.requests) == requests


def test_waits_longer_each_time():
    with serving(rewritten, 500, 500, 429) as server:
        client, pauses = chat(server, pause=0.5)
        rewrite(client, QUERIES[:1])
        assert pauses == [0.5, 1.0, 2.0]


def test_a_line_that_never_comes():
    with serving(rewritten, chatter, chatter) as server:
        client, _ = chat(server)
        assert rewrite(client, QUERIES[:2]) == [None, "A dog barks."]


@pytest.mark.parametrize("step", [drip, drip_headers, drip_refusal])
def test_an_answer_that_drips_for_ever_is_given_up(step):
    with serving(rewritten, step, step) as server:
        client, _ = chat(server, timeout=0.3, attempts=2)
        began = time.monotonic()
        with pytest.raises(MomentseekError, match=r"(gave no answer within 0.3 s|HTTP 500), 2 times"):
            rewrite(client, QUERIES)
        assert time.monotonic() - began < 3


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_refused(monkeypatch, code):
    monkeypatch.setenv(KEY_VARIABLES[0], "sesame-123")
    with serving(rewritten) as other, serving(rewritten, redirect(other.url, code)) as server:
        client, _ = chat(server)
        with pytest.raises(MomentseekError, match=rf"HTTP {code}; redirects to '{other.url}' are not followed"):
            rewrite(client, QUERIES)
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "host/v1",
        "http://",
        "http:///v1",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://host:0/v1",
        "http://a host/v1",
        "http://host/v 1",
        "http://[::1/v1",
        "http://[host]/v1",
        "http://host/[v1]",
        "http://a..b/v1",
        "http://höst/v1",
        "http://host/v1?x=1",
        "http://host/v1#x",
        "https://me:secret@host:port/v1",
        "https://me:sec/ret@host/v1",
        "me:secret@host",
    ],
)
def test_addresses_are_checked_once_up_front(url):
    with pytest.raises(MomentseekError, match=", not a web address; give one like") as error:
        open_rewriter(url, "m")
    assert "ret@" not in str(error.value)


@pytest.mark.parametrize("url", ["http://[::1]:8000/v1", "https://my_host.example.:443/a%20b/", "http://127.0.0.1"])
def test_addresses_that_can_be_asked(url):
    assert open_rewriter(url, "m").base_url == url


def test_user_and_password_are_sent_and_never_shown(monkeypatch):
    with serving(rewritten, 401) as server:
        url = server.url.replace("//", "//me:se%40same@")
        client = open_rewriter(url, "m", 5.0)
        with pytest.raises(MomentseekError) as error:
            rewrite(client, QUERIES)
        assert server.requests[0]["key"] == "Basic bWU6c2VAc2FtZQ=="
    assert client.base_url == server.url
    for secret in ("same", "bWU6"):
        assert secret not in str(error.value) + repr(client)
    monkeypatch.setenv(KEY_VARIABLES[1], "k")
    with pytest.raises(MomentseekError, match="has a user and OPENAI_API_KEY a key, but only one can be sent"):
        open_rewriter(url, "m")


def test_a_key_is_stripped_and_checked_before_asking(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLES[0], " \n")
    monkeypatch.setenv(KEY_VARIABLES[1], " sesame\n")
    assert open_rewriter("http://h", "m").key == "sesame"
    for key in ("se\nsame", "sésame", "“sesame”"):
        monkeypatch.setenv(KEY_VARIABLES[1], key)
        with pytest.raises(MomentseekError, match="OPENAI_API_KEY holds a character that cannot be sent") as error:
            open_rewriter("http://h", "m")
        assert "same" not in str(error.value)


def test_time_out():
    with serving(rewritten, never) as server:
        client, _ = chat(server, timeout=0.2)
        assert rewrite(client, QUERIES) == EXPECTED
    with serving(rewritten, never, never) as server:
        client, _ = chat(server, timeout=0.2, attempts=2)
        with pytest.raises(MomentseekError, match=r"gave no answer within 0.2 s, 2 times; check `base_url`"):
            rewrite(client, QUERIES)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ([garbage] * 4, "answered with something that is no chat completion, 4 times"),
        ([429] * 4, r"answered HTTP 429 \(no None\), 4 times"),
        ([401], r"answered HTTP 401 .*; set MOMENTSEEK_CHAT_KEY"),
        ([404], r"answered HTTP 404 .*; check `base_url` and `model`"),
    ],
)
def test_gives_up_in_one_sentence(plan, sentence):
    with serving(rewritten, *plan) as server:
        client, _ = chat(server)
        with pytest.raises(MomentseekError, match=sentence):
            rewrite(client, QUERIES)


def test_nobody_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = ChatRewriter(f"http://127.0.0.1:{free.getsockname()[1]}", "m", 1.0, 2, sleep=lambda _: None)
        with pytest.raises(MomentseekError, match=r"cannot be reached .*, 2 times"):
            rewrite(client, ["x"])


def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    monkeypatch.setenv("MOMENTSEEK_CHAT_KEY", "sesame-123")
    with serving(rewritten, 401) as server:
        client, _ = chat(server)
        with pytest.raises(MomentseekError) as error:
            rewrite(client, QUERIES)
        assert server.requests[0]["key"] == "Bearer sesame-123"
    assert "sesame-123" not in str(error.value)


def test_what_is_asked():
    with serving(rewritten) as server:
        client, _ = chat(server)
        rewrite(client, QUERIES, attempt=1)
        (request,) = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["temperature"]) == ("some-model", 0.2)
    assert request["messages"][1]["content"] == "1. Ross sits.\n2. A dog barks.\n3. Ross and Ross eat."


def test_strict_parsing():
    assert parse_answer("**1.** a\n[2] b", 2) == [None, None]
    assert parse_answer("(1) a\n2: b\n99999999999999999999. c", 2) == ["a", "b"]
    assert parse_answer("1. a man says 2. no", 2) == ["a man says 2. no", None]
