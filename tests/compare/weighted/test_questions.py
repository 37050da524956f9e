"""Questions patch what they say, and a model's answers under them are its own."""

from dataclasses import replace

import numpy as np

from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.weighted.questions import PARTS, asked, questions
from rasplens.compile import programs
from rasplens.tasks import compile_for, task_from_program


def test_edges_are_visible_and_queries_whole_rows():
    task = task_from_program(programs.reverse(), "abc", 4, causal=True)
    found = questions(task, 20, 40, np.random.default_rng(0))
    assert list(found) == list(PARTS)
    for patch in found.values():
        assert not patch.edges[:, ~task.visible].any()
        assert patch.edges[0][task.visible].all()
    rows = found["queries"].edges
    assert (rows == (rows.any(axis=-1, keepdims=True) & task.visible)).all()


def test_few_edges_are_also_patched_alone():
    task = task_from_program(programs.reverse(), "abc", 3, causal=True)
    found = questions(task, 20, 40, np.random.default_rng(0))
    alone = [name for name in found if "←" in name]
    assert len(alone) == 2 * task.visible.sum()
    assert all((found[name].edges.sum(axis=(1, 2)) == 1).all() for name in alone)


def test_changed_answers_are_those_of_the_source():
    """All values of reverse from a source: the answers are the source's."""
    task = replace(task_from_program(programs.reverse(), "abc", 4), outputs=("a", "b", "c"))
    studied = as_studied_model(compile_for(task, programs.reverse()), task, task.held_out[:20])
    base, source = np.arange(20), np.arange(20)[::-1]
    found = asked(studied, EdgePatch(base, source, np.ones((20, 4, 4), dtype=bool), "values"))
    assert (found.answers == task.target(task.held_out[:20])[source]).all()
    right = task.target(task.held_out[:20])
    assert (found.changed == (right != right[source])).all()
