"""Dataset statistics against the papers' tables, and checks against known faults."""

from __future__ import annotations

import json

import pytest

from momentseek.benchmarks.datasets.common import normalise, tokens, words
from momentseek.benchmarks.datasets.statistics import (
    AnnotationSplit,
    as_decisions,
    compute_statistics,
    read_subtitles,
    run_checks,
)
from momentseek.benchmarks.datasets.statistics_report import statistics_json, statistics_text
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_corpus, read_truth


def split(name, rows, durations=None, **more):
    """``rows``: query id, video, start, end, words."""
    truth = Judgements.from_groups(
        [r[0] for r in rows],
        [1] * len(rows),
        [r[1] for r in rows],
        [r[2] for r in rows],
        [r[3] for r in rows],
        queries=[r[4] for r in rows],
        durations=durations,
        invalid="keep",
        **more,
    )
    return AnnotationSplit(name, truth)


TRAIN = split(
    "train",
    [
        ("1", "a", 0, 4, "The man sits down and opens a red door."),
        ("2", "a", 0, 4, "He sits."),
        ("3", "b", 5, 11, "She walks away"),
    ],
    {"a": 10.0, "b": 10.0},
)
TEST = split("test", [("4", "b", 5, 11, "She walks away!"), ("5", "c", 3, 2, "She walks away again")], {"b": 10.0})


def found(checks):
    return {(c.check, c.split): c.count for c in checks if c.count}


def test_moments_and_videos_count_once():
    one = compute_statistics([TRAIN], "train")
    assert (one.queries, one.pairs, one.moments, one.videos) == (3, 3, 2, 2)
    assert (one.words.least, one.words.mean, one.words.most) == (2, 14 / 3, 9)
    assert one.tokens_per_query == (10 + 3 + 3) / 3
    assert (one.moment_seconds.mean, one.moment_seconds.total) == (5, 10)
    assert (one.video_seconds.mean, one.ratio) == (10, pytest.approx(0.5))
    assert one.verbs_per_query == pytest.approx(4 / 3)
    both = compute_statistics([TRAIN, TEST], "total")
    assert (both.queries, both.pairs, both.moments, both.videos) == (5, 5, 3, 3)
    assert both.video_seconds.total == 20
    assert both.vocabulary == len(set(words("the man sits down and opens a red door he she walks away again")))


def test_graded_moments():
    truth = Judgements.from_rows([("q", "a", 0, 5, 4), ("q", "b", 0, 5, 0), ("r", "a", 0, 5, 1)])
    one = compute_statistics([AnnotationSplit("s", truth)], "s")
    assert (one.relevant_per_query, one.levels) == (1.0, {"0": 1, "1": 1, "4": 1})
    assert one.words.mean is None
    assert one.ratio is None
    text = statistics_text([one], run_checks([AnnotationSplit("s", truth)]))
    assert "of relevance 4" in text
    assert "words" not in text.split("Nothing found")[0]


def test_unknown_durations_in_one_file_are_taken_from_the_other():
    without = split("x", [("1", "a", 0, 4, "w")])
    assert compute_statistics([without, TRAIN], "t").video_seconds.total == 20
    assert compute_statistics([TRAIN, without], "t").video_seconds.total == 20


def test_every_check():
    checks = run_checks([TRAIN, TEST])
    assert found(checks) == {
        ("end beyond the video", "train"): 1,
        ("end beyond the video", "test"): 1,
        ("start >= end", "test"): 1,
        ("fewer than 8 words", "train"): 2,
        ("fewer than 8 words", "test"): 2,
        ("video also in another split", "train"): 1,
        ("video also in another split", "test"): 1,
        ("words also asked in another split", "train"): 1,
        ("words also asked in another split", "test"): 1,
    }
    assert len(as_decisions(checks)) == 11
    assert "train: 1 end beyond the video (3: 5–11 s of b, which lasts 10 s)" in statistics_text([], checks)
    assert found(run_checks([TRAIN], min_words=0)) == {("end beyond the video", "train"): 1}


def test_duplicates_are_of_different_queries():
    again = split("s", [("1", "a", 0, 4, "x"), ("2", "a", 0, 4, "x"), ("3", "a", 0, 4, "y"), ("4", "a", 0, 5, "x")])
    (duplicate,) = [c for c in run_checks([again]) if c.check.startswith("exact")]
    assert [f.words() for f in duplicate.found] == ["2 repeats 1: x"]
    annotators = Judgements.from_groups(["q"], [2], ["a", "a"], [0, 0], [5, 5], queries=["x"], agreement=[2])
    assert not any(c.count for c in run_checks([AnnotationSplit("s", annotators)], min_words=0))


def test_copied_from_subtitles(tmp_path):
    path = tmp_path / "subtitles.jsonl"
    cues = [{"text": "(Ross:)She walks", "start": 0, "end": 1}, {"text": "away AGAIN, really.", "start": 1, "end": 2}]
    path.write_text(json.dumps({"vid_name": "c", "sub": cues}) + "\n" + json.dumps({"vid_name": "b", "sub": []}))
    said = read_subtitles(path)
    assert said == {"c": "she walks away again really", "b": ""}
    (copy,) = [c for c in run_checks([TEST], subtitles=said) if c.check.startswith("copied")]
    assert [f.words() for f in copy.found] == ["5: She walks away again"]
    part = split("s", [("1", "c", 0, 1, "he walks away"), ("2", "c", 0, 1, "...")])
    assert not any(c.count for c in run_checks([part], min_words=0, subtitles=said))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("00:01 --> 00:02", "not subtitles in TVR's form"),
        ('{"vid_name": "a"}', "record 1 has no 'sub'"),
        ('{"vid_name": "a", "sub": [{"start": 0}]}', "a cue of a has no text"),
    ],
)
def test_subtitles_of_another_form(tmp_path, text, sentence):
    (tmp_path / "s.jsonl").write_text(text)
    with pytest.raises(MomentseekError, match=sentence):
        read_subtitles(tmp_path / "s.jsonl")


def test_words():
    assert words("Dr. House’s cane_2 isn't here—or is it?") == [
        "dr",
        "house's",
        "cane",
        "2",
        "isn't",
        "here",
        "or",
        "is",
        "it",
    ]
    assert tokens("A dog, barks.") == ["a", "dog", ",", "barks", "."]
    assert normalise("It’s  ME!") == normalise("it's me")


def of(data, *names, videos=None):
    corpus = read_corpus(data / videos) if videos else None
    return [AnnotationSplit(name, read_truth(data / name, invalid="keep", corpus=corpus)) for name in names]


def test_tvr_val(data):
    one = compute_statistics(of(data, "tvr/tvr_val_release.jsonl"), "val")
    assert (one.queries, one.videos) == (10_895, 2_179)
    assert one.types == {"v": (8_097, 2_179), "vt": (1_834, 1_241), "t": (964, 681)}  # TVR, Table 13
    assert one.tokens_per_query == pytest.approx(13.4, abs=0.3)  # Table 1, all splits


@pytest.mark.figures
def test_activitynet_captions(data):
    splits = of(data, *(f"activitynet-captions/{s}.json" for s in ("train", "val", "test")))
    total = compute_statistics(splits, "total")
    assert (total.queries, total.videos) == (71_957, 14_926)
    assert total.video_seconds.mean == pytest.approx(117.6, abs=0.05)  # TVR, Table 1
    assert total.video_seconds.total / 3600 == pytest.approx(487.6, abs=0.05)
    counts = found(run_checks(splits))
    assert counts["start >= end", "activitynet-captions/train.json"] == 4
    assert counts["video also in another split", "activitynet-captions/test.json"] == 4_885


def test_charades_cd(data):
    names = [f"charades-cd/charades_{s}.json" for s in ("train", "val", "test_iid", "test_ood")]
    splits = of(data, *names)
    counts = found(run_checks(splits))
    assert sum(counts["end beyond the video", name] for name in names) == 2_286
    (absurd,) = [c for c in run_checks(splits) if c.check == "start beyond the video" and c.count]
    assert [f.video for f in absurd.found] == ["LEOL6", "AKKWU", "AKKWU"]
    assert absurd.split.endswith("ood.json")
    assert not any(key[0].startswith("video also") for key in counts)


@pytest.mark.figures
def test_papers_tables(data):
    """Figures of TVR's Table 1 (words and punctuation per query) and TVR-Ranking's (moments, videos)."""
    charades = [f"charades-sta/charades_sta_{s}.txt" for s in ("train", "test")]
    sta = compute_statistics(of(data, *charades, videos="charades-sta/charades_decoded_durations.json"), "sta")
    assert (sta.queries, sta.videos, round(sta.tokens_per_query or 0, 1)) == (16_128, 6_672, 7.2)
    tacos = compute_statistics(of(data, *(f"tacos/{s}.json" for s in ("train", "val", "test"))), "tacos")
    assert (tacos.queries, tacos.moments, tacos.videos) == (18_227, 7_069, 127)
    names = ("train_release", "val_release", "test_with_gt")
    highlights = compute_statistics(of(data, *(f"qvhighlights/highlight_{s}.jsonl" for s in names)), "qvh")
    assert (highlights.queries, highlights.pairs, highlights.videos) == (10_310, 18_367, 10_148)
    didemo = compute_statistics(of(data, *(f"didemo/{s}_data.json" for s in ("val", "test"))), "didemo")
    assert round(didemo.tokens_per_query or 0, 1) == 8.0


def test_json_holds_every_finding():
    columns = [compute_statistics([s], s.name) for s in (TRAIN, TEST)]
    whole = statistics_json([*columns, compute_statistics([TRAIN, TEST], "total")], run_checks([TRAIN, TEST]))
    assert [s["name"] for s in whole["splits"]] == ["train", "test"]
    assert whole["total"]["videos"] == 3
    assert statistics_json(columns[:1], [])["total"] == statistics_json(columns[:1], [])["splits"][0]
    json.dumps(whole, allow_nan=False)
