"""Pairs of inputs with a variable interchanged, and what the program says then."""

from dataclasses import replace

import numpy as np
import pytest
from known_interchanges import scored_pairs

from lab.labelled.circuits import CIRCUITS
from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.counterfactuals import Setting, counterfactual
from rasplens.compare.claims.interchange.pairs import draw_pairs, interchange_pairs
from rasplens.compile import UndefinedValue, compile_program, run
from rasplens.compile.rasp import Aggregate, Select, SequenceMap, indices, tokens
from rasplens.compile.rasp.values import value_key
from rasplens.model.hook_points import act_name
from rasplens.tasks import task_from_program

NO_SUCH = -9
"""The interpreter has no answer, or none of the task's."""

SMALL = CompareConfig(n_inputs=100, n_fitting=100, interchange_pairs=40, pairs_tried=400, least_pairs=1)


@pytest.fixture(scope="module")
def pairs(with_itself):
    return scored_pairs(with_itself, "previous")


def by_the_interpreter(pairing, variable, base, source, intervened):
    """The answers as codes, `[pair, answer]`: one run a pair, with the variable set by hand."""
    task, compiled = pairing.task, pairing.compiled
    values, codes = (*compiled.variables[variable].values, None), pairing.codes[variable]
    known = {value_key(output): code for code, output in enumerate(task.outputs)}
    found = np.full((len(base), len(task.loss_positions)), NO_SUCH)
    for i, (b, s, mask) in enumerate(zip(base, source, intervened, strict=True)):
        chosen = [values[code] for code in np.where(mask, codes[s], codes[b])]
        try:
            answers = run(
                compiled.program, task.sequences(pairing.ids[[b]])[0], mask=task.visible, set={variable: chosen}
            )
        except UndefinedValue:
            continue
        found[i] = [known.get(value_key(answers[position]), NO_SUCH) for position in task.loss_positions]
    return found


def test_only_what_lies_between_input_and_output_is_tested(with_itself):
    assert list(with_itself.variables) == ["previous"]


@pytest.mark.parametrize(
    ("circuit", "side"),
    [
        ("copy", "alternative"),  # the variable has no value at the first position
        ("share", "alternative"),  # a number
        ("ends", "program"),  # two variables
        ("pointed_at", "program"),  # one that a selector compares
        ("swap", "alternative"),
    ],
)
def test_the_compiled_model_answers_as_the_interpreter_does_with_the_variable_set(circuit, side):
    """On random pairs and masks, wherever the interpreter has an answer; and on all pairs that are asked."""
    circuit = CIRCUITS[circuit]
    task, program = circuit.task(), getattr(circuit, side)()
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, compiled, task, SMALL, 0)
    names = list(study.variables)
    assert names
    for name in names:
        rng = np.random.default_rng(0)
        base, source = rng.integers(study.scored.n_inputs, size=(2, 60))
        intervened = rng.random((60, task.n_ctx)) < 0.4
        found, _ = counterfactual(study.scored, base, Setting(name, source, intervened))
        expected = by_the_interpreter(study.scored, name, base, source, intervened)
        known = expected != NO_SUCH
        assert known.mean() > 0.5
        np.testing.assert_array_equal(found[known], expected[known])
        assert (found != study.scored.reference.answers()[base]).any()
        asked = scored_pairs(study, name)
        expected = by_the_interpreter(study.scored, name, asked.base, asked.source, asked.intervened)
        np.testing.assert_array_equal(asked.expected, expected)


def test_pairs_say_what_the_program_says_with_the_variable_set(with_itself, pairs, task, induction):
    """By hand: the letter before, put where the swap says, in the interpreter."""
    for i in range(20):
        base, source = (task.sequences(with_itself.scored.ids[[row[i]]])[0] for row in (pairs.base, pairs.source))
        own, other = ([None, *tokens[:-1]] for tokens in (base, source))
        values = [b if t else a for a, b, t in zip(own, other, pairs.intervened[i], strict=True)]
        answers = run(induction.program, base, causal=True, set={"previous": values})
        expected = [task.outputs[code] for code in pairs.expected[i]]
        assert expected == [answers[position] for position in task.loss_positions]
        plain = run(induction.program, base, causal=True)
        assert pairs.changes[i].tolist() == [
            answers[position] != plain[position] for position in task.loss_positions
        ]


def test_only_pairs_whose_answer_changes_are_kept(pairs, with_itself):
    n = with_itself.config.interchange_pairs
    assert len(pairs.base) == n == 500
    assert pairs.changes.any(axis=1).all()
    assert not pairs.changes.all()
    assert (pairs.base != pairs.source).all()
    own = with_itself.scored.reference.answers()[pairs.base]
    np.testing.assert_array_equal(pairs.changes, pairs.expected != own)


def test_pairs_are_of_inputs_on_which_the_model_answers_as_the_program_does(with_itself):
    """A model that answers every other input otherwise."""
    pairing = replace(with_itself.scored, config=SMALL)
    understood = with_itself.scored.agrees & (np.arange(with_itself.scored.n_inputs) % 2 == 0)
    vars(pairing)["agrees"] = understood
    found = scored_pairs(replace(with_itself, scored=pairing), "previous")
    assert len(found.base) == SMALL.interchange_pairs
    assert understood[found.base].all()
    assert understood[found.source].all()


def test_some_take_the_variable_everywhere_and_some_at_one_position(pairs, with_itself):
    counts = pairs.intervened.sum(axis=1)
    relevant = len(with_itself.scored.relevance.positions("previous"))
    assert set(counts) == {1, relevant}
    assert 10 <= (counts == relevant).sum() <= len(counts) - 10
    assert set(pairs.positions) == set(with_itself.scored.relevance.positions("previous"))


def test_pairs_are_the_seeds(with_itself, pairs):
    again, other = (scored_pairs(with_itself, "previous", seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.base, pairs.base)
    np.testing.assert_array_equal(again.expected, pairs.expected)
    assert not np.array_equal(other.base, pairs.base)


def test_a_variable_that_changes_no_answer_has_no_pairs(with_itself, monkeypatch):
    positions = with_itself.interchangeable_positions("previous")
    config = replace(SMALL, interchange_pairs=12, pairs_tried=120)
    enough, few = (replace(with_itself.scored, config=replace(config, least_pairs=least)) for least in (1, 100))
    assert interchange_pairs(few, "previous", positions, seed=0) is None
    assert interchange_pairs(enough, "previous", positions, seed=0) is not None  # the negative control
    assert with_itself.why_not_interchangeable("previous") == (
        "too few pairs of inputs pose a question that the task could ask"
    )
    monkeypatch.setattr("rasplens.compare.pairing.relevance.Relevance.positions", lambda self, name: ())
    assert with_itself.interchangeable_positions("previous") == []
    assert interchange_pairs(with_itself.scored, "previous", [], seed=0) is None
    assert with_itself.why_not_interchangeable("previous") == "it reaches no answer of the task"


def test_a_model_that_never_answers_as_the_program_does_is_not_asked(with_noise):
    positions = with_noise.interchangeable_positions("previous")
    assert positions
    assert interchange_pairs(with_noise.scored, "previous", positions, seed=0) is None
    assert draw_pairs(with_noise, with_noise.variables, 0) == []


def test_an_empty_intervention_mask_changes_no_answer(with_itself):
    base = np.arange(with_itself.scored.n_inputs)
    nowhere = np.zeros((len(base), with_itself.task.n_ctx), dtype=bool)
    found, scores = counterfactual(with_itself.scored, base, Setting("previous", np.roll(base, 1), nowhere))
    np.testing.assert_array_equal(found, with_itself.scored.reference.answers())
    for layer, of_layer in scores.items():
        np.testing.assert_allclose(
            of_layer, with_itself.scored.reference.whole(act_name("attn_scores", layer)), atol=1e-4
        )
    everywhere, _ = counterfactual(with_itself.scored, base, Setting("previous", np.roll(base, 1), ~nowhere))
    assert (everywhere != found).any()  # the negative control


def test_answers_that_the_program_does_not_have_are_not_asked_for(with_itself, pairs):
    """Where no letter before equals the present one, there is nothing to give."""
    base = np.arange(1, with_itself.scored.n_inputs)
    everywhere = np.ones((len(base), with_itself.task.n_ctx), dtype=bool)
    undefined = by_the_interpreter(with_itself.scored, "previous", base, base - 1, everywhere) == NO_SUCH
    assert undefined.any()
    asked = by_the_interpreter(with_itself.scored, "previous", pairs.base, pairs.source, pairs.intervened)
    assert (asked != NO_SUCH).all()


def test_what_the_model_cannot_say_is_not_asked_for(with_itself):
    """A vocabulary without the first answer."""
    own = with_itself.learned.vocabulary
    without = replace(own, columns=np.where(np.arange(len(own.columns)) == 0, -1, own.columns))
    learned = replace(with_itself.learned, vocabulary=without)
    small = replace(with_itself.scored, config=SMALL)
    positions = with_itself.interchangeable_positions("previous")
    before = interchange_pairs(small, "previous", positions, seed=0)
    after = interchange_pairs(replace(small, learned=learned), "previous", positions, seed=0)
    assert (before.expected == 0).any()
    assert not (after.expected == 0).any()


def test_a_variable_that_follows_from_the_token_is_not_taken_there():
    """The first token, read everywhere: at the first position no directions hold it without the token itself."""
    first = Aggregate(Select(indices, indices, lambda key, query: key == 0), tokens).named("first")
    program = SequenceMap(lambda own, other: own == other, tokens, first).named("same_as_first")
    task = task_from_program(program, "abcd", 5)
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, compiled, task, CompareConfig(n_inputs=100), 0)
    assert 0 in study.scored.relevance.positions("first")
    found = scored_pairs(study, "first")
    assert found.positions == [1, 2, 3, 4]
