from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.evidence.attention.heads import _similarities, head_similarities, similarity, split_heads
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Map, Select, SequenceMap, indices, numerical, tokens
from rasplens.learned import Architecture, untrained
from rasplens.model import Transformer
from rasplens.tasks import task_from_program


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
    table = head_similarities(with_itself.scored, seed=0).table
    matched = table[table["matched"]]
    assert len(matched) == 2
    assert (matched["compiled_layer"] == matched["layer"]).all()
    np.testing.assert_allclose(matched["similarity"], 1, atol=1e-5)


def test_input_dependence_is_what_other_inputs_rows_take_away(with_itself):
    table = head_similarities(with_itself.scored, seed=0).table
    dependence = table[table["matched"]].set_index("variable")["input_dependence"]
    assert dependence["previous"] == pytest.approx(0, abs=1e-6)  # it attends by position alone
    assert dependence["induction"] > 0.1  # where it attends depends on the letters
    np.testing.assert_allclose(table["input_dependence"], table["similarity"] - table["shuffled"])


def test_an_untrained_model_has_no_input_dependence(with_noise):
    table = head_similarities(with_noise.scored, seed=0).table
    assert (table["similarity"] < 0.8).all()
    assert (table["input_dependence"].abs() < 0.05).all()


def test_rows_count_only_where_the_head_is_active(with_noise):
    previous, induction = active_heads(with_noise.scored)
    assert previous.variable == "previous"
    assert not induction.active_rows[:, [0, 1, 8]].any()  # there no answer is asked
    has_match = with_noise.scored.codes["induction"] >= 0
    assert (induction.active_rows[:, 2:8] == has_match[:, 2:8]).all()
    assert not previous.active_rows[:, 0].any()
    rows = head_similarities(with_noise.scored, seed=0).table.groupby("variable")["rows"].first()
    assert rows["induction"] == induction.active_rows.sum()


def test_patterns_leave_the_bos_out_and_add_up_to_one_or_nothing(with_noise):
    for active in active_heads(with_noise.scored):
        total = active.pattern.sum(axis=-1)
        np.testing.assert_allclose(total[active.active_rows], 1, atol=1e-5)
        assert ((np.abs(total - 1) < 1e-5) | (total == 0)).all()


def test_more_compiled_than_learned_heads_leave_some_without_a_match(induction, task):
    one_head = untrained(Architecture(1, 1, 8, 8), task, 0)
    table = head_similarities(
        study_of(induction, one_head, task, CompareConfig(n_inputs=100), 0).scored, seed=0
    ).table
    assert len(table) == 2
    assert table["matched"].sum() == 1


def test_each_matched_head_stands_beside_its_controls_input_by_input(with_itself, with_noise):
    found = head_similarities(with_itself.scored, seed=0)
    matched = found.table[found.table["matched"]]
    assert set(found.by_input) == {(0, 0), (1, 0)}
    for row in matched.itertuples():
        one = found.by_input[row.compiled_layer, row.compiled_head]
        assert np.nanmean(one.similarity) == pytest.approx(1, abs=1e-5)
        assert np.nanmean(one.uniform) < 0.9
        assert row.untrained < 0.9
    previous = active_heads(with_itself.scored)[0]
    bits = [
        similarity(np.eye(9)[:1], np.where(np.arange(9) <= query, 1 / (query + 1), 0)[None]) for query in range(9)
    ]
    rows = np.flatnonzero(previous.active_rows[0])  # it attends to one position, uniform attention to all before
    assert found.by_input[previous.head].uniform[0] == pytest.approx(
        np.mean([bits[query] for query in rows]), abs=1e-5
    )
    p = matched.set_index("variable")["p"]
    assert p["induction"] == 1 / 40  # no shuffle of inputs reaches it
    assert p["previous"] == 1  # every one does: it attends by position alone
    assert (
        head_similarities(with_noise.scored, seed=0).table.query("~matched")[["p", "untrained"]].isna().all().all()
    )


def test_inputs_on_which_a_head_is_active_nowhere_have_no_similarity(with_noise):
    once = np.array([[*range(8), 0], [*range(7, -1, -1), 7]])  # no letter comes again where an answer is asked
    pairing = with_noise.scored.on(np.concatenate([with_noise.scored.ids[:30], once]))
    found = head_similarities(pairing, seed=0)
    induction = active_heads(pairing)[1]
    active = induction.active_rows.any(axis=1)
    assert active.tolist() == [True] * 30 + [False] * 2
    np.testing.assert_array_equal(~np.isnan(found.by_input[induction.head].similarity), active)


def test_one_head_for_two_is_called_merged(induction, task, with_itself):
    one_head = untrained(Architecture(1, 1, 8, 8), task, 0)
    study = study_of(induction, one_head, task, CompareConfig(n_inputs=100), 0)
    (row,) = split_heads(study.scored, head_similarities(study.scored, seed=0)).to_dict(orient="records")
    assert (row["kind"], row["compiled"], row["learned"]) == ("merged", "previous, induction", "L0H0")
    assert split_heads(with_itself.scored, head_similarities(with_itself.scored, seed=0)).empty


def by_position(noise, *steps):
    """A model of one layer whose heads look so many positions back, whatever stands there."""
    n = noise.config.n_ctx
    config = replace(noise.config, n_layers=1, n_heads=len(steps), d_model=n, d_head=n, attn_scale=1.0)
    places = 50 * np.eye(n)
    keys = np.stack([np.eye(n, k=step) for step in steps])
    for step, key in zip(steps, keys, strict=True):
        key[0, :step] = 1  # with nothing so far back: the first position
    weights = {
        "embed.W_E": np.zeros((config.d_vocab, n)),
        "pos_embed.W_pos": np.eye(n),
        "blocks.0.attn.W_Q": np.stack([places] * len(steps)),
        "blocks.0.attn.W_K": keys,
        "blocks.0.attn.W_V": np.zeros((len(steps), n, n)),
        "blocks.0.attn.W_O": np.zeros((len(steps), n, n)),
        "unembed.W_U": np.zeros((n, config.d_vocab_out)),
    }
    return Transformer(config, weights, noise.mask[:1])


def test_two_heads_that_share_one_heads_work_are_called_split(noise, task):
    """The program reads one and two positions back alike; each learned head reads one of them."""
    both = Select(indices, indices, lambda key, query: query - 2 <= key < query)
    program = numerical(Aggregate(both, numerical(Map(ord, tokens)))).named("mean")
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)

    def split(*steps):
        study = study_of(compiled, by_position(noise, *steps), task, CompareConfig(n_inputs=50), 0)
        return split_heads(study.scored, head_similarities(study.scored, seed=0))

    found = split(1, 2)
    assert found["kind"].tolist() == ["split"]
    assert found["learned"].item() in ("L0H0+1", "L0H1+0")
    assert found["gain"].item() > 0.2
    assert split(1, 4).empty  # the negative control: the second head looks elsewhere


def test_a_head_that_attends_by_position_alone_has_no_concordance(with_itself, with_noise):
    for study in (with_itself, with_noise):
        table = head_similarities(study.scored, seed=0).table
        assert table[table["variable"] == "previous"]["concordance"].isna().all()
        assert table[table["variable"] == "induction"]["concordance"].notna().all()
    own = head_similarities(with_itself.scored, seed=0).table.query("matched and variable == 'induction'")
    assert own["concordance"].item() == pytest.approx(1, abs=1e-6)
    other = head_similarities(with_noise.scored, seed=0).table.query("variable == 'induction'")
    assert (other["concordance"].abs() < 0.2).all()


def looking_and_reading(task):
    """Whether the first token is the own one: by a head that looks for it, or by comparing what is read."""
    first = Select(indices, indices, lambda key, query: key == 0)
    same = Select(tokens, tokens, lambda key, query: key == query)
    found = Aggregate(same & first, Map(lambda token: 1, tokens), default=0).named("found")
    read = Aggregate(first, tokens).named("first")
    return [
        compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
        for program in (
            Map(lambda n: n == 1, found).named("looking"),
            SequenceMap(lambda own, other: own == other, tokens, read).named("reading"),
        )
    ]


def test_a_head_that_attends_everywhere_is_told_from_one_that_attends_where_it_should():
    """Where the compiled head selects something both attend alike; the alternative does so on all inputs."""
    task = task_from_program(Map(lambda token: token == "a", tokens).named("is_a"), "abcd", 5)
    looking, reading = looking_and_reading(task)

    def matched(model):
        study = study_of(looking, model, task, CompareConfig(n_inputs=200), 0, vocabulary_of(model, task))
        return head_similarities(study.scored, seed=0).table.query("matched").iloc[0]

    assert matched(reading)["similarity"] == pytest.approx(1, abs=1e-5)
    assert matched(reading)["concordance"] < 0.01
    assert matched(looking)["concordance"] == pytest.approx(1, abs=1e-6)


def test_rows_without_a_meaning_are_not_inactive(with_noise):
    """An induction head that finds nothing has no value: what another head does there says nothing."""
    _, induction = active_heads(with_noise.scored)
    assert not induction.inactive_rows.any()
    assert (with_noise.scored.codes["induction"] < 0).any()


def test_a_row_that_attends_to_no_position_of_the_task_is_like_no_other():
    """All of its attention goes to a BOS, or its mask leaves it nothing."""
    wanted = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    found = np.array([[[0.0, 0.0], [0.25, 0.25]]])
    assert _similarities(wanted, found, np.ones((1, 2), dtype=bool)) == pytest.approx([0, 1])
