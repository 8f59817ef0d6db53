"""Scenes of a video, the protocol by which any captioner describes them, and one behind an OpenAI-compatible endpoint.

Frames of a scene go out as JPEG, a sentence comes back. Nothing is sent but to the address that was given. What was
asked before is answered from a folder; a budget of requests and of time bounds what a library costs.
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
"""Seconds below which a shot is described together with its neighbour."""
LONGEST_SCENE = 20.0
"""Seconds above which a shot is described in equal parts."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A stretch of a video to be described; what costs something is got when a captioner asks for it."""

    start: float
    end: float
    said: tuple[tuple[float, float, str], ...]
    """Start, end and text of what is said in it."""
    frames: Callable[[int], Sequence[bytes]]
    """Gives a number of frames in order, as JPEG."""
    clips: Callable[[], tuple[Floats, float]]
    """Gives the vectors of all clips of the video, one row each, and the seconds of a clip."""


class SceneCaptioner(Protocol):
    """What describes scenes: an exported model, or a service."""

    @property
    def name(self) -> str:
        """Its name, shown with its captions."""

    @property
    def fingerprint(self) -> str:
        """A hash that changes with what it says."""

    def describe_scene(self, scene: Scene) -> str:
        """One sentence about a scene; empty if it has nothing to say."""


def scene_spans(duration: float, cuts: Sequence[float]) -> list[tuple[float, float]]:
    """The scenes of a video by its cuts: short shots joined with what follows, long ones in equal parts.

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
"""Frames of a scene that are sent."""
MAX_SAID_CHARACTERS = 1000
"""Of what is said in a scene, so much is sent."""
MAX_FRAME_BYTES = 2 << 20
MAX_CAPTION_CHARACTERS = 500
MAX_ANSWER_TOKENS = 100


class WordlessAnswer(MomentseekError):
    """Raised when an endpoint answers without words."""


class BudgetSpent(MomentseekError):
    """Raised when no more may be asked: the requests or the time that were granted are used up."""


@dataclass
class CaptionBudget:
    """How much may be asked of an endpoint; what was asked before is free."""

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
    """Describes scenes by a vision model behind a chat endpoint."""

    chat: ChatCompletions
    prompt: str = CAPTION_PROMPT
    cache: Path | None = None
    """Folder of answers by content; None asks every time."""
    budget: CaptionBudget = field(default_factory=CaptionBudget)

    @property
    def name(self) -> str:
        """The model and the host that answers for it."""
        return f"{self.chat.model} at {self.chat.base_url}"

    def describe(self, frames: Sequence[bytes], said: str = "") -> str:
        """One sentence about a scene: its frames as JPEG, in order, and what is said in it, if anything."""
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
        """A hash of what is asked of whom."""
        asked = f"{self.chat.base_url}\n{self.chat.model}\n{self.prompt}\n{SCENE_FRAMES}"
        return hashlib.sha256(asked.encode()).hexdigest()

    def describe_scene(self, scene: Scene) -> str:
        """One sentence about a scene; empty if the model answers without words."""
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
    """Check an address and make a captioner of it."""
    address, name, key, login = checked_address(base_url, model)
    chat = ChatCompletions(address, name, timeout, key=key, login=login)
    return EndpointCaptioner(chat, cache=cache, budget=budget or CaptionBudget())


def one_sentence(answer: str) -> str:
    """An answer as one line of printable characters, cut where it is too long.

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
    """A caption that was kept; None if there is none, or its file is damaged."""
    try:
        caption = json.loads(path.read_bytes())["caption"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return caption if isinstance(caption, str) and caption else None
