"""The whole comparison, at its ceiling and on its floor, and in disguise."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import Comparison, Ranking, compare, rank, study_of
from rasplens.compare.axes import attention_axis, behaviour_axis
from rasplens.compare.claims.answers import behaviour
from rasplens.compare.claims.effects.given_answers import AGREEMENT
from rasplens.compare.claims.effects.part import EFFECTS
from rasplens.compare.evidence.attention.heads import head_similarities
from rasplens.compare.pipeline import STAGES
from rasplens.compare.report.page import render
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN
from rasplens.compile import compile_program
from rasplens.compile.rasp import Map, tokens
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.model import Transformer
from rasplens.model.twins.reparametrise import disguise
from rasplens.tasks import task_from_program


@pytest.fixture(scope="module")
def as_compiled(induction, task, quick):
    """Compares other weights with the program, for the inputs and answers of the compiled model."""
    vocabulary = vocabulary_of(induction, task)
    return lambda model: compare(induction, model, task=task, config=quick, vocabulary=vocabulary)


@pytest.fixture(scope="module")
def disguised(as_compiled, induction):
    return as_compiled(disguise(induction.transformer, seed=2, extra_width=3))


@pytest.mark.slow
def test_a_disguised_compiled_model_is_compared_as_it_stands(induction, task, brief):
    twin = disguise(induction, seed=2, extra_width=3)
    assert task.accuracy(twin) == task.accuracy(induction)
    found = compare(induction, twin, task=task, config=brief)
    for name in ("behaviour", "attention", "ablation"):
        assert found.axis(name).score == pytest.approx(1, abs=1e-3)


def without_values(model: Transformer, layer: int) -> Transformer:
    name = f"blocks.{layer}.attn.W_V"
    return Transformer(model.config, {**model.weights, name: 0 * model.weights[name]}, model.mask)


@pytest.mark.slow
def test_both_kinds_of_accuracy_are_reported(task, offset, brief):
    found = compare(offset, offset, task=task, config=brief).accuracies
    assert found["learned"].token == found["generated"].token == 1  # right with the right tokens: so with its own
    assert found["generated"].sequence == 1


@pytest.mark.slow
def test_a_model_of_many_heads_is_compared_without_ablating_them(induction, task, brief):
    whole, found = (
        compare(induction, induction, task=task, config=replace(brief, most_heads=most)) for most in (2, 1)
    )
    assert whole.axis("ablation").has_score
    assert not found.axis("ablation").has_score
    assert "2 heads (most_heads=1 " in found.axis("ablation").note
    assert found.tables["edges_learned"].empty
    assert found.verdict.to_dict() == whole.verdict.to_dict()
    assert "</html>" in render(found)


def test_a_model_against_itself_is_at_the_ceiling_on_every_axis(ceiling):
    for axis in ceiling.axes:
        assert axis.score == pytest.approx(1, abs=1e-4)
        assert axis.low == pytest.approx(1, abs=1e-4)
    assert ceiling.verdict.answer == "implements"
    assert ceiling.verdict.variables == {"previous": "holds"}
    assert set(ceiling.verdict.claims["status"]) == {"holds"}
    assert (ceiling.verdict.claims["score"] == 1).all()
    best = ceiling.decodability_by_point().groupby("variable")["score"].max()
    assert (best == 1).all()
    attention = ceiling.tables["attention"]
    assert attention[attention["matched"]]["similarity"].min() > 0.999
    for method in ("zero", "resample"):
        assert ceiling.correlations[method].rho == pytest.approx(1)
    heads = ceiling.by_side("heads")
    assert heads["compiled"].equals(heads["learned"])
    overlap = ceiling.overlaps["zero"]
    assert overlap.shared == overlap.either > overlap.expected


def test_a_model_that_learned_nothing_is_on_the_floor(floor):
    for name in ("behaviour", "attention", "subspaces"):
        assert floor.axis(name).score < 0.25
    assert not floor.axis("interchange").has_score  # it answers no input as the program does: nothing can be asked
    assert floor.verdict.answer == "does not"
    assert floor.verdict.levels == {"answers": "does not", "variables": "not testable", "routes": "not testable"}
    assert floor.accuracies["learned"].token < 0.5
    attention = floor.tables["attention"]
    assert attention[attention["matched"]]["input_dependence"].abs().max() < 0.05
    late = floor.decodability_by_point()
    late = late[late["variable"] == "induction"]
    assert (late["score"] - late[["chance", "untrained"]].max(axis=1)).max() < 0.15


def test_program_and_compiled_model_are_right_alike(ceiling):
    assert ceiling.accuracies["program"] == ceiling.accuracies["compiled"] == ceiling.accuracies["learned"]
    assert ceiling.program == "induction"
    assert ceiling.learned_origin == "CompiledModel"


def test_a_disguise_changes_nothing(disguised, ceiling):
    """Another basis of everything, in a wider stream: the same function, so the same evidence."""
    for axis in ceiling.axes:
        other = disguised.axis(axis.name)
        assert other.score == pytest.approx(axis.score, abs=1e-3)
        assert other.low == pytest.approx(axis.low, abs=1e-3)
    assert disguised.verdict.answer == ceiling.verdict.answer
    rows = [one.tables["interchange"].iloc[0] for one in (ceiling, disguised)]
    assert rows[0]["point"] == rows[1]["point"]
    for name in ("iia", "specificity", "score", "full_stream", "active", "dormant", "rank"):
        assert rows[1][name] == pytest.approx(rows[0][name], abs=1e-3, nan_ok=True)
    claims = [one.verdict.claims for one in (ceiling, disguised)]
    assert claims[0]["status"].tolist() == claims[1]["status"].tolist()
    np.testing.assert_allclose(claims[1]["score"], claims[0]["score"], atol=1e-3)
    points = [one.decodability_by_point()["score"] for one in (ceiling, disguised)]
    np.testing.assert_allclose(points[1], points[0], atol=0.02)  # probes are shrunken, on a few hundred inputs
    edges = [one.tables["edges_learned"].set_index(["layer", "query", "key"]) for one in (ceiling, disguised)]
    for method in ("zero", "mean", "resample"):
        np.testing.assert_allclose(edges[1][method], edges[0][method], atol=1e-3)


@pytest.mark.slow
def test_a_head_that_moves_nothing_is_noticed(as_compiled, induction, ceiling, disguised):
    """The negative control: weights that are no disguise."""
    hidden = disguise(induction.transformer, seed=2, extra_width=3)
    broken = as_compiled(without_values(hidden, 0))
    assert abs(broken.axis("behaviour").score - ceiling.axis("behaviour").score) > 0.05
    assert broken.verdict.answer != "implements"
    assert disguised.verdict.answer == "implements"


def test_the_same_evidence_for_a_model_that_is_only_half_right(induction, task, quick):
    """Where scores are neither 0 nor 1 they do not move under a disguise either.

    All but that of edges, whose control is an untrained model of another width.
    """
    model = induction.transformer
    name = "blocks.0.attn.W_O"
    faint = Transformer(model.config, {**model.weights, name: 0.7 * model.weights[name]}, model.mask)

    def evidence(one):
        study = study_of(induction, one, task, quick, 0, vocabulary_of(induction, task))
        return (
            behaviour_axis(behaviour(study, 0), 0, 200),
            attention_axis(study.scored, head_similarities(study.scored, 0), 0),
        )

    plain, hidden = (evidence(one) for one in (faint, disguise(faint, seed=4, extra_width=3)))
    for first, second in zip(plain, hidden, strict=True):
        assert 0.2 < first.score < 0.8
        assert second.score == pytest.approx(first.score, abs=0.03)  # controls are other untrained models


@pytest.mark.slow
def test_every_stage_is_announced(offset, noise, task, brief):
    stages = []
    compare(offset, noise, task=task, config=brief, progress=stages.append)
    of_parts = [kind.name for kind in (AGREEMENT, EFFECTS)]
    assert stages == [stage for stage in STAGES if stage not in of_parts]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_comparison(offset, noise, task, brief):
    first, again, other = (compare(offset, noise, task=task, config=brief, seed=s) for s in (0, 0, 1))
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()


@pytest.mark.slow
def test_what_a_program_of_one_head_lacks_is_said(offset, task, brief):
    """Nothing lies between its input and its output: two axes have no score, the others suffice."""
    result = compare(offset, offset, task=task, config=brief)
    assert {axis.name for axis in result.axes if not axis.has_score} == {"interchange", "subspaces"}
    assert result.tables["interchange"].empty
    assert result.verdict.answer == "implements"


def test_a_program_without_heads_is_compared_all_the_same(task, noise, brief):
    """No head is active and nothing can be ablated: the tables are empty, and everything that reads them copes."""
    compiled = compile_program(Map(str.lower, tokens).named("lower"), task.vocab, task.n_ctx)
    result = compare(compiled, noise, task=task, config=brief)
    assert result.tables["attention"].empty
    assert result.axis("attention").note == "no compiled head has an active query row that sees more than one key"
    assert result.findings


def test_of_a_program_that_reads_nothing_else_it_is_tested_that_nothing_is_read(task, brief):
    """The identity, on the task of giving back what stands there."""
    same = replace(task, target=lambda ids: ids[:, list(task.loss_positions)], programs={})
    compiled = compile_program(Map(lambda letter: letter, tokens).named("same"), task.vocab, task.n_ctx)
    result = compare(compiled, compiled, task=same, config=brief)
    assert result.accuracies["learned"].token == 1
    # All that it claims is that nothing moves between positions, which holds.
    assert result.verdict.levels == {
        "answers": "implements", "variables": "not testable", "routes": "implements"
    }  # fmt: skip
    assert [axis.name for axis in result.axes if axis.has_score] == ["behaviour"]


@pytest.mark.slow
def test_one_reference_in_a_list_is_a_ranking(offset, task, brief):
    found = rank([offset], offset, task=task, config=brief)
    assert isinstance(found, Ranking)
    assert isinstance(found.best, Comparison)
    assert found.verdict == "offset"


@pytest.mark.slow
def test_a_disguise_is_recognised_where_patching_leaves_half_of_two_values():
    """Whether half of one value and half of another was an answer depended on rounding: "partly"."""
    entry = CATALOGUE["sort_unique"]
    task = task_from_program(entry.build(), entry.vocab, entry.max_len)
    reference = compile_program(entry.build(), task.vocab, task.n_ctx, mask=task.visible)
    disguised = disguise(reference, seed=0, extra_width=3, basis="oblique", condition=10.0)
    assert compare(reference, disguised, task=task, config="quick").verdict.answer == IMPLEMENTS


@pytest.mark.slow
def test_a_program_is_compared_as_a_part_of_a_model(task, induction, offset, noise, brief, quick):
    """It says nothing of the first answer: as a part, nothing is asked there."""
    left_open = "nothing is gathered along other edges"
    whole, part = (
        compare(induction, induction, task=task, config=quick, as_part=as_part) for as_part in (False, True)
    )
    assert whole.accuracies["learned"].sequence < 0.5
    assert part.accuracies["learned"].token > whole.accuracies["learned"].token
    assert part.verdict.answer == IMPLEMENTS
    statuses = [dict(one.verdict.claims[["claim", "status"]].to_numpy()) for one in (whole, part)]
    assert [status[left_open] for status in statuses] == ["holds", "not testable"]
    assert not part.axes  # a model as a whole is not like one of its parts
    assert set(part.tables) >= {"effects", "part_heads"}
    assert any("left open" in reason for reason in part.verdict.reasons)
    few = compare(induction, induction, task=task, config=brief, as_part=True).verdict
    assert few.answer == UNKNOWN  # nothing tells which edges "previous" gathers along
    for other in (offset, noise):
        found = compare(induction, other, task=task, config=brief, as_part=True).verdict
        assert found.answer != IMPLEMENTS
        assert found.levels["variables"] != IMPLEMENTS
