from rasplens.compare import as_studied_model
from rasplens.compare.pairing.relevance import relevant_positions, relevant_rows
from rasplens.compile import compile_program
from rasplens.model import disguise
from rasplens.tasks import get_task


def test_a_head_is_causally_relevant_where_its_output_reaches_an_answer(offset, task):
    studied = as_studied_model(offset, task, task.held_out[:30])
    assert relevant_rows(studied, 48) == {(0, 0): list(task.loss_positions)}


def test_a_variable_is_causally_relevant_where_the_model_reads_it(offset, task):
    studied = as_studied_model(offset, task, task.held_out[:30])
    assert relevant_positions(studied, offset.variables["tokens"], 48) == list(range(task.n_ctx - 3))
    assert relevant_positions(studied, offset.variables["offset"], 48) == list(task.loss_positions)


def test_each_position_counts_alone():
    task = get_task("compression", n_digits=6)
    compiled = compile_program(task.programs["slots"], task.vocab, task.n_ctx, mask=task.visible)
    studied = as_studied_model(compiled, task, task.held_out)
    rows = {compiled.heads[head]: rows for head, rows in relevant_rows(studied, 48).items()}
    assert rows == {"first": [2], "second": [2], "slots": [4]}  # two heads write it: [3] and [4]
    assert relevant_positions(studied, compiled.variables["first"], 48) == [2]
    assert relevant_positions(studied, compiled.variables["slots"], 48) == [3, 4]


def test_a_disguise_is_causally_relevant_where_the_model_is(induction, task):
    twin = disguise(induction, seed=2, basis="oblique", extra_width=2)
    studied, hidden = (as_studied_model(one, task, task.held_out[:30]) for one in (induction, twin))
    for name, variable in induction.variables.items():
        assert relevant_positions(hidden, twin.variables[name], 48) == relevant_positions(studied, variable, 48)
