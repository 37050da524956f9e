import numpy as np

from rasplens.compare.subspaces import decodability, varies


def test_a_compiled_model_holds_its_own_variables_and_the_controls_do_not(with_itself):
    table = decodability(with_itself, seed=0)
    best = table.groupby("variable")["score"].max()
    assert best.to_dict() == {"tokens": 1.0, "previous": 1.0, "induction": 1.0}
    assert (table["shuffled"] - table["chance"]).mean() < 0.05
    late = table[(table["point"] == "blocks.1.hook_resid_post") & (table["variable"] == "induction")]
    assert (late["score"] == 1).all()
    assert late["untrained"].mean() < late["score"].mean() - 0.05  # a wide random model holds a lot too


def test_a_variable_is_not_there_before_it_is_written(with_itself):
    table = decodability(with_itself, seed=0)
    early = table[(table["variable"] == "induction") & (table["point"] == "blocks.0.hook_resid_pre")]
    assert (early["score"] < early["chance"] + 0.2).all()
    assert (early["score"] < 0.8).all()


def test_only_positions_that_the_program_uses_are_probed(with_itself, task):
    table = decodability(with_itself, seed=0)
    used = {name: sorted(set(rows["position"])) for name, rows in table.groupby("variable")}
    assert used["induction"] == list(task.loss_positions)
    assert 8 not in used["tokens"]  # the last letter predicts nothing


def test_tables_are_reproducible(with_noise):
    first, again = (decodability(with_noise, seed=3) for _ in range(2))
    assert first.equals(again)


def test_constant_variables_have_nothing_to_decode():
    assert not varies(np.zeros(100, dtype=int))
    assert not varies(np.array([0] * 96 + [1] * 4))
    assert varies(np.array([0] * 90 + [1] * 10))
