import pytest

from rasplens.learned import TrainConfig


@pytest.mark.parametrize("name", ["chunk", "map_chunk", "n_monitored", "most_devices", "pool", "most_numbers"])
def test_sizes_below_one_are_refused(name):
    with pytest.raises(ValueError, match=rf"TrainConfig\.{name} .*whole number.* \[1, inf\); got 0"):
        TrainConfig(**{name: 0})


@pytest.mark.parametrize("name", ["save_every", "worth_sharing"])
def test_what_must_not_be_negative_is_refused(name):
    kind = type(getattr(TrainConfig(), name))
    assert getattr(TrainConfig(**{name: kind(0)}), name) == 0
    with pytest.raises(ValueError, match=rf"TrainConfig\.{name} .*number.* \[0, inf\); got -1"):
        TrainConfig(**{name: kind(-1)})
