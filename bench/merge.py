"""What it costs to put the answers of many shards together: simulated answers, each as full as a shard can give one.

    python bench/merge.py [--shards 1,4,16,64,256,1000]

A shard lists 100 videos and finds 400 cues, lines and captions each, 100 names and 100 videos by the meaning of what is
said; spans are on the best 100 videos of all. The time is that of one processor, in the process that was asked.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from momentseek.library.word_counts import TextRows
from momentseek.search.confidence import Scale
from momentseek.search.hit import StreamHit
from momentseek.search.requests import CardIndex, FoundMoments, VideoCards
from momentseek.search.streams.sounds import best_sounds
from momentseek.search.streams.span_search import SearchedVideos, VideoList, join_lists, seek_spans
from momentseek.search.streams.speech import MeantCues
from momentseek.search.streams.timed_text import MAX_TEXTS, TextKind
from momentseek.search.streams.vision import PageBudget

KINDS: tuple[TextKind, ...] = ("cues", "lines", "captions", "names")
VIDEOS = 100


def make_answers(shards: int) -> tuple[dict[int, tuple[VideoList, ...]], dict[int, FoundMoments]]:
    """What scans list in each shard, and what the shards find."""
    rng = np.random.default_rng(0)
    lists: dict[int, tuple[VideoList, ...]] = {}
    answers: dict[int, FoundMoments] = {}
    for shard in range(shards):
        ids = np.sort(rng.choice(10**6, 400, replace=False)) * shards + shard
        scores = np.sort(rng.random(400))[::-1]
        zeros = np.zeros(400)
        said = ["what is said here"] * 400
        table = np.stack([ids, ids, scores, zeros, zeros + 1, zeros, zeros])
        holds = np.ones((400, 3), bool)
        texts = {kind: TextRows(table[:, :n].copy(), holds[:n], said[:n]) for kind in KINDS for n in [MAX_TEXTS[kind]]}
        meant = MeantCues(
            ids[:100], zeros[:100].astype(np.int64), scores[:100], zeros[:100], zeros[:100] + 1, scores[:100]
        )
        lists[shard] = (VideoList(ids[:VIDEOS], scores[:VIDEOS].astype(np.float32)),)
        cards = VideoCards(ids, zeros + 30, [f"{id}" for id in ids])
        answers[shard] = FoundMoments(None, (), None, texts, meant, (), cards)
    for shard, ids in join_lists(lists, VIDEOS).items():
        hits = [[StreamHit(int(id), 0.0, 3.0, 0.5, "fair", 1.0)] * 2 for id in ids]
        searched = SearchedVideos(ids, np.linspace(1, 0.5, len(ids)), hits)
        answers[shard] = replace(answers[shard], searched=searched)
    return lists, answers


def merge(lists: dict[int, tuple[VideoList, ...]], answers: dict[int, FoundMoments]) -> None:
    """All that a search does to make one answer of many."""
    join_lists(lists, VIDEOS)
    searched = [answer.searched for answer in answers.values() if answer.searched is not None]
    scores, found = SearchedVideos.join(searched, VIDEOS)
    seek_spans(scores, PageBudget(Scale(0.0, 0.1, 4000), 40), lambda ids: [found[id] for id in ids])
    MeantCues.join([answer.meant for answer in answers.values() if answer.meant is not None])
    best_sounds([match for answer in answers.values() for match in answer.sounds])
    for kind in KINDS:
        TextRows.join([answer.texts[kind] for answer in answers.values()], MAX_TEXTS[kind])
    cards = CardIndex()
    cards.add({shard: answer.cards for shard, answer in answers.items()})
    cards.find(scores)


def measure_merge(shards: int, times: int = 50) -> tuple[float, float]:
    """Seconds of a processor to merge full answers of so many shards: the median of several times, and the least."""
    lists, answers = make_answers(shards)
    took = []
    for _ in range(times + 2):
        begun = time.process_time()
        merge(lists, answers)
        took.append(time.process_time() - begun)
    return float(np.median(took[2:])), min(took)


def print_merges(shards: list[int]) -> None:
    """A line for each number of shards."""
    for number in shards:
        median, least = measure_merge(number)
        print(f"merging {number:,} full answers: {1000 * median:.2f} ms of a processor (at best {1000 * least:.2f})")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", default="1,4,16,64,256,1000")
    print_merges([int(number) for number in parser.parse_args().shards.split(",")])


if __name__ == "__main__":
    main()
