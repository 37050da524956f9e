"""The learned side as a bridge: TransformerLens's own model, and one around a language model's architecture."""

import numpy as np
import pytest
import torch
import transformers
from transformer_lens.model_bridge.sources import build_bridge_from_module

from rasplens.compare import as_subject, compare, pair, token_interface
from rasplens.compare.evidence.ablation.effects import (
    edge_effects,
    head_effects,
    head_position_effects,
    neuron_effects,
)
from rasplens.compare.evidence.interchange.accuracy import agreement, interchanges, swappable, swaps
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.models.pairing import untrained_control
from rasplens.compare.models.studied_model import pattern_point, z_point
from rasplens.compare.models.vocabulary import compiled_interface
from rasplens.model import Config, Transformer, causal_mask, to_bridge, weight_shapes

STEPS = 150
"""Of training: enough to be better than chance."""

PREFIX, FIRST = 1, 3
"""The id that stands before every input, and that of the first letter."""

EDITED = ("hook_resid_pre", "hook_resid_mid", "hook_resid_post", "attn.hook_pattern", "attn.hook_z")


def gpt2(n_ctx):
    """A small GPT-2 with random weights, as it comes out of its constructor: in training mode."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=2,
        n_head=2,
        n_embd=32,
        vocab_size=20,
        n_positions=n_ctx,
        bos_token_id=PREFIX,
        eos_token_id=PREFIX,
        attn_implementation="eager",
    )
    return transformers.GPT2LMHeadModel(config)


def bridged(model):
    return build_bridge_from_module(model, "GPT2LMHeadModel", hf_config=model.config)


@pytest.fixture(scope="module")
def native(induction):
    return induction.to_bridge()


@pytest.fixture(scope="module")
def words(task):
    """Every letter has an id in a larger vocabulary, and a token of the model's own stands before them."""
    return token_interface(task, {letter: FIRST + i for i, letter in enumerate(task.vocab)}, prefix=[PREFIX])


@pytest.fixture(scope="module")
def language(task, words):
    """A GPT-2, trained a little on the task."""
    model = gpt2(task.n_ctx + 1).eval()  # without dropout, also while it learns
    optimiser, rng = torch.optim.AdamW(model.parameters(), lr=3e-3), np.random.default_rng(0)
    places = [words.positions[position] for position in task.loss_positions]
    for _ in range(STEPS):
        ids = task.sample(rng, 64)
        logits = model(torch.as_tensor(words.tokens(ids))).logits[:, places]
        wanted = torch.as_tensor(words.columns[task.target(ids)])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten()).backward()
        optimiser.step()
    return bridged(model)


@pytest.fixture(scope="module", params=["native", "language"])
def bridge(request, native, language, words, induction, task):
    """Each of the two, with its words for the task."""
    return {"native": (native, compiled_interface(induction, task)), "language": (language, words)}[request.param]


@pytest.fixture(scope="module")
def subject(bridge, task):
    model, interface = bridge
    return as_subject(model, task, task.held_out[:40], interface)


def test_a_bridge_is_read_at_the_tasks_positions(subject, task):
    assert subject.heads == tuple((layer, head) for layer in range(2) for head in range(subject.model.cfg.n_heads))
    assert subject.pattern(1).shape == (40, subject.model.cfg.n_heads, task.n_ctx, task.n_ctx)
    assert subject.whole_gathered(0).shape[:3] == (40, task.n_ctx + 1, subject.model.cfg.n_heads)
    for point in subject.residual_points:
        assert subject.residual(point).shape == (40, task.n_ctx, subject.model.cfg.d_model)
    assert subject.right().mean() > 0.3
    assert [point.split("_")[-1] for point in subject.residual_points][:3] in (
        ["pre", "post", "post"],
        ["pre", "mid", "post"],
    )


@pytest.mark.parametrize("name", EDITED)
def test_edits_of_a_bridge_reach_the_logits(subject, name):
    for layer in range(2):
        point = f"blocks.{layer}.{name}"
        if point in subject.model.hook_dict:
            edited = subject.logits(subject.tokens, [(point, lambda value, hook: torch.zeros_like(value))])
            assert np.abs(edited - subject.clean_logits).max() > 1e-2, point
    assert subject.model.hook_dict[pattern_point(0)].fwd_hooks == []  # no edit stays behind


def test_what_is_taken_from_another_input_at_the_middle_of_a_block_is_all_that_comes_after(language, words, task):
    """The stream that passes by the MLP too: the answers are those of the other input."""
    subject = as_subject(language, task, task.held_out[:40], words)
    point = "blocks.1.hook_resid_mid"
    stream = torch.as_tensor(subject.cache([point])[point]).flip(0)
    edited = subject.logits(subject.tokens, [(point, lambda value, hook: stream)])
    np.testing.assert_allclose(edited, subject.clean_logits[::-1], atol=1e-5)


def test_without_layer_norm_the_middle_of_a_block_is_edited_alike(task):
    """A native bridge and our own model give the same logits after the same edit."""
    sizes = {"d_vocab": len(task.vocab), "d_vocab_out": len(task.outputs), "n_ctx": task.n_ctx}
    config = Config(n_layers=2, n_heads=2, d_model=8, d_head=4, d_mlp=16, **sizes)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in weight_shapes(config).items()}
    model = Transformer(config, weights, causal_mask(2, task.n_ctx))
    both = [as_subject(one, task, task.held_out[:20]) for one in (model, to_bridge(model))]
    for point in both[0].residual_points:
        edited = [one.logits(one.tokens, [(point, lambda value, hook: value.flip(0) / 2)]) for one in both]
        np.testing.assert_allclose(*edited, atol=1e-4)


def test_heads_edges_and_neurons_of_a_bridge_are_ablated(subject):
    for effects in (head_effects, head_position_effects, edge_effects, neuron_effects):
        table = effects(subject, 40).table
        assert np.isfinite(table.to_numpy(dtype=float)).all()
        if effects in (head_effects, edge_effects):
            assert (table["zero_kl"] > 1e-3).any()
    has_neurons = "blocks.0.mlp.hook_post" in subject.model.hook_dict
    assert len(table) == (2 * 4 * subject.model.cfg.d_model if has_neurons else 0)


def test_a_native_bridge_is_ablated_as_the_model_it_was_made_from(native, induction, task):
    ids = task.held_out[:40]
    ours = edge_effects(as_subject(induction, task, ids)).table
    theirs = edge_effects(as_subject(native, task, ids, compiled_interface(induction, task))).table
    np.testing.assert_allclose(theirs.to_numpy(dtype=float), ours.to_numpy(dtype=float), atol=1e-4)


def test_the_untrained_control_of_a_bridge_is_another_model(bridge, task):
    model, interface = bridge
    ids = task.held_out[:40]
    before = as_subject(model, task, ids, interface).clean_logits
    twin = untrained_control(model, 5)
    control = as_subject(twin, task, ids, interface)
    assert np.abs(control.clean_logits - before).max() > 0.1
    silenced = control.logits(control.tokens, [(z_point(1), lambda value, hook: torch.zeros_like(value))])
    assert np.abs(silenced - control.clean_logits).max() > 1e-4
    np.testing.assert_array_equal(as_subject(model, task, ids, interface).clean_logits, before)


def test_variables_are_interchanged_in_a_bridge(bridge, induction, task):
    model, interface = bridge
    pairing = pair(induction, model, task, n_inputs=60, seed=0, interface=interface)
    swapped = swaps(pairing, "previous", swappable(pairing, "previous"), seed=0)
    for point in pairing.learned.residual_points:
        whole = agreement(pairing.learned, swapped, point, None)
        assert np.isfinite(whole.changed).all()
    (one,) = interchanges(pairing, representations(pairing), representations(pairing, "untrained"), 0)
    assert one.variable == "previous"
    assert 0 <= one.accuracy.score <= 1


def test_a_native_bridge_of_a_compiled_program_implements_it(native, induction, task):
    interface = compiled_interface(induction, task)
    result = compare(induction, native, task=task, n_inputs=60, interface=interface)
    assert result.verdict.answer == "implements"
    for axis in result.axes:
        assert axis.score > 0.99, axis


def test_a_language_model_is_compared_along_every_axis(language, words, induction, task):
    result = compare(induction, language, task=task, n_inputs=60, interface=words)
    for axis in result.axes:
        assert 0 <= axis.low <= axis.score <= axis.high <= 1, axis
    assert result.accuracies["learned"].token > result.accuracies["untrained"].token
    assert set(result.tables["heads_learned"]["head"]) == {0, 1}


def test_a_vocabulary_of_its_own_needs_an_interface(language, task):
    with pytest.raises(ValueError, match=r"its d_vocab is 20, the task's 8.*token_interface"):
        as_subject(language, task, task.held_out[:10])


def test_a_model_in_training_mode_is_refused(task, words):
    model = bridged(gpt2(task.n_ctx + 1).train())
    with pytest.raises(ValueError, match="training mode: its dropout makes answers random"):
        as_subject(model, task, task.held_out[:10], words)
    assert as_subject(model.eval(), task, task.held_out[:10], words).n_inputs == 10


def test_a_model_in_half_precision_is_refused(task, words):
    model = bridged(gpt2(task.n_ctx + 1).eval().bfloat16())
    with pytest.raises(ValueError, match=r"the model is torch\.bfloat16 on cpu\. Call its float\(\)"):
        as_subject(model, task, task.held_out[:10], words)
