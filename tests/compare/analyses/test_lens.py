import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import lens_table


def test_at_the_end_the_lens_gives_the_models_own_answers(induction, noise, task):
    for model in (induction, noise):
        studied = as_studied_model(model, task, task.held_out[:50])
        table = lens_table(studied)
        last = table[table["point"] == studied.residual_points[-1]].set_index("position")
        for column, place in enumerate(task.loss_positions):
            name = task.positions[place]
            assert last.loc[name, name] == pytest.approx(studied.right()[:, column].mean())


def test_there_is_one_row_per_node(noise, task):
    studied = as_studied_model(noise, task, task.held_out[:50])
    table = lens_table(studied)
    assert len(table) == len(studied.residual_points) * task.n_ctx
    assert table["share"].between(0, 1).all()
    assert set(table["answer"]) <= {*map(str, task.outputs), "–"}
