"""Models with a second mechanism: what decides is what their label says."""

import numpy as np
import pytest

from lab.labelled.circuits import CIRCUITS, HARD
from lab.labelled.hidden_mechanisms import (
    DECIDES,
    HIDDEN,
    LEAST_GATED,
    SHARES,
    gates,
    hidden_pairs,
    other_decides,
    with_backup,
    with_task_logits,
)
from rasplens.compare import compare
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, PARTLY, UNKNOWN
from rasplens.compile import compile_program
from rasplens.model import Transformer


@pytest.fixture(scope="module")
def pairs():
    return list(hidden_pairs(CIRCUITS["reverse"]))


def answers(transformer, pair, ids):
    logits = transformer(pair.vocabulary.tokens(ids))[:, list(pair.vocabulary.positions)]
    return pair.vocabulary.codes(logits)


def test_every_model_answers_as_both_programs_do(pairs):
    for pair in pairs:
        ids = pair.task.held_out[:100]
        np.testing.assert_array_equal(answers(pair.model, pair, ids), pair.task.target(ids))


def test_every_mode_is_there_for_both_programs(pairs):
    assert {pair.program for pair in pairs} == {"reverse_at_once", "reverse_in_steps"}
    for program in ("reverse_at_once", "reverse_in_steps"):
        own = {pair.kind.removeprefix(HIDDEN): pair.same for pair in pairs if pair.program == program}
        for share in SHARES:
            assert own[f"{share:.1%} of the logits"] == (share > DECIDES)
        assert own["a backup beside it"] is own["a dead mirror beside it"] is True
        assert own["only a backup"] is False
        gated = [same for kind, same in own.items() if kind.startswith("gate")]
        assert len(gated) == 2
        assert True not in gated


def test_a_gate_is_open_on_its_inputs():
    task = CIRCUITS["reverse"].task()
    for gate in gates(task, 0):
        met = np.logical_and.reduce([task.held_out[:, place] == token for place, token in gate.tokens])
        opens = task.answers(gate.sop(task), task.held_out)
        assert gate.share(task) == pytest.approx(met.mean())
        assert met.any()
        from rasplens.compile import run

        for row, is_met in zip(task.sequences(task.held_out[:50]), met[:50], strict=True):
            assert set(run(gate.sop(task), row)) == {bool(is_met)}
        assert opens.shape[0] == len(task.held_out)


def test_a_backup_answers_only_where_the_first_is_taken_away():
    circuit = CIRCUITS["reverse"]
    task = circuit.task()
    first, second = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.alternative)
    )
    ours, theirs = with_task_logits(first, task), with_task_logits(second, task)
    model, tokens = with_backup(ours, theirs), vocabulary_of(first, task).tokens(task.held_out[:60])
    np.testing.assert_allclose(model(tokens), ours(tokens), atol=1e-3)

    def without(start, stop):
        """The model when some directions of the stream are never written."""
        weights = {name: array.copy() for name, array in model.weights.items()}
        for name, array in weights.items():
            if name.endswith(("W_O", "W_out")) and ".mlp" not in name:
                array[..., start:stop] = 0
        return Transformer(model.config, weights, model.mask)(tokens)

    width = ours.config.d_model
    places = list(vocabulary_of(first, task).positions)
    alone = without(0, width)[:, places].argmax(axis=-1)
    np.testing.assert_array_equal(alone, task.target(task.held_out[:60]))
    np.testing.assert_allclose(without(width, width + theirs.config.d_model), ours(tokens), atol=1e-3)


@pytest.mark.slow
def test_what_a_label_says_is_what_a_comparison_finds(pairs):
    for pair in pairs:
        found = compare(pair.reference, pair.model, task=pair.task, config="quick", vocabulary=pair.vocabulary)
        said = found.verdict.answer
        assert pair.same is None or (said == IMPLEMENTS) == pair.same, pair.kind
        if "gate, on 18%" in pair.kind:
            assert said == PARTLY
            where = [claim.except_where for claim in found.verdict.all_claims if claim.except_where]
            assert any(one.startswith("position 3 is 'a' (") for one in where), where
    assert LEAST_GATED == 0.05


def test_the_other_program_decides_where_it_has_most_of_the_logits_or_the_reference_is_only_a_backup(pairs):
    """A model in which one of the two decides stands in the set twice: once for each."""
    decided = {pair.kind: (pair.same, other_decides(pair.kind)) for pair in pairs if "gate" not in pair.kind}
    assert sum(own is True for own, _ in decided.values()) == 3
    assert [kind for kind, (own, other) in decided.items() if not own and not other] == [
        f"{HIDDEN}50.0% of the logits"
    ]
    assert not any(own and other for own, other in decided.values())
    assert not any(other_decides(pair.kind) for pair in pairs if "gate" in pair.kind)


@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_in_a_tie_neither_program_is_the_model_s(seed):
    """Both gather along the same edges. The other's ranks decide 18 % of the answers, once too few to tell."""
    kind = f"{HIDDEN}{DECIDES:.1%} of the logits"
    tie = next(one for one in hidden_pairs(HARD["highest"]) if one.kind == kind)
    found = compare(tie.reference, tie.model, task=tie.task, config="quick", seed=seed, vocabulary=tie.vocabulary)
    assert found.verdict.answer == UNKNOWN
    (open_claim,) = found.verdict.of_status("cannot tell")
    assert str(open_claim.subject).startswith("nothing else decides")
