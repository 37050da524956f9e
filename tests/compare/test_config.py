"""How much a comparison looks at: presets, and values that make no sense."""

from dataclasses import FrozenInstanceError, fields

import pytest

from rasplens.compare import PRESETS, CompareConfig
from rasplens.compare.config import LEAST, get_config


def test_a_preset_comes_by_its_name_and_a_config_as_it_is():
    assert get_config("standard") == CompareConfig()
    own = CompareConfig(n_inputs=20)
    assert get_config(own) is own


def test_fields_are_changed_on_the_way():
    assert get_config("quick", n_inputs=33) == CompareConfig(**{**vars(PRESETS["quick"]), "n_inputs": 33})


def test_more_time_never_looks_at_less():
    quick, standard, thorough = (PRESETS[name] for name in ("quick", "standard", "thorough"))
    for field in fields(CompareConfig):
        values = [getattr(config, field.name) for config in (quick, standard, thorough)]
        assert values == sorted(values), field.name


def test_a_preset_that_is_not_there_is_refused(unchecked):
    with pytest.raises(ValueError, match=r"preset 'fast'.*quick, standard, thorough"):
        get_config("fast")


@pytest.mark.parametrize("field", [field.name for field in fields(CompareConfig)])
def test_each_field_has_a_least_value(field):
    least = LEAST.get(field, 1)
    assert getattr(CompareConfig(**{field: least}), field) == least
    with pytest.raises(ValueError, match=f"{field} of a CompareConfig .* {least}; got {least - 1}"):
        CompareConfig(**{field: least - 1})


@pytest.mark.parametrize("value", [1.5, "10", True, None])
def test_a_field_that_is_no_whole_number_is_refused(value, unchecked):
    with pytest.raises(ValueError, match=f"n_inputs .* got {value!r}"):
        CompareConfig(n_inputs=value)


def test_a_config_is_frozen():
    with pytest.raises(FrozenInstanceError):
        CompareConfig().n_inputs = 5  # type: ignore[misc]
