import numpy as np

from rasplens.model import Config, bias_shapes, weight_shapes
from rasplens.model.change_of_basis import READS, WRITES, on_residual

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
