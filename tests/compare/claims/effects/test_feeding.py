"""Which aggregates feed which."""

from rasplens.compare.claims.effects.feeding import Feeds, feeding
from rasplens.compile import rasp
from rasplens.compile.rasp import Aggregate, Comparison, Select, SelectBest, indices, tokens
from rasplens.compile.rasp.programs import induction

BEFORE = Select(indices, indices, lambda key, query: key == query - 1)
PREVIOUS = Aggregate(BEFORE, tokens).named("previous")


def test_the_previous_token_feeds_the_keys_of_induction():
    assert feeding(induction()) == (Feeds(("previous",), "keys", ("induction",)),)


def test_queries_values_and_scores_are_fed_as_well():
    by_query = Aggregate(Select(tokens, PREVIOUS, Comparison.EQ), PREVIOUS).named("reader")
    assert set(feeding(by_query)) == {
        Feeds(("previous",), "values", ("reader",)),
        Feeds(("previous",), "queries", ("reader",)),
    }
    best = Aggregate(SelectBest(tokens, tokens, Comparison.EQ, rasp.Map(len, PREVIOUS)), tokens).named("best")
    assert feeding(best) == (Feeds(("previous",), "keys", ("best",)),)


def test_what_passes_through_another_aggregate_feeds_that_alone():
    middle = Aggregate(BEFORE, PREVIOUS).named("middle")
    last = Aggregate(Select(middle, tokens, Comparison.EQ), tokens).named("last")
    # "middle" shares its selector with "previous".
    assert feeding(last) == (
        Feeds(("previous", "middle"), "values", ("previous", "middle")),
        Feeds(("previous", "middle"), "keys", ("last",)),
    )


def test_a_program_of_one_aggregate_feeds_nothing():
    assert feeding(PREVIOUS) == ()
