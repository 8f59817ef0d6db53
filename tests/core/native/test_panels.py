from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.native.kernels import QUERIES_PER_PANEL, pad_panel, panel_places, query_panels


@given(st.integers(1, 40), st.integers(1, 9))
def test_panel_layout(queries, columns):
    codes = np.arange(1, queries * columns + 1, dtype=np.int16).reshape(queries, columns)
    panels = query_panels(codes)
    width = columns + columns % 2
    assert len(panels) == panel_places(queries) * width
    for q in range(queries):
        for j in range(columns):
            panel, place = divmod(q, QUERIES_PER_PANEL)
            at = QUERIES_PER_PANEL * (panel * width + j // 2 * 2) + 2 * place + j % 2
            assert panels[at] == codes[q, j]
    assert np.count_nonzero(panels) == codes.size


def test_padding_is_zero():
    assert pad_panel(np.ones(17, np.float32)).tolist() == [1.0] * 17 + [0.0] * 15
