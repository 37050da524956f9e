"""What the linear map finds in streams whose every direction is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.evidence.subspaces.representations import (
    Representation,
    explained_table,
    overlap_table,
    representations,
    varies,
)
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.learned import load_pretrained
from rasplens.model import Transformer
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def found(with_itself):
    return representations(with_itself)


def is_written(study, name, point):
    points = study.learned.residual_points
    return points.index(point) >= points.index(study.compiled.variables[name].written_at)


def test_a_compiled_models_own_directions_are_found(found, with_itself):
    n = 0
    for (name, point, _), one in found.items():
        if is_written(with_itself, name, point):
            own = one.basis[with_itself.compiled.variables[name].directions]
            assert one.basis.shape[1] >= 7  # eight letters and perhaps none; they add up to one
            assert (own**2).sum() == pytest.approx(one.basis.shape[1], abs=1e-4)
            assert one.explained > 0.05
            n += 1
    assert n > 30


def test_points_of_a_large_model_are_worked_on_one_after_the_other(found, with_itself, monkeypatch):
    monkeypatch.setattr("rasplens.compare.evidence.subspaces.representations.AT_ONCE", 1)
    singly = representations(with_itself)
    assert set(singly) == set(found)
    for place, one in found.items():
        np.testing.assert_allclose(singly[place].explained, one.explained, atol=1e-9)
        np.testing.assert_allclose(singly[place].rows, one.rows, atol=1e-9)


def test_directions_of_other_variables_are_not_its_own(found, with_itself):
    """The negative control of the test above."""
    name, other = "previous", with_itself.compiled.variables["tokens"]
    basis = found[name, "blocks.1.hook_resid_post", 4].basis
    assert (basis[other.directions] ** 2).sum() < 1e-6


def test_nothing_holds_a_variable_before_it_is_written(found, with_itself):
    before = {place: one for place, one in found.items() if not is_written(with_itself, *place[:2])}
    assert len(before) > 10
    assert max(abs(one.explained) for one in before.values()) < 1e-6
    assert {place: one.basis.shape[1] for place, one in before.items() if one.basis.shape[1]} == {}


def test_shares_are_shares(found):
    table = explained_table(found)
    assert table["explained"].between(-1e-6, 1 + 1e-6).all()
    late = table[table["point"] == "blocks.1.hook_resid_post"]
    assert late["explained"].max() > 0.2  # and they do explain something


def test_bases_are_orthonormal(found, with_noise):
    for one in [*found.values(), *representations(with_noise).values()]:
        np.testing.assert_allclose(one.basis.T @ one.basis, np.eye(one.basis.shape[1]), atol=1e-9)


def test_only_positions_at_which_a_variable_is_used_have_one(found, with_itself):
    for name in with_itself.own_variables:
        places = {place[2] for place in found if place[0] == name}
        assert places <= set(with_itself.scored.relevance.positions(name))
    assert {place[2] for place in found if place[0] == "induction"} == set(
        with_itself.scored.relevance.positions("induction")
    )


def test_a_model_without_the_variables_holds_little_of_them(found, with_noise):
    """Untrained: what the letters leave of the stream is not explained by where they come from."""
    mean = {}
    for side, table in (
        ("compiled", explained_table(found)),
        ("noise", explained_table(representations(with_noise))),
    ):
        late = table[(table["variable"] == "induction") & (table["point"] == "blocks.1.hook_resid_post")]
        mean[side] = late["explained"].mean()
    assert mean["noise"] < 0.05
    assert mean["compiled"] > 0.25


def written(table: pd.DataFrame, study) -> pd.DataFrame:
    """The rows at which both variables are there."""
    return table[
        [
            is_written(study, first, point) and is_written(study, second, point)
            for first, second, point in zip(table["first"], table["second"], table["point"], strict=True)
        ]
    ]


def test_the_subspaces_of_a_compiled_model_do_not_meet(found, with_itself):
    table = written(overlap_table(found), with_itself)
    assert set(zip(table["first"], table["second"], strict=True)) == {
        ("tokens", "previous"),
        ("tokens", "induction"),
        ("previous", "induction"),
    }
    assert table["cosine"].max() < 1e-3
    assert table["shared"].max() < 1e-6
    assert table["correlation"].abs().max() < 1e-3


@pytest.fixture(scope="module")
def sharing(induction, task):
    """The compiled model with what the first head writes, twice as large, in the directions of the tokens."""
    variables, model = induction.variables, induction.transformer
    name = "blocks.0.attn.W_O"
    output = model.weights[name].copy()
    moved = np.zeros_like(output)
    moved[..., variables["tokens"].directions] = 2 * output[..., variables["previous"].directions]
    shared = Transformer(model.config, {**model.weights, name: moved}, model.mask)
    return study_of(induction, shared, task, CompareConfig(n_inputs=96), 0, vocabulary_of(induction, task))


def test_variables_that_share_directions_are_told_so(sharing):
    found = representations(sharing)
    table = overlap_table(found)
    table = table[(table["point"] == "blocks.0.hook_resid_post") & (table["position"] >= 3)]
    both = table[(table["first"] == "tokens") & (table["second"] == "previous")]
    assert len(both) == 5
    assert both["shared"].min() > 0.999
    assert both["correlation"].min() > 0.999  # the same letter is written in the same direction
    np.testing.assert_allclose(both["scale"], 2, atol=0.01)
    assert all(found["previous", "blocks.0.hook_resid_post", p].explained > 0.1 for p in (3, 4, 5))


def synthetic(first: np.ndarray, second: np.ndarray) -> pd.Series:
    """The overlap of two variables that write such rows, each in the span of them."""
    place = ("blocks.0.hook_resid_pre", 0)
    found = {
        (name, *place): Representation(rows, np.linalg.svd(rows - rows.mean(axis=0))[2][:1].T, 0.5, (0, 1))
        for name, rows in (("a", first), ("b", second))
    }
    return overlap_table(found).iloc[0]


def test_an_overlap_by_hand():
    """Two lines at 60 degrees, the second three times as long and the other method round."""
    step = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    slanted = 3 * np.array([[0.5, np.sqrt(0.75), 0.0], [0.0, 0.0, 0.0]])
    row = synthetic(step, slanted)
    assert row["cosine"] == pytest.approx(0.5)
    assert row["shared"] == pytest.approx(0.25)
    assert row["correlation"] == pytest.approx(-0.5)
    assert row["scale"] == pytest.approx(3)


def test_variables_without_values_in_common_have_no_correlation(found):
    place = ("tokens", "blocks.0.hook_resid_post", 4)
    other = ("previous", "blocks.0.hook_resid_post", 4)
    apart = {place: found[place], other: replace(found[other], present=tuple(range(100, 108)))}
    row = overlap_table(apart).iloc[0]
    assert np.isnan(row["correlation"])
    assert np.isnan(row["scale"])
    assert np.isfinite(overlap_table({place: found[place], other: found[other]}).iloc[0]["scale"])


def test_a_variable_that_hardly_varies_is_constant():
    assert not varies(np.array([0] * 96 + [1] * 4))
    assert varies(np.array([0] * 95 + [1] * 5))


@pytest.mark.slow
def test_the_slots_of_the_learned_compression_share_one_subspace_and_differ_in_scale():
    """The published finding (Farrell et al. 2025); in the compiled model the two are orthogonal."""
    task = get_task("compression")
    compiled = compile_program(task.programs["slots"], task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, load_pretrained("compression"), task, CompareConfig(n_inputs=300), 0)
    learned, reference = (overlap_table(representations(study, side)) for side in ("learned", "reference"))
    (last,) = learned[learned["point"] == "blocks.1.hook_resid_post"].itertuples()
    assert {last.first, last.second} == {"first", "second"}
    assert last.shared > 0.9
    assert last.correlation > 0.5
    assert last.scale < 0.5
    assert reference["shared"].max() < 0.05
