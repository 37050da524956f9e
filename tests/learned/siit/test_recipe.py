import re

import pytest

from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe, ordinary_architecture


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "SIITRecipe.steps must be a whole number in [1, inf); got 0"),
        ({"batch_size": -1}, "SIITRecipe.batch_size must be a whole number in [1, inf); got -1"),
        ({"strict": -0.5}, "SIITRecipe.strict must be a number in [0, inf); got -0.5"),
        ({"learning_rate": float("nan")}, "SIITRecipe.learning_rate must be a number in (0, inf); got nan"),
        ({"enough": 1.1}, "SIITRecipe.enough must be a number in [0, 1]; got 1.1"),
        ({"both": 50.0}, "SIITRecipe.both must be a number in [0, 1]; got 50.0"),
        ({"steps": 10, "warmup": 10}, "10 steps; got 10"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, message):
    with pytest.raises(RaspLensError, match=re.escape(message)):
        SIITRecipe(**fields)


def test_an_ordinary_shape_has_two_layers_and_four_heads_and_any_width(compiled):
    shape = ordinary_architecture(compiled, d_model=24)
    assert (shape.n_layers, shape.n_heads, shape.d_model, shape.d_mlp) == (2, 4, 24, 96)
    assert (shape.activation, shape.bias) == ("gelu", True)
    assert compiled.transformer.config.d_model != 24
