"""How well what is said is found in other words: by single cues, by passages, and by the product from end to end.

    python bench/said.py DATA [--library DIR] [--videos N]

DATA is a folder with ``activitynet-captions`` and ``real-videos``; what is missing is left out and named.

1. Paraphrases. Two people described the same videos of ActivityNet Captions. The sentences of one, cut into cues of
   about six words as subtitles are, are what is said; a sentence of the other for each video is a query. Printed: the
   mean reciprocal rank of the right video with 95 % bootstrap intervals by query, and the gain over single cues, for
   the nearest cue, the mean of the vectors of a passage's cues, the vector of a passage, and what a search takes.
2. Speech. Queries written by reading what whisper-base heard in ``real-videos``, in other words, and queries for what
   nobody says there. Half of them were used to choose the two thresholds (*tune*). A hit is right if it overlaps the
   cues that are meant.

What it does not show: descriptions are no conversation, the library of speech is tiny, one person wrote the queries.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import momentseek as ms
from momentseek.core.reports import text_table
from momentseek.library.cue_vectors import encode_cues, passage_rows, passages
from momentseek.library.encoders import installed_speech_encoder
from momentseek.measuring.resampling import bootstrap_interval
from momentseek.media.subtitles.cues import Cue
from momentseek.search.streams.speech import CUE_SHARE

CUE_WORDS, WORD_SECONDS = 6, 0.4
PARAPHRASES = [
    ("somebody admits that it is hard to ask others for support", "r089", 0.2, 2.4),
    ("wanting to improve at something", "r089", 3.4, 4.5),
    ("what a person is bad at", "r089", 0.2, 4.5),
    ("how to make hot chocolate", "r068", 0.2, 6.1),
    ("putting chocolate powder into a pitcher", "r068", 0.2, 6.1),
    ("makeup tutorial for the eyes", "r027", 0.2, 6.4),
    ("circular movements of the brush from the edge", "r027", 0.2, 6.4),
    ("a security feature of euro cash", "r090", 0.2, 6.5),
    ("the institution that guarantees the euro", "r090", 1.1, 6.5),
    ("somebody expresses gratitude", "r055", 0.2, 1.8),
    ("what the small jeans pocket is good for", "r044", 0.2, 5.4),
    ("a new music player is presented", "r044", 6.3, 13.2),
    ("Apple announces a gadget", "r044", 6.3, 13.2),
    ("an unusual ingredient that makes the dish better", "r069", 18.8, 21.1),
    ("replace the mayo by another sauce", "r069", 21.9, 24.0),
    ("melting fat in a frying pan", "r069", 37.4, 45.7),
    ("do not put salt in too early", "r069", 46.1, 49.3),
    ("add spices at the end", "r069", 51.7, 55.5),
    ("beat the eggs with some water", "r069", 24.6, 31.8),
    ("what goes well with it in the morning", "r069", 57.2, 59.1),
    ("a member of a cooking website praises this method", "r069", 10.3, 18.2),
    ("keep moving the spoon while it is frying", "r069", 41.3, 45.7),
    ("simply hit it hard", "r120", 8.4, 12.0),
    ("how to prepare breakfast eggs", "r069", 10.3, 60.6),
]
"""A query, the video, and when it is said; every other one was used to choose thresholds."""
ABSENT = [
    "a political debate about taxes", "a couple breaks up on the phone", "the weather forecast for tomorrow",
    "somebody orders a pizza", "a professor explains black holes", "commentary of a football match",
    "a doctor brings bad news", "how to change a tyre", "a prayer in a church", "two people quarrel about the rent",
    "directions to the train station", "a mother scolds her child", "an interview about climate change",
    "a song for a birthday", "a comedian jokes about airplanes", "a plan to rob a jewellery shop",
    "a guided meditation", "somebody proposes marriage", "a witness testifies in court",
    "the history of the Roman empire", "a soldier reports from the front", "training a puppy to sit",
    "booking a hotel room", "a telephone scam",
]  # fmt: skip

Values = NDArray[np.float64]


def cut_into_cues(record: dict[str, Any]) -> list[Cue]:
    """The sentences of a video in their order as cues of about six words, as if somebody read them aloud."""
    out: list[Cue] = []
    for _, sentence in sorted(zip(record["timestamps"], record["sentences"], strict=True)):
        words = sentence.split()
        parts = max(1, round(len(words) / CUE_WORDS))
        for at in range(parts):
            part = words[round(at * len(words) / parts) : round((at + 1) * len(words) / parts)]
            start = out[-1].end if out else 0.0
            out.append(Cue(start, start + WORD_SECONDS * len(part), " ".join(part)))
    return out


def paraphrases(folder: Path, count: int) -> list[list[str]]:
    """A table of the mean reciprocal rank of the right video, by what is compared with the query."""
    one, other = (json.loads((folder / f"{name}.json").read_text()) for name in ("val", "test"))
    ids = sorted(set(one) & set(other))
    random.Random(0).shuffle(ids)
    chance = random.Random(1)
    ids = ids[:count]
    cues = [cut_into_cues(one[id]) for id in ids]
    encoder = installed_speech_encoder()
    assert encoder is not None, "the text encoder is not installed"
    queries = np.concatenate([encoder.encode([chance.choice(other[id]["sentences"]).strip()]) for id in ids])
    scores: dict[str, list[Values]] = {"a cue": [], "mean of a passage's cues": [], "a passage": [], "as searched": []}
    for said, rows in zip(cues, encode_cues(encoder, cues), strict=True):
        assert rows is not None
        places = passages(said)
        cue = (rows[: len(said)] @ queries.T).max(axis=0)
        passage = (passage_rows(rows, said, places) @ queries.T).max(axis=0)
        mean = (passage_rows(rows[: len(said)], said, places) @ queries.T).max(axis=0)
        for name, value in zip(scores, (cue, mean, passage, np.maximum(passage, CUE_SHARE * cue)), strict=True):
            scores[name].append(value)
    lines, first = [], None
    for name, columns in scores.items():
        table = np.stack(columns, axis=1)
        right = table[np.arange(len(ids)), np.arange(len(ids))]
        gains = 1 / (1 + (table > right[:, None]).sum(axis=1))
        first = gains if first is None else first
        lines.append([name, interval(gains), interval(gains - first, "+") if name != "a cue" else ""])
    return lines


def interval(values: Values, sign: str = "") -> str:
    (low,), (high,) = bootstrap_interval(values[:, None])
    return f"{values.mean():{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def speech(library: ms.Library, asks: str) -> list[str]:
    """How often what is said in other words is found, and what nobody says is answered."""
    ranks: list[int] = []
    for query, video, start, end in PARAPHRASES:
        hits = library.search(asks.format(query), k=10)
        right = [h.rank for h in hits if Path(h.name).stem == video and h.start < end and start < h.end]
        ranks.append(right[0] if right and hits[right[0] - 1].level != "weak" else 0)
    shown = [list(library.search(asks.format(query), k=10)) for query in ABSENT]
    wrong = sum(any("speech" in hit.streams and hit.level != "weak" for hit in hits) for hits in shown)
    halves = [np.mean([1 / rank if rank else 0.0 for rank in ranks[half::2]]) for half in (0, 1)]
    found = sum(map(bool, ranks))
    return [
        asks.format("…"),
        f"{found} of {len(ranks)}",
        *(f"{half:.2f}" for half in halves),
        f"{wrong} of {len(ABSENT)}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--library", type=Path, help="where the library of real-videos is kept")
    parser.add_argument("--videos", type=int, default=800, help="videos of ActivityNet Captions")
    given = parser.parse_args(arguments)
    captions, videos = given.data / "activitynet-captions", given.data / "real-videos" / "videos"
    if captions.is_dir():
        lines = paraphrases(captions, given.videos)
        print(text_table(["nearest to the query", "MRR", "gain over a cue"], lines, align="lll"), end="\n\n")
    else:
        print(f"{captions} is not there: no paraphrases")
    if not videos.is_dir():
        print(f"{videos} is not there: no speech")
        return
    with tempfile.TemporaryDirectory() as folder, ms.Library.open(given.library or folder, create=True) as library:
        library.add([videos])
        lines = [speech(library, asks) for asks in ('said:"{}"', "{}")]
        print(text_table(["asked", "found", "MRR (tune)", "MRR (check)", "absent, by speech"], lines, align="lllll"))


if __name__ == "__main__":
    main()
