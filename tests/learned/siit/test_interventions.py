"""What the compiled model says under interchange is what the interpreter says of the program."""

import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.compile import programs, rasp, run
from rasplens.compile.rasp.interpreter import expressions
from rasplens.learned.siit.circuit import circuit_of
from rasplens.learned.siit.interventions import NodeInterchange, oracle
from rasplens.tasks import compile_for, task_from_program
from rasplens.tasks.task import NO_ANSWER

N = 40


def interchange_of(n_nodes, n_pos, seed=0):
    random = np.random.default_rng(seed)
    return NodeInterchange(
        jnp.asarray(random.random((n_nodes, N, n_pos)) < 0.4), jnp.asarray(random.integers(0, N, (n_nodes, N)))
    )


def by_the_interpreter(task, program, ids, interchange, names):
    """The program's answers with variables, each of which reads those before, as they are on other inputs."""
    parts = {one.name: one for one in expressions(program) if isinstance(one, rasp.SOp)}
    taken, source = map(np.asarray, interchange)
    sequences, answers = task.sequences(ids), []

    def values(name, row, setting):
        return run(parts[name], sequences[row], mask=task.visible, set=setting)

    for row in range(len(ids)):
        setting = {}
        for i, name in enumerate(names):
            both = values(name, row, setting), values(name, source[i, row], {})
            setting[name] = [
                theirs if take else own for own, theirs, take in zip(*both, taken[i, row], strict=True)
            ]
        answers.append([task.answer_code(value) for value in setting[program.name]])
    return np.array(answers)


@pytest.mark.slow
def test_it_is_the_interpreter_s_answer(task, compiled):
    circuit = circuit_of(compiled)
    names = [part.variables[0] for part in circuit.values()]
    interchange, ids = interchange_of(len(circuit), task.n_ctx), task.held_out[:N]
    found = np.asarray(oracle(compiled, circuit, task)(jnp.asarray(ids), interchange))
    expected = by_the_interpreter(task, compiled.program, ids, interchange, names)
    np.testing.assert_array_equal(found, expected)
    assert 0.1 < (found != task.target(ids)).mean() < 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "vocab", "causal"),
    [
        (programs.histogram(), "abc", False),
        (programs.frac_prevs((rasp.tokens == "x").named("is_x")), "abx", True),
        (programs.sort(), (1, 2, 3), False),
        (programs.induction(), "abc", True),
    ],
)
def test_without_an_interchange_it_is_the_task_s(program, vocab, causal):
    """Numbers and classes, with a BOS and without, and undefined answers."""
    task = task_from_program(program, vocab, 4, causal=causal)
    compiled = compile_for(task)
    circuit = circuit_of(compiled)
    answers, ids = oracle(compiled, circuit, task), task.held_out[:N]
    np.testing.assert_array_equal(answers(jnp.asarray(ids)), task.target(ids))
    nothing = NodeInterchange(
        jnp.zeros((len(circuit), len(ids), 4), bool), jnp.zeros((len(circuit), len(ids)), int)
    )
    np.testing.assert_array_equal(answers(jnp.asarray(ids), nothing), task.target(ids))


@pytest.mark.slow
def test_a_mixture_of_values_is_no_answer():
    """Ranks of another input select two positions, or none: what is gathered there is no token."""
    task = task_from_program(programs.sort_unique(), (1, 2, 3, 4), 4)
    compiled = compile_for(task)
    circuit, ids = circuit_of(compiled), task.held_out[:N]
    last = max(circuit)
    taken = np.array([[[node != last and position == 0 for position in range(4)]] * len(ids) for node in circuit])
    source = np.tile(np.roll(np.arange(len(ids)), 1), (len(circuit), 1))
    found = oracle(compiled, circuit, task)(
        jnp.asarray(ids), NodeInterchange(jnp.asarray(taken), jnp.asarray(source))
    )
    assert NO_ANSWER in np.unique(found)
    assert np.isin(np.asarray(found), [NO_ANSWER, *range(len(task.outputs))]).all()
