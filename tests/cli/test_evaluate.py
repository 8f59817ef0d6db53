import csv
import gzip
import json
import subprocess
import sys

import pytest


def test_table_and_json_of_the_golden_run(momentseek, golden):
    arguments = ["evaluate", golden / "tvr_ranking_predictions.json.gz", "--truth", golden / "tvr_ranking_gt.json.gz"]
    table = momentseek(*arguments, "--protocol", "tvr-ranking")
    assert table.returncode == 0, table.stderr
    assert "600 queries, 0 missing" in table.stdout
    assert "measure  IoU>0.3  IoU>0.5  IoU>0.7\n" in table.stdout
    assert "NDCG@20   0.1697   0.1408   0.0902" in table.stdout
    report = json.loads(momentseek(*arguments, "-p", "tvr-ranking", "--json").stdout)
    official = json.loads((golden / "tvr_ranking_official_scores.json").read_text())["tvr-ranking"]
    for k, row in official.items():
        for t, value in row.items():
            assert report["measures"][f"NDCG@{k}[IoU>={t}]"] == pytest.approx(value, abs=1e-12)
    assert report["titles"]["NDCG@20[IoU>=0.5]"] == "NDCG@20[IoU>0.5]"
    assert (report["protocol"], report["queries"], report["missing"]) == ("tvr-ranking", 600, 0)


def test_official_tvr_output_is_the_official_file(momentseek, golden):
    result = momentseek("evaluate", golden / "tvr_submission.json.gz", "-t", golden / "tvr_gt.jsonl", "--official")
    assert result.stdout == (golden / "tvr_official_metrics.json").read_text()
    assert result.stderr == ""


def test_per_query_values_go_to_a_file(momentseek, root, tmp_path):
    folder = root / "examples/kitchen"
    run = ["evaluate", folder / "careful.jsonl", "--truth", folder / "truth.jsonl", "-m", "NDCG@5[IoU>=0.5]"]
    assert momentseek(*run, "--per-query", tmp_path / "values.csv").returncode == 0
    rows = list(csv.DictReader((tmp_path / "values.csv").read_text().splitlines()))
    assert len(rows) == 27
    assert "opens the fridge" in rows[0]["query"]
    assert 0 <= float(rows[0]["NDCG@5[IoU>=0.5]"]) <= 1
    assert momentseek(*run, "--per-query", tmp_path / "values.jsonl.gz").returncode == 0
    lines = gzip.decompress((tmp_path / "values.jsonl.gz").read_bytes()).splitlines()
    assert json.loads(lines[0])["measures"]["NDCG@5[IoU>=0.5]"] == float(rows[0]["NDCG@5[IoU>=0.5]"])


TRUTH = [
    {"query_id": q, "query": "", "relevant_moment": [{"video_name": v, "timestamp": [0, 9], "relevance": r}]}
    for q, v, r in ((1, "v", 3), (2, "w", 1))
]
MOMENT = {"video_name": "v", "timestamp": [0.0, 9.0], "model_scores": 1.0}
GOOD = {"1": [MOMENT], "2": [MOMENT]}


def tvr_submission(ids, predictions):
    return {"video2idx": {"v": 0}, "VCMR": [{"desc_id": i, "desc": "", "predictions": predictions} for i in ids]}


TVR_TRUTH = '{"vid_name": "v", "duration": 20.0, "ts": [0, 9], "desc": "a", "type": "v", "desc_id": 1}'


@pytest.mark.parametrize(
    ("run", "truth", "options", "sentence"),
    [
        (json.dumps(GOOD)[:-9], TRUTH, [], "not valid JSON"),
        (json.dumps(GOOD | {"77": [MOMENT]}), TRUTH, [], "query 77 is not in"),
        (json.dumps(GOOD | {"2": []}), TRUTH, [], "query 2 has no predictions (an empty list)"),
        (json.dumps({"1": [MOMENT]}), TRUTH, [], "query 2 has no predictions"),
        ("{}", TRUTH, [], "not recognised as predictions"),
        ("[]", TRUTH, [], "not recognised as predictions"),
        ("", TRUTH, [], "the file is empty"),
        (json.dumps(GOOD | {"2": [MOMENT | {"timestamp": [float("nan"), 9]}]}), TRUTH, [], "not finite numbers"),
        (json.dumps(GOOD | {"2": [MOMENT | {"timestamp": [None, 9]}]}), TRUTH, [], "expected 2 numbers"),
        (json.dumps(GOOD | {"2": [MOMENT | {"timestamp": [9, 9]}]}), TRUTH, [], "start >= end"),
        (json.dumps(GOOD | {"2": [MOMENT | {"timestamp": [-3, 9]}]}), TRUTH, [], "a negative start"),
        ('{"1": [], "1": [], "2": []}'.replace("[]", json.dumps([MOMENT])), TRUTH, [], "occurs more than once"),
        (json.dumps([{"query_id": 1, "predictions": [[0, 1, 2, 3]]}]), TRUTH, [], "give the file that numbers them"),
        (json.dumps(tvr_submission([1, 1], [[0, 0, 9, 1]])), TVR_TRUTH, [], "query 1 occurs more than once"),
        (json.dumps(tvr_submission([1, 5], [[0, 0, 9, 1]])), TVR_TRUTH, ["--official"], "query 5 is not in"),
        (json.dumps(tvr_submission([1], [])), TVR_TRUTH, ["--official"], "no predictions (an empty list)"),
        (json.dumps(tvr_submission([1], [[7, 0, 9, 1]])), TVR_TRUTH, [], "no video has the index 7"),
        (json.dumps(GOOD), TRUTH, ["-m", "NDGC@10[IoU>=0.5]"], "did you mean 'NDCG@10[IoU>=0.5]'?"),
        (json.dumps(GOOD), TRUTH, ["-p", "tvr-rankin"], "did you mean 'tvr-ranking'?"),
        (json.dumps(GOOD), TRUTH, ["--by", "colour"], "no 'colour' to group by"),
        (json.dumps(GOOD), TRUTH, ["--official", "--ci"], "--official prints a fixed report"),
        (json.dumps(GOOD), TRUTH, ["-m", "dR@1[IoU>=0.5]"], "dR needs the duration"),
        (json.dumps(GOOD), [TRUTH[0], TRUTH[0]], [], "query 1 occurs more than once"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(momentseek, tmp_path, run, truth, options, sentence):
    (tmp_path / "run.json").write_text(run)
    (tmp_path / "truth.json").write_text(truth if isinstance(truth, str) else json.dumps(truth))
    result = momentseek("evaluate", "run.json", "--truth", "truth.json", *options, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("momentseek: ")


def test_rejects_gzip_bomb_early(momentseek, tmp_path):
    block = gzip.compress(b"\0" * (1 << 24), 9)
    (tmp_path / "run.json.gz").write_bytes(block * 300)  # 5 GB when unpacked
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    result = momentseek("evaluate", "run.json.gz", "--truth", "truth.json", cwd=tmp_path)
    assert result.returncode == 2
    assert "decompression bomb" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_missing_file_and_folder(momentseek, tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    for run, why in (("absent.json", "No such file"), (".", "Is a directory")):
        result = momentseek("evaluate", run, "--truth", "truth.json", cwd=tmp_path)
        assert result.returncode == 2
        assert why in result.stderr


def test_invalid_predictions_can_be_dropped_and_are_reported(momentseek, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(GOOD | {"2": [MOMENT | {"timestamp": [9, 9]}, MOMENT]}))
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    result = momentseek("evaluate", "run.json", "-t", "truth.json", "--invalid", "drop", "--json", cwd=tmp_path)
    report = json.loads(result.stdout)
    assert report["notes"] == ["run.json: 1 moment with start >= end dropped (query 2, rank 1: 9–9 s)"]


def test_missing_queries_can_be_counted_or_left_out(momentseek, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"1": [MOMENT]}))
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    values = {}
    for missing in ("zero", "skip"):
        result = momentseek("evaluate", "run.json", "-t", "truth.json", "--missing", missing, "--json", cwd=tmp_path)
        report = json.loads(result.stdout)
        values[missing] = report["measures"]["NDCG@10[IoU>=0.5]"]
        assert report["missing"] == 1
        assert report["missing_queries"] == ["2"]
    assert values == {"zero": 0.5, "skip": 1.0}


def qvhighlights_files(folder, windows):
    truth = [
        {
            "qid": q,
            "query": "",
            "duration": 4,
            "vid": f"v{q}",
            "relevant_windows": [[0, 2]],
            "relevant_clip_ids": [0],
            "saliency_scores": [[4, 4, 4]],
        }
        for q in (1, 2)
    ]
    run = [
        {"qid": q, "query": "", "vid": f"v{q}", "pred_relevant_windows": w, "pred_saliency_scores": [1.0, 0.0]}
        for q, w in zip((1, 2), windows, strict=True)
    ]
    (folder / "truth.jsonl").write_text("\n".join(map(json.dumps, truth)))
    (folder / "run.jsonl").write_text("\n".join(map(json.dumps, run)))
    return ["evaluate", "run.jsonl", "--truth", "truth.jsonl", "--protocol", "qvhighlights"]


def test_query_with_only_saliency_is_missing_for_windows(momentseek, tmp_path):
    command = qvhighlights_files(tmp_path, [[[0, 2, 0.9]], []])
    refused = momentseek(*command, cwd=tmp_path)
    assert refused.returncode == 2
    assert "query 2 has no predictions (an empty list)" in refused.stderr
    assert momentseek(*command, "--official", cwd=tmp_path).returncode == 2
    values = {}
    for missing in ("zero", "skip"):
        report = json.loads(momentseek(*command, "--missing", missing, "--json", cwd=tmp_path).stdout)
        values[missing] = report["measures"]["R@1[IoU>=0.5]"], report["measures"]["HIT@1[level=fair]"]
    assert values == {"zero": (0.5, 1.0), "skip": (1.0, 1.0)}


def test_per_query_rejects_inputs_and_other_endings(momentseek, root, tmp_path):
    truth = tmp_path / "truth.jsonl"
    truth.write_bytes((root / "examples/kitchen/truth.jsonl").read_bytes())
    before = truth.read_bytes()
    command = ["evaluate", root / "examples/kitchen/careful.jsonl", "--truth", truth, "-m", "mIoU", "--per-query"]
    for target, why in ((truth, "is an input"), (tmp_path / "x.txt", ".csv or .jsonl")):
        result = momentseek(*command, target)
        assert result.returncode == 2
        assert why in result.stderr
    assert truth.read_bytes() == before


def test_huge_cutoff_needs_little_memory(momentseek, root):
    folder = root / "examples/kitchen"
    names = [f"{name}@1000000" for name in ("mAP", "AxIoU", "DCG", "Judged")] + ["AP@1000000[IoU>0.5]"]
    asked = [word for name in names for word in ("-m", name)]
    result = momentseek("evaluate", folder / "careful.jsonl", "-t", folder / "truth.jsonl", *asked, "--json")
    assert len(json.loads(result.stdout)["measures"]) == 5


def test_official_refuses_a_truth_without_an_official_evaluator(momentseek, tmp_path):
    (tmp_path / "truth.jsonl").write_text('{"query_id": 1, "video": "v", "start": 0, "end": 9, "relevance": 1}')
    (tmp_path / "run.jsonl").write_text('{"query_id": 1, "video": "v", "start": 0, "end": 9, "score": 1}')
    result = momentseek("evaluate", "run.jsonl", "-t", "truth.jsonl", "--official", cwd=tmp_path)
    assert result.returncode == 2
    assert "no official evaluator is known" in result.stderr


def test_full_disk_is_one_sentence(root):
    command = f"{sys.executable} -m momentseek measures > /dev/full"
    result = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "momentseek: cannot write the output (No space left on device)\n"
