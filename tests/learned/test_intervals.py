import math
from dataclasses import dataclass, fields

import numpy as np
import pytest

from rasplens.learned import Architecture, Recipe, SIITRecipe, TrainConfig
from rasplens.learned.compressor import CompressionRecipe
from rasplens.learned.intervals import COUNT, SHARE, check_intervals, is_within

SMALL = Architecture(1, 1, 4, 4)
KINDS = {
    Architecture: {"n_layers": 1, "n_heads": 1, "d_model": 4, "d_head": 4},
    Recipe: {
        "architecture": SMALL,
        "batch_size": 1,
        "steps": 10,
        "learning_rate": 0.1,
        "weight_decay": 0.0,
    },
    SIITRecipe: {"steps": 10, "warmup": 0},
    CompressionRecipe: {"steps": 10, "batch_size": 1, "learning_rate": 0.1, "final_learning_rate": 0.01},
    TrainConfig: {},
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_of_a_recipe_may_be_negative_infinite_or_nan(kind):
    kind(**KINDS[kind])
    numbers = [field.name for field in fields(kind) if field.type in (int, float)]
    assert len(numbers) >= 5
    for name in numbers:
        for value in (-1,) if kind.__annotations__[name] is int else (-5.0, math.nan, math.inf):
            with pytest.raises(ValueError, match=rf"{kind.__name__}\.{name} .*number.*got {value}"):
                kind(**{**KINDS[kind], name: value})


@dataclass(frozen=True)
class Settings:
    size: int = 1
    rate: float = 1


def test_numbers_are_of_the_kind_of_their_field():
    check_intervals(Settings(np.int64(2), np.float32(0.5)), size=COUNT, rate=SHARE)
    for size in (True, 2.5, 2.0, "2", None):
        with pytest.raises(ValueError, match=r"Settings\.size .*whole number .*\[1, inf\); got"):
            check_intervals(Settings(size), size=COUNT, rate=SHARE)
    for rate in (True, "1", None, 1j):
        with pytest.raises(ValueError, match=r"Settings\.rate .*number .*\[0, 1\]; got"):
            check_intervals(Settings(rate=rate), size=COUNT, rate=SHARE)


@pytest.mark.parametrize("words", [{"positions": "nowhere"}, {"normalization": "RMS"}, {"activation": "tanh"}])
def test_an_architecture_that_there_is_not_is_refused_when_it_is_named(words):
    with pytest.raises(ValueError, match=rf"{next(iter(words))}.*{next(iter(words.values()))!r}"):
        Architecture(1, 1, 4, 4, **words)


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        ("[0, 1)", [0, 0.5], [-0.1, 1, math.nan]),
        ("(0, 1]", [0.1, 1], [0, 1.1]),
        ("[1, inf)", [1, 10**400], [0, math.inf]),
    ],
)
def test_square_brackets_belong_to_an_interval(interval, inside, outside):
    assert all(is_within(value, interval) for value in inside)
    assert not any(is_within(value, interval) for value in outside)


def test_a_number_without_an_interval_is_our_own_fault():
    with pytest.raises(KeyError, match="size"):
        check_intervals(Settings())
