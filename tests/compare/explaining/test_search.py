"""Programs, from the heads to the answers."""

import numpy as np
import pytest

from rasplens.compare.explaining.known import program_source
from rasplens.compare.explaining.search import programs


def best_of(of):
    sample, inputs = of
    return list(programs(sample, inputs, np.random.default_rng(0)))


def test_the_likeliest_program_comes_first_and_none_twice(histogram):
    found = best_of(histogram)
    assert found[0].readout.agreement == found[0].kept == 1
    assert "SelectorWidth" in program_source(found[0].readout.program)
    sources = [program_source(one.readout.program) for one in found]
    assert len(set(sources)) == len(sources)
    assert found[0].is_complete
    others = [one.score for one in found if not one.is_complete]
    assert others == sorted(others, reverse=True)


@pytest.mark.slow
def test_what_heads_say_is_read_where_they_matter(slots):
    """Each of two heads fetches one digit for one answer; elsewhere it says something too, and is undefined."""
    best = best_of(slots)[0]
    assert best.readout.unread == 0
    chosen = "rasp.Where(rasp.indices == 3, l1h0, l1h1)"
    elsewhere = f"rasp.SequenceMap(lambda i, x: x if i in [3, 4] else None, rasp.indices, {chosen})"
    assert best.readout.program.text == elsewhere
