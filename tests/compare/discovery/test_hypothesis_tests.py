from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from rasplens.compare.discovery.cases import compiled_case
from rasplens.compare.discovery.hypothesis_tests import (
    circuit_tests,
    equivalence,
    holm,
    independence,
    minimality,
    random_circuits,
    random_paths,
)
from rasplens.compare.discovery.protocol import Protocol
from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="module")
def asked(case):
    return case.problem(Protocol(metric="logit_difference"))


def holding(asked, circuit, **options):
    return {one.name: one.holds for one in circuit_tests(asked, circuit, **options)}


@pytest.mark.slow
def test_the_true_circuit_passes_and_a_random_one_fails(asked, case):
    found = circuit_tests(asked, case.varying)
    assert all(one.holds for one in found), found
    minimal = next(one for one in found if one.name == "minimality")
    assert set(minimal.edges) == case.varying
    random = np.array(asked.graph.edges)[random_circuits(asked.graph, len(case.varying), 1, 5)[0]]
    failed = holding(asked, random.tolist(), n_random=199)
    assert not failed["equivalence"]
    assert not failed["minimality"]
    assert not failed["sufficiency"]


@pytest.mark.slow
def test_a_circuit_of_many_edges_can_pass_all_corrections():
    task = task_from_program(programs.sort(), (1, 2, 3), 4)
    case = compiled_case(compile_for(task), task)
    found = circuit_tests(case.problem(Protocol(metric="logit_difference")), case.varying)
    assert len(case.varying) == 10
    assert all(one.holds for one in found), found


@pytest.mark.slow
def test_a_circuit_with_an_edge_too_many_is_not_minimal_and_else_the_same(asked, case):
    (decoy,) = case.decoys
    found = circuit_tests(asked, [*case.varying, f"embed->{decoy}.v"])
    assert {one.name for one in found if not one.holds} == {"minimality"}
    minimal = next(one for one in found if one.name == "minimality")
    assert [edge for edge, p in minimal.edges.items() if p > 0.05] == [f"embed->{decoy}.v"]


@pytest.mark.slow
def test_a_circuit_without_one_of_its_edges_is_not_equivalent(case):
    """Of three tokens, another input's is often the same by chance: so there are more inputs than elsewhere."""
    many = case.problem(Protocol(metric="logit_difference", n_pairs=256))
    assert equivalence(many, many.graph.mask_of(case.varying)) > 0.5
    for edge in case.varying:
        assert equivalence(many, many.graph.mask_of(case.varying - {edge})) < 0.01


def test_independence_sees_what_is_left_outside(asked, case):
    nothing = asked.graph.mask_of(["embed->L0H0.q"])
    assert independence(asked, nothing, 199, 0) < 0.01
    assert independence(asked, asked.graph.mask_of(case.varying), 199, 0) > 0.01


def test_independence_sees_what_is_left_outside_where_most_answers_are_the_same():
    """Read at the last position alone: nine pairs of answers of ten are. Once, that passed as independent."""
    task = task_from_program(programs.detect_pattern("ab"), "abc", 5, causal=True)
    last = replace(task, loss_positions=(4,), target=lambda ids: task.target(ids)[:, 4:])
    case = compiled_case(compile_for(last), last)
    asked = case.problem(Protocol(metric="logit_difference"))
    (decoy,) = case.decoys
    idle = asked.graph.mask_of([f"embed->{decoy}.q"])
    answers = asked.answers((~idle)[None].astype(np.float32))[0, :, 0]
    assert np.median(pdist(answers)) < 1e-4
    assert independence(asked, idle, 199, 0) < 0.01
    assert independence(asked, asked.graph.mask_of(case.varying), 199, 0) > 0.5


def test_random_paths_of_a_circuit_stay_in_it(asked, case):
    graph = asked.graph
    own = graph.mask_of(case.varying)
    paths = random_paths(graph, 50, 0, own)
    assert not (paths & ~own).any()
    assert (paths & graph.into_logits).any(axis=1).all()
    assert (paths & graph.from_embeddings).any(axis=1).all()
    assert len(np.unique(paths, axis=0)) > 1
    assert (random_paths(graph, 50, 0) & ~own).any()


def test_random_paths_go_from_an_embedding_to_the_logits(asked):
    graph = asked.graph
    found = random_paths(graph, 50, 0)
    assert len(np.unique(found, axis=0)) > 5
    for path in found:
        edges = graph.pairs[path]
        assert graph.from_embeddings[path].sum() == graph.into_logits[path].sum() == 1
        into = [graph.node_of(graph.receivers[r]) for r, _ in edges]
        out_of = [graph.senders[s] for _, s in edges]
        assert sorted(set(into) - {"logits"}) == sorted(set(out_of) - {"embed", "pos_embed"})


def test_each_edge_has_a_p_of_its_own_and_the_seed_is_that_of_all_that_is_random(asked, case):
    circuit = asked.graph.mask_of(case.varying)
    paths = random_paths(asked.graph, 99, 0)
    found = minimality(asked, circuit, paths, 0)
    assert found == minimality(asked, circuit, paths, 0)
    assert set(found) == case.varying
    assert max(found.values()) == pytest.approx(0.01, abs=0.005)
    (decoy,) = case.decoys
    wide = asked.graph.mask_of([*case.varying, f"embed->{decoy}.v"])
    assert minimality(asked, wide, paths, 0)[f"embed->{decoy}.v"] == 1.0


def test_so_few_draws_that_no_circuit_could_pass_are_refused(asked, case):
    with pytest.raises(RaspLensError, match=r"98\b.* 99\b"):
        circuit_tests(asked, case.varying, n_random=98)
    for level in (0.0, 1.0, 2.0):
        with pytest.raises(RaspLensError, match=f"level .*got {level}"):
            circuit_tests(asked, case.varying, level)


@pytest.mark.slow
def test_a_circuit_that_hardly_any_path_leaves_is_refused(asked, case):
    """Once, it was said that some edge of it matters no more than random ones do, whatever it was."""
    (decoy,) = case.decoys
    nearly_all = [edge for edge in asked.graph.edges if edge != f"pos_embed->{decoy}.q"]
    with pytest.raises(RaspLensError, match=r"\d+ of 150 random paths.* 99\b"):
        circuit_tests(asked, nearly_all, n_random=150)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_random_circuits_have_as_many_edges_as_asked_and_none_but_those_allowed(asked):
    graph = asked.graph
    found = random_circuits(graph, 7, 20, 0)
    assert (found.sum(axis=1) == 7).all()
    assert len(np.unique(found, axis=0)) > 10
    allowed = graph.from_embeddings
    among = random_circuits(graph, 5, 10, 0, allowed)
    assert (among.sum(axis=1) == 5).all()
    assert not among[:, ~allowed].any()


def test_metrics_that_measure_from_the_model_and_circuits_of_nothing_are_refused(case, asked):
    with pytest.raises(RaspLensError, match=r"logit_difference.*got 'kl'"):
        circuit_tests(case.problem(Protocol(metric="kl")), case.varying)
    for circuit in ([], asked.graph.edges):
        with pytest.raises(RaspLensError, match=f"{len(asked.graph.edges)} edges.*got {len(circuit)}"):
            circuit_tests(asked, circuit)
