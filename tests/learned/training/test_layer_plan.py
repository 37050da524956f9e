import numpy as np

from rasplens.learned.training.layer_plan import plan_layers
from rasplens.tasks import get_task


def test_the_plan_of_the_compression_task():
    """SEP reads both digits; o1 can only look at SEP, o2 chooses between SEP and o1; nothing else is computed."""
    first, second = plan_layers(get_task("compression").mask(2), (3, 4))
    assert (first.after, first.free, first.keys, first.forced) == ((2, 3, 4), (2,), (0, 1), ())
    assert (second.after, second.free, second.keys) == ((3, 4), (4,), (2, 3))
    assert (second.forced, second.seen) == ((3,), (2,))
    assert first.before == (0, 1, 2, 3, 4)
    assert second.before == (2, 3, 4)


def test_smeared_keys_need_the_position_before():
    mask = np.zeros((1, 5, 5), dtype=bool)
    mask[0, 4, [2, 4]] = True
    (plan,) = plan_layers(mask, (4,), smeared_keys=True)
    assert plan.before == (1, 2, 3, 4)
    assert plan_layers(mask, (4,))[0].before == (2, 4)
