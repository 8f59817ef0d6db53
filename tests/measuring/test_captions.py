"""Captions are evaluated, grouped and compared by the same code as moments."""

from __future__ import annotations

import json

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring import result as results
from momentseek.measuring.compare import compare
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures.captions import meteor
from momentseek.measuring.official import render
from momentseek.measuring.report import as_json, as_text, intervals
from momentseek.measuring.resampling import exchange_test

TEXT = "a dog runs home and the old cat sleeps on his warm bed near two open doors"
WORDS = TEXT.split()
QUICK = ["BLEU@1", "BLEU@4", "ROUGE-L", "CIDEr-D"]


def captions(seed, size=20, known=5, several=1):
    """Captions of which every ``known``-th word is what it should be, of moments of two lengths."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(size):
        right = [WORDS[(i + j) % len(WORDS)] for j in range(8)]
        texts = [
            " ".join(w if rng.random() < known / 10 else str(rng.choice(WORDS)) for w in right) for _ in range(several)
        ]
        rows.append((i, f"video {i % 10}", 0, 5 if i % 2 else 40, texts))
    return CaptionTable.from_rows(rows)


TRUTH = captions(0, known=9, several=3)
GOOD, POOR = captions(1, known=8), captions(2, known=2)


def test_the_figure_of_a_group_is_that_of_its_captions_alone():
    result = evaluate(GOOD, TRUTH, ["BLEU@2", "ROUGE-L"])
    groups = result.by("length")
    assert {label: n for label, (n, _) in groups.items()} == {"long": 10, "short": 10}
    short = [i for i in range(20) if i % 2]
    part = evaluate(part_of(GOOD, short), part_of(TRUTH, short), ["BLEU@2", "ROUGE-L"])
    assert groups["short"][1] == pytest.approx(part.means)


def part_of(table, chosen):
    return CaptionTable.from_groups([table.query_ids[i] for i in chosen], [table.groups()[i] for i in chosen])


def test_bleu_is_no_mean_and_its_interval_holds_it():
    result = evaluate(GOOD, TRUTH, QUICK)
    assert result["BLEU@4"] != pytest.approx(result.values[:, 1].mean())
    assert result["ROUGE-L"] == pytest.approx(result.values[:, 2].mean())
    found = intervals(result, "length")
    for label, means in {"": result.means, **{k: m for k, (_, m) in result.by("length").items()}}.items():
        for name, (low, high) in found[label].items():
            assert low < means[name] < high
    assert "Brackets: 95 % bootstrap interval over the moments, those of each of 10 videos drawn together." in as_text(
        result, "length", found
    )
    assert as_json(result, "length", found)["by"]["short"]["queries"] == 10


def test_missing_captions_are_refused_or_empty_or_left_out():
    some = CaptionTable.from_groups(GOOD.query_ids[1:], GOOD.groups()[1:])
    with pytest.raises(MomentseekError, match=r"moment 0 has no caption, but \(memory\) has references for it"):
        evaluate(some, TRUTH, QUICK)
    zero = evaluate(some, TRUTH, QUICK, missing="zero")
    empty = CaptionTable.from_groups(GOOD.query_ids, [[""], *GOOD.groups()[1:]])
    assert zero.means == pytest.approx(evaluate(empty, TRUTH, QUICK).means)
    assert zero.missing == ("0",)
    left = evaluate(some, TRUTH, ["BLEU@4", "ROUGE-L"], missing="skip")
    rest = evaluate(some, part_of(TRUTH, range(1, 20)), ["BLEU@4", "ROUGE-L"])
    assert left.means == pytest.approx(rest.means)
    assert np.isnan(left.values[0]).all()


def test_two_systems_are_compared_by_exchanging_their_captions():
    runs = [evaluate(table, TRUTH, QUICK, label=name) for table, name in ((GOOD, "good"), (POOR, "poor"))]
    found = compare(runs)
    for m, name in enumerate(QUICK):
        pair = found.pair(name, "good", "poor")
        assert found.means[:, m] == pytest.approx([run[name] for run in runs])
        assert pair.difference == pytest.approx(runs[0][name] - runs[1][name])
        assert pair.low < pair.difference < pair.high
        assert pair.significant
    assert "20 moments" in repr(found)
    same = compare([runs[0], evaluate(GOOD, TRUTH, QUICK, label="again")])
    assert {pair.p for pair in same.pairs} == {1.0}
    for test in ("t", "tukey"):
        with pytest.raises(MomentseekError, match="BLEU@1, BLEU@4: figures of all captions together"):
            compare(runs, test=test)


def test_the_exchange_test_tries_every_exchange_where_captions_are_few():
    few = [0, 1, 2, 3, 4]
    one, two = (evaluate(part_of(t, few), part_of(TRUTH, few), "BLEU@1") for t in (GOOD, POOR))
    measure = one.measures[0]
    rows = np.stack([one.parts["BLEU@1"], two.parts["BLEU@1"]])
    apart = []
    for flips in range(2**5):
        chosen = np.array([flips >> i & 1 for i in range(5)])
        sums = [rows[chosen ^ side, np.arange(5)].sum(axis=0, keepdims=True) for side in (0, 1)]
        apart.append(abs(float((measure.figures(sums[0]) - measure.figures(sums[1]))[0])))
    observed = abs(one["BLEU@1"] - two["BLEU@1"])
    assert exchange_test(one, two, "BLEU@1") == pytest.approx(np.mean([a >= observed - 1e-12 for a in apart]))


def test_judgements_in_memory_are_references_too():
    truth = Judgements.from_groups(["q"], [1], ["v"], [0], [5], queries=["a dog runs"])
    result = evaluate(CaptionTable.from_groups(["q"], [["a dog runs"]]), truth, ["BLEU@1", "ROUGE-L"])
    assert result.means == pytest.approx({"BLEU@1": 1, "ROUGE-L": 1})


def test_without_its_program_meteor_is_refused_or_left_out_of_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = evaluate(GOOD, TRUTH, protocol="tvc")
    assert result.names == ("BLEU@1", "BLEU@2", "BLEU@3", "BLEU@4", "ROUGE-L", "CIDEr-D")
    assert any(note.startswith("METEOR is left out; to have it, install a Java runtime") for note in result.notes)
    with pytest.raises(MomentseekError, match="METEOR is computed by its authors' Java program"):
        evaluate(GOOD, TRUTH, "METEOR")


def test_the_official_file(monkeypatch):
    monkeypatch.setattr(meteor, "meteor_statistics", lambda pairs: np.ones((len(pairs), 23)))
    found = json.loads(render("tvc", GOOD, TRUTH))
    assert list(found) == ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "METEOR", "ROUGE_L", "CIDEr"]
    assert found["CIDEr"] == evaluate(GOOD, TRUTH, "CIDEr-D")["CIDEr-D"] * 100
    with pytest.raises(MomentseekError, match="holds captions, which the evaluator of tvr does not measure"):
        render("tvr", GOOD, TRUTH)


MOMENTS = Run.from_rows([("0", "video 0", 0, 5, 1.0)])


@pytest.mark.parametrize(
    ("run", "truth", "options", "sentence"),
    [
        (
            captions(0, 25),
            TRUTH,
            {},
            r"5 moments \(20, 21, 22, …\) are not in \(memory\); use the truth these captions",
        ),
        (CaptionTable.from_rows([(0, "other", 0, 40, ["x"])]), TRUTH, {}, "moment 0 is 0–40 s of other, but in"),
        (CaptionTable.from_rows([(0, "video 0", 3, 40, ["x"])]), TRUTH, {}, "moment 0 is 3–40 s of video 0, but in"),
        (GOOD, CaptionTable.from_groups(range(20), [[]] * 20), {}, "has no captions, so there is nothing to compare"),
        (GOOD, CaptionTable.from_groups(range(20), [[], *[["x"]] * 19]), {}, "moment 0 has no caption to compare with"),
        (GOOD, TRUTH, {"protocol": "tvr"}, "protocol tvr measures ranked moments, but .* holds captions"),
        (GOOD, TRUTH, {"measures": "mIoU"}, "measure mIoU is for ranked moments, not for captions"),
        (MOMENTS, TRUTH, {}, "holds ranked moments, but .* has captions to compare with"),
        (MOMENTS, Judgements.from_rows([("0", "v", 0, 5, 1)]), {"protocol": "tvc"}, "protocol tvc measures captions"),
        (GOOD, Judgements.from_rows([("0", "v", 0, 5, 1)]), {}, "its queries have no words"),
    ],
)
def test_rejects_captions_and_options_that_do_not_match(run, truth, options, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        evaluate(run, truth, **options)


def test_what_a_reader_of_the_figures_should_know():
    run = CaptionTable.from_groups(range(3), [["", "a"], ["ein Café"], ["中文字幕"]])
    truth = CaptionTable.from_groups(range(3), [["a dog"], ["a cat"], ["狗"]])
    notes = "\n".join(evaluate(run, truth, "CIDEr-D").notes)
    assert "1 caption is empty and can match nothing" in notes
    assert (
        "2 captions have characters outside ASCII, which TVC's evaluator leaves out, and nothing is left of 1" in notes
    )
    assert "1 moments have several captions" not in notes
    assert "1 moment has several captions, of which the first counts" in notes
    assert not any("ASCII" in note for note in evaluate(run, truth, "CIDEr-D", protocol="coco").notes)
    one = evaluate(part_of(GOOD, [0]), part_of(TRUTH, [0]), "CIDEr-D")
    assert "has one moment, with which CIDEr is always 0" in one.notes[0]


def test_labels_are_files_names():
    assert results.label_of("runs/mmt.jsonl") == "mmt"
