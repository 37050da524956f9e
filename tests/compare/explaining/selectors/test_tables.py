"""Tables of the values of which keys are selected."""

import numpy as np

from rasplens.compare.explaining.selectors.grammar import selects
from rasplens.compare.explaining.selectors.tables import Observed, OwnEdges, together


def test_pairs_of_values_with_much_attention_are_a_table(histogram):
    _, inputs = histogram
    odd = (inputs.ids[:, None, :] == 0) & (inputs.ids[:, :, None] == 1)
    odd |= (inputs.ids[:, None, :] == 2) & (inputs.ids[:, :, None] == 0)
    odd |= (inputs.ids[:, None, :] == 1) & (inputs.ids[:, :, None] == 2)
    found = selects(
        inputs,
        inputs.primitives(),
        Observed("h", range(4), odd / np.maximum(odd.sum(axis=2, keepdims=True), 1), None, ()),
        None,
    )
    (table,) = [one for one in found if (one.matrix == odd).all()]
    assert "('a', 'b'), ('b', 'c'), ('c', 'a')" in table.text


def test_what_depends_on_a_token_and_its_position_is_a_table_of_pairs(histogram):
    """Two variables together stand in a table only if they tell what is selected; one alone does not here."""
    _, inputs = histogram
    sum_is_even = (inputs.ids + np.arange(4)) % 2 == 0
    odd = sum_is_even[:, None, :] & (inputs.ids[:, :, None] > 0)
    found = selects(inputs, inputs.primitives(), Observed("h", range(4), odd.astype(float), None, ()), None)
    tables = [one for one in found if (one.matrix == odd).all()]
    assert tables
    assert all(one.reads[0].name == "tokens_and_indices" for one in tables)


def test_pairs_of_values_that_no_input_has_are_read_off_queries_of_other_inputs(histogram):
    """A token with its position meets another token at the same position only there."""
    sample, inputs = histogram
    source = sample.sources[0]

    def holds(key, query, place):
        return (key + query + place) % 2 == 0

    places = np.arange(4)
    selected = holds(inputs.ids[:, None, :], inputs.ids[:, :, None], places[None, :, None] + places[None, None, :])
    own = OwnEdges(holds(inputs.ids, inputs.ids[source], 2 * places).astype(float), source)
    found = selects(inputs, inputs.primitives(), Observed("h", range(4), selected.astype(float), own, ()), None)
    table = next(one for one in found if (one.matrix == selected).all())
    assert [one.name for one in table.reads] == ["tokens_and_indices", "tokens_and_indices"]
    predicate = eval(table.text.partition("lambda k, q: ")[2].removesuffix(")").join(("lambda k, q: ", "")))
    met = [(k, q, i) for k in range(3) for q in range(3) for i in range(4)]
    assert all(predicate(("abc"[k], i), ("abc"[q], i)) == holds(k, q, 2 * i) for k, q, i in met)


def test_two_variables_together_are_one_with_both_values(histogram):
    _, inputs = histogram
    (pair,) = together(inputs, inputs.primitives())
    assert pair.values[pair.codes[0, 1]] == ("abc"[inputs.ids[0, 1]], 1)
    many = inputs.define("many", "rasp.SequenceMap(lambda x, i: (x, i), rasp.tokens, rasp.indices)", [], 1.0)
    assert together(inputs, [many, pair]) == []
