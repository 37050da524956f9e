import numpy as np
import pytest
import torch

from rasplens.compile import load_compiled
from rasplens.learned import load_compressed
from rasplens.learned.compressor.examples import examples
from rasplens.model import HookedModel, StorageError, disguise, load, save


@pytest.mark.slow
@pytest.mark.parametrize("which", ["narrow_frac", "narrow_unique"])
def test_its_transformer_runs_hooked_and_can_be_disguised(which, request):
    model = request.getfixturevalue(which)
    ids = examples(model.compiled).tokens[-10:]
    with torch.no_grad():
        logits, cache = HookedModel(model).run_with_cache(torch.tensor(ids))
    np.testing.assert_allclose(logits, model.transformer(ids), atol=1e-3)
    assert cache["blocks.0.hook_resid_pre"].shape[-1] == model.d
    np.testing.assert_allclose(disguise(model, seed=1)(ids), model.transformer(ids), rtol=1e-3, atol=1e-3)


def test_every_direction_of_the_compiled_model_has_a_label_and_a_row(narrow_frac):
    assert narrow_frac.labels[:3] == ["tokens:a", "tokens:b", "tokens:x"]
    assert (
        len(narrow_frac.labels) == len(narrow_frac.projection) == narrow_frac.compiled.transformer.config.d_model
    )
    row, embedding = narrow_frac.labels.index("tokens:x"), narrow_frac.transformer.W_E
    np.testing.assert_allclose(
        embedding[2] - embedding[0], narrow_frac.projection[row] - narrow_frac.projection[0], atol=1e-5
    )
    np.testing.assert_allclose(narrow_frac.overlap, narrow_frac.projection @ narrow_frac.projection.T)


@pytest.mark.parametrize("which", ["narrow_frac", "narrow_unique"])
def test_what_was_saved_is_loaded_again_with_its_map_and_its_program(which, request, tmp_path):
    model = request.getfixturevalue(which)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load_compressed(path)
    for name, array in model.transformer.weights.items():
        np.testing.assert_array_equal(again.transformer.weights[name], array)
    np.testing.assert_array_equal(again.projection, model.projection)
    assert (again.recipe, again.seed, again.history, again.labels) == (
        model.recipe, model.seed, model.history, model.labels,
    )  # fmt: skip
    for name, array in model.compiled.transformer.weights.items():
        np.testing.assert_array_equal(again.compiled.transformer.weights[name], array)
    sequence = model.compiled.inputs.vocab[:2]
    assert again.compiled(sequence) == model.compiled(sequence)
    assert again.answers([sequence]) == model.answers([sequence])
    assert load(path).config == model.transformer.config  # as any transformer
    with pytest.raises(StorageError, match="compiled program"):
        load_compiled(path)


def test_another_model_is_no_compressed_one(narrow_frac, tmp_path):
    save(narrow_frac.transformer, tmp_path / "plain.safetensors")
    with pytest.raises(StorageError, match="compressed program"):
        load_compressed(tmp_path / "plain.safetensors")


def test_answers_to_sequences_that_do_not_fit_are_refused(narrow_frac):
    with pytest.raises(ValueError, match=r"'q'.*vocabulary"):
        narrow_frac.answers([["q"]])
