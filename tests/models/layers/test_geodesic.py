from __future__ import annotations

import numpy as np
import pytest
import torch

from momentseek.models.zoo.g2l import geodesic_similarity


@pytest.mark.parametrize("seed", range(3))
def test_distances_are_those_of_dijkstra(seed: int) -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3)) + 1.0
    far = np.sqrt(((x[:, None] - x) ** 2).sum(2))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    rows, columns, lengths = [], [], []
    for i in range(30):
        for j in [j for j in np.argsort(far[i]) if j != i][:4]:
            rows.append(i)
            columns.append(j)
            lengths.append(1 - unit[i] @ unit[j])
    graph = sparse.csr_matrix((lengths, (rows, columns)), shape=(30, 30))
    paths = csgraph.dijkstra(graph, indices=[0, 7])
    expected = np.where(paths <= 0.2, 1 - paths, 0.0)
    found = geodesic_similarity(torch.tensor(x), torch.tensor([0, 7]), neighbours=4, reach=0.2)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    assert found[0, 0] == found[1, 7] == 1
    assert 0 < (expected > 0).sum() < expected.size


def test_permuted_cells_are_permuted() -> None:
    g = torch.Generator().manual_seed(0)
    x, order = torch.randn(12, 4, generator=g), torch.randperm(12, generator=g)
    one = geodesic_similarity(x, torch.tensor([3]), 3)
    place = int((order == 3).nonzero())
    two = geodesic_similarity(x[order], torch.tensor([place]), 3)
    torch.testing.assert_close(two, one[:, order])


def test_one_cell_is_near_itself() -> None:
    assert geodesic_similarity(torch.ones(1, 2), torch.tensor([0])).tolist() == [[1.0]]
