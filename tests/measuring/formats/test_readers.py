"""How each reader handles the peculiarities of its format."""

from __future__ import annotations

import json

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Corpus
from momentseek.core.moments.moment import Moment
from momentseek.measuring.formats import read_corpus, read_run, read_runs, read_truth


@pytest.fixture
def path_of(write, samples):
    return lambda name: write(*samples[name])


def test_tvr(path_of):
    truth = read_truth(path_of("tvr"))
    assert truth.query_ids == ("12", "13")
    assert truth.fields == {"type": ("v", "vt")}
    assert truth.durations.tolist() == [60.0, 90.5]
    assert truth.agreement is None


def test_didemo_in_tvrs_form_needs_two_annotators(write):
    spans = [[0, 5], [0, 5], [5, 10], [0, 10]]
    truth = read_truth(write("d.jsonl", {"vid_name": "a", "desc_id": 1, "ts": spans, "desc": "x"}))
    assert truth.counts.tolist() == [4]
    assert truth.agreement is not None
    assert truth.agreement.tolist() == [2]


def test_submission_tasks_and_squidnets_key(path_of, write, samples):
    vcmr, vr = read_runs(path_of("tvr-submission"))
    assert (vcmr.task, vr.task) == ("VCMR", "VR")
    assert [vcmr.videos[v] for v in vcmr.video] == ["kite", "lamp", "lamp"]
    assert vr.end.tolist() == [0, 0, 0]
    squid = samples["tvr-submission"][1].replace(b"video2idx", b"vid2idx")
    assert len(read_runs(write("squid.json", squid))) == 2


def test_the_oldest_tvr_ranking_wrapper(write):
    entry = {"query_id": 5, "query": "x", "predictions": [[1, 0.0, 3.0]]}
    (run,) = read_runs(write("old.json", {"video2idx": {"a": 1}, "VCMR": [entry]}))
    assert run.query_ids == ("5",)
    assert run.queries == ("x",)
    assert run.score.tolist() == [0.0]


def test_unknown_indices_and_short_predictions(write):
    def submission(row):
        return {"video2idx": {"a": 1}, "VCMR": [{"desc_id": 5, "predictions": [row]}]}

    with pytest.raises(MomentseekError, match="no video has the index 2"):
        read_runs(write("a.json", submission([2, 0.0, 3.0, 1.0])))
    with pytest.raises(MomentseekError, match=r"VCMR prediction is \[1, 0.0\]; expected"):
        read_runs(write("b.json", submission([1, 0.0])))
    with pytest.raises(MomentseekError, match=r"a video index is 1.5; expected a whole number"):
        read_runs(write("c.json", submission([1.5, 0.0, 3.0, 1.0])))


def test_tvr_ranking(path_of):
    truth = read_truth(path_of("tvr-ranking"))
    assert truth.counts.tolist() == [2, 0]
    assert truth.relevance.tolist() == [4, 0]
    assert truth.columns["caption"] == ("A sings", "B hums")
    flat = read_truth(path_of("tvr-ranking-flat"))
    assert flat.query_ids == ("5", "6")
    assert flat.relevance.tolist() == [3, 1, 2]
    assert flat.columns["pair_id"] == (3, 5, 4)


def test_relevance_out_of_range(write):
    moment = {"video_name": "a", "timestamp": [0, 1], "relevance": 5}
    with pytest.raises(MomentseekError, match=r"relevance 5.* is out of range"):
        read_truth(write("t.json", [{"query_id": 1, "relevant_moment": [moment]}]))


def test_rank_is_the_files_order_not_the_scores(path_of):
    run = read_run(path_of("tvr-ranking-predictions"))
    assert run.score.tolist() == [0.3, 0.7]
    assert run.counts.tolist() == [2, 0]
    assert read_run(path_of("spr")).score.tolist() == [-1.0, -2.0]


def test_both_forms_of_video_corpus(write, path_of):
    assert read_corpus(path_of("video-corpus")).durations == {"lamp": 60.0, "kite": 90.5}
    older = read_corpus(write("older.json", {"a": [10.5, 7], "b": [3, 9]}))
    assert (older.durations, older.names) == ({"a": 10.5, "b": 3.0}, {7: "a", 9: "b"})
    assert read_corpus(path_of("tvr-durations")).names == {4: "lamp", 7: "kite", 9: "boat"}
    assert read_corpus(path_of("charades-csv")).durations == {"LAMP1": 31.5, "KITE2": 12.0}


def test_a_truth_with_durations_is_a_collection(path_of):
    assert read_corpus(path_of("activitynet")).durations == {"v_lamp": 60.0, "v_kite": 30.5}
    with pytest.raises(MomentseekError, match="does not say how long its videos are"):
        read_corpus(path_of("charades-sta"))


def test_videos_the_collection_does_not_have(path_of):
    small = Corpus({"lamp": 60.0}, {}, "small.json")
    for read, name in ((read_truth, "tvr"), (read_runs, "tvr-submission"), (read_runs, "native-run")):
        with pytest.raises(MomentseekError, match=r"kite.* not in small.json"):
            read(path_of(name), corpus=small)


def test_qvhighlights_rates_a_clip_that_the_video_ends_in(tmp_path):
    entry = {"qid": 1, "query": "a", "vid": "v", "duration": 5.5, "relevant_windows": [[2, 6]]}
    line = {**entry, "relevant_clip_ids": [1, 2], "saliency_scores": [[1, 2, 3], [4, 4, 4]]}
    (tmp_path / "truth.jsonl").write_text(json.dumps(line))
    truth = read_truth(tmp_path / "truth.jsonl", format="qvhighlights")
    assert truth.saliency is not None
    assert truth.saliency.scores.tolist() == [[0, 0, 0], [1, 2, 3], [4, 4, 4]]
    (tmp_path / "truth.jsonl").write_text(json.dumps({**line, "relevant_clip_ids": [1, 3]}))
    with pytest.raises(MomentseekError, match="rates clips 1 to 3, but its video has 3 clips of 2 s"):
        read_truth(tmp_path / "truth.jsonl", format="qvhighlights")


def test_qvhighlights(path_of):
    truth = read_truth(path_of("qvhighlights"))
    assert truth.saliency is not None
    assert truth.saliency.scores.shape == (15, 3)
    assert truth.saliency.scores[4].tolist() == [4, 4, 2]
    (run,) = read_runs(path_of("qvhighlights-submission"))
    assert (run.task, run.score.tolist()) == ("SVMR", [0.9, 0.95])
    assert run.saliency is not None
    assert run.saliency.scores[:, 0].tolist() == [0.5, -0.25, 0.0]


def test_charades_sta(path_of, corpus):
    truth = read_truth(path_of("charades-sta"))
    assert truth.query_ids == ("LAMP1:0", "KITE2:0", "LAMP1:1")
    assert truth.text("LAMP1:1") == "sit ##2"
    assert np.isnan(truth.durations).all()
    known = Corpus({"LAMP1": 6.0, "KITE2": 30.0}, {})
    timed = read_truth(path_of("charades-sta"), corpus=known, invalid="clip")
    assert timed.durations.tolist() == [6.0, 30.0]
    assert timed.end.tolist() == [6.0, 9.0, 4.0]


@pytest.mark.parametrize("line", ["LAMP1 0.0 x##a", "LAMP1 0.0##a", "LAMP1 0 5 a", "LAMP1 0 5 7##a"])
def test_charades_sta_names_the_broken_line(write, line):
    with pytest.raises(MomentseekError, match=r"line 2 is .*; expected VIDEO start end##sentence"):
        read_truth(write("sta.txt", f"KITE2 0.0 5.0##fine\n{line}\n"))


def test_activitynet_and_cd(path_of):
    truth = read_truth(path_of("activitynet"))
    assert truth.query_ids == ("v_lamp:0", "v_lamp:1", "v_kite:0")
    assert truth.text("v_lamp:1") == " Two."
    cd = read_truth(path_of("charades-cd"))
    assert cd.columns["framestamps"] == ([0, 80],)
    assert cd.durations.tolist() == [30.5]
    (run,) = read_runs(path_of("activitynet-results"))
    assert run.query_ids == ("LAMP1:0", "LAMP1:1", "KITE2:0")
    assert run.score.tolist() == [0.5, 0.25, 1.5]


def test_unequal_sentences_and_timestamps(write):
    entry = {"duration": 9.0, "timestamps": [[0, 1]], "sentences": ["a", "b"]}
    with pytest.raises(MomentseekError, match="video v has 2 sentences, but 1 entry in timestamps"):
        read_truth(write("a.json", {"v": entry}))


def test_tacos_is_told_from_activitynet_by_its_videos_names(path_of, write):
    for name in ("tacos", "tacos-tall"):
        truth = read_truth(path_of(name))
        assert truth.durations.tolist() == [100.0]
        assert truth.start[0] == 5.0
    entry = {"duration": 2940.0, "timestamps": [[147, 294]], "sentences": ["x"]}
    assert read_truth(write("a.json", {"v_other": entry})).start.tolist() == [147.0]


def test_didemo(path_of):
    truth = read_truth(path_of("didemo"))
    assert truth.start.tolist() == [5, 5, 0, 5]
    assert truth.end.tolist() == [10, 15, 5, 10]
    assert truth.durations.tolist() == [30]
    assert truth.agreement is not None
    assert truth.agreement.tolist() == [2]


def test_mvmr(path_of, write):
    truth = read_truth(path_of("mvmr"))
    assert [m.video for m in truth.moments("LAMP1:0")] == ["LAMP1", "KITE2"]
    assert truth.pools is not None
    assert [truth.videos[v] for v in truth.pools.video] == ["LAMP1", "KITE2", "BOAT3", "KITE2", "BOAT3"]
    entry = {"timestamps": [[294, 588]], "sentences": ["x"], "fps": 29.4, "num_frames": 2940}
    entry |= {"pos_moments": [[["s2-d2", "y", [147, 294]]]], "retrieval_pool": [["s1-d1", "s2-d2"]]}
    framed = read_truth(write("t.json", {"s1-d1": entry}))
    assert framed.start.tolist() == [10.0, 5.0]  # the positive is converted too


def test_hidden_challenges(path_of):
    truth = read_truth(path_of("hidden-challenges"))
    assert truth.query_ids == ("H1", "H2")
    assert truth.queries == ("light a lamp.", "fly, high")
    assert truth.columns["annotator"] == (0, 1, 0)
    assert truth.start.tolist() == [50, 41, 0]
    assert truth.variant == "times in percent: every video counts as 100 s long"
    seconds = read_truth(path_of("hidden-challenges"), corpus=Corpus({"LAMP1": 10.0, "v_KITE2": 30.0}, {}))
    assert seconds.end.tolist() == [8.0, 7.6, 30.0]
    assert seconds.videos == ("LAMP1", "v_KITE2")
    assert seconds.variant is None


def test_the_header_of_a_csv_may_be_quoted(write):
    truth = read_truth(
        write("test.csv", '"HITId","video_id","description","start","end"\r\nH1,LAMP1.mp4,"a lamp",50,80\r\n')
    )
    assert (truth.query_ids, truth.start.tolist()) == (("H1",), [50])


def test_a_column_that_stands_twice_is_refused(write):
    with pytest.raises(MomentseekError, match="has the column 'start' twice"):
        read_truth(write("test.csv", "HITId,video_id,description,start,end,start\nH1,LAMP1.mp4,a lamp,50,80,60\n"))


def test_native_rows_need_not_stand_together(path_of):
    truth = read_truth(path_of("native"))
    assert truth.query_ids == ("q1", "q2")
    assert truth.relevance.tolist() == [4, 0, 1]
    assert truth.text("q2") == "ein Drachen fällt"


def test_native_ignores_keys_it_does_not_know_and_numbers_are_ids_too(write):
    row = {"query_id": 7, "video": "a", "start": 0, "end": 1, "note": [1]}
    (run,) = read_runs(write("r.jsonl", row))
    assert (run.query_ids, run.score.tolist(), run.task) == (("7",), [0.0], "VCMR")


def test_native_query_without_moments(write):
    rows = [
        {"query_id": "a", "video": None, "start": None, "end": None, "relevance": None},
        {"query_id": "b", "video": "v", "start": 0.0, "end": 1.0, "relevance": 2, "duration": 9.0, "type": "t"},
    ]
    truth = read_truth(write("t.jsonl", "\n".join(map(json.dumps, rows))))
    assert truth.counts.tolist() == [0, 1]
    assert truth.durations.tolist() == [9.0]
    assert truth.fields["type"] == ("", "t")


def test_parquet_without_pyarrow(path_of, monkeypatch):
    path = path_of("parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MomentseekError, match=r"pip install 'momentseek\[parquet\]'"):
        read_truth(path)


def test_gzipped_parquet(write, samples):
    pytest.importorskip("pyarrow")
    assert len(read_truth(write("t.parquet.gz", samples["parquet"][1]))) == 2


def test_no_queries_at_all(write):
    with pytest.raises(MomentseekError, match="there are no queries in it"):
        read_truth(write("t.json", b"[]"), format="tvr-ranking")


def test_a_query_twice(write, samples):
    line = samples["tvr"][1].split(b"\n")[0]
    with pytest.raises(MomentseekError, match="query 12 occurs more than once"):
        read_truth(write("t.jsonl", line + b"\n" + line))


def test_formats_by_name(path_of):
    assert len(read_truth(path_of("tvr"), format="tvr")) == 2
    with pytest.raises(MomentseekError, match="no format for ground truth is called 'spr'; there are"):
        read_truth(path_of("tvr"), format="spr")


@pytest.mark.parametrize("name", ["tvr-ranking-predictions", "activitynet-results", "activitynet", "tacos", "mvmr"])
def test_a_name_twice_in_an_object(write, samples, name):
    file, data = samples[name]
    value = json.loads(data)
    inner = value.get("results", value)
    first = next(iter(inner))
    entry = f"{json.dumps(first)}: {json.dumps(inner[first])}"
    twice = data.decode().replace(entry, f"{entry}, {entry}", 1)
    read = read_runs if name in ("tvr-ranking-predictions", "activitynet-results") else read_truth
    with pytest.raises(MomentseekError, match=f"{first} occurs more than once"):
        read(write(file, twice))


def test_a_video_called_timestamp_is_no_repeat(write):
    moment = {"video_name": "timestamp", "timestamp": [0, 1], "model_scores": 1}
    assert read_run(write("p.json", {"timestamp": [moment]})).videos == ("timestamp",)


def test_answers_in_prose_keep_every_query_and_count_reasons(path_of):
    run = read_run(path_of("prose-answers"))
    assert (run.query_ids, run.counts.tolist(), run.task) == (("q1", "q2", "q3"), [1, 0, 0], "SVMR")
    assert run.moments("q1")[0].end == 20.0
    assert [str(finding) for finding in run.findings] == [
        "1 answer with no moment (absent) left empty (q2)",
        "1 answer with no moment (failed) left empty (q3)",
    ]


def test_answers_in_prose_by_the_units_of_their_model(write):
    rows = [{"qid": 1, "vid": "a", "duration": 50.0, "units": "hundredths", "response": "from 10 to 20"}]
    rows.append({"qid": 2, "vid": "b", "duration": 50.0, "fps": 10.0, "response": "frames 10-20, confidence 0.25"})
    run = read_run(write("a.jsonl", "\n".join(map(json.dumps, rows)).encode()))
    assert [m for q in run for m in run.moments(q)] == [Moment("a", 5.0, 10.0), Moment("b", 1.0, 2.0)]
    assert run.score.tolist() == [1.0, 0.25]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"answer": 3}, "'answer' of record 1 is 3; expected text"),
        ({"answer": "x", "units": "miles"}, 'units is "miles"; expected one of seconds'),
        ({"answer": "x", "fps": -1}, "fps is -1; expected a number above 0"),
        ({"answer": "x", "duration": 0}, "the duration of video v is 0"),
    ],
)
def test_answers_in_prose_with_odd_values(write, row, sentence):
    file = write("a.jsonl", json.dumps({"query_id": 1, "video": "v"} | row).encode())
    with pytest.raises(MomentseekError, match=sentence):
        read_runs(file, format="prose-answers")


def test_ego4d_ids_are_the_challenges(path_of, write):
    truth = read_truth(path_of("ego4d-nlq"))
    assert truth.query_ids == ("ab-1_0", "ab-1_2")  # the one between has no words
    assert truth.durations.tolist() == [60.0]
    assert read_run(path_of("ego4d-nlq-predictions")).query_ids == truth.query_ids
    hidden = {"videos": [{"video_uid": "f", "clips": [{"clip_uid": "c", "annotations": [
        {"annotation_uid": "a", "language_queries": [{"query": "Where?"}]}]}]}]}  # fmt: skip
    with pytest.raises(MomentseekError, match="have no times, as those of the test split"):
        read_truth(write("nlq_test.json", json.dumps(hidden).encode()))


def test_trec_ranks_by_score_as_trec_eval_does(write):
    lines = b"q Q0 a@0-5 1 0.1 x\nq Q0 b@1.5-2 2 0.9 x\nq Q0 a@7-9 3 0.9 x\n"
    run = read_run(write("run.trec", lines))
    assert run.moments("q") == [Moment("b", 1.5, 2.0), Moment("a", 7.0, 9.0), Moment("a", 0.0, 5.0)]
    assert read_run(write("vr.trec", b"q Q0 a 1 0.5 x\nq Q0 b 2 0.9 x\n")).task == "VR"
    with pytest.raises(MomentseekError, match='a document is "b"; expected VIDEO@START-END'):
        read_run(write("mixed.trec", b"q Q0 a@0-5 1 0.5 x\nq Q0 b 2 0.9 x\n"))
    assert read_truth(write("t.qrels", b"q 0 a@0-5 -2\np 0 b@0-5 4\nq 0 a@7-9 1\n")).relevance.tolist() == [0, 1, 4]
