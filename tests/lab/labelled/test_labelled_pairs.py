import numpy as np
import pytest

from lab.labelled.circuits import CIRCUITS
from lab.labelled.labelled_pairs import ALTERNATIVE, exact_pairs, near_pairs, siit_pairs
from rasplens.compile import compile_program


@pytest.mark.parametrize(("program", "can_be_split"), [("repeated_by_count", False), ("reverse_at_once", True)])
def test_exact_pairs_have_every_change_that_can_be_made(program, can_be_split):
    pairs = [
        pair
        for pair in exact_pairs(CIRCUITS[program.partition("_")[0]])
        if program == (pair.program if pair.same else pair.alternative.output)
    ]
    same = {pair.kind for pair in pairs if pair.same}
    assert {"itself", "disguised", "head doubled", "idle layer", "dormant pathway"} <= same
    assert ("head split in two" in same) == can_be_split  # a head that writes one direction cannot be
    different = {pair.kind for pair in pairs if not pair.same}
    assert different == {"untrained", *(f"{ALTERNATIVE}{kind}" for kind in same)}


def test_near_pairs_are_the_program_twice_and_its_alternative():
    pairs = list(near_pairs(CIRCUITS["reverse"]))
    assert [(pair.kind, pair.same) for pair in pairs] == [
        ("itself", True),
        ("disguised", True),
        (f"{ALTERNATIVE}itself", False),
    ]
    assert {pair.program for pair in pairs} == {"reverse_at_once"}
    assert pairs[2].model is pairs[2].alternative


@pytest.mark.release
def test_siit_pairs_are_known_to_be_neither_and_their_kind_says_whether_they_reach_their_marks(monkeypatch):
    from lab.labelled import labelled_pairs as module
    from rasplens.learned import SIITRecipe

    train = module.train_to_implement
    short = SIITRecipe(steps=4, cycles=1, batch_size=8, warmup=1, pool=60)
    monkeypatch.setattr(
        module, "train_to_implement", lambda compiled, task, seed: train(compiled, task, recipe=short, seed=seed)
    )
    for marks, ending in ((module.SIIT_REACHES, ", not known"), ({"behaviour": 0.0}, "")):
        monkeypatch.setattr(module, "SIIT_REACHES", marks)
        pairs = list(siit_pairs(CIRCUITS["reverse"]))
        assert [(pair.kind, pair.same) for pair in pairs] == 2 * [
            ("itself", True),
            (f"siit{ending}", None),
            (f"{ALTERNATIVE}siit{ending}", None),
        ]
        assert [pair.model for pair in pairs[1:3]] == [pair.model for pair in pairs[5:3:-1]]


@pytest.mark.parametrize("name", [name for name in CIRCUITS if name != "copy"])
def test_alternatives_give_the_same_answers_on_every_held_out_input(name):
    circuit = CIRCUITS[name]
    task = circuit.task()
    first, second = (task.answers(build(), task.held_out) for build in (circuit.program, circuit.alternative))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, task.target(task.held_out))


@pytest.mark.parametrize("name", CIRCUITS)
def test_alternatives_differ_inside(name):
    circuit = CIRCUITS[name]
    task = circuit.task()
    first, second = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible).transformer
        for build in (circuit.program, circuit.alternative)
    )
    alike = first.config == second.config and all(
        np.array_equal(array, second.weights[name]) for name, array in first.weights.items()
    )
    assert not alike


@pytest.mark.slow
def test_a_program_is_compressed_more_and_more(monkeypatch):
    from dataclasses import replace

    from lab.labelled import labelled_pairs

    brief = replace(labelled_pairs.FAITHFUL, steps=5, warmup=0, starts=1, fitted=0, rates=(1.0,))
    monkeypatch.setattr(labelled_pairs, "FAITHFUL", brief)
    pairs = list(labelled_pairs.narrowing(CIRCUITS["last"]))
    widths = [pair.model.d for pair in pairs]
    assert widths == sorted(set(widths), reverse=True)
    assert widths[0] == pairs[0].reference.transformer.config.d_model
    assert {pair.same for pair in pairs} == {None}


@pytest.mark.slow
def test_a_compressed_model_is_the_same_only_if_its_layers_still_are(monkeypatch):
    from dataclasses import replace

    from lab.labelled import labelled_pairs

    circuit = CIRCUITS["last"]
    task = circuit.task()
    compiled = compile_program(circuit.program(), task.vocab, task.n_ctx, mask=task.visible)
    wide = compiled.transformer.config.d_model
    still = replace(labelled_pairs.FAITHFUL, steps=2, warmup=1, starts=1, fitted=0, rates=(1.0,))
    still = replace(still, learning_rate=1e-9, final_learning_rate=1e-9)
    monkeypatch.setattr(labelled_pairs, "FAITHFUL", still)
    # Without training, only all directions keep it.
    assert labelled_pairs.faithfully_compressed(compiled).d == wide
    monkeypatch.setattr(labelled_pairs, "FAITHFUL_FROM", -1.0)
    assert labelled_pairs.faithfully_compressed(compiled).d == round(0.9 * wide)
    monkeypatch.setattr(labelled_pairs, "FAITHFUL_FROM", 1.1)
    with pytest.raises(ValueError, match="'last_at_once' is faithful"):
        labelled_pairs.faithfully_compressed(compiled)
