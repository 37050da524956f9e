import numpy as np
import pytest

from rasplens.compare import as_subject, pair
from rasplens.compile import compile_program, run
from rasplens.learned import LearnedModel
from rasplens.model import HookedModel
from rasplens.tasks import get_task


def test_both_sides_see_the_same_held_out_inputs(with_noise, task):
    ids = with_noise.ids
    assert len(ids) == len(np.unique(ids, axis=0)) == len(task.held_out)
    assert task.is_held_out(ids).all()
    np.testing.assert_array_equal(with_noise.learned.tokens.numpy(), ids)
    np.testing.assert_array_equal(with_noise.reference.tokens.numpy()[:, 1:], ids)


def test_the_seed_chooses_the_inputs(induction, noise, task):
    first, again, other = (pair(induction, noise, task, 50, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.ids, again.ids)
    assert not np.array_equal(first.ids, other.ids)


def test_variables_are_what_the_interpreter_says(with_noise, induction, task):
    for row, tokens in enumerate(task.sequences(with_noise.ids[:10])):
        for name in ("previous", "induction"):
            expr = {"previous": induction.program.selector.keys, "induction": induction.program}[name]
            values = (*induction.variables[name].values, None)
            got = [values[code] for code in with_noise.codes[name][row]]
            assert got == run(expr, tokens, causal=True)


def test_the_control_has_the_learned_models_shape_and_other_weights(with_noise):
    assert with_noise.untrained.model.cfg == with_noise.learned.model.cfg
    assert with_noise.untrained.heads == with_noise.learned.heads
    difference = with_noise.untrained.model.embed.W_E - with_noise.learned.model.embed.W_E
    assert difference.abs().max() > 0.1


def test_every_kind_of_model_can_be_the_learned_side(noise, induction, task):
    ids = task.held_out[:5]
    answers = as_subject(noise, task, ids).answers()
    learned = LearnedModel(noise, task.name, {"origin": "nowhere"})
    for model in (learned, HookedModel(noise)):
        np.testing.assert_array_equal(as_subject(model, task, ids).answers(), answers)
    assert as_subject(induction, task, ids).interface.positions[0] == 1
    with pytest.raises(TypeError, match=r"The learned side must be a LearnedModel, .* got 'sort'"):
        as_subject("sort", task, ids)


def test_models_that_do_not_fit_are_refused(induction, noise, task):
    with pytest.raises(ValueError, match="The learned model does not fit the task 'sort'"):
        pair(induction, noise, get_task("sort"), 10, 0)
    short = compile_program(task.programs["offset"], task.vocab, 5, causal=True)
    with pytest.raises(ValueError, match="compiled for max_len=5; inputs of 'copy' have 9 tokens"):
        pair(short, noise, task, 10, 0)
    other = compile_program(task.programs["offset"], ["A", "B"], 9, causal=True)
    with pytest.raises(ValueError, match="is not in the vocabulary"):
        pair(other, noise, task, 10, 0)
