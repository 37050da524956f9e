"""Which interventions pose a question that the task could."""

import numpy as np
import pytest
from known_interchanges import scored_pairs

from lab.labelled.circuits import CIRCUITS
from rasplens.compare import CompareConfig, compare, study_of
from rasplens.compare.claims.counterfactuals import Setting, counterfactual
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.questions import questions
from rasplens.compare.claims.posable import posable, selections
from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import Aggregate, Comparison, Map, Select, SelectBest, causal, indices, tokens
from rasplens.learned import load_pretrained
from rasplens.model.hook_points import act_name
from rasplens.tasks import compile_for, get_task, task_from_program

NONE_MIXED = np.array(False)


def test_selections_differ_by_their_size_and_by_whether_there_was_a_choice():
    """With the BOS first: two keys; none; two that are counted; the best of three; the only one of its kind."""
    scores = np.array([
        [28.0, 56, 0, 56], [28, 0, 0, 0], [56, 56, 56, 0], [140, 500, 168, 444], [140, 0, 168, 0],
    ])  # fmt: skip
    np.testing.assert_array_equal(selections(scores), [3 * 2 + 2, 3 * 1, 3 * 3 + 2, 3 + 2, 3 + 1])
    scores = np.array([[-np.inf, -np.inf], [0, -np.inf], [56, 56], [56, 28]])
    np.testing.assert_array_equal(selections(scores, level=28.0), [0, 0 + 3, 8, 3 + 2])


@pytest.mark.parametrize("bos", [False, True])
def test_no_question_asks_for_a_token_that_stands_nowhere(bos):
    """Every position finds the first token like its own. One that is patched may find none: no input asks that."""
    earliest = Map(lambda i: -i, indices)
    first = Aggregate(SelectBest(tokens, tokens, Comparison.EQ, earliest), indices).named("first_of_own")
    task = task_from_program(first, "abcdef", 5)
    compiled = compile_program(first, task.vocab, 5, mask=task.visible, bos=bos)
    assert compiled.has_bos == bos
    pairing = study_of(compiled, compiled, task, CompareConfig(n_inputs=200, n_fitting=100), 0).scored
    (asked,) = [one for one in questions(pairing, 0, pairing.config.questions) if one.patch.part == "queries"]
    patched_rows = asked.patch.edges.any(axis=2)
    finds = (pairing.ids[asked.patch.source][:, :, None] == pairing.ids[asked.patch.base][:, None, :]).any(axis=2)
    assert len(asked) > 100
    assert finds[patched_rows].all()


def scores_of(pairing):
    reference = pairing.reference
    return {layer: reference.whole(act_name("attn_scores", layer)) for layer in range(reference.n_layers)}


def test_the_tasks_own_inputs_are_posed_where_the_program_answers(with_itself):
    asked = with_itself.scored.reference.answers()
    posed = posable(with_itself.scored).are_posed(asked, scores_of(with_itself.scored), NONE_MIXED)
    np.testing.assert_array_equal(posed, (asked >= 0).all(axis=1))
    assert 0 < posed.sum() < len(posed)


def test_other_answers_and_other_selections_are_not(with_itself):
    known, own = posable(with_itself.scored), scores_of(with_itself.scored)
    asked = with_itself.scored.reference.answers()
    posed = known.are_posed(asked, own, NONE_MIXED)
    assert not known.are_posed(asked, own, np.ones(len(asked), dtype=bool)).any()
    never = np.argwhere(~known.answers)
    if len(never):
        answer, code = never[0]
        other = asked.copy()
        other[:, answer] = code
        assert not known.are_posed(other, own, NONE_MIXED).any()
    (layer, head, place), sizes = next(iter(known.rows.items()))
    assert sizes[3 + 1]
    assert not sizes[2 * 3 + 2]  # the letter before is one letter
    two = {at: scores.copy() for at, scores in own.items()}
    two[layer][:, head, place, 1:3] = two[layer][:, head, place].max(axis=1, keepdims=True)
    assert posed.any()
    assert not known.are_posed(asked, two, NONE_MIXED).any()


def test_only_rows_that_reach_an_answer_count(with_itself):
    known = posable(with_itself.scored)
    relevant = {
        (layer, head, with_itself.scored.reference.at(position))
        for (layer, head), positions in with_itself.scored.relevance.rows.items()
        for position in positions
    }
    assert set(known.rows) == relevant


@pytest.fixture(scope="module")
def sorting():
    """Tokens that stand where all smaller ones are in front of them: equal ones in one place."""
    task = task_from_program(programs.sort_unique(), (1, 2, 3, 4), 5)
    compiled = compile_for(task)
    return study_of(compiled, compiled, task, CompareConfig(n_inputs=200, n_fitting=200), 0)


def test_where_all_selected_keys_hold_the_same_a_task_does_not_ask_for_a_mixture(sorting):
    """Of tokens that are sent to one place, a model says what it likes. The compiled one says what most are."""
    name, task = "target_pos", sorting.task
    pairs, pairing = scored_pairs(sorting, name), sorting.scored
    targets = np.array(sorting.compiled.variables[name].values)[pairing.codes[name]]
    sent_to = np.where(pairs.intervened, targets[pairs.source], targets[pairs.base])
    for ids, places, expected in zip(pairing.ids[pairs.base], sent_to, pairs.expected, strict=True):
        for place in range(task.n_ctx):
            there = set(ids[places == place].tolist())
            assert len(there) < 2
            assert not there or expected[place] == task.outputs.index(task.vocab[there.pop()])


def test_what_mixes_is_seen(sorting):
    """All targets from another input: some of them send two different tokens to one place, and some do not."""
    sorting = sorting.scored
    base = np.arange(sorting.n_inputs)
    setting = Setting("target_pos", np.roll(base, 1), np.ones(sorting.ids.shape, dtype=bool))
    mixtures = posable(sorting).mixtures()
    counterfactual(sorting, base, setting, watching=mixtures.hooks)
    sent_to = sorting.codes["target_pos"][setting.source]
    differ = [
        any(len(set(ids[places == place].tolist())) > 1 for place in range(sorting.task.n_ctx))
        for ids, places in zip(sorting.ids, sent_to, strict=True)
    ]
    np.testing.assert_array_equal(mixtures.rows, differ)
    assert 0 < mixtures.rows.mean() < 1


def test_the_mean_of_numbers_is_a_value_and_no_mixture():
    """Where shares are counted, keys that hold different numbers are what the task asks for."""
    task = CIRCUITS["share"].task()
    compiled = compile_for(task, CIRCUITS["share"].program())
    study = study_of(compiled, compiled, task, CompareConfig(n_inputs=200, n_fitting=200), 0)
    mixtures = posable(study.scored).mixtures()
    rng = np.random.default_rng(0)
    base, source = rng.integers(study.scored.n_inputs, size=(2, 60))
    edges = rng.random((60, task.n_ctx, task.n_ctx)) < 0.5
    patch = EdgePatch(base, source, edges, "values")
    answers, _ = patched(study.scored.reference, patch, watching=mixtures.hooks)
    assert (answers != study.scored.reference.answers()[base]).any(axis=1).mean() > 0.5
    assert not mixtures.rows.any()


def by_any_match():
    """Induction without a rule for several matches, which have no value."""
    before = Aggregate(Select(indices, indices, lambda key, query: key == query - 1), tokens).named("previous")
    return causal(Aggregate(Select(before, tokens, Comparison.EQ), tokens)).named("by_any_match")


@pytest.mark.parametrize("build", [programs.induction, by_any_match])
def test_where_a_task_has_one_match_several_are_not_posed_however_a_program_ranks_them(build):
    """Of the latest of two matches a model says nothing that never saw two. It was said to fail there."""
    task = get_task("induction", n_letters=8, block=6, asked=3)
    compiled = compile_program(build(), task.vocab, task.n_ctx, mask=task.visible, partial="allow")
    study = study_of(compiled, compiled, task, CompareConfig(n_inputs=200, n_fitting=200), 0)
    pairs = scored_pairs(study, "previous")
    codes = study.scored.codes["previous"]
    previous = np.where(pairs.intervened, codes[pairs.source], codes[pairs.base])
    asked = study.scored.ids[pairs.base][:, 6:]
    seen = np.arange(9) < 6 + np.arange(3)[:, None] + 1
    matches = ((previous[:, None, :] == asked[:, :, None]) & seen).sum(axis=2)
    np.testing.assert_array_equal(matches, 1)


@pytest.mark.slow
def test_the_shipped_induction_model_implements_its_program():
    task = get_task("induction")
    compiled = compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)
    result = compare(compiled, load_pretrained("induction"), task=task)
    assert result.verdict.answer == "implements"
    assert set(result.verdict.levels.values()) == {"implements"}
