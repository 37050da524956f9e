import re

import pytest

from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe, ordinary_architecture


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps of a SIITRecipe must be at least 1; got 0"),
        ({"batch_size": -1}, "batch_size of a SIITRecipe must be at least 1; got -1"),
        ({"strict": -0.5}, "strict of a SIITRecipe must be at least 0; got -0.5"),
        ({"learning_rate": float("nan")}, "learning_rate of a SIITRecipe must be at least 0; got nan"),
        ({"enough": 1.1}, "enough of a SIITRecipe is a share, at most 1; got 1.1"),
        ({"both": 50.0}, "both of a SIITRecipe is a share, at most 1; got 50.0"),
        ({"steps": 10, "warmup": 10}, "The warm-up must be shorter than the 10 steps; got 10"),
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
