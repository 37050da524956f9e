"""Each method against exact patching, where it has to agree, and against the algorithm written out."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from rasplens.compare.discovery.methods import acdc as acdc_module
from rasplens.compare.discovery.methods import attribution
from rasplens.compare.discovery.methods.acdc import acdc
from rasplens.compare.discovery.methods.attribution import (
    attribution_of_nodes,
    attribution_of_nodes_ig,
    eap,
    eap_ig_activations,
    eap_ig_inputs,
)
from rasplens.compare.discovery.methods.catalogue import METHODS, methods_under, own_method, scores_of
from rasplens.compare.discovery.methods.patching import edges_by_sender, exact_edges, exact_nodes
from rasplens.compare.discovery.methods.transformer_lens import eap_transformer_lens
from rasplens.compare.discovery.problem import discovery_problem
from rasplens.compare.discovery.protocol import Protocol
from rasplens.errors import RaspLensError
from rasplens.learned import untrained_like
from rasplens.model import Config, HookedModel, causal_mask


@pytest.fixture(scope="module")
def asked(random_model, task):
    return discovery_problem(random_model, task, Protocol(n_pairs=8, metric="logit_difference"))


@pytest.mark.slow
@pytest.mark.parametrize("method", [eap, eap_ig_inputs, eap_ig_activations])
def test_attribution_of_edges_to_the_logits_is_exact_where_damage_is_linear_in_them(asked, method):
    to_logits = np.array([edge.endswith("->logits") for edge in asked.graph.edges])
    exact, found = exact_edges(asked), method(asked)
    np.testing.assert_allclose(found[to_logits], exact[to_logits], atol=1e-5)
    assert np.abs(found[~to_logits] - exact[~to_logits]).max() > 1e-4  # elsewhere it is an approximation


@pytest.mark.parametrize("metric", ["kl", "l2"])
def test_where_damage_is_least_at_the_clean_input_eap_takes_the_logit_difference(
    asked, random_model, task, metric
):
    """Its own gradient there is zero. Once, so were all scores by the squared distance."""
    found = eap(discovery_problem(random_model, task, Protocol(n_pairs=8, metric=metric)))
    np.testing.assert_allclose(found, eap(asked), atol=1e-6)
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize("method", [eap, eap_ig_inputs, eap_ig_activations])
def test_attribution_of_other_edges_goes_with_their_effect(asked, method):
    assert np.corrcoef(exact_edges(asked), method(asked))[0, 1] > 0.9


@pytest.mark.parametrize("method", [attribution_of_nodes, attribution_of_nodes_ig])
def test_attribution_of_a_node_is_exact_where_damage_is_linear_in_it(asked, method):
    """What the last MLP writes goes to the logits alone; the lesser of two effects is its own there."""
    found, exact, edges = method(asked), exact_nodes(asked), asked.graph.edges
    assert found[edges.index("L1 MLP->logits")] == pytest.approx(exact[edges.index("L1 MLP->logits")], abs=1e-5)
    assert np.corrcoef(exact, found)[0, 1] > 0.75
    assert np.abs(found - exact).max() > 1e-4


def test_attribution_of_a_node_is_the_gradient_at_what_it_writes(random_model, task):
    asked = discovery_problem(random_model, task, Protocol(n_pairs=8, metric="logit_difference"))
    hooked, places, point = HookedModel(random_model), list(asked.places), "blocks.0.hook_mlp_out"
    tokens, others = torch.as_tensor(asked.tokens), torch.as_tensor(asked.others)
    kept = {}

    def keep(value, hook):
        kept["clean"] = value.detach().requires_grad_()
        return kept["clean"]

    logits = hooked.run_with_hooks(tokens, fwd_hooks=[(point, keep)])[:, places]
    right, wrong = (torch.as_tensor(codes)[..., None] for codes in (asked.right, asked.wrong))
    differences = logits.gather(-1, wrong) - logits.gather(-1, right)
    counts = torch.as_tensor(asked.counts)
    ((differences[..., 0] * counts).sum(-1) / counts.sum(-1)).mean().backward()
    change = hooked.run_with_cache(others)[1][point] - kept["clean"]
    effect = float((change * kept["clean"].grad).sum().detach())
    found = attribution_of_nodes(asked)
    own = [score for edge, score in zip(asked.graph.edges, found, strict=True) if edge == "L0 MLP->logits"]
    assert own == pytest.approx([effect], abs=1e-6)
    assert abs(effect) > 1e-4


@pytest.mark.parametrize(
    "metric", ["kl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("loss", "logit_difference", "l2"))]
)
def test_transformer_lens_takes_the_gradient_at_the_other_input(random_model, task, metric):
    asked = discovery_problem(random_model, task, Protocol(n_pairs=3, metric=metric))
    found = eap_transformer_lens(asked)
    np.testing.assert_allclose(found, attribution._attributed(asked, [1.0]), atol=1e-6)
    assert np.abs(found - eap(asked)).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LN", "none"])
def test_transformer_lens_is_asked_about_models_without_mlps_as_well(task, kind):
    config = Config(
        n_layers=2, n_heads=2, d_model=12, d_head=6, n_ctx=5, d_vocab=3, d_vocab_out=task.n_logits,
        normalization=kind,
    )  # fmt: skip
    asked = discovery_problem(untrained_like(config, causal_mask(2, 5), 0), task, Protocol(n_pairs=3))
    np.testing.assert_allclose(eap_transformer_lens(asked), attribution._attributed(asked, [1.0]), atol=1e-6)


def test_transformer_lens_attributes_to_other_inputs_alone(case):
    for ablation in ("zero", "mean"):
        protocol = Protocol(ablation=ablation, n_pairs=2)
        assert set(METHODS) - set(methods_under(protocol)) == {"eap-transformer-lens"}
        with pytest.raises(RaspLensError, match=f"resample.*{ablation!r}"):
            eap_transformer_lens(case.problem(protocol))
    assert methods_under(Protocol()) == METHODS


@pytest.mark.slow
def test_attributions_on_the_whole_way_add_up(random_model, task):
    asked = discovery_problem(random_model, task, Protocol(n_pairs=4, points=20))
    graph, nothing = asked.graph, np.zeros(len(asked.graph.edges))
    for method, ways in (
        (eap_ig_inputs, graph.from_embeddings[None]),
        (eap_ig_activations, edges_by_sender(graph)),
    ):
        none, *ablated = asked.damages(np.stack([nothing, *ways]).astype(np.float32)).mean(axis=1)
        np.testing.assert_allclose(ways @ method(asked), np.array(ablated) - none, atol=0.02 * max(ablated))


@pytest.mark.slow
@pytest.mark.parametrize("method", [eap_ig_inputs, eap_ig_activations])
def test_integrated_gradients_say_where_too_few_points_miss_what_ablation_does(case, method):
    """Attention is nearly hard in a compiled model: one point in the middle of the way says little of it."""
    with pytest.warns(UserWarning, match=r"points=1\b.*Protocol\(points=...\)"):
        few = method(case.problem(Protocol(n_pairs=16, points=1)))
    asked = case.problem(Protocol(n_pairs=16, points=400))
    many, own = method(asked), asked.graph.mask_of(case.varying)
    assert np.abs(many[own]).min() > 1e-3 * np.abs(many).max()
    assert np.abs(few - many).max() > 0.05 * np.abs(many).max()


@pytest.mark.parametrize("name", ["weights", "random"])
def test_controls_look_at_no_input(case, name):
    first, second = (case.problem(Protocol(n_pairs=n, metric=metric)) for n, metric in ((4, "kl"), (8, "l2")))
    np.testing.assert_array_equal(METHODS[name](first), METHODS[name](second))


def test_weights_that_have_no_direction_in_common_have_no_product(case):
    """Of a compiled model: edges that the program has not, but for the decoy's, which reads as its model does."""
    asked = case.problem(Protocol(n_pairs=4))
    scores = METHODS["weights"](asked)
    assert (scores[asked.graph.mask_of(case.edges)] > 1e-3).all()
    assert (scores < 1e-9).any()
    assert scores.max() <= 1.0
    (decoy,) = case.decoys
    assert scores[asked.graph.edges.index(f"embed->{decoy}.v")] == scores[asked.graph.edges.index("embed->L0H0.v")]


@pytest.mark.slow
def test_acdc_is_the_algorithm(random_model, task, monkeypatch):
    monkeypatch.setattr(acdc_module, "THRESHOLDS", 3)
    monkeypatch.setattr(acdc_module, "SMALLEST", 1e-3)
    asked = discovery_problem(random_model, task, Protocol(n_pairs=8))
    found = acdc(asked)
    nothing, everything = (float(asked.damage(asked.matrix(np.full(len(found), share)))) for share in (0.0, 1.0))
    kept = np.zeros((3, len(found)), dtype=bool)
    thresholds = (everything - nothing) * np.geomspace(acdc_module.SMALLEST, 1, 3)
    for row, threshold in enumerate(thresholds):
        patched, damage = np.zeros(len(found)), nothing
        for edge in reversed(range(len(found))):
            tried = patched.copy()
            tried[edge] = 1
            after = float(asked.damage(asked.matrix(tried)))
            if abs(after - damage) < threshold:
                patched, damage = tried, after
            else:
                kept[row, edge] = True
    expected = (kept * thresholds[:, None]).max(axis=0)
    assert (np.isclose(found, expected, rtol=1e-3)).mean() > 0.97  # a threshold may fall on rounding
    assert (expected > 0).sum() > 0


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("exact", "random") else pytest.mark.slow) for name in METHODS],
)
def test_on_a_compiled_model_all_but_chance_find_the_circuit(case, name):
    asked = case.problem(Protocol(n_pairs=32))
    scores = METHODS[name](asked)
    auroc = roc_auc_score(asked.graph.mask_of(case.varying), np.abs(scores))
    assert auroc == 1.0 or name not in ("exact", "acdc", "edge-pruning")
    assert (auroc > 0.85) == (name not in ("random", "relp"))  # relevance does not pass through queries and keys


def test_of_two_nodes_the_lesser_effect_is_an_edge_s(case):
    asked = case.problem(Protocol(n_pairs=16))
    scores = dict(zip(asked.graph.edges, exact_nodes(asked), strict=True))
    assert scores["embed->L0H0.q"] == scores["embed->L0H0.v"]  # nodes know no letters
    assert scores["L0H0->L1H0.k"] > 0.01
    (decoy,) = case.decoys
    assert abs(scores[f"embed->{decoy}.v"]) < 1e-5


def test_a_method_of_one_s_own_can_run_the_model_on_what_it_reads(case):
    """Here behind a BOS: by hooks in torch, a head's effect is that of all edges from it."""
    asked = case.problem(Protocol(n_pairs=6, metric="l2"))
    assert asked.tokens.shape[1] == case.task.n_ctx + 1

    def by_hooks(model, problem):
        hooked, places = HookedModel(model), list(problem.places)
        tokens, others = torch.as_tensor(problem.tokens), torch.as_tensor(problem.others)
        (_, cache), point = hooked.run_with_cache(others), "blocks.0.attn.hook_z"

        def patch(z, hook):
            z[:, :, 0] = cache[point][:, :, 0]
            return z

        moved = hooked.run_with_hooks(tokens, fwd_hooks=[(point, patch)]) - hooked(tokens)
        return {"L0H0->logits": float((moved[:, places].detach() ** 2).sum(-1).mean())}

    found = own_method(by_hooks)(asked)[asked.graph.edges.index("L0H0->logits")]
    from_it = np.array([edge.startswith("L0H0->") for edge in asked.graph.edges])
    assert found == pytest.approx(asked.damages(from_it[None].astype(np.float32)).mean(), rel=1e-4)
    assert found > 0.01


def test_a_method_of_one_s_own_gives_scores_by_edge(case):
    asked = case.problem(Protocol(n_pairs=4))
    method = own_method(lambda model, problem: {"embed->logits": model.config.n_layers})
    found = method(asked)
    assert found[asked.graph.edges.index("embed->logits")] == 2
    assert np.isnan(found).sum() == len(found) - 1
    with pytest.raises(RaspLensError, match="no edge 'nowhere'"):
        scores_of(asked, {"nowhere": 1.0})
    with pytest.raises(RaspLensError, match=r"number.*large"):
        scores_of(asked, {"embed->logits": "large"})
    with pytest.raises(RaspLensError, match=r"finite.*embed->logits"):
        scores_of(asked, {"embed->logits": float("nan")})
