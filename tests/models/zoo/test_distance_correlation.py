from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.models.zoo.tcn_dcm import distance_correlation


def by_loops(x: np.ndarray, y: np.ndarray) -> float:
    def centred(z: np.ndarray) -> list[list[float]]:
        n = len(z)
        d = [[float(np.sqrt(((z[i] - z[j]) ** 2).sum())) for j in range(n)] for i in range(n)]
        rows, whole = [sum(r) / n for r in d], sum(map(sum, d)) / n**2
        return [[d[i][j] - rows[i] - rows[j] + whole for j in range(n)] for i in range(n)]

    a, b, n = centred(x), centred(y), len(x)
    ab, aa, bb = (
        sum(p[i][j] * q[i][j] for i in range(n) for j in range(n)) / n**2 for p, q in ((a, b), (a, a), (b, b))
    )
    return float(np.sqrt(max(ab, 0)) / np.sqrt(np.sqrt(aa) * np.sqrt(bb)))


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 8), st.integers(1, 3), st.integers(0, 10**6))
def test_it_is_its_definition(n: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, columns)), rng.normal(size=(n, 2))
    found = distance_correlation(torch.tensor(x), torch.tensor(y)).item()
    np.testing.assert_allclose(found, by_loops(x, y), rtol=1e-3, atol=1e-3)


def test_a_sample_depends_on_itself_and_hardly_on_another() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = (torch.randn(600, 2, generator=g, dtype=torch.float64) for _ in range(2))
    assert distance_correlation(x, x).item() > 0.9999
    few, many = (distance_correlation(x[:n], y[:n]).item() for n in (20, 600))
    assert many < 0.12 < few


def test_equal_rows_have_finite_gradients() -> None:
    x = torch.ones(4, 3, requires_grad=True)
    distance_correlation(x, x * 2).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert bool(torch.isfinite(x.grad).all())
