"""Two variables interchanged at once."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from lab.labelled.circuits import HARD
from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.interchange.accuracy import interchanges
from rasplens.compare.claims.interchange.joint import _may_follow, _right, joint_interchanges
from rasplens.compare.claims.interchange.joint_pairs import posed_to_tell, posed_together
from rasplens.compare.claims.interchange.pairs import draw_pairs
from rasplens.compare.claims.interchange.patching import Site
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program, run
from rasplens.compile.rasp import Aggregate, Select, SequenceMap, indices, tokens
from rasplens.compile.rasp.programs import slots
from rasplens.compile.rasp.values import value_key
from rasplens.model import disguise
from rasplens.model.hook_points import when
from rasplens.model.interventions import whole
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=160, n_fitting=300, relevance_inputs=24, interchange_pairs=80, das_steps=0)

SUM = "sum_of_three_of_last_two"


def compiled_circuit(name):
    """A task, and the two programs of a circuit for it."""
    circuit = HARD[name]
    task = circuit.task()
    own, far = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.alternative)
    )
    return task, own, far


@pytest.fixture(scope="module")
def association():
    """A sum of three tokens: the own one with that of the two before, or one after the other."""
    return compiled_circuit("sum_of_three")


def interchanged_alone(compiled, model, task):
    """The study, pairs to interchange on, sites of the compiled model, and each variable by itself."""
    study = study_of(compiled, model, task, FEW, 0, vocabulary_of(compiled, task))
    drawn, reference = draw_pairs(study, study.variables, 0), ReferenceSites(study, 0)
    return study, drawn, reference, interchanges(study, drawn, representations(study), reference, 0)


def joint(compiled, model, task, *, first_tried=None, alone_tried=None):
    """The study, the scores of variables alone, and those of two.

    Each variable has the site `first_tried` as well, or `alone_tried` and no other, if given.
    """
    study, drawn, reference, alone = interchanged_alone(compiled, model, task)
    if first_tried is not None:
        alone = [replace(one, good=(first_tried, *one.good)) for one in alone]
    if alone_tried is not None:
        alone = [replace(one, good=(alone_tried,)) for one in alone]
    found = {one.variables: one for one in joint_interchanges(study, drawn, alone, reference, 0)}
    return study, {one.variable: one.accuracy.score for one in alone}, found


@pytest.mark.slow
def test_what_a_variable_is_set_to_goes_before_what_it_would_be_computed_from(association):
    """In the compiled model, and in a twin of it in another basis."""
    task, _, far = association
    for model in (far, disguise(far.transformer, seed=1, basis="oblique", extra_width=2)):
        _, _, found = joint(far, model, task)
        assert set(found) == {("1_before", "2_before"), ("1_before", SUM), ("2_before", SUM)}
        for one in found.values():
            assert one.right.mean() > 0.96
            assert one.ceiling is None


@pytest.mark.slow
def test_a_site_with_all_that_a_variable_is_computed_from_is_not_the_variable(association):
    """Both tokens before can be taken together wherever the program has their sum, though nobody adds them up."""
    task, own, far = association
    _, alone, found = joint(far, own, task)
    assert alone[SUM] == 1  # alone, it cannot be told
    for token in ("1_before", "2_before"):
        one = found[token, SUM]
        assert one.right[one.pairs.by_second].mean() < 0.5
        assert one.ceiling is not None
        assert one.ceiling.mean() > 0.97
    assert found["1_before", "2_before"].right.mean() > 0.97


def too_wide(compiled, task, layer):
    """All of the stream behind a layer, which holds both variables."""
    everything = whole(compiled.transformer.config.d_model)
    subspaces = dict.fromkeys(range(task.n_ctx), everything)
    return Site(f"blocks.{layer}.hook_resid_post", "component", subspaces, 1.0, 1.0)


def test_of_two_variables_that_know_nothing_of_each_other_other_sites_are_tried():
    """Where the last one takes both along; which is chosen on other pairs than those that count."""
    task = task_from_program(slots(), "abc", 7)
    compiled = compile_for(task)
    wide = too_wide(compiled, task, 0)
    study, _, found = joint(compiled, compiled, task, first_tried=wide)
    (one,) = found.values()
    for which in (one.pairs.by_first, one.pairs.by_second):
        assert which.any()
        assert one.right[which].all()
    assert _right(study.learned, one.pairs, wide, wide)[one.pairs.by_first].mean() < 0.6


@pytest.mark.slow
def test_a_choice_finds_nothing_where_no_site_is_good():
    """Both are taken along everywhere, which the compiled model has no need of."""
    task = task_from_program(slots(), "abc", 7)
    compiled = compile_for(task)
    _, _, found = joint(compiled, compiled, task, alone_tried=too_wide(compiled, task, 0))
    (one,) = found.values()
    assert one.right[one.pairs.by_first].mean() < 0.6
    assert one.ceiling[one.pairs.by_first].all()


def may_be_related(pairing, first, second):
    return _may_follow(pairing, first, second) or _may_follow(pairing, second, first)


def test_variables_that_the_compiler_merged_are_related():
    """What the last one is computed from is a copy of the first: the program does not say that they are one."""
    digit = Aggregate(Select(indices, indices, lambda key, query: key == query - 1), tokens).named("digit")
    copy = Aggregate(Select(indices, indices, lambda key, query: key == query - 1), tokens)
    is_a = SequenceMap(lambda one, own: one == "a" and own != "a", copy, tokens).named("is_a")
    before = Aggregate(Select(indices, indices, lambda key, query: key == query - 2), tokens).named("before")
    rest = SequenceMap(lambda one, two: f"{one}{two}", is_a, before).named("rest")
    program = SequenceMap(lambda one, two: f"{one}{two}", digit, rest).named("all")
    task = task_from_program(program, "abc", 5, causal=True)
    compiled = compile_for(task)
    study = study_of(compiled, compiled, task, FEW, 0, vocabulary_of(compiled, task))
    chosen = {pairs.variable: pairs for pairs, _ in draw_pairs(study, study.variables, 0)}
    related = {
        names: may_be_related(study.fitting, *(chosen[name] for name in names))
        for names in itertools.combinations(sorted(chosen), 2)
    }
    alone = {names for names, is_related in related.items() if not is_related}
    assert alone == {("aggregate", "before"), ("before", "digit"), ("before", "is_a")}
    assert ("digit", "is_a") in related


@pytest.mark.slow
def test_where_one_is_computed_from_the_other_there_is_no_choice(association):
    """A wider site that is later would overwrite the other, and anything would pass for the program."""
    task, _, far = association
    wide = too_wide(far, task, 0)
    study, _, found = joint(far, far, task, first_tried=wide)
    for variables, one in found.items():
        at_wide = _right(study.learned, one.pairs, wide, wide)
        assert np.array_equal(one.right, at_wide) == (SUM in variables)


def before_marked(mark):
    """The token before, a variable that position and it make, and both of them with the own token."""
    before = Aggregate(Select(indices, indices, lambda key, query: key == query - 1), tokens).named("before")
    marked = SequenceMap(mark, before, indices).named("marked")
    task = task_from_program(SequenceMap(lambda one, own: f"{one}{own}", marked, tokens).named("all"), "abc", 5)
    return task, compile_for(task)


@pytest.mark.slow
def test_what_is_computed_again_is_told_from_what_is_only_overwritten():
    """Of the largest of three there are questions enough, though mostly the value is the same, computed again."""
    task, own, far = compiled_circuit("highest_of_three")
    highest = "highest_of_three_of_last_two"
    _, alone, found = joint(far, own, task)
    assert alone[highest] == 1
    for token in ("1_before", "2_before"):
        one = found[token, highest]
        assert not one.pairs.by_first.any()
        assert one.pairs.by_second.any(axis=1).sum() >= 12
        assert not one.right[one.pairs.by_second].any()
        assert one.ceiling[one.pairs.by_second].mean() > 0.95


@pytest.mark.slow
def test_a_variable_that_is_only_overwritten_is_found(association):
    """By a late site of a token that holds the sum as well, in the compiled model, which has both."""
    task, _, far = association
    study, _, _, found = interchanged_alone(far, far, task)
    alone = {one.variable: one for one in found}
    token, both = alone["1_before"].pairs, alone[SUM]
    told = posed_to_tell(study.scored, token, both.pairs, np.random.default_rng(0))
    late, early = both.good[0], next(site for site in both.good if site.point == "blocks.0.hook_mlp_out")
    assert when(late.point) > when(early.point)
    assert told.by_second.any(axis=1).sum() > 40
    assert _right(study.learned, told, late, early)[told.by_second].mean() > 0.95
    together = posed_together(study.scored, token, both.pairs, np.random.default_rng(0))
    assert _right(study.learned, together, late, early)[together.by_second].mean() < 0.6
    wide = too_wide(far, task, 0)  # takes the own token along, which no sum explains
    assert _right(study.learned, told, wide, early)[told.by_second].mean() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    "mark", [lambda token, place: place if token == "a" else -1, lambda token, place: f"{token}{place}"]
)
def test_where_a_late_site_overwrites_what_only_position_makes_of_it_nothing_is_known(mark):
    """Once, a trained model that has both was said not to: its last site of the first holds the second as well."""
    task, compiled = before_marked(mark)
    study, drawn, reference, found = interchanged_alone(compiled, compiled, task)
    alone = {one.variable: one for one in found}
    assert set(alone) == {"before", "marked"}
    early = next(site for site in alone["marked"].good if when(site.point) < when(alone["before"].good[0].point))
    both = alone["before"], replace(alone["marked"], good=(early,))
    (one,) = joint_interchanges(study, drawn, both, reference, 0)
    assert one.variables == ("before", "marked")
    assert not one.pairs.by_first.any()
    assert not one.pairs.by_second.any()


@pytest.mark.slow
def test_the_program_says_what_is_expected(association):
    """By the interpreter, with both variables set; and where each of them makes a difference."""
    task, _, far = association
    study, _, found = joint(far, far, task)
    pairs = found["1_before", SUM].pairs
    first, second = pairs.settings
    known = {value_key(value): code for code, value in enumerate(task.outputs)}
    everywhere = np.flatnonzero(second.intervened.all(axis=1))
    assert first.intervened.all()
    assert len(everywhere) > 20
    for i in everywhere:
        tokens = task.sequences(study.scored.ids[pairs.base[[i]]])[0]

        def answers(*settings, i=i, tokens=tokens):
            chosen = {
                one.variable: [
                    far.variables[one.variable].values[code]
                    for code in study.scored.codes[one.variable][one.source[i]].tolist()
                ]
                for one in settings
            }
            found = run(far.program, tokens, mask=task.visible, set=chosen)
            return np.array([known[value_key(found[position])] for position in task.loss_positions])

        both = answers(first, second)
        np.testing.assert_array_equal(pairs.expected[i], both)
        np.testing.assert_array_equal(pairs.by_first[i], both != answers(second))
        np.testing.assert_array_equal(pairs.by_second[i], both != answers(first))
