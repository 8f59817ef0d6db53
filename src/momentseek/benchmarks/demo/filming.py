"""Make the sample films: a slow pan and zoom over each picture, with subtitles or speech."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from momentseek.benchmarks.demo.films import DEMO_FILMS, FILMS, DemoFilm
from momentseek.benchmarks.demo.voice import VOICE_RATE, speak
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import missing_package as missing
from momentseek.core.errors import optional_module
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.srt import srt_text as srt

PHOTOGRAPHS = {name: (package, path) for package, found in FILMS["photographs"].items() for name, path in found.items()}
"""What a photograph shows → the package that contains it, and its path there; the packages are not imported."""


def photograph_path(name: str) -> Path:
    """Return the path of a photograph; an error if its package is not installed."""
    package, place = PHOTOGRAPHS[name]
    try:
        path = Path(str(metadata.distribution(package).locate_file(place)))
    except metadata.PackageNotFoundError:
        raise missing(package, "demo") from None
    if not path.is_file():
        raise missing(package, "demo")
    return path


def read_photograph(name: str, width: int, height: int) -> Any:
    """Read a photograph as an RGB Pillow image, no larger than the moving camera needs."""
    pillow = optional_module("PIL.Image", "demo")
    with pillow.open(photograph_path(name)) as file:
        picture = file.convert("RGB")
    scale = max(width / picture.width, height / picture.height) * 1.25
    if scale < 1:
        picture = picture.resize(
            (round(picture.width * scale), round(picture.height * scale)), pillow.Resampling.LANCZOS
        )
    return picture


PAPER, INK = (250, 250, 245), (25, 30, 45)
TITLE_SHARE = 0.13
"""Letter height of a slide's first line, relative to the slide's height; other lines have three quarters of that."""


def draw_slide(text: str, width: int, height: int) -> Any:
    """Draw a slide as an RGB Pillow image, slightly larger than the frame because the camera moves over it."""
    image, draw, font = (optional_module(f"PIL.{name}", "demo") for name in ("Image", "ImageDraw", "ImageFont"))
    wide, high = round(width * 1.25), round(height * 1.25)
    picture = image.new("RGB", (wide, high), PAPER)
    pen = draw.Draw(picture)
    at = 0.3 * high
    for number, line in enumerate(text.splitlines()):
        size = TITLE_SHARE * high * (0.75 if number else 1.0)
        letters = font.load_default(size)
        pen.text((wide / 2, at), line, INK, letters, anchor="ma")
        at += 1.8 * size
    return picture


WIDTH, HEIGHT, RATE = 480, 270, 20
ZOOM_SHARE = 0.12
"""Fraction of the picture's width by which the camera zooms in during a scene."""
FOCUS_HEIGHTS = {"astronaut": 0.05, "cameraman": 0.1}
"""Vertical position of the camera on a tall picture, from 0 (top) to 1."""
MILLISECOND = Fraction(1, 1000)
TEXT_TRACK_STYLES = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\nStyle: Default,Arial,16\n\n"
    "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
)
"""The encoder of text tracks needs styles, although players use their own."""


def make_films(
    folder: Path, films: Sequence[DemoFilm] = DEMO_FILMS, progress: Callable[[DemoFilm], None] | None = None
) -> list[Path]:
    """Write the films (and their subtitles) that do not exist yet, and return the videos' paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for film in films:
        path = folder / film.name
        if not path.is_file():
            if film.cues() and not film.track and not film.voice:
                write_bytes(path.with_suffix(".srt"), srt(film.cues()).encode())
            with TemporaryDirectory() as room:
                film_file = Path(room) / film.name
                _write(film, film_file)
                write_bytes(path, film_file.read_bytes())
        if progress:
            progress(film)
        paths.append(path)
    return paths


def _write(film: DemoFilm, path: Path) -> None:
    av = optional_module("av", "demo")
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        video = container.add_stream("libx264", rate=RATE, options={"preset": "veryfast", "crf": "23", "g": "40"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        words = container.add_stream("mov_text") if film.track else None
        if words is not None:
            words.codec_context.subtitle_header = TEXT_TRACK_STYLES.encode()
            words.time_base = MILLISECOND
        sound = container.add_stream("aac", rate=VOICE_RATE, layout="mono") if film.voice else None
        for number, picture in enumerate(_pictures(film)):
            frame = av.VideoFrame.from_image(picture)
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        if words is not None:
            for cue in film.cues():
                container.mux(_words(av, words, cue))
        if sound is not None:
            for packet in _voice_packets(av, sound, film):
                container.mux(packet)


def _voice_packets(av: Any, stream: Any, film: DemoFilm) -> Iterator[Any]:
    """Yield the speech of a film as audio packets; each line starts with its scene."""
    samples = np.zeros(round(film.seconds * VOICE_RATE), np.int16)
    for cue in film.cues():
        said, at = speak(cue.text).samples, round(cue.start * VOICE_RATE)
        room = samples[at : at + len(said)]
        room[:] = said[: len(room)]
    frame = av.AudioFrame.from_ndarray(samples[None], "s16", "mono")
    frame.sample_rate, frame.pts = VOICE_RATE, 0
    resampler = av.AudioResampler("fltp", "mono", VOICE_RATE, frame_size=stream.frame_size or 1024)
    for piece in (*resampler.resample(frame), *resampler.resample(None)):
        yield from stream.encode(piece)
    yield from stream.encode(None)


def _words(av: Any, stream: Any, cue: Cue) -> Any:
    """Encode a cue as 3GPP timed text: its length in two bytes, then its bytes."""
    text = cue.text.encode()
    packet = av.Packet(len(text).to_bytes(2, "big") + text)
    packet.stream, packet.time_base = stream, MILLISECOND
    packet.pts = packet.dts = round(cue.start * 1000)
    packet.duration = round((cue.end - cue.start) * 1000)
    return packet


def _pictures(film: DemoFilm) -> Iterator[Any]:
    """Yield every frame of a film as a Pillow image; the camera zooms in on one scene and out of the next."""
    shown = 0
    for number, (scene, _, end) in enumerate(film.times()):
        if scene.written:
            picture = draw_slide(scene.written, WIDTH, HEIGHT)
        else:
            picture = read_photograph(scene.photograph, WIDTH, HEIGHT)
        focus = FOCUS_HEIGHTS.get(scene.photograph, 0.5)
        last = round(end * RATE)
        for at in range(shown, last):
            along = (at - shown) / max(last - shown - 1, 1)
            yield _camera_view(picture, along if number % 2 == 0 else 1 - along, focus)
        shown = last


def _camera_view(picture: Any, along: float, focus: float) -> Any:
    """Return the camera's view of a picture after the fraction ``along`` of its movement."""
    wide = min(picture.width, picture.height * WIDTH / HEIGHT) * (1 - ZOOM_SHARE * along)
    high = wide * HEIGHT / WIDTH
    left = (picture.width - wide) * (0.4 + 0.2 * along)
    top = (picture.height - high) * focus
    bilinear = optional_module("PIL.Image", "demo").Resampling.BILINEAR
    return picture.resize((WIDTH, HEIGHT), bilinear, box=(left, top, left + wide, top + high))
