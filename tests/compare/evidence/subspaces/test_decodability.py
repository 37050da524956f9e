from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.evidence.subspaces.decodability import COLUMNS, best_points, decodability
from rasplens.compare.evidence.subspaces.representations import varies
from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Map, Select, indices, numerical, tokens


def test_a_compiled_model_holds_its_own_variables_and_the_controls_do_not(with_itself):
    table = decodability(with_itself, seed=0).table
    best = table.groupby("variable")["score"].max()
    assert best.to_dict() == {"tokens": 1.0, "previous": 1.0, "induction": 1.0}
    assert (table["shuffled"] - table["chance"]).mean() < 0.05
    late = table[(table["point"] == "blocks.1.hook_resid_post") & (table["variable"] == "induction")]
    assert (late["score"] == 1).all()
    assert late["untrained"].mean() < late["score"].mean() - 0.05  # a wide random model holds a lot too


def test_a_variable_is_not_there_before_it_is_written(with_itself):
    table = decodability(with_itself, seed=0).table
    early = table[(table["variable"] == "induction") & (table["point"] == "blocks.0.hook_resid_pre")]
    assert (early["score"] < early["chance"] + 0.2).all()
    assert (early["score"] < 0.8).all()


def test_only_positions_that_the_program_uses_are_probed(with_itself, task):
    table = decodability(with_itself, seed=0).table
    used = {name: sorted(set(rows["position"])) for name, rows in table.groupby("variable")}
    assert used["induction"] == list(task.loss_positions)
    assert 8 not in used["tokens"]  # the last letter predicts nothing


def test_tables_are_reproducible(with_noise):
    first, again, other = (decodability(with_noise, seed=seed) for seed in (3, 3, 4))
    assert first.table.equals(again.table)
    for one, same in zip(first.errors, again.errors, strict=True):
        np.testing.assert_array_equal(one, same)
    assert not first.table.equals(other.table)  # other labels are shuffled


def test_constant_variables_have_nothing_to_decode():
    assert not varies(np.zeros(100, dtype=int))
    assert not varies(np.array([0] * 96 + [1] * 4))
    assert varies(np.array([0] * 90 + [1] * 10))


def test_every_row_has_the_errors_that_its_score_is_made_of(with_noise):
    found = decodability(with_noise, seed=0)
    assert len(found.errors) == len(found.table)
    assert (found.table["measure"] == "accuracy").all()
    for score, errors in zip(found.table["score"], found.errors, strict=True):
        assert errors.shape == (2, with_noise.scored.n_inputs)
        assert set(errors[0]) <= {0.0, 1.0}
        assert score == pytest.approx(1 - errors[0].mean())


def test_held_out_inputs_have_no_say_in_the_choice_of_a_hook_point(with_noise):
    """Half of what is held out moves the scores and leaves the choice."""
    found = decodability(with_noise, seed=0).table
    half = decodability(replace(with_noise, scored=with_noise.scored.on(with_noise.scored.ids[::2])), seed=0).table
    assert not np.allclose(found["score"], half["score"])
    np.testing.assert_array_equal(found["choice"], half["choice"])
    assert best_points(found)["point"].tolist() == best_points(half)["point"].tolist()


def test_the_best_hook_point_is_that_of_the_highest_choice():
    rows = [
        ("a", "accuracy", "early", 0, 0.4, 0.9, 0.2, 0.3, 0.1),
        ("a", "accuracy", "late", 0, 0.7, 0.6, 0.2, 0.5, 0.1),
        ("a", "accuracy", "late", 1, 0.5, 0.4, 0.2, 0.1, 0.1),
        ("b", "R²", "early", 0, 0.1, 0.2, 0.0, 0.0, 0.3),
    ]
    best = best_points(pd.DataFrame(rows, columns=list(COLUMNS))).set_index("variable")
    assert best.loc["a", "point"] == "late"
    assert best.loc["a", "choice"] == pytest.approx(0.6)
    assert best.loc["a", "score"] == pytest.approx(0.5)
    assert best.loc["a", "selectivity"] == pytest.approx(0.5 - 0.3)  # the mean of `shuffled` is the best control
    assert best.loc["b", "selectivity"] == pytest.approx(-0.1)


def test_numbers_that_are_undefined_somewhere_are_scored_where_they_are_defined(task):
    """The mean of the codes of the letters before: undefined at the first position."""
    earlier = Select(indices, indices, lambda key, query: key < query)
    mean = numerical(Aggregate(earlier, numerical(Map(ord, tokens)).named("code"))).named("mean")
    compiled = compile_program(mean, task.vocab, task.n_ctx, mask=task.visible)
    table = decodability(study_of(compiled, compiled, task, CompareConfig(n_inputs=60), 0), seed=0)
    numbers = table.table[table.table["measure"] == "R²"]
    assert set(numbers["variable"]) >= {"mean"}
    late = numbers[(numbers["variable"] == "mean") & (numbers["point"] == "blocks.0.hook_resid_post")]
    assert (late["score"] > 0.98).all()
    assert (numbers["chance"] == 0).all()
