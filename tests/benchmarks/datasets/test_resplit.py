"""Re-splitting: the published sets, the literal readings, and the rules one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from momentseek.benchmarks.datasets.common import tally
from momentseek.benchmarks.datasets.pairs import merge_truths
from momentseek.benchmarks.datasets.resplit import RECIPES, SPLIT_NAMES, Recipe, compare_membership, resplit
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_corpus, read_truth

CD = ("train", "val", "test_iid", "test_ood")


@pytest.fixture(scope="module")
def charades(data):
    return merge_truths([read_truth(data / f"charades-cd/charades_{part}.json", invalid="keep") for part in CD])


@pytest.fixture(scope="module")
def activitynet(data):
    parts = ("train", "val", "test")
    return merge_truths([read_truth(data / f"activitynet-captions/{part}.json", invalid="keep") for part in parts])


@pytest.fixture(scope="module")
def published(data):
    return read_truth(data / "charades-cd/charades_test_ood.json", invalid="keep")


@pytest.fixture(scope="module")
def original(data):
    corpus = read_corpus(data / "charades-sta/charades_decoded_durations.json")
    files = [data / f"charades-sta/charades_sta_{part}.txt" for part in ("train", "test")]
    return merge_truths([read_truth(f, corpus=corpus, invalid="keep") for f in files])


def test_charades_cd_is_the_published_set(charades, published):
    done = resplit(charades, RECIPES["charades-cd"])
    assert [done.sizes[s][0] for s in SPLIT_NAMES] == [4564, 333, 333, 1442]
    assert done.sizes["test_ood"] == (1442, 3375)
    same = compare_membership("test_ood", done.splits["test_ood"], published)
    assert (same.videos.iou, same.pairs.iou) == (1.0, 1.0)


def test_charades_cd_from_the_original_text_files(original, published):
    done = resplit(original, RECIPES["charades-cd"])
    same = compare_membership("test_ood", done.splits["test_ood"], published)
    assert (same.videos.iou, same.pairs.iou) == (1.0, 1.0)


@pytest.mark.figures
def test_other_choices_on_the_original_text_files(original, published):
    # Four moments end before they start; the published files have them turned round.
    kept = resplit(original, replace(RECIPES["charades-cd"], swap=False))
    assert compare_membership("", kept.splits["test_ood"], published).videos.iou == pytest.approx(1442 / 1445)
    for ties, size, iou in (("ood", (1441, 3369), 0.7644), ("train", (1036, 2257), 0.5693)):
        literal = resplit(original, replace(RECIPES["paper"], ties=ties)).splits["test_ood"]
        assert (len(literal.videos), len(literal)) == size
        assert compare_membership("", literal, published).videos.iou == pytest.approx(iou, abs=5e-5)


@pytest.mark.parametrize(
    ("changes", "videos", "pairs", "iou"),
    [
        pytest.param({"bandwidth": 0.030}, 1454, 3402, 0.932, marks=pytest.mark.figures),
        pytest.param({"bandwidth": 0.036}, 1450, 3390, 0.977, marks=pytest.mark.figures),
        pytest.param({"bandwidth": 0.05}, 1449, 3368, 0.802, marks=pytest.mark.figures),
        ({"clip": True}, 1441, 3375, 0.860),
        pytest.param({"share": 3226 / 16128}, 1443, 3377, 0.999, marks=pytest.mark.figures),
        pytest.param({"bandwidth": "scott"}, 1440, 3369, 0.763, marks=pytest.mark.figures),
        pytest.param({"bandwidth": "scott", "ties": "train"}, 1038, 2265, 0.570, marks=pytest.mark.figures),
    ],
)
def test_other_choices_on_charades(charades, published, changes, videos, pairs, iou):
    done = resplit(charades, replace(RECIPES["charades-cd"], **changes))
    assert done.sizes["test_ood"] == (videos, pairs)
    same = compare_membership("test_ood", done.splits["test_ood"], published)
    assert same.videos.iou == pytest.approx(iou, abs=0.0006)


def test_the_literal_text_on_charades(charades, published):
    done = resplit(charades, RECIPES["paper"])
    assert done.sizes["test_ood"] == (1440, 3369)
    same = compare_membership("test_ood", done.splits["test_ood"], published).videos
    assert (round(100 * same.precision, 1), round(100 * same.recall, 1)) == (86.6, 86.5)


@pytest.mark.figures
def test_activitynet_cd_has_the_published_size_whatever_the_bandwidth(activitynet):
    assert (len(activitynet.videos), len(activitynet)) == (14926, 71957)
    found = [resplit(activitynet, replace(RECIPES["activitynet-cd"], bandwidth=h)) for h in (0.0012, 0.0013, 0.0014)]
    assert [d.sizes["test_ood"] for d in found] == [(2450, 13578)] * 3
    assert len({d.splits["test_ood"].videos for d in found}) == 1
    assert [found[1].sizes[s][0] for s in SPLIT_NAMES] == [10984, 746, 746, 2450]
    assert ((found[1].splits["test_ood"].start >= found[1].splits["test_ood"].end).sum()) == 4


@pytest.mark.figures
def test_the_literal_text_on_activitynet(activitynet):
    text = replace(RECIPES["paper"], long_moments=0.5, long_strict=True)
    assert resplit(activitynet, text).sizes["test_ood"] == (293, 1334)


def table(videos):
    """Videos of 100 s from ``{name: [(start, end), …]}``."""
    rows = [(v, s, e) for v, spans in videos.items() for s, e in spans]
    return Judgements.from_groups(
        range(len(rows)),
        [1] * len(rows),
        [r[0] for r in rows],
        [r[1] for r in rows],
        [r[2] for r in rows],
        durations=dict.fromkeys(videos, 100.0),
        queries=[f"sentence {i}" for i in range(len(rows))],
    )


COMMON = {f"c{i}": [(0, 20), (0, 20)] for i in range(20)}
RULES = Recipe(bandwidth=0.05, share=0.09)  # 4 of 46 pairs


def test_ties_and_long_moments():
    pairs = table({**COMMON, "most": [(40, 50), (60, 75)], "half": [(30, 45), (0, 20)], "long": [(35, 85), (0, 20)]})
    names = {s: set(t.videos) for s, t in resplit(pairs, RULES).splits.items()}
    assert names["test_ood"] == {"most", "half", "long"}
    strict = resplit(pairs, replace(RULES, ties="train"))
    assert strict.splits["test_ood"].videos == ("most",)
    short = resplit(pairs, replace(RULES, long_moments=0.5))
    assert short.splits["test_ood"].videos == ("most", "half")
    assert set(resplit(pairs, replace(RULES, long_moments=0.5, long_strict=True)).splits["test_ood"].videos) == {
        "most",
        "half",
        "long",
    }
    reasons = {d.subject: d.reason for d in short.decisions}
    assert reasons["half"] == "half or more of its pairs are rare"
    assert reasons["long"].startswith("it has a long moment; ")
    evidence = {d.subject: d.evidence for d in short.decisions}
    assert evidence["long"] == {"pairs": 2, "rare": 1, "longest": 0.5}


def test_every_pair_once_and_no_video_twice():
    pairs = table({**COMMON, "most": [(40, 50), (60, 75)], "other": [(50, 90), (45, 70)]})
    done = resplit(pairs, replace(RULES, val_share=0.2, iid_share=0.2))
    ids = [q for s in done.splits.values() for q in s.query_ids]
    assert sorted(ids) == sorted(pairs.query_ids)
    videos = [v for s in done.splits.values() for v in s.videos]
    assert sorted(videos) == sorted(pairs.videos)
    assert {d.subject: d.outcome for d in done.decisions} == {v: s for s, t in done.splits.items() for v in t.videos}
    assert sum(n for reasons in tally(done.decisions).values() for n in reasons.values()) == len(pairs.videos)
    for split in done.splits.values():
        for query in split.query_ids:
            assert split.moments(query) == pairs.moments(query)
            assert split.text(query) == pairs.text(query)


def test_the_draw_depends_on_the_seed_and_not_on_the_order():
    spans = {**COMMON, "most": [(40, 50), (60, 75)], "other": [(50, 90), (45, 70)]}
    backwards = dict(reversed(spans.items()))
    rules = replace(RULES, val_share=0.2, iid_share=0.2)

    def drawn(videos, seed):
        return {s: frozenset(t.videos) for s, t in resplit(table(videos), replace(rules, seed=seed)).splits.items()}

    assert drawn(spans, 1) == drawn(backwards, 1)
    assert drawn(spans, 1) != drawn(spans, 2)
    assert drawn(spans, 1)["test_ood"] == drawn(spans, 2)["test_ood"]


@pytest.mark.parametrize(
    ("videos", "changes", "sentence"),
    [
        (
            {"a": [(0, 20)]},
            {"share": 0.5},
            "a share of 0.5 makes none of 1 pair rare: nothing to set apart; raise `share`",
        ),
        (COMMON, {"share": 1.0}, "nothing to set apart; lower `share`"),
        (
            {**COMMON, "r": [(40, 90)] * 3},
            {"long_moments": 0.5},
            "test_ood would have none of 21 videos; raise `share`",
        ),
        ({**COMMON, "r": [(40, 60)] * 3}, {"val_share": 0.0}, "val would have none of 21 videos; raise `val_share`"),
        (
            {**COMMON, "r": [(40, 60)] * 3},
            {"iid_share": 0.01},
            "test_iid would have none of 21 videos; raise `iid_share`",
        ),
        ({**COMMON, "r": [(40, 60)] * 3}, {"val_share": 0.97}, "train would have none of 21 videos; lower `share`"),
        (COMMON, {"bandwidth": "scott"}, "all moments are on one line"),
        ({**COMMON, "r": [(40, 60)] * 3}, {"bandwidth": -1.0}, "must be positive"),
    ],
)
def test_refusals(videos, changes, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        resplit(table(videos), replace(RULES, **changes))


def test_splits_keep_durations_and_columns():
    pairs = replace(table({**COMMON, "r": [(40, 60)] * 3}), columns={"fps": tuple(range(43))})
    done = resplit(pairs, RULES)
    assert done.splits["test_ood"].columns["fps"] == (40, 41, 42)
    assert np.array_equal(done.splits["test_ood"].durations, [100.0])
