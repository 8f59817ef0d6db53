"""Scenes of a video, the captioner protocol, and a captioner that uses an OpenAI-compatible endpoint.

It sends the frames of a scene as JPEG and gets a sentence back. Nothing is sent anywhere but to the given address.
Earlier answers are cached in a folder; a budget of requests and of time limits the cost of a library.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.recognition.chat import ChatCompletions, checked_address

if TYPE_CHECKING:
    from momentseek.recognition.captions.inputs import Floats


SHORTEST_SCENE = 4.0
"""A shorter shot is described together with its neighbour."""
LONGEST_SCENE = 20.0
"""A longer shot is described in equal parts."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A part of a video to describe; frames and vectors are computed only if the captioner needs them."""

    start: float
    end: float
    said: tuple[tuple[float, float, str], ...]
    """Start, end and text of what is said in it."""
    frames: Callable[[int], Sequence[bytes]]
    """Returns a number of frames in order, as JPEG."""
    clips: Callable[[], tuple[Floats, float]]
    """Returns the vectors of all clips of the video, one row each, and the length of a clip in seconds."""


class SceneCaptioner(Protocol):
    """Describes scenes, with an exported model or a service."""

    @property
    def name(self) -> str:
        """Its name, shown with its captions."""

    @property
    def fingerprint(self) -> str:
        """A hash that changes whenever its captions do."""

    def describe_scene(self, scene: Scene) -> str:
        """Return one sentence about a scene, or an empty text."""


def scene_spans(duration: float, cuts: Sequence[float]) -> list[tuple[float, float]]:
    """Return the scenes of a video from its cuts: short shots are joined with the next, long ones split equally.

    >>> scene_spans(50.0, [1.0, 8.0])
    [(0.0, 8.0), (8.0, 22.0), (22.0, 36.0), (36.0, 50.0)]
    """
    edges = [0.0]
    for cut in sorted(cuts):
        if cut - edges[-1] >= SHORTEST_SCENE and duration - cut >= SHORTEST_SCENE:
            edges.append(float(cut))
    out = []
    for start, end in pairwise([*edges, float(duration)]):
        parts = max(1, -int(-(end - start) // LONGEST_SCENE))
        times = [*(start + (end - start) * i / parts for i in range(parts)), end]
        out += list(pairwise(times))
    return [(start, end) for start, end in out if end > start]


CAPTION_PROMPT = (
    "These frames, in order, are from one scene of a video. Say in one plain English sentence who does what, where and "
    "with what. Do not name people you are not told of, and do not say that these are frames."
)
MAX_FRAMES = 8
SCENE_FRAMES = 4
"""Number of frames sent per scene."""
MAX_SAID_CHARACTERS = 1000
"""Maximum length of the transcript sent with a scene."""
MAX_FRAME_BYTES = 2 << 20
MAX_CAPTION_CHARACTERS = 500
MAX_ANSWER_TOKENS = 100


class WordlessAnswer(MomentseekError):
    """Raised when an endpoint answers without words."""


class BudgetSpent(MomentseekError):
    """Raised when the budget of requests or time is used up."""


@dataclass
class CaptionBudget:
    """A limit on the requests to an endpoint; cached answers are free."""

    requests: int | None = None
    seconds: float | None = None
    spent: int = 0
    began: float = field(default_factory=time.monotonic)

    def take(self) -> None:
        """Count one request, or refuse it."""
        if self.requests is not None and self.spent >= self.requests:
            raise BudgetSpent(f"the budget of {self.requests:,} requests is used up; grant more, and run it again")
        if self.seconds is not None and time.monotonic() - self.began >= self.seconds:
            raise BudgetSpent(f"the budget of {self.seconds:g} s is used up; grant more, and run it again")
        self.spent += 1


@dataclass(frozen=True)
class EndpointCaptioner:
    """Describes scenes with a vision model behind a chat endpoint."""

    chat: ChatCompletions
    prompt: str = CAPTION_PROMPT
    cache: Path | None = None
    """Folder of cached answers; None disables the cache."""
    budget: CaptionBudget = field(default_factory=CaptionBudget)

    @property
    def name(self) -> str:
        """The model and its host."""
        return f"{self.chat.model} at {self.chat.base_url}"

    def describe(self, frames: Sequence[bytes], said: str = "") -> str:
        """Return one sentence about a scene, given its frames as JPEG in order and what is said in it, if anything."""
        if not frames or len(frames) > MAX_FRAMES:
            raise MomentseekError(f"a scene is described by 1 to {MAX_FRAMES} frames, not {len(frames)}")
        for frame in frames:
            if not frame.startswith(b"\xff\xd8") or len(frame) > MAX_FRAME_BYTES:
                raise MomentseekError(f"a frame must be a JPEG of at most {MAX_FRAME_BYTES >> 20} MiB")
        text = f"{self.prompt}\nWhat is said meanwhile: {said}" if said else self.prompt
        kept = self._cache_file(text, frames)
        if kept is not None and (found := _read_kept(kept)) is not None:
            return found
        self.budget.take()
        pictures = [f"data:image/jpeg;base64,{base64.b64encode(frame).decode()}" for frame in frames]
        content = [{"type": "text", "text": text}]
        parts = [*content, *({"type": "image_url", "image_url": {"url": url}} for url in pictures)]
        caption = one_sentence(self.chat.complete([{"role": "user", "content": parts}], max_tokens=MAX_ANSWER_TOKENS))
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(kept, json.dumps({"model": self.chat.model, "caption": caption}).encode())
        return caption

    @property
    def fingerprint(self) -> str:
        """A hash of the endpoint, the model and the prompt."""
        asked = f"{self.chat.base_url}\n{self.chat.model}\n{self.prompt}\n{SCENE_FRAMES}"
        return hashlib.sha256(asked.encode()).hexdigest()

    def describe_scene(self, scene: Scene) -> str:
        """Return one sentence about a scene; empty if the model answers without words."""
        said = " ".join(text for _, _, text in scene.said)[:MAX_SAID_CHARACTERS]
        frames = scene.frames(SCENE_FRAMES)
        if not frames:
            return ""
        try:
            return self.describe(frames, said)
        except WordlessAnswer:
            return ""

    def _cache_file(self, text: str, frames: Sequence[bytes]) -> Path | None:
        if self.cache is None:
            return None
        asked = hashlib.sha256(f"{self.chat.base_url}\n{self.chat.model}\n{text}\n".encode())
        for frame in frames:
            asked.update(hashlib.sha256(frame).digest())
        return self.cache / f"{asked.hexdigest()}.json"


def open_captioner(
    base_url: str | None,
    model: str | None,
    *,
    timeout: float = 60.0,
    cache: Path | None = None,
    budget: CaptionBudget | None = None,
) -> EndpointCaptioner:
    """Check an address and return a captioner for it."""
    address, name, key, login = checked_address(base_url, model)
    chat = ChatCompletions(address, name, timeout, key=key, login=login)
    return EndpointCaptioner(chat, cache=cache, budget=budget or CaptionBudget())


def one_sentence(answer: str) -> str:
    """Return an answer as one line of printable characters, shortened if it is too long.

    >>> one_sentence(" A dog\\n\\nruns. ")
    'A dog runs.'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in answer).split())
    if not re.search(r"\w", line):
        raise WordlessAnswer("the endpoint answered without words; try another model or prompt")
    if len(line) <= MAX_CAPTION_CHARACTERS:
        return line
    return line[:MAX_CAPTION_CHARACTERS].rsplit(" ", 1)[0] + " …"


def _read_kept(path: Path) -> str | None:
    """Return a cached caption, or None if there is none or its file is damaged."""
    try:
        caption = json.loads(path.read_bytes())["caption"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return caption if isinstance(caption, str) and caption else None
