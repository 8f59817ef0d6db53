from __future__ import annotations

import torch

from momentseek.models.zoo.conquer import QueryAware


@torch.no_grad()
def test_clips_and_words_read_each_other_as_the_formula_says() -> None:
    torch.manual_seed(0)
    layer, c, q = QueryAware(3), torch.randn(1, 4, 3), torch.randn(1, 2, 3)
    similar = torch.zeros(4, 2)
    for i in range(4):
        for j in range(2):
            w = torch.cat([layer.clip.weight[0], layer.word.weight[0], layer.both])
            similar[i, j] = w @ torch.cat([c[0, i], q[0, j], c[0, i] * q[0, j]])
    rows, best = similar.softmax(1), similar.amax(1).softmax(0)
    found = sum(best[k] * c[0, k] for k in range(4))
    expected = []
    for i in range(4):
        read = sum(rows[i, j] * q[0, j] for j in range(2))
        expected.append(torch.cat([c[0, i], read, c[0, i] * read, c[0, i] * found]))
    got = layer(c, torch.ones(1, 4, dtype=torch.bool), q, torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(got[0], torch.stack(expected))


@torch.no_grad()
def test_padding_is_not_read() -> None:
    torch.manual_seed(1)
    layer, c, q = QueryAware(3), torch.randn(2, 5, 3), torch.randn(2, 4, 3)
    clips, words = torch.arange(5) < torch.tensor([[5], [2]]), torch.arange(4) < torch.tensor([[1], [4]])
    together = layer(c, clips, q, words)
    alone = layer(c[1:, :2], clips[1:, :2], q[1:], words[1:])
    torch.testing.assert_close(together[1, :2], alone[0])
    alone = layer(c[:1], clips[:1], q[:1, :1], words[:1, :1])
    torch.testing.assert_close(together[0], alone[0])
