"""The token two places before, looked up at once or step by step: the same answers, other routes."""

from rasplens.compile.rasp import Aggregate, Select, indices, tokens


def back(steps):
    return Select(indices, indices, lambda key, query: key == query - steps)


AT_ONCE = Aggregate(back(2), tokens).named("at_once")
STEP_BY_STEP = Aggregate(back(1), Aggregate(back(1), tokens).named("one_back")).named("step_by_step")
