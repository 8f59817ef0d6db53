"""A vision model on this machine that speaks the chat API over HTTP: it looks at the pictures it is sent.

It knows colours. Asked for a moment of a colour it answers with the times of the frames in which that colour prevails;
asked to judge it gives the share of such frames as a level from 0 to 4. ``plan`` holds answers to give instead.
"""

from __future__ import annotations

import base64
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

COLOURS = {"red": 0, "green": 1, "blue": 2}


class ColourModel:
    """The server's state: what was asked, and what to answer out of turn."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.sizes: list[tuple[int, int]] = []
        self.plan: list[tuple[int, bytes] | Callable[[], None]] = []

    def answer(self, body: dict[str, Any]) -> str:
        """What the model says, after looking at every picture."""
        from PIL import Image

        content = body["messages"][-1]["content"]
        texts = [part["text"] for part in content if part["type"] == "text"]
        times = [float(m[1]) for text in texts if (m := re.fullmatch(r"t = ([\d.]+) s", text))]
        shown = []
        for part in content:
            if part["type"] == "image_url":
                header, data = part["image_url"]["url"].split(",", 1)
                assert header == "data:image/jpeg;base64"
                picture = Image.open(io.BytesIO(base64.b64decode(data)))
                assert picture.format == "JPEG"
                self.sizes.append(picture.size)
                shown.append(int(np.asarray(picture.convert("RGB")).reshape(-1, 3).mean(axis=0).argmax()))
        question = texts[-1].lower()
        wanted = next((number for name, number in COLOURS.items() if re.search(rf"\b{name}\b", question)), -1)
        seen = [time for time, colour in zip(times, shown, strict=True) if colour == wanted]
        if "relevance" in question:
            return f'```json\n{{"relevance": {round(4 * len(seen) / len(shown))}}}\n```'
        if not seen:
            return "[]"
        half = (times[1] - times[0]) / 2 if len(times) > 1 else 0.5
        return f'Sure!\n```json\n[{{"start": {seen[0] - half}, "end": {seen[-1] + half}, "confidence": 0.9}}]\n```'


@contextmanager
def serve_colour_model() -> Iterator[ColourModel]:
    """A colour model behind ``model.url``."""
    model = ColourModel()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.asked.append(body)
            model.keys.append(self.headers.get("Authorization", ""))
            step = model.plan.pop(0) if model.plan else None
            if callable(step):
                step()
                step = None
            status, data = step or (200, self._completion(body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _completion(self, body: dict[str, Any]) -> bytes:
            words = model.answer(body)
            choice = {"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
            pictures = sum(part["type"] == "image_url" for part in body["messages"][-1]["content"])
            usage = {"prompt_tokens": 100 * pictures + 20, "completion_tokens": 30}
            return json.dumps({"id": "1", "model": body["model"], "choices": [choice], "usage": usage}).encode()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield model
        server.shutdown()
        thread.join()
