import numpy as np
import pytest

from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.evidence.attention.concordance import concordance, moments


def test_concordance_is_a_concordance_of_deviations():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)

    def of(y):
        return float(concordance(np.array([(x * y).sum(), (x * x).sum(), (y * y).sum()])))

    assert of(x) == pytest.approx(1)
    assert of(-x) == pytest.approx(-1)
    assert of(0 * x) == 0
    assert of(x / 2) == pytest.approx(0.8)
    assert abs(of(rng.normal(size=500))) < 0.15
    assert np.isnan(concordance(np.full(3, np.nan)))


def test_a_sink_that_takes_the_same_share_everywhere_does_not_lower_the_concordance(with_itself):
    _, induction = active_heads(with_itself.scored)
    pattern = with_itself.scored.reference.pattern(1)[:, 0]
    for share in (0.9, 0.3):
        found = moments(induction.attention, share * pattern, induction.active_rows, induction.inactive_rows)
        assert float(concordance(found.sum(axis=1))) == pytest.approx(1, abs=1e-5)
    scattered = pattern * np.random.default_rng(0).uniform(0.2, 1, size=(len(pattern), 1, 1))
    found = moments(induction.attention, scattered, induction.active_rows, induction.inactive_rows)
    assert float(concordance(found.sum(axis=1))) < 0.95  # the negative control


def test_rows_that_are_neither_active_nor_inactive_do_not_count():
    rows = np.random.default_rng(0).uniform(size=(20, 3, 3))
    active = np.zeros((20, 3), dtype=bool)
    active[:, :2] = True
    other = rows.copy()
    other[:, 2] = 0
    nothing = np.zeros_like(active)
    np.testing.assert_allclose(moments(rows, other, active, nothing), moments(rows, rows, active, nothing))
    assert np.isnan(moments(rows, other, nothing, nothing)).all()
