"""Alternative programs in order, and seeds as replicates."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lab.labelled.circuits import HARD
from rasplens.compare import Ranking, comparison_table, discriminate, rank
from rasplens.compare.pipeline import _what_would_tell
from rasplens.compare.ranking import NONE, replicates
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN
from rasplens.compile import compile_program


@pytest.fixture(scope="module")
def rankings(offset, induction, task, quick):
    models = {"offset": offset, "induction": induction}
    return {name: rank([offset, induction], model, task=task, config=quick) for name, model in models.items()}


@pytest.mark.parametrize("name", ["offset", "induction"])
def test_the_right_program_comes_first(rankings, name):
    ranking = rankings[name]
    assert ranking.best.program == name
    assert ranking.verdict == name
    ranks = [one.rank for one in ranking.comparisons]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[1] + 0.05
    assert ranking.comparisons[1].verdict.answer != IMPLEMENTS


def test_alternatives_are_told_apart_on_inputs_on_which_they_differ(rankings):
    for ranking in rankings.values():
        for one in ranking.comparisons:
            (alternative,) = {"offset", "induction"} - {one.program}
            share = one.tables["behaviour"].set_index("inputs")["agreement"]
            assert (share[f"against {alternative}"] > 0.99) == (one.program == ranking.best.program)
            assert f"against {alternative}, out of distribution" in share
            counted = one.verdict.claims["claim"].tolist()
            assert f"answers, against {alternative}" in counted
            assert not any("out of distribution" in claim for claim in counted)  # reported, and decides nothing


@pytest.mark.slow
def test_the_order_of_the_references_does_not_matter(rankings, offset, induction, task, quick):
    again = rank([induction, offset], offset, task=task, config=quick)
    assert [one.to_json() for one in again.comparisons] == [
        one.to_json() for one in rankings["offset"].comparisons
    ]


def with_answers(ranking, *answers):
    return Ranking(
        tuple(
            replace(
                ranking.comparisons[i % 2], program=f"p{i}", verdict=replace(ranking.best.verdict, answer=answer)
            )
            for i, answer in enumerate(answers)
        )
    )


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ((IMPLEMENTS, NOT), "p0"),
        ((NOT, IMPLEMENTS), "p1"),
        ((IMPLEMENTS, UNKNOWN), "p0"),
        ((IMPLEMENTS, IMPLEMENTS), "not told apart: p0, p1"),
        ((IMPLEMENTS, UNKNOWN, IMPLEMENTS), "not told apart: p0, p2"),
        ((UNKNOWN, NOT), UNKNOWN),
        ((PARTLY, UNKNOWN), UNKNOWN),
        ((NOT, PARTLY), "partly p1"),
        ((NOT, NOT, NOT), NONE),
    ],
)
def test_the_verdict_over_alternatives(rankings, answers, verdict):
    assert with_answers(rankings["offset"], *answers).verdict == verdict


def test_the_table_has_a_row_for_each_program(rankings):
    ranking = rankings["induction"]
    table = ranking.table
    assert table["program"].tolist() == ["induction", "offset"]
    for row, one in zip(table.to_dict(orient="records"), ranking.comparisons, strict=True):
        assert row["verdict"] == one.verdict.answer
        assert [row[f"same {level}"] for level in one.verdict.levels] == list(one.verdict.levels.values())
        assert row["right"] == one.accuracies["learned"].token
        np.testing.assert_equal([row[axis.name] for axis in one.axes], [axis.score for axis in one.axes])


def test_it_is_shown_as_a_table(rankings):
    shown = rankings["induction"]._repr_html_()
    assert shown.startswith("<p><b>induction</b></p><table")
    assert "offset" in shown


def test_no_reference_is_refused(noise, task):
    with pytest.raises(ValueError, match=r"rank .*at least one .*program"):
        rank([], noise, task=task)


def test_two_programs_of_one_name_are_refused(offset, noise, task):
    with pytest.raises(ValueError, match=r"'offset'.* twice"):
        rank([offset, offset], noise, task=task)


def compiled(circuit, side):
    task = circuit.task()
    return task, compile_program(getattr(circuit, side)(), task.vocab, task.n_ctx, mask=task.visible)


@pytest.mark.slow
def test_programs_that_are_right_alike_are_not_told_apart():
    """By inputs out of distribution, where there are such; else by what they read, if that differs at all."""
    circuit = HARD["share_of_all"]
    task, own = compiled(circuit, "program")
    _, other = compiled(circuit, "alternative")
    ranking = rank([own, other], own, task=task, config="quick")
    assert ranking.verdict == "not told apart: share_of_own, share_of_rest"
    (sentence,) = ranking.not_told_apart
    assert re.search("'share_of_own'.*'share_of_rest'.*same answers.*same positions", sentence)
    assert sentence in repr(ranking)


def test_inputs_that_would_tell_are_named():
    """A rule by content and one by position, right alike where the numbers stand in order."""
    circuit = HARD["end_or_highest"]
    task = circuit.task()
    found = discriminate(circuit.program(), circuit.alternative(), task)
    sentence = _what_would_tell("at_end", "highest_of_all", found, task)
    example = sentence.partition("inputs such as ")[2].partition(" would ")[0]
    numbers = [int(number) for number in example.split()]
    assert max(numbers) != numbers[-1]


def test_what_is_printed_is_short(rankings):
    ranking = rankings["offset"]
    assert repr(ranking).splitlines()[0] == "<Ranking: offset>"
    assert repr(ranking.best) == (
        "<Comparison with CompiledModel: The learned model implements the program 'offset' (answers: implements, "
        "variables: not testable, routes: implements)>"
    )


def test_models_of_several_seeds_are_replicates(rankings):
    """By hand: the mean and the standard deviation over two of the same program."""
    one = rankings["offset"].best
    other = replace(one, axes=tuple(replace(axis, score=axis.score / 2) for axis in one.axes))
    table = replicates([one, other, rankings["offset"].comparisons[1]])
    row = table.loc[("copy", "offset")]
    score = one.axis("attention").score
    assert score > 0
    assert row["attention", "mean"] == pytest.approx(0.75 * score)
    assert row["attention", "std"] == pytest.approx(score / 4 * np.sqrt(2))
    assert row["attention", "count"] == 2
    assert table.loc[("copy", "induction")]["behaviour", "count"] == 1
    assert len(comparison_table([one, other])) == 2
