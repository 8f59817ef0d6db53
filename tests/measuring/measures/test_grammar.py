import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures import MEASURES, PROTOCOLS, expand, parse, parse_all
from momentseek.measuring.measures.grammar import describe_measures, describe_protocols
from momentseek.measuring.measures.measure import register
from momentseek.measuring.measures.ndcg import NDCG
from momentseek.measuring.measures.recall import Recall


def test_braces_expand_to_every_combination():
    names = expand("NDCG@{10,20,40}[IoU>={0.3,0.5,0.7}]")
    assert len(names) == 9
    assert names[0] == "NDCG@10[IoU>=0.3]"
    assert names[-1] == "NDCG@40[IoU>=0.7]"
    assert expand(" R@1 [ IoU >= 0.5 ] ") == ["R@1[IoU>=0.5]"]
    assert expand("R@1[IoU≥0.5]") == ["R@1[IoU>=0.5]"]


def test_a_measure_asked_for_twice_is_computed_once():
    assert [m.name for m in parse_all(["R@{1,5}[IoU>=0.5]", "R@1[IoU>=0.5]"])] == ["R@1[IoU>=0.5]", "R@5[IoU>=0.5]"]


def test_the_name_overrides_the_protocol_and_the_protocol_the_paper():
    options = PROTOCOLS["tvr-ranking"].options
    assert parse("NDCG@10[IoU>=0.5]") == NDCG(k=10, iou=0.5)
    assert parse("NDCG@10[IoU>=0.5]", options) == NDCG(k=10, iou=0.5, strict=True, gain="exp2")
    assert parse("NDCG@10[IoU>=0.5,gain=linear]", options) == NDCG(k=10, iou=0.5, strict=True, gain="linear")
    assert parse("R@1[IoU>0.5]", PROTOCOLS["mmn"].options) == Recall(k=1, iou=0.5, strict=True, overlap="hull32")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("NDGC@20[IoU>=0.5]", "did you mean 'NDCG@20[IoU>=0.5]'?"),
        ("ndcg@20[IoU>=0.5]", "did you mean 'NDCG@20[IoU>=0.5]'?"),
        ("Recall@1[IoU>=0.5]", "there is no 'Recall'"),
        ("NDCG[IoU>=0.5]", "needs a cut-off, as in @20"),
        ("NDCG@20", "needs an IoU, as in [IoU>=0.5]"),
        ("NDCG@0[IoU>=0.5]", "must be a whole number from 1"),
        ("NDCG@ten[IoU>=0.5]", "must be a whole number from 1"),
        ("NDCG@20[IoU>=1.5]", "must be between 0 and 1"),
        ("NDCG@20[IoU>=half]", "'half' is not a number"),
        ("NDCG@20[IoU>=0.5,gian=exp2]", "did you mean 'gain'?"),
        ("NDCG@20[IoU>=0.5,gain=log]", "must be one of linear, exp2"),
        ("NDCG@20[0.5]", "'0.5' is not an option"),
        ("mIoU@5", "mIoU takes no cut-off @K"),
        ("AxIoU@5[IoU>=0.5]", "AxIoU takes no IoU"),
        ("NDCG@20]IoU[", "cannot be read"),
        ("NDCG@{10,20[IoU>=0.5]", "braces do not match"),
        ("dR@1[IoU>=0.5,clip=maybe]", "must be yes or no"),
        ("R@1[IoU>=0.5,depth=x]", "must be a whole number"),
        ("R@1[IoU>=0.5,depth=0]", "depth must be at least 1"),
        ("R@1[IoU>=0.5,task=VR]", "leave the IoU out"),
        ("R@1[IoU>=0.5,IoU>=0.7]", "keep one of them"),
        ("NDCG@5[IoU>=0.5,gain=exp2,gain=linear]", "keep one of them"),
        ("R@1[IoU=0.5]", "write IoU>=0.5 or IoU>0.5"),
        ("R@9999999[IoU>=0.5]", "from 1 to 1,000,000"),
    ],
)
def test_a_wrong_name_gets_one_helpful_sentence(name, sentence):
    with pytest.raises(MomentseekError) as error:
        parse_all([name])
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_every_protocol_computes_its_own_measures():
    for protocol in PROTOCOLS.values():
        for measure in parse_all(protocol.measures, protocol.options):
            assert measure.ABOUT


def test_names_are_unique():
    with pytest.raises(MomentseekError, match="a measure called 'NDCG' already exists"):
        register(MEASURES["NDCG"])


def test_the_catalogue_lists_everything_with_its_options():
    measures = {m["name"]: m for m in describe_measures()}
    assert set(measures) == set(MEASURES)
    assert measures["NDCG"]["usage"] == "NDCG@K[IoU>=m]"
    assert measures["NDCG"]["options"]["gain"] == ["linear", "exp2"]
    assert [p["name"] for p in describe_protocols()] == list(PROTOCOLS)
