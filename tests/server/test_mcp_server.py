"""The library for chat assistants, asked by the protocol's own client: in this process, over a pipe and over HTTP."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from processes import LIGHT, start_momentseek

pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from momentseek.core.errors import MomentseekError
from momentseek.media.probe import probe
from momentseek.server.mcp_server import McpTools, make_mcp_server, mcp_app

TOOLS = {"search_moments", "open_moment", "get_transcript", "list_videos", "export_moments"}
Ask = Callable[..., Any]


@pytest.fixture
def tools(light: None, place: Path, tmp_path: Path) -> Iterator[McpTools]:
    opened = McpTools(place, tmp_path / "exports")
    yield opened
    opened.close()


def talk(server: Any, conversation: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with Client(server) as client:
            return await conversation(client)

    return asyncio.run(run())


def text_of(result: Any) -> str:
    assert not result.is_error, result.content
    return "\n".join(block.text for block in result.content if block.type == "text")


async def ask_everything(client: Client) -> dict[str, Any]:
    """One of each, as an assistant would; the answers by tool."""
    listed = await client.list_tools()
    found = (await client.call_tool("search_moments", {"query": "red", "limit": 3})).structured_content
    moment = found["hits"][0]["moment"]
    return {
        "tools": {tool.name for tool in listed.tools},
        "search_moments": found,
        "open_moment": await client.call_tool("open_moment", {"moment": moment}),
        "get_transcript": text_of(await client.call_tool("get_transcript", {"video": "one.mp4"})),
        "list_videos": (await client.call_tool("list_videos", {})).structured_content,
        "wrong": await client.call_tool("open_moment", {"moment": "99:0.000-1.000"}),
    }


def check_everything(answers: dict[str, Any]) -> None:
    assert answers["tools"] == TOOLS
    found = answers["search_moments"]
    assert len(found["hits"]) <= 3
    first = found["hits"][0]
    assert first["end"] > first["start"]
    assert first["level"] in ("strong", "fair", "weak")
    assert "seen #1" in first["why"]
    picture, facts = answers["open_moment"].content
    assert base64.b64decode(picture.data)[8:12] == b"WEBP"
    assert first["moment"] in facts.text
    assert answers["get_transcript"] == "[0:01.0] The dogs were running.\n[0:07.0] It is green."
    assert answers["list_videos"]["total"] == 2
    assert answers["wrong"].is_error
    assert "there is no video 99" in answers["wrong"].content[0].text


def test_an_assistant_in_this_process(tools: McpTools) -> None:
    check_everything(talk(make_mcp_server(tools), ask_everything))


def test_exports_go_to_their_folder_and_overwrite_nothing(tools: McpTools, tmp_path: Path) -> None:
    async def export(client: Client) -> list[Any]:
        hits = (await client.call_tool("search_moments", {"query": "red"})).structured_content["hits"]
        given = {"moments": [hits[0]["moment"]], "title": "../../red"}
        return [await client.call_tool("export_moments", {**given, "kind": kind}) for kind in ("edl", "clips", "edl")]

    edl, clips, again = talk(make_mcp_server(tools), export)
    assert text_of(edl) == str(tmp_path / "exports" / "red.edl")
    assert "* FROM CLIP NAME" in (tmp_path / "exports" / "red.edl").read_text()
    assert probe(Path(text_of(clips))).duration > 1
    assert again.is_error
    assert "red.edl: already exists" in again.content[0].text


def test_without_a_folder_the_text_is_the_answer(light: None, place: Path) -> None:
    opened = McpTools(place, local=False)

    async def export(client: Client) -> list[Any]:
        hits = (await client.call_tool("search_moments", {"query": "red"})).structured_content["hits"]
        return [
            await client.call_tool("export_moments", {"moments": [hits[0]["moment"]], "kind": kind})
            for kind in ("edl", "clips")
        ]

    try:
        edl, clips = talk(make_mcp_server(opened), export)
    finally:
        opened.close()
    assert "* FROM CLIP NAME" in text_of(edl)
    assert str(place.parent) not in text_of(edl)  # others need not know where files lie
    assert clips.is_error
    assert "momentseek mcp --out FOLDER" in clips.content[0].text


@pytest.mark.slow
def test_an_assistant_that_starts_the_command(place: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=[str(LIGHT), "mcp", "--library", str(place)], env=dict(os.environ)
    )
    check_everything(talk(stdio_client(command), ask_everything))


@pytest.mark.slow
def test_an_assistant_that_connects_by_an_address(place: Path) -> None:
    server = start_momentseek("mcp", "--http", "--port", 0, "--library", place, light=True)
    try:
        address = server.stderr.readline().split()[-1]
        check_everything(talk(address, ask_everything))
        home = {"Host": "attacker.example", "Accept": "application/json, text/event-stream"}
        assert httpx.post(address, json={}, headers=home).status_code == 421
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_others_need_a_token(tools: McpTools) -> None:
    server = make_mcp_server(tools)
    with pytest.raises(MomentseekError, match=r"others can reach 0\.0\.0\.0, so a token is needed"):
        mcp_app(server, "0.0.0.0", None)
    app = mcp_app(server, "0.0.0.0", "secret")

    async def post(**headers: str) -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://films.local") as client:
            return (await client.post("/elsewhere", json={}, headers=headers)).status_code

    assert asyncio.run(post()) == 401
    assert asyncio.run(post(Authorization="Bearer wrong")) == 401
    assert asyncio.run(post(Authorization="Bearer secret")) == 404  # let through
