from rasplens.compare import as_subject
from rasplens.compare.models.relevance import live_positions, live_rows
from rasplens.compile import compile_program
from rasplens.tasks import get_task


def test_a_head_is_live_where_its_output_reaches_an_answer(offset, task):
    subject = as_subject(offset, task, task.held_out[:30])
    assert live_rows(subject) == {(0, 0): list(task.loss_positions)}


def test_a_variable_is_live_where_the_model_reads_it(offset, task):
    subject = as_subject(offset, task, task.held_out[:30])
    assert live_positions(subject, offset.variables["tokens"]) == list(range(task.n_ctx - 3))
    assert live_positions(subject, offset.variables["offset"]) == list(task.loss_positions)


def test_each_position_counts_alone():
    task = get_task("compression", n_digits=6)
    compiled = compile_program(task.programs["slots"], task.vocab, task.n_ctx, mask=task.visible)
    subject = as_subject(compiled, task, task.held_out)
    rows = {compiled.heads[head]: live for head, live in live_rows(subject).items()}
    assert rows == {"first": [2], "second": [2], "slots": [4]}  # two heads write it: [3] and [4]
    assert live_positions(subject, compiled.variables["first"]) == [2]
    assert live_positions(subject, compiled.variables["slots"]) == [3, 4]
