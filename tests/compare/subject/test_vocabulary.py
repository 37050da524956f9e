"""How models take a task's inputs and give its answers, whatever their vocabulary and layout."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import Vocabulary, as_studied_model, token_vocabulary
from rasplens.compare.subject.vocabulary import task_vocabulary, vocabulary_of
from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import Aggregate, Map, Select, indices, numerical, tokens
from rasplens.compile.tracr_import import TracrModel
from rasplens.errors import RaspLensError
from rasplens.model import HookedModel, Transformer, disguise
from rasplens.tasks import get_task, task_from_program

WIDE = 30
"""Logits of a model with a vocabulary of its own."""


@pytest.fixture
def ids_of(task):
    """Its id of every token, in no order."""
    return dict(zip(task.vocab, np.random.default_rng(0).permutation(WIDE)[:8].tolist(), strict=True))


@pytest.fixture
def foreign(noise, task, ids_of):
    """The same function as `noise` for a model with other ids, a BOS, and the task's positions far apart.

    Nothing but the task's positions is seen, so that they compute what they did.
    """
    rng, places = np.random.default_rng(1), list(places_of(task))
    ids, size = [ids_of[token] for token in task.vocab], places[-1] + 1
    width = noise.config.d_model
    embed, unembed = rng.normal(size=(WIDE, width)), np.zeros((width, WIDE))
    embed[ids], unembed[:, ids] = noise.W_E, noise.W_U
    positions = rng.normal(size=(size, width))
    positions[places] = noise.weights["pos_embed.W_pos"]
    mask = np.zeros((2, size, size), dtype=bool)
    mask[np.ix_([0, 1], places, places)] = noise.mask
    config = replace(noise.config, d_vocab=WIDE, d_vocab_out=WIDE, n_ctx=size)
    weights = {**noise.weights, "embed.W_E": embed, "pos_embed.W_pos": positions, "unembed.W_U": unembed}
    return Transformer(config, {name: array.astype(noise.dtype) for name, array in weights.items()}, mask)


def places_of(task):
    return range(2, 2 + 2 * task.n_ctx, 2)


def test_a_model_of_the_task_has_its_words(task):
    vocabulary = task_vocabulary(task)
    ids = task.held_out[:4]
    np.testing.assert_array_equal(vocabulary.tokens(ids), ids)
    assert vocabulary.positions == tuple(range(9))
    assert vocabulary.codes(np.eye(8)[[3, 0]]).tolist() == [3, 0]
    np.testing.assert_array_equal(vocabulary.columns, np.arange(8))


def test_a_model_with_a_vocabulary_of_its_own_is_read_as_the_same_model(noise, foreign, task, ids_of):
    vocabulary = token_vocabulary(task, ids_of, prefix=[29, 29], positions=places_of(task))
    ids = task.held_out[:50]
    own, other = as_studied_model(noise, task, ids), as_studied_model(foreign, task, ids, vocabulary)
    np.testing.assert_array_equal(other.answers(), own.answers())
    for layer in (0, 1):
        np.testing.assert_allclose(other.pattern(layer), own.pattern(layer), atol=1e-5)
    for point in own.residual_points:
        np.testing.assert_allclose(other.residual(point), own.residual(point), atol=1e-4)
    assert other.n_pos == task.n_ctx
    assert other.tokens.shape == (50, 19)


def test_another_vocabulary_gives_other_answers(noise, foreign, task, ids_of):
    """The negative controls: a token, an answer or a position taken for another."""
    ids = task.held_out[:50]
    answers = as_studied_model(noise, task, ids).answers()
    exchanged = {**ids_of, "A": ids_of["B"], "B": ids_of["A"]}
    wrong = [
        token_vocabulary(task, exchanged, ids_of, prefix=[29, 29], positions=places_of(task)),
        token_vocabulary(task, ids_of, exchanged, prefix=[29, 29], positions=places_of(task)),
        token_vocabulary(task, ids_of, prefix=[29, 29], positions=range(3, 12)),
    ]
    for vocabulary in wrong:
        assert (as_studied_model(foreign, task, ids, vocabulary).answers() != answers).any()


def test_ids_stand_behind_the_prefix_one_by_one(task, ids_of):
    vocabulary = token_vocabulary(task, ids_of, prefix=[25, 26])
    ids = task.held_out[:3]
    rows = vocabulary.tokens(ids)
    assert vocabulary.positions == tuple(range(2, 11))
    np.testing.assert_array_equal(rows[:, :2], [[25, 26]] * 3)
    assert rows[:, 2:].tolist() == [[ids_of[task.vocab[i]] for i in row] for row in ids.tolist()]


def test_gaps_are_filled_with_the_last_of_the_prefix(task, ids_of):
    rows = token_vocabulary(task, ids_of, prefix=[25, 26], positions=places_of(task)).tokens(task.held_out[:1])
    assert (rows[0, 3::2] == 26).all()
    rows = token_vocabulary(task, ids_of, positions=range(1, 10)).tokens(task.held_out[:1])
    assert rows[0, 0] == ids_of["A"]  # without a prefix, the first token


def test_answers_are_those_of_the_task_alone(task, ids_of):
    """A logit that stands for no answer is not looked at, however high."""
    vocabulary = token_vocabulary(task, ids_of)
    logits = np.zeros((2, WIDE))
    logits[0, ids_of["C"]], logits[1, ids_of["F"]] = 1, 1
    unused = next(i for i in range(WIDE) if i not in ids_of.values())
    logits[:, unused] = 9
    assert vocabulary.codes(logits).tolist() == [2, 5]
    assert logits.argmax(axis=-1).tolist() == [unused, unused]


def test_an_undefined_value_needs_a_logit_only_where_it_is_asked_for(task):
    ids = {letter: i for i, letter in enumerate(task.vocab)}
    never = replace(task, outputs=(*task.outputs, None))
    vocabulary = token_vocabulary(never, ids)
    assert vocabulary.columns.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -1]
    assert vocabulary.codes(np.full((1, 8), -5.0) - np.arange(8)).tolist() == [0]
    asked = replace(task, outputs=(*task.outputs[:-1], None))
    with pytest.raises(RaspLensError, match="no id for None"):
        token_vocabulary(asked, ids)
    assert token_vocabulary(asked, ids, {**ids, None: 7}).columns.tolist() == list(range(8))


def test_what_is_missing_is_named(task, ids_of):
    without = {token: i for token, i in ids_of.items() if token != "C"}
    with pytest.raises(ValueError, match=r"no id for 'C'.*'copy'"):
        token_vocabulary(task, without)
    with pytest.raises(ValueError, match="no id for 'C'"):
        token_vocabulary(task, ids_of, without)
    assert isinstance(token_vocabulary(task, ids_of, ids_of), Vocabulary)


@pytest.mark.parametrize(
    "positions",
    [range(8), range(1, 11), [0, 1, 2, 3, 4, 5, 6, 8, 7], [1, 1, 2, 3, 4, 5, 6, 7, 8], range(9)],
    ids=["too few", "too many", "descending", "twice", "in the prefix"],
)
def test_positions_are_one_for_each_behind_the_prefix(task, ids_of, positions):
    with pytest.raises(ValueError, match=r"positions must be 9\b.*ascending.*prefix; got"):
        token_vocabulary(task, ids_of, prefix=[29], positions=positions)


def test_a_compiled_models_logits_stand_for_the_tasks_answers(offset, task):
    """Both have the same letters, in whatever order."""
    vocabulary = vocabulary_of(offset, task)
    ids = task.held_out[:20]
    logits = offset.transformer(vocabulary.tokens(ids))[:, [vocabulary.positions[p] for p in task.loss_positions]]
    np.testing.assert_array_equal(vocabulary.codes(logits), task.target(ids))
    np.testing.assert_array_equal(logits[..., vocabulary.columns].argmax(axis=-1), task.target(ids))
    values = offset.variables[offset.output].values
    assert [values[column] for column in vocabulary.columns] == list(task.outputs)


def test_the_vocabulary_of_a_compiled_model_may_wait_for_the_task(offset, task):
    ids = task.held_out[:20]
    twin = disguise(offset.transformer, seed=1)
    waiting = as_studied_model(twin, task, ids, vocabulary_of(offset))
    assert waiting.right().all()
    known = as_studied_model(twin, task, ids, vocabulary_of(offset, task))
    np.testing.assert_array_equal(waiting.answers(), known.answers())
    with pytest.raises(ValueError, match=r"vocabulary=vocabulary_of\(compiled\)"):
        as_studied_model(twin, task, ids)


def test_answers_in_another_order_are_translated(offset, task):
    order = np.array([3, 1, 0, 2, 7, 6, 5, 4])
    outputs = tuple(task.outputs[i] for i in order)
    other = replace(task, outputs=outputs, target=lambda ids: np.argsort(order)[task.target(ids)])
    assert as_studied_model(offset, other, task.held_out[:20]).right().all()
    as_before = as_studied_model(offset, task, task.held_out[:20]).answers()
    assert (as_before != other.target(task.held_out[:20])).any()


def test_undefined_is_no_answer(offset, task):
    everywhere = replace(task, loss_positions=tuple(range(9)), target=lambda ids: ids)
    answers = as_studied_model(offset, everywhere, task.held_out[:5]).answers()
    assert (answers[:, :2] == -1).all()
    assert (answers[:, 2:] >= 0).all()


def test_numbers_have_no_columns(task):
    earlier = Select(indices, indices, lambda key, query: key <= query)
    mean = numerical(Aggregate(earlier, numerical(Map(ord, tokens)))).named("mean")
    compiled = compile_program(mean, task.vocab, task.n_ctx, mask=task.visible)
    assert vocabulary_of(compiled, task).columns is None


def test_a_model_for_shorter_inputs_is_refused(task):
    short = compile_program(task.programs["offset"], task.vocab, 5, causal=True)
    with pytest.raises(ValueError, match=r"max_len=5\b.*'copy'.* 9 tokens.*max_len=9"):
        vocabulary_of(short, task)


def test_a_model_of_another_task_needs_words(noise):
    sort = get_task("sort")
    with pytest.raises(ValueError, match="fit the task 'sort'"):
        as_studied_model(noise, sort, sort.held_out[:3])


def test_two_tokens_with_one_id_are_refused(task, ids_of):
    """A model could not tell them apart, and would be said not to implement a program that does."""
    one, other = task.vocab[:2]
    with pytest.raises(RaspLensError, match=f"tokens '{one}' and '{other}'.*id, {ids_of[one]}:"):
        token_vocabulary(task, {**ids_of, other: ids_of[one]})
    with pytest.raises(RaspLensError, match=f"answers '{one}' and '{other}'.*id, {ids_of[one]}:"):
        token_vocabulary(task, ids_of, {**ids_of, other: ids_of[one]})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("i", [-1, 1.5, "a", True])
def test_ids_are_whole_numbers(task, ids_of, i):
    with pytest.raises(RaspLensError, match=f"id of the token {task.vocab[0]!r}.*got {i!r}"):
        token_vocabulary(task, {**ids_of, task.vocab[0]: i})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": 100}, rf"id 100\b.* {WIDE},"),
        ({"answers": 100}, rf"logit 100\b.* {WIDE},"),
        ({"positions": 7}, r"position 25\b.* 19,"),
    ],
)
def test_what_the_model_does_not_have_is_refused(foreign, task, ids_of, change, message):
    last = task.vocab[-1]
    ids = {**ids_of, last: change.get("ids", ids_of[last])}
    answers = {**ids_of, last: change.get("answers", ids_of[last])}
    places = [place + change.get("positions", 0) for place in places_of(task)]
    vocabulary = token_vocabulary(task, ids, answers, prefix=[29, 29], positions=places)
    with pytest.raises(RaspLensError, match=message):
        as_studied_model(foreign, task, task.held_out[:5], vocabulary)


def test_tokens_that_a_task_has_no_use_for_are_left_out(foreign, task, ids_of):
    """Activations and answers are those of the whole model, which a hooked one that is given stays."""
    vocabulary = token_vocabulary(task, ids_of, prefix=[29, 29], positions=places_of(task))
    few, whole = (
        as_studied_model(model, task, task.held_out[:40], vocabulary) for model in (foreign, HookedModel(foreign))
    )
    assert (few.model.cfg.d_vocab, few.model.cfg.d_vocab_out) == (9, 8)
    assert whole.model.cfg.d_vocab == WIDE
    np.testing.assert_array_equal(few.answers(), whole.answers())
    np.testing.assert_allclose(few.clean_logits, whole.clean_logits[..., vocabulary.columns], atol=1e-5)
    for point in whole.residual_points:
        np.testing.assert_allclose(few.whole(point), whole.whole(point), atol=1e-5)


def test_an_answer_that_the_model_cannot_give_has_no_logit(foreign, task, ids_of):
    vocabulary = token_vocabulary(task, ids_of, prefix=[29, 29], positions=places_of(task))
    silent = replace(vocabulary, columns=np.where(np.arange(8) == 3, -1, vocabulary.columns))
    few, whole = (
        as_studied_model(model, task, task.held_out[:40], silent) for model in (foreign, HookedModel(foreign))
    )
    np.testing.assert_array_equal(few.answers(), whole.answers())
    assert 3 not in few.answers()


def test_a_token_has_one_id_wherever_it_stands(foreign, task, ids_of):
    vocabulary = token_vocabulary(task, ids_of, prefix=[29, 29], positions=places_of(task))
    free = min(set(range(WIDE - 1)) - set(ids_of.values()))

    def by_first(ids):
        rows = vocabulary.tokens(ids)
        rows[ids[:, 0] != ids[:, 1], 0] = free
        return rows

    with pytest.raises(RaspLensError, match=r"vocabulary.*token.*same id"):
        as_studied_model(foreign, task, task.held_out[:40], replace(vocabulary, tokens=by_first))


@pytest.fixture
def of_tracr():
    """A model of Tracr's for sorting letters: its vocabulary is its own, and its answers come in another order."""
    compiled = compile_program(programs.sort(), SORTED, 4, bos=True, optimize=False)
    transformer, bos = compiled.transformer, compiled.encode([[1]])[0][0]
    output = compiled.variables[compiled.output]
    weights = {
        **transformer.weights,
        "unembed.W_U": np.eye(transformer.config.d_model)[:, list(output.directions)],
    }
    config = replace(transformer.config, d_vocab_out=len(output.values))
    ids = {letter: int(compiled.encode([[letter]])[0][1]) for letter in SORTED}
    mask = transformer.mask
    read = Transformer(config, {name: np.float32(array) for name, array in weights.items()}, mask)
    return TracrModel(read, {**ids, "BOS": int(bos)}, "BOS", output.values, ())


SORTED = (1, 2, 3)


def test_a_model_of_tracrs_stands_behind_its_bos(of_tracr):
    task = task_from_program(programs.sort(), SORTED, 4)
    for vocabulary in (vocabulary_of(of_tracr, task), vocabulary_of(of_tracr)):
        studied = as_studied_model(of_tracr, task, task.held_out[:40], vocabulary)
        assert studied.vocabulary.positions == (1, 2, 3, 4)
        assert studied.right().all()


def test_a_model_of_tracrs_that_answers_with_a_number_has_no_labels(of_tracr):
    task = task_from_program(programs.sort(), SORTED, 4)
    with pytest.raises(RaspLensError, match=r"Tracr.*one number.*categorical"):
        vocabulary_of(replace(of_tracr, output_values=None), task)


@pytest.mark.parametrize("task_is_known", [True, False])
@pytest.mark.usefixtures("unchecked")
def test_other_models_have_no_compiled_vocabulary(noise, task, task_is_known):
    with pytest.raises(RaspLensError, match=r"vocabulary_of.*got Transformer"):
        vocabulary_of(noise, *[task][:task_is_known])
