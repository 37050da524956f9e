"""What a compiled model holds only as far as it is read: what stands for an s-op, and what setting it means."""

import numpy as np
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.counterfactuals import Setting, counterfactual
from rasplens.compare.claims.posable import posable
from rasplens.compare.evidence.subspaces.decodability import decodability
from rasplens.compare.pairing.variables import kinds
from rasplens.compile import UndefinedValue, programs, run
from rasplens.compile.rasp import Comparison, Map, Select, SelectorWidth, SequenceMap, indices, tokens
from rasplens.compile.rasp.interpreter import expressions
from rasplens.tasks import compile_for, task_from_program

SMALL = CompareConfig(n_inputs=100, n_fitting=100, interchange_pairs=40, pairs_tried=400, least_pairs=1)


def counts():
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("counts")


def more_than(n, of):
    return Select(of, indices, lambda key, query: key > n)


def read_twice():
    """Two heads read the same count, each for itself."""
    count = counts()
    return SequenceMap(
        lambda x, y: 10 * x + y, SelectorWidth(more_than(1, count)), SelectorWidth(more_than(2, count))
    ).named("both")


def read_by_key_and_query():
    count = counts()
    return SelectorWidth(Select(count, count, lambda key, query: key > 1 and query > 2)).named("both")


def read_in_two_ways():
    """By what one map makes of it."""
    large = Map(lambda n: n - 1, counts()).named("less")
    return SequenceMap(
        lambda x, y: 10 * x + y, SelectorWidth(more_than(0, large)), SelectorWidth(more_than(1, large))
    ).named("both")


def study_of_program(program, vocab, n_ctx):
    task = task_from_program(program, vocab, n_ctx)
    compiled = compile_for(task)
    return study_of(compiled, compiled, task, SMALL, 0)


@pytest.mark.parametrize(
    ("program", "vocab", "n_ctx", "names"),
    [
        (programs.sort_unique(), (1, 2, 3, 4, 5), 7, ["target_pos (kind)"]),  # no place is the one behind all
        (programs.sort_unique(), (1, 2, 3), 4, ["target_pos"]),
        (programs.count_less_frequent(1), "abc", 4, ["histogram (kind)"]),  # 1, or more
        (programs.count("a"), "abc", 4, []),  # the kind of a token is in the embedding
        (SelectorWidth(more_than(1, counts())).named("large"), "abc", 4, ["counts (kind)"]),
    ],
)
def test_what_is_held_only_as_far_as_it_is_read_is_tested_as_that(program, vocab, n_ctx, names):
    """The compiler keeps of a count whether it is large, and the count was said to be none of the program's."""
    assert list(study_of_program(program, vocab, n_ctx).variables) == names


@pytest.mark.parametrize("build", [read_twice, read_by_key_and_query, read_in_two_ways])
def test_one_of_several_kinds_says_nothing_of_the_s_op(build):
    """To set what one head reads of a count, and not what the other does, is not to set the count."""
    study = study_of_program(build(), "abc", 4)
    assert any(name.endswith("(kind)") for name in study.compiled.variables)
    assert kinds(study.compiled) == {}


@pytest.mark.parametrize(
    ("program", "vocab", "n_ctx"),
    [
        (programs.sort_unique(), (1, 2, 3, 4, 5), 7),
        (programs.count_less_frequent(1), "abc", 5),
        (programs.histogram_nd(), "abc", 5),
        (SelectorWidth(more_than(1, counts())).named("large"), "abc", 4),
    ],
)
def test_to_set_a_kind_is_to_set_the_s_op(program, vocab, n_ctx):
    """On random pairs and masks the compiled model answers as the interpreter does, wherever that has answers."""
    study = study_of_program(program, vocab, n_ctx)
    rng, task = np.random.default_rng(0), study.task
    names = kinds(study.compiled)
    assert names
    for name in names:
        (of,) = (expr for expr in expressions(study.compiled.program) if expr.name == names[name].kind_of)
        base, source = rng.integers(study.scored.n_inputs, size=(2, 60))
        intervened = rng.random((60, n_ctx)) < 0.4
        mixtures = posable(study.scored).mixtures()
        found, _ = counterfactual(study.scored, base, Setting(name, source, intervened), watching=mixtures.hooks)
        asked = 0
        for i in np.flatnonzero(~mixtures.rows):
            own, theirs = (task.sequences(study.scored.ids[[row]])[0] for row in (base[i], source[i]))
            both = zip(run(of, own), run(of, theirs), intervened[i], strict=True)
            try:
                said = run(study.compiled.program, own, set={of.name: [b if take else a for a, b, take in both]})
            except UndefinedValue:
                continue
            said = [said[position] for position in task.loss_positions]
            is_known = [answer in task.outputs for answer in said]
            codes = [task.outputs.index(answer) for answer in np.array(said, dtype=object)[is_known]]
            np.testing.assert_array_equal(found[i][is_known], codes)
            asked += any(is_known)
        assert asked > 5


def test_kinds_are_looked_for_in_the_stream_as_other_variables_are():
    study = study_of_program(SelectorWidth(more_than(1, counts())).named("large"), "abc", 5)
    assert "counts (kind)" in set(decodability(study, 0).table["variable"])
