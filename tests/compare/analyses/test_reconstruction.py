from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import logit_terms
from rasplens.learned import Architecture
from rasplens.model import Config

SIZES = Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6)
ARCHITECTURES = {
    "attention only": SIZES,
    "mlp": replace(SIZES, d_mlp=8),
    "smeared": replace(SIZES, smeared_keys=True, positions="sinusoidal_qk"),
    "no positions": replace(SIZES, positions="none"),
}


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_the_terms_add_up_to_the_logits(random_transformer, task, architecture, biases):
    model = random_transformer(architecture.config(task), biases=biases)
    found = logit_terms(as_studied_model(model, task, task.held_out[:5]))
    np.testing.assert_allclose(found.terms.sum(axis=2), found.logits, rtol=0, atol=1e-10)
    assert found.difference < 1e-10
    assert found.terms.shape == (5, len(task.loss_positions), len(found.sources), len(task.outputs))


def test_terms_that_are_exchanged_between_inputs_do_not(random_transformer, task):
    found = logit_terms(as_studied_model(random_transformer(SIZES.config(task)), task, task.held_out[:5]))
    assert np.linalg.norm(found.terms[::-1].sum(axis=2) - found.logits, axis=-1).mean() > 0.1


def test_of_a_compiled_copier_each_answer_comes_from_one_position(offset, task):
    found = logit_terms(as_studied_model(offset, task, task.held_out[:5]))
    assert found.difference < 1e-4
    spread = found.terms.max(axis=-1) - found.terms.min(axis=-1)
    decisive = np.argsort(-spread[:, 0], axis=-1)[:, 0]
    assert {found.sources[i] for i in decisive} == {f"position {offset.offset + task.loss_positions[0] - 2}"}


def test_layer_norm_is_refused(random_transformer, task):
    config: Config = replace(SIZES, normalization="LN").config(task)
    with pytest.raises(ValueError, match="layer norm"):
        logit_terms(as_studied_model(random_transformer(config), task, task.held_out[:5]))
