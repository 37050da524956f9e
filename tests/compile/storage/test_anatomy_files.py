import itertools

import numpy as np
import pytest

from rasplens.compile import UndefinedValue, compile_program, load_compiled, rasp, run, verify
from rasplens.compile.rasp import Map, tokens
from rasplens.compile.storage.anatomy_files import Lookup
from rasplens.model import StorageError, load, save


@pytest.fixture
def compiled(case, compiled_case):
    return compiled_case(case.name, optimize=True)


@pytest.fixture
def stored(compiled, tmp_path):
    compiled.save(tmp_path / "model.safetensors")
    return load_compiled(tmp_path / "model.safetensors")


def test_what_is_loaded_is_the_same_model(compiled, stored):
    assert repr(stored) == repr(compiled)
    assert stored.heads == compiled.heads
    assert stored.neurons == compiled.neurons
    for name, weight in compiled.transformer.weights.items():
        np.testing.assert_array_equal(stored.transformer.weights[name], weight)
    assert list(stored.variables) == list(compiled.variables)
    for mine, other in zip(stored.variables.values(), compiled.variables.values(), strict=True):
        assert (mine.encoding, mine.written_at, mine.is_view) == (other.encoding, other.written_at, other.is_view)
        assert list(map(type, mine.values)) == list(map(type, other.values))
        assert mine.values == other.values
        np.testing.assert_array_equal(mine.columns, other.columns)


def test_its_program_means_the_same_on_every_input(compiled, stored):
    """Verified against the program that was loaded, whose functions are tables, and that against the source."""
    assert verify(stored).ok
    visible = compiled.inputs.visible
    for sequence in itertools.islice(compiled.inputs, 200):
        n = len(sequence)
        assert stored.interpret(sequence) == run(compiled.program, sequence, mask=visible[:n, :n])


def test_the_transformer_alone_can_be_loaded_too(tmp_path):
    compiled = compile_program(tokens, ["a"], 2)
    compiled.save(tmp_path / "m.safetensors")
    assert load(tmp_path / "m.safetensors").config == compiled.transformer.config


def test_functions_fail_where_they_did(tmp_path):
    inverse = Map(lambda t: 1 / t, tokens)
    compile_program(inverse, [0, 1], 2, partial="allow").save(tmp_path / "m.safetensors")
    found = verify(load_compiled(tmp_path / "m.safetensors"))
    assert (found.checked, found.undefined) == (6, 4)
    with pytest.raises(KeyError, match="value for 0"):
        Lookup(())(0)


def test_another_model_is_refused(tmp_path):
    save(compile_program(tokens, ["a"], 2).transformer, tmp_path / "m.safetensors")
    with pytest.raises(StorageError, match="compiled program"):
        load_compiled(tmp_path / "m.safetensors")


def test_annotated_primitives_keep_their_annotations(tmp_path):
    program = rasp.numerical(rasp.indices).named("where")
    compile_program(program, ["a"], 3).save(tmp_path / "m.safetensors")
    loaded = load_compiled(tmp_path / "m.safetensors").program
    assert (loaded.name, rasp.is_numerical(loaded)) == ("where", True)


def test_averages_of_classes_are_stored_with_their_values(tmp_path):
    """The loaded program once knew nothing of the means, and so had no value there."""
    average = rasp.Aggregate(rasp.Select(tokens, tokens, rasp.Comparison.TRUE), rasp.indices)
    compile_program(Map(lambda x: x * 2, average), ["a", "b"], 2).save(tmp_path / "m.safetensors")
    loaded = load_compiled(tmp_path / "m.safetensors")
    assert run(loaded.program, ["a", "b"]) == loaded(["a", "b"]) == [1, 1]
    assert verify(loaded).undefined == 0


def test_saving_does_not_look_at_the_program_again(tmp_path, monkeypatch):
    """The analysis of a large program is what compiling takes its time for."""
    compiled = compile_program(Map(lambda t: t + 1, tokens), [0, 1], 2)
    monkeypatch.setattr("rasplens.compile.storage.anatomy_files.defined_program", None)
    compiled.save(tmp_path / "m.safetensors")
    assert load_compiled(tmp_path / "m.safetensors")([0, 1]) == [1, 2]


def test_what_was_loaded_can_be_saved_again(tmp_path):
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    program = rasp.Aggregate(rasp.Select(tokens, Map(lambda t: t % 2, tokens), rasp.Comparison.LEQ), tokens)
    compile_program(program, [0, 1], 2, partial="allow").save(first)
    load_compiled(first).save(second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("of", [lambda t: 1 // t, lambda t: None if t else 0])
def test_a_loaded_model_refuses_to_answer_where_it_did(tmp_path, of):
    compiled = compile_program(Map(of, tokens), [0, 1], 2, partial="allow")
    compiled.save(tmp_path / "m.safetensors")
    loaded = load_compiled(tmp_path / "m.safetensors")
    for sequence in compiled.inputs:
        try:
            wanted = compiled(sequence)
        except UndefinedValue:
            with pytest.raises(UndefinedValue, match="no value on"):
                loaded(sequence)
        else:
            assert loaded(sequence) == wanted
