"""Which words of a corpus are names."""

from __future__ import annotations

from momentseek.benchmarks.datasets.imprecise.names import Gazetteer, build_gazetteer

CORPUS = [
    *[("Zorblat walks to Quentina.", "")] * 3,
    *[("A man eats his Oreo cookie in Central Perk.", "")] * 3,
    *[("The doctor sees Quentina on TV.", "")] * 3,
    ("Everyone likes Chinese food at Christmas.", ""),
    ("everyone sits.", ""),
]


def test_names_are_told_from_other_capitals():
    found = build_gazetteer(CORPUS)
    assert {n.name for n in found.names.values() if n.score >= 0.5} == {"Zorblat", "Quentina"}


def test_a_rare_misspelling_follows_its_name():
    found = build_gazetteer([*[("He sees Quentina.", "")] * 40, ("He sees Quentnia and Quentinas dog.", "")])
    assert found.get("quentnia", 0.8).who == "quentina"
    assert found.get("quentinas", 0.8).who == "quentina"


def test_pronouns_tell_gender():
    found = build_gazetteer([*[("Zorblat brushes her hair.", "")] * 5, ("A man sees Zorblat.", "")])
    assert found.get("Zorblat").gender == "female"


def test_the_user_is_believed():
    found = build_gazetteer(CORPUS).with_names([("Zorblat", "female"), ("Quentina", "word"), ("Perk", "")])
    assert found.get("zorblat").gender == "female"
    assert found.get("quentina") is None
    assert found.get("perk").score == 1


def test_two_names_side_by_side():
    cast = build_gazetteer([("Ross Geller sits.", "")] * 3)
    assert cast.one_person("Ross", "Geller")
    assert Gazetteer({}).one_person("Any", "Body")


def test_tvr(tvr_cast):
    main = {
        "male": "ross joey chandler sheldon leonard howard raj castle ryan esposito house wilson foreman chase taub "
        "ted barney marshall george derek burke richard",
        "female": "rachel monica phoebe penny amy bernadette beckett alexis martha lanie cuddy cameron thirteen park "
        "robin lily meredith cristina izzie bailey",
    }
    for gender, names in main.items():
        assert {n: tvr_cast.get(n, 0.8).gender for n in names.split()} == dict.fromkeys(names.split(), gender)
    words = "central perk christmas chinese oreo tv iv the doctor man captain"
    assert [w for w in words.split() if tvr_cast.get(w)] == []
    assert tvr_cast.get("pheobe").who == "phoebe"
