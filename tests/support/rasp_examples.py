"""Selectors and s-ops that many tests use: `from rasp_examples import EQUAL`."""

from rasplens.compile.rasp import Aggregate, Comparison, Select, SelectorWidth, indices, tokens

EQUAL = Select(tokens, tokens, Comparison.EQ)
BACK = Select(indices, indices, Comparison.LT)
PREVIOUS = Select(indices, indices, lambda key, query: key == query - 1)
EVERYTHING = Select(tokens, tokens, Comparison.TRUE)
HIST = SelectorWidth(EQUAL).named("hist")
SHIFTED = Aggregate(PREVIOUS, tokens).named("shifted")
