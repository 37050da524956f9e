from dataclasses import fields

import pytest

from rasplens.learned import Architecture
from rasplens.tasks import get_task


@pytest.mark.parametrize(
    ("architecture", "text"),
    [
        (Architecture(1, 2, 8, 4), "1L2H, d_model=8"),
        (Architecture(2, 1, 8, 8, identity_v=True), "2L1H, d_model=8, W_V = I"),
        (Architecture(2, 1, 8, 8, identity_v=True, identity_o=True), "2L1H, d_model=8, W_V = W_O = I"),
        (
            Architecture(1, 1, 4, 4, smeared_keys=True, normalization="LN", d_mlp=6, bias=True),
            "1L1H, d_model=4, MLPs of 6, smeared keys, LN, biases",
        ),
    ],
)
def test_it_says_what_it_is_and_nothing_that_it_is_not(architecture, text):
    assert str(architecture) == text


def test_the_task_decides_the_context_and_the_vocabularies_and_nothing_else():
    architecture = Architecture(2, 2, 8, 4, positions="sinusoidal_qk", smeared_keys=True, d_mlp=6)
    for task in (get_task("sort"), get_task("copy", n_letters=5, block=2, length=6)):
        config = architecture.config(task)
        assert (config.n_ctx, config.d_vocab, config.d_vocab_out) == (
            task.n_ctx, len(task.vocab), len(task.outputs),
        )  # fmt: skip
        for field in fields(architecture):
            if field.name != "bias":
                assert getattr(config, field.name) == getattr(architecture, field.name)


def test_biases_are_trained_or_not_in_the_same_config():
    task = get_task("sort")
    assert Architecture(1, 1, 4, 4, bias=True).config(task) == Architecture(1, 1, 4, 4).config(task)
