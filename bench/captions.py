"""Caption measures: our time against the public package's, and whether the figures are the same; captions per second.

    python bench/captions.py [--pycocoevalcap FOLDER] [--meteor] [--sentences] [--captioner]

4,885 videos of ActivityNet Captions, the first sentence of val_1 against the other sentences of val_1 and val_2 (where
the real annotations are not at hand, as many made-up captions). Each part is timed in the same process, ours and theirs
in turn, three times; the least counts. ``--pycocoevalcap`` names the folder that holds the package where it is not
installed; ``--meteor`` adds METEOR, whose Java program takes half a minute; ``--sentences`` compares our words with
Stanford's tokenizer on every sentence of the real annotations. ``--captioner`` writes captions instead of measuring
them: MMT at the paper's size, by torch and by the exported graphs, in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.moments.captions import CaptionTable
from momentseek.core.reports import text_table
from momentseek.measuring.formats import read_captions
from momentseek.measuring.measures import CaptionAlignment, CaptionMeasure, parse
from momentseek.measuring.measures.captions.ptb import PUNCTUATION, caption_words
from record import Record

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("MOMENTSEEK_DATA", ROOT.parent / "shared" / "data"))
REPEATS = 3
PARTS = {
    "BLEU@1 to 4": ("BLEU@1", "BLEU@2", "BLEU@3", "BLEU@4"),
    "ROUGE-L": ("ROUGE-L",),
    "CIDEr-D": ("CIDEr-D",),
    "METEOR": ("METEOR",),
}


def leave_one_out() -> tuple[str, list[str], list[list[str]]]:
    """What the captions are, one caption per video, and its references."""
    folder = DATA / "activitynet-captions"
    if folder.is_dir():
        first, second = (json.loads((folder / f"{name}.json").read_bytes()) for name in ("val", "test"))
        videos = [video for video in first if video in second]
        captions = [first[video]["sentences"][0] for video in videos]
        references = [first[video]["sentences"][1:] + second[video]["sentences"] for video in videos]
        return "ActivityNet Captions", captions, references
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(8000)])
    often = 1 / np.arange(1, len(words) + 1)

    def sentence() -> str:
        return " ".join(rng.choice(words, int(rng.integers(5, 25)), p=often / often.sum())) + "."

    return "made-up captions", [sentence() for _ in range(4885)], [[sentence() for _ in range(6)] for _ in range(4885)]


def timed(
    call: Callable[[], Any], repeats: int = REPEATS, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """The least seconds of some calls by a clock, and what the last returned."""
    seconds, value = [], None
    for _ in range(repeats):
        begun = clock()
        value = call()
        seconds.append(clock() - begun)
    return min(seconds), value


def ours(view: CaptionAlignment, names: tuple[str, ...]) -> list[float]:
    """Our figures of some measures, from words that are there already."""
    words = view.words("ascii")
    words._ngrams.clear()
    fresh = CaptionAlignment(view.run, view.truth)
    fresh.once(("words", "ascii"), lambda: words)
    figures = []
    for name in names:
        measure = parse(name)
        assert isinstance(measure, CaptionMeasure)
        rows = measure.statistics(fresh)
        one = rows.shape[1] == 1
        figures.append(float(np.mean(rows) if one else measure.figures(rows.sum(axis=0, keepdims=True))[0]))
    return figures


def theirs(part: str, references: Any, captions: Any) -> list[float]:
    """The public package's figures, from words that are there already."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.meteor.meteor import Meteor
    from pycocoevalcap.rouge.rouge import Rouge

    scorer = {"BLEU@1 to 4": lambda: Bleu(4), "ROUGE-L": Rouge, "CIDEr-D": Cider, "METEOR": Meteor}[part]()
    with contextlib.redirect_stdout(io.StringIO()):
        figure, _ = scorer.compute_score(references, captions)
    return [float(f) for f in (figure if isinstance(figure, list) else [figure])]


def compare_times(meteor: bool) -> None:
    """Print the table of times and of the largest difference between the figures."""
    what, captions, references = leave_one_out()
    ids = range(len(captions))
    run = CaptionTable.from_groups(ids, [[caption] for caption in captions])
    truth = CaptionTable.from_groups(ids, references)
    count = len(truth.captions)
    print(f"{what}: {len(captions):,} captions, {count:,} references\n")

    def words() -> CaptionAlignment:
        view = CaptionAlignment(run, truth)
        view.words("ascii")
        return view

    record = Record("captions")
    rows = []
    total = [0.0, 0.0]
    seconds, view = timed(words)
    given = {
        i: [{"caption": "".join(c if c.isascii() else " " for c in text)} for text in group]
        for i, group in enumerate(references)
    }
    said = {i: [{"caption": "".join(c if c.isascii() else " " for c in text)}] for i, text in enumerate(captions)}
    try:
        from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer
    except ImportError:
        print("pycocoevalcap is not here, so there is nothing to compare with (--pycocoevalcap FOLDER)\n")
        PTBTokenizer = None

    def java() -> tuple[Any, Any]:
        with open(os.devnull, "w") as nowhere, _stderr_to(nowhere):
            return PTBTokenizer().tokenize(given), PTBTokenizer().tokenize(said)

    their_references = their_captions = None
    if PTBTokenizer is None:
        rows.append(["words", f"{seconds:.2f}", "", "", ""])
    else:
        other, (their_references, their_captions) = timed(java)
        found = view.words("ascii")
        flat = [text for group in their_references.values() for text in group]
        flat += [group[0] for group in their_captions.values()]
        mine = [" ".join(tokens) for tokens in found.reference_tokens + found.caption_tokens]
        apart = sum(a != b for a, b in zip(flat, mine, strict=True))
        total = [seconds, other]
        rows.append(["words", f"{seconds:.2f}", f"{other:.2f}", f"{other / seconds:.1f}", f"{apart} sentences"])
        record.ratio("words", [seconds], "pycocoevalcap", [other])
    for part, names in PARTS.items():
        if part == "METEOR" and not meteor:
            continue
        repeats = 1 if part == "METEOR" else REPEATS
        seconds, figures = timed(lambda names=names: ours(view, names), repeats)  # type: ignore[misc]
        if their_references is None:
            rows.append([part, f"{seconds:.2f}", "", "", ""])
            continue
        other, public = timed(lambda part=part: theirs(part, their_references, their_captions), repeats)  # type: ignore[misc]
        apart = max(abs(a - b) for a, b in zip(figures, public, strict=True))
        total = [total[0] + seconds, total[1] + other] if part != "METEOR" else total
        rows.append([part, f"{seconds:.2f}", f"{other:.2f}", f"{other / seconds:.1f}", f"{apart:.0e}"])
        record.ratio(part, [seconds], "pycocoevalcap", [other])
    if total[1]:
        mine_total, other_total = total
        rows.append(["all but METEOR", *(f"{t:.2f}" for t in total), f"{other_total / mine_total:.1f}", ""])
        print(text_table(["part", "ours, s", "theirs, s", "ratio", "difference"], rows))
        rates = [len(captions) / seconds for seconds in total]
        print(f"\n{rates[0]:,.0f} captions measured per second, theirs {rates[1]:,.0f}")
    else:
        record.skip("pycocoevalcap", "is not installed")
        print(text_table(["part", "ours, s", "theirs, s", "ratio", "difference"], rows))
    record.save()


@contextlib.contextmanager
def _stderr_to(file: io.TextIOBase | Any) -> Iterator[None]:
    """Send what a child process says to stderr elsewhere."""
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def compare_sentences() -> None:
    """Print how many sentences of the real annotations have other words than Stanford's tokenizer finds."""
    import pycocoevalcap

    jar = next(Path(folder) for folder in pycocoevalcap.__path__) / "tokenizer" / "stanford-corenlp-3.4.1.jar"
    names = [
        "tvr/tvr_val_release.jsonl",
        "tvc/sample_val_predictions.jsonl",
        "didemo/val_data.json",
        "didemo/test_data.json",
    ]
    names += [f"activitynet-captions/{split}.json" for split in ("train", "val", "test")]
    names += [f"charades-sta/charades_sta_{split}.txt" for split in ("train", "test")]
    names += [f"qvhighlights/highlight_{split}.jsonl" for split in ("train_release", "val_release", "test_with_gt")]
    names += [f"tacos/{split}.json" for split in ("train", "val", "test")]
    found = {text for name in names for text in read_captions(DATA / name, invalid="keep").captions}
    sentences = sorted({" ".join(text.split()) for text in found} - {""})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sentences.txt"
        path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        command = [
            "java",
            "-cp",
            str(jar),
            "edu.stanford.nlp.process.PTBTokenizer",
            "-preserveLines",
            "-lowerCase",
            path,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.removesuffix("\n").split("\n")
    java = [[token for token in line.rstrip().split(" ") if token not in PUNCTUATION] for line in lines]
    apart = sum(a != b for a, b in zip(java, caption_words(sentences, ascii_only=False), strict=True))
    print(f"\n{len(sentences):,} different sentences of {len(names)} files: {apart} with other words than Java's")


def write_captions_per_second(moments: int = 32) -> None:
    """Print how many captions MMT of the paper's size writes per second of one core, greedily and by a beam.

    Its weights are random and its captions as long as they may be, 18 words: no captioner of this size is slower.
    """
    import torch

    from momentseek.models.captioner import CaptionerDims
    from momentseek.models.export.checkpoints import export_captioner
    from momentseek.models.zoo.mmt import MMT, MMTConfig
    from momentseek.recognition.captions.decoding import DecodingSettings
    from momentseek.recognition.captions.inputs import EOS, MomentParts, build_vocabulary, stack_moments
    from momentseek.recognition.exported.captioner import ExportedCaptioner

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    known = build_vocabulary([[f"word{i}" for i in range(8000)]], more_than=0)
    model = MMT(MMTConfig(), CaptionerDims(3072, known.words)).eval()
    with torch.no_grad():
        model.choose.bias[known.number[EOS]] = -100.0
    parts = [
        MomentParts(rng.standard_normal((6, 3072), np.float32), tuple(rng.choice(known.words[7:], 20).tolist()))
        for _ in range(moments)
    ]
    inputs, rows = stack_moments(parts, known, 3072), []
    with tempfile.TemporaryDirectory() as folder:
        export_captioner(model, "mmt", Path(folder) / "mmt")
        graphs = ExportedCaptioner(Path(folder) / "mmt", threads=1)
        for name, decoding in (("greedy", DecodingSettings()), ("beam of 2", DecodingSettings(2))):
            by_torch, by_graphs = [
                timed(work, 2, time.process_time) for work in (
                    lambda d=decoding: model.describe(inputs, d),  # type: ignore[misc]
                    lambda d=decoding: graphs.describe(parts, d),  # type: ignore[misc]
                )
            ]  # fmt: skip
            same = sum(a == b for a, b in zip(by_torch[1], by_graphs[1], strict=True))
            rates = [moments / seconds for seconds in (by_torch[0], by_graphs[0])]
            rows.append([name, *(f"{r:.1f}" for r in rates), f"{rates[1] / rates[0]:.1f}", f"{same} of {moments}"])
    print(text_table(["decoding", "torch, captions/s", "ONNX, captions/s", "ratio", "same captions"], rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pycocoevalcap", metavar="FOLDER", help="where the package lies, if it is not installed")
    parser.add_argument("--meteor", action="store_true", help="measure METEOR too")
    parser.add_argument("--sentences", action="store_true", help="compare words on all real sentences")
    parser.add_argument("--captioner", action="store_true", help="write captions instead of measuring them")
    chosen = parser.parse_args()
    if chosen.captioner:
        write_captions_per_second()
        sys.exit()
    if chosen.pycocoevalcap:
        sys.path.append(chosen.pycocoevalcap)
    compare_times(chosen.meteor)
    if chosen.sentences:
        compare_sentences()
