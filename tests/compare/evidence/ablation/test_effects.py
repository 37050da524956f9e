"""Ablations of models whose every edge is known, and of random ones by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import log_softmax

from rasplens.compare import CompareConfig, as_studied_model
from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.evidence.ablation.effects import (
    head_effects,
    head_position_effects,
    joint_effects,
    neuron_effects,
)
from rasplens.compare.evidence.ablation.measurement import METHODS
from rasplens.compare.evidence.derangements import derangement
from rasplens.compile import compile_program
from rasplens.learned import Architecture
from rasplens.model import Transformer, random_streams
from rasplens.model.forward import forward
from rasplens.tasks import get_task

WHOLE = CompareConfig(head_answers=10_000, edge_answers=10_000, neuron_answers=10_000)
"""Ablations on every input that there is."""

SIZES = Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6, d_mlp=5, bias=True)
N = 40


@pytest.fixture(scope="module")
def model(random_transformer, task):
    return random_transformer(SIZES.config(task), biases=True, seed=3)


@pytest.fixture(scope="module")
def studied(model, task):
    """A random model asked for its own answers: every answer that an ablation changes is an accuracy drop."""
    own = replace(task, target=lambda ids: model(ids)[:, list(task.loss_positions)].argmax(-1))
    return as_studied_model(model, own, task.held_out[:N])


def by_hand(studied, model, edits):
    """Answers' logits by the numpy reference, with edits by hook name, and the accuracy drop on each input."""

    def hook(name, value):
        return edits[name](np.array(value)) if name in edits else value

    logits = forward(model.weights, model.mask, model.config, studied.ids, hook)
    logits = logits[:, list(studied.task.loss_positions)]
    return logits, 1 - (logits.argmax(-1) == studied.targets).mean(axis=1)


def instead(activation, method):
    """What takes an activation's place."""
    if method == "resample":
        return activation[derangement(len(activation), random_streams.rng(0, "resample ablation"))]
    return {"zero": 0 * activation, "mean": 0 * activation + activation.mean(axis=0)}[method]


def put(place, wanted):
    """An edit that puts something at a place behind the input axis."""

    def edit(value):
        value[(slice(None), *place)] = wanted
        return value

    return edit


def test_the_only_head_has_the_whole_effect(offset, task):
    effects = head_effects(as_studied_model(offset, task, task.held_out[:100])).table
    assert effects[["layer", "head"]].to_numpy().tolist() == [[0, 0]]
    assert effects["zero"].item() == 1.0
    assert effects["mean"].item() > 0.6  # the mean over inputs sometimes favours the right letter
    assert effects["resample"].item() > 0.6


def test_each_edge_of_a_head_by_position_drops_its_own_answer(offset, task):
    effects = edge_effects(as_studied_model(offset, task, task.held_out[:100])).table
    drop = {(row.layer, row.query, row.key): row.zero for row in effects.itertuples()}
    share = 1 / len(task.loss_positions)
    assert drop == pytest.approx({(0, query, query - 2): share for query in task.loss_positions})
    for method in ("mean", "resample"):  # the attention is the same on every input
        np.testing.assert_allclose(effects[method], 0, atol=1e-9)
        np.testing.assert_allclose(effects[f"{method}_kl"], 0, atol=1e-6)
    np.testing.assert_allclose(effects["attention"], 1, atol=1e-6)


def test_an_edge_that_matters_on_some_inputs_shows_it_under_every_method(induction, task):
    few_letters = task.draw(np.random.default_rng(0), 200) % 3  # so that blocks repeat letters
    effects = edge_effects(as_studied_model(induction, task, few_letters)).table
    second = effects[effects["layer"] == 1]
    assert ((second["attention"] > 0) & (second["attention"] < 1)).any()
    for method in METHODS:
        assert (second[method] > 0.01).any()


def test_edges_of_rows_that_reach_no_answer_are_left_out():
    task = get_task("compression", n_digits=6)
    compiled = compile_program(task.programs["slots"], task.vocab, task.n_ctx, mask=task.visible)
    effects = edge_effects(as_studied_model(compiled, task, task.held_out)).table
    edges = {(row.layer, row.query, row.key): row.zero for row in effects.itertuples()}
    assert edges == pytest.approx({(0, 2, 0): 0.5, (0, 2, 1): 0.5, (1, 3, 2): 0.5, (1, 4, 2): 0.5})


@pytest.mark.parametrize("method", METHODS)
def test_a_head_by_hand(studied, model, method):
    clean = model.run_with_cache(studied.ids)[1]["blocks.0.attn.hook_z"]
    logits, drop = by_hand(
        studied, model, {"blocks.0.attn.hook_z": put((slice(None), 1), instead(clean[:, :, 1], method))}
    )
    found = head_effects(studied, WHOLE)
    row = found.table.index[(found.table["layer"] == 0) & (found.table["head"] == 1)].item()
    np.testing.assert_allclose(found.drops[method][row], drop, atol=1e-9)
    assert drop.mean() > 0.05
    assert found.table.loc[row, method] == pytest.approx(drop.mean())
    before, after = log_softmax(studied.clean_logits, axis=-1), log_softmax(logits, axis=-1)
    kl = (np.exp(before) * (before - after)).sum(axis=-1).mean()
    assert found.table.loc[row, f"{method}_kl"] == pytest.approx(kl)
    at = np.take_along_axis(np.exp(before) - np.exp(after), studied.targets[..., None], axis=-1)
    assert found.table.loc[row, f"{method}_probability"] == pytest.approx(at.mean())
    others = found.table.drop(index=row)[f"{method}_kl"]
    assert (np.abs(others - kl) > 1e-6).all()  # the negative control: no other head's


@pytest.mark.parametrize("method", METHODS)
def test_a_head_at_one_position_by_hand(studied, model, method):
    clean = model.run_with_cache(studied.ids)[1]["blocks.1.attn.hook_z"]
    _, drop = by_hand(studied, model, {"blocks.1.attn.hook_z": put((4, 0), instead(clean[:, 4, 0], method))})
    found = head_position_effects(studied, WHOLE)
    row = found.table.index[found.table[["layer", "head", "position"]].eq([1, 0, 4]).all(axis=1)].item()
    np.testing.assert_allclose(found.drops[method][row], drop, atol=1e-9)
    assert drop.any()
    unread = found.table[(found.table["layer"] == 1) & ~found.table["position"].isin(studied.task.loss_positions)]
    assert (unread[f"{method}_kl"] == 0).all()  # in the last layer only positions that are read count
    assert len(unread) == 2 * (studied.n_pos - len(studied.task.loss_positions))


@pytest.mark.parametrize("method", METHODS)
def test_an_edge_by_hand_renormalises_the_row(studied, model, method):
    """Every edge that costs something, not an edge alone: the rest of the row is scaled to what is left."""
    found = edge_effects(studied, WHOLE)
    costly = found.table[(found.table["key"] < found.table["query"]) & (found.table["query"] > 2)]
    best = costly[method].idxmax()
    layer, query, key = (int(found.table.loc[best, name]) for name in ("layer", "query", "key"))
    point = f"blocks.{layer}.attn.hook_pattern"
    clean = model.run_with_cache(studied.ids)[1][point]
    wanted = instead(clean[:, :, query, key], method)

    def renormalised(pattern):
        row = pattern[:, :, query].copy()
        row[..., key] = 0
        row *= ((1 - wanted) / row.sum(axis=-1))[..., None]
        row[..., key] = wanted
        np.testing.assert_allclose(row.sum(axis=-1), 1)
        pattern[:, :, query] = row
        return pattern

    _, drop = by_hand(studied, model, {point: renormalised})
    np.testing.assert_allclose(found.drops[method][best], drop, atol=1e-9)
    assert drop.mean() > 0.01
    _, bare = by_hand(studied, model, {point: put((slice(None), query, key), wanted)})
    assert not np.allclose(bare, drop)  # the negative control: the rest of the row left as it was


@pytest.mark.parametrize("method", METHODS)
def test_two_heads_at_once_by_hand(studied, model, method):
    cache = model.run_with_cache(studied.ids)[1]
    points = {head: f"blocks.{head[0]}.attn.hook_z" for head in studied.heads}
    found = joint_effects(studied, WHOLE).set_index(["first", "second"])
    assert len(found) == 6

    def drop(heads):
        def edit(value, layer):
            for _, index in (head for head in heads if head[0] == layer):
                value[:, :, index] = instead(cache[f"blocks.{layer}.attn.hook_z"][:, :, index], method)
            return value

        edits = {points[head]: lambda value, layer=head[0]: edit(value, layer) for head in heads}
        return by_hand(studied, model, edits)[1].mean()

    repaired = []
    for first, second in combinations(studied.heads, 2):
        row = found.loc[f"L{first[0]}H{first[1]}", f"L{second[0]}H{second[1]}"]
        both = drop([first, second])
        assert row[method] == pytest.approx(both)
        repaired.append(both - drop([first]) - drop([second]))
        assert row[f"{method}_repaired"] == pytest.approx(repaired[-1], abs=1e-9)
    assert np.abs(repaired).max() > 0.01


def test_heads_that_stand_in_for_each_other_have_an_effect_only_together(offset, task):
    """The same head twice, each with all of the answer: either is enough."""
    from rasplens.compare.subject.vocabulary import vocabulary_of
    from rasplens.model import Transformer

    one = offset.transformer
    weights = {
        name: np.concatenate([array, array]) if ".attn.W_" in name else array
        for name, array in one.weights.items()
    }
    twice = Transformer(replace(one.config, n_heads=2), weights, one.mask)
    studied = as_studied_model(twice, task, task.held_out[:30], vocabulary_of(offset, task))
    assert studied.right().all()
    (row,) = joint_effects(studied, WHOLE).to_dict(orient="records")
    assert row["zero"] == 1
    assert row["zero_repaired"] == 1  # alone, neither costs anything
    assert (head_effects(studied).table["zero"] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_neuron_by_hand(studied, model, method):
    found = neuron_effects(studied, WHOLE)
    assert found.table[["layer", "neuron"]].to_numpy().tolist() == [
        [layer, i] for layer in (0, 1) for i in range(5)
    ]
    best = found.table[method].idxmax()
    layer, i = int(found.table.loc[best, "layer"]), int(found.table.loc[best, "neuron"])
    point = f"blocks.{layer}.mlp.hook_post"
    clean = model.run_with_cache(studied.ids)[1][point]
    _, drop = by_hand(studied, model, {point: put((slice(None), i), instead(clean[:, :, i], method))})
    np.testing.assert_allclose(found.drops[method][best], drop, atol=1e-9)
    assert drop.mean() > 0.01
    other = by_hand(
        studied, model, {point: put((slice(None), (i + 1) % 5), instead(clean[:, :, (i + 1) % 5], method))}
    )
    assert not np.allclose(other[1], drop)


def test_without_neurons_or_with_too_many_there_is_no_row(noise, random_transformer, task):
    assert neuron_effects(as_studied_model(noise, task, task.held_out[:5])).table.empty
    wide = random_transformer(replace(SIZES, d_mlp=6).config(task))
    studied = as_studied_model(wide, task, task.held_out[:5])
    assert len(neuron_effects(studied, CompareConfig(most_neurons=12)).table) == 12
    found = neuron_effects(studied, CompareConfig(most_neurons=11))
    assert found.table.empty
    assert list(found.table)[:2] == ["layer", "neuron"]
    assert found.drops["zero"].shape == (0, 5)


@pytest.mark.slow
def test_with_too_many_heads_there_is_no_row(studied):
    n_heads = len(studied.heads)
    few, enough = (CompareConfig(most_heads=most) for most in (n_heads - 1, n_heads))
    for effects in (head_effects, head_position_effects, edge_effects):
        assert len(effects(studied, enough).table)
        found = effects(studied, few)
        assert found.table.empty
        assert found.drops["zero"].shape[0] == 0
        assert list(found.table) == list(effects(studied, enough).table)
    assert joint_effects(studied, few).empty
    assert list(joint_effects(studied, few)) == list(joint_effects(studied, enough))


def test_fewer_inputs_are_the_first_ones(studied):
    few = head_effects(studied, CompareConfig(head_answers=10 * len(studied.task.loss_positions)))
    assert few.drops["zero"].shape == (4, 10)
    np.testing.assert_allclose(few.drops["zero"], head_effects(studied, WHOLE).drops["zero"][:, :10], atol=1e-9)


def test_a_model_that_answers_with_numbers_has_no_probabilities(task):
    from rasplens.compile.rasp import Aggregate, Map, Select, indices, numerical, tokens

    earlier = Select(indices, indices, lambda key, query: key <= query)
    mean = numerical(Aggregate(earlier, numerical(Map(ord, tokens)))).named("mean")
    compiled = compile_program(mean, task.vocab, task.n_ctx, mask=task.visible)
    table = head_effects(as_studied_model(compiled, task, task.held_out[:5])).table
    assert table[["zero_probability", "zero_kl"]].isna().all().all()
    assert table["zero"].notna().all()


def test_a_program_that_gives_none_of_the_tasks_answers_has_nothing_to_lose(task):
    from rasplens.compile.rasp import Aggregate, Map, Select, indices, tokens

    back = Select(indices, indices, lambda key, query: key == query - 2)
    compiled = compile_program(
        Map(str.lower, Aggregate(back, tokens)).named("lower"), task.vocab, task.n_ctx, mask=task.visible
    )
    table = head_effects(as_studied_model(compiled, task, task.held_out[:5])).table
    assert (table[list(METHODS)] == 0).all().all()
    assert table[["zero_probability", "zero_kl"]].isna().all().all()


def test_edges_of_the_last_layer_count_each_alone(studied, model):
    """Against one forward pass for each edge."""
    table = edge_effects(studied, WHOLE).table.set_index(["layer", "query", "key"])
    late = table.loc[1]
    assert (late["zero"].abs() > 0).any()
    clean = studied.right().mean()
    for (query, key), row in late.iterrows():

        def zeroed(pattern, hook, query=query, key=key):
            pattern = pattern.clone()
            pattern[:, :, query, key] = 0
            total = pattern[:, :, query].sum(dim=-1, keepdim=True)
            pattern[:, :, query] = (pattern[:, :, query] / total).where(total > 1e-6, 0)  # else nothing is left
            return pattern

        answers = studied.edited_answers([("blocks.1.attn.hook_pattern", zeroed)])
        assert row["zero"] == pytest.approx(clean - (answers == studied.targets).mean(), abs=1e-9)


def test_a_model_that_is_very_sure_has_a_finite_divergence(model, studied, task):
    """A probability that underflows to zero was infinitely far from any other, which JSON cannot hold."""
    sure = Transformer(
        model.config, {**model.weights, "unembed.W_U": 1e4 * model.weights["unembed.W_U"]}, model.mask
    )
    table = head_effects(as_studied_model(sure, studied.task, studied.ids)).table
    assert np.isfinite(table.filter(like="_kl").to_numpy()).all()
    assert table["zero_kl"].max() > 745  # a number whose negative exponential is zero
