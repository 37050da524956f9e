"""Weighted programs mean the same in numpy and JAX, and what softmax and a vote mean, position by position."""

import itertools
import math
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from weighted_samples import LETTERS, N, reverse, two_steps, with_noise

from rasplens.compile import rasp
from rasplens.compile.weighted import (
    Constant,
    Keys,
    Mix,
    Only,
    Patch,
    Vote,
    Votes,
    Weigh,
    When,
    answers,
    inputs_of,
    numbers_of,
    votes,
)

ALL = np.array(list(itertools.product(range(3), repeat=N)))
FULL = np.ones((N, N), dtype=bool)


def on(program, ids=ALL, visible=FULL):
    return inputs_of(program, ids, LETTERS, visible, tuple(range(N)))


def test_a_sharp_program_is_the_hard_one():
    assert (answers(reverse(), on(reverse())) == ALL[:, ::-1]).all()


def one_by_one(program, tokens, visible):
    """The votes by definition, without arrays: each score, share and vote by itself."""
    numbers = numbers_of(program)

    @cache
    def share(variable, place, value):
        if not isinstance(variable, Mix):
            return float((tokens[place] if variable is rasp.tokens else place) == value)
        return sum(w * share(variable.sop, key, value) for key, w in enumerate(weights(variable.scores, place)))

    def values(variable):
        while isinstance(variable, Mix):
            variable = variable.sop
        return LETTERS if variable is rasp.tokens else tuple(range(N))

    @cache
    def entry(table, key, query):
        return float(np.asarray(table.over((key,), (query,), numbers, np))[0, 0])

    @cache
    def weights(scores, query):
        raised = []
        for key in range(N):
            added = sum(
                share(part.keys, key, k) * share(part.queries, query, q) * entry(part.score, k, q)
                for part in scores.terms
                for k in values(part.keys)
                for q in values(part.queries)
            )
            raised.append(math.exp(added) if visible[query, key] and added > -1e8 else 0.0)
        return [one / sum(raised) if sum(raised) else 0.0 for one in raised]

    counted = program.votes.terms
    return [
        [
            sum(
                share(part.voters, place, u) * entry(part.gain, u, v)
                for part in counted for u in values(part.voters)
            )
            for v in program.candidates
        ]
        for place in range(N)
    ]  # fmt: skip


def test_votes_are_what_the_definition_says():
    program, visible = with_noise(two_steps()), np.tri(N, dtype=bool)
    ids = ALL[::27]
    found = votes(program, on(program, ids, visible))
    for row, one in zip(ids, found, strict=True):
        assert np.allclose(one_by_one(program, [LETTERS[i] for i in row], visible), one, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["values", "keys", "queries"])
def test_numpy_and_jax_agree_also_under_patches(part):
    program = with_noise(two_steps())
    inputs, rng = on(program), np.random.default_rng(0)
    patch = Patch(inputs.of(rng.permutation(len(ALL))), rng.random((len(ALL), N, N)) < 0.5, part)
    found = votes(program, inputs, patch)
    assert np.allclose(found, votes(program, inputs, patch, xp=jnp), atol=1e-4)
    assert np.abs(found - votes(program, inputs)).max() > 0.1


def test_all_values_of_a_source_are_the_sources_answers():
    program, source = reverse(), np.arange(len(ALL))[::-1]
    inputs = on(program)
    patch = Patch(inputs.of(source), np.ones((len(ALL), N, N), dtype=bool), "values")
    assert (answers(program, inputs, patch) == ALL[source][:, ::-1]).all()
    nothing = Patch(inputs.of(source), np.zeros((len(ALL), N, N), dtype=bool), "values")
    assert (answers(program, inputs, nothing) == ALL[:, ::-1]).all()


def test_where_nothing_is_seen_nobody_votes():
    scores = Weigh(rasp.tokens, rasp.tokens, Only(lambda k, q: k == "c"))
    program = Vote(Votes(Mix(scores, rasp.tokens), When(lambda u, v: u == v, Keys(Constant("one", 1.0)))), LETTERS)
    found = votes(program, on(program, np.array([[0, 1, 0, 1], [0, 1, 2, 2]])))
    assert (found[0] == 0).all()
    assert np.allclose(found[1], [0, 0, 1])


def test_what_is_undefined_has_no_score_and_no_vote():
    before = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1), rasp.tokens)
    program = Vote(Votes(before, When(lambda u, v: u == v, Keys(Constant("one", 1.0)))), LETTERS)
    found = votes(program, on(program, ALL[5:6]))
    assert (found[0, 0] == 0).all()
    assert (found[0, 1:].argmax(axis=-1) == ALL[5, :-1]).all()
