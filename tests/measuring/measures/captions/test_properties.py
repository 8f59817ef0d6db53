"""Array code against loops over words, and what must hold of any captions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measuring.measures.captions import reference_loops as loops

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures import Alignment, CaptionAlignment, parse
from momentseek.measuring.measures.captions.meteor_exact import match_words

sentences = st.lists(st.sampled_from("abcde"), max_size=9)
moments = st.lists(st.tuples(sentences, st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=6)
QUICK = ["BLEU@1", "BLEU@2", "BLEU@4", "ROUGE-L", "CIDEr-D", "CIDEr", "METEOR-exact"]


def tables(pairs):
    ids = range(len(pairs))
    return (
        CaptionTable.from_groups(ids, [[" ".join(caption)] for caption, _ in pairs]),
        CaptionTable.from_groups(ids, [[" ".join(r) for r in group] for _, group in pairs]),
    )


def scores(pairs, name):
    measure = parse(name)
    return measure.figures(measure.statistics(CaptionAlignment(*tables(pairs))))


@given(moments, st.integers(1, 5))
def test_bleu(pairs, n):
    captions, references = zip(*pairs, strict=True)
    measure = parse(f"BLEU@{n}")
    statistics = measure.statistics(CaptionAlignment(*tables(pairs)))
    whole = measure.figures(statistics.sum(axis=0, keepdims=True))[0]
    assert whole == pytest.approx(loops.bleu(captions, references, n), rel=1e-12, abs=1e-300)
    each = [loops.bleu([c], [r], n) for c, r in pairs]
    assert measure.figures(statistics) == pytest.approx(each, rel=1e-12, abs=1e-300)


@given(moments)
def test_rouge_l(pairs):
    assert scores(pairs, "ROUGE-L") == pytest.approx([loops.rouge_l(c, r) for c, r in pairs], abs=1e-14)


@given(moments)
def test_cider(pairs):
    captions, references = zip(*pairs, strict=True)
    assert scores(pairs, "CIDEr-D") == pytest.approx(loops.cider(captions, references), abs=1e-10)
    assert scores(pairs, "CIDEr") == pytest.approx(loops.cider(captions, references, plain=True), abs=1e-10)


@given(st.lists(st.sampled_from("abc"), max_size=5), st.lists(st.sampled_from("abc"), max_size=5))
def test_the_fewest_chunks(caption, reference):
    matches, chunks = loops.fewest_chunks(caption, reference)
    whole = caption == reference
    assert match_words(caption, reference) == (matches, 0 if whole else chunks)


@given(moments, st.sampled_from(QUICK))
def test_bounds_and_order(pairs, name):
    """Values lie where they should, and moments in another order have the same."""
    values = scores(pairs, name)
    assert (values >= 0).all()
    assert (values <= (10 if name.startswith("CIDEr") else 1) + 1e-6).all()
    assert scores(pairs[::-1], name)[::-1] == pytest.approx(values, abs=1e-12)


def test_an_empty_caption_scores_nothing_and_a_copy_all():
    pairs = [([], [list("abc")]), (list("dabec"), [list("dabec"), list("ab")])]
    for name in QUICK:
        empty, copy = scores(pairs, name)
        assert empty == pytest.approx(0, abs=1e-8)
        if name not in ("CIDEr-D", "CIDEr"):
            assert copy == pytest.approx(1, abs=1e-8)


def test_a_subset_of_the_moments_changes_cider_d():
    pairs = [(list("abcd"), [list("abce")]), (list("ab"), [list("abx")]), (list("cd"), [list("yz")])]
    assert scores(pairs, "CIDEr-D")[0] != pytest.approx(scores(pairs[:2], "CIDEr-D")[0])
    assert scores(pairs[:1], "CIDEr-D").tolist() == [0.0]


def test_thousands_of_references_are_no_trouble():
    some = np.random.default_rng(0).choice(list("abcdefgh"), (5000, 8)).tolist()
    pairs = [(list("abcdefgh"), some), (list("ab"), [list("abc")])]
    result = evaluate(*tables(pairs), ["BLEU@4", "ROUGE-L", "CIDEr-D"])
    assert result["BLEU@4"] > 0
    assert any("moment 0 has 5,000 references" in note for note in result.notes)


def test_measures_of_captions_and_of_moments_are_kept_apart():
    truth = Judgements.from_rows([("q", "v", 0, 5, 1)])
    run = Run.from_rows([("q", "v", 0, 5, 0.5)])
    with pytest.raises(MomentseekError, match=r"BLEU@4 compares captions, but \(memory\) holds ranked moments"):
        parse("BLEU@4")(Alignment(run, truth))
    with pytest.raises(MomentseekError, match="there is no 'METEOR-exct'; did you mean 'METEOR-exact'"):
        parse("METEOR-exct")
