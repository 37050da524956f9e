from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rasplens.compare.discovery import cases
from rasplens.compare.discovery.cases import (
    KEPT,
    KINDS,
    compiled_case,
    compressed_case,
    planted_case,
    siit_case,
    where_defined,
)
from rasplens.compare.discovery.methods.catalogue import METHODS, own_method
from rasplens.compare.discovery.protocol import Protocol, Scoring, Setting
from rasplens.compare.discovery.scoreboard import board, board_of, edge_scores, medians, method_runs
from rasplens.compile import programs, rasp
from rasplens.compile.rasp import Map, SequenceMap, indices, tokens
from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe, ordinary_architecture, train_to_implement
from rasplens.tasks import compile_for, task_from_program
from rasplens.tasks.task import NOT_ASKED


def test_a_decoy_is_an_exact_copy_that_no_answer_depends_on(case, compiled):
    ids = compiled.encode(case.task.sequences(case.task.held_out[:50]))
    logits, cache = case.transformer.run_with_cache(ids)
    np.testing.assert_allclose(logits, compiled.transformer(ids), atol=1e-6)
    assert case.decoys == ("L0H1",)
    pattern = cache["blocks.0.attn.hook_pattern"]
    np.testing.assert_array_equal(pattern[:, 0], pattern[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["compiled", "disguised"])
def test_a_program_without_heads_has_a_case_without_a_decoy(kind):
    program = Map(lambda token: token * 2 % 5, tokens).named("doubled")
    other = task_from_program(
        SequenceMap(lambda one, at: (one + at) % 3, program, indices).named("sum"), (1, 2, 4), 5
    )
    case = KINDS[kind](compile_for(other), other)
    assert case.decoys == ()
    found = board([case], {"exact": METHODS["exact"]}, {"few": Setting(Protocol(n_pairs=16))})
    assert found["auroc"].iloc[0] == 1.0
    assert found["decoys"].isna().all()


def test_the_truth_depends_on_the_ablation(case):
    zero, mean = (Setting(Protocol(ablation=ablation)) for ablation in ("zero", "mean"))
    assert case.truth(zero) == case.truth(Setting(scoring=Scoring(circuit="program"))) == case.edges
    assert case.truth(mean) == case.truth(Setting()) == case.varying < case.edges


@pytest.mark.slow
def test_a_board_has_a_row_for_each_case_setting_and_method(case):
    seen = []
    methods = {name: METHODS[name] for name in ("exact", "random")}
    settings = {"few": Setting(Protocol(n_pairs=8)), "zero": Setting(Protocol(n_pairs=8, ablation="zero"))}
    found = board([case], methods, settings, progress=lambda *said: seen.append(said))
    assert found[["setting", "method"]].to_numpy().tolist() == [
        ["few", "exact"], ["few", "random"], ["zero", "exact"], ["zero", "random"],
    ]  # fmt: skip
    assert (found["kind"] == "compiled").all()
    assert seen[0][1:] == (0, 4)
    assert found["auroc"].iloc[0] == 1.0


def test_the_scores_of_all_edges_are_kept_with_their_labels(case):
    """Another measure is taken from them alone: here AUROC by ranks, which is the board's."""
    methods = {name: METHODS[name] for name in ("exact", "weights")}
    runs = list(method_runs([case], methods, {"few": Setting(Protocol(n_pairs=8), Scoring(floor=0.0))}))
    found, table = board_of(runs), edge_scores(runs)
    assert len(table) == 2 * len(runs[0].problem.graph.edges)
    assert set(table["label"]) == {"circuit", "outside", "decoy"}
    for (method, of), wanted in zip(table.groupby("method"), found["auroc"], strict=True):
        ranks, inside = of["score"].abs().rank(), of["label"] == "circuit"
        n = inside.sum()
        area = (ranks[inside].sum() - n * (n + 1) / 2) / (n * (~inside).sum())
        assert area == pytest.approx(wanted), method
    assert edge_scores([]).empty


def test_medians_have_intervals_over_programs():
    found = pd.DataFrame({"method": ["a"] * 5 + ["b"], "auroc": [0.1, 0.5, 0.6, 0.7, 0.9, 0.3]})
    found["program"] = [*"12345", "1"]
    first, second = medians(found, "auroc", ["method"]).to_dict("records")
    assert (first["median"], first["n"]) == (0.6, 5)
    assert 0.1 <= first["low"] < 0.6 < first["high"] <= 0.9
    assert second["low"] != second["low"]  # of one program there is none
    four_kinds = medians(pd.concat([found] * 4), "auroc", ["method"]).to_dict("records")
    assert four_kinds[0] == first  # models of one program tell no more than one


@pytest.mark.slow
def test_a_stored_model_is_a_case_and_one_of_another_program_is_not(compiled, task, tmp_path):
    few = SIITRecipe(steps=4, cycles=1, batch_size=8, warmup=1, pool=50)
    train_to_implement(compiled, task, recipe=few).save(tmp_path / "model.safetensors")
    with pytest.raises(RaspLensError, match=r"'induction'.*\d\.\d+.*Train.*model\.safetensors"):
        siit_case(compiled, task, path=tmp_path / "model.safetensors")
    case = siit_case(compiled, task, path=tmp_path / "model.safetensors", marks={})
    assert case.kind == "siit"
    assert case.decoys == ("L0H4",)
    assert "L0H0->L1H0.k" in case.varying
    other = compile_for(task, programs.histogram())
    with pytest.raises(RaspLensError, match=r"model\.safetensors.*'histogram'"):
        siit_case(other, task, path=tmp_path / "model.safetensors")


@pytest.mark.slow
def test_a_model_with_layer_norm_is_a_case_without_a_decoy(compiled, task, tmp_path):
    few = SIITRecipe(steps=4, cycles=1, batch_size=8, warmup=1, pool=50)
    shape = ordinary_architecture(compiled, d_model=16, normalization="LN")
    train_to_implement(compiled, task, shape, few).save(tmp_path / "model.safetensors")
    case = siit_case(compiled, task, path=tmp_path / "model.safetensors", marks={})
    assert (case.decoys, case.transformer.config.n_heads) == ((), 4)
    found = board([case], {"random": METHODS["random"]}, {"few": Setting(Protocol(n_pairs=4))})
    assert found["auroc"].notna().all()
    assert found["decoys"].isna().all()


@pytest.fixture
def with_untested(monkeypatch):
    """Says of some nodes of every model that they could not be tested."""

    def untested(*nodes):
        measured = cases.load_implementation

        def load(*given):
            model = measured(*given)
            found = model.accuracy
            changed = {node: float("nan") if node in nodes else 1.0 for node in found.changed}
            return replace(model, accuracy=replace(found, changed=changed))

        monkeypatch.setattr(cases, "load_implementation", load)

    return untested


@pytest.fixture(scope="module")
def stored(compiled, task, tmp_path_factory):
    few = SIITRecipe(steps=4, cycles=1, batch_size=8, warmup=1, pool=50)
    path = tmp_path_factory.mktemp("siit") / "model.safetensors"
    train_to_implement(compiled, task, recipe=few).save(path)
    return path


@pytest.mark.slow
def test_edges_at_a_node_that_cannot_be_tested_are_no_known_truth(compiled, task, stored, with_untested):
    with_untested("L0H0")
    case = siit_case(compiled, task, path=stored, marks={})
    assert case.untested == ("L0H0",)
    zero, program, resampled = (
        case.unknown(setting)
        for setting in (Setting(Protocol(ablation="zero")), Setting(scoring=Scoring(circuit="program")), Setting())
    )
    assert zero == program
    assert {"embed->L0H0.v", "L0H0->L1H0.k", "L0H0->logits"} <= zero
    assert all("L0H0" in edge for edge in zero)
    assert resampled == zero & case.varying != zero
    protocol = Protocol(ablation="zero", n_pairs=4)
    found = board([case], {"random": METHODS["random"]}, {"zero": Setting(protocol)}).iloc[0]
    n_edges = len(case.problem(protocol).graph.edges)
    assert found["n_edges"] == n_edges - len(zero)
    assert found["base_rate"] == pytest.approx(len(case.edges - zero) / (n_edges - len(zero)))


def test_of_a_compiled_model_all_edges_are_known(case):
    assert case.unknown(Setting(Protocol(ablation="zero"))) == case.unknown(Setting()) == frozenset()


@pytest.mark.slow
def test_a_model_of_which_no_node_can_be_tested_is_no_case(compiled, task, stored, with_untested):
    with_untested("L0H0", "L1H0")
    with pytest.raises(RaspLensError, match=r"No node.*'induction'"):
        siit_case(compiled, task, path=stored, marks={})


@pytest.mark.slow
def test_a_model_that_loses_its_answers_in_compression_is_no_case(compiled, task, monkeypatch):
    monkeypatch.setattr("rasplens.compare.discovery.cases.NARROWER", 0.2)
    with pytest.raises(RaspLensError, match=r"\d+ directions.*'induction'.* 0\.\d+ "):
        compressed_case(compiled, task)


def test_where_a_program_has_no_answer_none_is_asked_of_a_compressed_model(task):
    defined = where_defined(task)
    before, after = (one.target(task.held_out) for one in (task, defined))
    np.testing.assert_array_equal(after, np.where(before == task.answer_code(None), NOT_ASKED, before))
    everywhere = task_from_program(programs.histogram(), "abc", 4)
    assert where_defined(everywhere).is_asked(everywhere.held_out).all()
    assert where_defined(no_none := replace(everywhere, outputs=(1, 2, 3, 4))) is no_none


@pytest.mark.slow
def test_a_compressed_model_keeps_its_circuit(compiled, task):
    case = compressed_case(compiled, task)
    found = board([case], {"exact": METHODS["exact"]})
    assert found["auroc"].iloc[0] > 0.95
    assert case.accuracy >= KEPT
    codes = case.task.target(task.held_out)
    np.testing.assert_array_equal(codes == NOT_ASKED, task.target(task.held_out) == task.answer_code(None))
    assert 0 < (codes == NOT_ASKED).mean() < 1
    unchanged = replace(case, transformer=compiled_case(compiled, task).transformer)
    assert unchanged.accuracy == 1.0
    assert set(KINDS) == {"compiled", "disguised", "compressed", "siit", "planted"}


def test_what_is_no_method_or_no_setting_is_told_by_name(case, unchecked):
    silent = {"mine": own_method(lambda model, problem: None)}
    with pytest.raises(RaspLensError, match=r"mine, on induction, compiled: .*mapping.*None"):
        board([case], silent, {"few": Setting(Protocol(n_pairs=4))})
    with pytest.raises(RaspLensError, match=r"Setting\(Protocol\(\.\.\.\)"):
        board([case], silent, {"few": Protocol(n_pairs=4)})


@pytest.mark.slow
def test_settings_that_differ_in_the_scoring_alone_share_a_method_s_scores(case):
    asked = []

    def counted(problem):
        asked.append(problem.protocol)
        return METHODS["exact"](problem)

    few, zero = Protocol(n_pairs=4), Protocol(n_pairs=4, ablation="zero")
    settings = {
        "few": Setting(few),
        "whole": Setting(few, Scoring(heads="whole")),
        "stairs": Setting(few, Scoring(curve="stairs", embeddings="one", logits=False, unscored="out")),
        "zero": Setting(zero),
    }
    found = board([case], {"counted": counted}, settings)
    assert asked == [few, zero]
    assert found["n_edges"].nunique() == 3


def causal(program, vocab, max_len):
    """A program whose positions see only the past, with its task."""
    task = task_from_program(rasp.causal(program), vocab, max_len, causal=True)
    return compile_for(task), task


@pytest.mark.slow
@pytest.mark.parametrize("ablation", ["resample", "mean"])
@pytest.mark.parametrize("program", [programs.histogram(), programs.shift_by(1)], ids=["histogram", "shift_by"])
def test_patching_finds_the_circuit_of_a_planted_program(program, ablation):
    """Its labels come from the program, not from patching: both agree; a random ranking does not."""
    case = planted_case(*causal(program, "abc", 4))
    setting = Setting(Protocol(n_pairs=32, ablation=ablation))
    methods = {name: METHODS[name] for name in ("exact", "random")}
    found = board([case], methods, {"few": setting}).set_index("method")
    assert found.loc["exact", "auroc"] == 1.0
    assert found.loc["random", "auroc"] < 0.9


@pytest.mark.slow
def test_all_that_zero_ablation_finds_is_in_the_circuit_of_a_planted_program():
    """But for queries and keys: without the constant, they only attend more sharply."""
    case = planted_case(*causal(programs.shift_by(1), "abc", 4))
    problem = case.problem(Protocol(n_pairs=32, ablation="zero"))
    effects = dict(zip(problem.graph.edges, METHODS["exact"](problem), strict=True))
    found = {edge for edge, effect in effects.items() if abs(effect) > 1e-3}
    assert found <= case.edges
    assert {edge.rpartition(".")[2] for edge in case.edges - found} <= {"q", "k"}


def test_a_planted_program_has_the_nodes_that_stand_for_its_parts():
    compiled, task = causal(programs.induction(), "abc", 5)
    case = planted_case(compiled, task, seed=1)
    assert case.accuracy == 1.0
    assert case.decoys == ()
    heads = [node for node in case.circuit if node.is_head]
    assert [case.circuit[node].variables for node in heads] == [("previous",), ("induction",)]
    passing = {edge for edge in case.edges if "pos_embed" in edge}
    assert passing == {f"pos_embed->L{heads[0].layer - 1} MLP"}
    assert f"embed->{heads[0]}.v" in case.varying
    assert f"{heads[0]}->{heads[1]}.k" in case.varying
    assert case.varying < case.edges
    assert all("MLP" not in edge for edge in case.varying)


def test_a_program_that_sees_what_comes_later_is_not_planted():
    task = task_from_program(programs.histogram(), "abc", 4)
    compiled = compile_for(task)
    with pytest.raises(RaspLensError, match="causal=True"):
        planted_case(compiled, task)
