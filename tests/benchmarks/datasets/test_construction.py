import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recognition.encoders.fakes import Words

from momentseek.benchmarks.datasets.common import tally
from momentseek.benchmarks.datasets.massive import MassiveSettings, as_truth, build_massive, draw_lots, query_lots
from momentseek.benchmarks.datasets.massive_report import (
    LABELLING_CONFIG,
    build_check_tasks,
    compare_draws,
    compare_pools,
    comparison_text,
    jaccard,
    massive_summary,
    massive_text,
    read_sides,
    why_differ,
)
from momentseek.benchmarks.datasets.sentences import encoder_similarity, prepare_source, video_similarity
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_truth, write_truth

ACTIONS = ["opens door", "closes window", "eats pizza", "reads book", "washes car", "opens the door"]
PLAIN = MassiveSettings(pool=6, positives=2, text_positive=0.75, text_negative=0.2)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def truth(videos=24, per_video=2, order=None):
    rows = []
    for v in order if order is not None else range(videos):
        for i in range(per_video):
            rows.append((f"v{v:02d}:{i}", f"v{v:02d}", 3.0 * i, 3.0 * i + 4, ACTIONS[(v * 7 + i * 3) % len(ACTIONS)]))
    ids, names, starts, ends, sentences = zip(*rows, strict=True)
    lengths = dict.fromkeys(names, 30.0)
    return Judgements.from_groups(
        ids, [1] * len(ids), names, starts, ends, durations=lengths, queries=sentences, source="test"
    )


def build(settings=PLAIN, visual=None, **more):
    data = prepare_source(truth(**more))
    return build_massive(data, encoder_similarity(Words(), data.texts), settings, visual)


def cosine(a, b):
    rows = Words().encode([a, b])
    return float(rows[0] @ rows[1])


@given(
    st.integers(2, 8), st.integers(0, 4), st.sampled_from([0.6, 0.8, 0.99]), st.sampled_from([0.1, 0.3, 0.6]),
    st.integers(0, 3), st.integers(0, 5),
)  # fmt: skip
def test_every_pool_keeps_the_rules(pool, positives, plus, minus, seed, candidates):
    settings = MassiveSettings(pool, positives, plus, minus, candidates, seed)
    result = build(settings, videos=10)
    data = result.data
    names, texts = data.truth.videos, data.truth.queries
    said = {v: [texts[q] for q in np.flatnonzero(data.own == v)] for v in range(len(names))}
    kept = {p.query for p in result.pools}
    for q, decision in enumerate(result.decisions):
        best = {v: max(cosine(texts[q], s) for s in said[v]) for v in said if v != data.own[q]}
        similar = {v for v, score in best.items() if score >= plus}
        different = {v for v, score in best.items() if score < minus}
        extra = min(len(similar), positives, candidates, pool - 1)
        assert decision.subject == data.truth.query_ids[q]
        assert decision.evidence["candidates"] == len(similar)
        assert (q in kept) == (0 < pool - 1 - extra <= len(different))
        assert (decision.outcome == "kept") == (q in kept)
    for p in result.pools:
        members = [data.own[p.query], *p.positives, *p.negatives]
        assert len(members) == len(set(members)) == pool
        for video, source, score in zip(p.positives, p.sources, p.similarity, strict=True):
            assert data.own[source] == video
            best = max(cosine(texts[p.query], s) for s in said[video])
            assert score == pytest.approx(best, abs=1e-6)
            assert cosine(texts[p.query], texts[source]) == pytest.approx(best, abs=1e-6)
            assert best >= plus
        for video in p.negatives:
            assert max(cosine(texts[p.query], s) for s in said[video]) < minus


def test_the_draw_depends_on_seed_and_names_not_on_the_files_order():
    def named(result):
        names = result.data.truth.videos
        return {
            result.data.truth.query_ids[p.query]: ([names[v] for v in p.positives], [names[v] for v in p.negatives])
            for p in result.pools
        }

    first = named(build())
    assert first == named(build())
    assert first == named(build(order=np.random.default_rng(1).permutation(24).tolist()))
    assert first != named(build(replace(PLAIN, seed=1)))


def test_the_order_of_sentences_within_a_video_changes_nothing():
    def drawn(pairs):
        data = prepare_source(pairs)
        result = build_massive(data, encoder_similarity(Words(), data.texts), PLAIN)
        names = data.truth.videos
        pools = {
            data.names[p.query]: (
                [names[v] for v in p.positives], [data.names[s] for s in p.sources], [names[v] for v in p.negatives]
            )
            for p in result.pools
        }  # fmt: skip
        asked = [
            (t["data"]["query"], t["data"]["where"], t["meta"]["side"]) for t in build_check_tasks(result, queries=5)
        ]
        return pools, sorted(asked)

    plain = truth(per_video=3)
    order = np.random.default_rng(2).permutation(len(plain)).tolist()
    names = [plain.videos[v] for v in plain.video.tolist()]
    seen = dict.fromkeys(names, -1)
    ids = []
    for name in (names[i] for i in order):
        seen[name] += 1
        ids.append(f"{name}:{seen[name]}")
    shuffled = Judgements.from_groups(
        ids, [1] * len(ids), [names[i] for i in order], plain.start[order], plain.end[order],
        durations=dict.fromkeys(names, 30.0), queries=[plain.queries[i] for i in order], source="test",
    )  # fmt: skip
    assert drawn(plain)[0]
    assert drawn(plain) == drawn(shuffled)


@pytest.mark.parametrize(
    ("encoder", "features", "parts"),
    [
        ("minilm", None, ["here minilm does, whose scale is another", "nothing is filtered by visual scores here"]),
        ("file:simcse.npz", "em.npz", ["the vectors of simcse.npz do, which may be", "EMScore, here em.npz does"]),
    ],
)
def test_why_pools_differ_depends_on_what_was_given(encoder, features, parts):
    assert all(part in why_differ(encoder, features) for part in parts)


def test_addresses_are_quoted():
    data = prepare_source(replace(truth(), videos=tuple(f"a film {i}#1" for i in range(24))))
    result = build_massive(data, encoder_similarity(Words(), data.texts), PLAIN)
    urls = {t["data"]["video_url"] for t in build_check_tasks(result, url="http://host/{video}.mp4")}
    assert all(re.fullmatch(r"http://host/a%20film%20\d+%231\.mp4", url) for url in urls)


def test_lots_are_spread_evenly():
    lots = draw_lots([str(i) for i in range(400)], 3)
    first = [int(np.argmin(query_lots(lots, f"q{i}"))) for i in range(4000)]
    assert len(set(first)) > 390
    assert np.bincount(first).max() < 40
    below = np.mean([query_lots(lots, f"q{i}") < np.uint64(1 << 63) for i in range(100)])
    assert below == pytest.approx(0.5, abs=0.01)


def test_the_file_reads_back_as_mvmr(tmp_path):
    result = build()
    write_truth(as_truth(result), tmp_path / "mvmr.json", format="mvmr")
    entry = json.loads((tmp_path / "mvmr.json").read_bytes())["v00"]
    assert list(entry) == ["duration", "timestamps", "sentences", "pos_moments", "retrieval_pool"]
    assert entry["retrieval_pool"][0][0] == "v00"
    assert [m[0] for m in entry["pos_moments"][0]] == entry["retrieval_pool"][0][1 : 1 + len(entry["pos_moments"][0])]
    read = read_truth(tmp_path / "mvmr.json")
    assert read_sides(read) == read_sides(as_truth(result))
    assert read.pools is not None
    assert np.diff(read.pools.offsets).tolist() == [6] * len(result.pools)


def test_a_querys_further_moments_in_its_own_video_stay():
    several = Judgements.from_groups(
        ["1", "2", "3"], [2, 1, 1], ["a", "a", "b", "c"], [0, 7, 1, 2], [3, 9, 5, 6],
        durations={"a": 10, "b": 10, "c": 10}, queries=["eats pizza", "eats pizza", "reads book"],
    )  # fmt: skip
    data = prepare_source(several)
    result = build_massive(data, encoder_similarity(Words(), data.texts), MassiveSettings(pool=3, text_negative=0.3))
    made = as_truth(result)
    assert [m.video for m in made.moments("1")] == ["a", "a", "b"]
    assert [m.start for m in made.moments("2")] == [1.0, 0.0]
    assert [d.reason for d in result.decisions] == ["own moment and others"] * 2 + ["own moment only"]


def test_pools_without_distractors_are_dropped_unless_wanted():
    settings = MassiveSettings(pool=2, positives=4, text_positive=0.7, text_negative=0.2)
    dropped = build(settings)
    assert tally(dropped.decisions)["dropped"]["no distractor in the pool"] > 0
    kept = build(replace(settings, keep_undistracted=True))
    assert len(kept.pools) == len(kept.decisions)
    assert any(not p.negatives for p in kept.pools)


def test_visual_scores_filter_both_sides():
    plain = build()
    names = plain.data.truth.videos

    def score(query, videos):
        own = query.split(":")[0]
        return np.array([0.8 if v == own else 0.9 if int(v[1:]) % 2 else 0.1 for v in videos])

    filtered = build(visual=score)
    assert filtered.visual is not None
    assert filtered.visual.golden == pytest.approx(0.8)
    assert 0.1 < filtered.visual.negative < 0.9
    assert filtered.pools
    for p in filtered.pools:
        assert all(int(names[v][1:]) % 2 for v in p.positives)
        assert not any(int(names[v][1:]) % 2 for v in p.negatives)
    with pytest.raises(MomentseekError, match="cover no query"):
        build(visual=lambda query, videos: np.full(len(videos), np.nan))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build(videos=3), "has 3 videos, fewer than a pool of 6; choose a smaller `pool`"),
        (lambda: build(videos=1, per_video=1), "has 1 video, fewer than a pool of 6"),
        (
            lambda: prepare_source(
                Judgements.from_groups(["1"], [2], ["a"] * 2, [0] * 2, [5] * 2, durations={"a": 9}, queries=["x"],
                                       agreement=[2])
            ),
            "needs 2 annotators to agree.*give annotations with one opinion",
        ),
        (lambda: MassiveSettings(pool=1), "leaves nothing to search"),
        (lambda: MassiveSettings(positives=-1), "must not be negative"),
        (lambda: MassiveSettings(text_positive=0.3), "could be both"),
        (lambda: prepare_source(Judgements.from_rows([("1", "a", 0, 5, 1)])), "has no sentences"),
        (
            lambda: prepare_source(Judgements.from_groups(["1"], [1], ["a"], [0], [5], queries=["x"])),
            "needs every video's duration",
        ),
        (
            lambda: prepare_source(
                Judgements.from_groups(["1", "2"], [1, 1], ["a"] * 2, [0] * 2, [5] * 2, durations={"a": 9},
                                       queries=["x", " "])
            ),
            "query 2 has no sentence",
        ),
        (
            lambda: prepare_source(
                Judgements.from_groups(["1", "2"], [1, 0], ["a"], [0], [5], durations={"a": 9}, queries=["x", "y"])
            ),
            "query 2 has no moment",
        ),
        (
            lambda: prepare_source(
                Judgements.from_groups("1", [2], list("ab"), [0] * 2, [5] * 2, durations={"a": 9, "b": 9}, queries="x")
            ),
            "keeps a query to one video",
        ),
        (
            lambda: build_massive(prepare_source(truth()), lambda _queries, _sentences: np.zeros((1, 1), "f4"), PLAIN),
            "the text similarity gave",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(make, message):
    with pytest.raises(MomentseekError, match=message):
        make()


def test_a_videos_similarity_is_the_largest_of_its_sentences(monkeypatch):
    data = prepare_source(truth(videos=5))
    similarity = encoder_similarity(Words(), data.texts)
    whole = np.concatenate([videos for _, _, videos in video_similarity(data, similarity)])
    monkeypatch.setattr("momentseek.benchmarks.datasets.sentences.BLOCK_BYTES", 1)
    blocks = list(video_similarity(data, similarity))
    assert len(blocks) == len(data.truth)
    np.testing.assert_allclose(np.concatenate([b[2] for b in blocks]), whole, atol=1e-6)
    texts = data.truth.queries
    expected = [[max(cosine(t, texts[q]) for q in np.flatnonzero(data.own == v)) for v in range(5)] for t in texts]
    np.testing.assert_allclose(whole, expected, atol=1e-6)


def test_comparing_with_itself_and_with_another_draw():
    result = build()
    data = result.data
    similarity = encoder_similarity(Words(), data.texts)
    same = compare_pools(result, as_truth(result), similarity)
    assert (same.both, same.only_ours, same.only_theirs) == (len(result.pools), 0, 0)
    assert same.positives_overlap == same.negatives_overlap == same.positives_reach == same.negatives_below == 1
    assert same.our_positives == same.their_positives
    other = build(replace(PLAIN, seed=1))
    found = compare_pools(result, as_truth(other), similarity)
    assert (found.positives_overlap, found.negatives_overlap) == compare_draws(result, other)
    assert 0 < found.negatives_overlap < 1
    assert "between two seeds here" in comparison_text(found, compare_draws(result, other), "lots", "their.json")
    with pytest.raises(MomentseekError, match="has no pools"):
        compare_pools(result, truth(), similarity)
    stranger = as_truth(result)
    renamed = replace(stranger, videos=tuple(f"x{v}" for v in stranger.videos))
    with pytest.raises(MomentseekError, match="shares no query"):
        compare_pools(result, renamed, similarity)


def test_jaccard_of_nothing_is_no_number():
    assert np.isnan(jaccard(frozenset(), frozenset()))


def test_the_report_says_what_was_kept_and_why():
    result = build()
    found = json.loads(json.dumps(massive_summary(result)))
    assert found["kept"] == len(result.pools) == sum(found["further_positives"].values())
    assert found["positives_per_query"] == pytest.approx(
        1 + np.mean([len(p.positives) for p in result.pools]), abs=1e-4
    )
    sides = found["cohesiveness"]
    assert sides["positive"]["mean"] > sides["negative"]["mean"]
    text = massive_text(found, "words")
    assert "words similarity >= 0.75 positive, < 0.2 negative; seed 0; no visual filter" in text


def test_the_human_check_asks_about_every_added_video_of_some_queries():
    result = build()
    tasks = build_check_tasks(result, queries=3, url="http://host/{video}.mp4")
    assert len(tasks) == 3 * 5
    assert tasks == build_check_tasks(build(), queries=3, url="http://host/{video}.mp4")
    own = {t["meta"]["query_id"]: t["meta"]["query_id"].split(":")[0] for t in tasks}
    assert len(own) == 3
    for task in tasks:
        data = task["data"]
        assert data["video"] != own[task["meta"]["query_id"]]
        assert data["video_url"] == f"http://host/{data['video']}.mp4"
        assert (data["end"] - data["start"] == 30) == (task["meta"]["side"] == "negative")
    assert all(f"${name}" in LABELLING_CONFIG for name in ("query", "where", "video_url"))
    assert len({t["data"]["query"] for t in build_check_tasks(result, queries=10**6)}) > 3
