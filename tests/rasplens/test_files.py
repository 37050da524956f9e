"""Every kind of file, damaged and forged: it is read as it was written, or refused with one line."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from mutations import damaged, write_forged

from rasplens.compile import UndefinedValue, compile_program, load_compiled, programs, rasp
from rasplens.compile.storage.anatomy_files import anatomy_to_json
from rasplens.learned import compress, load_compressed, load_learned, load_pretrained
from rasplens.learned.compressor import CompressionRecipe
from rasplens.learned.training.run_files import load_run, save_run
from rasplens.model import StorageError, load

ARRAYS = {"maps": np.arange(6.0, dtype=np.float32), "moments": (np.ones((2, 3), dtype=np.float32), np.zeros(()))}
RUN = {"task": "copy", "seeds": [0]}


def weights_of(transformer) -> dict:
    return {
        "config": transformer.config.to_dict(),
        "mask": transformer.mask.tolist(),
        **{name: (str(array.dtype), array.tobytes()) for name, array in transformer.weights.items()},
    }


def compiled_values(compiled) -> dict:
    return {**weights_of(compiled.transformer), **anatomy_to_json(compiled)}


def use_compiled(compiled) -> None:
    """What a user does with it must work, or say that a value is undefined."""
    with contextlib.suppress(UndefinedValue):
        compiled.run_batch([list(compiled.inputs.vocab[:1])])
    with contextlib.suppress(UndefinedValue):
        compiled.interpret(list(compiled.inputs.vocab[:1]))
    assert compiled.circuit().number_of_nodes()


@dataclass(frozen=True)
class Format:
    """A kind of file: how it is read, what of it counts, and what it is used for."""

    read: object
    values: object
    key: str = "rasplens"
    use: object = lambda found: None


FORMATS = {
    "model": Format(load, weights_of),
    "compiled": Format(load_compiled, compiled_values, use=use_compiled),
    "partial": Format(load_compiled, compiled_values, use=use_compiled),
    "learned": Format(load_learned, lambda m: {**weights_of(m.transformer), "task": m.task, **m.provenance}),
    "compressed": Format(
        load_compressed,
        lambda m: {**weights_of(m.transformer), **compiled_values(m.compiled), "map": m.projection.tolist()},
    ),
    "state": Format(
        lambda path: load_run(path, ARRAYS, RUN),
        lambda found: [found[1], *(array.tolist() for array in (found[0]["maps"], *found[0]["moments"]))],
        key="rasplens_training",
    ),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """One file of each format."""
    folder = tmp_path_factory.mktemp("files")
    compiled = compile_program(programs.histogram(), "ab", 3)
    compiled.save(folder / "compiled")
    lookup = rasp.Map({"a": 1}.__getitem__, rasp.tokens)
    compile_program(lookup, "ab", 2, partial="allow").save(folder / "partial")
    load_pretrained("copy").save(folder / "learned")
    shutil.copy(folder / "compiled", folder / "model")
    recipe = CompressionRecipe(2, 8, 1e-2, 1e-4, warmup=1, starts=1, fitted=1, rates=(1.0,), trial=1)
    compress(compiled, 3, recipe).save(folder / "compressed")
    save_run(folder / "state", ARRAYS, RUN, {"step": 3, "notes": {"a": [1, None]}})
    return folder


def mutated(written, tmp_path, name, mutate, n: int, use: bool = False) -> int:
    """How many of n mutations were refused; each of the others must be the very same, or be of use."""
    file, path = FORMATS[name], tmp_path / "file.safetensors"
    whole = file.values(file.read(written / name))
    rng, refused = np.random.default_rng(0), 0
    for i in range(n):
        shutil.copy(written / name, path)
        mutate(path, rng)
        try:
            found = file.read(path)
        except StorageError as error:
            refused += str(path) in str(error) and "\n" not in str(error)
            continue
        if use:
            file.use(found)
        else:
            assert file.values(found) == whole, i
    return refused


def damage(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(damaged(path.read_bytes(), rng))


@pytest.mark.parametrize("n", [100, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_refused_or_the_same(written, tmp_path, name, n):
    assert mutated(written, tmp_path, name, damage, n) > 0.8 * n


@pytest.mark.parametrize("n", [100, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_a_forged_file_is_refused_or_can_be_used(written, tmp_path, name, n):
    def forge(path, rng):
        write_forged(path, FORMATS[name].key, rng)

    assert mutated(written, tmp_path, name, forge, n, use=True) > 0.1 * n
