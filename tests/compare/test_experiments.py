"""Single interventions, each against a model of which is known what has to come out."""

import re

import numpy as np
import pytest

from rasplens.compare import CompareConfig, vocabulary_of
from rasplens.compare.experiments import find_subspaces, interchange, patch, patch_edges, scrub
from rasplens.errors import RaspLensError
from rasplens.learned import load_pretrained
from rasplens.model import disguise
from rasplens.tasks import compile_for, get_task

FEW = CompareConfig(n_inputs=60, n_fitting=200, interchange_pairs=60)


@pytest.fixture(scope="module")
def task():
    return get_task("copy", n_letters=6, block=3, length=9)


@pytest.fixture(scope="module")
def offset(task):
    """It attends one period of three back, and to nothing else."""
    return compile_for(task, "offset")


@pytest.fixture(scope="module")
def induction(task):
    return compile_for(task, "induction")


@pytest.fixture(scope="module")
def copied_edges(task):
    return [(query, query - 2) for query in task.loss_positions]


def test_everything_from_the_source_gives_its_answers(offset, task):
    everything = patch(offset, task, "blocks.0.hook_resid_pre", config=FEW)
    assert everything.as_source == 1
    assert (everything.after == everything.of_source).all()
    assert everything.changed == (everything.before != everything.of_source).mean() > 0.5
    assert f"{everything.changed:.3f} changed" in repr(everything)


def test_only_what_is_read_later_matters(offset, task):
    """Patched along with what is read, what nothing reads changes nothing more."""
    last = f"blocks.{offset.transformer.config.n_layers - 1}.hook_resid_post"
    everywhere = patch(offset, task, last, config=FEW)
    read = patch(offset, task, last, positions=[task.positions[p] for p in task.loss_positions], config=FEW)
    assert read.as_source == 1
    assert np.array_equal(read.after, everywhere.after)


def test_a_head_alone(task):
    model = load_pretrained("induction")
    own = get_task("induction")
    for layer in (0, 1):
        assert patch(model, own, f"blocks.{layer}.attn.hook_z", heads=[0], config=FEW).accuracy < 0.7


def test_edges_carry_what_the_program_says(offset, task, copied_edges):
    along = patch_edges(offset, task, copied_edges, config=FEW)
    assert along.as_source == 1
    others = [(q, k) for q in range(task.n_ctx) for k in range(q + 1) if (q, k) not in copied_edges]
    assert patch_edges(offset, task, others, config=FEW).changed == 0
    assert patch_edges(offset, task, copied_edges, "attention", config=FEW).accuracy < 0.5
    by_name = [(task.positions[query], task.positions[key]) for query, key in copied_edges]
    assert np.array_equal(patch_edges(offset, task, by_name, config=FEW).after, along.after)


def test_scrubbing_all_but_the_right_edges_keeps_the_behaviour(offset, task, copied_edges):
    assert scrub(offset, task, copied_edges, config=FEW).accuracy == 1
    wrong = [(query, query - 1) for query in task.loss_positions]
    assert scrub(offset, task, wrong, config=FEW).accuracy < 0.5
    assert scrub(offset, task, [], config=FEW).accuracy < 0.5


@pytest.fixture(scope="module")
def between(induction):
    """A variable of the program, and the hook point behind which it is there."""
    name = next(
        name
        for name, variable in induction.variables.items()
        if variable.written_at == "blocks.0.hook_resid_post" and name != induction.output and not variable.is_view
    )
    return name, "blocks.0.hook_resid_post"


def test_a_variable_is_interchanged_where_it_is(induction, task, between):
    variable, point = between
    twin = disguise(induction, seed=1)
    known = twin.variables[variable]
    basis = np.linalg.qr(known.place.reads)[0]
    pairs = interchange("induction", induction, task, variable, point, config=FEW).pairs
    found = interchange(
        "induction", twin, task, variable, point, subspaces=dict.fromkeys(pairs.positions, basis), config=FEW
    )
    assert found.score == 1
    assert found.random < 0.7
    assert found.full_stream <= 1
    assert "IIA 1.000" in repr(found)
    early = interchange("induction", twin, task, variable, "blocks.0.hook_resid_pre", config=FEW)
    assert early.score < 0.9


@pytest.mark.slow
def test_a_search_finds_a_variable_in_a_disguise_and_not_before_it_is_there(induction, task, between):
    variable, point = between
    own = vocabulary_of(induction)
    twin = disguise(induction, seed=1).transformer
    found = find_subspaces("induction", twin, task, variable, point, config=FEW, vocabulary=own)
    assert found.score > 0.9
    assert found.score > found.random + 0.2
    narrow = find_subspaces("induction", twin, task, variable, point, rank=1, config=FEW, vocabulary=own)
    assert {one.rank for one in narrow.subspaces.values()} == {1}
    assert narrow.score <= found.score
    early = "blocks.0.hook_resid_pre"
    nowhere = find_subspaces("induction", twin, task, variable, early, config=FEW, vocabulary=own)
    assert nowhere.score < found.score - 0.3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, t: patch(m, t, "blocks.9.hook_z"), "hook point 'blocks.9.hook_z'"),
        (lambda m, t: patch(m, t, "blocks.0.attn.hook_pattern"), "holds attention"),
        (lambda m, t: patch(m, t, "blocks.0.attn.hook_z", heads=[7]), "no head 7"),
        (lambda m, t: patch(m, t, "blocks.0.hook_resid_pre", heads=[0]), "has no heads"),
        (lambda m, t: patch(m, t, "blocks.0.hook_resid_pre", positions=[99]), "has no position 99"),
        (lambda m, t: patch(m, t, "blocks.0.attn.hook_z", heads=[]), "heads is empty"),
        (lambda m, t: patch(m, t, "blocks.0.hook_resid_pre", positions=[]), "positions is empty"),
        (
            lambda m, t: patch(m, t, "blocks.0.hook_resid_post", positions=[0]),
            "depend on blocks.0.hook_resid_post at ",
        ),
        (
            lambda m, t: patch(m, t, "blocks.0.attn.hook_q", positions=[0]),
            "depend on blocks.0.attn.hook_q at ",
        ),
        (
            lambda m, t: patch(m, t, "blocks.0.attn.hook_k", positions=[3], config=FEW),
            "blocks.0.attn.hook_k is the same",
        ),
        (lambda m, t: patch_edges(m, t, [(0, "nowhere")]), "has no position 'nowhere'"),
        (lambda m, t: patch_edges(m, t, []), "edges is empty"),
        (lambda m, t: patch_edges(m, t, [(1, 3)]), "does not see"),
        (
            lambda m, t: patch_edges(m, t, [(5, 3)], "value"),
            "values, keys, queries, attention; got 'value'",
        ),
        (lambda m, t: patch_edges(m, t, [(1, 0)]), "depend on the values of these edges"),
        (lambda m, t: patch_edges(m, t, [(5, 3)], "keys"), "keys of these edges are the same"),
        (lambda m, t: scrub(m, t, [(1, 3)]), "does not see"),
        (
            lambda m, t: scrub(m, t, [(q, k) for q in range(t.n_ctx) for k in range(q + 1)]),
            "depend on the values of these edges",
        ),
        (lambda m, t: interchange("offset", m, t, "x", "hook_embed"), "has no variable 'x'"),
        (
            lambda m, t: interchange("offset", m, t, "tokens", "hook_embed", subspaces={0: np.ones((3, 1))}),
            "rank]; got (3, 1)",
        ),
        (lambda m, t: find_subspaces("nothing", m, t, "x", "hook_embed"), "has no program 'nothing'"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_makes_no_experiment(offset, task, call, message):
    with pytest.raises(RaspLensError) as error:
        call(offset, task)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (lambda at, whole: {}, "subspaces is empty"),
        (lambda at, whole: dict.fromkeys([*at, 0], whole), r"position 0\b.*interchanged"),
        (lambda at, whole: dict.fromkeys(at, whole[:, :0]), "has no directions"),
    ],
)
def test_subspaces_that_are_never_interchanged_are_refused(induction, task, between, chosen, message):
    variable, point = between
    pairs = interchange("induction", induction, task, variable, point, config=FEW).pairs
    assert 0 not in pairs.positions
    subspaces = chosen(pairs.positions, np.eye(induction.transformer.config.d_model))
    with pytest.raises(RaspLensError, match=message):
        interchange("induction", induction, task, variable, point, subspaces=subspaces, config=FEW)


@pytest.mark.parametrize("rank", [0, -1, 500])
def test_a_search_for_more_directions_than_there_are_is_refused(induction, task, between, rank):
    variable, point = between
    with pytest.raises(RaspLensError, match=rf"rank .*1 and \d+\b.* got {rank}\."):
        find_subspaces("induction", induction, task, variable, point, rank=rank, config=FEW)


def test_a_variable_that_no_answer_can_depend_on_any_more_is_refused(induction, task, between):
    """Behind the last layer's attention, what stands at other positions than the answers' is read by nothing."""
    variable, _ = between
    own = compile_for(task, "induction")
    pairs = interchange("induction", own, task, variable, "blocks.0.hook_resid_post", config=FEW).pairs
    last = f"blocks.{own.transformer.config.n_layers - 1}.hook_resid_post"
    if set(pairs.positions) & set(task.loss_positions):
        interchange("induction", own, task, variable, last, config=FEW)
    else:
        with pytest.raises(RaspLensError, match=rf"{variable!r}.* depend on {re.escape(last)} "):
            interchange("induction", own, task, variable, last, config=FEW)
