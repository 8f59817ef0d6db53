"""TSP-PRL beside its public implementation: what it makes of five windows, all moves, and the rewards."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from momentseek.models.batch import Clips, Words
from momentseek.models.public.tsp_prl import KINDS
from momentseek.models.zoo.tsp_prl import BRANCHES, TspPrl, leaf_reward, move_window, root_reward


def compare(golden: GoldenFile) -> None:
    given, config = golden.input, golden.config
    units, count = given["units"], given["num_units"]
    model = golden.model("tsp_prl", seen=config["seen"], max_clips=units.shape[1])
    assert isinstance(model, TspPrl)
    mask = torch.arange(units.shape[1]) < count[:, None]
    clips = model.encode_clips(Clips(units, None, mask))["clips"]
    sentence = given["sentence"][:, None]
    query = model.encode_words(Words(sentence, torch.ones(sentence.shape[:2], dtype=torch.bool)))["query"]
    state = torch.zeros_like(query)
    for step in range(config["steps"]):
        found, state = model.decide(query, clips, count, given["window"][:, step], state)
        root = {"hidden_state": state, "global_policy": found.root, "global_value": found.root_value[:, None]}
        leaves = {f"{kind}_policy": found.leaf[:, n, : BRANCHES[n]] for n, kind in enumerate(KINDS)}
        values = {f"{kind}_value": found.leaf_value[:, n, None] for n, kind in enumerate(KINDS)}
        for name, ours in {**root, **leaves, **values, "iou_out": found.guess[:, None]}.items():
            golden.check_numbers(ours, golden.output[name][:, step], f"{name} of step {step}")
    compare_moves(golden)


def compare_moves(golden: GoldenFile) -> None:
    """Every move of every window in the table, and rewards over a grid of overlaps."""
    given = golden.input
    number, start, end, root, leaf = given["move_table"].unbind(1)
    moved, bad = move_window(torch.stack([start, end], 1), root, leaf, number)
    normal = golden.output["moved_table"][:, 2] == 1
    assert torch.equal(~bad, normal)
    assert torch.equal(moved[normal], golden.output["moved_table"][normal, :2])
    before, after, best = given["previous_iou"], given["current_iou"], given["best_iou"]
    golden.check(leaf_reward(before, after, spare=False), "leaf_reward")
    golden.check(root_reward(before, after, best), "root_reward")
