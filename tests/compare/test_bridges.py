"""The learned side as a bridge: TransformerLens's own model, and one around a language model's architecture."""

import numpy as np
import pytest
import torch
import transformers
from known_interchanges import scored_pairs
from transformer_lens.model_bridge.sources import build_bridge_from_module

from rasplens.compare import CompareConfig, as_studied_model, compare, explain, study_of, token_vocabulary
from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched, patched_logits
from rasplens.compare.claims.edges.program_edges import between_positions
from rasplens.compare.claims.edges.questions import GatheredEdges
from rasplens.compare.claims.effects.passes import with_edges
from rasplens.compare.claims.interchange.accuracy import interchanges
from rasplens.compare.claims.interchange.pairs import draw_pairs
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.evidence.ablation.effects import head_effects, head_position_effects, neuron_effects
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.pairing.control import untrained_control
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import rasp
from rasplens.errors import RaspLensError
from rasplens.model import Config, Transformer, causal_mask, to_bridge, weight_shapes
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import LETTERS
from rasplens.tasks import compile_for, task_from_program

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
def vocabulary(task):
    """Every letter has an id in a larger vocabulary, and a token of the model's own stands before them."""
    return token_vocabulary(task, {letter: FIRST + i for i, letter in enumerate(task.vocab)}, prefix=[PREFIX])


@pytest.fixture(scope="module")
def language(task, vocabulary):
    """A GPT-2, trained a little on the task."""
    model = gpt2(task.n_ctx + 1).eval()  # without dropout, also while it learns
    optimiser, rng = torch.optim.AdamW(model.parameters(), lr=3e-3), np.random.default_rng(0)
    places = [vocabulary.positions[position] for position in task.loss_positions]
    for _ in range(STEPS):
        ids = task.sample(rng, 64)
        logits = model(torch.as_tensor(vocabulary.tokens(ids))).logits[:, places]
        wanted = torch.as_tensor(vocabulary.columns[task.target(ids)])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten()).backward()
        optimiser.step()
    return bridged(model)


@pytest.fixture(scope="module", params=["native", "language"])
def bridge(request, native, language, vocabulary, induction, task):
    """Each of the two, with its vocabulary for the task."""
    return {"native": (native, vocabulary_of(induction, task)), "language": (language, vocabulary)}[request.param]


@pytest.fixture(scope="module")
def studied(bridge, task):
    model, vocabulary = bridge
    return as_studied_model(model, task, task.held_out[:40], vocabulary)


def test_a_bridge_is_read_at_the_tasks_positions(studied, task):
    assert studied.heads == tuple((layer, head) for layer in range(2) for head in range(studied.model.cfg.n_heads))
    assert studied.pattern(1).shape == (40, studied.model.cfg.n_heads, task.n_ctx, task.n_ctx)
    assert studied.whole_gathered(0).shape[:3] == (40, task.n_ctx + 1, studied.model.cfg.n_heads)
    for point in studied.residual_points:
        assert studied.residual(point).shape == (40, task.n_ctx, studied.model.cfg.d_model)
    assert studied.right().mean() > 0.3
    assert [point.split("_")[-1] for point in studied.residual_points][:3] in (
        ["pre", "post", "post"],
        ["pre", "mid", "post"],
    )


@pytest.mark.parametrize("name", EDITED)
def test_edits_of_a_bridge_reach_the_logits(studied, name):
    for layer in range(2):
        point = f"blocks.{layer}.{name}"
        if point in studied.model.hook_dict:
            edited = studied.logits([(point, lambda value, hook: torch.zeros_like(value))])
            assert np.abs(edited - studied.clean_logits).max() > 1e-2, point
    assert studied.model.hook_dict[act_name("pattern", 0)].fwd_hooks == []  # no edit stays behind


def test_what_is_taken_from_another_input_at_the_middle_of_a_block_is_all_that_comes_after(
    language, vocabulary, task
):
    """The stream that passes by the MLP too: the answers are those of the other input."""
    studied = as_studied_model(language, task, task.held_out[:40], vocabulary)
    point = "blocks.1.hook_resid_mid"
    stream = torch.as_tensor(studied.cache([point])[point]).flip(0)
    edited = studied.logits([(point, lambda value, hook: stream)])
    np.testing.assert_allclose(edited, studied.clean_logits[::-1], atol=1e-5)


def test_without_layer_norm_the_middle_of_a_block_is_edited_alike(task):
    """A native bridge and our own model give the same logits after the same edit."""
    sizes = {"d_vocab": len(task.vocab), "d_vocab_out": len(task.outputs), "n_ctx": task.n_ctx}
    config = Config(n_layers=2, n_heads=2, d_model=8, d_head=4, d_mlp=16, **sizes)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in weight_shapes(config).items()}
    model = Transformer(config, weights, causal_mask(2, task.n_ctx))
    both = [as_studied_model(one, task, task.held_out[:20]) for one in (model, to_bridge(model))]
    for point in both[0].residual_points:
        edited = [one.logits([(point, lambda value, hook: value.flip(0) / 2)]) for one in both]
        np.testing.assert_allclose(*edited, atol=1e-4)


@pytest.mark.slow
def test_heads_edges_and_neurons_of_a_bridge_are_ablated(studied):
    few = CompareConfig(head_answers=40, edge_answers=40, neuron_answers=40)
    for effects in (head_effects, head_position_effects, edge_effects, neuron_effects):
        table = effects(studied, few).table
        assert np.isfinite(table.to_numpy(dtype=float)).all()
        if effects in (head_effects, edge_effects):
            assert (table["zero_kl"] > 1e-3).any()
    has_neurons = "blocks.0.mlp.hook_post" in studied.model.hook_dict
    assert len(table) == (2 * 4 * studied.model.cfg.d_model if has_neurons else 0)


def test_a_native_bridge_is_ablated_as_the_model_it_was_made_from(native, induction, task):
    ids = task.held_out[:40]
    ours = edge_effects(as_studied_model(induction, task, ids)).table
    theirs = edge_effects(as_studied_model(native, task, ids, vocabulary_of(induction, task))).table
    np.testing.assert_allclose(theirs.to_numpy(dtype=float), ours.to_numpy(dtype=float), atol=1e-4)


def test_the_untrained_control_of_a_bridge_is_another_model(bridge, task):
    model, vocabulary = bridge
    ids = task.held_out[:40]
    before = as_studied_model(model, task, ids, vocabulary).clean_logits
    twin = untrained_control(model, 5)
    control = as_studied_model(twin, task, ids, vocabulary)
    assert np.abs(control.clean_logits - before).max() > 0.1
    ablated = control.logits([(act_name("z", 1), lambda value, hook: torch.zeros_like(value))])
    assert np.abs(ablated - control.clean_logits).max() > 1e-4
    np.testing.assert_array_equal(as_studied_model(model, task, ids, vocabulary).clean_logits, before)


def test_variables_are_interchanged_in_a_bridge(native, induction, task, brief):
    study = study_of(induction, native, task, brief, seed=0, vocabulary=vocabulary_of(induction, task))
    pairs = scored_pairs(study, "previous")
    for point in study.learned.residual_points:
        whole = agreement(study.learned, pairs, point, None)
        assert np.isfinite(whole.iia).all()
    (one,) = interchanges(
        study, draw_pairs(study, study.variables, 0), representations(study), ReferenceSites(study, 0), 0
    )
    assert one.variable == "previous"
    assert one.accuracy.score == 1
    assert one.untrained < 0.5


@pytest.mark.slow
def test_a_native_bridge_of_a_compiled_program_implements_it(native, induction, task, brief):
    vocabulary = vocabulary_of(induction, task)
    result = compare(induction, native, task=task, config=brief, vocabulary=vocabulary)
    assert result.verdict.answer == "implements"
    for axis in result.axes:
        assert axis.score > 0.99, axis


@pytest.mark.slow
def test_a_language_model_is_compared_along_every_axis(language, vocabulary, induction, task, brief):
    result = compare(induction, language, task=task, config=brief, vocabulary=vocabulary)
    for axis in result.axes:
        assert axis.name == "interchange" or 0 <= axis.low <= axis.score <= axis.high <= 1, axis
    assert not result.axis("interchange").has_score  # it answers nothing as the program does
    assert result.accuracies["learned"].token > result.accuracies["untrained"].token
    assert set(result.tables["heads_learned"]["head"]) == {0, 1}


def test_the_edges_of_a_language_model_can_be_patched(language, vocabulary, task):
    """Its config leaves the scale of its scores to the architecture."""
    assert language.cfg.attn_scale < 0
    assert why_not_patchable(as_studied_model(language, task, task.held_out[:2], vocabulary)) == ""


@pytest.mark.parametrize("part", ["values", "keys", "queries"])
def test_all_edges_of_a_language_model_patched_are_its_projections_patched(language, vocabulary, task, part):
    """A bridge has other names for its hook points than those that they are asked for by."""
    check_all_edges(as_studied_model(language, task, task.held_out[:40], vocabulary), task, part)


def check_all_edges(studied, task, part):
    """All edges patched are the projections patched."""
    base, source = np.arange(40), (np.arange(40) + 7) % 40
    points = [act_name(LETTERS[part], layer) for layer in range(studied.n_layers)]
    theirs = {point: torch.as_tensor(studied.whole(point)[source]) for point in points}
    hooks = [(point, lambda value, hook, taken=theirs[point]: taken) for point in points]
    own = list(studied.vocabulary.positions)
    for point, taken in theirs.items():  # what stands before the task's positions is not patched
        before = torch.as_tensor(studied.whole(point)[base])
        taken[:, [i for i in range(taken.shape[1]) if i not in own]] = before[:, [0]]
    expected = studied.codes(studied.logits(hooks, base), base)
    everywhere = np.ones((40, task.n_ctx, task.n_ctx), dtype=bool)
    answers, _ = patched(studied, EdgePatch(base, source, everywhere, part))
    np.testing.assert_array_equal(answers, expected)
    assert (answers != studied.answers()).any()  # keys and queries of so small a model change few


def test_without_its_edges_a_language_model_answers_otherwise(language, vocabulary, task):
    studied = as_studied_model(language, task, task.held_out[:40], vocabulary)
    edges = np.broadcast_to(between_positions(task), (40, task.n_ctx, task.n_ctx))
    answers, scores = patched(studied, EdgePatch(np.arange(40), np.arange(40), edges, "attention"))
    assert (answers != studied.answers()).mean() > 0.05
    assert np.isneginf(
        scores[0][:, :, 1:, 1:][np.broadcast_to(edges[:, None], scores[0][:, :, 1:, 1:].shape)]
    ).all()


def of_family(name, task, vocabulary, **options):
    """A small model of another family, whose attention matters."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=20,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        attn_implementation="eager",
        **options,
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5 if weight.ndim > 1 else 1)
    bridge = build_bridge_from_module(model, f"{name}ForCausalLM", hf_config=config)
    return as_studied_model(bridge, task, task.held_out[:40], vocabulary)


FAMILIES = {"Llama": 2, "Mistral": 1, "Qwen2": 4}
"""By family, how many keys and values the four heads have."""


@pytest.mark.parametrize("part", ["values", "keys", "queries"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rotary_positions_and_shared_keys_are_patched_as_projections(task, vocabulary, family, part):
    studied = of_family(family, task, vocabulary, num_key_value_heads=FAMILIES[family])
    assert why_not_patchable(studied) == ""
    check_all_edges(studied, task, part)


@pytest.mark.parametrize("part", ["values", "keys", "queries", "attention"])
def test_sources_that_run_beside_their_bases_patch_the_same(task, vocabulary, part):
    studied = of_family("Llama", task, vocabulary, num_key_value_heads=2)
    edges = np.random.default_rng(0).random((40, task.n_ctx, task.n_ctx)) < 0.5
    patch = EdgePatch(np.arange(40), (np.arange(40) + 7) % 40, edges & between_positions(task), part)
    found = with_edges(studied, patch)
    np.testing.assert_allclose(found, patched_logits(studied, patch), atol=1e-3, rtol=1e-3)
    assert np.abs(found - studied.clean_logits).max() > 0.1


def test_of_shared_keys_the_copy_of_one_head_is_patched(task, vocabulary):
    """The negative control: patched where they are shared, keys change the scores of both heads."""
    studied = of_family("Llama", task, vocabulary, num_key_value_heads=2)
    everywhere = np.ones((40, task.n_ctx, task.n_ctx), dtype=bool)
    patch = EdgePatch(np.arange(40), (np.arange(40) + 7) % 40, everywhere, "keys")
    moved = [
        np.abs(patched(studied, patch, heads=heads)[1][0] - studied.whole(act_name("attn_scores", 0))).max(
            (0, 2, 3)
        )
        for heads in (None, [(0, 1)])
    ]
    assert [list(one > 1e-3) for one in moved] == [[True] * 4, [False, True, False, False]]


def test_a_hook_point_that_nothing_passes_is_said(task, vocabulary):
    studied = of_family("GPTNeoX", task, vocabulary)
    assert why_not_patchable(studied) == "nothing passes a hook point of its queries, keys, values or scores"
    with pytest.raises(RaspLensError, match=r"'blocks\.0\.attn\.hook_rot_q'"):
        studied.cache(["blocks.0.attn.hook_rot_q"])


def test_a_vocabulary_of_its_own_needs_a_vocabulary(language, task):
    with pytest.raises(ValueError, match=r"d_vocab is 20\b.* 8\b.*token_vocabulary"):
        as_studied_model(language, task, task.held_out[:10])


def test_a_model_in_training_mode_is_refused(task, vocabulary):
    model = bridged(gpt2(task.n_ctx + 1).train())
    with pytest.raises(ValueError, match=r"dropout.*eval\(\)"):
        as_studied_model(model, task, task.held_out[:10], vocabulary)
    assert as_studied_model(model.eval(), task, task.held_out[:10], vocabulary).n_inputs == 10


def test_a_model_in_half_precision_is_refused(task, vocabulary):
    model = bridged(gpt2(task.n_ctx + 1).eval().bfloat16())
    with pytest.raises(ValueError, match=r"torch\.bfloat16.*float\(\)"):
        as_studied_model(model, task, task.held_out[:10], vocabulary)


@pytest.mark.slow
def test_a_program_that_a_model_with_shared_keys_learned_is_recognised_and_found():
    """Trained here: no compiled model has rotary positions, or keys that two heads share."""

    def back(n):
        edges = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - n)
        return rasp.Aggregate(edges, rasp.tokens, default="a").named(f"back_{n}")

    task = task_from_program(back(1), "abcd", 6, causal=True)
    vocabulary = token_vocabulary(task, {letter: FIRST + i for i, letter in enumerate(task.vocab)}, prefix=[0])
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=12,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_implementation="eager",
    )
    model, rng = transformers.LlamaForCausalLM(config), np.random.default_rng(0)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(600):
        ids = task.sample(rng, 128)
        logits = model(torch.as_tensor(vocabulary.tokens(ids))).logits[:, list(vocabulary.positions)]
        loss = torch.nn.functional.cross_entropy(logits.mT, torch.as_tensor(vocabulary.columns[task.target(ids)]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    bridge = build_bridge_from_module(model.eval(), "LlamaForCausalLM", hf_config=config)
    asked = {"task": task, "vocabulary": vocabulary}
    own, other = (compare(compile_for(task, back(n)), bridge, config="quick", **asked).verdict for n in (1, 2))
    assert (own.answer, other.answer) == ("implements", "does not")
    (gathered,) = [claim for claim in own.all_claims if isinstance(claim.subject, GatheredEdges)]
    assert gathered.status == "holds"
    assert gathered.score > 0.9 > gathered.control
    parts = [compare(compile_for(task, back(n)), bridge, config="quick", as_part=True, **asked) for n in (1, 2)]
    assert [one.verdict.answer for one in parts] == ["implements", "does not"]
    heads = parts[0].tables["part_heads"]  # they share the work: alone none turns an answer
    assert len(heads) >= 2
    assert 0.1 < heads["effect"].max() < 0.5
    assert "k == q - 1" in explain(bridge, **asked).programs[0].source
