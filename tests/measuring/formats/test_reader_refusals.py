"""Files that readers reject, and their messages."""

from __future__ import annotations

import json

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, read_corpus, read_run, read_runs, read_truth


@pytest.fixture
def path_of(write, samples):
    return lambda name: write(*samples[name])


def rows(*records):
    return "\n".join(map(json.dumps, records))


def test_tacos_videos_in_seconds_are_not_taken_for_frames(write):
    seconds = {"duration": 100.25, "timestamps": [[5, 10.5]], "sentences": ["x"]}
    assert read_truth(write("a.json", {"s1-d2.avi": seconds})).start.tolist() == [5.0]
    whole = {"duration": 100, "timestamps": [[5, 10]], "sentences": ["x"]}
    assert read_truth(write("b.json", {"s1-d2.avi": whole})).start.tolist() == [5.0]
    for odd in (seconds, {"duration": 2940, "timestamps": [[147.5, 294]], "sentences": ["x"]}):
        frames = {"duration": 2940, "timestamps": [[147, 294]], "sentences": ["x"]}
        with pytest.raises(MomentseekError, match="its times may be either frames or seconds"):
            read_truth(write("c.json", {"s1-d2.avi": frames, "s1-d3.avi": odd}))


@pytest.mark.parametrize("score", ["NaN", "Infinity"])
@pytest.mark.parametrize("name", ["tvr-submission", "tvr-ranking-predictions", "native-run"])
def test_scores_that_are_not_finite(write, samples, name, score):
    file, data = samples[name]
    key = b"1.5]" if name == "tvr-submission" else b"0.3}" if name == "tvr-ranking-predictions" else b"0.95}"
    path = write(file, data.replace(key, score.encode() + key[-1:], 1))
    query = {"tvr-submission": "13", "tvr-ranking-predictions": "5", "native-run": "q1"}[name]
    with pytest.raises(MomentseekError, match=rf"{file}: query {query}, rank \d has the score (nan|inf)"):
        read_runs(path)
    assert "score that is not a finite number kept as is" in str(read_runs(path, invalid="keep")[0].findings[-1])


def test_saliency_that_is_not_finite_or_out_of_range(write, samples):
    file, data = samples["qvhighlights-submission"]
    with pytest.raises(MomentseekError, match=r"query 21, clip 1 has the saliency score nan"):
        read_runs(write(file, data.replace(b"-0.25", b"NaN")))
    file, data = samples["qvhighlights"]
    with pytest.raises(MomentseekError, match=r"query 21 has a clip of saliency 9"):
        read_truth(write(file, data.replace(b"[4, 4, 2]", b"[4, 9, 2]")))


@pytest.mark.parametrize("seconds", ["-30", "0", "Infinity", "NaN", "true", '"60"'])
def test_durations_that_are_none(write, samples, seconds):
    file, data = samples["tvr"]
    with pytest.raises(MomentseekError, match=r"the duration of video lamp is .*; expected seconds"):
        read_truth(write(file, data.replace(b"60.0", seconds.encode())))
    with pytest.raises(MomentseekError, match=r"the duration of video a is|not recognised"):
        read_corpus(write("c.json", f'{{"a": {seconds}}}'))
    with pytest.raises(MomentseekError, match=r"the duration of video a is|not recognised"):
        read_corpus(write("d.json", f'{{"val": {{"a": [{seconds}, 1]}}}}'))


def test_a_video_has_one_duration(write):
    row = {"query_id": "q", "video": "v", "start": 0, "end": 1, "relevance": 1}
    with pytest.raises(MomentseekError, match="video v lasts 60 s in one place and 99 s in another"):
        read_truth(write("a.jsonl", rows({**row, "duration": 60}, {**row, "duration": 99})))
    truth = read_truth(write("b.jsonl", rows({**row, "duration": 60}, row, {**row, "duration": 60.0004})))
    assert truth.durations.tolist() == [60.0]
    with pytest.raises(MomentseekError, match=r"video a lasts 30\.5 s in one place and 31 s in another"):
        read_corpus(write("c.csv", "id,length\na,30.5\na,31\n"))
    with pytest.raises(MomentseekError, match="video a lasts 5 s"):
        read_corpus(write("d.json", {"train": {"a": [5, 1]}, "val": {"a": [6, 2]}}))


def test_a_video_or_an_index_twice_in_a_collection(write):
    with pytest.raises(MomentseekError, match="a occurs more than once"):
        read_corpus(write("a.json", '{"a": 30, "b": 20, "a": 30}'))
    for collection in ({"a": [30, 1], "b": [20, 1]}, {"val": {"a": [30, 1]}, "test": {"b": [20, 1]}}):
        with pytest.raises(MomentseekError, match="videos a and b have the same index 1"):
            read_corpus(write("b.json", collection))
    entry = {"desc_id": 5, "predictions": [[1, 0.0, 3.0, 1.0]]}
    with pytest.raises(MomentseekError, match="videos a and b have the same index 1"):
        read_runs(write("c.json", {"video2idx": {"a": 1, "b": 1}, "VCMR": [entry]}))


def test_spr_is_ranked_by_moment_rank(write):
    listed = [(3.0, 2), (1.0, 1), (4.0, 2), (2.0, 1)]
    moments = [{"video_name": "a", "timestamp": [s, 9.0], "moment_rank": r} for s, r in listed]
    run = read_run(write("spr.json", {"7": moments[:1], "5": moments}))
    assert run.start.tolist() == [3.0, 1.0, 2.0, 3.0, 4.0]
    assert run.score.tolist() == [-2.0, -1.0, -1.0, -2.0, -2.0]


@pytest.mark.parametrize("name", ["tvr-submission", "tvr-ranking-indexed", "qvhighlights-submission"])
def test_runs_carry_their_queries_words(path_of, corpus, name):
    assert all(read_run(path_of(name), corpus=corpus).queries)


def test_results_carry_their_sentences(path_of):
    assert read_run(path_of("activitynet-results")).queries == ("light a lamp", "sit", "fly")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"start": "x"}, "'start' of record 3 is \"x\"; expected a number"),
        ({"end": True}, "'end' of record 3 is true; expected a number"),
        ({"start": False}, "'start' of record 3 is false; expected a number"),
        ({"end": 10**400}, "'end' of record 3 is \"too large a number\""),
        ({"video": 3}, "'video' of record 3 is 3; expected text"),
        ({"relevance": "high"}, "'relevance' of record 3 is \"high\""),
        ({"query": 5}, "'query' of record 3 is 5; expected text"),
        ({"agreement": 1.5}, "'agreement' of record 3 is 1.5; expected a whole number"),
        ({"agreement": 0}, "the agreement of query b is 0"),
        ({"saliency": [[5]]}, "query b has a clip of saliency 5"),
    ],
)
def test_native_names_the_record(write, wrong, sentence):
    good = {"video": "v", "start": 0.0, "end": 1.0, "relevance": 1}
    three = [{"query_id": "a", **good}, {"query_id": "a", **good}, {"query_id": "b", **good, **wrong}]
    last = {"query_id": "a", **good}
    with pytest.raises(MomentseekError, match=sentence):
        read_truth(write("t.jsonl", rows(*three, last)))


def test_native_names_the_record_of_any_task(write):
    good = {"query_id": "a", "video": "v", "start": 0.0, "end": 1.0}
    with pytest.raises(MomentseekError, match="'score' of record 2 is \"x\""):
        read_runs(write("r.jsonl", rows({**good, "score": 1}, {**good, "task": "SVMR", "score": "x"})))
    with pytest.raises(MomentseekError, match="there is no task 'FOO'; tasks are VCMR, SVMR, VR"):
        read_runs(write("r.jsonl", rows({**good, "task": "FOO"})))


def test_pairs_name_the_record(write, samples):
    first, second, third = samples["tvr-ranking-flat"][1].split(b"\n")
    broken = second.replace(b"[2.5, 4.0]", b'["x", 4.0]')
    with pytest.raises(MomentseekError, match="the timestamp of record 2 is"):
        read_truth(write("t.jsonl", b"\n".join([first, broken, third])))
    broken = second.replace(b'"relevance": 2', b'"relevance": null')
    with pytest.raises(MomentseekError, match="'relevance' of record 2 is null"):
        read_truth(write("t.jsonl", b"\n".join([first, broken, third])))


def test_booleans_are_no_times(write):
    moment = {"video_name": "a", "timestamp": [False, True], "model_scores": 1}
    with pytest.raises(MomentseekError, match=r"timestamp 1 is \[false, true\]; expected 2 numbers"):
        read_runs(write("p.json", {"1": [moment]}))


def test_unknown_policies(path_of):
    for read, name in ((read_truth, "tvr"), (read_runs, "tvr-submission"), (read_run, "native-run")):
        with pytest.raises(MomentseekError, match="there is no policy 'bogus'"):
            read(path_of(name), invalid="bogus")


@pytest.mark.parametrize("way", ["native", "parquet"])
def test_texts_of_queries_are_labels(write, way):
    pytest.importorskip("pyarrow")
    good = {"video": "v", "start": 0.0, "end": 1.0, "relevance": 1}
    a = {"query_id": "a", **good, "type": "v", "split": "easy", "n": 4, "length": "short"}
    truth = read_truth(
        write(
            "t.jsonl",
            rows(
                {**a, "caption": "one"},
                {**a, "caption": "two"},
                {"query_id": "b", **good, "type": "t", "split": "hard", "caption": "three", "odd": 3},
                {"query_id": "c", **good, "caption": "four", "odd": "text"},
            ),
        )
    )
    fields = {"type": ("v", "t", ""), "split": ("easy", "hard", ""), "length": ("short", "", "")}
    assert truth.fields == fields
    again = write("again", FORMATS[way].to_bytes(truth))
    assert read_truth(again).fields == fields
