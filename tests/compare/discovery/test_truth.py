import pytest

from rasplens.compare.discovery.cases import disguised_case
from rasplens.compare.discovery.methods.patching import exact_edges
from rasplens.compare.discovery.protocol import Protocol
from rasplens.compare.discovery.scoring import score_edges
from rasplens.compare.discovery.truth import circuit_edges, program_edges, renamed_edges
from rasplens.compile import programs
from rasplens.learned.siit.circuit import CompiledPart, Node, circuit_of
from rasplens.tasks import compile_for, task_from_program


def test_induction_by_hand(compiled, task):
    assert program_edges(compiled, task) == {
        "embed->L0H0.v", "L0H0->L1H0.k", "embed->L1H0.q", "embed->L1H0.v", "L1H0->logits",
    }  # fmt: skip
    assert program_edges(compiled) - program_edges(compiled, task) == {
        "pos_embed->L0H0.q", "pos_embed->L0H0.k", "embed->L0H0.q", "embed->L0H0.k", "pos_embed->L1H0.k",
        "embed->L1H0.k",
    }  # fmt: skip


def test_what_is_the_same_on_all_inputs_is_no_truth_for_resampling():
    """Reverse finds its positions by the length, which is always the same."""
    task = task_from_program(programs.reverse(), "abc", 5)
    compiled = compile_for(task)
    assert program_edges(compiled, task) == {"embed->L2H0.v", "L2H0->logits"}
    assert {"L0H0->L0 MLP", "L1 MLP->L2H0.q", "pos_embed->L2H0.k"} <= program_edges(compiled)


@pytest.mark.parametrize("name", ["histogram", "reverse", "sort"])
def test_what_matters_by_zero_ablation_is_in_it(name):
    """The compiler's own circuit, found by ablation, has no edge that this one lacks."""
    vocab = (1, 2, 3) if name == "sort" else "abc"
    compiled = compile_for(task_from_program(getattr(programs, name)(), vocab, 4))
    ours = {edge.partition(".")[0] for edge in program_edges(compiled)}

    def renamed(part):
        if part in ("tokens", "positions"):
            return {"tokens": "embed", "positions": "pos_embed"}[part]
        return part if "H" in part.partition(" ")[0] or part == "logits" else f"{part.partition(' ')[0]} MLP"

    theirs = {f"{renamed(a)}->{renamed(b)}" for a, b in compiled.circuit().edges}
    assert theirs
    assert theirs <= ours


def test_nodes_of_a_trained_model_take_the_place_of_parts(compiled, task):
    circuit = circuit_of(compiled)
    assert circuit_edges(compiled, circuit, task) == program_edges(compiled, task)
    moved = {Node(0, 3): CompiledPart(("previous",), 0, (0,)), Node(1, 2): CompiledPart(("induction",), 1, (0,))}
    assert circuit_edges(compiled, moved, task) == {
        "embed->L0H3.v", "L0H3->L1H2.k", "embed->L1H2.q", "embed->L1H2.v", "L1H2->logits",
    }  # fmt: skip


def test_heads_with_other_names():
    names = {"L0H1": "L0H0", "L1H0": "L1H3"}
    assert renamed_edges(frozenset({"L0H1->L1H0.k", "embed->logits"}), names) == {
        "L0H0->L1H3.k",
        "embed->logits",
    }


@pytest.mark.slow
def test_a_disguise_keeps_its_circuit(compiled, task):
    case = disguised_case(compiled, task, seed=1)
    asked = case.problem(Protocol(n_pairs=32))
    found = score_edges(asked, exact_edges(asked), case.varying, case.decoys)
    assert (found.auroc, found.decoys) == (1.0, 1.0)
    assert case.varying != program_edges(compiled, task)  # its heads stand elsewhere
