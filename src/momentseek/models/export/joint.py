"""The one graph of a model that looks at query and video together: words and clips in, scores of spans out.

Nothing can be kept of a video before the query is known, so these models re-rank: another search says which videos are
worth a look (``search --rerank``). 2D-TAN, MDD and CET are drawn here, the others are ``traced``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.models.batch import Clips, Words, take_rows
from momentseek.models.export.graphs import COMPARED_VIDEOS, ExportableKind, ModelGraphs, relative_difference
from momentseek.models.export.nodes import LOWEST_SCORE, Nodes, as_spans, convolve_lengths, max_over, neighbours
from momentseek.models.inputs import needs_roles, role_parser
from momentseek.models.layers.projection import clip_width
from momentseek.models.zoo.bet import ClipTokens
from momentseek.models.zoo.cet import Cet
from momentseek.models.zoo.mdd import NOUN_ROLE as NOUN
from momentseek.models.zoo.mdd import VERB_ROLE as VERB
from momentseek.models.zoo.mdd import Branch, Deconfounder, Mdd, RoleTree
from momentseek.models.zoo.tan2d import SentenceEncoder, Tan2d
from momentseek.recognition.encoders.onnx_writer import Shape
from momentseek.recognition.exported.manifest import JOINT_GRAPH, JOINT_KIND
from momentseek.recognition.runtime import session


def draw(model: Tan2d | Cet, settings: Mapping[str, Any]) -> ModelGraphs:
    """The graph, and what re-ranking must know beside it."""
    graph = network(model)
    head = {
        "kind": JOINT_KIND,
        "roles": needs_roles(model.config),
        "parse": role_parser(model.config),
        "end_time": settings["end_time"],
        "nms": settings.get("nms"),
        "window": settings.get("window"),
    }
    return ModelGraphs({JOINT_GRAPH: graph}, tuple(_widths(model)), head, difference_from_torch(model, graph))


def network(model: Tan2d | Cet) -> bytes:
    """``words`` (1, words, columns) and the modalities' (videos, clips, columns) to ``spans`` (videos, clips, lengths).

    MDD is told the words' ``roles`` and ``phrase`` (1, words), CET which clips are there (``mask``). Spans that do not
    exist are below -1e38.
    """
    nodes = Nodes("joint")
    graph, config = nodes.graph, model.config
    words = graph.input("words", "float32", [1, "words", model.dims.query])
    widths = _widths(model)
    clips = [graph.input(part, "float32", ["videos", "clips", width]) for part, width in widths.items()]
    spans = _edge_spans(nodes, model, words, clips) if isinstance(model, Cet) else _map(nodes, model, words, clips)
    lengths = config.longest if isinstance(model, Tan2d) else config.longest - config.shortest + 1
    shape: Shape = ["videos", "clips", lengths]
    graph.output(graph.add("Identity", spans, output="spans"), "float32", shape)
    return graph.model()


def _widths(model: Tan2d | Cet) -> dict[str, int]:
    config = model.config
    return {part: clip_width(model.dims, config, part) for part in config.modalities.split("+")}


# 2D-TAN and MDD


def _map(nodes: Nodes, model: Tan2d, words: str, clips: list[str]) -> str:
    sentence, states = _sentence(nodes, model.sentence, words)
    if isinstance(model, Mdd) and model.tree is not None:
        sentence = _tree(nodes, model.tree, sentence, states, model.config.max_words)
    query = nodes.add("Unsqueeze", nodes.linear(model.text_in, sentence), nodes.integers(1))
    seen = nodes.map_clips(model.clips, clips)
    cells = model.cells
    moments = max_over(nodes, seen, cells) if model.stack is None else convolve_lengths(nodes, model.stack, seen)
    if isinstance(model, Mdd) and model.deconfounder is not None:
        moments = _deconfound(nodes, model.deconfounder, query, moments)
    fused = nodes.unit(nodes.add("Mul", query, nodes.linear(model.map_in, moments)))
    logits = nodes.linear(model.score, neighbours(nodes, model.neighbours, fused, cells))
    scores = _log_sigmoid(nodes, nodes.add("Squeeze", logits, nodes.integers(2)))
    return as_spans(nodes, scores, cells, model.config.longest)


def _sentence(nodes: Nodes, layer: SentenceEncoder, words: str) -> tuple[str, str]:
    """The LSTM's last state (1, hidden) and all of them (1, words, hidden)."""
    own = layer.lstm
    x = nodes.add("Transpose", words, perm=[1, 0, 2])
    for number in range(own.num_layers):
        parts = [_gates(getattr(own, f"{kind}_l{number}"), own.hidden_size) for kind in ("weight_ih", "weight_hh")]
        bias = [_gates(getattr(own, f"{kind}_l{number}"), own.hidden_size)[:, 0] for kind in ("bias_ih", "bias_hh")]
        given = [nodes.constant(part[None]) for part in (*parts, np.concatenate(bias))]
        out = nodes.add("LSTM", x, *given, hidden_size=own.hidden_size)
        x = nodes.add("Squeeze", out, nodes.integers(1))  # from (words, directions, queries, columns)
    last = nodes.add("Gather", x, nodes.constant(-1, "int64"), axis=0)
    return last, nodes.add("Transpose", x, perm=[1, 0, 2])


def _gates(values: Tensor, hidden: int) -> NDArray[Any]:
    """ONNX has the gates in the order i, o, f, c; torch i, f, c, o."""
    i, f, c, o = values.detach().cpu().numpy().reshape(4, hidden, -1)
    return np.concatenate([i, o, f, c])


def _tree(nodes: Nodes, tree: RoleTree, sentence: str, states: str, most: int) -> str:
    """The sentence, gated by its phrases; one with no roles stays as it is."""
    graph = nodes.graph
    roles, phrase = (graph.input(name, "int64", [1, "words"]) for name in ("roles", "phrase"))
    verb, noun = (nodes.add("Equal", roles, nodes.constant(role, "int64")) for role in (VERB, NOUN))
    above, below = tree.score.weight.detach().T.chunk(2)  # the tanh is taken column by column, so the sum falls apart
    down = nodes.add("MatMul", nodes.add("Tanh", nodes.linear(tree.down, states)), nodes.constant(below))
    of_words = nodes.add("Squeeze", down, nodes.integers(2))

    def attention(top: str) -> str:
        of_top = nodes.add("MatMul", nodes.add("Tanh", nodes.linear(tree.top, top)), nodes.constant(above))
        return nodes.add("Add", of_top, of_words)

    def weigh_states(weights: str) -> str:
        return nodes.add("Squeeze", nodes.add("MatMul", weights, states), nodes.integers(1))

    one = nodes.integers(1)
    of_verbs = attention(sentence)
    alpha = _shares(nodes, of_verbs, verb)
    of_nouns = attention(weigh_states(nodes.add("Unsqueeze", alpha, one)))
    scores = nodes.add("Unsqueeze", nodes.add("Where", verb, of_verbs, of_nouns), one)
    number = nodes.constant(np.arange(most)[:, None], "int64")
    own = nodes.add("Equal", nodes.add("Unsqueeze", phrase, one), number)
    plays = nodes.add("Unsqueeze", nodes.add("Or", verb, noun), one)
    beta = _shares(nodes, scores, nodes.add("And", own, plays))  # (1, phrases, words)
    gate = weigh_states(nodes.add("ReduceSum", beta, one, keepdims=1))
    verbs = nodes.add("ReduceSum", nodes.add("Cast", verb, to=1), one, keepdims=1)
    mean = nodes.add("Div", gate, nodes.add("Max", verbs, nodes.constant(np.float32(1))))
    return nodes.add("Add", sentence, nodes.add("Mul", sentence, mean))


def _shares(nodes: Nodes, scores: str, where: str) -> str:
    """Softmax over the words ``where`` says; zero where there are none."""
    weights = nodes.add("Softmax", nodes.add("Where", where, scores, nodes.constant(np.float32(-1e9))), axis=-1)
    return nodes.add("Mul", weights, nodes.add("Cast", where, to=1))


def _deconfound(nodes: Nodes, layer: Deconfounder, query: str, moments: str) -> str:
    both = nodes.add("Add", nodes.linear(layer.of_query, query), nodes.linear(layer.of_moment, moments))
    asked = nodes.linear(layer.joint, both)
    product = ""
    for branch in layer.branches:
        assert isinstance(branch, Branch)
        mixed = _branch(nodes, branch, asked)
        product = nodes.add("Mul", product, mixed) if product else mixed
    return nodes.add("Add", moments, product) if product else moments


def _branch(nodes: Nodes, branch: Branch, asked: str) -> str:
    """Attention over a dictionary, whose keys and values are constants by now."""
    with torch.no_grad():
        keys, values = (
            part(branch.entries).reshape(len(branch.entries), branch.heads, -1) for part in (branch.keys, branch.values)
        )
    size = keys.shape[2]
    split = nodes.add("Reshape", asked, nodes.integers(0, 0, branch.heads, size))
    split = nodes.add("Transpose", split, perm=[0, 2, 1, 3])
    scores = nodes.add("MatMul", split, nodes.constant(keys.permute(1, 2, 0) / math.sqrt(size)))
    mixed = nodes.add("MatMul", nodes.add("Softmax", scores, axis=-1), nodes.constant(values.transpose(0, 1)))
    mixed = nodes.add("Transpose", mixed, perm=[0, 2, 1, 3])
    return nodes.add("Reshape", mixed, nodes.integers(0, 0, branch.heads * size))


# CET


def _edge_spans(nodes: Nodes, model: Cet, words: str, clips: list[str]) -> str:
    graph, config = nodes.graph, model.config
    mask = graph.input("mask", "bool", ["videos", "clips"])
    seen = _tokens(nodes, model.clips, clips)
    said = nodes.add("Add", nodes.linear(model.words, words), _first(nodes, model.places, words))
    videos = nodes.add("Slice", nodes.add("Shape", seen), nodes.integers(0), nodes.integers(1))
    size = nodes.add("Slice", nodes.add("Shape", said), nodes.integers(1), nodes.integers(3))
    said = nodes.add("Expand", said, nodes.add("Concat", videos, size, axis=0))
    count = nodes.add("Slice", size, nodes.integers(0), nodes.integers(1))
    there = nodes.add("Expand", nodes.constant([[True]], "bool"), nodes.add("Concat", videos, count, axis=0))
    joint = nodes.transformer(
        model.together, nodes.add("Concat", seen, said, axis=1), nodes.add("Concat", mask, there, axis=1)
    )
    long = nodes.add("Slice", nodes.add("Shape", seen), nodes.integers(1), nodes.integers(2))
    joint = nodes.add("Slice", joint, nodes.integers(0), long, nodes.integers(1))
    start, end = (
        nodes.add("Where", mask, _log_sigmoid(nodes, _mlp(nodes, part, joint)), nodes.constant(LOWEST_SCORE))
        for part in (model.start, model.end)
    )
    more = nodes.add("Pad", end, nodes.integers(0, 0, 0, config.longest - 1), nodes.constant(np.float32(LOWEST_SCORE)))
    last = np.add.outer(np.arange(config.max_clips), np.arange(config.shortest - 1, config.longest))
    place = nodes.add("Slice", nodes.constant(last, "int64"), nodes.integers(0), long)
    ends = nodes.add("Gather", more, place, axis=1)
    return nodes.add("Add", nodes.add("Unsqueeze", start, nodes.integers(2)), ends)


def _tokens(nodes: Nodes, layer: ClipTokens, clips: list[str]) -> str:
    joined = nodes.joint_clips(layer.joint, clips)
    return nodes.add("Add", joined, _first(nodes, layer.positions, joined))


def _first(nodes: Nodes, places: Tensor, x: str) -> str:
    """As many of the places' vectors as there are rows."""
    count = nodes.add("Slice", nodes.add("Shape", x), nodes.integers(1), nodes.integers(2))
    return nodes.add("Slice", nodes.constant(places), nodes.integers(0), count)


def _mlp(nodes: Nodes, layers: nn.Sequential, x: str) -> str:
    for layer in layers:
        x = nodes.add("Relu", x) if isinstance(layer, nn.ReLU) else nodes.linear(layer, x)
    return nodes.add("Squeeze", x, nodes.integers(2))


# both


def _log_sigmoid(nodes: Nodes, x: str) -> str:
    return nodes.add("Neg", nodes.add("Softplus", nodes.add("Neg", x)))


@torch.no_grad()
def difference_from_torch(model: Tan2d | Cet, graph: bytes) -> float:
    """The largest difference between the graph and torch in the scores of spans, as a share of the largest.

    Infinite if the one scores a span that the other does not have.
    """
    rng, config = np.random.default_rng(0), model.config
    most, network = config.preparation.rows, session(graph)
    given: dict[str, NDArray[Any]] = {
        part: rng.standard_normal((COMPARED_VIDEOS, most, width), np.float32) for part, width in _widths(model).items()
    }
    mask = np.ones((COMPARED_VIDEOS, most), np.bool_)
    if isinstance(model, Cet):
        mask = given["mask"] = np.arange(most) < np.array([[most], [max(1, most // 3)]])
    tensors = {part: torch.from_numpy(values) for part, values in given.items()}
    videos = model.encode_clips(Clips(tensors.get("video"), tensors.get("subtitle"), torch.from_numpy(mask)))
    worst = 0.0
    for count in {1, max(1, config.max_words // 2), config.max_words}:
        asked: dict[str, NDArray[Any]] = {"words": rng.standard_normal((1, count, model.dims.query), np.float32)}
        words = Words(torch.from_numpy(asked["words"]), torch.ones(1, count, dtype=torch.bool))
        if needs_roles(config):
            asked |= {"roles": rng.integers(0, 3, (1, count)), "phrase": np.arange(count)[None] // 3}
            parts = (torch.from_numpy(asked[part]) for part in ("roles", "phrase"))
            words = Words(words.features, words.mask, *parts)
        (ours,) = network.run(["spans"], {**given, **asked})
        theirs = model.spans(
            take_rows(model.encode_words(words), torch.zeros(COMPARED_VIDEOS, dtype=torch.long)), videos
        ).numpy()
        real = np.isfinite(theirs)
        if ours.shape != theirs.shape or not np.array_equal(ours > LOWEST_SCORE / 2, real):
            return math.inf
        worst = max(worst, relative_difference(np.where(real, ours, 0), np.where(real, theirs, 0)))
    return worst


JOINT_KINDS = (ExportableKind(Tan2d, ("tan2d", "mdd"), draw), ExportableKind(Cet, ("cet",), draw))
