"""Checks of the installation. Each reports what it found and, if something is wrong, what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from momentseek import __version__
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.native.kernels import is_wide, kernels
from momentseek.core.plugins import check_installed
from momentseek.library.encoders import FIRST_ENCODER
from momentseek.library.location import library_folder
from momentseek.library.words import has_full_text_search
from momentseek.measuring.measures.captions.meteor import meteor_jar, what_meteor_lacks
from momentseek.recognition.encoders.registry import HUB_PREFIX
from momentseek.recognition.inventory import inventory
from momentseek.recognition.runtime import THREADS_VARIABLE, available_cores, onnx_runtime, thread_count
from momentseek.recognition.weights.files import cache_folder, models_folder

State = Literal["ok", "note", "failed"]
GB = 1e9
DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mpeg2video", "prores")
ENCODERS = ("libx264", "libwebp", "aac")
"""Encoders of ffmpeg that cutting clips and making thumbnails use."""

EXTRAS = (
    ("speech", "speech", ("faster-whisper",)),
    ("sounds", "sounds", ("ai-edge-litert",)),
    ("text on screen", "ocr", ("rapidocr",)),
    ("the page and the API", "serve", ("fastapi", "uvicorn")),
)
"""Optional features: the name, the extra that installs it, and the packages that it needs."""


@dataclass(frozen=True)
class Item:
    """One line of the report. A ``note`` is a hint; everything works without following it."""

    name: str
    state: State
    found: str
    advice: str = ""


def checkup(*, full: bool = False) -> list[Item]:
    """Run all checks; ``full`` hashes every weight file again."""
    checks: list[Callable[[], Iterator[Item]]] = [
        _python,
        _packages,
        _kernels,
        _ffmpeg,
        _extras,
        lambda: _encoders(full),
        _library,
    ]
    checks += [_machine, _sqlite, _meteor, _plugins]
    return [item for check in checks for item in check()]


def _python() -> Iterator[Item]:
    yield Item("momentseek", "ok", __version__)
    good = sys.version_info >= (3, 11)
    version = ".".join(map(str, sys.version_info[:3]))
    yield Item("python", "ok" if good else "failed", version, "" if good else "install Python 3.11 or later")


def _plugins() -> Iterator[Item]:
    for source, (names, errors) in check_installed().items():
        state: State = "note" if errors else "ok"
        yield Item(
            f"plug-ins of {source.package}",
            state,
            f"{source.version} ({', '.join(names)})",
            "; ".join(map(str, errors)),
        )


def _packages() -> Iterator[Item]:
    for package, module in (("onnxruntime", ""), ("av", "av"), ("pillow", "PIL.Image"), ("tokenizers", "tokenizers")):
        try:
            optional_module(module, "search") if module else onnx_runtime("search")
            yield Item(package, "ok", metadata.version(package))
        except MomentseekError as e:
            yield Item(package, "failed", "not installed", str(e).partition("; ")[2])
        except Exception as e:  # a system library is missing, for example
            yield Item(package, "failed", f"cannot be loaded ({e})", "install it again")


def _kernels() -> Iterator[Item]:
    if kernels() is None:
        advice = "large libraries are searched by numpy; with a C compiler: python -m momentseek.core.native.build"
        yield Item("compiled kernels", "note", "not built", advice)
    else:
        yield Item("compiled kernels", "ok", "with AVX2" if is_wide() else "for any processor")


def _ffmpeg() -> Iterator[Item]:
    try:
        import av
        from av.codec import Codec
    except ImportError:  # reported by _packages
        return
    versions = getattr(av, "ffmpeg_version_info", None) or ", ".join(
        f"{name} {'.'.join(map(str, number))}" for name, number in av.library_versions.items()
    )
    yield Item("ffmpeg", "ok", f"{versions} (inside av)")

    def missing(names: tuple[str, ...], mode: Literal["r", "w"]) -> list[str]:
        absent = []
        for name in names:
            try:
                Codec(name, mode)
            except Exception:  # av has a class for each fault
                absent.append(name)
        return absent

    for what, names, mode in (("decoders", DECODERS, "r"), ("encoders", ENCODERS, "w")):
        absent = missing(names, "r" if mode == "r" else "w")
        there = " ".join(name for name in names if name not in absent)
        advice = f"this build of av has no {', '.join(absent)}; install the official one: pip install -U av"
        yield Item(f"ffmpeg {what}", "note" if absent else "ok", there, advice if absent else "")


def _encoders(full: bool) -> Iterator[Item]:
    entries = inventory(fresh=full)
    for entry in entries:
        if entry.state == "ready":
            yield Item(entry.name, "ok", f"ready, {entry.kind}" + (", hashes checked again" if full else ""))
        elif entry.state == "damaged":
            yield Item(entry.name, "failed", "damaged", entry.problem)
        elif entry.is_packaged or entry.kind == "sound":
            advice = entry.problem.partition("; ")[2] or entry.problem
            yield Item(entry.name, "note", "absent", f"{entry.good_for}: {advice} ({entry.megabytes:,.0f} MB)")
    ready = [entry for entry in entries if entry.kind == "image-text" and entry.state == "ready"]
    if not ready:
        yield Item("an image encoder", "failed", "none is ready", "momentseek models get")
    elif all(entry.name == FIRST_ENCODER for entry in ready):
        advice = "it knows 1,000 labels and no actions; clip is far better: momentseek models get"
        yield Item("an image encoder", "note", f"only {FIRST_ENCODER} is ready", advice)
    elif not any(entry.name.startswith(HUB_PREFIX) for entry in ready):
        size = next(entry.megabytes for entry in entries if entry.name == "hub:siglip2-base")
        advice = f"a model with its own text encoder is better: momentseek models get siglip2-base ({size:,.0f} MB)"
        yield Item("an image encoder", "note", "the offline encoders are ready", advice)
    yield Item("downloads", "ok", "none; only `momentseek models get` downloads")


def _extras() -> Iterator[Item]:
    for what, extra, packages in EXTRAS:
        try:
            versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
            yield Item(what, "ok", versions)
        except metadata.PackageNotFoundError:
            yield Item(what, "note", "not installed", f"pip install 'momentseek[{extra}]'")


def _library() -> Iterator[Item]:
    try:
        folder = library_folder()
    except MomentseekError as e:
        yield Item("library", "failed", "no folder", str(e))
        return
    yield _writable("library", folder, "failed", "give another with --library or MOMENTSEEK_LIBRARY")
    yield _writable(
        "cache",
        cache_folder(),
        "note",
        "set XDG_CACHE_HOME; without a cache, starting takes longer",
    )
    yield _writable("models", models_folder(), "note", "set MOMENTSEEK_MODELS to a folder that can be written")
    free = shutil.disk_usage(_nearest(folder)).free / GB
    advice = "make room, or give another folder with --library" if free < 1 else ""
    yield Item("disk", "note" if free < 1 else "ok", f"{free:,.1f} GB free for the library", advice)


def _writable(name: str, folder: Path, otherwise: State, advice: str) -> Item:
    near = _nearest(folder)
    if near.is_dir() and os.access(near, os.W_OK | os.X_OK):
        return Item(name, "ok", f"{folder}" if near == folder else f"{folder} (will be created)")
    return Item(name, otherwise, f"{folder} cannot be written", advice)


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that exists."""
    return next((path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()), folder)


def _machine() -> Iterator[Item]:
    try:
        yield Item("cores", "ok", f"{available_cores()}; encoders use {thread_count()} threads ({THREADS_VARIABLE})")
    except MomentseekError as e:
        yield Item("cores", "failed", str(e).partition("; ")[0], str(e).partition("; ")[2])
    memory = free_memory()
    if memory is not None:
        low = memory < GB
        advice = "close other programs: an encoder needs about 0.3 to 2 GB" if low else ""
        yield Item("memory", "note" if low else "ok", f"{memory / GB:,.1f} GB free", advice)


def free_memory() -> int | None:
    """Number of bytes that are available without swapping; None if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _sqlite() -> Iterator[Item]:
    if has_full_text_search():
        yield Item("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5")
    else:
        advice = "use a Python whose sqlite3 has FTS5, such as python.org's"
        yield Item("sqlite", "failed", f"{sqlite3.sqlite_version} without FTS5", advice)


def _meteor() -> Iterator[Item]:
    lacking = what_meteor_lacks()
    if lacking:
        yield Item("METEOR", "note", "cannot be computed", f"to measure captions by METEOR, {lacking}")
    else:
        yield Item("METEOR", "ok", f"1.5, {meteor_jar()}")
