"""Ablations of models whose every edge is known."""

import numpy as np
import pytest

from rasplens.compare.ablation import WAYS, edge_effects, head_effects
from rasplens.compare.pairing import as_subject
from rasplens.compile import compile_program
from rasplens.tasks import get_task


def test_the_only_head_is_worth_everything(offset, task):
    effects = head_effects(as_subject(offset, task, task.held_out[:100]))
    assert effects[["layer", "head"]].to_numpy().tolist() == [[0, 0]]
    assert effects["zero"].item() == 1.0
    assert effects["mean"].item() > 0.6  # the mean over inputs sometimes favours the right letter


def test_each_edge_of_a_head_by_position_is_worth_its_own_answer(offset, task):
    effects = edge_effects(as_subject(offset, task, task.held_out[:100]))
    edges = [(row.layer, row.query, row.key) for row in effects.itertuples()]
    assert edges == [(0, query, query - 2) for query in task.loss_positions]
    np.testing.assert_allclose(effects["zero"], 1 / len(task.loss_positions))
    np.testing.assert_allclose(effects["mean"], 0, atol=1e-9)  # the attention is the same on every input
    np.testing.assert_allclose(effects["attention"], 1, atol=1e-6)


def test_an_edge_that_matters_on_some_inputs_shows_it_in_both_ways(induction, task):
    few_letters = task.draw(np.random.default_rng(0), 200) % 3  # so that blocks repeat letters
    effects = edge_effects(as_subject(induction, task, few_letters))
    second = effects[effects["layer"] == 1]
    assert ((second["attention"] > 0) & (second["attention"] < 1)).any()
    assert (second["mean"] > 0.01).any()
    assert (second["zero"] > 0.01).any()


def test_edges_of_rows_that_reach_no_answer_are_left_out():
    task = get_task("compression", n_digits=6)
    compiled = compile_program(task.programs["slots"], task.vocab, task.n_ctx, mask=task.visible)
    effects = edge_effects(as_subject(compiled, task, task.held_out))
    edges = {(row.layer, row.query, row.key): row.zero for row in effects.itertuples()}
    assert edges == pytest.approx({(0, 2, 0): 0.5, (0, 2, 1): 0.5, (1, 3, 2): 0.5, (1, 4, 2): 0.5})


def test_batching_edges_changes_nothing(noise, task, monkeypatch):
    from rasplens.compare import ablation

    subject = as_subject(noise, task, task.held_out[:80])
    together = edge_effects(subject)
    monkeypatch.setattr(ablation, "_BATCH", 1)
    alone = edge_effects(subject)
    np.testing.assert_allclose(together[list(WAYS)], alone[list(WAYS)], atol=1e-6)


def test_zero_ablation_of_an_edge_renormalises_the_row(noise, task):
    """By hand: the pattern without the key, divided by what is left."""
    import torch

    subject = as_subject(noise, task, task.held_out[:40])
    layer, query, key = 1, 5, 2

    def without(pattern, hook):
        pattern = pattern.clone()
        row = pattern[:, :, query].clone()
        row[..., key] = 0
        pattern[:, :, query] = row / row.sum(-1, keepdim=True)
        return pattern

    with torch.no_grad():
        logits = subject.logits(subject.tokens, [(f"blocks.{layer}.attn.hook_pattern", without)])
    lost = float(subject.right().mean()) - float((subject.read_answers(logits) == subject.targets).mean())
    effects = edge_effects(subject).set_index(["layer", "query", "key"])
    assert effects.loc[(layer, query, key), "zero"] == pytest.approx(lost)
