import numpy as np
import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import attention_leakage
from rasplens.model import Transformer, bidirectional_mask


def test_a_model_behind_the_tasks_mask_leaks_nothing(noise, offset, task):
    for model in (noise, offset):
        leaked = attention_leakage(as_studied_model(model, task, task.held_out[:20]), task.visible)
        assert len(leaked)
        assert leaked["leaked"].max() == 0


def test_what_a_model_sees_beyond_the_mask_is_leaked(noise, task):
    seeing = Transformer(noise.config, noise.weights, bidirectional_mask(2, task.n_ctx))
    studied = as_studied_model(seeing, task, task.held_out[:20])
    leaked = attention_leakage(studied, task.visible)
    assert leaked["leaked"].min() > 0.5
    row = leaked[(leaked["layer"] == 1) & (leaked["head"] == 0)].iloc[0]
    forbidden = (studied.pattern(1)[:, 0] * ~task.visible).sum(axis=-1)
    assert row["leaked"] == pytest.approx(float(np.max(forbidden)))
