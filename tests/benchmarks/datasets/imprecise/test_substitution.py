"""Replace names by rule: the exact output for example queries."""

from __future__ import annotations

import json

import pytest

from momentseek.benchmarks.datasets.imprecise.names import Gazetteer, build_gazetteer, show_of
from momentseek.benchmarks.datasets.imprecise.substitution import substitute

NAMES = {
    "female": "Rachel Monica Phoebe Beckett Priya Meredith Amy Izzie Ann",
    "male": "Ross Chandler Castle Ryan Raj Howard Leonard Sheldon Eric Javier Mike House",
    "neutral": "Demming Gregory Lexa",
}
CAST = Gazetteer({}).with_names((name, gender) for gender, names in NAMES.items() for name in names.split())

PAPER = [  # Table 2 and Figure 3 of the paper: what is asserted is our wording; where the paper's differs, it is noted
    ("Eric and Dr. Gregory were having a conversation.", "Two people were having a conversation."),  # the same
    ("Rachel Green and Ross were having a conversation.", "Two people were having a conversation."),  # the same
    (  # paper: "Two people were having a conversation."; we keep who is described without a name
        "Javier and the young man wearing checkered polo was having a conversation.",
        "A man and the young man wearing checkered polo was having a conversation.",
    ),
    (  # the prompt's example: "A girl is shoving a tie into guy's mouth."
        "Rachel is shoving a tie into Chandler's mouth.",
        "A woman is shoving a tie into a man's mouth.",
    ),
    (  # the prompt's example: "A man agrees to meet with woman later after she asks."; we leave the verb as it is
        "Demming agree to meet with Beckett later after she asks.",
        "A person agree to meet with a woman later after she asks.",
    ),
    (  # the prompt's example: "A person walks to some people's table with a cat in his hands."
        "Sheldon walks to Raj, Howard, and Leonard's table with a cat in his hands.",
        "A man walks to three men's table with a cat in his hands.",
    ),
    (  # paper: "A person mocks the happiness of two people and rolls his/her eyes."
        "Raj mocks the happiness of Leonard and Priya and rolls his eyes.",
        "A man mocks the happiness of two people and rolls his eyes.",
    ),
    ("Ross puts a laundry basket on a coffee table.", "A man puts a laundry basket on a coffee table."),  # the same
    (  # the same
        "Phoebe is holding a puppy sitting on the chair talking to Monica and Rachel about keeping it.",
        "A woman is holding a puppy sitting on the chair talking to two women about keeping it.",
    ),
]
RULES = [
    ("Rachel and Ross are eating.", "Two people are eating."),
    ("Rachel and Ross was eating.", "Two people were eating."),
    ("Rachel and Ross sit and she leaves.", "A woman and a man sit and she leaves."),
    ("Castle looks at Beckett and Ryan leaves.", "A man looks at a woman and another man leaves."),
    ("Castle talks to Beckett and Ryan.", "A man talks to two people."),
    ("While talking to Castle, Beckett and Ryan laugh.", "While talking to a man, two people laugh."),
    ("Raj and Howard greet Leonard and Sheldon.", "Two men greet two other men."),
    ("Ross, Chandler and a woman sit.", "Two men and a woman sit."),
    ("Ross hugs Chandler, then Ross cries.", "A man hugs another man, then the first man cries."),
    ("Ross hugs Chandler, then Chandler cries.", "A man hugs another man, then the other man cries."),
    ("Rachel sits. Rachel stands up.", "A woman sits. The woman stands up."),
    ("Rachel and Monica eat in Monica's kitchen.", "Two women eat in one woman's kitchen."),
    ("A man talks to Castle.", "A man talks to another man."),
    ("George walks behind a sitting Meredith.", "George walks behind a sitting woman."),
    ("Phoebe kisses her husband Mike.", "A woman kisses her husband."),
    ("Rachel's sister Amy's mug falls.", "A woman's sister's mug falls."),
    ("A girl named Ann waves.", "A girl waves."),
    ("Detective Beckett greets Dr. House.", "A detective greets a doctor."),
    ("He meets detective Beckett.", "He meets a detective."),
    ("Detectives Ryan and Castle run.", "Two detectives run."),
    ("Mr. and Mrs. Geller wave.", "A couple wave."),
    ("Both Ross and Chandler wave.", "Both men wave."),
    ("Ross' mug and rachel's mug.", "A man's mug and a woman's mug."),
    ("House turns his back.", "A man turns his back."),
    ("They walk around the house.", "They walk around the house."),
    ("She hands him a cup.", "She hands him a cup."),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), PAPER + RULES)
def test_wording(text, expected):
    assert substitute(text, CAST).text == expected


def test_replacements_point_into_the_original():
    text = "Rachel Green and Ross was with Dr. House's dog."
    result = substitute(text, CAST)
    assert all(text[r.start : r.end] == r.what for r in result.replacements)
    assert [(r.what, r.by, r.gender) for r in result.replacements] == [
        ("Rachel Green and Ross", "Two people", "neutral"),
        ("was", "were", "neutral"),
        ("Dr. House's", "a doctor's", "male"),
    ]


@pytest.mark.parametrize(
    ("show", "text", "expected"),
    [
        ("castle", "castle paces while beckett sits.", "A man paces while a woman sits."),
        ("castle", "He builds a sand castle.", "He builds a sand castle."),
        ("castle", "She hands castle a cup.", "She hands a man a cup."),
        ("", "castle paces while beckett sits.", "castle paces while a woman sits."),
        ("friends", "castle paces.", "castle paces."),
    ],
)
def test_lower_case_names_need_their_show(show, text, expected):
    learnt = build_gazetteer(
        [("Castle brushes his hair by Beckett.", "castle"), ("Beckett brushes her hair.", "castle")] * 6
    )
    assert substitute(text, learnt, show=show).text == expected


def test_strict_takes_every_chance():
    cast = Gazetteer({}).with_names([("Penny", "female")])
    assert substitute("She sees the Penny.", cast).text == "She sees the Penny."
    assert substitute("She sees the Penny.", cast, strict=True).text == "She sees the woman."


def test_real_pairs(data, tvr_cast):
    """Val queries that are both in TVR and in the authors' predictions: what the authors' model made of them."""
    tvr = {r["desc_id"]: r for r in map(json.loads, (data / "tvr/tvr_val_release.jsonl").read_text().splitlines())}
    cast = tvr_cast
    theirs = json.loads((data / "tvr-ranking/XML_top20_best_val_predictions.json").read_text())
    pairs = {
        r["query_id"]: (
            substitute(t["desc"], cast, show=show_of(t["vid_name"])).text.strip().rstrip("."),
            r["desc"],
        )
        for r in theirs
        if (t := tvr.get(r["query_id"]))
    }
    assert len(pairs) == 19
    same = [ours for ours, published in pairs.values() if ours == published.rstrip(".")]
    assert len(same) >= 6, pairs
