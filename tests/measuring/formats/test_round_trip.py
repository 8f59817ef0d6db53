"""Every writer's output is read back unchanged, for anything the format can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from momentseek.core.moments.arrays import offsets_of
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Corpus, Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import FORMATS, Reading
from momentseek.measuring.formats.convert import lost_in
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.files import read_document

QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
times = (
    st.tuples(st.floats(0, 1e4), st.floats(1e-3, 500)).map(lambda t: (t[0], t[0] + t[1])).filter(lambda t: t[0] < t[1])
)
scores = st.floats(-1e9, 1e9)
few = st.integers(0, 4)


@st.composite
def tables(draw, *, ids=names, per_query=few, one_video=False):
    """Parts of a table: ids, texts, counts, videos, times, durations."""
    queries = draw(st.lists(ids, min_size=1, max_size=5, unique_by=str))
    counts = [draw(per_query) for _ in queries]
    pool = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    videos = []
    for count in counts:
        some = [draw(st.sampled_from(pool)) for _ in range(count)]
        videos += some[:1] * count if one_video else some
    spans = [draw(times) for _ in videos]
    longest = dict.fromkeys(pool, 1e6)
    return queries, [draw(words) for _ in queries], counts, videos, spans, longest


@st.composite
def truths(draw, *, graded=False, types=None, **options):
    queries, texts, counts, videos, spans, durations = draw(tables(**options))
    level = st.integers(0, 4) if graded else st.just(1)
    return Judgements.from_groups(
        queries,
        counts,
        videos,
        [s for s, _ in spans],
        [e for _, e in spans],
        [draw(level) for _ in videos],
        durations=durations,
        queries=texts,
        fields={"type": [draw(st.sampled_from(types)) for _ in queries]} if types else None,
    )


@st.composite
def runs(draw, *, task="VCMR", saliency=False, **options):
    queries, texts, counts, videos, spans, _ = draw(tables(**options))
    clips = [draw(st.integers(0, 3)) for _ in queries]
    extra = Saliency(offsets_of(clips), np.array([draw(scores) for _ in range(sum(clips))]).reshape(-1, 1))
    return Run.from_groups(
        queries,
        counts,
        videos,
        [s for s, _ in spans],
        [e for _, e in spans],
        [draw(scores) for _ in videos],
        queries=texts,
        saliency=extra if saliency else None,
        task=task,
    )


def truth_again(truth, name):
    format = FORMATS[name]
    data = format.to_bytes(truth)
    document = Document(Path("again"), data)
    assert [f.name for f in FORMATS.values() if f.claims(document)] == [name]
    after = read_document(document, format, Reading())
    same(truth, after)
    assert after.relevance.tolist() == truth.relevance.tolist()
    assert dict(after.fields) == dict(truth.fields)
    known = {v: after.durations[i] for i, v in enumerate(after.videos)}
    assert all(known[truth.videos[v]] == truth.durations[v] for v in set(truth.video.tolist()))
    return after


def run_again(run, name):
    format = FORMATS[name]
    document = Document(Path("again"), format.to_bytes((run,)))
    (after,) = read_document(document, format, Reading())
    same(run, after)
    if name != "spr":
        assert after.score.tolist() == run.score.tolist()
    return after


def same(before, after):
    assert after.query_ids == before.query_ids
    assert after.offsets.tolist() == before.offsets.tolist()
    assert [after.videos[v] for v in after.video] == [before.videos[v] for v in before.video]
    assert after.start.tolist() == before.start.tolist()
    assert after.end.tolist() == before.end.tolist()


@QUICK
@given(truths(graded=True, types=["v", "t"]))
def test_native_truth(truth):
    assert truth_again(truth, "native").queries == truth.queries


@QUICK
@given(truths(graded=True, types=["v", "t"]))
def test_parquet_truth(truth):
    pytest.importorskip("pyarrow")
    assert truth_again(truth, "parquet").queries == truth.queries


@QUICK
@given(runs(saliency=True, task="SVMR"))
def test_native_and_parquet_runs(run):
    pytest.importorskip("pyarrow")
    for name in ("native-run", "parquet-run"):
        after = run_again(run, name)
        assert after.task == "SVMR"
        assert after.queries == run.queries
        assert after.saliency is not None
        assert run.saliency is not None
        assert after.saliency.scores.tolist() == run.saliency.scores.tolist()


@QUICK
@given(truths(ids=st.integers(0, 10**9), per_query=st.just(1), types=["v", "t", "vt"]))
def test_tvr(truth):
    assert truth_again(truth, "tvr").queries == truth.queries
    assert not FORMATS["tvr"].to_bytes(truth).endswith(b"\n")


@QUICK
@given(truths(graded=True, ids=st.integers(0, 10**9) | names))
def test_tvr_ranking(truth):
    assert truth_again(truth, "tvr-ranking").queries == truth.queries


@QUICK
@given(truths(graded=True, per_query=st.integers(1, 4)))
def test_tvr_ranking_flat(truth):
    assert truth_again(truth, "tvr-ranking-flat").queries == truth.queries


@QUICK
@given(truths(ids=st.integers(0, 10**9), per_query=st.integers(1, 4), one_video=True))
def test_qvhighlights(truth):
    assert truth_again(truth, "qvhighlights").queries == truth.queries


@QUICK
@given(runs(ids=st.integers(0, 10**9), one_video=True, saliency=True, task="SVMR"))
def test_qvhighlights_submission(run):
    after = run_again(run, "qvhighlights-submission")
    assert after.saliency is not None
    assert run.saliency is not None
    assert after.saliency.offsets.tolist() == run.saliency.offsets.tolist()


@QUICK
@given(runs(ids=st.integers(0, 10**9)))
def test_submissions_and_predictions(run):
    for name in ("tvr-submission", "tvr-ranking-predictions", "spr"):
        run_again(run, name)


@st.composite
def caption_tables(draw, *, ids=names, captions=few):
    queries, _, _, videos, spans, durations = draw(tables(ids=ids, per_query=st.just(1)))
    return CaptionTable.from_groups(
        queries,
        [[draw(words) for _ in range(draw(captions))] for _ in queries],
        [1] * len(queries),
        videos,
        [s for s, _ in spans],
        [e for _, e in spans],
        durations=draw(st.sampled_from([durations, None])),
    )


@QUICK
@given(caption_tables(ids=st.integers(0, 10**9) | names))
def test_tvc(table):
    document = Document(Path("again"), FORMATS["tvc"].to_bytes(table))
    assert [f.name for f in FORMATS.values() if f.claims(document)] == ["tvc"]
    after = read_document(document, FORMATS["tvc"], Reading())
    same(table, after)
    assert after.groups() == table.groups()


@QUICK
@given(caption_tables(captions=st.just(1)))
def test_coco(table):
    for name in ("coco-captions", "coco-results"):
        document = Document(Path("again"), FORMATS[name].to_bytes(table))
        assert [f.name for f in FORMATS.values() if f.claims(document)] == [name]
        after = read_document(document, FORMATS[name], Reading())
        assert (after.query_ids, after.groups()) == (table.query_ids, table.groups())
        assert lost_in(table, after) == ("videos and times",)


def test_every_writer_writes_its_own_sample_again(sample_name, sample, corpus):
    format = FORMATS[sample_name]
    if not format.write:
        pytest.skip("only read")
    indexed = Reading("error", corpus if sample_name == "tvr-ranking-indexed" else None)
    before = read_document(sample, format, indexed)
    data = format.to_bytes(before, indexed.corpus)
    again = read_document(Document(sample.path, data), format, indexed)
    assert format.to_bytes(again, indexed.corpus) == data
    if format.kind == "corpus":
        assert again.durations == before.durations
    else:
        assert lost_in(before, again) == ()
    if format.kind == "captions":
        assert (again.query_ids, again.groups()) == (before.query_ids, before.groups())


def test_a_corpus_with_indices_keeps_them():
    data = FORMATS["video-corpus"].to_bytes(Corpus({"a": 5.0}, {3: "a"}))
    assert data == b'{"a": [5.0, 3]}'
    assert FORMATS["video-corpus"].read(Document(Path("x"), data), Reading()).names == {3: "a"}


@pytest.mark.parametrize("name", ["didemo", "mvmr", "qvhighlights"])
@pytest.mark.parametrize("way", ["native", "parquet"])
def test_our_own_format_carries_agreement_pools_and_saliency(samples, name, way):
    pytest.importorskip("pyarrow")
    format = FORMATS[name]
    before = read_document(Document(Path("x"), samples[name][1]), format, Reading())
    ours = FORMATS[way].to_bytes(before)
    after = read_document(Document(Path("y"), ours), FORMATS[way], Reading())
    assert set(lost_in(before, after)) <= {"the column 'sentence'"}
    if name != "mvmr":
        assert format.to_bytes(after) == format.to_bytes(before)
    else:
        assert before.pools is not None
        assert after.pools is not None
        assert [after.videos[v] for v in after.pools.video] == [before.videos[v] for v in before.pools.video]


def test_several_tasks_in_one_native_file(samples):
    before = read_document(Document(Path("x"), samples["tvr-submission"][1]), FORMATS["tvr-submission"], Reading())
    data = FORMATS["native-run"].to_bytes(before)
    after = read_document(Document(Path("y"), data), FORMATS["native-run"], Reading())
    assert [run.task for run in after] == ["VCMR", "VR"]
    assert lost_in(before, after) == ()


def test_losses_are_named():
    full = Run.from_groups(["1"], [1], ["a"], [0.0], [2.0], [0.5], queries=["x"], task="SVMR")
    bare = Run.from_groups(["1"], [1], ["a"], [0.0], [2.5], [0.25])
    assert lost_in((full,), (bare,)) == ("the queries' words", "exact times", "scores", "that the task is SVMR")
    fewer = Run.from_groups(["1"], [0], [], [], [])
    assert lost_in((full,), (fewer,))[0] == "moments (1 became 0)"
