import pytest

from rasplens.learned.published_grid import GRID, train_grid
from rasplens.tasks import get_task


def test_the_grid_has_every_specification_of_the_notebook_once():
    assert len(set(GRID.values())) == len(GRID) == 20
    assert {architecture.d_model for architecture in GRID.values()} == {4, 8, 16, 32, 64, 128}
    for name, architecture in GRID.items():
        assert architecture.identity_v
        assert architecture.identity_o == ("unfwo" not in name)
        assert (architecture.normalization == "LN") == ("_ln_" in name or "_noBias" in name)
        assert architecture.bias == ("_bias" in name or "_noLN" in name)
        assert architecture.d_model == architecture.d_head == int(name.split("_")[0][1:])


@pytest.mark.slow
def test_the_grid_gives_one_row_per_architecture():
    chosen = {name: GRID[name] for name in ("d16", "d16_ln_bias", "d16_unfwo")}
    table = train_grid(get_task("compression_notebook", n_digits=20), chosen, steps=300)
    assert list(table["name"]) == list(chosen)
    assert table["layer_norm"].tolist() == [False, True, False]
    assert table["bias"].tolist() == [False, True, False]
    assert table["frozen"].tolist() == ["W_V W_O", "W_V W_O", "W_V"]
    assert table["token"].between(0, 1).all()
