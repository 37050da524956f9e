"""From logits back to answers, whatever ran the weights; and what objects say of themselves in a line."""

import numpy as np
import pytest
import torch

from rasplens.compare import compare, token_vocabulary, vocabulary_of
from rasplens.compile import UndefinedValue, compile_program, programs, rasp
from rasplens.errors import RaspLensError
from rasplens.learned import load_pretrained
from rasplens.model import HookedModel
from rasplens.tasks import get_task

SEQUENCES = ["abc", "cab", "bbb"]


@pytest.mark.filterwarnings("ignore::rasplens.compile.CausalWarning")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["reverse", "histogram", "length"])
def test_logits_of_every_backend_are_the_answers(name, causal):
    program = {"reverse": programs.reverse, "histogram": programs.histogram, "length": programs.length}[name]()
    compiled = compile_program(program, "abc", 3, causal=causal)
    ids = compiled.encode(SEQUENCES)
    expected = [compiled.interpret(sequence) for sequence in SEQUENCES]
    hooked = HookedModel(compiled)
    assert compiled.decode(compiled.transformer(ids)) == expected
    assert compiled.decode(hooked(torch.as_tensor(ids))) == expected
    assert compiled.decode(compiled.to_bridge()(torch.as_tensor(ids))) == expected
    assert compiled.run_batch(SEQUENCES, check=False) == expected


def test_numbers_are_numbers():
    compiled = compile_program(rasp.numerical(rasp.Map(lambda token: 2 * token, rasp.tokens)), [1, 2, 3], 3)
    assert compiled.decode(compiled.transformer(compiled.encode([[1, 3, 2]]))) == [[2, 6, 4]]


def test_what_are_no_logits_of_it():
    compiled = compile_program(programs.reverse(), "abc", 3)
    for shape in [(1, 4, 2), (4, 3), (3,)]:
        with pytest.raises(RaspLensError, match=r"\[batch, ctx, 3\].*shape"):
            compiled.decode(np.zeros(shape))
    with pytest.raises(UndefinedValue, match="mixture"):
        compiled.decode(np.full((1, 4, 3), 0.5))


@pytest.mark.slow
def test_objects_say_in_a_line_what_they_are():
    task = get_task("copy", n_letters=6, block=3, length=8)
    compiled = compile_program(task.programs["offset"], task.vocab, task.n_ctx, mask=task.visible)
    model = load_pretrained("induction")
    ids = {token: i for i, token in enumerate(task.vocab)}
    said = {
        "task": (task, "'copy': 8 positions"),
        "program": (task.programs["offset"], "offset"),
        "compiled": (compiled, "CompiledModel('offset'"),
        "variable": (compiled.variables["offset"], "<Variable 'offset': categorical, 6 values, directions ["),
        "learned": (model, "LearnedModel('induction'"),
        "hooked": (HookedModel(model), "HookedModel(2 layers × 1 heads"),
        "vocabulary": (token_vocabulary(task, ids), "<Vocabulary: 8 positions, 6 answers>"),
        "of the compiled": (vocabulary_of(compiled, task), "<Vocabulary: 8 positions, 6 answers>"),
        "comparison": (compare(compiled, compiled, task=task, config="quick"), "implements the program 'offset'"),
    }
    for thing, phrase in said.values():
        assert "\n" not in repr(thing)
        assert phrase in repr(thing)
        assert len(repr(thing)) < 300
