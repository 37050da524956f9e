"""What heads gather."""

from dataclasses import replace

import numpy as np

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.gathered import _alike, made, sufficient
from rasplens.compare.explaining.heads import plans
from rasplens.compare.explaining.known import Inputs
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.explaining.selectors.tried import tried_selectors
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import programs, rasp
from rasplens.tasks import compile_for, task_from_program

from explaining_samples import sample_of  # isort: skip


def first_step(of):
    sample, inputs = of
    group = next(plans(sample))[0]
    best = tried_selectors(Crossed(sample, {}), inputs, group, inputs.primitives(), is_last=False)[0]
    return sample, inputs, group, best.selector


def test_a_head_gathers_what_its_values_depend_on(induction, histogram):
    sample, inputs, group, selector = first_step(induction)
    found = sufficient(Crossed(sample, {}), group, selector, inputs.primitives(), np.random.default_rng(0))
    assert [one.name for one in found] == ["rasp.tokens"]
    sample, inputs, group, selector = first_step(histogram)
    assert sufficient(Crossed(sample, {}), group, selector, inputs.primitives(), np.random.default_rng(0)) == ()


def test_a_head_that_gathers_positions_is_told_from_one_that_gathers_nothing():
    """From any other input the value at a position is the same."""
    latest = rasp.SelectBest(rasp.tokens, rasp.tokens, rasp.Comparison.EQ, rasp.indices)
    sample, inputs, group, selector = first_step(sample_of(rasp.Aggregate(latest, rasp.indices).named("where")))
    found = sufficient(Crossed(sample, {}), group, selector, inputs.primitives(), np.random.default_rng(0))
    assert [one.name for one in found] == ["rasp.indices"]


def test_inputs_that_stand_for_one_another_agree(induction):
    sample, inputs = induction
    tokens, _ = inputs.primitives()
    source = _alike([tokens], sample, np.random.default_rng(0))
    places = np.arange(5)[None]
    np.testing.assert_array_equal(inputs.ids[source, places], inputs.ids)
    assert (source != np.arange(len(sample))[:, None]).mean() > 0.9
    for position in range(5):
        assert sorted(source[:, position]) == list(range(len(sample)))


def test_a_count_and_a_gathered_value(induction, histogram):
    sample, inputs, group, selector = first_step(histogram)
    (count,) = made(sample, inputs, group, selector, ())
    assert count.own_values == (1, 2, 3, 4)
    sample, inputs, group, selector = first_step(induction)
    (last,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    given = np.array(last.values, dtype=object)[last.codes]
    np.testing.assert_array_equal(given[:, 1:], np.array([*"abc"], dtype=object)[inputs.ids[:, :-1]])


def test_the_mean_of_numbers_is_read_off_the_line_on_which_values_lie():
    of = sample_of(programs.pair_balance("(", ")"), "()x", 4, causal=True)
    sample, inputs, group, selector = first_step(of)
    (mean,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    assert "0.5" in mean.text  # what is no bracket counts as half
    assert mean.is_numbers


def test_what_is_fetched_where_nothing_is_selected_is_a_default():
    """The head leaves there what it leaves of that value."""
    later = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q + 1)
    sample, inputs, group, selector = first_step(sample_of(rasp.Aggregate(later, rasp.tokens, default="b")))
    (fetched,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    assert "default='b'" in fetched.text
    own = sample_of(rasp.Aggregate(later, rasp.tokens, default="none"))
    sample, inputs, group, selector = first_step(own)
    (fetched,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    assert "default='nothing'" in fetched.text


def test_values_that_depend_on_a_token_and_its_position_are_one_variable():
    value = rasp.SequenceMap(lambda x, i: (x == "a") == (i % 2 == 0), rasp.tokens, rasp.indices)
    fetched = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 3 - q), value)
    sample, inputs, group, selector = first_step(sample_of(fetched))
    (found,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    carried = found.needs[-1]  # one value for all pairs that heads carry alike
    assert [one.name for one in carried.needs] == ["tokens_and_indices"]
    assert len(carried.own_values) == 2
    mirrored = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 3 - q), rasp.tokens)
    sample, inputs, group, selector = first_step(sample_of(mirrored))
    (found,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    assert "tokens_and_indices" not in [one.name for one in found.needs]


def test_values_that_heads_carry_alike_are_one():
    """Vowels alike; a head that carries all of them apart keeps the variable."""
    opposite = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 3 - q)
    vowel = rasp.Map(lambda x: x in "ae", rasp.tokens)
    for value, n_values in ((vowel, 2), (rasp.tokens, 4)):
        sample, inputs, group, selector = first_step(sample_of(rasp.Aggregate(opposite, value), vocab="abcde"[:4]))
        (found,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
        assert len(set(found.own_values)) == n_values


def with_places_in_values(transformer):
    """The model with a dimension more in each head, which carries the position and which nothing reads."""
    config = replace(transformer.config, d_head=transformer.config.d_head + 1)
    weights = dict(transformer.weights)
    embedded = np.concatenate([weights["pos_embed.W_pos"], weights["embed.W_E"]])
    number = np.concatenate([np.arange(len(weights["pos_embed.W_pos"])), np.zeros(len(weights["embed.W_E"]))])
    reads_place = np.linalg.lstsq(embedded, 3 * number, rcond=None)[0]
    for name in [name for name in weights if ".attn." in name]:
        letter = name[-1]
        if name.endswith("W_O"):
            weights[name] = np.concatenate([weights[name], np.zeros_like(weights[name][:, :1])], axis=1)
        elif letter in "QKV":
            more = np.zeros_like(weights[name][..., :1])
            if name.endswith("W_V"):
                more[..., 0] = reads_place
            weights[name] = np.concatenate([weights[name], more], axis=-1)
    return replace(transformer, config=config, weights=weights)


def test_where_values_have_their_position_in_them_the_share_of_a_token_is_found_all_the_same():
    """A token with its position has too many values for shares; the answers follow from the token's."""
    so_far = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k <= q)
    share = rasp.numerical(rasp.Aggregate(so_far, rasp.numerical(rasp.Map(lambda x: int(x == "a"), rasp.tokens))))
    program = rasp.Map(lambda x: x > 0.5, share)
    task = task_from_program(program, "ab", 6, causal=True)
    compiled = compile_for(task, program)
    model = with_places_in_values(compiled.transformer)
    rng = np.random.default_rng(0)
    ids = task.sample(rng, 60)
    studied = as_studied_model(model, task, ids, vocabulary_of(compiled))
    np.testing.assert_array_equal(studied.answers(), as_studied_model(compiled, task, ids).answers())
    of = Sample(studied, [rng.permutation(len(ids)) for _ in range(2)]), Inputs(task, ids)
    sample, inputs, group, selector = first_step(of)
    (found,) = made(sample, inputs, group, selector, inputs.primitives()[:1])
    assert found.name.endswith("share_0")
    assert "tokens_and_indices" not in found.text


class SaidTwice(Sample):
    """A model in which another head says what one says that is silent."""

    def kept_with_mean_values(self, by_layer):
        return 1.0


def test_a_head_that_another_stands_in_for_is_not_one_that_counts(induction):
    sample, inputs, group, selector = first_step(induction)
    backed_up = SaidTwice(sample.studied, sample.sources)
    found = sufficient(Crossed(backed_up, {}), group, selector, inputs.primitives(), np.random.default_rng(0))
    assert [one.name for one in found] == ["rasp.tokens"]
