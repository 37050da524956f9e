import numpy as np
import pytest

from rasplens.compare import pair
from rasplens.compare.attention import active_heads, head_similarities, similarity


def test_similarity_has_the_laws_of_one():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(6), size=50)
    others = rng.dirichlet(np.ones(6), size=50)
    np.testing.assert_allclose(similarity(rows, rows), 1)
    np.testing.assert_allclose(similarity(rows, others), similarity(others, rows))
    order = rng.permutation(6)
    np.testing.assert_allclose(similarity(rows[:, order], others[:, order]), similarity(rows, others))
    assert (similarity(rows[:, order], rows) < 0.999).any()  # the negative control: one side alone moves it
    distance = lambda a, b: np.sqrt(np.clip(1 - similarity(a, b), 0, None))  # noqa: E731
    third = rng.dirichlet(np.ones(6), size=50)
    assert (distance(rows, third) <= distance(rows, others) + distance(others, third) + 1e-12).all()


def test_similarity_at_its_ends():
    first, second = np.array([[1.0, 0, 0]]), np.array([[0, 1.0, 0]])
    assert similarity(first, second) == 0
    half = np.array([[0.5, 0.5, 0]])
    bits = 0.5 * np.log2(1 / 0.75) + 0.5 * (0.5 * np.log2(0.5 / 0.75) + 0.5 * np.log2(0.5 / 0.25))
    assert similarity(first, half) == pytest.approx(1 - bits)


def test_a_model_is_matched_head_by_head_with_itself(with_itself):
    table = head_similarities(with_itself, seed=0)
    matched = table[table["matched"]]
    assert len(matched) == 2
    assert (matched["compiled_layer"] == matched["layer"]).all()
    np.testing.assert_allclose(matched["similarity"], 1, atol=1e-5)


def test_content_is_what_swapping_inputs_takes_away(with_itself):
    table = head_similarities(with_itself, seed=0)
    content = table[table["matched"]].set_index("variable")["content"]
    assert content["previous"] == pytest.approx(0, abs=1e-6)  # it attends by position alone
    assert content["induction"] > 0.1  # where it attends depends on the letters
    np.testing.assert_allclose(table["content"], table["similarity"] - table["shuffled"])


def test_an_untrained_model_has_no_content(with_noise):
    table = head_similarities(with_noise, seed=0)
    assert (table["similarity"] < 0.8).all()
    assert (table["content"].abs() < 0.05).all()


def test_rows_count_only_where_the_head_acts(with_noise):
    previous, induction = active_heads(with_noise)
    assert previous.variable == "previous"
    assert not induction.acts[:, [0, 1, 8]].any()  # there no answer is asked
    has_match = with_noise.codes["induction"] >= 0
    assert (induction.acts[:, 2:8] == has_match[:, 2:8]).all()
    assert not previous.acts[:, 0].any()
    rows = head_similarities(with_noise, seed=0).groupby("variable")["rows"].first()
    assert rows["induction"] == induction.acts.sum()


def test_patterns_leave_the_bos_out_and_add_up_to_one_or_nothing(with_noise):
    for active in active_heads(with_noise):
        total = active.pattern.sum(axis=-1)
        np.testing.assert_allclose(total[active.acts], 1, atol=1e-5)
        assert ((np.abs(total - 1) < 1e-5) | (total == 0)).all()


def test_more_compiled_than_learned_heads_leave_some_without_a_match(induction, task):
    from rasplens.learned import Architecture, untrained

    one_head = untrained(Architecture(1, 1, 8, 8), task, 0)
    table = head_similarities(pair(induction, one_head, task, 100, 0), seed=0)
    assert len(table) == 2
    assert table["matched"].sum() == 1
