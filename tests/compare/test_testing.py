"""Claims about models whose truth is known: right ones pass, wrong ones fail and show why."""

import re

import pytest

from rasplens.compare import CompareConfig, testing
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compare.testing import (
    assert_edge_critical,
    assert_edge_not_critical,
    assert_head_attends,
    assert_implements,
    assert_variable_encoded,
)
from rasplens.compile import compile_program, rasp
from rasplens.compile.rasp import Map, Select, indices
from rasplens.compile.rasp.interpreter import expressions
from rasplens.errors import RaspLensError
from rasplens.model import HookedModel, disguise

MIDDLE = "blocks.0.hook_resid_post"


def one_back(key, query, tokens):
    return key == query - 1


def two_back(key, query, tokens):
    return key == query - 2


def selectors(program):
    return {expr.name: expr for expr in expressions(program) if isinstance(expr, rasp.Selector)}


@pytest.fixture(scope="module")
def hidden(induction, task):
    """The induction program in other weights, and the vocabulary for it."""
    twin = disguise(induction.transformer, seed=3, kinds=("residual",), extra_width=4)
    return HookedModel(twin), vocabulary_of(induction, task)


@pytest.fixture(scope="module")
def compared(induction, noise, ceiling, floor):
    """The comparisons behind two claims: by the model, the evidence."""
    return {induction: ceiling, noise: floor}


@pytest.fixture
def evidence(compared, monkeypatch):
    asked = []

    def look_up(compiled, model, **options):
        asked.append((compiled.output, options))
        return compared[model]

    monkeypatch.setattr(testing, "compare", look_up)
    return asked


def test_a_compiled_program_implements_itself(induction, task, evidence):
    assert_implements(
        task.programs["induction"], induction, task, at_least=0.95, config=CompareConfig(n_inputs=60), seed=2
    )
    assert evidence == [
        ("induction", {"task": task, "config": CompareConfig(n_inputs=60), "seed": 2, "vocabulary": None})
    ]


def test_a_model_that_learned_nothing_implements_nothing_and_every_axis_is_shown(noise, induction, task, evidence):
    with pytest.raises(AssertionError) as failed:
        assert_implements(induction, noise, task)
    first, *rest = str(failed.value).splitlines()
    assert all(said in first for said in ("'induction'", "'copy'", "does not (answers: does not"))
    assert rest[0].startswith("  answers: answers, held out: fails (")
    axes = [line.strip().split(":")[0] for line in rest[-5:]]
    assert axes == ["behaviour", "interchange", "attention", "ablation", "subspaces"]
    assert "untrained model" in rest[-5]
    assert any("variable previous: not testable" in line for line in rest)


def test_an_axis_below_what_was_asked_is_named(noise, induction, task, evidence):
    with pytest.raises(AssertionError, match=r"at_least=0\.9: behaviour, attention, ablation"):
        assert_implements(induction, noise, task, at_least=0.9)


@pytest.mark.slow
def test_another_program_with_the_same_answers_is_not_implemented(offset, task, quick):
    """On inputs on which both programs answer alike, the one reads what the other does not."""
    with pytest.raises(AssertionError, match=r"'induction'.*does not \(answers: "):
        assert_implements(task.programs["induction"], offset, task, config=quick)


@pytest.mark.slow
def test_a_disguised_program_is_still_implemented(hidden, induction, task, brief):
    model, vocabulary = hidden
    assert_implements(induction, model, task, vocabulary=vocabulary, config=brief)


def test_a_head_attends_as_its_selector_says(induction, task):
    rules = selectors(task.programs["induction"])
    assert_head_attends(induction, 0, 0, rules["one_back"], task)
    assert_head_attends(induction, 0, 0, one_back, task)
    assert_head_attends(induction, 1, 0, rules["after_latest_match"], task, at_least=0.99)


def test_a_disguised_head_attends_as_before(hidden, task):
    model, vocabulary = hidden
    assert_head_attends(model, 0, 0, one_back, task, vocabulary=vocabulary)
    with pytest.raises(AssertionError, match="worst input"):
        assert_head_attends(model, 0, 0, two_back, task, vocabulary=vocabulary)


def test_a_wrong_claim_of_a_head_shows_score_chance_and_the_worst_row(offset, task):
    assert_head_attends(offset, 0, 0, two_back, task)
    with pytest.raises(AssertionError) as failed:
        assert_head_attends(offset, 0, 0, one_back, task, queries=["8", 7])
    first, rows, worst, row = str(failed.value).splitlines()
    chance = (1 / 9 + 1 / 8) / 2
    assert first.startswith("L0H0 puts 0.000 of its attention ")
    assert "at_least=0.9 " in first
    assert f"chance, {chance:.3f}" in first
    assert rows == "  rows: 192 on 96 inputs"
    letters = worst.removeprefix("  worst input: ").split()
    assert row in [
        f"  worst row: query {i} ({letters[i]}) puts 0.000 on {i - 1} ({letters[i - 1]}); "
        f"most, 1.000, is on {i - 2} ({letters[i - 2]})"
        for i in (7, 8)
    ]


def test_spread_attention_does_not_pass_for_a_rule_that_selects_almost_everything(noise, task):
    """The score is high, but so is chance."""
    with pytest.raises(AssertionError, match=r"chance, 0\.8"):
        assert_head_attends(noise, 0, 0, lambda key, query, tokens: key > 0, task, queries=[5, 6, 7, 8])


@pytest.mark.parametrize(
    "rule", [lambda key, query, tokens: True, Select(indices, Map(lambda i: -1, indices), rasp.Comparison.EQ)]
)
def test_a_rule_that_claims_nothing_is_refused(noise, task, rule):
    with pytest.raises(ValueError, match=r"rule.*selects.*claims nothing"):
        assert_head_attends(noise, 0, 0, rule, task)


@pytest.mark.slow
def test_a_variable_is_encoded_where_it_is_written(induction, task):
    assert_variable_encoded(task.programs["induction"], induction, "previous", task)
    assert_variable_encoded(induction, induction, "previous", task, point=MIDDLE, position="4")


def test_a_variable_is_not_encoded_before_it_is_written(induction, task):
    with pytest.raises(AssertionError) as failed:
        assert_variable_encoded(induction, induction, "previous", task, point="blocks.0.hook_resid_pre")
    first, second, header, *rows = str(failed.value).splitlines()
    assert re.match(r"'previous' is not encoded at blocks\.0\.hook_resid_pre: .* 0\.0\d\d .*at_least=", first)
    assert f"best at {MIDDLE}" in second
    assert header.split() == ["score", "chance", "shuffled", "untrained", "above"]
    scores = {row.split()[0]: [float(value) for value in row.split()[1:]] for row in rows}
    assert scores[MIDDLE][0] == scores[MIDDLE][-1] == 1


def test_a_disguised_variable_is_encoded_and_in_noise_it_is_not(hidden, noise, induction, task):
    model, vocabulary = hidden
    assert_variable_encoded(induction, model, "previous", task, vocabulary=vocabulary)
    with pytest.raises(AssertionError, match="'previous' is not encoded"):
        assert_variable_encoded(induction, noise, "previous", task)


def test_the_edges_of_a_head_by_position_are_critical_one_by_one(offset, task):
    assert_edge_critical(offset, 0, "4", "2", task, at_least=0.16)
    assert_edge_critical(offset, 0, 4, 2, task)
    assert_edge_not_critical(offset, 0, "4", "3", task)


def test_a_wrong_claim_of_an_edge_shows_the_edges_that_are_critical(offset, task):
    with pytest.raises(AssertionError) as failed:
        assert_edge_critical(offset, 0, "4", "3", task)
    first, second, header, mine, *others = str(failed.value).splitlines()
    assert re.search(r"edge L0 4→3, .* drops by 0\.000, less than at_least=0\.01\.", first)
    assert " 1.000 are right." in second
    assert header.split() == ["attention", "zero", "mean", "resample"]
    assert mine.split() == ["L0", "4→3", "0.000", "0.000", "0.000", "0.000"]
    assert others[0].split()[:4] == ["L0", "2→0", "1.000", "0.167"]


def test_an_edge_that_is_critical_is_not_passed_off_as_dispensable(offset, task):
    with pytest.raises(AssertionError, match=r"L0 4→2, .* 0\.167, .*at_most=0\.01"):
        assert_edge_not_critical(offset, 0, "4", "2", task)


def test_a_disguised_edge_is_critical_as_before(induction, hidden, task):
    model, vocabulary = hidden
    assert_edge_critical(induction, 1, "6", "4", task)
    assert_edge_critical(model, 1, "6", "4", task, vocabulary=vocabulary)
    with pytest.raises(AssertionError, match="L1 6→5"):
        assert_edge_critical(model, 1, "6", "5", task, vocabulary=vocabulary)


BAD = {
    "head": (lambda m, p, t: assert_head_attends(m, 2, 0, one_back, t), "No head L2H0"),
    "unused": (lambda m, p, t: assert_head_attends(m, 0, 1, one_back, t), "No head L0H1.* L0H0, L1H0"),
    "query": (lambda m, p, t: assert_head_attends(m, 0, 0, one_back, t, queries=["x"]), "has no position 'x'"),
    "share": (lambda m, p, t: assert_head_attends(m, 0, 0, one_back, t, at_least=2.0), "at_least .*got 2.0"),
    "n": (
        lambda m, p, t: assert_head_attends(m, 0, 0, one_back, t, config=CompareConfig(n_inputs=1)),
        "n_inputs of a CompareConfig .* 10; got 1",
    ),
    "variable": (lambda m, p, t: assert_variable_encoded(p, m, "x", t), "no variable 'x'.* 'tokens', "),
    "point": (
        lambda m, p, t: assert_variable_encoded(p, m, "previous", t, point="x"),
        "no hook point 'x'.*blocks",
    ),
    "position": (lambda m, p, t: assert_variable_encoded(p, m, "previous", t, position=9), "has no position 9"),
    "dead": (
        lambda m, p, t: assert_variable_encoded(p, m, "previous", t, position=8),
        "position 8.* 1, 2, 3, 4",
    ),
    "layer": (lambda m, p, t: assert_edge_critical(m, 2, 1, 0, t), "no layer 2.* 0 to 1"),
    "edge": (lambda m, p, t: assert_edge_critical(m, 0, "1", "2", t), "Position 1 does not see 2"),
    "unread": (lambda m, p, t: assert_edge_not_critical(m, 1, 1, 0, t), "depend on the edge L1 1→0"),
    "key": (
        lambda m, p, t: assert_edge_not_critical(m, 0, 1, -1, t),
        "no position -1.* 0 to 8\\b",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_claim_that_makes_no_sense_is_refused_in_one_line(kind, induction, task):
    claim, message = BAD[kind]
    with pytest.raises(ValueError, match=message) as refused:
        claim(induction, induction, task)
    assert "\n" not in str(refused.value)


def test_the_program_comes_first_as_in_compare(induction, noise, task, unchecked):
    for claim in (assert_implements, lambda p, m, t: assert_variable_encoded(p, m, "previous", t)):
        with pytest.raises(RaspLensError, match="program comes first"):
            claim(noise, induction, task)


def test_programs_and_rules_of_the_wrong_kind_are_refused(induction, task, unchecked):
    with pytest.raises(RaspLensError, match=r"program.* 'copy'.*got 3"):
        assert_implements(3, induction, task)
    with pytest.raises(TypeError, match=rf"selector.*got {indices!r}"):
        assert_head_attends(induction, 0, 0, indices, task)


def test_claims_hold_for_other_tasks_with_positions_of_their_own_names():
    from rasplens.tasks import get_task

    task = get_task("compression", n_digits=6)
    compiled = compile_program(task.programs["slots"], task.vocab, task.n_ctx, mask=task.visible)
    query, key = task.positions[2], task.positions[0]
    assert_edge_critical(compiled, 0, query, key, task, at_least=0.4)
    assert_edge_not_critical(compiled, 0, "o2", query, task)
    with pytest.raises(RaspLensError, match="depend on the edge L1 SEP→d1"):
        assert_edge_not_critical(compiled, 1, query, key, task)
