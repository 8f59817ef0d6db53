"""The published files: each is one format and one dataset, with the counts the papers give."""

from __future__ import annotations

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, read_captions, read_corpus, read_run, read_runs, read_truth
from momentseek.measuring.formats.convert import convert
from momentseek.measuring.formats.document import open_document

EXPECTED = {
    "data/activitynet-captions/train.json": ("activitynet", "ActivityNet Captions, train"),
    "data/activitynet-captions/val.json": ("activitynet", "ActivityNet Captions, val_1"),
    "data/activitynet-captions/test.json": ("activitynet", "ActivityNet Captions, val_2 (used as test)"),
    "data/charades-cd/charades_train.json": ("charades-cd", "Charades-CD, train"),
    "data/charades-cd/charades_val.json": ("charades-cd", "Charades-CD, val"),
    "data/charades-cd/charades_test_iid.json": ("charades-cd", "Charades-CD, test-iid"),
    "data/charades-cd/charades_test_ood.json": ("charades-cd", "Charades-CD, test-ood"),
    "data/charades-sta/charades_sta_train.txt": ("charades-sta", "Charades-STA, train"),
    "data/charades-sta/charades_sta_test.txt": ("charades-sta", "Charades-STA, test"),
    "data/charades-sta/Charades_v1_train.csv": ("charades-csv", None),
    "data/charades-sta/Charades_v1_test.csv": ("charades-csv", None),
    "data/charades-sta/charades_decoded_durations.json": ("video-corpus", None),
    "data/didemo/val_data.json": ("didemo", "DiDeMo, val"),
    "data/didemo/test_data.json": ("didemo", "DiDeMo, test"),
    "data/mvmr/charades_test_mvmr.json": ("mvmr", "MVMR, Charades-STA test"),
    "data/mvmr/tacos_test_mvmr.json": ("mvmr", "MVMR, TACoS test"),
    "data/predictions/shuffling_charades_cd_test_ood.json": ("activitynet-results", None),
    "data/qvhighlights/highlight_train_release.jsonl": ("qvhighlights", "QVHighlights, train"),
    "data/qvhighlights/highlight_val_release.jsonl": ("qvhighlights", "QVHighlights, val"),
    "data/qvhighlights/highlight_test_with_gt.jsonl": ("qvhighlights", "QVHighlights, test"),
    "data/qvhighlights/sample_val_preds.jsonl": ("qvhighlights-submission", None),
    "data/tacos/train.json": ("tacos", "TACoS (2D-TAN version), train"),
    "data/tacos/val.json": ("tacos", "TACoS (2D-TAN version), val"),
    "data/tacos/test.json": ("tacos", "TACoS (2D-TAN version), test"),
    "data/tacos/tall_split/train.json": ("tacos-tall", "TACoS (TALL version), train"),
    "data/tacos/tall_split/val.json": ("tacos-tall", "TACoS (TALL version), val"),
    "data/tacos/tall_split/test.json": ("tacos-tall", "TACoS (TALL version), test"),
    "data/tvc/sample_val_predictions.jsonl": ("tvc", "TVC, val"),
    "data/tvc/tvc_test_public_release.jsonl": ("tvc", "TVC, test-public"),
    "data/tvr/tvr_val_release.jsonl": ("tvr", "TVR, val"),
    "data/tvr/tvr_video2dur_idx.json": ("tvr-durations", None),
    "data/tvr-ranking/CONQUER_top40_best_val_predictions.json": ("tvr-ranking-indexed", None),
    "data/tvr-ranking/ReLoCLNet_top40_best_val_predictions.json": ("tvr-ranking-indexed", None),
    "data/tvr-ranking/XML_top20_best_val_predictions.json": ("tvr-ranking-indexed", None),
    "data/tvr-ranking/video_name_duration_id.json": ("video-corpus", None),
    "golden/tvr_gt.jsonl": ("tvr", None),
    "golden/tvr_ranking_gt.json.gz": ("tvr-ranking", None),
    "golden/tvr_ranking_predictions.json.gz": ("tvr-ranking-predictions", None),
    "golden/tvr_submission.json.gz": ("tvr-submission", None),
}
NOT_OURS = {"LICENSE", "README.md", ".gitkeep", "charades_example.mp4", "raw_annotation.csv"} | {
    "tvr_test_public_release.jsonl",
    "sample_val_preds_metrics_raw.json",
    "tvr_official_metrics.json",
    "tvr_ranking_official_scores.json",
}


def test_every_file_is_exactly_one_format(shared):
    for path in sorted((*shared.glob("data/**/*"), *shared.glob("golden/*"))):
        name = str(path.relative_to(shared))
        if not path.is_file() or path.stat().st_size == 0 or path.parent.name.startswith("."):
            continue
        document = open_document(path)
        claimed = [f.name for f in FORMATS.values() if f.claims(document)]
        if name in EXPECTED:
            assert claimed == [EXPECTED[name][0]], name
        elif "re-annotated" in name:
            assert claimed == ["hidden-challenges"], name
        elif path.name in NOT_OURS:
            assert claimed == [], name
        else:
            assert len(claimed) <= 1, name  # a file that came later


@pytest.mark.parametrize(("name", "variant"), [(n, v) for n, (_, v) in EXPECTED.items() if v])
def test_datasets_are_named(shared, name, variant):
    read = read_captions if variant.startswith("TVC") else read_truth
    assert read(shared / name, invalid="keep").variant == variant


# What our writers reproduce byte for byte. (Others differ in what JSON allows: 0 for 0.0, key order.)
SAME_BYTES = (
    "data/charades-sta/charades_sta_test.txt",
    "data/charades-cd/charades_test_ood.json",
    "data/tacos/test.json",
    "data/tacos/tall_split/test.json",
    "data/mvmr/charades_test_mvmr.json",
    "data/mvmr/tacos_test_mvmr.json",
    "data/qvhighlights/highlight_val_release.jsonl",
    "data/qvhighlights/sample_val_preds.jsonl",
    "data/tvc/sample_val_predictions.jsonl",
    "data/tvc/tvc_test_public_release.jsonl",
    "golden/tvr_ranking_gt.json.gz",
)


@pytest.mark.parametrize("name", SAME_BYTES)
def test_writing_what_was_read_gives_the_same_bytes(shared, tmp_path, name):
    done = convert(shared / name, tmp_path / "copy", to=EXPECTED[name][0], invalid="keep")
    assert done.lost == ()
    assert (tmp_path / "copy").read_bytes() == open_document(shared / name).data


def test_charades_ends_beyond_the_decoded_videos(shared):
    folder = shared / "data/charades-sta"
    corpus = read_corpus(folder / "charades_decoded_durations.json")
    beyond = 0
    for split in ("train", "test"):
        truth = read_truth(folder / f"charades_sta_{split}.txt", corpus=corpus, invalid="keep")
        beyond += next(f.count for f in truth.findings if "beyond" in f.problem)
    # The published count of 2,286 is of Charades-CD, where the four reversed moments stand the right way round.
    reversed_ = read_truth(folder / "charades_sta_train.txt", invalid="drop")
    assert reversed_.findings[0].count == 4
    assert (len(reversed_), len(reversed_.start)) == (12_408, 12_404)
    cd = [read_truth(shared / f"data/charades-cd/charades_{s}.json") for s in ("train", "val", "test_iid", "test_ood")]
    assert sum(t.findings[0].count for t in cd) == 2_286
    assert abs(beyond - 2_286) <= 4


def test_charades_train_is_refused_by_default(shared):
    with pytest.raises(MomentseekError, match=r"4 moments with start >= end found .*LEOL6"):
        read_truth(shared / "data/charades-sta/charades_sta_train.txt")


def test_activitynet_train_has_four_empty_moments(shared):
    truth = read_truth(shared / "data/activitynet-captions/train.json", invalid="drop")
    assert [(f.count, f.problem) for f in truth.findings][-1] == (4, "start >= end")
    assert truth.text("v_QOlSCBRmfWY:1") == " The girl dances around the room while the camera captures her movements."


def test_tacos_frames_are_seconds_at_29_4(shared):
    truth = read_truth(shared / "data/tacos/test.json")
    assert truth.moments("s30-d52.avi:0")[0].start == 141 / 29.4
    assert truth.durations[0] == 7346 / 29.4
    tall = read_truth(shared / "data/tacos/tall_split/test.json")
    assert tall.durations[0] == 7346 / 29.4
    assert tall.moments("s30-d52.avi:0")[0].end == 354 / 29.4


def test_mvmr(shared):
    charades = read_truth(shared / "data/mvmr/charades_test_mvmr.json")
    assert round(float(charades.counts.mean()), 2) == 3.07
    assert charades.pools is not None
    sizes = np.diff(charades.pools.offsets)
    assert (len(charades), int((sizes == 50).sum())) == (3_720, 3_716)
    tacos = read_truth(shared / "data/mvmr/tacos_test_mvmr.json")
    assert tacos.pools is not None
    assert int((np.diff(tacos.pools.offsets) == 5).sum()) == 2_055
    first = tacos.moments("s30-d52:1")
    assert (first[1].video, first[1].start) == ("s32-d27", 1904 / 29.4)


def test_didemo(shared):
    truth = read_truth(shared / "data/didemo/val_data.json")
    assert [(m.start, m.end) for m in truth.moments("49152")] == [(5, 10), (5, 10), (5, 10), (0, 5)]
    assert truth.agreement is not None
    assert set(truth.agreement.tolist()) == {2}


def test_hidden_challenges_in_seconds_with_the_right_collection(shared):
    folder = shared / "data/hidden-challenges"
    path = folder / "charades/re-annotated/test_00.csv"
    percent = read_truth(path)
    assert percent.variant == "times in percent: every video counts as 100 s long"
    assert set(percent.counts.tolist()) == {5}
    corpus = read_corpus(shared / "data/charades-sta/charades_decoded_durations.json")
    seconds = read_truth(path, corpus=corpus)
    assert seconds.start[0] == 55 / 100 * corpus.durations["YAFX0"]
    captions = read_corpus(shared / "data/activitynet-captions/test.json")  # any truth with durations will do
    assert read_truth(folder / "activitynet/re-annotated/test_02.csv", corpus=captions).videos[0] == "v_Yk3pQ18So90"


def test_results_of_a_real_method_fit_their_truth(shared):
    run = read_run(shared / "data/predictions/shuffling_charades_cd_test_ood.json", invalid="keep")
    truth = read_truth(shared / "data/charades-cd/charades_test_ood.json")
    assert run.query_ids == truth.query_ids


def test_predictions_by_index(shared):
    folder = shared / "data/tvr-ranking"
    corpus = read_corpus(folder / "video_name_duration_id.json")
    run = read_run(folder / "CONQUER_top40_best_val_predictions.json", corpus=corpus)
    assert (len(run), len(run.start)) == (497, 19_880)
    assert run.videos[0] == corpus.names[12066]
    with pytest.raises(MomentseekError, match="give the file that numbers them"):
        read_run(folder / "CONQUER_top40_best_val_predictions.json")


def test_submission_has_three_tasks(shared):
    runs = read_runs(shared / "golden/tvr_submission.json.gz")
    assert [(r.task, len(r)) for r in runs] == [("VCMR", 1000), ("SVMR", 1000), ("VR", 1000)]


def test_test_public_is_no_truth(shared):
    with pytest.raises(MomentseekError, match="queries without times, as TVR's public test split"):
        read_truth(shared / "data/tvr/tvr_test_public_release.jsonl")
