import numpy as np
import pytest

from rasplens.compile import CompileError, compile_program, programs
from rasplens.compile.rasp import Aggregate, Select, indices, tokens
from rasplens.learned.compressor import examples as module
from rasplens.learned.compressor.examples import examples, masks


def test_every_input_is_there_once_and_filled_up_behind(frac):
    found = examples(frac)
    assert found.exhaustive
    assert len(found.tokens) == 3 + 9 + 27 + 81
    rows = {tuple(row[real]) for row, real in zip(found.tokens, found.real, strict=True)}
    assert rows == {(3, *ids) for batch in frac.inputs.all_ids() for ids in batch.tolist()}
    lengths = found.real.sum(axis=1)
    assert (found.real == (np.arange(5) < lengths[:, None])).all()


def test_inputs_without_a_value_are_left_out():
    mixed = Aggregate(Select(indices, indices, lambda k, q: k <= q), tokens)  # of different letters no mean
    compiled = compile_program(mixed, "ab", 3, causal=True, partial="allow")
    found = examples(compiled)
    assert [row[real].tolist() for row, real in zip(found.tokens, found.real, strict=True)] == [
        [letter] * n for n in (1, 2, 3) for letter in (0, 1)
    ]


def test_of_too_many_a_sample_is_drawn():
    compiled = compile_program(programs.reverse(), range(10), 6)
    found, again, other = examples(compiled, 50), examples(compiled, 50), examples(compiled, 50, seed=1)
    assert not found.exhaustive
    assert found.tokens.shape == (50, 7)
    np.testing.assert_array_equal(found.tokens, again.tokens)
    assert (found.tokens != other.tokens).any()


def test_a_program_with_a_value_on_hardly_any_input_cannot_be_judged(monkeypatch):
    same = Aggregate(Select(indices, indices, lambda k, q: True), tokens)
    compiled = compile_program(same, [f"w{i}" for i in range(30)], 4, partial="allow")
    assert len(examples(compiled, 1_000).tokens) == 1_000  # by drawing again
    monkeypatch.setattr(module, "PATIENCE", 1)
    with pytest.raises(CompileError, match=r"too few.* \d+ of 4000"):
        examples(compiled, 4_000)


def test_what_is_filled_up_is_not_seen(unique):
    found = examples(unique)
    assert (masks(unique, found.real)[:, ..., 0] == unique.transformer.mask[:, None, None, :, 0]).all()
    short = found.real.sum(axis=1) == 2  # BOS and one token
    assert not masks(unique, found.real)[:, short][..., 2:].any()
