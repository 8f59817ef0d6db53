"""A Model Context Protocol (MCP) server for chat assistants, over standard input and output or HTTP.

Its tools search, open a moment, return a transcript, list videos and export moments. It changes nothing in the library,
and writes files only into the folder for exports.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from momentseek import __version__
from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue
from momentseek.search.display import clock
from momentseek.search.display import reason as why_found
from momentseek.search.export import clip_name, render, write
from momentseek.search.hit import Hit
from momentseek.server.errors import ApiError, hide_paths
from momentseek.server.hits import texts_between
from momentseek.server.routes.export import ChosenMomentIn, chosen_hits, replace_paths_by_names
from momentseek.server.routes.videos import parse_moment_id
from momentseek.server.schemas import clean_text, moment_id
from momentseek.server.settings import is_loopback

T = TypeVar("T")
Kind = Literal["csv", "json", "srt", "edl", "fcpxml", "html", "clips"]
MomentId = Annotated[str, Field(description="The `moment` of a hit, such as 7:4.500-9.000.", max_length=60)]
VideoName = Annotated[str, Field(description="The name of a video, as hits and `list_videos` give it.")]
MAX_TEXT_CHARACTERS = 20_000
"""Largest number of characters of a transcript or an export in one answer, so that assistants can read it."""
MAX_LISTED_VIDEOS = 200
PICTURE_WIDTH = 640
INSTRUCTIONS = """Searches the user's own videos for moments: what is seen, said, written on screen, or in file names.
Search first; a hit has a moment id, times and a level (strong, fair, weak). Weak hits are guesses: say so. Quote what
is said from `said` or from get_transcript, with the video's name and the time. In queries, "exact words" in quotes must
be said, said:word searches speech only, text:word what is written, in:name* limits to videos, after:2023 and
before:2024-05 to dates, -word avoids."""


class McpTools:
    """The tools, each a method; they run in one thread, which has the library open."""

    def __init__(self, folder: Path, exports: Path | None = None, *, local: bool = True) -> None:
        """Open the library; ``local`` is whether clients are on this machine, and so may see paths."""
        self._thread = ThreadPoolExecutor(1, "momentseek-mcp")
        self._exports, self._local = exports, local
        self._library = self._thread.submit(Library.open, folder, create=False).result()

    def close(self) -> None:
        """Close the library."""
        self._thread.submit(self._library.close).result()
        self._thread.shutdown()

    async def _run(self, work: Callable[[Library], T]) -> T:
        try:
            return await asyncio.wrap_future(self._thread.submit(work, self._library))
        except (MomentseekError, ApiError) as e:
            raise ToolError(str(e) if self._local else hide_paths(str(e))) from None

    async def search_moments(
        self,
        query: Annotated[str, Field(description="What to look for, in plain words.", min_length=1, max_length=2000)],
        limit: Annotated[int, Field(ge=1, le=50, description="Number of moments.")] = 10,
        weak: Annotated[bool, Field(description="Include weak hits, which are guesses.")] = False,
    ) -> dict[str, Any]:
        """Find moments in the user's videos, best match first."""

        def work(library: Library) -> dict[str, Any]:
            found = library.search(query, limit, all=weak)
            return {
                "query": clean_text(str(found.query)),
                "note": clean_text(found.note),
                "hidden_weak_hits": found.hidden,
                "hits": [_hit_record(hit) for hit in found],
            }

        return await self._run(work)

    async def open_moment(self, moment: MomentId) -> list[Any]:
        """Show a moment: a picture from its middle, and everything said and written in it."""

        def work(library: Library) -> list[Any]:
            (hit,) = _hits(library, [moment])
            return [Image(data=library.thumbnail(hit, PICTURE_WIDTH), format="webp"), _hit_record(hit)]

        return await self._run(work)

    async def get_transcript(
        self,
        video: VideoName,
        start: Annotated[float, Field(ge=0, description="Begin at this second.")] = 0.0,
        end: Annotated[float | None, Field(description="End at this second; the end of the video if left out.")] = None,
    ) -> str:
        """What is said in a video, line by line with times; if it is cut short, call again with a later `start`."""

        def work(library: Library) -> str:
            found = _video(library, video)
            cues = texts_between(library, found.id, start, found.duration if end is None else end)["said"]
            lines = [f"[{clock(cue.start)}] {clean_text(cue.text)}" for cue in cues]
            text = "\n".join(lines)
            if not lines:
                return "nothing is said there, or the video has not been transcribed (momentseek transcribe)"
            if len(text) > MAX_TEXT_CHARACTERS:
                text = text[:MAX_TEXT_CHARACTERS].rpartition("\n")[0]
                text += f"\n… cut short; continue with start={cues[text.count(chr(10)) + 1].start:.1f}"
            return text

        return await self._run(work)

    async def list_videos(
        self, name: Annotated[str, Field(description="Only videos with this in their name.")] = ""
    ) -> dict[str, Any]:
        """The videos of the library, by name."""

        def work(library: Library) -> dict[str, Any]:
            catalog: Catalog = library.store.catalog
            total, videos = catalog.page_of_videos(name, MAX_LISTED_VIDEOS, 0)
            return {"total": total, "videos": [_video_record(video) for video in videos]}

        return await self._run(work)

    async def export_moments(
        self,
        moments: Annotated[list[MomentId], Field(min_length=1, max_length=100)],
        kind: Annotated[Kind, Field(description="A table, subtitles, an editor's timeline, a page, or cut clips.")],
        title: Annotated[str, Field(max_length=100)] = "moments",
    ) -> str:
        """Export moments for editors and spreadsheets: the file's text, or where the files were written."""

        def work(library: Library) -> str:
            hits = _hits(library, moments)
            if self._exports is None:
                hits = hits if self._local else replace_paths_by_names(hits)
                if kind == "clips":
                    raise MomentseekError("clips need a folder; start the server with: momentseek mcp --out FOLDER")
                return render(hits, title, kind).text[:MAX_TEXT_CHARACTERS]
            stem = "".join(c if c.isalnum() or c in " -_" else "" for c in title).strip() or "moments"
            paths = [self._exports / (clip_name(hit) if kind == "clips" else f"{stem}.{kind}") for hit in hits]
            if taken := [path.name for path in paths if path.exists()]:
                raise MomentseekError(f"{taken[0]}: already exists; choose another title, or other moments")
            self._exports.mkdir(parents=True, exist_ok=True)
            if kind == "clips":
                for hit, path in zip(hits, paths, strict=True):
                    library.cut(hit, path)
            else:
                write(hits, title, paths[0], kind, library.thumbnail)
            return "\n".join(dict.fromkeys(str(path) for path in paths))

        return await self._run(work)


def _hits(library: Library, moments: Sequence[str]) -> list[Hit]:
    chosen = []
    for moment in moments:
        video, start, end = parse_moment_id(moment)
        chosen.append(ChosenMomentIn(video_id=video, start=start, end=end))
    return chosen_hits(library, chosen)


def _video(library: Library, name: str) -> Video:
    found = library.store.matching([name])
    if len(found) != 1:
        raise MomentseekError(f"{name!r} is {len(found):,} videos; name one of those that list_videos shows")
    return found[0]


def _hit_record(hit: Hit) -> dict[str, Any]:
    """A hit as a record for assistants, with what they need to judge it and to quote from it."""
    record = {
        "moment": moment_id(hit.video_id, hit.start, hit.end),
        "video": clean_text(hit.name),
        "start": round(hit.start, 2),
        "end": round(hit.end, 2),
        "when": f"{clock(hit.start)}–{clock(hit.end)}",
        "level": hit.level,
        "why": why_found(hit),
        "said": _texts(hit.said),
        "written": _texts(hit.written),
        "described_by_a_model": _texts(hit.described),
        "heard": _texts(hit.heard),
    }
    return {name: value for name, value in record.items() if value != "" and value != []}


def _texts(cues: Sequence[Cue]) -> list[str]:
    return [f"[{clock(cue.start)}] {clean_text(cue.text)}" for cue in cues[:20]]


def _video_record(video: Video) -> dict[str, Any]:
    return {
        "name": clean_text(video.name),
        "length": clock(video.duration),
        "lines_said": video.cues,
        "date": video.date,
        "date_is": "file" if video.recorded is None else "recording",
    }


def make_mcp_server(tools: McpTools) -> MCPServer[Any]:
    """Create the MCP server with the tools."""
    server: MCPServer[Any] = MCPServer(
        "momentseek", title="Momentseek", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for tool in (tools.search_moments, tools.get_transcript, tools.list_videos, tools.export_moments):
        server.add_tool(tool)
    server.add_tool(tools.open_moment, structured_output=False)
    return server


class TokenGuard:
    """Refuses requests without the token (``Authorization: Bearer TOKEN``)."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that has the token; answer others with 401."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "").removeprefix("Bearer ")
            if not secrets.compare_digest(given.encode(), self.token.encode()):
                refusal = JSONResponse(
                    {"error": "the token is missing or wrong; send Authorization: Bearer TOKEN"}, 401
                )
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def mcp_app(server: MCPServer[Any], host: str, token: str | None) -> ASGIApp:
    """The server as an ASGI application at ``/mcp``; a token is required if other machines can reach the host.

    Without a token, requests must name this machine as their host, to prevent DNS rebinding by other sites.
    """
    if token is None and not is_loopback(host):
        raise MomentseekError(f"others can reach {host}, so a token is needed; give --token, or set MOMENTSEEK_TOKEN")
    names = [f"{name}:*" for name in (host, "127.0.0.1", "localhost", "[::1]")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=token is None,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    app: ASGIApp = server.streamable_http_app(host=host, transport_security=security, stateless_http=True)
    return app if token is None else TokenGuard(app, token)


def run_mcp(
    folder: Path,
    *,
    exports: Path | None,
    http: tuple[str, int] | None,
    token: str | None,
    echo: Callable[[str], None],
) -> None:
    """Serve until the client closes standard input, or until Ctrl-C over HTTP."""
    tools = McpTools(folder, exports, local=http is None or is_loopback(http[0]))
    try:
        server = make_mcp_server(tools)
        if http is None:
            server.run("stdio")
            return
        host, port = http
        app = mcp_app(server, host, token)
        config = uvicorn.Config(app, host=host, port=port, log_level="warning")
        socket = config.bind_socket()
        echo(f"MCP server at http://{host}:{socket.getsockname()[1]}/mcp")
        uvicorn.Server(config).run([socket])
    finally:
        tools.close()
