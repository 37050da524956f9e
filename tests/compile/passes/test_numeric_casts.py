from model_sizes import size
from rasp_examples import EQUAL

from rasplens.compile import rasp
from rasplens.compile.rasp import SelectorWidth, indices


def test_what_is_read_as_a_number_takes_one_direction():
    total = rasp.numerical(rasp.LinearSequenceMap(indices, SelectorWidth(EQUAL), 1, 1))
    assert size(total, ["numeric-casts", "views"]).d_model < size(total, ["views"]).d_model
