import pytest

from rasplens.learned.compressor import CompressionRecipe, compress_many
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.compressor.sweep import KEPT, spread, sweep

WIDE = 10

SHORT = CompressionRecipe(1_000, 32, 1e-2, 1e-4, warmup=100, starts=2, trial=200)


@pytest.fixture(scope="module")
def table(frac):
    return sweep(frac, [WIDE, 1, 3], SHORT, seed=1)


@pytest.mark.slow
def test_there_is_a_row_for_each_width_in_order(table, frac):
    assert table["d"].tolist() == [1, 3, WIDE]
    assert (table["D"] == WIDE).all()
    assert frac.transformer.config.d_model == WIDE
    own = evaluate(compress_many(frac, [WIDE, 1, 3], (1,), SHORT)[2])
    assert table.loc[1, "token"] == own.token
    assert table.loc[1, "cosine"] == own.cosine


@pytest.mark.slow
def test_the_knee_is_the_least_width_that_keeps_the_answers(table):
    knee = table.loc[table["is_knee"], "d"]
    assert len(knee) == 1
    assert (table.loc[table["d"] >= knee.item(), "token"] >= KEPT).all()
    assert (table.loc[table["d"] < knee.item(), "token"] < KEPT).all()
    assert table.loc[0, "token"] < KEPT


@pytest.mark.slow
def test_where_no_width_is_enough_there_is_no_knee(frac):
    assert not sweep(frac, [1], CompressionRecipe(10, 8, 1e-2, 1e-3))["is_knee"].any()


@pytest.mark.parametrize(
    ("wide", "widths"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 3, 4, 5, 6]), (26, [1, 6, 11, 16, 21, 26])]
)
def test_widths_are_spread_from_one_to_all(wide, widths):
    assert spread(wide) == widths
