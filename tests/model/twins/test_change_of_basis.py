import numpy as np
import pytest

from rasplens.model import Config, bias_shapes, weight_shapes
from rasplens.model.twins.change_of_basis import READS, WRITES, oblique, on_residual, rotation, widening

CONFIG = Config(n_layers=2, n_heads=3, d_model=7, d_head=4, n_ctx=5, d_vocab=6, d_vocab_out=8, d_mlp=9)


def test_what_reads_has_the_stream_before_its_last_axis_and_what_writes_as_its_last():
    shapes = weight_shapes(CONFIG) | bias_shapes(CONFIG)
    touched = set()

    def read(array):
        assert array.shape[-2] == 7
        touched.add("read")
        return array + 1

    def write(array):
        assert array.shape[-1] == 7
        touched.add("write")
        return array + 2

    changed = on_residual({name: np.zeros(shape) for name, shape in shapes.items()}, read, write)
    assert touched == {"read", "write"}
    for name, array in changed.items():
        kind = 1 if name.endswith(READS) else 2 if name.endswith(WRITES) else 0
        assert (array == kind).all()
        assert kind or 7 not in shapes[name]  # whatever has an axis of that width is one or the other


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e4])
def test_an_oblique_basis_has_the_condition_number_that_was_asked(condition):
    change = oblique(8, condition, np.random.default_rng(1))
    assert change.is_turned
    sizes = np.linalg.svd(change.writes, compute_uv=False)
    np.testing.assert_allclose(sizes[0] / sizes[-1], condition, rtol=1e-9)
    np.testing.assert_allclose(np.diff(np.log(sizes)), -np.log(condition) / 7, atol=1e-9)
    np.testing.assert_allclose(change.writes @ change.reads, np.eye(8), atol=1e-9)
    angles = change.writes @ change.writes.T
    assert np.allclose(angles, np.eye(8)) is (condition == 1)  # of 1 it is a rotation


def test_one_direction_after_another_change_is_still_one():
    rng = np.random.default_rng(2)
    assert oblique(1, 10.0, rng).writes.shape == (1, 1)
    both = widening(4, 2).then(rotation(6, rng)).then(oblique(6, 5.0, rng))
    assert both.is_turned
    assert both.writes.shape == (4, 6)
    np.testing.assert_allclose(both.writes @ both.reads, np.eye(4), atol=1e-12)
    assert not widening(4, 2).is_turned
