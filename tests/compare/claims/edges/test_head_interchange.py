"""Heads that are interchanged, beside a compiled head."""

import numpy as np
import pytest
from circuit_sides import mixed, sides

from rasplens.compare import CompareConfig, compare, study_of
from rasplens.compare.claims.edges.head_interchange import interchanged, moves_answers
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compare.verdict.verdict import IMPLEMENTS
from rasplens.model.twins import duplicate_head

FEW = CompareConfig(n_inputs=150, n_fitting=100, relevance_inputs=24)


def test_an_input_from_itself_changes_nothing_and_all_heads_from_elsewhere_change_its_answers():
    task, program, _ = sides("any")
    studied = study_of(program, program, task, FEW, 0).learned
    base, source = np.arange(50), np.arange(50, 100)
    np.testing.assert_array_equal(interchanged(studied, studied.heads, base, base), studied.answers()[:50])
    # The only head gathers all that is not a position's own: whether there is an `a` is the source's.
    own, theirs = studied.answers()[:50], studied.answers()[50:100]
    np.testing.assert_array_equal(interchanged(studied, studied.heads, base, source), theirs)
    assert (own != theirs).any()


def test_the_compiled_head_changes_what_it_changes_and_no_head_changes_nothing():
    task, program, _ = sides("any")
    pairing = study_of(program, program, task, FEW, 0).scored
    (head,) = pairing.reference.heads
    found = moves_answers(pairing, head, [head], np.random.default_rng(0), pairing.config.questions)
    assert len(found) == FEW.questions
    assert found.right.all()
    assert not moves_answers(pairing, head, [], np.random.default_rng(0), pairing.config.questions).right.any()


def test_a_head_that_is_there_twice_changes_answers_with_its_copy():
    task, program, _ = sides("any")
    twin = duplicate_head(program.transformer, 0, 0)
    pairing = study_of(program, twin, task, FEW, 0, vocabulary_of(program, task)).scored
    copies = [(0, 0), (0, twin.config.n_heads - 1)]
    assert moves_answers(pairing, (0, 0), copies, np.random.default_rng(0), pairing.config.questions).right.all()


@pytest.mark.parametrize("name", ["any", pytest.param("exceeded", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "share", [pytest.param(0.0, marks=pytest.mark.slow), 0.001, pytest.param(0.1, marks=pytest.mark.slow)]
)
def test_a_faint_copy_does_not_stand_for_the_mechanism(name, share):
    """It attends as the program's selector says, and decides nothing."""
    task, looking, counting = sides(name)
    for own, other in ((looking, counting), (counting, looking)):
        model, vocabulary = mixed(task, own, other, (share, 1 - share))
        found = compare(own, model, task=task, config="quick", vocabulary=vocabulary)
        assert found.verdict.answer != IMPLEMENTS
        deciding = compare(other, model, task=task, config="quick", vocabulary=vocabulary)
        assert deciding.verdict.answer == IMPLEMENTS
