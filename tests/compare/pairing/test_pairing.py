import numpy as np
import pytest
import torch

from rasplens.compare import CompareConfig, as_studied_model, study_of
from rasplens.compare.pairing.control import untrained_control
from rasplens.compare.pairing.inputs import LEAST_DEFINED, defined_inputs
from rasplens.compile import compile_program, run
from rasplens.compile.rasp import Aggregate, Comparison, Map, Select, SequenceMap, indices, tokens
from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, LearnedModel, untrained
from rasplens.model import HookedModel
from rasplens.tasks import get_task, task_from_program

SIZES = Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6)


def test_both_sides_see_the_same_held_out_inputs(with_noise, task):
    ids = with_noise.scored.ids
    assert len(ids) == len(np.unique(ids, axis=0)) == len(task.held_out)
    assert task.is_held_out(ids).all()
    np.testing.assert_array_equal(with_noise.learned.tokens.numpy(), ids)
    np.testing.assert_array_equal(with_noise.scored.reference.tokens.numpy()[:, 1:], ids)


def test_the_seed_chooses_the_inputs(induction, noise, task):
    first, again, other = (
        study_of(induction, noise, task, CompareConfig(n_inputs=50), seed).scored.ids for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_variables_are_what_the_interpreter_says(with_noise, induction, task):
    for row, letters in enumerate(task.sequences(with_noise.scored.ids[:10])):
        for name in ("previous", "induction"):
            expr = {"previous": induction.program.selector.keys, "induction": induction.program}[name]
            values = (*induction.variables[name].values, None)
            got = [values[code] for code in with_noise.scored.codes[name][row]]
            assert got == run(expr, letters, causal=True)


def test_the_control_has_the_learned_models_shape_and_other_weights(with_noise):
    assert with_noise.scored.untrained.model.cfg == with_noise.learned.model.cfg
    assert with_noise.scored.untrained.heads == with_noise.learned.heads
    difference = with_noise.scored.untrained.model.embed.W_E - with_noise.learned.model.embed.W_E
    assert difference.abs().max() > 0.1


def test_every_kind_of_model_can_be_the_learned_side(noise, induction, task, unchecked):
    ids = task.held_out[:5]
    answers = as_studied_model(noise, task, ids).answers()
    learned = LearnedModel(noise, task.name, {"origin": "nowhere"})
    for model in (learned, HookedModel(noise)):
        np.testing.assert_array_equal(as_studied_model(model, task, ids).answers(), answers)
    assert as_studied_model(induction, task, ids).vocabulary.positions[0] == 1
    with pytest.raises(RaspLensError, match=r"LearnedModel,.* got 'sort'"):
        as_studied_model("sort", task, ids)


@pytest.mark.slow
def test_models_that_do_not_fit_are_refused(induction, noise, task):
    with pytest.raises(ValueError, match=r"learned model.*fit.*'sort'"):
        study_of(induction, noise, get_task("sort"), CompareConfig(n_inputs=10), 0)
    short = compile_program(task.programs["offset"], task.vocab, 5, causal=True)
    with pytest.raises(ValueError, match=r"max_len=5.*'copy'.* 9 tokens"):
        study_of(short, noise, task, CompareConfig(n_inputs=10), 0)
    other = compile_program(task.programs["offset"], ["A", "B"], 9, causal=True)
    with pytest.raises(ValueError, match=r"'C' of 'copy'.*vocabulary"):
        study_of(other, noise, task, CompareConfig(n_inputs=10), 0)


def test_what_is_fitted_on_is_never_held_out(with_noise, task):
    fitting = with_noise.fitting
    assert fitting.n_inputs == with_noise.config.n_fitting
    assert not task.is_held_out(fitting.ids).any()
    assert task.is_held_out(with_noise.scored.ids).all()  # the negative control
    assert with_noise.off_distribution.n_inputs == with_noise.config.n_fitting
    assert not (with_noise.off_distribution.ids[:, 3:] == with_noise.off_distribution.ids[:, :-3]).all()


def test_other_inputs_are_of_the_same_models(with_noise):
    for part in (with_noise.fitting, with_noise.off_distribution):
        for side in ("reference", "learned", "untrained"):
            assert getattr(part, side).model is getattr(with_noise.scored, side).model
            assert getattr(part, side).ids is part.ids
        compiled = with_noise.compiled
        expected = compiled.codes(compiled.encode(with_noise.task.sequences(part.ids[:20]))[:, compiled.offset :])
        for name, codes in expected.items():
            np.testing.assert_array_equal(part.codes[name][:20], codes)


def test_a_variable_is_causally_relevant_where_the_compiled_model_uses_it(with_noise, task):
    assert with_noise.scored.relevance.positions("induction") == list(task.loss_positions)
    assert with_noise.scored.relevance.positions("tokens") == list(range(task.n_ctx - 1))
    assert 0 not in with_noise.scored.relevance.positions("previous")


def test_the_programs_answers_are_the_interpreters(with_noise, task, induction):
    """The compiled model gives them."""
    asked = task.answers(induction.program, with_noise.scored.ids)
    np.testing.assert_array_equal(with_noise.scored.reference.answers(), asked)
    assert (asked[0] != asked[1:5]).any()


def test_models_agree_where_all_answers_do_and_there_are_all(with_itself, with_noise, task, induction, offset):
    asked = task.answers(induction.program, with_itself.scored.ids)
    np.testing.assert_array_equal(with_itself.scored.agrees, (asked >= 0).all(axis=1))
    assert 5 < with_itself.scored.agrees.sum() < with_itself.scored.n_inputs
    assert not with_noise.scored.agrees.any()
    rival = study_of(induction, offset, task, CompareConfig(n_inputs=96), 0).scored
    said = task.answers(offset.program, rival.ids)
    np.testing.assert_array_equal(rival.agrees, (task.answers(induction.program, rival.ids) == said).all(axis=1))
    assert 0 < rival.agrees.sum() < rival.n_inputs


def test_the_control_differs_from_the_learned_model_even_where_seeds_agree(induction, task):
    model = untrained(SIZES, task, seed=0)
    study = study_of(induction, model, task, CompareConfig(n_inputs=20), 0)
    difference = study.scored.untrained.model.embed.W_E - study.learned.model.embed.W_E
    assert difference.abs().max() > 0.1


def test_a_foreign_models_control_has_parameters_of_the_same_size():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(50, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3))
    torch.nn.init.ones_(model[2].bias)  # as a layer norm's are
    before = {name: value.clone() for name, value in model.named_parameters()}
    twin, again, other = (untrained_control(model, seed) for seed in (2**70, 2**70, 1))
    for name, value in twin.named_parameters():
        own = before[name]
        torch.testing.assert_close(value.std(), own.std(), rtol=0.35, atol=0)
        torch.testing.assert_close(value.mean(), own.mean(), rtol=0, atol=0.03)
        torch.testing.assert_close(dict(model.named_parameters())[name], own)  # the model itself stays
        torch.testing.assert_close(dict(again.named_parameters())[name], value)
    torch.testing.assert_close(twin[2].bias, model[2].bias)
    assert not torch.equal(twin[0].weight, model[0].weight)
    assert not torch.equal(twin[0].weight, other[0].weight)


def test_inputs_on_which_the_program_is_undefined_are_left_out(task):
    """Token and place at the own token's places: where it stands twice, a mixture of two words."""
    words = SequenceMap(lambda token, place: f"{token}{place}", tokens, indices)
    program = Aggregate(Select(tokens, tokens, Comparison.EQ), words).named("own")
    compiled = compile_program(program, "ABC", 3, partial="allow")
    small = task_from_program(Map(str.lower, tokens), "ABC", 3)
    once, twice = [[0, 1, 2], [2, 1, 0]], [[0, 0, 1]]
    found = defined_inputs(compiled, small, np.array(once * LEAST_DEFINED + twice))
    assert found.tolist() == once * LEAST_DEFINED
    few = defined_inputs(compiled, small, np.array(twice * 3))
    np.testing.assert_array_equal(few, small.held_out[:3])
