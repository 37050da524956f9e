from model_sizes import size
from rasp_examples import EQUAL

from rasplens.compile import rasp
from rasplens.compile.rasp import Map, Select, SelectorWidth, tokens


def test_what_is_written_twice_is_computed_once():
    twice = Map(lambda n: n + 0, SelectorWidth(EQUAL))
    again = SelectorWidth(Select(tokens, tokens, lambda key, query: key == query))
    both = rasp.SequenceMap(lambda x, y: x * y, twice, again)
    assert size(both, []).n_heads == 2
    assert size(both, ["cse"]).n_heads == 1
