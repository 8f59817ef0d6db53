"""Where the real data lies, and the two fixtures most tests start from."""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch: the tests themselves run on all cores
os.environ.setdefault("MOMENTSEEK_TRANSCRIBE", "off")  # tests of it switch it on; others need not hear their films
os.environ.setdefault("MOMENTSEEK_ENCODER", "things")  # tests of CLIP name it; others need not wait for it
os.environ.setdefault("MOMENTSEEK_SOUNDS", "off")

os.environ["MOMENTSEEK_CONFIG"] = os.path.join(os.devnull, "config.toml")  # nobody's settings: there can be none

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings
from processes import start_momentseek

from momentseek.recognition.weights.files import models_folder

os.environ.setdefault("MOMENTSEEK_MODELS", str(models_folder()))  # also for tests with a home of their own

# A busy machine is no failure, so there are no deadlines; `make test-all` looks at more examples of every property.
settings.register_profile("quick", settings.default, deadline=None, max_examples=16)
settings.register_profile("thorough", settings.default, deadline=None, max_examples=200)
settings.load_profile(os.environ.get("MOMENTSEEK_EXAMPLES", "quick"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it for what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", ROOT.parent / "shared"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[Any]:
    """Look for tests only: examples are in the package."""
    collectors = yield
    return [one for one in collectors if type(one) is pytest.Module]


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def golden() -> Path:
    """Inputs and outputs of the official evaluators."""
    return _present(SHARED / "golden")


@pytest.fixture(scope="session")
def data() -> Path:
    """Real annotations and predictions."""
    return _present(Path(os.environ.get("MOMENTSEEK_DATA", SHARED / "data")))


def _present(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not here")
    return folder


@dataclass(frozen=True)
class Outcome:
    """What a shell sees of a command that has ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def momentseek(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """``momentseek("evaluate", …, cwd=…)``: runs the whole command, in this process, which saves starting one."""
    from momentseek.cli import main

    def run(*arguments: object, cwd: Path = root) -> Outcome:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            patch.setenv("MOMENTSEEK_PLUGINS", "")  # --plugin adds its file, for child processes of this command alone
            patch.setattr(sys, "argv", ["momentseek", *map(str, arguments)])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(gc, "freeze", lambda: None)  # which is for a process that ends
            with pytest.raises(SystemExit) as end:
                main()
        texts = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
        return Outcome(int(end.value.code or 0), *texts)

    return run


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str, Callable[[Path], object]], Path]:
    """``once("sample", make)``: the folder that ``make(folder)`` filled, once for all workers of a run.

    Whoever comes first makes it, the others wait. What it holds is for reading: tests that change it take a copy.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / f"once-{name}", shared / f"once-{name}.done"
        with FileLock(shared / f"once-{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # another worker failed on it
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def sample(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The sample collection, as ``momentseek demo --into`` leaves it: ``films/``, ``library/``, and ``demo.json``."""
    for module in ("av", "onnxruntime", "skimage", "sklearn"):
        pytest.importorskip(module)

    def make(folder: Path) -> None:
        demo = start_momentseek("demo", "--into", folder, "--no-words", "--json")
        told, said = demo.communicate()
        assert demo.returncode == 0, said
        (folder / "demo.json").write_text(told)

    return once("sample", make)


@pytest.fixture(scope="session")
def make_video() -> Callable[..., Path]:
    """Writes a real video: ``make_video(path, scenes=[(2.0, (255, 0, 0)), (1.5, picture), (1, draw)], …)``.

    A scene is its seconds and a colour, an RGB array, or a function from seconds into the scene to an array; arrays
    are repeated or cropped to ``size``. ``times`` gives frame times of one's own (the scenes still say what is shown
    when), ``vfr`` drops two of five frames, ``start`` shifts all time stamps, ``audio`` adds a tone, ``rotation``
    turns the stored frames counter-clockwise and writes the display matrix that turns them back.
    """
    return _make_video


_FILMS: dict[object, bytes] = {}
"""The videos that have been made: many tests want the same, and encoding takes long."""


def _make_video(
    path: Path,
    scenes: Sequence[tuple[float, Any]] = ((2.0, (200, 30, 30)), (2.0, (30, 30, 200))),
    **settings: Any,
) -> Path:
    key = (path.suffix, tuple((seconds, _hashable(content)) for seconds, content in scenes), _hashable(settings))
    if key not in _FILMS:
        _write_video(path, scenes, **settings)
        _FILMS[key] = path.read_bytes()
    else:
        path.write_bytes(_FILMS[key])
    return path


def _hashable(value: Any) -> Any:
    """What stands for a value among the keys of a dictionary; a function stands for itself."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((name, _hashable(value[name])) for name in sorted(value))
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _write_video(
    path: Path,
    scenes: Sequence[tuple[float, Any]],
    *,
    rate: Fraction | int = 25,
    size: tuple[int, int] = (160, 120),
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    audio: bool | str = False,
    audio_seconds: float | None = None,
    rotation: int = 0,
    aspect: Fraction | None = None,
    vfr: bool = False,
    times: Sequence[float] | None = None,
    start: float = 0.0,
    options: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> None:
    import av

    whole = sum(seconds for seconds, _ in scenes)
    if times is None:
        times = [float(i / Fraction(rate)) for i in range(round(whole * rate))]
        if vfr:
            times = [t for i, t in enumerate(times) if i % 5 not in (1, 2)]
    steady = not vfr and start == 0 and np.allclose(np.diff(times) * float(rate), 1) and path.suffix != ".mkv"
    base = 1 / Fraction(rate) if steady else Fraction(1, 1000)
    turned = rotation % 180 != 0
    with av.open(str(path), "w", options={"movflags": "use_metadata_tags"} if tags else {}) as container:
        container.metadata.update(tags or {})
        stream: Any = container.add_stream(codec, rate=rate, options=options or {})
        stream.width, stream.height = (size[1], size[0]) if turned else size
        stream.pix_fmt = pix_fmt
        stream.codec_context.time_base = base
        stream.codec_context.thread_count = 1  # starting threads takes longer than these few small pictures
        if aspect is not None:
            stream.codec_context.sample_aspect_ratio = aspect
        if rotation:
            stream.set_display_rotation(-rotation)
        tone: Any = None
        if audio:
            name = audio if isinstance(audio, str) else ("libopus" if path.suffix == ".webm" else "aac")
            tone = container.add_stream(name, rate=48000, layout="mono")
        for time in times:
            picture = np.rot90(_picture(scenes, time, size), rotation // 90)
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
            frame.pts, frame.time_base = round((time + start) / base), base
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if tone is not None:
            _write_tone(container, tone, whole if audio_seconds is None else audio_seconds, start)


def _picture(scenes: Sequence[tuple[float, Any]], time: float, size: tuple[int, int]) -> Any:
    for seconds, content in scenes:
        if time < seconds - 1e-9 or content is scenes[-1][1]:
            break
        time -= seconds
    picture = np.asarray(content(max(0.0, time)) if callable(content) else content, np.uint8)
    width, height = size
    if picture.ndim == 1:
        return np.broadcast_to(picture, (height, width, 3))
    repeats = (-(-height // picture.shape[0]), -(-width // picture.shape[1]), 1)
    return np.tile(picture, repeats)[:height, :width]


def _write_tone(container: Any, stream: Any, seconds: float, start: float) -> None:
    """A tone of 440 Hz, a sharp click at every whole second."""
    import av

    t = np.arange(round(seconds * 48000)) / 48000
    wave = (0.1 * np.sin(2 * np.pi * 440 * t)).astype(np.float32)
    wave[(t % 1) < 0.002] = 0.9
    for first in range(0, len(wave), 960):
        frame = av.AudioFrame.from_ndarray(wave[None, first : first + 960], "flt", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 48000, first + round(start * 48000), Fraction(1, 48000)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


@pytest.fixture
def misbehave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let the process that decodes run some code of a test as it opens a file, whose ``name`` the code can look at."""
    from momentseek.media.sandbox.process import close_idle

    def arrange(code: str) -> None:
        place = tmp_path / "misbehaviour"
        place.mkdir()
        body = f"name = str(getattr(file, 'name', file))\n{code}\nreturn real(file, *rest, **more)"
        opened = f"def opened(file, *rest, **more):\n{textwrap.indent(body, '    ')}"
        (place / "sitecustomize.py").write_text(f"import av\nreal = av.open\n\n{opened}\n\nav.open = opened\n")
        monkeypatch.syspath_prepend(place)

    close_idle()
    yield arrange
    close_idle()
