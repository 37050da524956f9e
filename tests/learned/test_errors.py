import pickle

import pytest

from rasplens.learned.errors import TrainingError


def test_it_is_a_value_error_which_commands_show_in_a_line():
    with pytest.raises(ValueError, match="diverged"):
        raise TrainingError("The training diverged.")


def test_it_gets_from_one_process_to_another():
    assert str(pickle.loads(pickle.dumps(TrainingError("The training diverged.")))) == "The training diverged."
