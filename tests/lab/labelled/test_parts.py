"""Programs as parts of compiled models: of their own, and of the other program's of a circuit."""

import pytest

from lab.labelled.circuits import CIRCUITS, HARD, Circuit
from lab.natural.mechanisms import get_mechanism
from lab.programs.recalling import induction, induction_by_pointer
from rasplens.compare import compare
from rasplens.compare.study import Study
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.model import disguise
from rasplens.tasks import compile_for, task_from_program

RECALLING = Circuit("recalling", lambda: get_mechanism("induction").task, induction, induction_by_pointer)
KNOWN = {**CIRCUITS, **HARD, "recalling": RECALLING}


def verdicts(name):
    """By program and model, the verdict on the program as a part of the model."""
    circuit = KNOWN[name]
    task = circuit.task()
    sides = [compile_for(task, program) for program in (circuit.program(), circuit.alternative())]
    return {
        (own.output, model.output): compare(
            own, disguise(model, 1), task=task, config="quick", vocabulary=vocabulary_of(model, task), as_part=True
        ).verdict.answer
        for own in sides
        for model in sides
    }


@pytest.mark.parametrize("is_large", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    "name", ["any", *(pytest.param(one, marks=pytest.mark.slow) for one in ("product", "repeated", "recalling"))]
)
def test_a_part_is_taken_for_no_other_and_its_own_is_not_refuted(name, is_large, monkeypatch):
    """Of a large model only edges are patched: what is computed from several variables is left open."""
    if is_large:
        monkeypatch.setattr(Study, "is_large", True)
    for (program, model), answer in verdicts(name).items():
        if program == model and not is_large:
            assert answer == IMPLEMENTS, (program, model)
        else:
            assert answer not in ((NOT, PARTLY) if program == model else (IMPLEMENTS,)), (program, model)


@pytest.mark.slow
def test_heads_that_are_found_and_carry_nothing_refute_no_program():
    """Both balances are gathered along all earlier edges, and change the answer together: no head does alone."""
    entry = CATALOGUE["shuffle_dyck"]
    task = task_from_program(entry.build(), entry.vocab, entry.max_len)
    own = compile_for(task)
    found = compare(
        own, disguise(own, 1), task=task, config="quick", vocabulary=vocabulary_of(own, task), as_part=True
    ).verdict
    assert found.answer not in (NOT, PARTLY)
