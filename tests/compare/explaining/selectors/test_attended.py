"""How far a selector describes where heads attend."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from rasplens.compare.explaining.selectors.attended import FAR, Attended


def drawn(seed, n_inputs=6, n_pos=5, rows=(1, 3, 4)):
    """Attention with some left for a start token, and a selector of some keys."""
    rng = np.random.default_rng(seed)
    attention = rng.random((n_inputs, len(rows), n_pos)) * rng.random((n_inputs, len(rows), n_pos)).round()
    attention /= attention.sum(axis=2, keepdims=True) + rng.random((n_inputs, len(rows), 1)) + 0.01
    matrix = rng.random((n_inputs, n_pos, n_pos)) < 0.5
    return Attended(list(rows), attention, np.array([0.5, 0.3, 0.2])), matrix


@pytest.mark.parametrize("seed", range(5))
def test_bits_are_the_divergence_of_attention_from_uniform_attention(seed):
    """Against scipy, row by row."""
    attended, matrix = drawn(seed)
    said = 0.0
    for place, (row, weight) in enumerate(zip(attended.rows, attended.weights, strict=True)):
        for attention, selected in zip(attended.attention[:, place], matrix[:, row], strict=True):
            total = attention.sum()
            if not selected.any():
                bits = FAR * total
            elif total < 0.05:
                bits = FAR
            else:
                bits = jensenshannon(attention, selected, base=2) ** 2
            said += weight * bits / len(matrix)
    assert attended.bits(matrix) == pytest.approx(said, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_a_selector_of_some_of_the_keys_never_costs_less_than_the_bound(seed):
    attended, matrix = drawn(seed)
    rng = np.random.default_rng(100 + seed)
    least = attended.least_bits(matrix)
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        assert attended.bits(matrix & (rng.random(matrix.shape) < share)) >= least - 1e-6
    assert least > 0
